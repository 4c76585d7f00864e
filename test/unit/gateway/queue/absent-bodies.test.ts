/** Bodies that are still at the stores: which are asked for next, and what becomes of those that were (absent-bodies.ts). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ABSENT, AbsentBodies } from '../../../../src/gateway/queue/absent-bodies.js';
import type { BodyRoom } from '../../../../src/gateway/queue/absent-bodies.js';
import { EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import { PositionOrder } from '../../../../src/gateway/mirror/set/position-order.js';
import type { Partition } from '../../../../src/gateway/mirror/set/partition.js';

const PLENTY: BodyRoom = { countMax: 100, bytesMax: 1e6, wantedBytes: 1e6, restBytes: 1e6, mayTakeOne: false, aloneBytes: 0, nowMs: 0 };
const BODY_BYTES = 100;
const UNTIL = 1000;

interface Bench {
  readonly absent: AbsentBodies;
  readonly partition: Partition;
  /** By position, from 10 on in steps of 10. */
  readonly rows: readonly number[];
  readonly table: EntryTable;
}

function benchOf(count: number): Bench {
  const table = new EntryTable(1);
  const absent = new AbsentBodies(table);
  const order = new PositionOrder(table.partitionColumns);
  // Of a partition nothing else is used here.
  const partition = { order } as unknown as Partition;
  absent.begin(partition, UNTIL);
  const rows = Array.from({ length: count }, (_, i) => {
    const row = table.take(i + 1, 1);
    table.position.set(row, (i + 1) * 10);
    table.bodyBytes.set(row, BODY_BYTES);
    table.shared.set(row, ABSENT);
    order.appendRecovered(row, BODY_BYTES);
    absent.onAbsent(partition);
    return row;
  });
  return { absent, partition, rows, table };
}

function rowOf({ rows }: Bench, position: number): number {
  return rows[position / 10 - 1] ?? assert.fail('there is one');
}

