/** Whose TLS has failed is known for an hour, and of so many. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TlsMemory } from '../../../../src/gateway/outbound/tls-memory.js';

const HOUR_MS = 3_600_000;

test('a host whose TLS has failed is known by its port for an hour, then TLS is tried again', () => {
  const memory = new TlsMemory();
  assert.equal(memory.hasFailed('mx', 25, 0), false);
  memory.note('mx', 25, 1000);
  assert.deepEqual([memory.hasFailed('mx', 25, 1000), memory.hasFailed('mx', 465, 1000), memory.hasFailed('my', 25, 1000)], [true, false, false]);
  assert.deepEqual([memory.hasFailed('mx', 25, 999 + HOUR_MS), memory.hasFailed('mx', 25, 1000 + HOUR_MS)], [true, false]);
  memory.note('mx', 25, 2 * HOUR_MS);
  assert.equal(memory.hasFailed('mx', 25, 2 * HOUR_MS), true);
});

test('of more than ten thousand the oldest is forgotten', () => {
  const memory = new TlsMemory();
  for (let i = 0; i < 10_000; i++) memory.note(`mx${i}`, 25, 0);
  memory.note('mx0', 25, 1);
  memory.note('one more', 25, 2);
  assert.deepEqual(['mx0', 'mx1', 'mx2', 'one more'].map((host) => memory.hasFailed(host, 25, 3)), [true, false, true, true]);
});
