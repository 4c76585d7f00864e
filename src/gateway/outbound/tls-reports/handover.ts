/**
 * With several workers behind one port the first one reports on TLS for all: once a day (UTC) is over the
 * others hand it what they have counted, through the process above them (bin/worker-messages.ts).
 *
 *   another worker                                       the first one
 *     counted ─ the day is over ─► in hand ── handed ──►   adds it to its own, once
 *        ▲                           │ ◄──── taken ─────   says so each time
 *        │                           ├ silence: AGAIN_MS later once more, the same
 *        └───── the next one ◄───────┘ taken
 *     nothing is left of it ─► an empty piece, likewise    reports when all have sent theirs, or
 *                                                          WAIT_MS later
 *
 * A piece is PIECE_CHARACTERS of one day, or one domain. What is in hand at a stop is written to the file
 * with the rest (counts-file.ts): where the first one had it and its word was lost, it counts twice. What
 * comes after the first one began gets a report of its own.
 */
import type { DomainCounts, TlsCounts, UntoldCounts } from './tls-counts.js';

export interface HandedCounts {
  /** Id of a worker, and a number above all that it had before. */
  readonly from: string;
  readonly number: number;
  readonly day: number;
  /** Empty: nothing is left of this day, nor of those before. */
  readonly domains: readonly DomainCounts[];
}

export type CountsMessage =
  | { readonly handed: HandedCounts }
  | { readonly taken: Pick<HandedCounts, 'from' | 'number'> };

const AGAIN_MS = 10_000;
const PIECE_CHARACTERS = 64 * 1024;
/** A worker starts, or starts anew, within it, and hands over all that one can hold: 100 MB in a minute. */
const WAIT_MS = 300_000;

/** Of a worker that is not the first. */
export class Handover {
  readonly #from: string;
  readonly #counts: TlsCounts;
  readonly #tell: (message: CountsMessage) => void;
  #inHand: HandedCounts | undefined;
  #number: number;
  #notBeforeMs = -Infinity;
  /** The first one has all of this day, and of those before. */
  #throughDay = -Infinity;

  /** Numbers go on from `wallMs`: no process before had as many. */
  constructor(from: string, wallMs: number, counts: TlsCounts, tell: (message: CountsMessage) => void) {
    this.#from = from;
    this.#number = wallMs;
    this.#counts = counts;
    this.#tell = tell;
  }

  untold(): readonly UntoldCounts[] {
    const { day = 0, domains = [] } = this.#inHand ?? {};
    return domains.map((counts) => ({ day, to: '', counts }));
  }

  tick(nowMs: number, today: number): void {
    if (nowMs < this.#notBeforeMs) return;
    this.#inHand ??= this.#next(today);
    if (this.#inHand === undefined) return;
    this.#notBeforeMs = nowMs + AGAIN_MS;
    this.#tell({ handed: this.#inHand });
  }

  onTaken(from: string, number: number): void {
    if (from !== this.#from || number !== this.#inHand?.number) return;
    if (this.#inHand.domains.length === 0) this.#throughDay = this.#inHand.day;
    this.#inHand = undefined;
    this.#notBeforeMs = -Infinity;
  }

  #next(today: number): HandedCounts | undefined {
    const day = this.#counts.days().find((each) => each < today);
    if (day === undefined && this.#throughDay >= today - 1) return undefined;
    const domains = day === undefined ? [] : this.#takePiece(day);
    return { from: this.#from, number: ++this.#number, day: day ?? today - 1, domains };
  }

  #takePiece(day: number): readonly DomainCounts[] {
    const piece: DomainCounts[] = [];
    let characters = 0;
    for (const domain of this.#counts.domains(day)) {
      const counts = this.#counts.take(day, domain);
      if (counts === undefined) continue;
      piece.push(counts);
      characters += JSON.stringify(counts).length;
      if (characters >= PIECE_CHARACTERS) break;
    }
    return piece;
  }
}

/** Of the first one. */
export class TakingOver {
  readonly #others: number;
  readonly #counts: TlsCounts;
  readonly #tell: (message: CountsMessage) => void;
  /** The last piece of each. */
  readonly #last = new Map<string, number>();
  /** Of whom all is here up to which day. */
  readonly #throughDay = new Map<string, number>();
  #waitsFor = -Infinity;
  #sinceMs = 0;

  /** `others`: how many hand over. */
  constructor(others: number, counts: TlsCounts, tell: (message: CountsMessage) => void) {
    this.#others = others;
    this.#counts = counts;
    this.#tell = tell;
  }

  onHanded({ from, number, day, domains }: HandedCounts): void {
    if (domains.length === 0) this.#throughDay.set(from, day);
    if (this.#last.get(from) !== number) for (const domain of domains) this.#counts.add(day, domain);
    this.#last.set(from, number);
    this.#tell({ taken: { from, number } });
  }

  /** What all have counted of it is here, or was waited for. */
  isWhole(day: number, nowMs: number): boolean {
    if (day !== this.#waitsFor) {
      this.#waitsFor = day;
      this.#sinceMs = nowMs;
    }
    const there = [...this.#throughDay.values()].filter((through) => through >= day).length;
    return there >= this.#others || nowMs - this.#sinceMs >= WAIT_MS;
  }
}
