/**
 * Draws the incarnation of a starting gateway: the last one of the register + 1, with an ordinal that no
 * incarnation of the group ever had (DESIGN, "Incarnation"). By compare-and-set; clocks decide nothing.
 *
 *   ORDINAL ── ordinal-draw.ts ──► drawn ──► INCARNATION
 *   INCARNATION ── read incarnations/ID / write {last + 1, ordinal} ──► settled done ──► DRAWN
 *      ▲  └── stale, unknown: read again; a record with our ordinal is ours, as the ordinal is nobody else's
 *   anything unreachable or refused ──► the same step again after a while
 *   either ── no ordinals left, or a record that can't be read: for a person ──► FAILED
 *   either ── stop() ──► STOPPED: no answer counts any more
 *
 * `floor` is what is known besides the register, from what stores told: a register that was rolled back must
 * not give out numbers twice.
 */
import { invariant } from '../base/invariant.js';
import { BrokenRule } from '../base/json-shape.js';
import { incarnationKey } from './keys.js';
import { DRAW_AGAIN_MS, OrdinalDraw, unreadable } from './ordinal-draw.js';
import { unchanged, type Register } from './port.js';
import { decodeIncarnation, encodeIncarnation } from './records.js';
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

export interface IncarnationDrawOptions {
  readonly gatewayId: string;
  /** No lower incarnation and ordinal are drawn than these. */
  readonly floor: IncarnationRecord;
  /** Somebody knows of later processes than the register does. */
  readonly isBehind: boolean;
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
  readonly #first: OrdinalDraw;
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
    this.#first = new OrdinalDraw({ floor: options.floor.ordinal, isBehind: options.isBehind }, {
      register: ports.register,
      onDrawn: (ordinal) => {
        if (this.#state !== DrawState.ordinal) return;
        this.#ordinal = ordinal;
        this.#transition(DrawState.incarnation);
        this.tick(this.#nowMs);
      },
      onFailed: (why) => {
        if (this.#state === DrawState.ordinal) this.#end(why);
      },
    });
  }

  get state(): DrawState {
    return this.#state;
  }

  /** For status: what is waited for. */
  get why(): string {
    return this.#state === DrawState.ordinal ? this.#first.why : this.#why;
  }

  /** Begins, and goes on after a wait. */
  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#state === DrawState.ordinal) return this.#first.tick(nowMs);
    if (this.#state !== DrawState.incarnation || this.#isAsking || nowMs < this.#againMs) return;
    this.#isAsking = true;
    this.#readIncarnation();
  }

  stop(): void {
    this.#first.stop();
    if (isValidDrawTransition(this.#state, DrawState.stopped)) this.#transition(DrawState.stopped);
  }

  #readIncarnation(): void {
    const { gatewayId, floor } = this.#options;
    const key = incarnationKey(gatewayId);
    this.#ports.register.read({ key }, (result) => {
      if (this.#state === DrawState.stopped) return;
      if (result.kind !== 'entries') return this.#wait(result.why);
      const [entry] = result.entries;
      const last = entry === undefined ? undefined : decodeIncarnation(entry.value);
      if (last instanceof BrokenRule) return this.#end(unreadable(key, last));
      if (last?.ordinal === this.#ordinal) return this.#drawn(last);
      const record = {
        incarnation: Math.max(last?.incarnation ?? 0, floor.incarnation) + 1,
        ordinal: this.#ordinal,
      };
      const write = { key, ...unchanged(entry), value: encodeIncarnation(record) };
      this.#ports.register.write([write], (_index, outcome) => {
        if (this.#state === DrawState.stopped) return;
        if (outcome.kind === 'unknown' || outcome.kind === 'refused') return this.#wait(outcome.why);
        if (outcome.kind === 'stale') return this.#readIncarnation();
        this.#drawn(record);
      });
    });
  }

  #drawn(record: IncarnationRecord): void {
    this.#transition(DrawState.drawn);
    this.#ports.onDrawn(record);
  }

  #wait(why: string): void {
    this.#why = why;
    this.#isAsking = false;
    this.#againMs = this.#nowMs + DRAW_AGAIN_MS;
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
