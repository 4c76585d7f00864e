import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { crc32 as zlibCrc32 } from 'node:zlib';
import { crc32, summedBuffer } from '../../../../src/platform/node/checksum.js';
import { FOLD_DISTANCES, FOLD_FROM_BYTES, Folding } from '../../../../src/platform/node/crc-fold.js';

/** Every Node that Twinpost runs on has it. */
const folding = Folding.make() ?? assert.fail('no WebAssembly with vectors here');
const folded = (bytes: Uint8Array, seed: number): number => folding.crc32(bytes, seed);

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

  test('is the same in a buffer that was lent, wherever the bytes begin, and does not write to it', () => {
    const lent = folding.lend(80_000) ?? assert.fail('a buffer is to be had');
    const all = noise(lent.length, 5);
    lent.set(all);
    for (const length of [FOLD_FROM_BYTES, FOLD_FROM_BYTES + 1, 16_384 + 2192 + 5, 40_000, 66_000]) {
      for (let at = 0; at < 20; at++) {
        assert.equal(folded(lent.subarray(at, at + length), 3), zlibCrc32(all.subarray(at, at + length), 3), `${String(length)} bytes from ${String(at)} on`);
      }
    }
    assert.equal(folded(lent.subarray(10_000), 0), zlibCrc32(all.subarray(10_000), 0), 'up to its end');
    assert.deepEqual(Buffer.from(lent), Buffer.from(all));
  });

  test('is right up to the end of the last buffer that is lent, and none overlaps another', () => {
    const own = Folding.make() ?? assert.fail('no WebAssembly with vectors here');
    const buffers: Uint8Array[] = [];
    for (let lent = own.lend(99_999); lent !== undefined; lent = own.lend(99_999)) buffers.push(lent);
    assert.ok(buffers.length >= 4);
    for (const [i, lent] of buffers.entries()) lent.set(noise(lent.length, i));
    for (const [i, lent] of buffers.entries()) assert.equal(own.crc32(lent, 0), zlibCrc32(noise(lent.length, i), 0));
  });

  test('buffers are to be had when no more can be lent', () => {
    for (let i = 0; i < 10; i++) {
      const buffer = summedBuffer(256 * 1024);
      assert.equal(buffer.length, 256 * 1024);
      buffer.set(noise(buffer.length, i));
      assert.equal(crc32(buffer, 0), zlibCrc32(noise(buffer.length, i), 0));
    }
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
