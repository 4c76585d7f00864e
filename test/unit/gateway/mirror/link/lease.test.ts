import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { LEASE_DRIFT, Lease } from '../../../../../src/gateway/mirror/link/lease.js';

/** 10 s less 1% less 200 ms. */
const USABLE_MS = 9_700;

function leased(): Lease {
  const lease = new Lease(LEASE_DRIFT);
  lease.renew('boot-1', 1_000, 10_000, 1_005);
  return lease;
}

describe('reckoning of a lease', () => {
  test('there is none before the first grant', () => {
    const lease = new Lease(LEASE_DRIFT);
    assert.equal(lease.endsMs, -Infinity);
    assert.equal(lease.term, 0);
  });

  test('a grant counts from before its request was sent, less the drift margin', () => {
    const lease = leased();
    assert.equal(lease.endsMs, 1_000 + USABLE_MS);
    assert.equal(lease.term, 1);
  });

  test('an answer that comes late renews only from the time its request was sent', () => {
    const lease = leased();
    lease.renew('boot-1', 1_250, 10_000, 9_000);
    assert.equal(lease.endsMs, 1_250 + USABLE_MS);
    assert.equal(lease.term, 1);
  });

  test('an answer that was overtaken by a later one on the other path takes nothing away', () => {
    const lease = leased();
    lease.renew('boot-1', 1_500, 10_000, 1_510);
    lease.renew('boot-1', 1_250, 10_000, 1_600);
    assert.equal(lease.endsMs, 1_500 + USABLE_MS);
  });

  test('a grant at the very end of the old one, or after it, begins a new term', () => {
    const lease = leased();
    lease.renew('boot-1', 10_000, 10_000, 1_000 + USABLE_MS);
    assert.equal(lease.term, 2);
    assert.equal(lease.endsMs, 10_000 + USABLE_MS);
    lease.renew('boot-1', 19_000, 10_000, 10_000 + USABLE_MS - 1);
    assert.equal(lease.term, 2, 'in time: goes on');
  });

  test('a grant that is over when it arrives begins nothing, the next one does', () => {
    const lease = leased();
    lease.renew('boot-1', 2_000, 10_000, 2_000 + USABLE_MS);
    assert.equal(lease.endsMs, 1_000 + USABLE_MS);
    assert.equal(lease.term, 1);
    lease.renew('boot-1', 11_690, 10_000, 11_750);
    assert.equal(lease.term, 2);
  });

  test('another boot begins a new term and takes nothing over from the old one', () => {
    const lease = leased();
    lease.renew('boot-2', 1_200, 5_000, 1_210);
    assert.equal(lease.endsMs, 1_200 + 5_000 - 50 - 200);
    assert.equal(lease.term, 2);
  });

  test('a lease shorter than its margin is none', () => {
    const lease = new Lease(LEASE_DRIFT);
    lease.renew('boot-1', 1_000, 200, 1_000);
    assert.equal(lease.endsMs, -Infinity);
    assert.equal(lease.term, 0);
  });
});
