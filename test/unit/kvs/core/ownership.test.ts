/**
 * What a store does by the rules of ownership, operation by operation: FENCE in its three ways, ASK, TELL, RELEASE,
 * HEARTBEAT. The rules of one fence and of leases are tested beside them (ownership/); here is what they do to copies.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Store } from '../../../../src/kvs/core/store.js';
import { nobody } from '../../../../src/protocol/partition-record.js';
import { FENCE_FILL, FENCE_FOUND, FENCE_JOIN } from '../../../../src/protocol/messages/fence.js';
import {
  DECLINED_FULL, DECLINED_LOWER, DECLINED_NO_COPY, DECLINED_OTHER_NONCE, DECLINED_STALE, REFUSAL_FENCED, REFUSAL_UNKNOWN,
} from '../../../../src/protocol/reasons.js';
import {
  BOOT_ID, ORIGIN, accountOf, applyTo, attached, beginFill, change, fenceAs, fingerprint, found, join, newStore, nextSection, pullAll, recordOf,
  storing, termOf,
} from './section-kit.js';

const LEASE_MS = 10_000;
const OTHER = { storeId: 'store-b', bootId: 'ff'.repeat(16) };
const HERE = { storeId: 'store-a', bootId: BOOT_ID };

/** What the store knows of a partition and holds of it. */
function seen(store: Store, partition = 'g1/1'): unknown {
  const { term, holder, told } = store.partitions.peek(partition);
  const copy = store.partitions.find(partition);
  return { term, holder, told, copy: copy === undefined ? undefined : fingerprint(store, copy) };
}

function leaseLeftMs(store: Store, id: string, nowMs: number): number {
  return store.ask({ partition: 'g1/1', holder: accountOf(store, id).holder }, nowMs).leaseLeftMs;
}

