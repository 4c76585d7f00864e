/** Which queues the status names because their mail does not get on, since when, and which it does not. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HurtingAnswer } from '../../src/admin-api/gateway-answers.js';
import { MessageView } from '../../src/gateway/look/message-view.js';
import { HurtingQueues } from '../../src/gateway/queue/hurting-queues.js';
import { doById } from './by-id.js';
import { coreOf } from './inspect.js';
import { World } from './world.js';

interface Field {
  readonly world: World;
  /** Queues whose next hop is down. */
  readonly down: Set<string>;
  /** Looks each second for so long. */
  watch(seconds: number): HurtingAnswer;
  named(seconds: number): readonly (readonly [string, string])[];
}

function field(): Field {
  const world = World.started({ queues: [{ name: 'fifo' }, { name: 'strict', ordering: 'strict' }] });
  const { core } = world.gateway;
  assert.ok(core !== undefined);
  const down = new Set<string>();
  const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => world.gateway.wallMs() };
  const view = new MessageView({ clock, core });
  const hurting = new HurtingQueues({
    table: core.entries.table, byHandle: () => core.registry.byHandle, isDown: ({ name }) => down.has(name),
    nextTryOf: (queue) => view.nextTryOf(queue), nowSeconds: () => Math.floor(core.frame.wallMs() / 1000),
  });
  const watch = (seconds: number): HurtingAnswer => {
    for (let second = 0; second < seconds; second++) {
      world.run(1000);
      hurting.watch(world.scheduler.nowMs);
    }
    return hurting.answer();
  };
  return { world, down, watch, named: (seconds) => watch(seconds).queues.map((one) => [one.queue_name, one.problem]) };
}

