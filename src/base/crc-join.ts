/**
 * The CRC-32 of many pieces behind one another, out of the CRC-32 of each: so a receiver computes one checksum over
 * all bytes of a section and compares it with what the rows say, instead of a call a row. Below a kilobyte the call
 * costs as much as the bytes.
 *
 *   crc(a ‖ b) = crc(a) · x^(8·|b|) mod P  ^  crc(b)          P = 0xedb88320, bits reflected as in zlib
 *
 * x^(8·n) is a product of at most four powers, one for each byte of n, out of tables of 4 KiB; of lengths that come
 * again it is remembered. A match means what a match of each piece means: what is damaged shows but for one case
 * in 2^32.
 */

const P = 0xedb88320 | 0;
/** x^0: the highest bit stands for the lowest power. */
const ONE = 1 << 31;
const BYTE_VALUES = 256;
/** Lengths remembered, by their low bits: 32 KiB. */
const KNOWN = 4096;

/** a · b mod P, without branches: the bits of a checksum can't be predicted. */
function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 0; bit < 32; bit += 1) {
    product ^= b & (a >> 31);
    a <<= 1;
    b = (b >>> 1) ^ (P & -(b & 1));
  }
  return product;
}

/** x^(8·i) for i from 0 to 255, each step `step`. */
function powersOf(step: number): Int32Array {
  const powers = new Int32Array(BYTE_VALUES);
  powers[0] = ONE;
  for (let i = 1; i < BYTE_VALUES; i += 1) powers[i] = multiply(step, powers[i - 1] ?? 0);
  return powers;
}

/** By byte of the length, the lowest first. */
function tables(): readonly Int32Array[] {
  // x^8: one byte.
  let step = ONE >>> 8;
  return [0, 1, 2, 3].map(() => {
    const powers = powersOf(step);
    step = multiply(step, powers[BYTE_VALUES - 1] ?? 0);
    return powers;
  });
}

const POWERS = tables();
const knownBytes = new Int32Array(KNOWN).fill(-1);
const knownPowers = new Int32Array(KNOWN);

/** Checksum of what `crc` is of, followed by `bytes` bytes whose own checksum is `next`. Signed: compare with `>>> 0` or `| 0`. */
export function joinCrc(crc: number, next: number, bytes: number): number {
  const at = bytes & (KNOWN - 1);
  if (knownBytes[at] !== bytes) {
    knownBytes[at] = bytes;
    knownPowers[at] = powerOf(bytes);
  }
  return multiply(knownPowers[at] ?? 0, crc) ^ next;
}

function powerOf(bytes: number): number {
  let power = POWERS[0]?.[bytes & 0xff] ?? 0;
  for (let place = 1; place < 4; place += 1) {
    const value = (bytes >>> (8 * place)) & 0xff;
    if (value !== 0) power = multiply(POWERS[place]?.[value] ?? 0, power);
  }
  return power;
}
