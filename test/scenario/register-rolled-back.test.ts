/**
 * A register that shows an older record than was made, or none, and changes that are applied after their sender has gone on
 * or died: noticed, written again, nothing lost, one delivers (docs/model, rules 2 and 15).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NOT_READY } from '../../src/gateway/mail-types.js';
import { LINE_MAX } from '../../src/protocol/fields.js';
import { Waiting } from '../../src/recovery/ownership/waiting.js';
import { RegisterMap } from '../../src/register/core/register-map.js';
import { checkAll, checkNoDuplicates, checkNoLoss } from './checks.js';
import { coreOf } from './inspect.js';
import { LETTERS, holderOf, judged, loaded, oneDeliversAtMost, partitionAt, recordOf, untilHeldBy } from './pair.js';
import type { Pair } from './pair.js';
import type { StoreNode } from './store-node.js';
import { World } from './world.js';

const ROLLED_BACK = 'the register was rolled back';

function traced(pair: Pair, part: string): number {
  return pair.group.log.count(part);
}

describe('the register is rolled back in full traffic', () => {
  for (const [what, isLost] of [['to an older state', false], ['to nothing', true]] as const) {
    test(`${what}: its records are written again, and mail goes on without a pause`, () => {
      const world = World.started({ stores: 3, replaceAfterMs: 2000 });
      world.run(500);
      const before = isLost ? new RegisterMap() : world.register.snapshot();
      // Members change, so that what is restored is wrong.
      world.store('a').kill();
      world.until(() => coreOf(world).registry.partitions.every((one) => one.inSyncCount === 2), 20_000, 'copies elsewhere');
      world.store('a').start();
      world.run(1000);
      for (let i = 0; i < 30; i++) {
        for (const name of world.queueNames) world.submit([name]);
        if (i === 10) world.register.restore(before);
        world.run(200);
      }
      assert.ok(world.log.count(ROLLED_BACK) > 0, 'noticed');
      world.until(() => coreOf(world).registry.partitions.every((one) => {
        const record = world.register.recordOf(one.name);
        return record !== undefined && record.epoch === one.epoch && one.rows.every((row) => record.members.some(({ bootId }) => bootId === row.bootId));
      }), 30_000, 'that its records stand again');
      assert.equal(world.letters.count(COMMITTED), 90, 'mail as ever');
      world.untilQuiet();
      world.assertSameContent();
      checkAll(world.letters, world.queueNames);
      assert.equal(coreOf(world).holdings.counters.losses, 0);
    });
  }
});

describe('the register is rolled back', () => {
  for (const isLost of [false, true]) {
    test(`while the owner lives (${isLost ? 'lost' : 'older'}): a rescuer takes nothing`, () => {
      const pair = loaded();
      const { group, first } = pair;
      const before = isLost ? new RegisterMap() : group.register.snapshot();
      group.gateway('gw-1').core?.leaving.drain(first.id);
      group.until(() => recordOf(pair)?.members.every(({ storeId }) => storeId !== first.id) === true, 'another set');
      group.run(1500);
      const epoch = recordOf(pair)?.epoch ?? 0;
      group.register.restore(before);
      oneDeliversAtMost(group, 20_000);
      assert.ok(traced(pair, ROLLED_BACK) > 0);
      assert.ok((recordOf(pair)?.epoch ?? 0) > epoch, 'above all that was');
      assert.equal(partitionAt(pair, 'gw-2'), undefined);
      assert.equal(partitionAt(pair, 'gw-1')?.length, LETTERS);
      group.gateway('gw-1').core?.leaving.undrain(first.id);
      judged(pair);
    });

    test(`and the owner is dead (${isLost ? 'lost' : 'older'}): who goes on goes by what stores were told`, () => {
      const pair = loaded();
      const { group, first } = pair;
      const before = isLost ? new RegisterMap() : group.register.snapshot();
      group.gateway('gw-1').core?.leaving.drain(first.id);
      group.until(() => recordOf(pair)?.members.every(({ storeId }) => storeId !== first.id) === true, 'another set');
      // What only the newer set has.
      const late = group.submit('gw-1', ['q1']);
      group.run(500);
      assert.equal(late.outcome, COMMITTED);
      group.run(2000);
      group.gateway('gw-1').kill();
      group.register.restore(before);
      group.run(1000);
      if (isLost) group.gateway('gw-1').start();
      untilHeldBy(pair, isLost ? 'gw-1' : 'gw-2', 2, 120_000);
      assert.equal(partitionAt(pair, isLost ? 'gw-1' : 'gw-2')?.length, LETTERS + 1);
      if (!isLost) group.gateway('gw-1').start();
      judged(pair, LETTERS + 1);
    });
  }

  test('and a member is dead: what can not be committed before every store has answered is refused at once', () => {
    const pair = loaded({ partitions: 1 });
    const { group, second } = pair;
    group.register.goAway('silent');
    second.kill();
    group.run(2 * group.leaseMs);
    group.register.restore(new RegisterMap());
    group.register.comeBack();
    const holder = partitionAt(pair, 'gw-1')?.holder ?? assert.fail('it is held');
    group.until(() => traced(pair, ROLLED_BACK) > 0 && holder.waitsFor(group.scheduler.nowMs) === Waiting.STORES, 'that it waits');
    assert.equal(group.submit('gw-1', ['q1']).outcome, NOT_READY);
    second.start();
    group.until(() => holder.waitsFor(group.scheduler.nowMs) === Waiting.NOTHING, 'that it goes on');
    group.run(1000);
    const fresh = group.submit('gw-1', ['q1']);
    group.until(() => fresh.outcome === COMMITTED, 'its 250');
  });

  test('to before a takeover, both processes alive: the deposed one takes nothing back by it', () => {
    const pair = loaded();
    const { group } = pair;
    const before = group.register.snapshot();
    group.freeze('gw-1');
    untilHeldBy(pair, 'gw-2');
    group.run(2000);
    group.register.restore(before);
    group.thaw('gw-1');
    oneDeliversAtMost(group, 8000);
    assert.equal(partitionAt(pair, 'gw-1'), undefined, 'fenced at its members, it has dropped what it had');
    judged(pair);
  });
});

/**
 * Five messages are in a record that the register has forgotten, which names the third store. Who had them is dead. A
 * rescuer that knows nothing of them starts; it goes by the older record unless it can hear the third store.
 */
