import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { BUCKETS_KEPT, HashIndex } from '../../../src/base/hash-index.js';
import { Prng } from '../../../src/base/prng.js';

describe('HashIndex', () => {
  test('finds what a map would find', () => {
    const key = fc.oneof(fc.nat(20), fc.maxSafeNat());
    const salt = fc.oneof(fc.nat(3), fc.integer({ min: 0, max: 0xffff_ffff }));
    const expected = fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(9000) });
    const command = fc.record({ add: fc.boolean(), key, salt, expected });
    fc.assert(
      fc.property(fc.array(command, { maxLength: 400, size: 'max' }), fc.integer(), (commands, seed) => {
        const index = new HashIndex(seed);
        const model = new Map<string, number>();
        const free: number[] = [];
        let highest = 0;
        for (const { add, key, salt, expected } of commands) {
          if (expected > 0) index.expect(expected);
          const name = `${String(key)}/${String(salt)}`;
          const row = model.get(name) ?? 0;
          assert.equal(index.find(key, salt), row);
          if (add && row === 0) {
            const taken = free.pop() ?? ++highest;
            index.set(taken, key, salt);
            model.set(name, taken);
            assert.equal(index.keyOf(taken), key);
            assert.equal(index.saltOf(taken), salt);
          } else if (!add && row !== 0) {
            index.remove(row);
            model.delete(name);
            free.push(row);
          }
          assert.equal(index.size, model.size);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('stays right while it grows to 100,000 rows and shrinks to none, twice', () => {
    const index = new HashIndex(42);
    const random = new Prng(3);
    for (let round = 0; round < 2; round++) {
      const count = 100_000;
      const order: number[] = [];
      for (let row = 1; row <= count; row++) {
        index.set(row, row * 8_191, row & 7);
        order.push(row);
      }
      for (let i = count - 1; i > 0; i--) {
        const other = random.below(i + 1);
        const row = order[i] ?? 0;
        order[i] = order[other] ?? 0;
        order[other] = row;
      }
      for (let i = 0; i < count; i++) {
        const row = order[i] ?? 0;
        if (index.find(row * 8_191, row & 7) !== row) assert.fail(`row ${String(row)} is lost`);
        index.remove(row);
        if (index.find(row * 8_191, row & 7) !== 0) assert.fail(`row ${String(row)} is still there`);
        if (bucketsOf(index) > Math.max(BUCKETS_KEPT, 2 * index.size + 2)) assert.fail(`${String(bucketsOf(index))} buckets for ${String(index.size)} rows`);
      }
      assert.equal(index.size, 0);
    }
  });

  test('makes the buckets of what it expects at once, and keeps what it has in its order', () => {
    const index = new HashIndex(11);
    for (let row = 1; row <= 300; row++) index.set(row, row % 100, 5);
    index.expect(20_000);
    const made = bucketsOf(index);
    assert.ok(made >= 20_000);
    for (let key = 0; key < 100; key++) assert.equal(index.find(key, 5), key === 0 ? 300 : 200 + key, 'of equal pairs the one set last');
    for (let row = 301; row <= 20_000; row++) index.set(row, row, 6);
    assert.equal(bucketsOf(index), made, 'nothing splits');
    for (let row = 301; row <= 20_000; row++) if (index.find(row, 6) !== row) assert.fail(`row ${String(row)} is lost`);
    index.expect(1_000_000);
    assert.equal(bucketsOf(index), made, 'a table with rows in it grows in small steps only');
    for (let row = 20_000; row >= 1; row--) index.remove(row);
    assert.ok(bucketsOf(index) <= BUCKETS_KEPT);
  });

  test('spreads keys that count up, that share their low half, and that differ in the salt alone', () => {
    const shapes: readonly ((row: number) => readonly [number, number])[] = [
      (row) => [row, 1],
      (row) => [row * 2 ** 21, 1],
      (row) => [(row % 1024) * 2 ** 32 + 5, Math.floor(row / 1024)],
      (row) => [77, row],
      (row) => [1_760_000_000_000 * 1024 + row * 1024, 3],
    ];
    for (const shape of shapes) {
      const index = new HashIndex(9);
      for (let row = 1; row <= 50_000; row++) index.set(row, ...shape(row));
      assert.ok(longestChain(index, 50_000) <= 16);
    }
  });

  test('refuses to enter a row twice or to take out one that is not in', () => {
    const index = new HashIndex(1);
    index.set(5, 10, 0);
    assert.throws(() => { index.set(5, 11, 0); }, /entered once/);
    assert.throws(() => { index.remove(4); }, /was entered/);
    assert.throws(() => { index.set(0, 1, 1); }, /entered once/);
    index.remove(5);
    assert.throws(() => { index.remove(5); }, /was entered/);
  });
});

function bucketsOf(index: HashIndex): number {
  return (index as unknown as { bucketCount: number }).bucketCount;
}

/** Chains are private; their length shows in the columns, which a test may look at. */
function longestChain(index: HashIndex, rows: number): number {
  const inside = index as unknown as { links: { get(row: number): number }; buckets: { get(bucket: number): number }; bucketCount: number };
  let longest = 0;
  let seen = 0;
  for (let bucket = 0; bucket < inside.bucketCount; bucket++) {
    let length = 0;
    for (let row = inside.buckets.get(bucket); row !== 0; row = inside.links.get(row) - 1) length += 1;
    longest = Math.max(longest, length);
    seen += length;
  }
  assert.equal(seen, rows);
  return longest;
}
