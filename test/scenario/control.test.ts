/** Records of a gateway that live as long as its mail, and what they hold back: crashes, holds (DESIGN "Control queue", "Poison"). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RECORDS_BYTES_MAX, RECORDS_MAX, VALUE_BYTES_MAX } from '../../src/gateway/control/control-records.js';
import type { ControlRecords } from '../../src/gateway/control/control-records.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import type { GatewayCore } from '../../src/gateway/core.js';
import { checkAll, checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { coreOf, queuesOf, stateOf, onlyQueue } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const ONE = Uint8Array.of(1);
const TWO = Uint8Array.of(2);

function records(world: World): ControlRecords {
  return coreOf(world).control.queues.own;
}

function restart(world: World): void {
  world.gateway.kill();
  world.gateway.start();
}

/** Entries of the control queue at a store. */
function recordsAt(world: World, letter: 'a' | 'b'): number {
  const memory = world.store(letter).store;
  return memory === undefined ? -1 : queuesOf(memory, 'control').reduce((sum, queue) => sum + queue.count, 0);
}

/** Crashes of three processes that had the message in hand, as their machine noted them. */
function noteCrashes(core: GatewayCore, letter: Letter, incarnations: readonly number[], ownerId = 'gw-1'): void {
  core.control.onNotes(incarnations.map((incarnation) => ({ ownerId, messageId: letter.id, incarnation })));
}

describe('control records', () => {
  test('come back after a restart, each with its last value', () => {
    const world = World.started();
    records(world).set('a', ONE);
    records(world).set('b', ONE);
    world.run(50);
    records(world).set('a', TWO);
    records(world).delete('b');
    world.run(200);
    assert.deepEqual([recordsAt(world, 'a'), recordsAt(world, 'b')], [1, 1], 'what was replaced is gone from the stores');
    restart(world);
    world.until(() => records(world).get('a') !== undefined);
    assert.deepEqual([records(world).get('a'), records(world).get('b')], [TWO, undefined]);
    world.untilLevel();
    world.assertSameContent();
  });

  test('no queue is founded for a gateway that has nothing to remember', () => {
    const world = World.started();
    world.run(1000);
    assert.equal([...coreOf(world).control.queues.mirrors()].length, 0);
  });

  test('what is set before they are back replaces what comes back', () => {
    const world = World.started();
    records(world).set('a', ONE);
    records(world).set('other', ONE);
    world.run(200);
    restart(world);
    records(world).set('a', TWO);
    world.until(() => records(world).get('other') !== undefined);
    world.run(500);
    assert.deepEqual(records(world).get('a'), TWO);
    assert.equal([...coreOf(world).control.queues.mirrors()].length, 1);
    assert.equal(recordsAt(world, 'a'), 2);
    restart(world);
    world.until(() => records(world).get('a') !== undefined);
    assert.deepEqual(records(world).get('a'), TWO, 'and stays so');
  });

  test('follow their queue to a mirror that is filled anew', () => {
    const world = World.started();
    for (let i = 0; i < 50; i++) records(world).set(`name ${String(i)}`, ONE);
    world.run(200);
    world.store('b').kill();
    records(world).set('name 7', TWO);
    world.run(200);
    world.store('b').start();
    world.untilLevel();
    world.assertSameContent();
    assert.equal(recordsAt(world, 'b'), 50);
  });

  test('are bounded in number, size and sum; what is there may be replaced', () => {
    const world = World.started();
    const own = records(world);
    assert.equal(own.set('', ONE), false);
    assert.equal(own.set('n'.repeat(256), ONE), false);
    assert.equal(own.set('large', new Uint8Array(VALUE_BYTES_MAX + 1)), false);
    const value = new Uint8Array(VALUE_BYTES_MAX);
    let count = 0;
    while (own.set(`large ${String(count)}`, value)) count += 1;
    assert.ok(own.usedBytes <= RECORDS_BYTES_MAX && count >= RECORDS_BYTES_MAX / VALUE_BYTES_MAX - 1);
    assert.equal(own.set('large 0', ONE), true);
    for (let i = 0; i < count; i++) own.delete(`large ${String(i)}`);
    assert.equal(own.usedBytes, 0);
    for (let i = 0; i < RECORDS_MAX; i++) assert.equal(own.set(String(i), ONE), true);
    assert.equal(own.set('one more', ONE), false);
    assert.equal(own.set('17', TWO), true);
  });

  test('mail waits for them, so that what they say is known before the first delivery', () => {
    const world = World.started({ blockEntries: 2 });
    world.hops.script = () => 'hang';
    for (let i = 0; i < 60; i++) records(world).set(`name ${String(i)}`, ONE);
    world.submitMany(30, ['q1', 'q2']);
    world.run(300);
    world.hops.script = () => 'accept';
    restart(world);
    world.until(() => coreOf(world).recovered.entryCount > 10);
    assert.equal(coreOf(world).registry.byName('q1').length, 0, 'no mail yet');
    world.until(() => world.letters.delivered > 0);
    assert.equal(records(world).size, 60);
    world.untilQuiet();
    checkAll(world.letters, ['q1', 'q2']);
  });

  test('mail does not wait for a control queue that is held for want of a store', () => {
    const world = World.started({ stores: 4, seed: 3 });
    world.hops.script = () => 'hang';
    records(world).set('a', ONE);
    const members = [...coreOf(world).control.queues.mirrors()][0]?.replicas.map((replica) => replica.store.storeId) ?? [];
    world.submitMany(5, ['q1', 'q2', 'q3']);
    world.run(300);
    const apart = ['q1', 'q2', 'q3'].filter((name) => world.mirror(name).replicas.every((replica) => !members.includes(replica.store.storeId)));
    assert.ok(apart.length > 0, 'a mail queue has other stores');
    const away = world.stores.find((store) => store.id === members[0]);
    assert.ok(away !== undefined);
    world.hops.script = () => 'accept';
    world.network.cut('gw-1', away.id);
    restart(world);
    world.until(() => world.letters.delivered >= 5, 20_000);
    assert.equal(records(world).get('a'), undefined);
    records(world).set('a', TWO);
    records(world).set('b', TWO);
    world.run(1000);
    assert.equal([...coreOf(world).control.queues.mirrors()].length, 1, 'new records have a queue of their own meanwhile');
    const bothAreBack = (): boolean => [...coreOf(world).control.queues.mirrors()].filter((mirror) => !mirror.isRecovering).length === 2;
    world.heal(away);
    world.until(bothAreBack);
    world.run(500);
    assert.deepEqual([records(world).get('a'), records(world).get('b')], [TWO, TWO]);
    restart(world);
    world.until(bothAreBack);
    assert.deepEqual([records(world).get('a'), records(world).get('b')], [TWO, TWO], 'the younger queue is right');
  });
});