function forgotten(isHeard: boolean): Pair & { readonly third: StoreNode } {
  const pair = loaded();
  const { group, first, second, third } = pair;
  assert.ok(third !== undefined);
  const before = group.register.snapshot();
  group.cutOff('gw-1', true, [first]);
  const isReplaced = (): boolean => recordOf(pair)?.members.length === 2
    && recordOf(pair)?.members.some(({ storeId }) => storeId === third.id) === true;
  group.until(isReplaced, 'another set', 120_000);
  group.run(3000);
  for (let i = 0; i < LETTERS; i++) group.submit('gw-1', ['q1']);
  group.run(1000);
  assert.equal(group.letters.count(COMMITTED), 2 * LETTERS);
  if (!isHeard) group.cutOff('gw-2', true, [third]);
  group.run(3000);
  group.gateway('gw-1').kill();
  second.kill();
  group.gateway('gw-2').kill();
  group.register.restore(before);
  group.run(6000);
  group.cutOff('gw-1', false, [first]);
  group.gateway('gw-2').start();
  second.start();
  untilHeldBy(pair, 'gw-2', 2);
  return { ...pair, third };
}

describe('a copy that the register had forgotten', () => {
  const back = 'a copy that was given up is back';

  test('and a rescuer can hear: it is heard before anything is taken, and read', () => {
    const pair = forgotten(true);
    assert.ok(traced(pair, `READING: from ${pair.third.id}`) > 0);
    assert.equal(partitionAt(pair, 'gw-2')?.length, 2 * LETTERS);
    assert.equal(traced(pair, back), 0);
  });

  for (const [what, act] of [
    ['goes home', ({ group }: Pair) => { group.gateway('gw-1').start(); }],
    ['is taken over again', ({ group }: Pair) => { group.gateway('gw-2').kill(); group.run(3000); group.gateway('gw-2').start(); }],
    ['changes its members', ({ second }: Pair) => { second.kill(); }],
  ] as const) {
    test(`and a rescuer could not hear is taken in when it is back, whole, before the partition ${what}`, () => {
      const pair = forgotten(false);
      const { group, third } = pair;
      group.run(5000);
      assert.equal(partitionAt(pair, 'gw-2')?.length, LETTERS);
      group.cutOff('gw-2', false, [third]);
      group.hops.script = () => 'accept';
      group.run(1000);
      act(pair);
      group.until(() => group.letters.delivered >= 2 * LETTERS, 'all deliveries', 120_000);
      group.run(20_000);
      assert.ok(traced(pair, back) > 0);
      checkNoLoss(group.letters);
    });
  }

  test('is taken in when it is back after as many takeovers as a record tells apart', () => {
    const pair = forgotten(false);
    const { group, third } = pair;
    for (let term = 0; term < LINE_MAX - 3; term++) {
      group.gateway('gw-2').kill();
      group.run(3000);
      group.gateway('gw-2').start();
      untilHeldBy(pair, 'gw-2', 2);
    }
    group.cutOff('gw-2', false, [third]);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered >= 2 * LETTERS, 'all deliveries', 120_000);
    checkNoLoss(group.letters);
  });

  test('is taken over when it is back, though the partition has ended without it', () => {
    const pair = forgotten(false);
    const { group, name, third } = pair;
    group.hops.script = () => 'accept';
    group.gateway('gw-2').register?.bridge.setRetired('gw-1', { who: 'ann', reason: 'gone', wallMs: 1 }, () => undefined);
    group.until(() => recordOf(pair)?.holder.incarnation === 0, 'its end', 120_000);
    assert.equal(group.letters.delivered, LETTERS);
    group.cutOff('gw-2', false, [third]);
    group.until(() => group.letters.delivered === 2 * LETTERS, 'all deliveries', 300_000);
    group.until(() => recordOf(pair) === undefined, 'its second end', 60_000);
    assert.equal(third.store?.partitions.find(name), undefined);
    group.run(5000);
    const ends = traced(pair, 'has ended');
    group.run(70_000);
    assert.equal(traced(pair, 'has ended'), ends, 'it does not end again');
    checkNoLoss(group.letters);
  });

  test('is not filled, nor dropped, by who comes after the rescuer', () => {
    const pair = forgotten(false);
    const { group, second, third } = pair;
    group.cutOff('gw-1', true, [third]);
    group.gateway('gw-1').start();
    untilHeldBy(pair, 'gw-1', 2);
    group.gateway('gw-2').kill();
    second.kill();
    group.run(3000);
    group.cutOff('gw-1', false, [third]);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered >= 2 * LETTERS, 'all deliveries', 120_000);
    group.run(20_000);
    assert.ok(traced(pair, back) > 0);
    checkNoLoss(group.letters);
  });
});

