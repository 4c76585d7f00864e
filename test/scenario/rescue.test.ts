/** Queues of a gateway that stays dead, taken over by another of its group and handed back (G2 to G5). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NO_REPLY } from '../../src/gateway/queue/types.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import { Group } from './group.js';
import type { GroupOptions } from './group.js';
import { hasQueue } from './inspect.js';

/** gw-1 holds `count` messages for each queue that nobody has taken yet; then it is killed. */
function widowed(count: number, names: readonly string[], options: GroupOptions = {}): Group {
  const group = Group.started(options);
  group.hops.script = () => 'hang';
  for (let i = 0; i < count; i++) group.submit('gw-1', names);
  group.run(200);
  assert.equal(group.letters.count(COMMITTED), count);
  group.gateway('gw-1').kill();
  group.hops.script = () => 'accept';
  return group;
}

function judged(group: Group, names: readonly string[]): void {
  checkNoLoss(group.letters);
  for (const name of names) checkOrder(group.letters, name);
  checkNoDuplicates(group.letters);
}

describe('rescue', () => {
  test('a dead gateway\'s mail is delivered by another within its lease and 3 seconds, in order, once', () => {
    const group = widowed(50, ['q1', 'q2']);
    const diedMs = group.scheduler.nowMs;
    group.until(() => group.letters.delivered > 0, 'the first rescued delivery');
    assert.ok(group.scheduler.nowMs - diedMs <= group.leaseMs + 3000, `first delivery after ${String(group.scheduler.nowMs - diedMs)} ms`);
    assert.ok(group.scheduler.nowMs - diedMs >= group.leaseMs - 500, 'not before its lease has ended');
    group.until(() => group.letters.delivered === 100, 'all deliveries');
    judged(group, ['q1', 'q2']);
    assert.equal(group.gateway('gw-2').core?.recovery.counters.takeovers, 2);
  });

  test('new mail of the rescuer never goes to the queues it has adopted', () => {
    const group = widowed(5, ['q1']);
    group.hops.script = () => 'defer';
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    const adopted = group.served('gw-2', 'gw-1')[0];
    const own = group.submit('gw-2', ['q1']);
    group.until(() => own.outcome === COMMITTED, 'the commit');
    assert.equal(adopted?.length, 5);
    assert.equal(group.served('gw-2', 'gw-2').length, 1);
  });

  test('a gateway that lives is left alone, however long', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    group.submit('gw-1', ['q1']);
    group.run(10 * group.leaseMs);
    assert.equal(group.served('gw-2', 'gw-1').length, 0);
    assert.equal(group.log.count('the claims of a partition stand'), 0);
  });

  test('an owner that comes back gets its queues back: nothing lost, nothing twice, in order', () => {
    const group = widowed(40, ['q1', 'q2']);
    group.hops.script = ({ messageId }) => (Math.floor(messageId / 64) % 2 === 0 ? 'accept' : 'defer');
    group.until(() => group.letters.delivered > 10, 'some rescued deliveries');
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
    group.until(() => group.served('gw-1', 'gw-1').length === 2, 'the recovery by the owner');
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 80, 'all deliveries');
    judged(group, ['q1', 'q2']);
    assert.equal(group.gateway('gw-2').core?.recovery.counters.handedBack, 2);
    const fresh = group.submit('gw-1', ['q1']);
    group.until(() => fresh.arrivals.size === 1, 'new mail by the owner');
    group.run(3 * group.leaseMs);
    assert.equal(group.served('gw-2', 'gw-1').length, 0, 'and they stay there');
  });

  test('a rescuer that dies in the middle is followed by the next one', () => {
    const group = widowed(60, ['q1'], { gateways: ['gw-1', 'gw-2', 'gw-3'], blockEntries: 2 });
    group.hops.dotMs = 20;
    group.until(() => group.letters.delivered > 5, 'some rescued deliveries');
    const first = group.served('gw-2', 'gw-1').length > 0 ? 'gw-2' : 'gw-3';
    for (const letter of group.letters.all) letter.mayRepeat = true;
    group.gateway(first).kill();
    group.until(() => group.letters.all.every((letter) => letter.arrivals.size === 1), 'all deliveries');
    checkNoLoss(group.letters);
  });

  test('of two rescuers one takes all queues of an owner', () => {
    const queues = Array.from({ length: 16 }, (_, i) => ({ name: `n${String(i)}` }));
    const group = widowed(2, queues.map((queue) => queue.name), { gateways: ['gw-1', 'gw-2', 'gw-3'], queues });
    group.hops.script = () => 'defer';
    group.until(() => group.served('gw-2', 'gw-1').length + group.served('gw-3', 'gw-1').length === 16, 'the takeover');
    assert.equal(group.served('gw-3', 'gw-1').length, 0, 'the next by name');
  });

  test('a queue whose gateway and a store died at once is held by name, and taken over when the store is back', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    for (let i = 0; i < 10; i++) group.submit('gw-1', ['q1']);
    // The rescuer has heard of the queue at both.
    group.run(group.leaseMs);
    const held = (): readonly (readonly [string, string, readonly string[]])[] => (group.gateway('gw-2').core?.recovery.held() ?? []).map(({ owner, state, stores }) => [owner, state, stores] as const);
    assert.deepEqual(held(), []);
    group.gateway('gw-1').kill();
    group.cutOff('gw-2', true, [group.store('b')]);
    group.hops.script = () => 'accept';
    group.run(group.leaseMs + 5000);
    assert.deepEqual(held(), [['gw-1', 'waiting', ['store-b']]]);
    assert.deepEqual(group.log.lines.filter(({ text }) => text.startsWith('mail of this partition is held')).map(({ fields }) => fields['command']), ['twinpost rescue --force --partition p1 --owner gw-1 --missing store-b --reason TEXT']);
    group.cutOff('gw-2', false);
    group.until(() => group.letters.delivered === 10, 'all deliveries');
    judged(group, ['q1']);
    assert.deepEqual(held(), []);
  });

  test('a gateway that reaches no store holds nobody\'s queue', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    for (let i = 0; i < 10; i++) group.submit('gw-1', ['q1']);
    group.run(group.leaseMs);
    group.cutOff('gw-2', true);
    group.run(3 * group.leaseMs);
    assert.deepEqual(group.gateway('gw-2').core?.recovery.held(), []);
  });

  test('a report about rescued mail goes out once: it stands with its message, and goes home with it', () => {
    const group = widowed(3, ['q1']);
    const reportsAt = (id: string): number => group.served(id, 'gw-1').reduce((sum, one) => sum + (one.queues.get('bounce/senders')?.length ?? 0), 0);
    group.hops.script = ({ queueName }) => (queueName === 'q1' ? 'reject' : 'unreachable');
    group.until(() => reportsAt('gw-2') === 3, 'three reports');
    assert.ok(group.served('gw-2', 'gw-2').every((one) => !one.queues.has('bounce/senders')));
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
    group.until(() => reportsAt('gw-1') === 3, 'the reports at the owner');
    group.hops.script = () => 'accept';
    group.until(() => group.hops.reports.length === 3, 'the reports');
    group.run(5000);
    assert.equal(group.hops.reports.length, 3);
  });

  test('a rescuer adopts more than it can hold: what is not pulled yet stays at the stores, in order', () => {
    const limitBytes = 512 * 1024;
    const group = widowed(3000, ['q1'], { memoryBytes: { 'gw-2': limitBytes }, blockEntries: 50 });
    group.hops.dotMs = 0.2;
    group.hops.replyMs = 0.2;
    let most = 0;
    group.until(() => {
      most = Math.max(most, group.gateway('gw-2').core?.memory.usedBytes ?? 0);
      return group.letters.delivered === 3000;
    }, 'all deliveries');
    assert.ok(most <= limitBytes, `at most ${String(most)} bytes`);
    assert.equal(group.log.count('waits at its stores'), 1);
    judged(group, ['q1']);
  });

  test('changes kept for mirrors that come back leave memory to queues that come over, and to new mail', () => {
    const limitBytes = 512 * 1024;
    const group = Group.started({ memoryBytes: { 'gw-2': limitBytes } });
    const own = Array.from({ length: 40 }, () => {
      const letter = group.submit('gw-2', ['q2'], 'alice@senders.example', 20_000);
      group.run(100);
      return letter;
    });
    const core = group.gateway('gw-2').core;
    assert.ok(core !== undefined);
    assert.equal(core.registry.partitions.find((one) => hasQueue(one, 'q2'))?.length, 0, 'all that it took is delivered');
    group.hops.script = () => 'hang';
    const left = group.submit('gw-1', ['q1']);
    group.run(200);
    group.gateway('gw-1').kill();
    group.hops.script = () => 'accept';
    group.until(() => left.arrivals.size === 1, 'the rescued message');
    assert.equal(own.filter(({ outcome }) => outcome === COMMITTED).length, own.length);
    assert.ok(core.mirrors.ring.usedBytes <= limitBytes / 16, `${String(core.mirrors.ring.usedBytes)} bytes are kept`);
    judged(group, ['q1', 'q2']);
  });

  test('with a store missing nothing is taken over until an operator forces it, by name and reason', () => {
    const group = widowed(10, ['q1']);
    group.store('b').kill();
    group.run(4 * group.leaseMs);
    assert.equal(group.letters.delivered, 0);
    const core = group.gateway('gw-2').core;
    assert.deepEqual(core?.recovery.force({ owner: 'gw-1', missing: 'store-b', reason: 'disk burnt', who: 'ann' }).map(({ partition }) => partition), ['p1']);
    group.until(() => group.letters.delivered === 10, 'the forced deliveries');
    assert.equal(group.log.count('taken without a member'), 1);
    judged(group, ['q1']);
  });

  test('without proof that its older process is gone a new one waits for the end of its lease', () => {
    const group = Group.started({ noRescue: ['gw-2'], unproven: ['gw-1'] });
    group.run(group.leaseMs);
    group.hops.script = () => 'hang';
    group.submit('gw-1', ['q1']);
    group.run(200);
    group.gateway('gw-1').kill();
    group.hops.script = () => 'accept';
    group.gateway('gw-1').start();
    const startMs = group.scheduler.nowMs;
    group.until(() => group.letters.delivered === 1, 'the delivery');
    assert.ok(group.scheduler.nowMs - startMs >= group.leaseMs);
  });
});