describe('messages met in crashes', () => {
  test('one crash holds nothing; the second holds that message alone, with an alarm, and an operator frees it', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    const [poison] = world.submitMany(10, ['q1']);
    assert.ok(poison !== undefined);
    world.run(100);
    world.hops.script = ({ messageId }) => (messageId === poison.id ? 'defer' : 'accept');
    noteCrashes(coreOf(world), poison, [11]);
    world.run(200);
    assert.equal(coreOf(world).control.unkeptNotes.length, 0, 'the mirrors have it: the file may go');
    restart(world);
    noteCrashes(coreOf(world), poison, [11]);
    world.until(() => world.letters.delivered === 9);
    assert.notEqual(stateOf(coreOf(world), 'q1', poison), EntryState.HELD, 'the same crash told twice is one');
    world.run(200);
    restart(world);
    noteCrashes(coreOf(world), poison, [12]);
    world.until(() => stateOf(coreOf(world), 'q1', poison) === EntryState.HELD);
    assert.equal(world.log.count('a message is held alone'), 1);
    world.until(() => coreOf(world).accepting);
    const fresh = world.submit(['q1']);
    world.until(() => fresh.arrivals.size === 1, 5000, 'other mail');
    world.until(() => coreOf(world).control.unkeptNotes.length === 0);
    world.hops.script = () => 'accept';
    restart(world);
    world.until(() => stateOf(coreOf(world), 'q1', poison) === EntryState.HELD);
    const queue = onlyQueue(world.mirror('q1'));
    const row = coreOf(world).entries.table.index.find(poison.id, queue.handle);
    assert.match(coreOf(world).control.holds.reasonOf(queue, row), /2 crashes/);
    world.run(2000);
    assert.equal(poison.arrivals.size, 0);
    const released = coreOf(world).control.holds.release({ messageId: poison.id, reason: 'mended', who: 'ann' });
    assert.deepEqual(released.map(({ done }) => done), [true]);
    world.untilQuiet();
    assert.equal(poison.arrivals.size, 1);
    assert.equal(records(world).size, 0);
    checkNoLoss(world.letters);
    checkNoDuplicates(world.letters);
  });

  test('a report that can not be made holds its message; it goes on from there when it is released', () => {
    const world = World.started();
    world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'reject' : 'accept');
    let died = false;
    world.onTurn = () => {
      // Right after the outcome is at the mirrors, before the report is there.
      if (!died && stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING) {
        died = true;
        world.run(0);
        world.gateway.kill(true);
      }
    };
    const letter = world.submit(['q1']);
    world.until(() => died);
    world.run(100);
    world.gateway.start();
    noteCrashes(coreOf(world), letter, [11, 12]);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.HELD, 10_000, 'the hold');
    world.run(3000);
    assert.equal(world.hops.reports.length, 0);
    coreOf(world).control.holds.release({ messageId: letter.id, reason: 'mended', who: 'ann' });
    world.until(() => world.hops.reports.length === 1, 10_000, 'the report');
    world.untilQuiet();
    assert.equal(world.hops.reports.length, 1);
  });

  test('a poison message does not expire while it is held: its report is what ends the process', () => {
    const world = World.started({ lifetimeMs: 10_000 });
    world.hops.script = () => 'hang';
    const [poison, other] = world.submitMany(2, ['q1']);
    assert.ok(poison !== undefined && other !== undefined);
    world.run(100);
    world.hops.script = () => 'defer';
    restart(world);
    noteCrashes(coreOf(world), poison, [11, 12]);
    world.run(15_000);
    assert.equal(stateOf(coreOf(world), 'q1', poison), EntryState.HELD);
    assert.equal(stateOf(coreOf(world), 'q1', other), undefined, 'the other one has expired');
  });
});

