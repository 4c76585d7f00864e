/** What a store remembers of queues that it dropped is bounded: the oldest go first. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DroppedQueues } from '../../../../src/kvs/core/dropped-queues.js';

test('a dropped queue is remembered until 65,536 others have come after it', () => {
  const dropped = new DroppedQueues();
  for (let i = 0; i < 65_536; i++) dropped.add(`1/${String(i)}/gw-1`);
  assert.ok(dropped.has('1/0/gw-1'));
  dropped.add('2/0/gw-1');
  assert.equal(dropped.has('1/0/gw-1'), false);
  assert.ok(dropped.has('1/1/gw-1'));
  assert.ok(dropped.has('2/0/gw-1'));
});
