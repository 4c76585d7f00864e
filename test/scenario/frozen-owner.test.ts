/**
 * An owner that stands still past its lease, or is cut off for so long: who rescues delivers, the owner delivers nothing more
 * from what it had, tells no client anything about it, takes new mail elsewhere, and gets its partitions back (G4, G5; docs/model,
 * rules 6, 12, 13).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HurtingQueues } from '../../src/gateway/queue/hurting-queues.js';
import { MailQueue } from '../../src/gateway/queue/mail-queue.js';
import { COMMITTED, NO_REPLY } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import type { Group } from './group.js';
import { LETTERS, assertOneDelivers, holderOf, judged, loaded, oneDeliversAtMost, partitionAt, untilHeldBy } from './pair.js';
import type { Pair } from './pair.js';

const COUNT = 40;

/** gw-1 has stood still past its lease with all its mail in flight, and gw-2 has begun to deliver it. */
function frozen(): Pair {
  const pair = loaded({}, COUNT, 'hang');
  const { group } = pair;
  group.freeze('gw-1');
  group.hops.script = () => 'accept';
  group.hops.dotMs = 100;
  group.until(() => group.letters.delivered > 5, 'some rescued deliveries');
  assert.ok(group.letters.delivered < COUNT);
  return pair;
}

/** What it had is delivered by whoever holds it, once; it takes mail meanwhile, and in the end has its partitions again. */
function comesBack({ group }: Pair): void {
  const core = group.gateway('gw-1').core;
  group.until(() => core?.holdings.counters.lost === 4, 'that its partitions are given up');
  group.until(() => group.gateway('gw-2').core?.holdings.counters.handedBack === 4, 'the hand-back');
  group.until(() => group.served('gw-1', 'gw-1').length === 4 && core?.accepting === true, 'its partitions');
  group.until(() => group.letters.delivered === COUNT, 'all deliveries');
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
  const tried = group.letters.all.map((letter) => letter.firstAttempt.get('q1') ?? 0);
  assert.deepEqual(tried, [...tried].sort((a, b) => a - b));
  const last = group.submit('gw-1', ['q1']);
  group.until(() => last.arrivals.size === 1, 'mail after the hand-back');
  group.run(3 * group.leaseMs);
  assert.equal(group.served('gw-2', 'gw-1').length, 0, 'they stay there');
  assert.ok(group.served('gw-1', 'gw-1').every((partition) => partition.inSyncCount === 2));
}

/** Whatever of the old connections comes first: none of its dots may follow. */
function thawed(group: Group): void {
  group.thaw('gw-1');
  for (let i = 0; i < 200; i++) {
    group.run(5);
    assertOneDelivers(group);
  }
}

/** Messages that a gateway says are queued with it. */
function queuedAt(group: Group, id: string): number {
  let count = 0;
  for (const { length } of group.gateway(id).core?.registry.queues() ?? []) count += length;
  return count;
}

