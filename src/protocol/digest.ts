/**
 * The running digest of a partition: two 32-bit lanes over all changes since number 0, so that two
 * mirrors which stand at the same number can tell with eight bytes whether they hold the same
 * (docs/PROTOCOL.md, "Digest"). It guards against bugs and mixed-up partitions, not against an attacker.
 *
 * For each change, over the words w = kind + 2^16 × room, bodyBytes, headBytes, crc, ref mod 2^32, floor(ref
 * / 2^32):
 *
 *   a = rotl(a ^ w, 13) * 0x9E3779B1 mod 2^32        b = rotl(b + w mod 2^32, 17) * 0x85EBCA77 mod 2^32
 *
 * Flags do not count: a mirror under refill, which gets some changes as SKIPPED, ends at the same digest.
 */

const LANE_A = 0x9e3779b1 | 0;
const LANE_B = 0x85ebca77 | 0;
const TO_HIGH_WORD = 1 / 0x1_0000_0000;

/**
 * The lanes live as signed 32-bit integers, because those are small integers to V8: an unsigned lane above
 * 2^31 would become a heap number at every step.
 */
export class Digest {
  #a = 0;
  #b = 0;

  get a(): number {
    return this.#a >>> 0;
  }

  get b(): number {
    return this.#b >>> 0;
  }

  /** Starts from a digest that is known, (0, 0) for a new partition. */
  reset(a: number, b: number): void {
    this.#a = a | 0;
    this.#b = b | 0;
  }

  equals(a: number, b: number): boolean {
    return this.#a === (a | 0) && this.#b === (b | 0);
  }

  /**
   * Counts one change. `kind` with the room (changeDigested). All arguments are u32 but `ref`, a whole number
   * below 2^53.
   */
  add(kind: number, bodyBytes: number, headBytes: number, crc: number, ref: number): void {
    const low = ref | 0; // ToInt32 is the remainder by 2^32
    const high = (ref * TO_HIGH_WORD) | 0;
    let a = this.#a;
    let b = this.#b;
    a ^= kind;
    a = Math.imul((a << 13) | (a >>> 19), LANE_A);
    b = (b + kind) | 0;
    b = Math.imul((b << 17) | (b >>> 15), LANE_B);
    a ^= bodyBytes;
    a = Math.imul((a << 13) | (a >>> 19), LANE_A);
    b = (b + bodyBytes) | 0;
    b = Math.imul((b << 17) | (b >>> 15), LANE_B);
    a ^= headBytes;
    a = Math.imul((a << 13) | (a >>> 19), LANE_A);
    b = (b + headBytes) | 0;
    b = Math.imul((b << 17) | (b >>> 15), LANE_B);
    a ^= crc;
    a = Math.imul((a << 13) | (a >>> 19), LANE_A);
    b = (b + crc) | 0;
    b = Math.imul((b << 17) | (b >>> 15), LANE_B);
    a ^= low;
    a = Math.imul((a << 13) | (a >>> 19), LANE_A);
    b = (b + low) | 0;
    b = Math.imul((b << 17) | (b >>> 15), LANE_B);
    a ^= high;
    this.#a = Math.imul((a << 13) | (a >>> 19), LANE_A);
    b = (b + high) | 0;
    this.#b = Math.imul((b << 17) | (b >>> 15), LANE_B);
  }
}

/** Sixteen digits, as gateways and stores show it. */
export function digestText(a: number, b: number): string {
  return `${(a >>> 0).toString(16).padStart(8, '0')}${(b >>> 0).toString(16).padStart(8, '0')}`;
}
