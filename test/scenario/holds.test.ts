/** Messages that an operator holds and releases, and what the operator is told of it: src/gateway/queue/message-holds.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GatewayCore } from '../../src/gateway/core.js';
import { KEPT_WAIT_MS } from '../../src/gateway/mirror/kept-waits.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import type { HoldOutcome } from '../../src/gateway/queue/message-holds.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { coreOf, onlyQueue, stateOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const LOOK = { reason: 'a look first', who: 'ann' };

function restart(world: World): void {
  world.gateway.kill();
  world.startGateway();
}

/** The answer; undefined while it waits. */
function changed(core: GatewayCore, verb: 'hold' | 'release', letter: Letter): { outcomes: readonly HoldOutcome[] | undefined } {
  const told: { outcomes: readonly HoldOutcome[] | undefined } = { outcomes: undefined };
  core.holds[verb]({ messageId: letter.id, ...LOOK }, (outcomes) => { told.outcomes = outcomes; });
  return told;
}

function reasonOf(world: World, letter: Letter): string {
  const queue = onlyQueue(world.mirror('q1'));
  return coreOf(world).holds.reasonOf(queue, coreOf(world).entries.table.index.find(letter.id, queue.handle));
}

function stateIn(group: Group, id: string, letter: Letter): number | undefined {
  return stateOf(coreOf({ gateway: group.gateway(id) }), 'q1', letter);
}

describe('messages that an operator holds', () => {
  test('stay held over a restart, alone, and go on when they are released; released they stay so', () => {
    const world = World.started();
    world.hops.script = () => 'defer';
    const [held] = world.submitMany(5, ['q1']);
    assert.ok(held !== undefined);
    world.until(() => stateOf(coreOf(world), 'q1', held) === EntryState.DEFERRED);
    const told = changed(coreOf(world), 'hold', held);
    world.until(() => told.outcomes !== undefined);
    assert.deepEqual(told.outcomes, [{ queue: 'q1', queueClass: 'mail', done: true, why: '', kept: true }]);
    world.hops.script = () => 'accept';
    restart(world);
    world.until(() => world.letters.delivered === 4);
    world.run(3000);
    assert.equal(held.arrivals.size, 0);
    assert.equal(reasonOf(world, held), 'ann: a look first');
    world.hops.script = () => 'defer';
    const released = changed(coreOf(world), 'release', held);
    world.until(() => released.outcomes !== undefined);
    assert.equal(released.outcomes?.[0]?.kept, true);
    world.hops.script = () => 'accept';
    restart(world);
    world.untilQuiet();
    checkNoLoss(world.letters);
    world.assertSameContent();
  });

  test('that nobody has are told so at once', () => {
    const world = World.started();
    let told: readonly HoldOutcome[] | undefined;
    coreOf(world).holds.hold({ messageId: 1, ...LOOK }, (outcomes) => { told = outcomes; });
    assert.deepEqual(told, []);
  });

  test('expire all the same, with a report', () => {
    const world = World.started({ lifetimeMs: 10_000 });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
    const letter = world.submit(['q1']);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED);
    changed(coreOf(world), 'hold', letter);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING, 15_000, 'its report');
    world.gateway.kill(true);
    world.startGateway();
    world.untilQuiet();
    assert.equal(letter.reports.size, 1);
  });

  test('a strict queue goes on without its deferred head', () => {
    const world = World.started({ queues: [{ name: 's', ordering: 'strict' }] });
    world.hops.script = () => 'defer';
    const [head] = world.submitMany(3, ['s']);
    assert.ok(head !== undefined);
    world.run(300);
    world.hops.script = ({ messageId }) => (messageId === head.id ? 'defer' : 'accept');
    changed(coreOf(world), 'hold', head);
    world.until(() => world.letters.delivered === 2, 5000);
    changed(coreOf(world), 'release', head);
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
    const told = changed(coreOf({ gateway: group.gateway('gw-1') }), 'hold', held);
    group.until(() => told.outcomes !== undefined, 'the answer');
    group.gateway('gw-1').kill();
    group.hops.script = () => 'accept';
    group.until(() => letters.filter((letter) => letter.arrivals.size === 1).length === 2, 'the rescued deliveries');
    assert.equal(stateIn(group, 'gw-2', held), EntryState.HELD);
    group.run(2000);
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
    group.until(() => stateIn(group, 'gw-1', held) === EntryState.HELD, 'the hold at the owner');
    assert.equal(held.arrivals.size, 0);
    changed(coreOf({ gateway: group.gateway('gw-1') }), 'release', held);
    group.until(() => held.arrivals.size === 1, 'the delivery');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });
});

