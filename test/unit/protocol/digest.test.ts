import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Digest } from '../../../src/protocol/digest.js';

type Change = [kind: number, bodyBytes: number, headBytes: number, crc: number, ref: number];

/** The definition in docs/PROTOCOL.md in big integers: slow and plain. */
function defined(changes: readonly Change[]): [number, number] {
  const word = 2n ** 32n;
  const rotl = (x: bigint, n: bigint): bigint => ((x << n) | (x >> (32n - n))) % word;
  let a = 0n;
  let b = 0n;
  for (const [kind, bodyBytes, headBytes, crc, ref] of changes) {
    for (const w of [BigInt(kind), BigInt(bodyBytes), BigInt(headBytes), BigInt(crc), BigInt(ref) % word, BigInt(ref) / word]) {
      a = (rotl(a ^ w, 13n) * 0x9e3779b1n) % word;
      b = (rotl((b + w) % word, 17n) * 0x85ebca77n) % word;
    }
  }
  return [Number(a), Number(b)];
}

function digestOf(changes: readonly Change[]): [number, number] {
  const digest = new Digest();
  for (const change of changes) digest.add(...change);
  return [digest.a, digest.b];
}

test('starts at (0, 0) and has the pinned values', () => {
  const digest = new Digest();
  assert.deepEqual([digest.a, digest.b], [0, 0]);
  // Computed by an independent program from the definition.
  const pinned: [Change, number, number][] = [
    [[1, 1000, 200, 0xdeadbeef, 2 ** 40 + 1], 2834401821, 3092304804],
    [[2, 0, 3, 0, 1], 1469492544, 3610097751],
    [[4, 0, 11, 0xffffffff, 1], 1203460571, 1219932166],
    [[6, 0, 17, 7, 2 ** 53 - 1], 3383704525, 570950221],
    [[1, 0xffffffff, 0xffffffff, 0x80000000, 2 ** 32], 1332213653, 4004248220],
  ];
  for (const [change, a, b] of pinned) {
    digest.add(...change);
    assert.deepEqual([digest.a, digest.b], [a, b]);
  }
});

test('is what the document defines, for all words', () => {
  const u32 = fc.nat(0xffff_ffff);
  const change = fc.tuple(fc.integer({ min: 1, max: 6 }), u32, u32, u32, fc.maxSafeNat());
  fc.assert(fc.property(fc.array(change, { maxLength: 8 }), (changes) => assert.deepEqual(digestOf(changes), defined(changes))), { seed: 1 });
});

test('goes on from where another stood', () => {
  const first: Change = [1, 5, 6, 7, 8];
  const second: Change = [5, 0, 0, 0, 8];
  const [a, b] = digestOf([first]);
  const digest = new Digest();
  digest.reset(a, b);
  assert.ok(digest.equals(a, b));
  assert.ok(!digest.equals(a, b ^ 1) && !digest.equals(a ^ 1, b));
  digest.add(...second);
  assert.deepEqual([digest.a, digest.b], digestOf([first, second]));
});

test('tells the order of two changes', () => {
  assert.notDeepEqual(digestOf([[1, 5, 6, 7, 8], [1, 5, 6, 7, 9]]), digestOf([[1, 5, 6, 7, 9], [1, 5, 6, 7, 8]]));
});
