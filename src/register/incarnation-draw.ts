/**
 * Draws the incarnation of a starting gateway: the last one of the register + 1, with an ordinal that no
 * incarnation of the group ever had (DESIGN, "Incarnation"). By compare-and-set; clocks decide nothing.
 *
 *   ORDINAL ── read `ordinal` and all `incarnations/` / write next + 1 ──► settled done ──► INCARNATION
 *      ▲  └── stale, unknown: what was drawn may be another's: read again, draw a later one
 *   INCARNATION ── read incarnations/ID / write {last + 1, ordinal} ──► settled done ──► DRAWN
 *      ▲  └── stale, unknown: read again; a record with our ordinal is ours, as the ordinal is nobody else's
 *   anything unreachable or refused ──► the same step again after a while
 *   FAILED: no ordinals left, or a record that can't be read: for a person
 *
 * `floor` is what is known besides the register, from what stores told: a register that was rolled back must
 * not give out numbers twice.
 */
import { invariant } from '../base/invariant.js';
import { BrokenRule } from './core/shapes.js';
import { INCARNATIONS, ORDINAL_KEY, incarnationKey } from './keys.js';
import type { Entry, Outcome, ReadResult, Register } from './port.js';
import {
  ORDINAL_MAX,
  decodeIncarnation,
  decodeOrdinal,
  encodeIncarnation,
  encodeOrdinal,
} from './records.js';
import type { IncarnationRecord } from './records.js';

export const DrawState = { ordinal: 0, incarnation: 1, drawn: 2, failed: 3, stopped: 4 } as const;
export type DrawState = (typeof DrawState)[keyof typeof DrawState];

const NEXT: Readonly<Record<DrawState, readonly DrawState[]>> = {
  [DrawState.ordinal]: [DrawState.incarnation, DrawState.failed, DrawState.stopped],
  [DrawState.incarnation]: [DrawState.drawn, DrawState.failed, DrawState.stopped],
  [DrawState.drawn]: [],
  [DrawState.failed]: [],
  [DrawState.stopped]: [],
};

/** After an answer that says nothing. */
const AGAIN_MS = 500;

export interface IncarnationDrawOptions {
  readonly gatewayId: string;
  /** No lower incarnation and ordinal are drawn than these. */
  readonly floor: IncarnationRecord;
}

export interface IncarnationDrawPorts {
  readonly register: Register;
  readonly onDrawn: (record: IncarnationRecord) => void;
  /** What is wrong, and what to do. */
  readonly onFailed: (why: string) => void;
}

export function isValidDrawTransition(from: DrawState, to: DrawState): boolean {
  return NEXT[from].includes(to);
}

export class IncarnationDraw {
  readonly #options: IncarnationDrawOptions;
  readonly #ports: IncarnationDrawPorts;
  #state: DrawState = DrawState.ordinal;
  /** Ours alone once the state is past ORDINAL. */
  #ordinal = 0;
  #isAsking = false;
  #againMs = 0;
  #nowMs = 0;
  /** Why it waits; '' while an answer is awaited for the first time. */
  #why = '';

  constructor(options: IncarnationDrawOptions, ports: IncarnationDrawPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  get state(): DrawState {
    return this.#state;
  }

  /** For status: what is waited for. */
  get why(): string {
    return this.#why;
  }

  /** Begins, and goes on after a wait. */
  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    const isAtWork = this.#state === DrawState.ordinal || this.#state === DrawState.incarnation;
    if (!isAtWork || this.#isAsking || nowMs < this.#againMs) return;
    this.#isAsking = true;
    if (this.#state === DrawState.ordinal) this.#readOrdinal();
    else this.#readIncarnation();
  }

  stop(): void {
    if (isValidDrawTransition(this.#state, DrawState.stopped)) this.#transition(DrawState.stopped);
  }

  #readOrdinal(): void {
    const { register } = this.#ports;
    this.#read(register, { key: ORDINAL_KEY }, ([counter]) => {
      const record = counter === undefined ? { next: 0 } : decodeOrdinal(counter.value);
      if (record instanceof BrokenRule) return this.#fail(ORDINAL_KEY, record);
      this.#read(register, { prefix: INCARNATIONS }, (entries) => {
        let next = Math.max(record.next, this.#options.floor.ordinal + 1);
        for (const { key, value } of entries) {
          const known = decodeIncarnation(value);
          if (known instanceof BrokenRule) return this.#fail(key, known);
          next = Math.max(next, known.ordinal + 1);
        }
        this.#drawOrdinal(counter, next);
      });
    });
  }

  #drawOrdinal(counter: Entry | undefined, next: number): void {
    if (next > ORDINAL_MAX) {
      return this.#end('all ordinals of this group are used up: give the group another cluster name');
    }
    this.#write(ORDINAL_KEY, counter, encodeOrdinal({ next: next + 1 }), (outcome) => {
      // Only done says that nobody else has it: what is stale may have been taken by another, or by a write
      // of ours.
      if (outcome.kind !== 'done') return this.#again(outcome);
      this.#ordinal = next;
      this.#transition(DrawState.incarnation);
      this.#again(outcome);
    });
  }

  #readIncarnation(): void {
    const { gatewayId, floor } = this.#options;
    const key = incarnationKey(gatewayId);
    this.#read(this.#ports.register, { key }, ([entry]) => {
      const last = entry === undefined ? undefined : decodeIncarnation(entry.value);
      if (last instanceof BrokenRule) return this.#fail(key, last);
      if (last?.ordinal === this.#ordinal) return this.#drawn(last);
      const record = {
        incarnation: Math.max(last?.incarnation ?? 0, floor.incarnation) + 1,
        ordinal: this.#ordinal,
      };
      this.#write(key, entry, encodeIncarnation(record), (outcome) => {
        if (outcome.kind === 'done') this.#drawn(record);
        else this.#again(outcome);
      });
    });
  }

  #drawn(record: IncarnationRecord): void {
    this.#transition(DrawState.drawn);
    this.#ports.onDrawn(record);
  }

  #read(
    register: Register,
    range: Parameters<Register['read']>[0],
    done: (entries: readonly Entry[]) => void,
  ): void {
    register.read(range, (result: ReadResult) => {
      if (this.#state === DrawState.stopped) return;
      if (result.kind === 'entries') done(result.entries);
      else this.#wait(result.why);
    });
  }

  #write(key: string, entry: Entry | undefined, value: string, done: (outcome: Outcome) => void): void {
    this.#ports.register.write([{ key, ifRevision: entry?.revision ?? 0, value }], (_index, outcome) => {
      if (this.#state !== DrawState.stopped) done(outcome);
    });
  }

  /** The step of the present state once more; at once if the register itself answered. */
  #again(outcome: Outcome): void {
    if (outcome.kind === 'unknown' || outcome.kind === 'refused') return this.#wait(outcome.why);
    this.#isAsking = false;
    this.#againMs = 0;
    this.tick(this.#nowMs);
  }

  #wait(why: string): void {
    this.#why = why;
    this.#isAsking = false;
    this.#againMs = this.#nowMs + AGAIN_MS;
  }

  #fail(key: string, { rule }: BrokenRule): void {
    this.#end(
      `the register's record ${key} can't be read (${rule}): look at it, and mend or delete it by hand`,
    );
  }

  #end(why: string): void {
    this.#why = why;
    this.#transition(DrawState.failed);
    this.#ports.onFailed(why);
  }

  #transition(to: DrawState): void {
    invariant(
      isValidDrawTransition(this.#state, to),
      `a draw does not go from ${String(this.#state)} to ${String(to)}`,
    );
    this.#state = to;
  }
}