describe('bodies that are still at the stores', () => {
  test('come for whom a delivery waits first, then for others, then by position, each once', () => {
    const bench = benchOf(6);
    const { absent, partition } = bench;
    absent.wantLater(partition, rowOf(bench, 30));
    absent.wantSoon(partition, rowOf(bench, 60));
    absent.wantSoon(partition, rowOf(bench, 50));
    assert.deepEqual(absent.next(partition, { ...PLENTY, countMax: 2 }, true), [50, 60]);
    assert.deepEqual(absent.next(partition, { ...PLENTY, countMax: 2 }, true), [10, 30]);
    absent.wantSoon(partition, rowOf(bench, 50));
    assert.deepEqual(absent.next(partition, PLENTY, true), [20, 40]);
    assert.deepEqual(absent.next(partition, PLENTY, true), []);
    assert.equal(absent.askedBytes, 6 * BODY_BYTES);
  });

  test('that a refill waits for come after those, at once, and once', () => {
    const bench = benchOf(4);
    const { absent, partition } = bench;
    absent.wantToRefill(partition, rowOf(bench, 10));
    absent.wantToRefill(partition, rowOf(bench, 20));
    assert.equal(absent.isAwaited, true);
    absent.wantLater(partition, rowOf(bench, 40));
    assert.deepEqual(absent.next(partition, { ...PLENTY, countMax: 1 }, false), [40]);
    absent.wantSoon(partition, rowOf(bench, 20));
    assert.deepEqual(absent.next(partition, { ...PLENTY, countMax: 1 }, false), [20]);
    assert.deepEqual(absent.next(partition, PLENTY, false), [10]);
    absent.wantToRefill(partition, rowOf(bench, 10));
    assert.deepEqual(absent.next(partition, PLENTY, false), [], 'on its way');
  });

  test('that nobody waits for come only when that is said, and as memory allows', () => {
    const bench = benchOf(4);
    const { absent, partition } = bench;
    assert.deepEqual(absent.next(partition, PLENTY, false), []);
    assert.deepEqual(absent.next(partition, { ...PLENTY, restBytes: 2 * BODY_BYTES }, true), [10, 20]);
    absent.wantSoon(partition, rowOf(bench, 40));
    assert.deepEqual(absent.next(partition, { ...PLENTY, wantedBytes: BODY_BYTES - 1 }, false), [], 'no memory');
    assert.deepEqual(absent.next(partition, { ...PLENTY, wantedBytes: 0, mayTakeOne: true }, false), [40], 'one, whatever its size');
  });

  test('that are large come alone when memory has been short for two seconds, and none of them has come', () => {
    const bench = benchOf(4);
    const { absent, partition, table } = bench;
    const large = 200_000;
    for (const at of [20, 40]) {
      table.bodyBytes.set(rowOf(bench, at), large);
      absent.wantSoon(partition, rowOf(bench, at));
    }
    const short = { ...PLENTY, wantedBytes: 0, aloneBytes: large };
    const ask = (room: Partial<BodyRoom>): readonly number[] => absent.next(partition, { ...short, ...room }, false);
    assert.deepEqual(ask({ nowMs: 1000 }), []);
    assert.deepEqual(ask({ nowMs: 2999 }), []);
    assert.deepEqual(ask({ nowMs: 3000, aloneBytes: large - 1 }), [], 'never past the reserve');
    assert.deepEqual(ask({ nowMs: 3000 }), [20], 'and no more than one');
    absent.onHere(partition, rowOf(bench, 20));
    assert.deepEqual(ask({ nowMs: 3000, wantedBytes: large }), [40], 'there is room again');
    absent.askAgain(partition);
    assert.deepEqual(ask({ nowMs: 3001 }), [], 'as long as there was none');
    assert.deepEqual(ask({ nowMs: 4999 }), []);
    assert.deepEqual(ask({ nowMs: 5001 }), [40]);
  });

  test('that have no room hold up no smaller one, however many stand in front, up to a bound', () => {
    const bench = benchOf(1030);
    const { absent, partition, rows, table } = bench;
    const room = { ...PLENTY, countMax: 2, wantedBytes: 3 * BODY_BYTES };
    rows.forEach((row, i) => {
      if (i > 0 && i < 1000) table.bodyBytes.set(row, 10 * BODY_BYTES);
      absent.wantSoon(partition, row);
    });
    assert.deepEqual(absent.next(partition, room, false), [10, 10_010], '999 are passed over');
    assert.deepEqual(absent.next(partition, { ...room, countMax: 1 }, false), [10_020], 'and stay wanted');
    const large = benchOf(1030);
    large.rows.forEach((row, i) => {
      if (i < 1029) large.table.bodyBytes.set(row, 10 * BODY_BYTES);
      large.absent.wantSoon(large.partition, row);
    });
    assert.deepEqual(large.absent.next(large.partition, room, false), [], 'a look costs no more than that');
  });

  test('are asked for again, first, when nobody answers', () => {
    const bench = benchOf(3);
    const { absent, partition } = bench;
    absent.next(partition, { ...PLENTY, countMax: 2 }, true);
    absent.askAgain(partition);
    assert.equal(absent.askedBytes, 0);
    assert.deepEqual(absent.next(partition, { ...PLENTY, countMax: 2 }, false), [10, 20]);
  });

  test('whose entries end, or which came, are not waited for', () => {
    const bench = benchOf(3);
    const { absent, partition } = bench;
    absent.next(partition, { ...PLENTY, countMax: 2 }, true);
    absent.onUnlinked(partition, rowOf(bench, 10), rowOf(bench, 20), true);
    assert.equal(absent.askedAt(partition, 10), 0);
    assert.deepEqual(absent.askedUntil(partition, 20), [rowOf(bench, 20)]);
    absent.onHere(partition, rowOf(bench, 20));
    assert.deepEqual([absent.count, absent.countOf(partition), absent.askedBytes], [1, 1, 0]);
    absent.end(partition);
    assert.deepEqual([absent.count, absent.countOf(partition)], [0, 0]);
  });

  test('the walk by position goes on behind an entry that ends, and begins anew for what went again', () => {
    const bench = benchOf(4);
    const { absent, partition, table } = bench;
    assert.deepEqual(absent.next(partition, { ...PLENTY, countMax: 1 }, true), [10]);
    partition.order.unlink(rowOf(bench, 20), BODY_BYTES);
    absent.onUnlinked(partition, rowOf(bench, 20), rowOf(bench, 30), true);
    assert.deepEqual(absent.next(partition, PLENTY, true), [30, 40]);
    table.shared.set(rowOf(bench, 10), 0);
    absent.onHere(partition, rowOf(bench, 10));
    table.shared.set(rowOf(bench, 10), ABSENT);
    absent.onAbsent(partition);
    assert.deepEqual(absent.next(partition, PLENTY, true), [10]);
  });

  test('only what came from the stores may go there again', () => {
    const bench = benchOf(1);
    const { absent, partition, table } = bench;
    assert.equal(absent.isAtStores(partition, rowOf(bench, 10)), true);
    table.position.set(rowOf(bench, 10), UNTIL + 1);
    assert.equal(absent.isAtStores(partition, rowOf(bench, 10)), false);
  });
});
