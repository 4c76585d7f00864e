/** A walk through queues takes a bounded share of a turn, src/gateway/orders/queue-cursor.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QueueCursor } from '../../../../src/gateway/orders/queue-cursor.js';
import { EntryState, EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import { MailQueue } from '../../../../src/gateway/queue/mail-queue.js';
import type { Route } from '../../../../src/gateway/mail-types.js';
import { quietPartition } from '../quiet-partition.js';

const ROUTE: Route = {
  queueName: 'q', queueClass: 'mail', label: 'mail/q', nextHop: { protocol: 'smtp', host: 'h', port: 25 },
  ordering: 'fifo', concurrency: 4, lengthMax: 100_000,
};

test('walks that share a tick share its time', () => {
  const table = new EntryTable(7);
  const queue = new MailQueue({ handle: 1, route: ROUTE, routed: true }, quietPartition(table), table);
  for (let position = 1; position <= 3000; position++) {
    const row = table.take(position, 1);
    table.position.set(row, position);
    queue.append(row, 1);
    table.transition(row, EntryState.HELD);
  }
  let nowMs = 100;
  const clock = { nowMs: () => nowMs, wallMs: () => nowMs };
  const cursors = [1, 2, 3].map(() => new QueueCursor({ byHandle: [undefined, queue] }, table, () => true));
  let visited = 0;
  // A hundred entries are a millisecond.
  const visit = (): number => {
    visited += 1;
    if (visited % 100 === 0) nowMs += 1;
    return 0;
  };
  assert.deepEqual(cursors.map((cursor) => cursor.walk(clock, visit, 100)), [false, false, false]);
  assert.ok(visited <= 400, `${String(visited)} in one tick`);
  for (const cursor of cursors) while (!cursor.walk(clock, visit));
  assert.equal(visited, 9000);
});
