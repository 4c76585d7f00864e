/**
 * The register is away: mail is accepted, mirrored and delivered as before. What needs a change of a record waits, and goes on
 * by itself when the register, or what was missing, is back (docs/model, rules 2, 3, 6; DESIGN "Ownership").
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { Waiting } from '../../src/recovery/ownership/waiting.js';
import { checkAll } from './checks.js';
import { coreOf } from './inspect.js';
import { LETTERS, holderOf, judged, loaded, oneDeliversAtMost, partitionAt, untilHeldBy } from './pair.js';
import type { WorldOptions } from './world.js';
import { World } from './world.js';

const WAYS = ['refusing', 'silent'] as const;

/** Each partition has its copies, and operators' rules are read. */
function started(options: WorldOptions = {}): World {
  const world = World.started({ stores: 2, ...options });
  world.run(500);
  return world;
}

function untilNoticed(world: World): void {
  world.until(() => coreOf(world).registerAway !== '', 20_000, 'that the register is away');
}

function judgedWorld(world: World): void {
  world.hops.script = () => 'accept';
  world.untilQuiet();
  world.until(() => coreOf(world).registry.partitions.every((partition) => partition.inSyncCount === 2 && partition.memberCount === 2), 60_000, 'two copies of everything');
  world.assertSameContent();
  checkAll(world.letters, world.queueNames);
}

describe('the register is away', () => {
  test('right after a partition was taken: it takes mail, starts nothing before operators’ orders are known, and says so', () => {
    const pair = loaded();
    const { group, name } = pair;
    group.gateway('gw-1').kill();
    const claimed = `${name} CLAIMING -> FENCING`;
    group.gateway('gw-1').start();
    group.until(() => group.log.count(claimed) > 0, 'the claim', 60_000);
    group.register.goAway('silent');
    group.hops.script = () => 'accept';
    group.run(20_000);
    const partition = partitionAt(pair, 'gw-1');
    assert.equal(partition?.holder.mayAccept, true);
    assert.equal(partition.holder.hasRules, false);
    assert.equal(group.letters.delivered, 0);
    const lines = group.gateway('gw-1').core?.holdings.waiting().filter((line) => line.partition === name) ?? [];
    assert.deepEqual(lines.map(({ waitsFor }) => waitsFor), ['register']);
    assert.match(lines[0]?.why ?? '', /what operators have ordered/);
    assert.ok(group.log.count('the register has not said yet what operators have ordered') > 0);
    assert.equal(group.log.count('no lease at every copy'), 0);
    group.register.comeBack();
    judged(pair);
    assert.deepEqual(group.gateway('gw-1').core?.holdings.waiting(), []);
  });

  for (const how of WAYS) {
    test(`mail goes on for as long as it is (${how})`, () => {
      const world = started();
      world.register.goAway(how);
      untilNoticed(world);
      for (let i = 0; i < 20; i++) {
        const letters = world.queueNames.map((name) => world.submit([name]));
        world.until(() => letters.every(({ outcome, arrivals }) => outcome === COMMITTED && arrivals.size === 1), 2000, 'mail as ever');
        world.run(10_000);
      }
      assert.equal(coreOf(world).accepting, true);
      world.register.comeBack();
      judgedWorld(world);
      assert.equal(coreOf(world).holdings.counters.epochs, 0, 'an outage changes no record');
    });

    test(`and a store is lost meanwhile: nothing commits, deliveries end with its lease; all goes on when the register is back (${how})`, () => {
      const world = started({ commitTimeoutMs: 60_000, queues: [{ name: 'q1', ordering: 'strict' }, { name: 'q2' }] });
      world.hops.script = () => 'defer';
      for (const name of world.queueNames) world.submitMany(5, [name]);
      world.run(300);
      world.register.goAway(how);
      untilNoticed(world);
      const open = world.submit(['q1']);
      world.store('b').kill();
      const lostMs = world.scheduler.nowMs;
      world.run(4500);
      assert.equal(open.outcome, 0, 'G1: a dead member stays in the set');
      assert.equal(coreOf(world).accepting, false, 'all partitions are at both stores');
      const waiting = coreOf(world).holdings.waiting();
      assert.ok(waiting.length > 0 && waiting.every(({ waitsFor, why }) => waitsFor === 'register' && why !== ''), 'and it says so');
      // Its lease at the dead store runs on for a while, and nobody else can have taken it over meanwhile.
      const partition = world.mirror('q2');
      assert.equal(partition.holder.mayDeliver(world.scheduler.nowMs), true);
      world.until(() => !partition.holder.mayDeliver(world.scheduler.nowMs), 11_000, 'the end of its lease there');
      assert.ok(world.scheduler.nowMs - lostMs > 8000, 'not long before the store sees it end');
      world.hops.script = () => 'accept';
      const before = world.letters.delivered;
      world.run(10_000);
      assert.equal(world.letters.delivered, before, 'G5: nothing is delivered without a lease at every copy that counts');
      world.register.comeBack();
      world.until(() => world.letters.delivered === 11, 30_000, 'what waited');
      assert.equal(open.outcome, COMMITTED);
      world.store('b').start();
      judgedWorld(world);
    });
  }

  test('what is served is not said to wait: neither a move of copies that can not be recorded, nor what others have', () => {
    const world = started({ stores: 3 });
    world.register.goAway('silent');
    coreOf(world).leaving.drain('store-b');
    world.run(30_000);
    assert.notEqual(coreOf(world).registerAway, '');
    const { partitions } = coreOf(world).registry;
    assert.ok(partitions.some(({ holder }) => holder.waitsFor(world.scheduler.nowMs) === Waiting.REGISTER), 'the move has begun');
    assert.deepEqual(coreOf(world).holdings.waiting(), []);
    assert.equal(coreOf(world).accepting, true);
    const { group } = loaded();
    group.register.goAway('silent');
    group.run(60_000);
    for (const id of ['gw-1', 'gw-2']) assert.deepEqual(group.gateway(id).core?.holdings.waiting(), [], id);
  });

  test('a store is lost meanwhile, and comes back before the register does: mail goes on with it', () => {
    const world = started({ commitTimeoutMs: 60_000 });
    world.hops.script = () => 'defer';
    world.submitMany(5, ['q1']);
    world.run(300);
    world.register.goAway('silent');
    untilNoticed(world);
    world.cut(world.store('b'));
    world.run(3000);
    const open = world.submit(['q2']);
    assert.equal(open.outcome !== COMMITTED, true);
    world.heal(world.store('b'));
    const late = (): boolean => coreOf(world).accepting;
    world.until(late, 10_000, 'that it takes mail');
    const fresh = world.submit(['q1']);
    world.until(() => fresh.outcome === COMMITTED, 5000, 'the commit');
    world.hops.script = () => 'accept';
    world.until(() => fresh.arrivals.size === 1, 5000, 'its delivery');
    assert.ok(coreOf(world).registerAway !== '');
    world.register.comeBack();
    judgedWorld(world);
  });

  test('partitions that the lost store has no copy of go on: a fifo queue takes new mail there, a strict one with mail waits for its own', () => {
    const world = started({ stores: 3, commitTimeoutMs: 60_000, queues: [{ name: 'q1', ordering: 'strict' }, { name: 'q2' }] });
    world.hops.script = () => 'unreachable';
    for (const name of world.queueNames) world.submitMany(5, [name]);
    world.run(300);
    const strict = world.mirror('q1');
    const fifo = world.mirror('q2');
    const shared = strict.rows.map(({ storeId }) => storeId).find((id) => fifo.rows.some(({ storeId }) => storeId === id));
    const lost = world.stores.find(({ id }) => id === shared);
    assert.ok(lost !== undefined, 'of two pairs out of three stores one is in both');
    world.register.goAway('refusing');
    untilNoticed(world);
    lost.kill();
    world.run(4500);
    assert.equal(coreOf(world).accepting, true);
    assert.equal(coreOf(world).admit(world.route('q1')), 'short');
    assert.equal(coreOf(world).admit(world.route('q2')), '');
    const beside = world.submit(['q2']);
    world.until(() => beside.outcome === COMMITTED, 2000, 'a commit in another partition');
    assert.equal(coreOf(world).registry.detours, 1);
    world.until(() => !fifo.holder.mayDeliver(world.scheduler.nowMs), 11_000, 'the end of its lease at the dead store');
    world.hops.script = () => 'accept';
    world.run(20_000);
    assert.equal(beside.arrivals.size, 0, 'G3: not before what is older');
    world.register.comeBack();
    world.until(() => beside.arrivals.size === 1, 30_000, 'its delivery');
    lost.start();
    judgedWorld(world);
    assert.equal(world.letters.delivered, 11);
  });
});

