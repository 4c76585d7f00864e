/** Queues of a gateway that stays dead, taken over by another of its group and handed back (G2 to G5). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rendezvous } from '../../src/gateway/ownership/rendezvous.js';
import type { WaitingPartition } from '../../src/gateway/ownership/holdings.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
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
    assert.equal(group.gateway('gw-2').core?.holdings.counters.takeovers, 4);
  });

  test('is shown as waiting for the lease of the dead one from the loss of its session until the takeover', () => {
    const group = widowed(5, ['q1'], { gateways: ['gw-1', 'gw-2', 'gw-3'], leaseMs: 12_000 });
    const waiting = (id: string): readonly WaitingPartition[] => group.gateway(id).core?.holdings.waiting() ?? [];
    group.until(() => waiting('gw-2').length === 4 && waiting('gw-3').length === 4, 'both rescuers tell', 7000);
    assert.deepEqual([...new Set(waiting('gw-3').map(({ owner, waitsFor, why }) => `${owner} ${waitsFor}: ${why}`))], [
      'gw-1 lease: gw-1 held it last, and may still deliver from it by a lease, until that has run out: then it is taken over',
    ]);
    const end = group.scheduler.nowMs + 4000;
    while (group.scheduler.nowMs < end) {
      group.run(50);
      assert.deepEqual([waiting('gw-2').length, waiting('gw-3').length], [4, 4]);
    }
    group.until(() => group.served('gw-2', 'gw-1').length + group.served('gw-3', 'gw-1').length === 4, 'the takeover');
    group.run(1000);
    assert.deepEqual([waiting('gw-2'), waiting('gw-3')], [[], []]);
  });

  test('new mail of the rescuer never goes to the queues it has adopted', () => {
    const group = widowed(5, ['q1']);
    group.hops.script = () => 'defer';
    group.until(() => group.served('gw-2', 'gw-1').length === 4, 'the takeover');
    group.run(500);
    const adopted = group.served('gw-2', 'gw-1').reduce((sum, one) => sum + one.length, 0);
    for (let i = 0; i < 20; i++) group.submit('gw-2', ['q1']);
    group.until(() => group.letters.count(COMMITTED) === 25, 'the commits');
    assert.deepEqual([adopted, group.served('gw-2', 'gw-1').reduce((sum, one) => sum + one.length, 0)], [5, 5]);
  });

  test('a gateway that lives is left alone, however long', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    group.submit('gw-1', ['q1']);
    group.run(10 * group.leaseMs);
    assert.equal(group.served('gw-2', 'gw-1').length, 0);
    assert.equal(group.log.count('ASKING -> CLAIMING'), 0);
  });

  test('an owner that comes back gets its queues back: nothing lost, nothing twice, in order', () => {
    const group = widowed(40, ['q1', 'q2']);
    group.hops.script = ({ messageId }) => (Math.floor(messageId / 64) % 2 === 0 ? 'accept' : 'defer');
    group.until(() => group.letters.delivered > 10, 'some rescued deliveries');
    group.gateway('gw-1').start();
    group.run(3000);
    const back = group.gateway('gw-1').core ?? assert.fail('it lives');
    const { partitions, holders, inMs } = back.holdings.awaitedBack();
    assert.deepEqual([partitions, holders, inMs > 6000 && inMs <= 7500], [4, ['gw-2'], true], String(inMs));
    assert.deepEqual([back.accepting, back.readiness.refused.map(({ reason }) => reason)], [false, ['rescued', 'rescued', 'rescued']]);
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
    group.until(() => group.served('gw-1', 'gw-1').length === 4, 'the recovery by the owner');
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 80, 'all deliveries');
    judged(group, ['q1', 'q2']);
    assert.equal(group.gateway('gw-2').core?.holdings.counters.handedBack, 4);
    assert.deepEqual([back.holdings.awaitedBack().partitions, back.accepting], [0, true]);
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

  test('of two rescuers each takes what it is first for: the mail of a dead gateway spreads, and nobody takes what another has', () => {
    const group = widowed(2, ['q1'], { gateways: ['gw-1', 'gw-2', 'gw-3'], partitions: 16 });
    group.hops.script = () => 'defer';
    const taken = (): number => group.served('gw-2', 'gw-1').length + group.served('gw-3', 'gw-1').length;
    group.until(() => taken() === 16, 'the takeover');
    group.run(5000);
    assert.equal(taken(), 16);
    assert.ok(group.served('gw-2', 'gw-1').length >= 4 && group.served('gw-3', 'gw-1').length >= 4, `${String(group.served('gw-2', 'gw-1').length)} and ${String(group.served('gw-3', 'gw-1').length)}`);
  });

  for (const shiftMs of [0, 100, 200, 300, 400]) {
    test(`takes what it is first for, though it asked stores ${String(shiftMs)} ms after another one`, () => {
      const group = widowed(2, ['q1'], { gateways: ['gw-1', 'gw-2', 'gw-3'], partitions: 16, leaseMs: 12_000 });
      group.hops.script = () => 'defer';
      group.run(7000);
      group.freeze('gw-2');
      group.run(shiftMs);
      group.thaw('gw-2');
      const namesAt = (id: string): string[] => group.served(id, 'gw-1').map(({ name }) => name);
      group.until(() => namesAt('gw-2').length + namesAt('gw-3').length === 16, 'the takeover');
      for (const [id, other] of [['gw-2', 'gw-3'], ['gw-3', 'gw-2']] as const) {
        assert.deepEqual(namesAt(id).filter((name) => rendezvous(other, name) < rendezvous(id, name)), [], id);
      }
    });
  }

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
