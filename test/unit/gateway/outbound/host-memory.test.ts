/** Whose TLS has failed is known for an hour, and of so many. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { HostMemory } from '../../../../src/gateway/outbound/host-memory.js';

const HOUR_MS = 3_600_000;

test('a host whose TLS has failed is known by its port for an hour, then TLS is tried again', () => {
  const memory = new HostMemory();
  assert.equal(memory.has('mx', 25, 0), false);
  memory.note('mx', 25, 1000, 'ECONNRESET');
  assert.deepEqual([memory.has('mx', 25, 1000), memory.has('mx', 465, 1000), memory.has('my', 25, 1000)], [true, false, false]);
  assert.deepEqual([memory.has('mx', 25, 999 + HOUR_MS), memory.has('mx', 25, 1000 + HOUR_MS)], [true, false]);
  memory.note('mx', 25, 2 * HOUR_MS, 'ECONNRESET');
  assert.deepEqual(memory.known('mx', 25, 2 * HOUR_MS), { why: 'ECONNRESET', untilMs: 3 * HOUR_MS });
  memory.forget('mx', 25);
  assert.equal(memory.known('mx', 25, 2 * HOUR_MS), undefined);
});

test('of more than ten thousand the oldest is forgotten', () => {
  const memory = new HostMemory();
  for (let i = 0; i < 10_000; i++) memory.note(`mx${i}`, 25, 0, '');
  memory.note('mx0', 25, 1, '');
  memory.note('one more', 25, 2, '');
  assert.deepEqual(['mx0', 'mx1', 'mx2', 'one more'].map((host) => memory.has(host, 25, 3)), [true, false, true, true]);
});
