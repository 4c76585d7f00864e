/** Orders that were refused are known for two minutes, and so many at most. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RefusedOrders } from '../../../../src/gateway/queue/refused-orders.js';

test('a refused order is awaited for two minutes after the last refusal', () => {
  const orders = new RefusedOrders();
  assert.equal(orders.isAwaited(1, 0), false);
  orders.note(1, 0);
  orders.note(1, 60_000);
  assert.deepEqual([orders.isAwaited(1, 179_999), orders.isAwaited(1, 180_000)], [true, false]);
});

test('the oldest of more than a thousand is forgotten', () => {
  const orders = new RefusedOrders();
  for (let id = 1; id <= 1000; id++) orders.note(id, id);
  orders.note(1, 1001);
  orders.note(1001, 1002);
  assert.deepEqual([1, 2, 3, 1001].map((id) => orders.isAwaited(id, 1003)), [true, false, true, true]);
});
