/**
 * Ordinals for message ids (message-ids.ts): the one that was drawn with the incarnation,
 * and in time another one, so that it is in hand when the ids of the first are used up (some 15 hours
 * at 10,000 messages a second).
 *
 *   FRESH ── taken, and a while passes ──► DRAWING ── drawn ──► READY ── taken ──► FRESH …
 *
 * It is drawn ahead only by a process that has run for a while: one that is started again and again uses up
 * one ordinal a start, not two.
 */
import { invariant } from '../../base/invariant.js';
import { OrdinalDraw } from '../../register/ordinal-draw.js';
import type { Register } from '../../register/port.js';

/** So many ids as one ordinal has, nobody uses up in this time. */
const DRAW_AFTER_MS = 600_000;

export interface OrdinalsPorts {
  readonly register: Register;
  /** No ordinal is left for the group: what to do. Once. */
  onFailed(why: string): void;
}

export class Ordinals {
  readonly #ports: OrdinalsPorts;
  #inHand: number | undefined;
  #draw: OrdinalDraw | undefined;
  #drawAtMs = Infinity;
  #hasFailed = false;

  /** `first` is this process's own. */
  constructor(first: number, ports: OrdinalsPorts) {
    this.#ports = ports;
    this.#inHand = first;
  }

  /** At the latest when the ids of the one before are used up. */
  take(): number {
    const ordinal = this.#inHand;
    invariant(ordinal !== undefined, 'another ordinal is drawn before the ids of one are used up');
    this.#inHand = undefined;
    this.#drawAtMs = -Infinity;
    return ordinal;
  }

  tick(nowMs: number): void {
    if (this.#inHand !== undefined || this.#hasFailed) return;
    if (this.#drawAtMs === -Infinity) this.#drawAtMs = nowMs + DRAW_AFTER_MS;
    if (nowMs < this.#drawAtMs) return;
    this.#draw ??= this.#begin();
    this.#draw.tick(nowMs);
  }

  #begin(): OrdinalDraw {
    return new OrdinalDraw({ floor: 0, isBehind: false }, {
      register: this.#ports.register,
      onDrawn: (ordinal) => {
        this.#inHand = ordinal;
        this.#draw = undefined;
      },
      onFailed: (why) => {
        this.#hasFailed = true;
        this.#ports.onFailed(why);
      },
    });
  }
}
