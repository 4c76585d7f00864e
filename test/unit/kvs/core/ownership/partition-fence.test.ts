/** What a store refuses, and how long leases of older terms hold a taker up (rules 1, 6, 9, 10, 13, 15). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FenceVerdict, PartitionFence } from '../../../../../src/kvs/core/ownership/partition-fence.js';
import { ProcessLeases } from '../../../../../src/kvs/core/ownership/process-leases.js';
import type { PartitionRecord } from '../../../../../src/protocol/partition-record.js';

const OLD = { gatewayId: 'g1', incarnation: 1 };
const NEW = { gatewayId: 'g2', incarnation: 4 };
const LEASE_MS = 10_000;

function record(epoch: number, number: number): PartitionRecord {
  return { epoch, term: { number, nonce: number }, holder: OLD, members: [{ storeId: 's1', bootId: 'b1' }], gaveUp: [], left: [], line: [] };
}

function held(): { leases: ProcessLeases; fence: PartitionFence } {
  const leases = new ProcessLeases(LEASE_MS);
  const fence = new PartitionFence('p', leases);
  assert.equal(fence.raise({ number: 3, nonce: 3 }, OLD, 0), FenceVerdict.ACCEPTED);
  return { leases, fence };
}

describe('fence of a partition', () => {
  test('refuses lower terms, and an equal number with another nonce', () => {
    const { fence } = held();
    assert.equal(fence.raise({ number: 2, nonce: 2 }, NEW, 0), FenceVerdict.LOWER);
    assert.equal(fence.raise({ number: 3, nonce: 9 }, NEW, 0), FenceVerdict.OTHER_NONCE);
    assert.equal(fence.admits({ number: 3, nonce: 9 }), false);
    assert.equal(fence.raise({ number: 3, nonce: 3 }, OLD, 0), FenceVerdict.ACCEPTED);
    assert.equal(fence.raise({ number: 4, nonce: 4 }, NEW, 0), FenceVerdict.ACCEPTED);
    assert.equal(fence.admits({ number: 3, nonce: 3 }), false);
  });

  test('a taker waits for the lease of the older term, which heartbeats do not move any more', () => {
    const { leases, fence } = held();
    leases.heartbeat('g1.1', 0, 1000);
    fence.raise({ number: 4, nonce: 4 }, NEW, 5000);
    leases.heartbeat('g1.1', 0, 6000);
    assert.equal(fence.olderLeaseMs(6000, undefined), 5000);
    assert.equal(fence.olderLeaseMs(6000, OLD), 0, 'proven dead: nobody to wait for');
    assert.equal(fence.olderLeaseMs(11_000, undefined), 0);
  });

  test('leases of two older terms are both waited for', () => {
    const { leases, fence } = held();
    leases.heartbeat('g1.1', 0, 1000);
    leases.heartbeat('g2.4', 0, 4000);
    fence.raise({ number: 4, nonce: 4 }, NEW, 5000);
    fence.raise({ number: 5, nonce: 5 }, { gatewayId: 'g3', incarnation: 1 }, 5000);
    assert.equal(fence.olderLeaseMs(5000, undefined), 9000);
    assert.equal(fence.olderLeaseMs(5000, NEW), 6000);
  });

  test('the process that is fenced hears of it with its next heartbeat, until it confirms', () => {
    const { leases, fence } = held();
    fence.raise({ number: 4, nonce: 4 }, NEW, 5000);
    const answer = leases.heartbeat('g1.1', 0, 6000);
    assert.equal(answer.fenceCount, 1);
    assert.deepEqual(answer.fences, [{ count: 1, partition: 'p', term: { number: 4, nonce: 4 } }]);
    assert.equal(leases.heartbeat('g1.1', 0, 6250).fences.length, 1);
    assert.equal(leases.heartbeat('g1.1', 1, 6500).fences.length, 0);
  });

  test('nobody waits for who handed back, and it counts as holding nothing', () => {
    const { leases, fence } = held();
    leases.heartbeat('g1.1', 0, 1000);
    assert.ok(fence.leaseLeftMs(OLD, 2000) > 0);
    fence.release({ number: 2, nonce: 2 });
    assert.ok(fence.leaseLeftMs(OLD, 2000) > 0, 'a release of another term changes nothing');
    fence.release({ number: 3, nonce: 3 });
    assert.equal(fence.leaseLeftMs(OLD, 2000), 0);
    fence.raise({ number: 4, nonce: 4 }, NEW, 2000);
    assert.equal(fence.olderLeaseMs(2000, undefined), 0);
  });

  test('nor for who handed back and says so only when it is fenced; for others it waits', () => {
    const { leases, fence } = held();
    leases.heartbeat('g1.1', 0, 1000);
    leases.heartbeat('g2.4', 0, 1000);
    fence.raise({ number: 4, nonce: 4 }, NEW, 2000);
    fence.raise({ number: 5, nonce: 5 }, { gatewayId: 'g3', incarnation: 1 }, 3000);
    fence.release({ number: 4, nonce: 9 });
    fence.release({ number: 4, nonce: 4 });
    assert.equal(fence.olderLeaseMs(4000, undefined), 7000);
    fence.release({ number: 3, nonce: 3 });
    assert.equal(fence.olderLeaseMs(4000, undefined), 0);
  });

  test('a term that is not above the epoch told is of a register that was rolled back', () => {
    const { fence } = held();
    assert.equal(fence.tell(record(7, 3)), true);
    assert.equal(fence.tell(record(6, 3)), false);
    assert.equal(fence.raise({ number: 7, nonce: 1 }, NEW, 0), FenceVerdict.STALE);
    assert.equal(fence.raise({ number: 8, nonce: 1 }, NEW, 0), FenceVerdict.ACCEPTED);
  });

  test('of two records of one epoch the first told stands, and the term that it came with: the register was put back', () => {
    const { fence } = held();
    const second = { ...record(4, 4), holder: NEW };
    assert.equal(fence.raise(second.term, NEW, 0), FenceVerdict.ACCEPTED);
    assert.equal(fence.tell(second), true);
    assert.equal(fence.tell(record(4, 3)), false, 'its teller would take the fence for one that was taken back');
    assert.deepEqual([fence.told, fence.term], [second, second.term]);
    assert.equal(fence.tell(second), true, 'a repeat');
    assert.equal(fence.tell(record(5, 3)), true);
  });

  test('a copy founded under a term that never came to be is known by the record that did', () => {
    const { fence } = held();
    assert.equal(fence.isNeverSettled(record(3, 3)), false);
    assert.equal(fence.isNeverSettled({ ...record(3, 2), holder: NEW }), true);
    assert.equal(fence.isNeverSettled({ ...record(2, 2), holder: NEW }), false, 'our term may be the newer one');
  });

  test('an older record does not say that a copy of a later term is out', () => {
    const { fence } = held();
    assert.equal(fence.isOutBy(record(2, 2)), false);
    assert.equal(fence.isOutBy(record(3, 3)), true);
    assert.equal(fence.isOutBy(record(4, 3)), true);
  });

  test('a boot carried on by file keeps terms, and lets nobody pass before its longest lease is over', () => {
    const { fence } = held();
    fence.tell(record(7, 3));
    const leases = new ProcessLeases(5000, 12_000);
    const after = new PartitionFence('p', leases, 100_000 + leases.longestMs);
    after.carryOn(fence.carried());
    assert.equal(after.raise({ number: 2, nonce: 2 }, NEW, 100_000), FenceVerdict.LOWER);
    assert.equal(after.raise({ number: 8, nonce: 8 }, NEW, 100_000), FenceVerdict.ACCEPTED);
    assert.equal(after.olderLeaseMs(100_000, undefined), 12_000);
  });
});
