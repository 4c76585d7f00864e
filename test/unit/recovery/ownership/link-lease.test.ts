/** The holder's reckoning of its lease never ends after the store's (rule 6). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LinkLease } from '../../../../src/recovery/ownership/link-lease.js';

const DRIFT = { driftShare: 0.01, driftFixedMs: 200 };

test('ends before the store can think so: from the sending on, less the drift', () => {
  const lease = new LinkLease(DRIFT);
  lease.onAnswer('b1', 1000, 10_000, 0);
  assert.equal(lease.endsMs, 1000 + 10_000 - 100 - 200);
  lease.onAnswer('b1', 500, 10_000, 0);
  assert.equal(lease.endsMs, 10_700, 'an older answer takes nothing away');
});

test('an answer that counts a fence which is not processed yet renews nothing until it is', () => {
  const lease = new LinkLease(DRIFT);
  lease.onAnswer('b1', 1000, 10_000, 0);
  lease.onAnswer('b1', 2000, 10_000, 1);
  assert.equal(lease.endsMs, 10_700);
  lease.onFencesProcessed('b1', 1);
  assert.equal(lease.endsMs, 11_700);
});

test('another boot begins anew, with its own count of fences', () => {
  const lease = new LinkLease(DRIFT);
  lease.onFencesProcessed('b1', 5);
  lease.onAnswer('b1', 1000, 10_000, 5);
  lease.onAnswer('b2', 2000, 10_000, 1);
  assert.equal(lease.endsMs, -Infinity);
  assert.equal(lease.fencesProcessedIn('b2'), 0);
});

test('what was processed of a boot that comes back is known: its store tells it no more', () => {
  const lease = new LinkLease(DRIFT);
  lease.onFencesProcessed('b1', 5);
  lease.onAnswer('b2', 1000, 10_000, 1);
  assert.equal(lease.fencesProcessedIn('b1'), 5);
  lease.onAnswer('b1', 2000, 10_000, 5);
  assert.equal(lease.endsMs, 11_700);
  lease.onAnswer('b1', 3000, 10_000, 6);
  assert.equal(lease.endsMs, 11_700, 'what was fenced since is to be heard of');
  for (let boot = 2; boot < 20; boot++) lease.onFencesProcessed(`b${String(boot)}`, boot);
  assert.deepEqual(['b1', 'b12', 'b18'].map((boot) => lease.fencesProcessedIn(boot)), [0, 12, 18]);
});

test('what was processed of one boot is not said to another: it would take it for its own fences', () => {
  const lease = new LinkLease(DRIFT);
  lease.onFencesProcessed('b1', 5);
  assert.equal(lease.fencesProcessedIn('b1'), 5);
  assert.equal(lease.fencesProcessedIn('b2'), 0);
  assert.equal(lease.fencesProcessedIn(''), 0, 'nor before it has said which it is');
});