/**
 * A record that the register has forgotten names the first and the third store; the one before it, which is put
 * back, the first and the second. No mail came in between. A rescuer that hears the second alone takes over, by a
 * term above the forgotten record; before it reads, the first is there again, and takes part as if nothing had been.
 */
function forgottenForNothing(isThirdBack: boolean): Pair & { readonly third: StoreNode } {
  const pair = loaded({ partitions: 1 }, LETTERS, 'hang');
  const { group, name, first, second, third } = pair;
  assert.ok(third !== undefined);
  const before = group.register.snapshot();
  group.cutOff('gw-1', true, [second]);
  group.until(() => recordOf(pair)?.members.some(({ storeId }) => storeId === third.id) === true, 'another set', 120_000);
  group.until(() => recordOf(pair)?.members.length === 2, 'two copies', 120_000);
  group.run(3000);
  const epoch = recordOf(pair)?.epoch ?? 0;
  group.cutOff('gw-2', true, [first, third]);
  group.run(3000);
  group.gateway('gw-1').kill();
  group.gateway('gw-2').kill();
  group.hops.script = () => 'defer';
  group.register.restore(before);
  group.run(6000);
  group.register.slow(1500);
  const claims = (): number => traced(pair, `${name} ASKING -> CLAIMING`);
  const start = (): void => {
    const known = claims();
    group.gateway('gw-2').start();
    group.until(() => claims() > known, 'a claim', 120_000);
  };
  for (start(); (recordOf(pair)?.epoch ?? 0) < epoch; start()) {
    const known = recordOf(pair)?.epoch ?? 0;
    group.until(() => (recordOf(pair)?.epoch ?? 0) > known, 'the change', 20_000);
    group.gateway('gw-2').kill();
  }
  group.cutOff('gw-2', false, isThirdBack ? [first, third] : [first]);
  untilHeldBy(pair, 'gw-2', 2);
  assert.equal(third.store?.partitions.find(name)?.isComplete, true);
  group.register.slow(0);
  group.run(5000);
  return { ...pair, third };
}

