import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EndingReserve } from '../../../../../src/gateway/queue/reports/ending-reserve.js';
import { EntryState, EntryTable } from '../../../../../src/gateway/queue/entry-table.js';

const KIB = 1024;

test('reports beyond credit share a little; a long one goes alone, and when it has gone the next', () => {
  const table = new EntryTable(1);
  const reserve = new EndingReserve(table);
  assert.deepEqual([reserve.admits(512 * KIB), reserve.admits(512 * KIB + 1)], [true, false]);
  const row = table.take(7, 1);
  reserve.add(7, row, 300 * KIB);
  assert.deepEqual([reserve.admits(1), reserve.admits(300 * KIB)], [false, false]);
  table.transition(row, EntryState.STORING);
  table.transition(row, EntryState.FREE);
  table.release(row);
  const next = table.take(8, 1);
  assert.equal(reserve.admits(20 * KIB), true);
  reserve.add(8, next, 20 * KIB);
  assert.deepEqual([reserve.admits(12 * KIB), reserve.admits(12 * KIB + 1)], [true, false]);
});

test('of what was stored for another a little remains, and counts until it is gone', () => {
  const table = new EntryTable(1);
  const reserve = new EndingReserve(table);
  reserve.add(7, table.take(7, 1), 300 * KIB);
  reserve.lessen(7, 1, 2 * KIB);
  assert.deepEqual([reserve.admits(510 * KIB), reserve.admits(510 * KIB + 1)], [true, false]);
  reserve.lessen(7, 1, 0);
  assert.equal(reserve.admits(512 * KIB), true);
});
