/**
 * The CRC-32 of long inputs at twice the speed of zlib's, which Node builds without the processor's
 * instruction for it: 150 KB take 13 µs instead of 31, copy included; below FOLD_FROM_BYTES zlib is quicker.
 *
 * All but the last 2 KB of the input are folded away by exclusive or of vectors of 16 bytes, without a table.
 * With y = x^128 (one vector further on) and P the polynomial of the checksum:
 *
 *   1 = y^-53 + y^-57 + y^-67 + y^-108 + y^-129 + y^-137  mod P
 *
 * so a vector may be replaced by itself added to the six vectors that stand so many places behind it, and the
 * checksum stays. From the front on, that is for each vector: folded(i) = input(i) ^ folded(i − 53) ^ … ^
 * folded(i − 137). What comes to stand in the last 137 vectors is left to zlib. Six terms are a compromise:
 * fewer reach further back, so that more is left to zlib; more are dearer for each vector. The test checks
 * the sum above, and results against zlib.
 *
 *   memory   0        2,192               2,192 + PIECE  64 KiB          128 KiB        192 KiB
 *            │ last 137 │ folded, a piece … │              │ input, a piece │ what is left │ buffers lent …
 *            │  folded  │
 *
 * Input is copied in, piece by piece. What lies in a buffer that was lent here is folded where it lies, which
 * is cheaper by a fifth: of what a store receives that is most (transport.ts reads into one).
 *
 * The loop is WebAssembly, 60 instructions written out below: JavaScript has no vectors. Where a process may
 * not have it (no address space for its guard pages, say) there is no such function, and checksum.ts uses
 * zlib alone.
 */
import { crc32 as zlibCrc32 } from 'node:zlib';

/** How many vectors behind a vector goes to; the last is the furthest. */
export const FOLD_DISTANCES = [53, 57, 67, 108, 129, 137] as const;
/** From here on it pays. */
export const FOLD_FROM_BYTES = 8 * 1024;

const VECTOR = 16;
const REACH = 137;
const REACH_BYTES = REACH * VECTOR;
/** Vectors in one round of the loop: none may go to another of the same round. */
const ROUND = 8;
const ROUND_BYTES = ROUND * VECTOR;
/** What is left to zlib in whole rounds. */
const REST_BYTES = Math.ceil(REACH / ROUND) * ROUND_BYTES;
/** Copied in and folded at once: with its result it stays in the first cache. A multiple of a round. */
const PIECE_BYTES = 16 * 1024;
const PAGE_BYTES = 64 * 1024;
const INPUT = PAGE_BYTES;
const REST = 2 * PAGE_BYTES;
const LENT = 3 * PAGE_BYTES;
/**
 * To be lent: the read buffers of a store with four ports (transport.ts). A page that nobody has touched is
 * no memory yet.
 */
const LENT_BYTES_MAX = 1024 * 1024;
const PAGES = (LENT + LENT_BYTES_MAX) / PAGE_BYTES;

type Fold = (input: number, before: number, output: number, vectors: number) => void;

/**
 * Of WebAssembly, which Node's types leave to those of browsers, what is used here; exports are those of
 * foldModule().
 */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
  ) => { readonly exports: { readonly memory: { readonly buffer: ArrayBuffer }; readonly fold: Fold } };
};

export class Folding {
  readonly #memory: Uint8Array;
  readonly #words: Int32Array;
  readonly #fold: Fold;
  #lentTo = LENT;

  /** Undefined where there is no WebAssembly to be had. */
  static make(): Folding | undefined {
    try {
      const { memory, fold } = new WebAssembly.Instance(new WebAssembly.Module(foldModule())).exports;
      return new Folding(memory.buffer, fold);
    } catch {
      return undefined;
    }
  }

  private constructor(memory: ArrayBuffer, fold: Fold) {
    this.#memory = new Uint8Array(memory);
    this.#words = new Int32Array(memory);
    this.#fold = fold;
  }

