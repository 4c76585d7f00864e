import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { crc32 as zlibCrc32 } from 'node:zlib';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { FOLD_DISTANCES, FOLD_FROM_BYTES, makeFoldedCrc32 } from '../../../../src/platform/node/crc-fold.js';

/** Every Node that Twinpost runs on has it. */
const folded = makeFoldedCrc32() ?? assert.fail('no WebAssembly with vectors here');

/** Bytes that repeat with the seed (mulberry32). */
function noise(count: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(count);
  let state = seed;
  for (let i = 0; i < count; i++) {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    bytes[i] = t >>> 24;
  }
  return bytes;
}

describe('folded checksum', () => {
  test('is that of zlib for every length around a round, a piece and several pieces', () => {
    const all = noise(70_000, 1);
    for (const base of [FOLD_FROM_BYTES, 16_384, 16_384 + 2192, 2 * 16_384 + 2192, 65_536]) {
      for (let length = base - (base === FOLD_FROM_BYTES ? 0 : 140); length <= base + 140; length++) {
        const bytes = all.subarray(3, 3 + length);
        assert.equal(folded(bytes, 0), zlibCrc32(bytes, 0), `length ${String(length)}`);
      }
    }
  });

  test('goes on from a checksum that is complete, and zlib from its', () => {
    const all = noise(60_000, 2);
    const cut = 25_001;
    const first = crc32(all.subarray(0, cut), 0);
    assert.equal(crc32(all.subarray(cut), first), zlibCrc32(all, 0));
    assert.equal(folded(all, 0xdeadbeef), zlibCrc32(all, 0xdeadbeef));
    assert.equal(folded(all, 0xffffffff), zlibCrc32(all, 0xffffffff));
  });

  test('nothing of one input is left in the next', () => {
    const ones = new Uint8Array(100_000).fill(0xff);
    const zeros = new Uint8Array(40_000);
    const expected = zlibCrc32(zeros, 0);
    assert.equal(folded(zeros, 0), expected);
    folded(ones, 0);
    assert.equal(folded(zeros, 0), expected);
  });

  test('shows one bit that is wrong, wherever it is', () => {
    const bytes = noise(40_000, 3);
    const right = crc32(bytes, 0);
    for (let at = 0; at < bytes.length; at += 97) {
      const before = bytes[at] ?? 0;
      bytes[at] = before ^ (1 << (at % 8));
      assert.notEqual(crc32(bytes, 0), right, `byte ${String(at)}`);
      bytes[at] = before;
    }
  });

  test('does not write to its input, and reads a view of a larger buffer where it begins', () => {
    const large = noise(50_000, 4);
    const copy = large.slice();
    const view = large.subarray(1_234, 40_001);
    assert.equal(crc32(view, 7), zlibCrc32(view.slice(), 7));
    assert.deepEqual(large, copy);
  });

  test('its distances keep the checksum: the sum of their powers is one', () => {
    const polynomial = 0xedb88320;
    // A vector further on is 128 steps of one bit; backwards, as a fold goes, that is x^-1.
    const back = (value: number, bits: number): number => {
      for (let i = 0; i < bits; i++) {
        const top = value & 0x80000000;
        value = top === 0 ? value << 1 : ((value ^ polynomial) << 1) | 1;
      }
      return value >>> 0;
    };
    const sum = FOLD_DISTANCES.reduce((total, distance) => (total ^ back(0x80000000, 128 * distance)) >>> 0, 0);
    assert.equal(sum, 0x80000000);
  });
});