describe('an outage of the register', () => {
  for (const how of WAYS) test(`is no reason to take anything over, however long it is (${how})`, () => {
    const pair = loaded();
    const { group } = pair;
    group.register.goAway(how);
    oneDeliversAtMost(group, 60_000);
    group.register.comeBack();
    oneDeliversAtMost(group, 20_000);
    assert.equal(holderOf(pair), 'gw-1');
    assert.equal(group.gateway('gw-2').core?.holdings.counters.takeovers, 0);
    judged(pair);
  });

  test('keeps a gateway that starts from taking mail, until it is over', () => {
    const pair = loaded();
    const { group } = pair;
    group.register.goAway('silent');
    group.gateway('gw-1').kill();
    group.gateway('gw-1').start();
    group.run(30_000);
    assert.equal(group.gateway('gw-1').core?.accepting ?? false, false);
    assert.equal(group.letters.delivered, 0);
    group.register.comeBack();
    untilHeldBy(pair, 'gw-1');
    assert.equal(partitionAt(pair, 'gw-1')?.length, LETTERS);
    judged(pair);
  });

  test('hides a gateway that dies meanwhile: it is taken over behind it', () => {
    const pair = loaded();
    const { group } = pair;
    group.register.goAway('refusing');
    group.run(2000);
    group.gateway('gw-1').kill();
    group.run(30_000);
    assert.equal(partitionAt(pair, 'gw-2'), undefined);
    group.register.comeBack();
    untilHeldBy(pair, 'gw-2', 2, 30_000);
    group.gateway('gw-1').start();
    judged(pair);
  });
});
