/** What `twinpost store drain` makes of a gateway's answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DrainAnswer } from '../../../src/admin-api/orders.js';
import { drainLines, hasFailed } from '../../../src/cli/store-drain.js';

const DONE: DrainAnswer = { store: 'store-b', draining: true, mirrors: 0, stuck: 0, copies_missing: 0, kept: true };

function linesOf(answer: Partial<DrainAnswer>): string[] {
  return drainLines('gw-1', 'store-b', { ...DONE, ...answer });
}

test('says how far the drain is, what is stuck, and what lacks a copy', () => {
  assert.deepEqual(linesOf({}), ['gw-1: nothing is left at store-b']);
  assert.deepEqual(linesOf({ mirrors: 3 }), ['gw-1: 3 mirrors are still at store-b']);
  assert.deepEqual(linesOf({ mirrors: 1, copies_missing: 1 }), ['gw-1: 1 mirror is still at store-b', 'gw-1: 1 partition has fewer copies than configured']);
  assert.match(linesOf({ mirrors: 3, stuck: 2 })[1] ?? '', /^gw-1: 2 of them CAN'T LEAVE: /);
  assert.match(linesOf({ copies_missing: 4 })[1] ?? '', /^gw-1: 4 partitions have fewer copies than configured: no other store can take them$/);
  assert.deepEqual(linesOf({ draining: false }), ['gw-1: store-b is used']);
});

test('fails when something can not leave or is not kept, and not for what was stuck at a store that is used again', () => {
  const of = (answer: Partial<DrainAnswer>): boolean => hasFailed({ ...DONE, ...answer });
  assert.deepEqual([of({}), of({ mirrors: 3 }), of({ copies_missing: 4 }), of({ draining: false, mirrors: 3, stuck: 3 })], [false, false, false, false]);
  assert.deepEqual([of({ mirrors: 3, stuck: 1 }), of({ kept: false }), of({ draining: false, kept: false })], [true, true, true]);
});

test('says of an order that is not on disk that a restart forgets it, and nothing that sounds as if it were done', () => {
  const line = 'gw-1: the order is in force, but not on disk: a restart of the gateway forgets it; see that its state_dir is set and can be written, and ask again';
  assert.deepEqual(linesOf({ kept: false }), [line]);
  assert.deepEqual(linesOf({ draining: false, kept: false }), [line]);
  const stuck = linesOf({ mirrors: 2, stuck: 2, kept: false });
  assert.equal(stuck[0], line);
  assert.match(stuck[1] ?? '', /CAN'T LEAVE/);
});