describe('FENCE', () => {
  test('JOIN takes the copy that is there as it stands, and refuses the term before from then on', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'one'));
    const before = attached(copy);
    const section = nextSection(copy, [storing(2, 'late')]);
    assert.equal(join(store, 'g1/1', termOf(2), { id: 'g2' }), copy);
    assert.equal(store.check(before), REFUSAL_FENCED);
    assert.deepEqual([copy.number, copy.lastTerm, copy.isComplete], [1, ORIGIN, true]);
    assert.equal(store.check(attached(copy)), 0);
    assert.equal(applyTo(store, copy, section, 'g2'), 0);
    assert.deepEqual(copy.lastTerm, termOf(2), 'the term of its last change');
  });

  test('a repeat says nothing of who made a change: the copy keeps the term under which it did', () => {
    const store = newStore();
    const copy = found(store);
    const section = nextSection(copy, [storing(1, 'one')]);
    assert.equal(applyTo(store, copy, section), 0);
    join(store, 'g1/1', termOf(2), { id: 'g2' });
    assert.equal(applyTo(store, copy, section, 'g2'), 0);
    assert.deepEqual(copy.lastTerm, ORIGIN);
  });

  test('JOIN where no copy is, is declined, and leaves nothing behind', () => {
    const store = newStore();
    assert.equal(fenceAs(store, FENCE_JOIN, 'g1/1', ORIGIN), DECLINED_NO_COPY);
    assert.deepEqual([store.partitions.count, store.partitions.fenceCount], [0, 0]);
  });

  test('JOIN of a term that is refused hears that, not that no copy is here: it is not the loss of its own', () => {
    const store = newStore();
    found(store);
    join(store, 'g1/1', termOf(2), { id: 'g2' });
    store.tell({ partition: 'g1/1', record: recordOf(3, { term: termOf(2), members: [OTHER] }), isOut: true });
    assert.equal(store.partitions.count, 0);
    assert.equal(fenceAs(store, FENCE_JOIN, 'g1/1', ORIGIN), DECLINED_LOWER);
    assert.equal(fenceAs(store, FENCE_JOIN, 'g1/1', termOf(3)), DECLINED_STALE);
    assert.equal(fenceAs(store, FENCE_JOIN, 'g1/1', termOf(4)), DECLINED_NO_COPY);
  });

  for (const [how, name] of [[FENCE_JOIN, 'JOIN'], [FENCE_FOUND, 'FOUND'], [FENCE_FILL, 'FILL']] as const) {
    test(`${name} of a lower term, of another nonce or of what a newer record denies is declined, and changes nothing`, () => {
      const store = newStore();
      const copy = found(store, 1, 'g1', termOf(5));
      change(store, copy, storing(1, 'one'));
      store.tell({ partition: 'g1/1', record: recordOf(7, { term: termOf(5) }), isOut: false });
      const before = seen(store);
      const known = { number: how === FENCE_FOUND ? 7 : 0 };
      assert.equal(fenceAs(store, how, 'g1/1', termOf(4), known), DECLINED_LOWER);
      assert.equal(fenceAs(store, how, 'g1/1', termOf(5, 99), known), DECLINED_OTHER_NONCE);
      assert.equal(fenceAs(store, how, 'g1/1', termOf(6), known), DECLINED_STALE, 'a record of epoch 7 knows of no such term');
      assert.deepEqual(seen(store), before);
      assert.ok(typeof fenceAs(store, how, 'g1/1', termOf(8), known) === 'object');
    });
  }

  test('FOUND makes an empty copy that is complete at number 0', () => {
    const store = newStore();
    const copy = found(store);
    assert.deepEqual([copy.isComplete, copy.number, copy.digestA, copy.digestB, copy.count, copy.lastTerm], [true, 0, 0, 0, 0, ORIGIN]);
    change(store, copy, storing(1, 'one'));
    assert.equal(found(store, 1, 'g1', termOf(2)), copy);
    assert.deepEqual([copy.number, copy.count, pullAll(store, copy)], [0, 0, []], 'its holder begins anew');
  });

  test('FOUND by who does not know the newest record is told of it, and empties nothing', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'one'));
    store.tell({ partition: 'g1/1', record: recordOf(3), isOut: false });
    const before = seen(store);
    const byKnown = (number: number): unknown => fenceAs(store, FENCE_FOUND, 'g1/1', termOf(7), { id: 'g2', number, nowMs: LEASE_MS });
    assert.equal(byKnown(2), DECLINED_STALE, 'it has counted further than the record, and does not know it');
    assert.deepEqual(seen(store), before);
    assert.equal(typeof byKnown(3), 'object', 'all that counted is lost, as it knows');
    assert.equal(copy.count, 0);
  });

  test('FOUND does not take a complete copy from a holder whose lease runs, which may have just recorded it', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'one'));
    store.heartbeat(accountOf(store), 0, 1_000);
    const before = seen(store);
    assert.equal(fenceAs(store, FENCE_FOUND, 'g1/1', termOf(2), { id: 'g2', nowMs: 1_000 + LEASE_MS - 1 }), DECLINED_NO_COPY);
    assert.deepEqual(seen(store), before);
    assert.equal(typeof fenceAs(store, FENCE_FOUND, 'g1/1', termOf(2), { id: 'g2', nowMs: 1_000 + LEASE_MS }), 'object');
    assert.equal(copy.count, 0);
    const filling = beginFill(store, 'g1/2', ORIGIN);
    store.heartbeat(accountOf(store), 0, 1_000);
    assert.equal(fenceAs(store, FENCE_FOUND, 'g1/2', termOf(2), { id: 'g2', nowMs: 1_000 }), filling, 'one that is not complete can be in no record');
  });

  test('FILL empties the copy, which stands incomplete where the message says', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'one'));
    assert.equal(beginFill(store, 'g1/1', termOf(2), { id: 'g2', number: 44, digestA: 7, digestB: 8 }), copy);
    assert.deepEqual([copy.isComplete, copy.number, copy.digestA, copy.digestB, copy.count], [false, 44, 7, 8, 0]);
    assert.deepEqual(copy.lastTerm, termOf(2));
    while (store.hasWork) store.work();
    assert.equal(store.entries.count, 0);
  });

  test('is declined where no room is for another copy, but not for one that is there', () => {
    const store = newStore({ copiesMax: 2 });
    found(store, 1);
    found(store, 2);
    assert.equal(fenceAs(store, FENCE_FILL, 'g1/3', ORIGIN), DECLINED_FULL);
    assert.equal(fenceAs(store, FENCE_FOUND, 'g1/3', ORIGIN), DECLINED_FULL);
    assert.equal(store.partitions.fenceCount, 2, 'a declined term leaves no fence');
    assert.equal(typeof fenceAs(store, FENCE_FILL, 'g1/2', termOf(2)), 'object');
  });

  test('fences without a copy are bounded: the oldest is forgotten, never that of a copy', () => {
    const store = newStore({ copiesMax: 2 });
    found(store, 1);
    for (const number of [2, 3, 4, 5]) store.tell({ partition: `g1/${String(number)}`, record: recordOf(3, { members: [OTHER] }), isOut: true });
    assert.equal(store.partitions.fenceCount, 4);
    assert.equal(store.partitions.peek('g1/2').told, undefined);
    for (const number of [3, 4, 5]) assert.equal(store.partitions.peek(`g1/${String(number)}`).told?.epoch, 3);
    assert.deepEqual(store.partitions.peek('g1/1').term, ORIGIN);
  });

  test('FENCED tells a taker how long leases by the older terms run, but for that of a process that is proven dead', () => {
    const store = newStore();
    const owner = accountOf(store);
    owner.admit(3, new Uint8Array([1]), store.admission);
    const copy = found(store);
    store.heartbeat(owner, 0, 1_000);
    owner.admit(4, new Uint8Array([2]), store.admission);
    const olderLeaseMs = (id: string, provenDead: number, nowMs: number): number => {
      const message = { handle: 1, partition: 'g1/1', term: termOf(2), how: FENCE_JOIN, provenDead, number: 0, digestA: 0, digestB: 0 };
      store.fence(accountOf(store, id), message, nowMs);
      return store.fenced(accountOf(store, id), message, copy, nowMs).olderLeaseMs;
    };
    assert.equal(olderLeaseMs('g1', 0, 2_000.5), LEASE_MS - 1_000);
    assert.equal(olderLeaseMs('g2', 3, 2_000), LEASE_MS - 1_000, 'what another gateway proves is of its own processes');
    assert.equal(olderLeaseMs('g1', 3, 2_000), 0, 'its own older process');
    assert.equal(olderLeaseMs('g2', 0, 2_000), 0, 'who is dead stays so, for whoever asks next');
  });
});