describe('what an operator is told of a hold', () => {
  interface Told {
    readonly world: World;
    readonly letter: Letter;
    /** Whether the last change is kept; undefined while that is not answered. */
    kept: boolean | undefined;
    change(verb: 'hold' | 'release', who?: string): void;
  }

  /** One message waits. Each change notes when its answer comes; `onKept` is called at that moment. */
  function waiting(onKept: () => void = () => {}): Told {
    const world = World.started();
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1']);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED);
    world.untilLevel();
    const told: Told = {
      world, letter, kept: undefined,
      change: (verb, who = 'ann') => {
        told.kept = undefined;
        coreOf(world).holds[verb]({ messageId: letter.id, reason: 'a look first', who }, ([outcome]) => {
          assert.deepEqual([outcome?.done, outcome?.why], [true, '']);
          told.kept = outcome?.kept;
          onKept();
        });
      },
    };
    return told;
  }

  function holdAnswers(world: World, held: boolean): void {
    for (const store of world.stores) world.holdAnswers(store, held);
  }

  test('comes when both mirrors have acknowledged it, not before; a crash right behind it undoes nothing', () => {
    const told: Told = waiting(() => { restart(told.world); });
    const { world } = told;
    world.holdAnswers(world.store('b'), true);
    told.change('hold');
    world.run(1000);
    assert.equal(told.kept, undefined, 'one mirror is not enough');
    world.holdAnswers(world.store('b'), false);
    world.until(() => told.kept !== undefined, 1000, 'the answer');
    assert.equal(told.kept, true);
    world.hops.script = () => 'accept';
    world.until(() => coreOf(world).accepting);
    world.run(5000);
    assert.equal(stateOf(coreOf(world), 'q1', told.letter), EntryState.HELD);
    assert.equal(told.letter.arrivals.size, 0);
  });

  test('says at a bound that a crash may undo it, when no mirror answers', () => {
    const told = waiting();
    const { world } = told;
    for (const store of world.stores) store.kill();
    world.run(100);
    told.change('hold');
    assert.equal(stateOf(coreOf(world), 'q1', told.letter), EntryState.HELD);
    world.run(KEPT_WAIT_MS - 100);
    assert.equal(told.kept, undefined);
    world.run(200);
    assert.equal(told.kept, false);
  });

  test('of one not acknowledged at the bound, asked again, is that it is kept now; who held it first stays', () => {
    const told = waiting();
    const { world, letter } = told;
    holdAnswers(world, true);
    told.change('hold');
    world.until(() => told.kept === false, KEPT_WAIT_MS + 500, 'the bound');
    told.change('hold', 'bob');
    world.run(1000);
    assert.equal(told.kept, undefined, 'not known yet');
    holdAnswers(world, false);
    world.until(() => told.kept === true, 1000, 'it is kept');
    assert.equal(reasonOf(world, letter), 'ann: a look first');
    assert.equal(onlyQueue(world.mirror('q1')).heldCount, 1, 'held once');
  });

  test('a message that is released goes on when the mirrors know of it, not at the bound: it may end the process', () => {
    const told = waiting();
    const { world, letter } = told;
    told.change('hold');
    world.until(() => told.kept === true);
    world.hops.script = () => 'accept';
    holdAnswers(world, true);
    told.change('release');
    world.run(1000);
    assert.equal(letter.arrivals.size, 0);
    assert.equal(told.kept, undefined);
    assert.equal(reasonOf(world, letter), 'it is being released');
    assert.deepEqual(changed(coreOf(world), 'hold', letter).outcomes?.map(({ why }) => why), ['it is being released at this moment']);
    assert.deepEqual(changed(coreOf(world), 'release', letter).outcomes?.map(({ why }) => why), ['it is not held']);
    world.until(() => told.kept === false, KEPT_WAIT_MS, 'the bound');
    world.run(KEPT_WAIT_MS + 1000);
    assert.equal(letter.arrivals.size, 0);
    holdAnswers(world, false);
    world.until(() => letter.arrivals.size === 1, 5000, 'the delivery');
    world.untilQuiet();
    checkNoLoss(world.letters);
  });
});
