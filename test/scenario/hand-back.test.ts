/** An owner that is back gets its partitions from who rescued them, in full traffic and whatever dies meanwhile (docs/model, rule 13). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NOT_READY } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import type { GroupOptions } from './group.js';
import { Group } from './group.js';
import { assertOneDelivers, holderOf, judged, loaded, oneDeliversAtMost, partitionAt, restart, untilHeldBy } from './pair.js';
import type { Pair } from './pair.js';

const COUNT = 40;

/** gw-1 is dead, gw-2 has its mail and delivers it slowly. */
function rescued(options: GroupOptions = {}): Pair {
  const pair = loaded(options, COUNT);
  pair.group.gateway('gw-1').kill();
  untilHeldBy(pair, 'gw-2');
  pair.group.hops.dotMs = 40;
  pair.group.hops.replyMs = 40;
  return pair;
}

/** Up to the moment at which the rescuer has stopped, and not given the partition away yet. */
function untilHandingBack(pair: Pair): void {
  pair.group.until(() => pair.group.log.count(`${pair.name} HOLDER -> HANDING_BACK`) > 0, 'the hand-back', 60_000);
}

function retire(group: Group, id: string, undo = false): void {
  const rule = { who: 'ann', reason: 'host given back', wallMs: 1 };
  let told: string | undefined;
  group.gateway('gw-2').register?.bridge.setRetired(id, undo ? undefined : rule, (why) => { told = why; });
  group.until(() => told !== undefined, 'the answer of the register');
}

/**
 * The partition was to go and could not: an attempt in it is answered after 40 s, the next ones at once. It was to go to its
 * owner that is back; or on from a gateway that is retired.
 */
function kept(isBack: boolean): { readonly pair: Pick<Pair, 'group' | 'name'>; readonly keptMs: number } {
  const group = Group.started({ stores: 2, partitions: 1 });
  const pair = { group, name: 'gw-1/0' };
  group.hops.script = () => 'defer';
  for (let i = 0; i < 5; i++) for (const queue of ['q1', 'q2']) group.submit('gw-1', [queue]);
  group.run(300);
  if (isBack) {
    group.gateway('gw-1').kill();
    group.until(() => holderOf(pair) === 'gw-2' && partitionAt(pair, 'gw-2')?.isPartial === false, 'the takeover', 60_000);
    group.gateway('gw-1').start();
    group.run(9000);
  } else group.run(15_000);
  group.hops.replyMs = 40_000;
  group.until(() => (partitionAt(pair, holderOf(pair))?.inFlightCount ?? 0) > 0, 'an attempt', 60_000);
  group.run(50);
  group.hops.replyMs = 2;
  if (!isBack) retire(group, 'gw-1');
  group.until(() => group.log.count('an attempt that was begun in it does not end') > 0, 'that it stays', 30_000);
  return { pair, keptMs: group.scheduler.nowMs };
}