describe('records of a gateway that stays dead', () => {
  test('are read by its rescuer, grow there, and go home with the queues', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    const letters = [1, 2, 3, 4].map(() => group.submit('gw-1', ['q1']));
    const [held, poison] = letters;
    assert.ok(held !== undefined && poison !== undefined);
    group.run(200);
    assert.ok(letters.every((letter) => letter.outcome === COMMITTED));
    group.gateway('gw-1').kill();
    group.gateway('gw-1').start();
    noteCrashes(coreOf({ gateway: group.gateway('gw-1') }), poison, [11]);
    group.hops.script = () => 'defer';
    group.until(() => stateOf(coreOf({ gateway: group.gateway('gw-1') }), 'q1', held) === EntryState.DEFERRED, 'the deferral');
    coreOf({ gateway: group.gateway('gw-1') }).control.holds.hold({ messageId: held.id, reason: 'a look first', who: 'ann' });
    group.run(500);
    group.gateway('gw-1').kill();
    const rescuer = coreOf({ gateway: group.gateway('gw-2') });
    noteCrashes(rescuer, poison, [12]);
    group.hops.script = () => 'accept';
    group.until(() => letters.filter((letter) => letter.arrivals.size === 1).length === 2, 'the rescued deliveries');
    assert.deepEqual([stateOf(rescuer, 'q1', held), stateOf(rescuer, 'q1', poison)], [EntryState.HELD, EntryState.HELD]);
    group.run(500);
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
    const owner = coreOf({ gateway: group.gateway('gw-1') });
    group.until(() => stateOf(owner, 'q1', poison) === EntryState.HELD, 'the mail at its owner');
    assert.deepEqual([stateOf(owner, 'q1', held), owner.control.crashes.countOf('gw-1', poison.id)], [EntryState.HELD, 2]);
    for (const letter of [held, poison]) owner.control.holds.release({ messageId: letter.id, reason: 'looked', who: 'ann' });
    group.until(() => letters.every((letter) => letter.arrivals.size === 1), 'all deliveries');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('a rescuer founds them under the owner\'s name, and they go home too', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    const letter = group.submit('gw-1', ['q1']);
    group.run(200);
    group.gateway('gw-1').kill();
    group.hops.script = () => 'defer';
    const rescuer = coreOf({ gateway: group.gateway('gw-2') });
    group.until(() => stateOf(rescuer, 'q1', letter) === EntryState.DEFERRED, 'the takeover');
    rescuer.control.holds.hold({ messageId: letter.id, reason: 'a look first', who: 'ann' });
    group.run(500);
    assert.equal(group.served('gw-2', 'gw-1').filter((mirror) => mirror.name === 'control').length, 1);
    assert.equal(rescuer.control.queues.own.size, 0);
    group.hops.script = () => 'accept';
    group.gateway('gw-1').start();
    const owner = coreOf({ gateway: group.gateway('gw-1') });
    group.until(() => stateOf(owner, 'q1', letter) === EntryState.HELD, 'the hold at the owner');
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back of all');
    owner.control.holds.release({ messageId: letter.id, reason: 'looked', who: 'ann' });
    group.until(() => letter.arrivals.size === 1, 'the delivery');
  });
});