describe('a queue that hurts', () => {
  test('is one whose next hop puts mail off; of a strict one the head alone', () => {
    const { world, watch, named } = field();
    world.hops.script = () => 'defer';
    world.submitMany(20, ['fifo']);
    world.submitMany(9, ['strict']);
    assert.deepEqual(named(6), [['fifo', 'deferred'], ['strict', 'deferred']], 'the longer one first');
    const [first] = watch(0).queues;
    const since = first?.since ?? 0;
    assert.deepEqual([first?.messages, first?.deferred, first?.last_error], [20, 20, 'not now']);
    assert.ok((first?.bytes ?? 0) > 0);
    for (const { next_try: at } of watch(0).queues) assert.ok(Math.abs(Number(at) * 1000 - world.gateway.wallMs()) < 600_000, `tried again at ${String(at)}`);
    const later = watch(60);
    assert.deepEqual(later.counts, { refused: 0, deferred: 2, growing: 0, slow: 0 });
    assert.equal(later.queues[0]?.since, since, 'since it began');
    world.hops.script = () => 'accept';
    for (let look = 0; look < 100 && watch(5).queues.length > 0; look++);
    assert.deepEqual(watch(5).queues, [], 'nothing when all is delivered');
  });

  test('is one whose next hop refuses most recipients for good, though nothing waits; a few are none, nor what was long ago', () => {
    const { world, watch, named } = field();
    const { hops } = world;
    const refuse = (): void => { hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'reject'); };
    refuse();
    world.submitMany(9, ['strict']);
    world.submitMany(15, ['fifo']);
    assert.deepEqual(named(6), [['fifo', 'refused']], 'ten at least');
    const [hurt] = watch(0).queues;
    assert.deepEqual([hurt?.messages, hurt?.tried, hurt?.refused, hurt?.last_error], [0, 15, 15, 'no such user']);
    assert.deepEqual(watch(0).counts, { refused: 1, deferred: 0, growing: 0, slow: 0 });
    hops.script = () => 'accept';
    world.submitMany(14, ['fifo']);
    assert.deepEqual(named(6), [['fifo', 'refused']], 'half of them');
    world.submitMany(2, ['fifo']);
    assert.deepEqual(named(6), [], 'less than half');
    refuse();
    world.submitMany(40, ['fifo']);
    const { since = 0 } = watch(6).queues[0] ?? {};
    assert.ok(since > (hurt?.since ?? 0), 'it counts from when it began again');
    world.submit(['fifo']);
    assert.equal(watch(50).queues[0]?.since, since);
    assert.deepEqual(named(75), [], 'nothing was tried for two minutes');
  });

  test('is refused also when its mail comes one at a time, so that it moves each time it runs empty', () => {
    const { world, watch } = field();
    world.hops.script = () => 'reject';
    const homes = new Set<string>();
    for (let second = 0; second < 15; second++) {
      for (let i = 0; i < 3; i++) {
        world.submit(['fifo']);
        world.run(200);
        for (const { name, partition } of world.gateway.core?.registry.queues() ?? []) if (name === 'fifo') homes.add(partition.name);
      }
      watch(1);
    }
    assert.ok(homes.size > 2, `it has moved: ${[...homes].join(' ')}`);
    const { counts, queues: [hurt] } = watch(5);
    assert.deepEqual([counts.refused, hurt?.tried, hurt?.refused, hurt?.last_error], [1, 45, 45, 'no such user']);
  });

  test('is refused alone of what it is, and by what its next hop says; not while it is down, stopped, or served elsewhere', () => {
    const { world, down, watch, named } = field();
    const { core } = world.gateway;
    assert.ok(core !== undefined);
    const [quiet, refused] = [{ refused: 0, deferred: 0, growing: 0, slow: 0 }, { refused: 1, deferred: 0, growing: 0, slow: 0 }];
    world.hops.script = () => 'unfit';
    world.submitMany(40, ['fifo']);
    assert.deepEqual(watch(6).counts, quiet, 'nobody has asked it');
    let tried = 0;
    world.hops.script = ({ earlier, queueName }) => (queueName === 'senders' || queueName === 'strict' ? 'accept' : earlier > 0 || tried++ >= 58 ? 'defer' : 'reject');
    watch(180);
    world.submitMany(60, ['fifo']);
    assert.deepEqual([watch(6).counts, world.gateway.core?.registry.byName('fifo').some(({ deferredCount }) => deferredCount === 2)], [refused, true], 'it is one of them');
    down.add('fifo');
    assert.deepEqual(watch(6).counts, quiet);
    down.clear();
    assert.deepEqual(named(6), [['fifo', 'refused']]);
    const queues = core.registry.byName('fifo');
    for (const queue of queues) queue.isSuspended = true;
    assert.deepEqual(watch(6).counts, quiet);
    for (const queue of queues) queue.isSuspended = false;
    assert.deepEqual(named(6), [['fifo', 'refused']]);
    for (const { partition } of queues) core.forgetPartition(partition);
    assert.deepEqual([...core.registry.byName('fifo'), ...watch(0).queues], []);
  });

  test('is none for reports that nobody wants, and begins anew when nothing was refused for long', () => {
    const { world, watch } = field();
    world.hops.script = () => 'reject';
    world.submitMany(15, ['fifo']);
    const { counts, queues: [hurt] } = watch(6);
    assert.deepEqual([counts.refused, hurt?.queue_name, hurt?.tried], [1, 'fifo', 15]);
    watch(180);
    world.hops.script = () => 'accept';
    world.submitMany(40, ['fifo']);
    assert.equal(watch(6).counts.refused, 0);
    world.hops.script = () => 'reject';
    world.submitMany(15, ['fifo']);
    assert.deepEqual(watch(6).queues.map(({ tried }) => tried), [15], 'nothing is kept of one that refuses nothing');
  });

  test('is none for what an operator delays: only what the next hop puts off beside it counts', () => {
    const { world, watch } = field();
    world.hops.script = () => 'defer';
    const letters = world.submitMany(20, ['fifo']);
    assert.equal(watch(6).queues[0]?.deferred, 20);
    const untilMs = world.gateway.wallMs() + 7_200_000;
    const [last, ...others] = letters.toReversed();
    for (const { id } of others) assert.deepEqual(doById(coreOf(world), 'delay', id, undefined, untilMs).whys, ['']);
    const [hurt] = watch(6).queues;
    assert.equal(hurt?.deferred, 1);
    assert.ok(Number(hurt.next_try) * 1000 < untilMs - 3_600_000, 'as its next hop is tried, not as the operator has said');
    assert.deepEqual(doById(coreOf(world), 'delay', last?.id ?? 0, undefined, untilMs).whys, ['']);
    assert.deepEqual(watch(6).counts, { refused: 0, deferred: 0, growing: 0, slow: 0 });
  });

  test('is one that has waited for a minute, though its next hop is there', () => {
    const { world, down, named, watch } = field();
    world.hops.script = () => 'hang';
    world.submitMany(20, ['fifo']);
    assert.deepEqual(named(55), []);
    assert.deepEqual(named(15), [['fifo', 'slow']]);
    down.add('fifo');
    assert.deepEqual(named(5), [], 'whose next hop is down is named by that');
    down.clear();
    for (const queue of world.gateway.core?.registry.queues() ?? []) queue.isSuspended = true;
    assert.deepEqual(watch(5), { counts: { refused: 0, deferred: 0, growing: 0, slow: 0 }, queues: [] }, 'an operator has stopped it');
  });

  test('is one that grows by many while what could start waits', () => {
    const { world, named } = field();
    world.hops.script = () => 'hang';
    world.submitMany(600, ['fifo']);
    assert.deepEqual(named(12), []);
    world.submitMany(600, ['fifo']);
    assert.deepEqual(named(5), [['fifo', 'growing']]);
    assert.deepEqual(named(115), [['fifo', 'slow']], 'it grows no more');
  });
});