  /** A buffer for good, whose bytes are folded where they lie; undefined when no more are left. */
  lend(bytes: number): Uint8Array | undefined {
    const end = this.#lentTo + Math.ceil(bytes / VECTOR) * VECTOR;
    if (end > this.#memory.length) return undefined;
    const lent = new Uint8Array(this.#memory.buffer, this.#lentTo, bytes);
    this.#lentTo = end;
    return lent;
  }

  /** For FOLD_FROM_BYTES and more. */
  crc32(bytes: Uint8Array, seed: number): number {
    const memory = this.#memory;
    const source = bytes.buffer;
    const isHere = source === memory.buffer;
    const at = bytes.byteOffset;
    const folded = Math.floor((bytes.length - REACH_BYTES) / ROUND_BYTES) * ROUND_BYTES;
    memory.fill(0, 0, REACH_BYTES);
    // A checksum begins with ones, or goes on from one that is complete: added to the first four bytes, by
    // way of the vector that goes to the first one and to no other.
    this.#words[0] = ~seed;
    for (let from = 0; from < folded; from += PIECE_BYTES) {
      const count = Math.min(folded - from, PIECE_BYTES);
      if (!isHere) memory.set(new Uint8Array(source, at + from, count), INPUT);
      this.#fold(isHere ? at + from : INPUT, 0, REACH_BYTES, count / VECTOR);
      memory.copyWithin(0, count, count + REACH_BYTES);
    }
    const left = bytes.length - folded;
    memory.set(new Uint8Array(source, at + folded, left), INPUT);
    // These are not folded: none goes to another.
    memory.fill(0, REACH_BYTES, REACH_BYTES + REST_BYTES);
    this.#fold(INPUT, 0, REST, REST_BYTES / VECTOR);
    if (left > REST_BYTES) memory.copyWithin(REST + REST_BYTES, INPUT + REST_BYTES, INPUT + left);
    // All ones as the seed: zlib then begins with zero.
    return zlibCrc32(new Uint8Array(memory.buffer, REST, left), 0xffffffff);
  }
}

// ---- the module: its numbers are those of the WebAssembly specification, "Binary Format" ----

const I32 = 0x7f;
const GET = 0x20;
const SET = 0x21;
const TEE = 0x22;
const LOOP = [0x03, 0x40];
const BRANCH_IF_TO_LOOP = [0x0d, 0];
const END = 0x0b;
const I32_CONST = 0x41;
const I32_ADD = 0x6a;
const XOR = [0xfd, 0x51];
/** Local variables: the parameters of `fold`. */
const [FROM, BEFORE, TO, COUNT] = [0, 1, 2, 3];

/** LEB128; `signed` numbers need a bit more. */
function number(value: number, signed = false): number[] {
  const bytes: number[] = [];
  for (;;) {
    const low = value & 0x7f;
    value >>= 7;
    const isLast =
      signed ? (value === 0 && (low & 0x40) === 0) || (value === -1 && (low & 0x40) !== 0) : value === 0;
    if (isLast) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...number(content.length), ...content];
}

function load(offset: number): number[] {
  return [0xfd, 0x00, 0, ...number(offset)];
}

function store(offset: number): number[] {
  return [0xfd, 0x0b, 0, ...number(offset)];
}

function name(text: string): number[] {
  return [text.length, ...Array.from(text, (letter) => letter.charCodeAt(0))];
}

function addTo(local: number, value: number): number[] {
  return [GET, local, I32_CONST, ...number(value, true), I32_ADD];
}

function foldModule(): Uint8Array {
  const round: number[] = [];
  for (let i = 0; i < ROUND; i++) {
    round.push(GET, TO, GET, FROM, ...load(i * VECTOR));
    for (const distance of FOLD_DISTANCES) {
      round.push(GET, BEFORE, ...load((REACH - distance + i) * VECTOR), ...XOR);
    }
    round.push(...store(i * VECTOR));
  }
  for (const local of [FROM, BEFORE, TO]) round.push(...addTo(local, ROUND_BYTES), SET, local);
  const body = [0, ...LOOP, ...round, ...addTo(COUNT, -ROUND), TEE, COUNT, ...BRANCH_IF_TO_LOOP, END, END];
  return Uint8Array.from([
    0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [1, 0x60, 4, I32, I32, I32, I32, 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, PAGES]),
    ...section(7, [2, ...name('memory'), 2, 0, ...name('fold'), 0, 0]),
    ...section(10, [1, ...number(body.length), ...body]),
  ]);
}
