/**
 * With several workers behind one port the first one reports on TLS for all: the others hand it what they
 * have counted, through the process above them (bin/worker-messages.ts).
 *
 *   another worker                                       the first one
 *     counted ─ HAND_MS over ─► in hand ── handed ─────►   adds it to its own, once
 *        ▲                        │ ◄───── taken ───────   says so each time
 *        │ more                   ├ silence: AGAIN_MS later once more, the same
 *        └──────── gone ◄─────────┘ taken
 *
 * A piece is PIECE_CHARACTERS of one day, or one domain; one a second. What is in hand at a stop is written
 * to the file with the rest (counts-file.ts): where the first one had it and its word was lost, it counts
 * twice.
 */
import type { DomainCounts, TlsCounts } from './tls-counts.js';

export interface HandedCounts {
  /** Id of a worker, and a number above all that it had before. */
  readonly from: string;
  readonly number: number;
  readonly day: number;
  readonly domains: readonly DomainCounts[];
}

export type CountsMessage =
  | { readonly handed: HandedCounts }
  | { readonly taken: Pick<HandedCounts, 'from' | 'number'> };

const HAND_MS = 10_000;
const MORE_MS = 1_000;
const AGAIN_MS = 10_000;
const PIECE_CHARACTERS = 64 * 1024;

/** Of a worker that is not the first. */
export class Handover {
  readonly #from: string;
  readonly #counts: TlsCounts;
  readonly #tell: (message: CountsMessage) => void;
  #inHand: HandedCounts | undefined;
  #number: number;
  #notBeforeMs = -Infinity;

  /** Numbers go on from `wallMs`: no process before had as many. */
  constructor(from: string, wallMs: number, counts: TlsCounts, tell: (message: CountsMessage) => void) {
    this.#from = from;
    this.#number = wallMs;
    this.#counts = counts;
    this.#tell = tell;
  }

  get inHand(): HandedCounts | undefined { return this.#inHand; }

  tick(nowMs: number): void {
    if (nowMs < this.#notBeforeMs) return;
    this.#inHand ??= this.#next();
    this.#notBeforeMs = nowMs + (this.#inHand === undefined ? HAND_MS : AGAIN_MS);
    if (this.#inHand !== undefined) this.#tell({ handed: this.#inHand });
  }

  onTaken(from: string, number: number, nowMs: number): void {
    if (from !== this.#from || number !== this.#inHand?.number) return;
    this.#inHand = undefined;
    this.#counts.changes++;
    this.#notBeforeMs = nowMs + (this.#counts.days().length > 0 ? MORE_MS : HAND_MS);
  }

  #next(): HandedCounts | undefined {
    const [day] = this.#counts.days();
    if (day === undefined) return undefined;
    const domains: DomainCounts[] = [];
    let characters = 0;
    for (const domain of this.#counts.domains(day)) {
      const counts = this.#counts.take(day, domain);
      if (counts === undefined) continue;
      domains.push(counts);
      characters += JSON.stringify(counts).length;
      if (characters >= PIECE_CHARACTERS) break;
    }
    return { from: this.#from, number: ++this.#number, day, domains };
  }
}

/** Of the first one. */
export class TakingOver {
  readonly #counts: TlsCounts;
  readonly #tell: (message: CountsMessage) => void;
  /** The last piece of each. */
  readonly #last = new Map<string, number>();

  constructor(counts: TlsCounts, tell: (message: CountsMessage) => void) {
    this.#counts = counts;
    this.#tell = tell;
  }

  onHanded({ from, number, day, domains }: HandedCounts): void {
    if (this.#last.get(from) !== number) for (const domain of domains) this.#counts.add(day, domain);
    this.#last.set(from, number);
    this.#tell({ taken: { from, number } });
  }
}
