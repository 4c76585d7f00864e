/** Who submits most: of the window that runs and the last whole one, by the party. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BusySenders } from '../../../src/observability/busy-senders.js';

test('names the busiest first, of two windows, and forgets the one before', () => {
  const busy = new BusySenders(0);
  for (let i = 0; i < 90; i++) busy.received('192.0.2.7', 'flood@example.org', '');
  for (let i = 0; i < 10; i++) busy.received('192.0.2.8', `s${String(i)}@example.org`, 'ann');
  const first = busy.answer(30_000);
  assert.deepEqual([first.seconds, first.messages], [30, 100]);
  assert.deepEqual(first.clients, [{ name: '192.0.2.7', messages: 90 }, { name: '192.0.2.8', messages: 10 }]);
  assert.deepEqual([first.senders[0], first.senders.length], [{ name: 'flood@example.org', messages: 90 }, 3]);
  assert.deepEqual(first.users, [{ name: 'ann', messages: 10 }]);
  busy.tick(59_999);
  busy.tick(60_000);
  for (let i = 0; i < 200; i++) busy.received('192.0.2.8', '', '');
  const second = busy.answer(90_000);
  assert.deepEqual([second.seconds, second.messages], [90, 300]);
  assert.deepEqual(second.clients, [{ name: '192.0.2.8', messages: 210 }, { name: '192.0.2.7', messages: 90 }]);
  busy.tick(120_000);
  assert.deepEqual(busy.answer(121_000).clients, [{ name: '192.0.2.8', messages: 200 }]);
  busy.tick(180_000);
  assert.deepEqual(busy.answer(181_000), { seconds: 61, messages: 0, clients: [], senders: [], users: [] });
});
