import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ChunkedFloat64, ChunkedUint32, ChunkedUint8 } from '../../../src/base/chunked.js';
import { Rows } from '../../../src/base/rows.js';

describe('chunked columns', () => {
  for (const [name, make, most] of [
    ['ChunkedUint8', () => new ChunkedUint8(), 255],
    ['ChunkedUint32', () => new ChunkedUint32(), 0xffff_ffff],
    ['ChunkedFloat64', () => new ChunkedFloat64(), Number.MAX_SAFE_INTEGER],
  ] as const) {
    test(`${name} keeps values while it grows over many chunks`, () => {
      const column = make();
      const count = 200_000;
      for (let i = 0; i < count; i++) {
        column.ensure(i + 1);
        assert.equal(column.get(i), 0);
        column.set(i, (i * 7919) % most);
      }
      assert.equal(column.length, count);
      for (let i = 0; i < count; i++) assert.equal(column.get(i), (i * 7919) % most);
      column.set(5, most);
      assert.equal(column.get(5), most);
    });

    test(`${name} stops at an index outside its length and shows zeros after a cut`, () => {
      const column = make();
      assert.throws(() => column.get(0), /column that holds 0/);
      column.ensure(100_001);
      assert.throws(() => column.get(100_001), /column that holds 100001/);
      assert.throws(() => { column.set(100_001, 1); }, /column that holds/);
      assert.throws(() => column.get(-1), /column that holds/);
      for (const i of [0, 49_999, 50_000, 100_000]) column.set(i, 9);
      column.truncate(50_000);
      assert.equal(column.length, 50_000);
      assert.throws(() => column.get(50_000), /column that holds 50000/);
      column.ensure(100_001);
      assert.deepEqual([0, 49_999, 50_000, 100_000].map((i) => column.get(i)), [9, 9, 0, 0]);
      column.truncate(0);
      column.ensure(1);
      assert.equal(column.get(0), 0);
      column.truncate(5);
      assert.equal(column.length, 1);
    });
  }

  test('no step of growth copies or holds more than 64 KiB beyond what is asked for', () => {
    const column = new ChunkedFloat64();
    const inside = column as unknown as { chunks: Float64Array[] };
    column.ensure(3);
    assert.equal(inside.chunks[0]?.byteLength, 128, 'a small table is small');
    for (let length = 1; length < 40_000; length += 37) {
      const before = [...inside.chunks];
      column.ensure(length);
      for (let i = 0; i < before.length; i++) {
        if (inside.chunks[i] !== before[i]) assert.ok((before[i]?.byteLength ?? 0) < 65_536, 'only a small first chunk is replaced');
      }
      const held = inside.chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
      assert.ok(held <= 8 * length + 65_536);
    }
  });
});

describe('Rows', () => {
  test('hands out each row to one owner, freed ones first', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -40, max: 50 }), { maxLength: 100, size: 'max' }), (steps) => {
        const rows = new Rows();
        const owned: number[] = [];
        for (const step of steps) {
          for (let i = 0; i < Math.abs(step); i++) {
            if (step > 0) {
              const highest = rows.highest;
              const row = rows.take();
              assert.ok(row >= 1 && !owned.includes(row));
              if (owned.length < highest) assert.ok(row <= highest, 'a freed row comes before a new one');
              owned.push(row);
            } else if (owned.length > 0) rows.release(owned.splice((i * 13) % owned.length, 1)[0] ?? 0);
          }
          assert.equal(rows.inUse, owned.length);
          assert.ok(rows.highest >= Math.max(0, ...owned));
        }
      }),
      { numRuns: 100 },
    );
  });

  test('starts again at 1 once all rows are free', () => {
    const rows = new Rows();
    for (let i = 0; i < 50_000; i++) rows.take();
    for (let row = 1; row <= 50_000; row++) rows.release(row);
    assert.deepEqual([rows.inUse, rows.highest, rows.take()], [0, 0, 1]);
  });

  test('stops when a row is given back twice', () => {
    const rows = new Rows();
    const row = rows.take();
    rows.take();
    rows.release(row);
    assert.throws(() => { rows.release(row); }, /given back once/);
    assert.throws(() => { rows.release(0); }, /given back once/);
  });
});