describe('a gateway that is frozen past its lease', () => {
  test('has its backlog once when all is back, and so has the other one none: nothing is kept of what went', () => {
    const pair = loaded({}, COUNT, 'unreachable');
    const { group } = pair;
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').length === 4 && queuedAt(group, 'gw-2') === COUNT, 'the takeover');
    group.run(2000);
    thawed(group);
    const core = group.gateway('gw-1').core;
    group.until(() => core?.holdings.counters.lost === 4, 'that its partitions are given up');
    assert.equal(queuedAt(group, 'gw-1'), 0, 'what is still to be freed is no mail of its');
    group.until(() => group.served('gw-1', 'gw-1').length === 4 && queuedAt(group, 'gw-1') === COUNT, 'its partitions');
    group.run(2000);
    assert.deepEqual([queuedAt(group, 'gw-1'), queuedAt(group, 'gw-2')], [COUNT, 0]);
    const kept = [...group.hops.lanes].map((lane) => lane instanceof MailQueue && lane.partition.isForgotten);
    assert.deepEqual(kept, [false], 'of one queue alone outbound knows');
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === COUNT, 'all deliveries');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('gives its partitions up when it wakes on its old connections, and gets them back', () => {
    const pair = frozen();
    thawed(pair.group);
    comesBack(pair);
    const { group } = pair;
    const core = group.gateway('gw-1').core;
    assert.ok(core !== undefined);
    // The next hop still answers none of its old attempts: what they were of is no mail of its.
    assert.ok([...core.registry.byHandle].some((queue) => queue?.partition.isForgotten === true && queue.length > 0));
    const hurting = new HurtingQueues({ table: core.entries.table, byHandle: () => core.registry.byHandle, isDown: () => false, nextTryOf: () => null, nowSeconds: () => Math.floor(core.frame.wallMs() / 1000) });
    for (let second = 0; second < 90; second++) {
      group.run(1000);
      hurting.watch(group.scheduler.nowMs);
    }
    assert.deepEqual([queuedAt(group, 'gw-1'), hurting.answer().counts], [0, { refused: 0, deferred: 0, growing: 0, slow: 0 }]);
  });

  test('hands nothing to outbound that was to be looked at when it was given up', () => {
    const { group, name } = loaded({}, COUNT, 'unreachable');
    const core = group.gateway('gw-1').core;
    const partition = core?.registry.partitions.find((one) => one.name === name);
    const [queue] = partition?.queues.values() ?? [];
    assert.ok(core !== undefined && partition !== undefined && queue !== undefined && queue.readyCount > 0);
    core.wake(queue);
    core.forgetPartition(partition);
    // Outbound would say that it was to forget it.
    group.run(10);
    assert.ok(!group.hops.lanes.has(queue));
  });

  test('does so when all its connections are gone, and those to one store come late', () => {
    const pair = frozen();
    const { group } = pair;
    for (const store of group.stores) group.network.cut('gw-1', store.id);
    group.thaw('gw-1');
    group.run(500);
    group.network.heal('gw-1', 'store-b');
    group.run(2000);
    group.network.heal('gw-1', 'store-a');
    group.network.heal('gw-1', 'store-c');
    comesBack(pair);
  });

  test('does so by what the register says, while it reaches no store', () => {
    const pair = frozen();
    const { group } = pair;
    for (const store of group.stores) group.network.cut('gw-1', store.id);
    group.thaw('gw-1');
    group.until(() => group.gateway('gw-1').core?.holdings.counters.lost === 4, 'that they are given up', 5000);
    for (const store of group.stores) group.network.heal('gw-1', store.id);
    comesBack(pair);
  });

  test('does so by what the stores say, while it does not reach the register', () => {
    const pair = frozen();
    const { group } = pair;
    group.gateway('gw-1').register?.cutOff();
    group.thaw('gw-1');
    group.until(() => group.gateway('gw-1').core?.holdings.counters.lost === 4, 'that they are given up', 5000);
    group.gateway('gw-1').register?.mend();
    comesBack(pair);
  });

  test('answers nobody who waited for a 250 while it was frozen: neither 250 nor 4xx', () => {
    const pair = loaded();
    const { group } = pair;
    const open = [group.submit('gw-1', ['q1']), group.submit('gw-1', ['q1', 'q2'])];
    group.freeze('gw-1');
    untilHeldBy(pair, 'gw-2');
    group.thaw('gw-1');
    group.until(() => open.every(({ outcome }) => outcome !== 0), 'their end');
    assert.deepEqual(open.map(({ outcome }) => outcome), [NO_REPLY, NO_REPLY]);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.all.slice(0, LETTERS).every(({ arrivals }) => arrivals.size === 1), 'the deliveries');
  });

  test('right before a dot that waits for the end of the freeze, sends no dot', () => {
    for (const share of [0.2, 0.5, 0.9]) {
      const pair = loaded();
      const { group } = pair;
      group.hops.dotMs = 50;
      group.hops.script = () => 'accept';
      group.until(() => group.letters.all.some(({ attempts }) => (attempts.get('q1') ?? 0) > 1), 'an attempt');
      group.run(50 * share);
      group.freeze('gw-1');
      group.hops.dotMs = 2;
      const inFlight = group.letters.all.filter(({ arrivals }) => arrivals.size > 0);
      for (const letter of inFlight) letter.mayRepeat = true;
      group.until(() => group.letters.all.every(({ arrivals }) => arrivals.size === 1), 'the rescued deliveries', 30_000);
      thawed(group);
      untilHeldBy(pair, 'gw-1');
      checkNoDuplicates(group.letters);
    }
  });
});

describe('an owner that is cut off', () => {
  test('stops when its leases are over; nobody takes its partitions while it has its session, for as long as replace_after', () => {
    const pair = loaded();
    const { group } = pair;
    group.cutOff('gw-1', true);
    oneDeliversAtMost(group, 25_000);
    assert.equal(holderOf(pair), 'gw-1');
    assert.equal(partitionAt(pair, 'gw-1')?.holder.mayDeliver(group.scheduler.nowMs), false);
    untilHeldBy(pair, 'gw-2', 2, 30_000);
    group.cutOff('gw-1', false);
    oneDeliversAtMost(group, 10_000);
    judged(pair);
  });

  test('from the register alone, is left alone: its members tell that it has its leases', () => {
    const pair = loaded();
    const { group } = pair;
    group.gateway('gw-1').register?.cutOff();
    oneDeliversAtMost(group, 60_000);
    assert.equal(holderOf(pair), 'gw-1');
    const fresh = group.submit('gw-1', ['q1']);
    group.run(500);
    assert.equal(fresh.outcome, COMMITTED);
    group.gateway('gw-1').register?.mend();
    judged(pair, LETTERS + 1);
  });

  test('from stores and register, is rescued; what it still had under way reaches nobody', () => {
    const pair = loaded();
    const { group } = pair;
    group.cutOff('gw-1', true);
    group.gateway('gw-1').register?.cutOff();
    const open = group.submit('gw-1', ['q1']);
    untilHeldBy(pair, 'gw-2', 2, 30_000);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.all.slice(0, LETTERS).every(({ arrivals }) => arrivals.size === 1), 'the rescued deliveries');
    group.cutOff('gw-1', false);
    group.gateway('gw-1').register?.mend();
    oneDeliversAtMost(group, 5000);
    assert.equal(open.outcome, NO_REPLY);
    judged(pair);
  });
});
