/**
 * What a sink does with a message on purpose: the seeded lot that decides between taking, deferring,
 * refusing and cutting. One number is drawn a decision, so that the same seed makes the same faults.
 */
import type { Prng } from '../base/prng.js';
import { CUT, DEFERRED, REJECTED, TAKEN, type ArrivalKind } from './verify.js';

export interface FaultRates {
  readonly deferRate: number;
  readonly rejectRate: number;
  readonly cutAfterDot: number;
}

export class Faults {
  readonly #rates: FaultRates;
  readonly #random: Prng;
  readonly #none: boolean;

  constructor(rates: FaultRates, random: Prng) {
    this.#rates = rates;
    this.#random = random;
    this.#none = rates.deferRate + rates.rejectRate + rates.cutAfterDot === 0;
  }

  /** The fate of the next message. */
  draw(): ArrivalKind {
    if (this.#none) return TAKEN;
    const { cutAfterDot, deferRate, rejectRate } = this.#rates;
    const lot = this.#random.below(LOTS) / LOTS;
    if (lot < cutAfterDot) return CUT;
    if (lot < cutAfterDot + deferRate) return DEFERRED;
    if (lot < cutAfterDot + deferRate + rejectRate) return REJECTED;
    return TAKEN;
  }
}

/** Resolution of the rates. */
const LOTS = 1_000_000;
