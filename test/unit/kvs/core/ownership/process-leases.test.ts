/** Which fences an answer to a heartbeat names. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProcessLeases } from '../../../../../src/kvs/core/ownership/process-leases.js';

const LEASE_MS = 10_000;
const term = (number: number): { readonly number: number; readonly nonce: number } => ({ number, nonce: 7 });

test('an answer names the last fence of each partition, until the process has confirmed it', () => {
  const leases = new ProcessLeases(LEASE_MS);
  leases.noteFence('gw-1.4', 'gw-1/0', term(5));
  leases.noteFence('gw-1.4', 'gw-1/1', term(6));
  leases.noteFence('gw-1.4', 'gw-1/0', term(7));
  const { fenceCount, fences } = leases.heartbeat('gw-1.4', 0, 0);
  assert.equal(fenceCount, 3);
  assert.deepEqual(fences, [{ count: 2, partition: 'gw-1/1', term: term(6) }, { count: 3, partition: 'gw-1/0', term: term(7) }]);
  assert.deepEqual(leases.heartbeat('gw-1.4', 2, 1).fences.map(({ count }) => count), [3]);
  assert.deepEqual(leases.heartbeat('gw-1.4', 3, 2), { leaseMs: LEASE_MS, fenceCount: 3, fences: [] });
});