describe('a lease', () => {
  test('begins with a heartbeat, not before, and is asked for by process', () => {
    const store = newStore();
    const account = accountOf(store);
    assert.equal(leaseLeftMs(store, 'g1', 0), 0);
    assert.deepEqual(store.heartbeat(account, 0, 1_000), { leaseMs: LEASE_MS, fenceCount: 0, fences: [] });
    assert.equal(leaseLeftMs(store, 'g1', 1_500.5), LEASE_MS - 500);
    account.admit(9, new Uint8Array([1]), store.admission);
    assert.equal(leaseLeftMs(store, 'g1', 1_500), 0, 'another process of the gateway');
    assert.equal(store.ask({ partition: 'g1/1', holder: { gatewayId: 'g1', incarnation: 0 } }, 2_000).leaseLeftMs, LEASE_MS - 1_000);
  });

  test('of a process that was fenced is told with its next heartbeats, until it says that it has heard', () => {
    const store = newStore();
    found(store, 1);
    found(store, 2);
    const owner = accountOf(store);
    store.heartbeat(owner, 0, 0);
    join(store, 'g1/1', termOf(2), { id: 'g2' });
    join(store, 'g1/2', termOf(3), { id: 'g2' });
    const first = { count: 1, partition: 'g1/1', term: termOf(2) };
    const second = { count: 2, partition: 'g1/2', term: termOf(3) };
    assert.deepEqual(store.heartbeat(owner, 0, 10), { leaseMs: LEASE_MS, fenceCount: 2, fences: [first, second] });
    assert.deepEqual(store.heartbeat(owner, 1, 20).fences, [second]);
    assert.deepEqual(store.heartbeat(owner, 2, 30), { leaseMs: LEASE_MS, fenceCount: 2, fences: [] });
  });

  test('of an ended process takes no room once it is over', () => {
    const store = newStore({ gateways: ['g1'] });
    const account = accountOf(store);
    for (let incarnation = 1; incarnation <= 50; incarnation += 1) {
      account.admit(incarnation, Uint8Array.of(incarnation), store.admission);
      store.heartbeat(account, 0, incarnation);
    }
    store.tick(100);
    assert.equal(store.leases.count, 50);
    store.tick(49 + LEASE_MS);
    assert.equal(store.leases.count, 1);
    assert.equal(leaseLeftMs(store, 'g1', 49 + LEASE_MS), 1);
  });

  test('that was released is out for those who ask, and for who takes over', () => {
    const store = newStore();
    const copy = found(store);
    store.heartbeat(accountOf(store), 0, 0);
    store.release(attached(copy));
    assert.equal(leaseLeftMs(store, 'g1', 1), 0);
    join(store, 'g1/1', termOf(2), { id: 'g2', nowMs: 1 });
    assert.equal(copy.fence.olderLeaseMs(1, undefined), 0);
  });
});

