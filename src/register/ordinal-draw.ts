/**
 * Draws an ordinal that no process of the group ever had (DESIGN, "Incarnation"), by compare-and-set.
 *
 *   ASKING ── read `ordinal` and all `incarnations/`, write next + 1 ──► settled done ──► DRAWN
 *     ▲  └── stale, unknown: what was drawn may be another's: read again, draw a later one
 *     └───── unreachable or refused: the same after a while
 *   ASKING ── no ordinals left, or a record that can't be read: for a person ──► FAILED
 *   ASKING ── stop() ──► STOPPED: no answer counts any more
 */
import { invariant } from '../base/invariant.js';
import { BrokenRule } from '../base/json-shape.js';
import { INCARNATIONS, ORDINAL_KEY } from './keys.js';
import { unchanged, type Entry, type Range, type Register } from './port.js';
import { ORDINAL_MAX, decodeIncarnation, decodeOrdinal, encodeOrdinal } from './records.js';

const OrdinalState = { asking: 0, drawn: 1, failed: 2, stopped: 3 } as const;
type OrdinalState = (typeof OrdinalState)[keyof typeof OrdinalState];

/**
 * So many processes of the group may have been started since the state that a lost register, one that was put
 * back, or a copy of it speaks of: their numbers are passed over. 16,384 times, then the group needs another
 * cluster name.
 */
export const UNKNOWN_STARTS = 1_024;
/** After an answer that says nothing. */
export const DRAW_AGAIN_MS = 500;

export interface OrdinalDrawPorts {
  readonly register: Register;
  readonly onDrawn: (ordinal: number) => void;
  /** What is wrong, and what to do. */
  readonly onFailed: (why: string) => void;
}

export class OrdinalDraw {
  readonly #floor: number;
  readonly #isBehind: boolean;
  readonly #ports: OrdinalDrawPorts;
  #state: OrdinalState = OrdinalState.asking;
  #isAsking = false;
  #againMs = 0;
  #nowMs = 0;
  #why = '';

  /**
   * No ordinal up to `floor` is drawn. `isBehind`: somebody knows of later processes than the register does.
   */
  constructor(options: { readonly floor: number; readonly isBehind: boolean; }, ports: OrdinalDrawPorts) {
    this.#floor = options.floor;
    this.#isBehind = options.isBehind;
    this.#ports = ports;
  }

  get state(): OrdinalState {
    return this.#state;
  }

  /** For status: why it waits; '' while an answer is awaited for the first time. */
  get why(): string {
    return this.#why;
  }

  /** Begins, and goes on after a wait. */
  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#state !== OrdinalState.asking || this.#isAsking || nowMs < this.#againMs) return;
    this.#isAsking = true;
    this.#ask();
  }

  stop(): void {
    if (this.#state === OrdinalState.asking) this.#transition(OrdinalState.stopped);
  }

  #ask(): void {
    this.#read({ key: ORDINAL_KEY }, ([counter]) => {
      const record = counter === undefined ? { next: 0 } : decodeOrdinal(counter.value);
      if (record instanceof BrokenRule) return this.#fail(unreadable(ORDINAL_KEY, record));
      this.#read({ prefix: INCARNATIONS }, (entries) => {
        let next = Math.max(record.next, this.#floor + 1);
        for (const { key, value } of entries) {
          const known = decodeIncarnation(value);
          if (known instanceof BrokenRule) return this.#fail(unreadable(key, known));
          next = Math.max(next, known.ordinal + 1);
        }
        // Of others of the group it knows no more than of us.
        const isBehind = this.#isBehind || (this.#floor > 0 && record.next <= this.#floor);
        this.#draw(counter, isBehind ? next + UNKNOWN_STARTS : next);
      });
    });
  }

  #draw(counter: Entry | undefined, next: number): void {
    if (next > ORDINAL_MAX) {
      return this.#fail('all ordinals of this group are used up: give the group another cluster name');
    }
    const value = encodeOrdinal({ next: next + 1 });
    const write = { key: ORDINAL_KEY, ...unchanged(counter), value };
    this.#ports.register.write([write], (_index, outcome) => {
      if (this.#state !== OrdinalState.asking) return;
      if (outcome.kind === 'unknown' || outcome.kind === 'refused') return this.#wait(outcome.why);
      // Only done says that nobody else has it: what is stale may have been taken by another,
      // or by a write of ours.
      if (outcome.kind === 'stale') return this.#ask();
      this.#transition(OrdinalState.drawn);
      this.#ports.onDrawn(next);
    });
  }

  #read(range: Range, done: (entries: readonly Entry[]) => void): void {
    this.#ports.register.read(range, (result) => {
      if (this.#state !== OrdinalState.asking) return;
      if (result.kind === 'entries') done(result.entries);
      else this.#wait(result.why);
    });
  }

  #wait(why: string): void {
    this.#why = why;
    this.#isAsking = false;
    this.#againMs = this.#nowMs + DRAW_AGAIN_MS;
  }

  #fail(why: string): void {
    this.#why = why;
    this.#transition(OrdinalState.failed);
    this.#ports.onFailed(why);
  }

  #transition(to: OrdinalState): void {
    invariant(this.#state === OrdinalState.asking, 'the draw of an ordinal ends once');
    this.#state = to;
  }
}

export function unreadable(key: string, { rule }: BrokenRule): string {
  return `the register's record ${key} can't be read (${rule}): look at it, and mend or delete it by hand`;
}
