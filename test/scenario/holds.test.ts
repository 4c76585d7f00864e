/** Messages that an operator holds and releases, and what the operator is told of it: src/gateway/queue/message-holds.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nextHopOf } from '../../src/gateway/queue/next-hop.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { doById, type DoneById, type MessageVerb } from './by-id.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { coreOf, onlyQueue, stateOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

function restart(world: World): void {
  world.gateway.kill();
  world.startGateway();
}

function reasonOf(world: World, letter: Letter): string {
  const queue = onlyQueue(world.mirror('q1'));
  return coreOf(world).holds.reasonOf(queue, coreOf(world).entries.table.index.find(letter.id, queue.handle));
}

function stateIn(group: Group, id: string, letter: Letter): number | undefined {
  return stateOf(coreOf({ gateway: group.gateway(id) }), 'q1', letter);
}

describe('messages that an operator holds', () => {
  test('do not expire where their route is gone at a restart: their lifetime stands still', () => {
    for (const isGone of [false, true]) {
      const world = World.started({ queues: [{ name: 'q1' }], lifetimeMs: 60_000, retryDelayMs: 3000 });
      world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
      const letter = world.submit(['q1']);
      world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED);
      assert.deepEqual(doById(coreOf(world), 'hold', letter.id).whys, ['']);
      world.run(1000);
      if (isGone) world.unrouted.add('q1');
      restart(world);
      world.until(() => world.isWhole, 10_000);
      world.run(300_000);
      assert.equal(stateOf(coreOf(world), 'q1', letter), EntryState.HELD);
      assert.equal(letter.reports.size, 0);
    }
  });

  test('whose route is gone are let go by a release, wait as other mail of their queue, and go by another route', () => {
    const gone = 'no route leads out of its queue: add one with its name, or rebind it';
    for (const isReleased of [false, true]) {
      const world = World.started({ lifetimeMs: 600_000 });
      world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'defer' : 'accept');
      const letter = world.submit(['q1']);
      world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED);
      assert.deepEqual(doById(coreOf(world), 'hold', letter.id).whys, ['']);
      world.run(1000);
      world.unrouted.add('q1');
      restart(world);
      world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.HELD, 10_000);
      world.run(1000);
      assert.equal(reasonOf(world, letter), 'ann: a look first');
      assert.deepEqual(doById(coreOf(world), 'delay', letter.id).whys, [gone]);
      if (isReleased) {
        assert.deepEqual(doById(coreOf(world), 'release', letter.id).whys, [`nobody holds it any more, and it waits all the same: ${gone}`]);
        world.run(1000);
        assert.deepEqual([reasonOf(world, letter), onlyQueue(world.mirror('q1')).heldCount], ['no route leads out of its queue', 1]);
        assert.equal(nextHopOf(onlyQueue(world.mirror('q1'))), 'no route');
        assert.deepEqual(doById(coreOf(world), 'release', letter.id).whys, [gone]);
        restart(world);
        world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.HELD, 10_000);
        world.run(1000);
      }
      const { orders } = coreOf(world);
      const begun = orders.begin({ verb: 'rebind', selector: { everything: true }, route: 'q2', reason: 'its route is gone', who: 'ann' });
      assert.ok(typeof begun !== 'string');
      world.until(() => orders.answerOf(begun.order)?.phase === 'found', 5000);
      assert.ok(orders.go(begun.order, 0));
      world.until(() => orders.answerOf(begun.order)?.phase === 'done', 5000);
      assert.equal(orders.answerOf(begun.order)?.done, 1);
      world.run(1000);
      if (!isReleased) {
        assert.equal(letter.arrivals.size, 0, 'it stays held');
        assert.deepEqual(doById(coreOf(world), 'release', letter.id).whys, ['']);
      }
      world.untilQuiet();
      assert.equal(letter.arrivals.size, 1);
    }
  });

  test('by a standing hold that is over, whose route is gone, are reported when their time is over', () => {
    const world = World.started({ queues: [{ name: 'q1' }], lifetimeMs: 60_000, retryDelayMs: 3000 });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
    const letter = world.submit(['q1']);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED);
    void coreOf(world).ruleDesk.add({ verb: 'hold', selector: { domain: 'q1.example' }, reason: 'a look first', who: 'ann' });
    world.run(1000);
    const queue = onlyQueue(world.mirror('q1'));
    const row = coreOf(world).entries.table.index.find(letter.id, queue.handle);
    assert.equal(coreOf(world).holds.holdEntry(queue, row, { reason: 'a look first', who: 'ann' }, true), '');
    world.run(1000);
    world.unrouted.add('q1');
    restart(world);
    world.until(() => world.isWhole, 10_000);
    world.run(100_000);
    assert.equal(stateOf(coreOf(world), 'q1', letter), EntryState.HELD);
    void coreOf(world).ruleDesk.cancel(coreOf(world).rules.all()[0]?.id ?? '', { reason: 'seen', who: 'ann' });
    world.run(5000);
    assert.equal(reasonOf(world, letter), 'no route leads out of its queue');
    world.until(() => letter.reports.size === 1, 100_000, 'its report');
    world.untilQuiet();
    checkNoLoss(world.letters);
  });

  test('stay held over a restart, alone, and go on when they are released; released they stay so', () => {
    const world = World.started();
    world.hops.script = () => 'defer';
    const [held] = world.submitMany(5, ['q1']);
    assert.ok(held !== undefined);
    world.until(() => stateOf(coreOf(world), 'q1', held) === EntryState.DEFERRED);
    const told = doById(coreOf(world), 'hold', held.id);
    assert.deepEqual(told.whys, ['']);
    world.until(() => told.isKept);
    world.hops.script = () => 'accept';
    restart(world);
    world.until(() => world.letters.delivered === 4);
    world.run(3000);
    assert.equal(held.arrivals.size, 0);
    assert.equal(reasonOf(world, held), 'ann: a look first');
    world.hops.script = () => 'defer';
    const released = doById(coreOf(world), 'release', held.id);
    world.until(() => released.isKept);
    world.hops.script = () => 'accept';
    restart(world);
    world.untilQuiet();
    checkNoLoss(world.letters);
    world.assertSameContent();
  });

  test('do not expire, over a restart either: the lifetime goes on when they are released, and survives that, too', () => {
    const world = World.started({ lifetimeMs: 10_000 });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
    const letter = world.submit(['q1']);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED);
    const held = doById(coreOf(world), 'hold', letter.id);
    world.until(() => held.isKept);
    world.run(15_000);
    restart(world);
    world.run(15_000);
    assert.equal(stateOf(coreOf(world), 'q1', letter), EntryState.HELD);
    const released = doById(coreOf(world), 'release', letter.id);
    world.until(() => released.isKept);
    world.run(1000);
    world.gateway.kill(true);
    world.startGateway();
    world.run(5000);
    assert.equal(letter.reports.size, 0, 'thirty seconds of it were held');
    world.until(() => letter.reports.size === 1, 15_000, 'its report');
    world.untilQuiet();
  });

  test('a strict queue goes on without its deferred head', () => {
    const world = World.started({ queues: [{ name: 's', ordering: 'strict' }] });
    world.hops.script = () => 'defer';
    const [head] = world.submitMany(3, ['s']);
    assert.ok(head !== undefined);
    world.run(300);
    world.hops.script = ({ messageId }) => (messageId === head.id ? 'defer' : 'accept');
    doById(coreOf(world), 'hold', head.id);
    world.until(() => world.letters.delivered === 2, 5000);
    doById(coreOf(world), 'release', head.id);
    world.hops.script = () => 'accept';
    world.untilQuiet();
    checkNoLoss(world.letters);
  });

  test('are held by who takes their queue over, and by their owner when it is back', () => {
    const group = Group.started();
    group.hops.script = () => 'defer';
    const letters = [1, 2, 3].map(() => group.submit('gw-1', ['q1']));
    const [held] = letters;
    assert.ok(held !== undefined);
    group.until(() => stateIn(group, 'gw-1', held) === EntryState.DEFERRED, 'the deferral');
    assert.ok(letters.every((letter) => letter.outcome === COMMITTED));
    const told = doById(coreOf({ gateway: group.gateway('gw-1') }), 'hold', held.id);
    group.until(() => told.isKept, 'the answer');
    group.gateway('gw-1').kill();
    group.hops.script = () => 'accept';
    group.until(() => letters.filter((letter) => letter.arrivals.size === 1).length === 2, 'the rescued deliveries');
    assert.equal(stateIn(group, 'gw-2', held), EntryState.HELD);
    group.run(2000);
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
    group.until(() => stateIn(group, 'gw-1', held) === EntryState.HELD, 'the hold at the owner');
    assert.equal(held.arrivals.size, 0);
    doById(coreOf({ gateway: group.gateway('gw-1') }), 'release', held.id);
    group.until(() => held.arrivals.size === 1, 'the delivery');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });
});

describe('what an operator did to a message', () => {
  interface Waiting {
    readonly world: World;
    readonly letter: Letter;
    change(verb: MessageVerb, who?: string): DoneById;
  }

  function waiting(): Waiting {
    const world = World.started();
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1']);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED);
    world.untilLevel();
    const change = (verb: MessageVerb, who = 'ann'): DoneById => {
      const done = doById(coreOf(world), verb, letter.id, { reason: 'a look first', who });
      assert.deepEqual(done.whys, ['']);
      return done;
    };
    return { world, letter, change };
  }

  function holdAnswers(world: World, held: boolean): void {
    for (const store of world.stores) world.holdAnswers(store, held);
  }

  test('a crash right behind the acknowledgement of both mirrors undoes nothing', () => {
    const { world, letter, change } = waiting();
    world.holdAnswers(world.store('b'), true);
    const held = change('hold');
    world.run(1000);
    assert.equal(held.isKept, false, 'one mirror is not enough');
    world.holdAnswers(world.store('b'), false);
    world.until(() => held.isKept, 1000, 'the acknowledgement');
    restart(world);
    world.hops.script = () => 'accept';
    world.until(() => coreOf(world).accepting);
    world.run(5000);
    assert.equal(stateOf(coreOf(world), 'q1', letter), EntryState.HELD);
    assert.equal(letter.arrivals.size, 0);
  });

  test('a hold that is asked for again is held once, by who held it first', () => {
    const { world, letter, change } = waiting();
    holdAnswers(world, true);
    change('hold');
    const again = change('hold', 'bob');
    holdAnswers(world, false);
    world.until(() => again.isKept, 1000, 'it is kept');
    assert.equal(reasonOf(world, letter), 'ann: a look first');
    assert.equal(onlyQueue(world.mirror('q1')).heldCount, 1, 'held once');
  });

  test('a message that is released goes on when the mirrors know of it, however long that takes: it may end the process', () => {
    const { world, letter, change } = waiting();
    const held = change('hold');
    world.until(() => held.isKept);
    world.hops.script = () => 'accept';
    holdAnswers(world, true);
    const released = change('release');
    world.run(1000);
    assert.equal(letter.arrivals.size, 0);
    assert.equal(reasonOf(world, letter), 'it is being released');
    assert.deepEqual(doById(coreOf(world), 'hold', letter.id).whys, ['it is being released at this moment']);
    assert.deepEqual(doById(coreOf(world), 'release', letter.id).whys, ['it is not held']);
    world.run(8000);
    assert.deepEqual([letter.arrivals.size, released.isKept], [0, false]);
    holdAnswers(world, false);
    world.until(() => letter.arrivals.size === 1, 5000, 'the delivery');
    world.untilQuiet();
    checkNoLoss(world.letters);
  });
});
