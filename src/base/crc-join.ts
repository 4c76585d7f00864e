/**
 * The CRC-32 of many pieces behind one another, out of the CRC-32 of each: so a receiver computes one
 * checksum over all bytes of a section and compares it with what the rows say, instead of a call a row. Below
 * a kilobyte the call costs as much as the bytes.
 *
 *   crc(a ‖ b) = crc(a) · x^(8·|b|) mod P  ^  crc(b)          P = 0xedb88320, bits reflected as in zlib
 *
 * x^(8·n) is a product of at most four powers, one for each byte of n, out of tables of 4 KiB. Of lengths
 * that come again its products with all 16 values of four bits are remembered: then a product takes eight of
 * them instead of 32 steps, four for each half of the checksum, which do not wait for one another:
 *
 *   crc = halves h0 ‖ h1                                   h0 the lower powers
 *   half(h) = ((n3·x^4 ^ n2)·x^4 ^ n1)·x^4 ^ n0       n0 … n3: products of four bits, the lowest powers first
 *   crc · x^(8·n) = half(h0) ^ half(h1) · x^16
 *
 * A match means what a match of each piece means: what is damaged shows but for one case in 2^32.
 */

const P = 0xedb88320 | 0;
/** x^0: the highest bit stands for the lowest power. */
const ONE = 1 << 31;
const BYTE_VALUES = 256;
/** Lengths remembered, by their low bits: 272 KiB. */
const KNOWN = 4096;
const NIBBLE_VALUES = 16;

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
/**
 * What leaves at the end when four bits are shifted out, as the powers that it stands for; the same for each
 * byte of two.
 */
const LEFT_BY_4 = Int32Array.from({ length: NIBBLE_VALUES }, (_none, bits) => multiply(ONE >>> 4, bits));
const LEFT_BY_16_LAST = Int32Array.from({ length: BYTE_VALUES }, (_none, bits) => multiply(ONE >>> 16, bits));
const LEFT_BY_16_FIRST =
  Int32Array.from({ length: BYTE_VALUES }, (_none, bits) => multiply(ONE >>> 16, bits << 8));
const knownBytes = new Int32Array(KNOWN).fill(-1);
const knownProducts = new Int32Array(KNOWN * NIBBLE_VALUES);

/**
 * Checksum of what `crc` is of, followed by `bytes` bytes whose own checksum is `next`. Signed: compare with
 * `>>> 0` or `| 0`.
 */
export function joinCrc(crc: number, next: number, bytes: number): number {
  const at = bytes & (KNOWN - 1);
  const products = at * NIBBLE_VALUES;
  if (knownBytes[at] !== bytes) {
    knownBytes[at] = bytes;
    remember(products, powerOf(bytes));
  }
  const high = half(products, crc & 0xffff);
  return half(products, crc >>> 16) ^ (high >>> 16) ^ (LEFT_BY_16_LAST[high & 0xff] ?? 0)
    ^ (LEFT_BY_16_FIRST[(high >>> 8) & 0xff] ?? 0) ^ next;
}

/** Product of 16 bits: the last four of them are the highest powers. */
function half(products: number, bits: number): number {
  let product = knownProducts[products + (bits & 15)] ?? 0;
  product = (product >>> 4) ^ (LEFT_BY_4[product & 15] ?? 0)
    ^ (knownProducts[products + ((bits >>> 4) & 15)] ?? 0);
  product = (product >>> 4) ^ (LEFT_BY_4[product & 15] ?? 0)
    ^ (knownProducts[products + ((bits >>> 8) & 15)] ?? 0);
  return (product >>> 4) ^ (LEFT_BY_4[product & 15] ?? 0) ^ (knownProducts[products + (bits >>> 12)] ?? 0);
}

/** The products of a power with all values of four bits, of which the last is the highest power. */
function remember(products: number, power: number): void {
  let product = power;
  for (let bit = 8; bit > 0; bit >>>= 1) {
    // The values with this bit as their lowest come from those without it.
    for (let value = bit; value < NIBBLE_VALUES; value += 2 * bit) {
      knownProducts[products + value] = (knownProducts[products + value - bit] ?? 0) ^ product;
    }
    product = (product >>> 1) ^ (P & -(product & 1));
  }
}

function powerOf(bytes: number): number {
  let power = POWERS[0]?.[bytes & 0xff] ?? 0;
  for (let place = 1; place < 4; place += 1) {
    const value = (bytes >>> (8 * place)) & 0xff;
    if (value !== 0) power = multiply(POWERS[place]?.[value] ?? 0, power);
  }
  return power;
}