describe('TELL', () => {
  test('keeps the newest record, and says when it knows a newer one', () => {
    const store = newStore();
    found(store);
    assert.equal(store.tell({ partition: 'g1/1', record: recordOf(4), isOut: false }), true);
    assert.equal(store.tell({ partition: 'g1/1', record: recordOf(3), isOut: true }), false);
    assert.equal(store.ask({ partition: 'g1/1', holder: accountOf(store).holder }, 0).told?.epoch, 4);
    assert.equal(store.partitions.count, 1, 'an older record drops nothing');
    assert.equal(store.tell({ partition: 'g2/9', record: recordOf(3), isOut: true }), true, 'also of what it does not hold');
    assert.equal(store.partitions.peek('g2/9').told?.epoch, 3);
  });

  test('that the copy is out drops it; handles of before name nothing, and the fence stays', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'one'));
    const before = attached(copy);
    store.tell({ partition: 'g1/1', record: recordOf(4, { members: [OTHER] }), isOut: true });
    assert.equal(store.check(before), REFUSAL_UNKNOWN);
    assert.deepEqual([store.partitions.count, store.partitions.peek('g1/1').term], [0, ORIGIN]);
    const again = beginFill(store, 'g1/1', ORIGIN);
    assert.notEqual(again, copy);
    assert.equal(store.check(before), REFUSAL_UNKNOWN, 'nor the copy that came after it');
  });

  test('of a record from before the copy was filled again does not drop it', () => {
    const store = newStore();
    const copy = beginFill(store, 'g1/1', termOf(9));
    assert.equal(store.tell({ partition: 'g1/1', record: recordOf(7, { members: [OTHER] }), isOut: true }), true);
    assert.equal(store.partitions.find('g1/1'), copy);
  });

  test('that the copy was given up keeps it for who adopts it, which reads it under its own term', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'stranded'));
    const term = termOf(4);
    const record = recordOf(4, { term, holder: accountOf(store, 'g2').holder, members: [OTHER], gaveUp: [{ ...HERE, epoch: 3 }] });
    assert.equal(store.tell({ partition: 'g1/1', record, isOut: true }), true);
    assert.equal(join(store, 'g1/1', term, { id: 'g2' }), copy);
    assert.equal(store.checkReader(attached(copy, term)), 0);
    assert.deepEqual(pullAll(store, copy).map(({ body }) => body), ['stranded']);
    store.tell({ partition: 'g1/1', record: { ...record, epoch: 5, gaveUp: [], left: [], line: [] }, isOut: true });
    assert.equal(store.partitions.count, 0, 'adopted');
  });

  test('of a record that knows nothing of what was told here keeps the copy, until it names it as given up', () => {
    const store = newStore();
    const copy = found(store);
    const holder = { gatewayId: 'g1', incarnation: 1 };
    store.tell({ partition: 'g1/1', record: recordOf(3, { holder, members: [HERE] }), isOut: false });
    const term = termOf(4);
    const record = recordOf(5, { term, members: [OTHER], line: [{ term: ORIGIN, epoch: 2 }] });
    assert.equal(store.tell({ partition: 'g1/1', record, isOut: true }), false);
    assert.equal(store.partitions.find('g1/1'), copy);
    const gaveUp = [{ ...HERE, epoch: 3 }];
    assert.equal(store.tell({ partition: 'g1/1', record: { ...record, epoch: 6, gaveUp }, isOut: false }), true);
    assert.equal(store.partitions.find('g1/1'), copy);
    assert.equal(store.tell({ partition: 'g1/1', record: { ...record, epoch: 7 }, isOut: true }), true);
    assert.equal(store.partitions.count, 0, 'adopted');
  });

  test('of a record that came after what was told here drops the copy', () => {
    const store = newStore();
    found(store);
    const holder = { gatewayId: 'g1', incarnation: 1 };
    store.tell({ partition: 'g1/1', record: recordOf(3, { holder, members: [HERE] }), isOut: false });
    const record = recordOf(5, { term: termOf(4), members: [OTHER], line: [{ term: ORIGIN, epoch: 3 }] });
    assert.equal(store.tell({ partition: 'g1/1', record, isOut: true }), true);
    assert.equal(store.partitions.count, 0);
  });

  test('that the copy of another boot was given up keeps none of this one', () => {
    const store = newStore();
    found(store);
    const gaveUp = [{ storeId: 'store-a', bootId: 'ff'.repeat(16), epoch: 3 }];
    store.tell({ partition: 'g1/1', record: recordOf(4, { members: [OTHER], gaveUp }), isOut: true });
    assert.equal(store.partitions.count, 0);
  });

  test('of a record under which the term here never came to be drops the copy and takes the term of the record', () => {
    const store = newStore();
    found(store, 1, 'g1', termOf(5));
    const record = recordOf(6, { term: termOf(4), members: [OTHER] });
    store.tell({ partition: 'g1/1', record, isOut: false });
    assert.deepEqual([store.partitions.count, store.partitions.peek('g1/1').term], [0, termOf(4)]);
  });

  test('of a record under which a term never came to be keeps a copy that this term only joined, and none that it changed', () => {
    for (const isChanged of [false, true]) {
      const store = newStore();
      const copy = found(store);
      change(store, copy, storing(1, 'one'));
      join(store, 'g1/1', termOf(2), { id: 'g2' });
      if (isChanged) assert.equal(applyTo(store, copy, nextSection(copy, [storing(2, 'two')]), 'g2'), 0);
      assert.equal(store.tell({ partition: 'g1/1', record: recordOf(3, { members: [HERE] }), isOut: false }), true);
      assert.deepEqual([store.partitions.find('g1/1'), store.partitions.peek('g1/1').term], [isChanged ? undefined : copy, ORIGIN]);
      if (isChanged) continue;
      assert.equal(store.check(attached(copy)), 0);
      assert.deepEqual(pullAll(store, copy).map(({ body }) => body), ['one']);
    }
  });

  test('names this store as a member by id and boot', () => {
    const store = newStore();
    const copy = found(store);
    const holder = { gatewayId: 'g1', incarnation: 1 };
    assert.equal(store.isMember(copy), false, 'nothing was told');
    store.tell({ partition: 'g1/1', record: recordOf(2, { holder, members: [OTHER, HERE] }), isOut: false });
    assert.equal(store.isMember(copy), true);
    store.tell({ partition: 'g1/1', record: recordOf(3, { holder, members: [{ storeId: 'store-a', bootId: 'ff'.repeat(16) }] }), isOut: false });
    assert.equal(store.isMember(copy), false);
    store.tell({ partition: 'g1/1', record: recordOf(4, { holder: nobody('g1/1'), members: [HERE] }), isOut: false });
    assert.equal(store.isMember(copy), false, 'to be dropped');
  });
});

