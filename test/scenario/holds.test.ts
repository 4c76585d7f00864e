/** Messages that an operator holds and releases, and what the operator is told of it (DESIGN "Control queue"). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KEPT_WAIT_MS } from '../../src/gateway/control/kept-waits.js';
import type { HoldOutcome } from '../../src/gateway/control/message-holds.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { checkNoLoss } from './checks.js';
import { coreOf, stateOf, onlyQueue } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

function restart(world: World): void {
  world.gateway.kill();
  world.gateway.start();
}

describe('messages that an operator holds', () => {
  test('stay held over a restart, alone, and go on when they are released', () => {
    const world = World.started();
    world.hops.script = () => 'defer';
    const [held] = world.submitMany(5, ['q1']);
    assert.ok(held !== undefined);
    world.until(() => stateOf(coreOf(world), 'q1', held) === EntryState.DEFERRED);
    const { holds } = coreOf(world).control;
    assert.deepEqual(holds.hold({ messageId: held.id, reason: 'a look first', who: 'ann' }), [{ queue: 'q1', queueClass: 'mail', owner: 'gw-1', done: true, why: '' }]);
    assert.deepEqual(holds.hold({ messageId: 1, reason: 'none', who: 'ann' }), []);
    world.run(200);
    world.hops.script = () => 'accept';
    restart(world);
    world.until(() => world.letters.delivered === 4);
    world.run(3000);
    assert.equal(held.arrivals.size, 0);
    const mirror = world.mirror('q1');
    assert.equal(coreOf(world).control.holds.reasonOf(onlyQueue(mirror), coreOf(world).entries.table.index.find(held.id, onlyQueue(mirror).handle)), 'ann: a look first');
    coreOf(world).control.holds.release({ messageId: held.id, reason: 'looked', who: 'ann' });
    world.untilQuiet();
    checkNoLoss(world.letters);
    restart(world);
    world.untilQuiet();
    assert.equal(coreOf(world).control.queues.own.size, 0);
  });

  test('a strict queue goes on without its deferred head', () => {
    const world = World.started({ queues: [{ name: 's', ordering: 'strict' }] });
    world.hops.script = () => 'defer';
    const [head] = world.submitMany(3, ['s']);
    assert.ok(head !== undefined);
    world.run(300);
    world.hops.script = ({ messageId }) => (messageId === head.id ? 'defer' : 'accept');
    coreOf(world).control.holds.hold({ messageId: head.id, reason: 'in the way', who: 'ann' });
    world.until(() => world.letters.delivered === 2, 5000);
    coreOf(world).control.holds.release({ messageId: head.id, reason: 'mended', who: 'ann' });
    world.hops.script = () => 'accept';
    world.untilQuiet();
    checkNoLoss(world.letters);
  });
});

describe('what an operator is told of a hold', () => {
  interface Told {
    readonly world: World;
    readonly letter: Letter;
    /** Whether the last change is kept; undefined while that is not answered. */
    kept: boolean | undefined;
    change(verb: 'hold' | 'release'): readonly HoldOutcome[];
  }

  /** One message waits. Each change notes when its answer comes; `onKept` is called at that moment. */
  function waiting(onKept: () => void = () => {}): Told {
    const world = World.started();
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1']);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED);
    // The control queue is there already.
    coreOf(world).control.queues.own.set('other', Uint8Array.of(1));
    world.untilLevel();
    const told: Told = {
      world, letter, kept: undefined,
      change: (verb) => {
        const { control } = coreOf(world);
        const outcomes = control[verb]({ messageId: letter.id, reason: 'a look first', who: 'ann' });
        told.kept = undefined;
        control.whenKept(outcomes.map(({ owner }) => owner), (kept) => {
          told.kept = kept;
          onKept();
        });
        return outcomes;
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
    assert.deepEqual(told.change('hold').map(({ done }) => done), [true]);
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
    const { holds, queues } = coreOf(world).control;
    assert.deepEqual(holds.hold({ messageId: letter.id, reason: 'again', who: 'bob' }).map(({ done, why }) => [done, why]), [[true, '']]);
    told.change('hold');
    world.run(1000);
    assert.equal(told.kept, undefined, 'not known yet');
    holdAnswers(world, false);
    world.until(() => told.kept === true, 1000, 'it is kept');
    const mirror = world.mirror('q1');
    assert.equal(holds.reasonOf(onlyQueue(mirror), coreOf(world).entries.table.index.find(letter.id, onlyQueue(mirror).handle)), 'ann: a look first');
    assert.deepEqual([onlyQueue(mirror).heldCount, queues.own.size], [1, 2], 'held once');
  });

  test('a message that is released goes on when the mirrors know of it: it may end the process', () => {
    const told = waiting();
    const { world, letter } = told;
    told.change('hold');
    world.until(() => told.kept === true);
    world.hops.script = () => 'accept';
    holdAnswers(world, true);
    assert.deepEqual(told.change('release').map(({ done }) => done), [true]);
    world.run(1000);
    assert.equal(letter.arrivals.size, 0);
    assert.equal(told.kept, undefined);
    assert.deepEqual(told.change('hold').map(({ why }) => why), ['it is being released at this moment']);
    holdAnswers(world, false);
    world.until(() => letter.arrivals.size === 1, 5000, 'the delivery');
    world.untilQuiet();
    checkNoLoss(world.letters);
  });

  test('with nothing written down there is nothing to wait for', () => {
    const world = World.started();
    let kept: boolean | undefined;
    coreOf(world).control.whenKept(['gw-1'], (answer) => { kept = answer; });
    assert.equal(kept, true);
  });
});
