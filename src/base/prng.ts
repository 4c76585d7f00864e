/**
 * Seeded random numbers for tests, simulation and load: sfc32 (Doty-Humphrey's Small Fast Counter). The
 * same seed gives the same numbers on every machine. Not for secrets: see Secrets in platform/ports.ts.
 */
import { invariant } from './invariant.js';

const TWO_32 = 4_294_967_296;
const WARM_UP = 15; // rounds until seeds that differ in one bit give unrelated numbers

export class Prng {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.floor(seed / TWO_32) | 0;
    this.#c = 0x9e3779b9 | 0;
    for (let i = 0; i < WARM_UP; i++) this.#word();
  }

  /** From 0 up to but not including 1, in steps of 2^-32. */
  next(): number {
    return this.#word() / TWO_32;
  }

  /** A whole number from 0 to n − 1, for n up to 2^32. */
  below(n: number): number {
    invariant(n > 0 && n <= TWO_32, 'a choice is among 1 to 2^32');
    return Math.floor(this.next() * n);
  }

  pick<T>(list: readonly T[]): T {
    invariant(list.length > 0, 'a choice needs something to choose from');
    return list[this.below(list.length)] as T;
  }

  /** A generator of its own, so that one part of a test can draw more without changing the others. */
  fork(): Prng {
    return new Prng((this.#word() >>> 11) * TWO_32 + this.#word());
  }

  #word(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }
}