describe('LIST', () => {
  test('names copies that count, and those with mail that nobody serves', () => {
    const store = newStore();
    const copy = found(store);
    const listed = (nowMs: number): readonly string[] => store.list({ after: '' }, nowMs).partitions;
    assert.deepEqual(listed(0), [], 'there is nothing in it');
    change(store, copy, storing(1, 'one'));
    assert.deepEqual(listed(0), ['g1/1'], 'no lease was given');
    store.heartbeat(accountOf(store), 0, 1_000);
    assert.deepEqual(listed(1_000 + LEASE_MS - 1), [], 'it may be recorded at any moment');
    assert.deepEqual(listed(1_000 + LEASE_MS), ['g1/1'], 'filled, and never recorded');
    const holder = { gatewayId: 'g1', incarnation: 1 };
    store.tell({ partition: 'g1/1', record: recordOf(2, { holder, members: [HERE] }), isOut: false });
    assert.deepEqual(listed(1_000), ['g1/1'], 'it counts');
  });
});

describe('ASK', () => {
  test('tells of a complete copy, the lease, and the record that was told, and leaves nothing behind', () => {
    const store = newStore();
    const { holder } = accountOf(store);
    assert.deepEqual(store.ask({ partition: 'g1/1', holder }, 0), { partition: 'g1/1', hasCopy: false, leaseLeftMs: 0, termNumber: 0, told: undefined });
    assert.equal(store.partitions.fenceCount, 0);
    beginFill(store, 'g1/1', ORIGIN);
    assert.equal(store.ask({ partition: 'g1/1', holder }, 0).hasCopy, false, 'with holes it is none');
    found(store);
    store.tell({ partition: 'g1/1', record: recordOf(2), isOut: false });
    store.heartbeat(accountOf(store), 0, 5);
    assert.deepEqual(store.ask({ partition: 'g1/1', holder }, 5), { partition: 'g1/1', hasCopy: true, leaseLeftMs: LEASE_MS, termNumber: store.partitions.peek('g1/1').term.number, told: recordOf(2) });
  });
});