/** gw-1 has stood still past its lease with `count` messages in flight, and gw-2 has begun to deliver them. */
function frozen(count: number, options: GroupOptions = {}): Group {
  const group = Group.started(options);
  group.hops.script = () => 'hang';
  for (let i = 0; i < count; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  assert.equal(group.letters.count(COMMITTED), count);
  group.freeze('gw-1');
  group.hops.script = () => 'accept';
  group.hops.dotMs = 100;
  group.until(() => group.letters.delivered > 5, 'some rescued deliveries');
  assert.ok(group.letters.delivered < count);
  return group;
}

/** What it had is delivered by whoever holds it, once; it takes mail meanwhile, and in the end has its queue again. */
function comesBack(group: Group, count: number): void {
  const core = group.gateway('gw-1').core;
  group.until(() => group.log.count('it is given up here') === 1, 'that the queue is given up');
  const takes = (): boolean => core?.accepting === true;
  group.until(takes, 'that it takes mail');
  const fresh = group.submit('gw-1', ['q1']);
  group.until(() => fresh.outcome === COMMITTED, 'new mail');
  group.until(() => group.letters.delivered === count + 1, 'all deliveries');
  group.until(() => group.served('gw-2', 'gw-1').length === 0 && group.served('gw-1', 'gw-1').length === 2, 'the hand-back');
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
  // Those of the owner's queue; the new one went beside it.
  const tried = group.letters.all.filter((letter) => letter !== fresh).map((letter) => letter.firstAttempt.get('q1') ?? 0);
  assert.deepEqual(tried, [...tried].sort((a, b) => a - b));
  const last = group.submit('gw-1', ['q1']);
  group.until(() => last.arrivals.size === 1, 'mail after the hand-back');
  group.run(3 * group.leaseMs);
  assert.equal(group.served('gw-2', 'gw-1').length, 0, 'they stay there');
  assert.ok(core?.accepting === true && group.served('gw-1', 'gw-1').every((mirror) => mirror.inSyncCount === 2));
  assert.equal(core.recovery.counters.lost, 1);
}

describe('a gateway that is frozen past its lease', () => {
  test('gives the queue up when it wakes on its old connections, takes new mail, and gets the queue back', () => {
    const group = frozen(40);
    group.thaw('gw-1');
    comesBack(group, 40);
  });

  test('does so when all its connections are gone, and those to one store come late', () => {
    const group = frozen(40);
    for (const store of group.stores) group.network.cut('gw-1', store.id);
    group.thaw('gw-1');
    group.run(500);
    group.network.heal('gw-1', 'store-b');
    group.run(2000);
    group.network.heal('gw-1', 'store-a');
    comesBack(group, 40);
  });

  test('answers nobody who waited for a 250 while it was frozen', () => {
    const group = Group.started();
    group.hops.script = () => 'defer';
    const known = group.submit('gw-1', ['q1']);
    group.until(() => known.outcome === COMMITTED, 'the commit');
    const open = group.submit('gw-1', ['q1']);
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    group.thaw('gw-1');
    group.until(() => open.outcome !== 0, 'its end');
    assert.equal(open.outcome, NO_REPLY);
    group.hops.script = () => 'accept';
    group.until(() => known.arrivals.size === 1, 'the delivery');
  });
});

describe('a claim that came to nothing', () => {
  /** gw-1 stands still past its lease, gw-2 has claimed its queue at store-a and not yet at store-b. */
  function halfClaimed(): Group {
    const group = Group.started();
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    assert.equal(group.letters.count(COMMITTED), 5);
    group.freeze('gw-1');
    group.until(() => holders(group).join() === 'gw-2,gw-1', 'the first claim');
    return group;
  }

  function holders(group: Group): (string | undefined)[] {
    const identity = group.served('gw-1', 'gw-1')[0]?.identity;
    assert.ok(identity !== undefined);
    return group.stores.map(({ store }) => store?.queues.find(identity.ownerId, identity.birth, identity.serial)?.holder);
  }

  /** It goes on with the other mirror, then has both, and never gave the queue up. */
  function isHeldAgain(group: Group): void {
    const [mirror] = group.served('gw-1', 'gw-1');
    const more = group.submit('gw-1', ['q1']);
    group.until(() => more.outcome === COMMITTED, 'new mail');
    group.until(() => mirror?.inSyncCount === 2, 'both mirrors');
    assert.deepEqual(holders(group), ['gw-1', 'gw-1']);
    assert.equal(group.log.count('it is given up here'), 0);
    assert.equal(group.served('gw-1', 'gw-1')[0], mirror);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 6, 'all deliveries');
    judged(group, ['q1']);
    // Whatever tokens its mirrors have by now, the next process has all of them.
    group.hops.script = () => 'hang';
    for (let i = 0; i < 3; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    group.gateway('gw-1').kill();
    group.hops.script = () => 'accept';
    group.gateway('gw-1').start();
    group.until(() => group.letters.delivered === 9, 'the deliveries of the next process');
    judged(group, ['q1']);
  }

  test('and whose gateway has died is claimed over by the owner when that lease has ended', () => {
    const group = halfClaimed();
    group.gateway('gw-2').kill();
    group.thaw('gw-1');
    isHeldAgain(group);
  });

  test('and could not be released is released when its gateway sees it in a list', () => {
    const group = halfClaimed();
    for (const store of group.stores) group.network.cut('gw-2', store.id);
    group.thaw('gw-1');
    group.run(500);
    for (const store of group.stores) group.network.heal('gw-2', store.id);
    isHeldAgain(group);
  });

  test('delivers all of a queue that it can hold a quarter of, though one message in five stays, and takes new mail', () => {
    const group = Group.started({ memoryBytes: { 'gw-2': 8 * 1024 * 1024 }, blockEntries: 50 });
    group.hops.script = () => 'hang';
    const letters = Array.from({ length: 4000 }, (_none, i) => {
      if (i % 50 === 0) group.run(2);
      return group.submit('gw-1', ['q1'], 'alice@senders.example', 4000);
    });
    group.run(500);
    assert.equal(group.letters.count(COMMITTED), letters.length);
    group.gateway('gw-1').kill();
    const staying = new Set(letters.filter((_letter, i) => (i * 37) % 100 < 20).map(({ id }) => id));
    group.hops.script = ({ messageId }) => (staying.has(messageId) ? 'defer' : 'accept');
    group.hops.dotMs = 0.2;
    group.hops.replyMs = 0.2;
    group.until(() => group.letters.delivered === letters.length - staying.size, 'all that can be delivered', 120_000);
    const fresh = group.submit('gw-2', ['q2'], 'alice@senders.example', 4000);
    group.run(500);
    assert.equal(fresh.outcome, COMMITTED);
  });
});