for (const isThirdBack of [true, false]) {
  const when = isThirdBack ? 'though it was told to go before that was known' : 'when it is back';
  test(`a copy that the register had forgotten, with nothing that a member has not, is dropped ${when}`, () => {
    const pair = forgottenForNothing(isThirdBack);
    const { group, name, third } = pair;
    group.cutOff('gw-2', false, [third]);
    group.until(() => third.store?.partitions.find(name) === undefined, 'the end of the copy', 20_000);
    assert.equal(traced(pair, 'a copy that was given up is back'), 0);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === LETTERS, 'all deliveries', 120_000);
    group.run(5000);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });
}

describe('a change that is applied late', () => {
  test('after its sender has died: the next process finds it, or overtakes it, and nothing is lost', () => {
    for (const lateMs of [200, 1500, 4000]) {
      const pair = loaded();
      const { group, first } = pair;
      group.register.delay(1, lateMs);
      first.kill();
      group.run(150);
      group.gateway('gw-1').kill();
      group.register.delay(0, 0);
      group.gateway('gw-1').start();
      first.start();
      oneDeliversAtMost(group, 15_000);
      untilHeldBy(pair, 'gw-1');
      assert.equal(partitionAt(pair, 'gw-1')?.length, LETTERS);
      judged(pair);
    }
  });

  test('a takeover after its rescuer died: the owner, back meanwhile, is never beside it', () => {
    for (const lateMs of [300, 3000]) {
      const pair = loaded();
      const { group } = pair;
      group.freeze('gw-1');
      group.run(group.leaseMs);
      group.register.delay(1, lateMs);
      group.until(() => group.log.count(`${pair.name} ASKING -> CLAIMING`) > 0, 'the claim', 30_000);
      group.gateway('gw-2').kill();
      group.register.delay(0, 0);
      group.thaw('gw-1');
      oneDeliversAtMost(group, 10_000, ['gw-1']);
      group.gateway('gw-2').start();
      oneDeliversAtMost(group, 10_000);
      assert.equal(holderOf(pair), 'gw-1');
      judged(pair);
    }
  });

  test('a copy counts from the moment at which the change with it is sent, whether or not it is known to be made', () => {
    const world = World.started({ stores: 3, replaceAfterMs: 1000, partitions: 1, commitTimeoutMs: 60_000, queues: [{ name: 'q1' }] });
    world.run(500);
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(300);
    const partition = world.mirror('q1');
    world.stores.find(({ id }) => id === partition.rows[0]?.storeId)?.kill();
    world.until(() => partition.rows.some((row) => !row.isRecorded && row.isFed), 20_000, 'a copy that is filled');
    world.register.lose({ replies: 1 });
    world.until(() => partition.set?.records.isSettled === false, 20_000, 'the change with it');
    const joiner = world.stores.find(({ id }) => id === partition.rows.find((row) => !row.isRecorded && row.isPossible)?.storeId);
    assert.ok(joiner !== undefined);
    world.holdRequests(joiner, true);
    const letter = world.submit(['q1']);
    world.run(1000);
    assert.equal(letter.outcome, 0, 'the register may name it');
    world.holdRequests(joiner, false);
    world.register.lose({});
    world.until(() => letter.outcome === COMMITTED, 20_000, 'the commit');
  });

  test('none of the replies comes for a while: until a revision moves, all that was sent counts', () => {
    const world = World.started({ stores: 3, replaceAfterMs: 1000 });
    world.run(500);
    world.register.lose({ requests: 0.3, replies: 0.5 });
    for (let i = 0; i < 40; i++) {
      for (const name of world.queueNames) world.submit([name]);
      if (i % 10 === 3) world.store('a').kill();
      if (i % 10 === 8) world.store('a').start();
      world.run(500);
    }
    world.register.lose({});
    world.untilQuiet();
    world.until(() => coreOf(world).registry.partitions.every((one) => one.inSyncCount === 2), 60_000, 'two copies');
    world.assertSameContent();
    checkAll(world.letters, world.queueNames);
  });
});