describe('an incarnation', () => {
  test('is fenced when lower, or equal with another nonce', () => {
    const store = newStore();
    const account = accountOf(store);
    const nonce = Buffer.from([1]);
    assert.equal(account.admit(5, nonce, store.admission), true);
    nonce[0] = 9;
    assert.equal(account.admit(4, new Uint8Array([1]), store.admission), false);
    assert.equal(account.admit(5, new Uint8Array([2]), store.admission), false);
    assert.equal(account.admit(5, new Uint8Array([1]), store.admission), true, 'as it was then, whatever is read into these bytes later');
  });

  test('that is newer fences the open connections of the older', () => {
    const store = newStore();
    const account = accountOf(store);
    const said: string[] = [];
    const connection = { incarnation: 5, fence: () => { said.push('fenced'); }, demote: () => { said.push('demoted'); } };
    account.admit(5, new Uint8Array([1]), store.admission);
    account.connections.add(connection);
    assert.equal(account.activate(connection, 3), true);
    const second = { ...connection };
    assert.equal(account.activate(second, 2), false, 'a lower generation stands by');
    assert.equal(account.activate(second, 4), true);
    assert.deepEqual(said, ['demoted']);
    account.admit(6, new Uint8Array([1]), store.admission);
    assert.deepEqual(said, ['demoted', 'fenced']);
  });
});
