/**
 * A takeover that meets faults while it reads (PARTIAL, docs/model, rule 14): its process dies, the copy that is read dies, a
 * copy that lags is brought in step.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import type { Group, GroupOptions } from './group.js';
import { holderOf, judged, loaded, oneDeliversAtMost, partitionAt, recordOf, restart, untilHeldBy } from './pair.js';
import type { Pair } from './pair.js';
import type { StoreNode } from './store-node.js';

const COUNT = 400;
const SMALL: GroupOptions = { gateways: ['gw-1', 'gw-2', 'gw-3'], blockEntries: 4 };

/** gw-1 is dead with many messages; another reads them, slowly, from `source`. */
interface Reading {
  readonly taker: string;
  readonly source: StoreNode;
  readonly other: StoreNode;
}

function reading(pair: Pair, ids: readonly string[] = ['gw-2', 'gw-3']): Reading {
  const { group, first, second } = pair;
  for (const id of ids) for (const store of group.stores) group.network.slow(id, store.id, 200);
  group.gateway('gw-1').kill();
  const taken = (): string => ids.find((id) => (partitionAt(pair, id)?.length ?? 0) > 20) ?? '';
  group.until(() => taken() !== '', 'a part of it', 60_000);
  const taker = taken();
  assert.equal(partitionAt(pair, taker)?.isRecovering, true);
  const sourceId = partitionAt(pair, taker)?.set?.source?.storeId;
  const [source, other] = sourceId === first.id ? [first, second] : [second, first];
  return { taker, source, other };
}

function fast(group: Group): void {
  for (const id of ['gw-2', 'gw-3']) for (const store of group.stores) group.network.slow(id, store.id, 0);
}

function deliveredOnce({ group }: Pair): void {
  fast(group);
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === COUNT, 'all deliveries', 120_000);
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
  checkOrder(group.letters, 'q1');
}