describe('the hand-back', () => {
  test('comes when the owner has been up for 10 s, in the middle of its deliveries: nothing twice, nothing lost, in order, never two that may deliver', () => {
    const pair = rescued();
    const { group } = pair;
    group.hops.script = ({ messageId }) => (messageId % 2 === 0 ? 'accept' : 'defer');
    group.gateway('gw-1').start();
    const startMs = group.scheduler.nowMs;
    for (let i = 0; i < 1500 && (holderOf(pair) !== 'gw-1' || i < 1200); i++) {
      if (i % 10 === 0) group.submit('gw-2', ['q1']);
      if (i % 10 === 5 && group.gateway('gw-1').core?.accepting === true) group.submit('gw-1', ['q1']);
      group.run(10);
      assertOneDelivers(group);
      if (holderOf(pair) === 'gw-2') continue;
      assert.ok(group.scheduler.nowMs - startMs >= 10_000, 'not at once');
    }
    group.hops.dotMs = 2;
    group.hops.replyMs = 2;
    group.hops.script = () => 'accept';
    untilHeldBy(pair, 'gw-1');
    group.until(() => group.letters.all.every(({ outcome, arrivals }) => outcome !== COMMITTED || arrivals.size === 1), 'all deliveries');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
    assert.equal(group.gateway('gw-2').core?.holdings.counters.lost, 0, 'given away, not lost');
    assert.equal(group.gateway('gw-2').core?.holdings.counters.handedBack, 4);
  });

  test('waits no longer than seconds for a next hop that does not answer a final dot: other queues of the partition go on', () => {
    const group = Group.started({ stores: 2, partitions: 1 });
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) for (const queue of ['q1', 'q2']) group.submit('gw-1', [queue]);
    group.run(300);
    group.gateway('gw-1').kill();
    let hung = -1;
    group.hops.script = ({ queueName, messageId }) => {
      if (hung < 0 && queueName.startsWith('q1')) hung = messageId;
      return messageId === hung ? 'hang' : 'defer';
    };
    const pair = { group, name: 'gw-1/0' };
    group.until(() => holderOf(pair) === 'gw-2' && partitionAt(pair, 'gw-2')?.isPartial === false, 'the takeover', 60_000);
    group.run(3000);
    group.gateway('gw-1').start();
    group.until(() => group.log.count(`${pair.name} HOLDER -> HANDING_BACK`) > 0, 'the hand-back', 60_000);
    group.hops.script = ({ queueName }) => (queueName.startsWith('q1') ? 'defer' : 'accept');
    group.run(40_000);
    assert.equal(holderOf(pair), 'gw-2');
    assert.equal(group.letters.delivered, 5, 'those of the other queue');
    assert.equal(group.log.count('an attempt that was begun in it does not end'), 1);
    group.hops.script = () => 'accept';
    group.run(90_000);
    assert.ok(group.log.count(`${pair.name} HOLDER -> HANDING_BACK`) > 1, 'tried again');
    assert.equal(group.letters.delivered, 5, 'what it waits for begins nothing more');
    assert.equal(group.log.count('an attempt that was begun in it does not end'), 1, 'said once');
    group.gateway('gw-1').kill();
    group.until(() => group.letters.delivered === 9, 'all but that one, since nobody is to have it any more', 120_000);
  });

  test('that nobody is to have any more: what waited for an attempt that was late goes on here', () => {
    for (const isCut of [true, false]) {
      const { pair, keptMs } = kept(isCut);
      const { group } = pair;
      const id = holderOf(pair);
      group.hops.script = () => 'accept';
      if (isCut) group.cutOff('gw-1', true, group.stores.slice(0, 1));
      else retire(group, 'gw-1', true);
      group.until(() => group.letters.delivered === 10, 'all deliveries, once the attempt has ended', 55_000);
      assert.equal(holderOf(pair), id);
      assert.equal(group.log.count('an attempt that was begun in it does not end'), 1);
      checkNoDuplicates(group.letters);
      if (!isCut) continue;
      group.cutOff('gw-1', false, group.stores.slice(0, 1));
      group.until(() => group.log.count(`${pair.name} HOLDER -> HANDING_BACK`) > 1, 'another try', 120_000);
      assert.ok(group.scheduler.nowMs - keptMs > 55_000, 'no sooner for that');
    }
  });

  test('costs no wait for a lease: the rescuer gives it back first', () => {
    const pair = rescued();
    const { group } = pair;
    group.gateway('gw-1').start();
    untilHandingBack(pair);
    const fromMs = group.scheduler.nowMs;
    group.hops.script = () => 'accept';
    untilHeldBy(pair, 'gw-1');
    assert.ok(group.scheduler.nowMs - fromMs < group.leaseMs / 2, `after ${String(group.scheduler.nowMs - fromMs)} ms`);
    judged(pair, COUNT);
    checkOrder(group.letters, 'q1');
  });

  test('waits for a dot that was sent: what is answered late is not delivered again', () => {
    const pair = rescued();
    const { group } = pair;
    group.hops.replyMs = 3000;
    group.hops.dotMs = 2;
    group.hops.script = () => 'accept';
    group.gateway('gw-1').start();
    untilHandingBack(pair);
    const fromMs = group.scheduler.nowMs;
    group.until(() => holderOf(pair) === 'gw-1', 'the record');
    assert.ok(group.scheduler.nowMs - fromMs > 100, 'some reply was waited for');
    group.hops.replyMs = 2;
    judged(pair, COUNT);
  });

  test('a restart of the owner in the middle of it leaves the partition with one of them, and it comes home', () => {
    for (const waitMs of [0, 5, 20, 60, 200]) {
      const pair = rescued();
      const { group } = pair;
      group.hops.script = () => 'accept';
      group.gateway('gw-1').start();
      untilHandingBack(pair);
      group.run(waitMs);
      for (const letter of group.letters.all) letter.mayRepeat = true;
      group.gateway('gw-1').kill();
      oneDeliversAtMost(group, 500);
      group.gateway('gw-1').start();
      oneDeliversAtMost(group, 3000);
      judged(pair, COUNT);
    }
  });

  test('an owner that is gone again before anything is released is not given to: the rescuer goes on', () => {
    const pair = rescued();
    const { group } = pair;
    // A reply that does not come for long keeps it from being quiet.
    group.hops.replyMs = 20_000;
    group.hops.dotMs = 2;
    group.hops.script = () => 'accept';
    group.gateway('gw-1').start();
    untilHandingBack(pair);
    group.gateway('gw-1').kill();
    group.until(() => group.log.count(`${pair.name} HANDING_BACK -> HOLDER`) === 1, 'that it goes on', 20_000);
    group.hops.replyMs = 2;
    group.until(() => group.letters.delivered === COUNT, 'its deliveries', 60_000);
    assert.equal(holderOf(pair), 'gw-2');
    group.gateway('gw-1').start();
    judged(pair, COUNT);
  });

  test('the rescuer dies in the middle of it: the owner goes on, or takes it over', () => {
    for (const waitMs of [0, 2, 5, 20, 60]) {
      const pair = rescued();
      const { group } = pair;
      group.hops.script = () => 'accept';
      group.gateway('gw-1').start();
      untilHandingBack(pair);
      group.run(waitMs);
      for (const letter of group.letters.all) letter.mayRepeat = true;
      group.gateway('gw-2').kill();
      untilHeldBy(pair, 'gw-1', 2, 60_000);
      group.until(() => group.letters.all.every(({ arrivals }) => arrivals.size === 1), 'all deliveries');
      checkNoLoss(group.letters);
    }
  });

  test('a store dies in the middle of it', () => {
    for (const waitMs of [0, 5, 20]) {
      const pair = rescued();
      const { group, first } = pair;
      group.gateway('gw-1').start();
      untilHandingBack(pair);
      group.run(waitMs);
      restart(first);
      oneDeliversAtMost(group, 3000);
      judged(pair, COUNT);
    }
  });

  test('both stores die in the middle of it, one in silence: who still has the mail in memory keeps it', () => {
    for (const waitMs of [0, 5, 20, 60]) {
      const pair = rescued();
      const { group, first, second } = pair;
      group.hops.script = () => 'unreachable';
      group.gateway('gw-1').start();
      untilHandingBack(pair);
      group.run(waitMs);
      if (holderOf(pair) === 'gw-1') continue;
      group.network.strand('gw-2', second.id, true);
      second.kill();
      first.kill();
      oneDeliversAtMost(group, 1000);
      group.network.strand('gw-2', second.id, false);
      first.start();
      second.start();
      judged(pair, COUNT);
    }
  });

  test('new mail of the owner goes elsewhere meanwhile, a strict queue waits for what is older', () => {
    const pair = loaded({ queues: [{ name: 'q1', ordering: 'strict' }, { name: 'q2' }] }, COUNT);
    const { group } = pair;
    group.gateway('gw-1').kill();
    untilHeldBy(pair, 'gw-2');
    group.gateway('gw-1').start();
    group.run(7000);
    assert.equal(holderOf(pair), 'gw-2');
    const core = group.gateway('gw-1').core;
    // None of its partitions is here: nothing could be committed.
    assert.equal(core?.accepting, false);
    assert.equal(group.submit('gw-1', ['q1']).outcome, NOT_READY);
    untilHeldBy(pair, 'gw-1');
    group.until(() => core.accepting, 'that it takes mail');
    const after = group.submit('gw-1', ['q1']);
    group.until(() => after.outcome === COMMITTED, 'the commit');
    judged(pair, COUNT + 1);
    checkOrder(group.letters, 'q1');
  });
});