describe('a takeover', () => {
  test('whose process dies while it reads: the third goes on', () => {
    const pair = loaded(SMALL, COUNT);
    const { group } = pair;
    const { taker } = reading(pair);
    group.gateway(taker).kill();
    fast(group);
    const next = taker === 'gw-2' ? 'gw-3' : 'gw-2';
    untilHeldBy(pair, next, 2, 60_000);
    assert.equal(partitionAt(pair, next)?.length, COUNT);
    deliveredOnce(pair);
  });

  test('whose process is frozen while it reads: the third goes on, and it gives up what it has when it wakes', () => {
    const pair = loaded(SMALL, COUNT);
    const { group } = pair;
    const { taker } = reading(pair);
    group.freeze(taker);
    fast(group);
    const next = taker === 'gw-2' ? 'gw-3' : 'gw-2';
    untilHeldBy(pair, next, 2, 60_000);
    group.thaw(taker);
    oneDeliversAtMost(group, 3000, ['gw-2', 'gw-3']);
    assert.equal(partitionAt(pair, taker), undefined);
    deliveredOnce(pair);
  });

  test('whose source dies: it reads on from the member that is equal, where it was, and nothing begins anew', () => {
    const pair = loaded(SMALL, COUNT);
    const { group } = pair;
    const { taker, source, other } = reading(pair);
    const before = partitionAt(pair, taker);
    const had = before?.length ?? 0;
    const term = recordOf(pair)?.term;
    source.kill();
    group.until(() => (before?.length ?? 0) > had + 20, 'more of it', 60_000);
    assert.equal(before?.set?.source?.storeId, other.id);
    assert.ok(group.log.count('a partition is read on from another copy') > 0);
    fast(group);
    untilHeldBy(pair, taker, 1);
    assert.deepEqual(recordOf(pair)?.term, term);
    deliveredOnce(pair);
    assert.equal(recordOf(pair)?.members.some(({ storeId }) => storeId === source.id), false);
  });

  test('whose source dies, and the other member is not equal: it begins anew from that one', () => {
    const pair = loaded(SMALL, COUNT);
    const { group, first, second } = pair;
    // The last changes of the owner reach one copy alone: never acknowledged by both, so never committed.
    group.network.holdRequests('gw-1', second.id, true);
    for (let i = 0; i < 3; i++) group.submit('gw-1', ['q1']);
    group.run(300);
    assert.equal(group.letters.count(COMMITTED), COUNT);
    for (const id of ['gw-2', 'gw-3']) group.network.strand(id, second.id, true);
    const { taker, source } = reading(pair);
    assert.equal(source, first);
    const term = recordOf(pair)?.term.number ?? 0;
    source.kill();
    group.run(1000);
    for (const id of ['gw-2', 'gw-3']) group.network.strand(id, second.id, false);
    fast(group);
    untilHeldBy(pair, taker, 2, 60_000);
    assert.ok((recordOf(pair)?.term.number ?? 0) > term, 'another term');
    assert.equal(partitionAt(pair, taker)?.length, COUNT, 'what both had');
    deliveredOnce(pair);
  });

  test('whose source restarts, with nothing: the other is read on, and doubled again', () => {
    const pair = loaded(SMALL, COUNT);
    const { taker, source } = reading(pair);
    restart(source);
    fast(pair.group);
    untilHeldBy(pair, taker, 2, 60_000);
    assert.equal(partitionAt(pair, taker)?.length, COUNT);
    deliveredOnce(pair);
  });

  test('whose path to the source changes while it reads: it goes on, nothing is isolated', () => {
    const pair = loaded(SMALL, COUNT);
    const { group } = pair;
    const { taker, source } = reading(pair);
    const before = partitionAt(pair, taker);
    group.network.cut(taker, source.id, 'A');
    group.until(() => before?.isRecovering === false, 'all of it', 60_000);
    assert.equal(partitionAt(pair, taker), before);
    assert.equal(before?.length, COUNT);
    assert.equal(group.log.count(`${source.bootId} IN_STEP -> NG`), 0);
    group.network.heal(taker, source.id, 'A');
    deliveredOnce(pair);
  });

  test('of what one copy lacks a little: it is given that, from the changes that the other keeps, and not filled', () => {
    const pair = loaded({ ...SMALL, blockEntries: 50 }, COUNT);
    const { group, second } = pair;
    group.network.holdRequests('gw-1', second.id, true);
    for (let i = 0; i < 3; i++) group.submit('gw-1', ['q1']);
    group.run(300);
    group.gateway('gw-1').kill();
    group.network.holdRequests('gw-1', second.id, false);
    const ids = ['gw-2', 'gw-3'];
    group.until(() => ids.includes(holderOf(pair)), 'the takeover', 60_000);
    const taker = holderOf(pair);
    untilHeldBy(pair, taker);
    const mirrors = group.gateway(taker).core?.mirrors;
    assert.ok((mirrors?.counters.tails ?? 0) >= 1);
    assert.equal(mirrors?.counters.refills, 0);
    // Whether what was never committed is delivered is open; once at most.
    group.hops.script = () => 'accept';
    group.until(() => group.letters.all.slice(0, COUNT).every(({ arrivals }) => arrivals.size === 1), 'all deliveries', 60_000);
    group.run(1000);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('waits for a lease that was renewed after its members had said that it was over', () => {
    const pair = loaded();
    const { group, name } = pair;
    group.register.slow(800);
    group.gateway('gw-1').register?.cutOff();
    for (const store of group.stores) group.network.strand('gw-1', store.id, true);
    const seen = (what: string): boolean => group.log.count(`${name} ${what}`) > 0;
    group.until(() => seen('ASKING -> CLAIMING'), 'the claim', 30_000);
    // It is back at its stores before the change is made: it may deliver, and hears nothing of what comes then.
    for (const store of group.stores) group.network.strand('gw-1', store.id, false);
    group.until(() => partitionAt(pair, 'gw-1')?.mayDeliver(group.scheduler.nowMs) === true || seen('CLAIMING -> FENCING'), 'its lease', 5000);
    assert.equal(seen('CLAIMING -> FENCING'), false);
    group.until(() => seen('CLAIMING -> FENCING'), 'the change', 5000);
    for (const store of group.stores) group.network.holdAnswers('gw-1', store.id, true);
    oneDeliversAtMost(group, 8000);
    for (const store of group.stores) group.network.holdAnswers('gw-1', store.id, false);
    group.gateway('gw-1').register?.mend();
    group.register.slow(2);
    oneDeliversAtMost(group, 3000);
    judged(pair);
  });

  test('waits for the end of the leases at the copy that it fenced, however soon the register lets it', () => {
    const pair = loaded();
    const { group } = pair;
    // Dead for the register, alive for its stores: its leases run.
    group.gateway('gw-1').register?.cutOff();
    oneDeliversAtMost(group, 15_000);
    assert.equal(holderOf(pair), 'gw-1');
    for (const store of group.stores) group.network.strand('gw-1', store.id, true);
    group.until(() => holderOf(pair) === 'gw-2', 'the takeover', 20_000);
    oneDeliversAtMost(group, 10_000);
    for (const store of group.stores) group.network.strand('gw-1', store.id, false);
    group.gateway('gw-1').register?.mend();
    oneDeliversAtMost(group, 5000);
    judged(pair);
  });
});
