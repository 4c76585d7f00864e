/** Messages that an operator delays (src/gateway/queue/message-holds.ts): until when, in whose hands, for how long after. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { QueueOrderAnswer } from '../../src/admin-api/queue-orders.js';
import { formatMessageId } from '../../src/base/text-id.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { NOTIFY_DELAY } from '../../src/gateway/mail-types.js';
import { whyItIsHere } from '../../src/gateway/look/waiting-reason.js';
import { doById } from './by-id.js';
import type { MessageVerb } from './by-id.js';
import { checkAll, checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { coreOf, onlyQueue, stateOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const S = EntryState;
const WHO = { reason: 'no', who: 'ann' };

function restart(world: World): void {
  world.gateway.kill();
  world.startGateway();
}

function untilState(world: World, letter: Letter, state: EntryState, queue = 'q1'): void {
  world.until(() => stateOf(coreOf(world), queue, letter) === state, 10_000, `state ${String(state)}`);
}

/** From now, by the wall clock of the world; and kept by the copies. */
function delay(world: World, letter: Letter, forMs: number): void {
  const done = doById(coreOf(world), 'delay', letter.id, undefined, world.gateway.wallMs() + forMs);
  assert.deepEqual(done.whys, ['']);
  world.until(() => done.isKept, 5000, 'it is kept');
}

function whys(world: World, verb: MessageVerb, letter: Letter): readonly string[] {
  return doById(coreOf(world), verb, letter.id, undefined, world.gateway.wallMs() + 60_000).whys;
}

function reasonOf(world: World, letter: Letter): string {
  const core = coreOf(world);
  const queue = onlyQueue(world.mirror('q1'));
  const row = core.entries.table.index.find(letter.id, queue.handle);
  return whyItIsHere(queue, row, { core, clock: { nowMs: () => world.scheduler.nowMs, wallMs: () => world.gateway.wallMs() } });
}

/** As it is counted, and as the notes of its entries say. */
function delayedIn(world: World, name = 'q1'): number {
  const { registry, holds } = coreOf(world);
  let [counted, noted] = [0, 0];
  for (const queue of registry.byName(name)) {
    counted += queue.delayedCount;
    for (let row = queue.first; row !== 0; row = queue.following(row)) if (holds.delayOf(row) !== undefined) noted += 1;
  }
  assert.equal(counted, noted);
  return counted;
}

describe('messages that an operator delays', () => {
  test('are counted as long as they wait: over a restart, a hold, a release, another delay, a delivery in parts and their end', () => {
    const world = World.started();
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
    const letters = world.submitMany(8, ['q1'], { recipients: 2 });
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === S.DEFERRED), 10_000);
    const [a, b, c, d, e, ...others] = letters;
    assert.ok(a !== undefined && b !== undefined && c !== undefined && d !== undefined && e !== undefined);
    assert.equal(delayedIn(world), 0, 'put off by the next hop');
    for (const letter of [a, b, c, d, e]) delay(world, letter, 60_000);
    delay(world, a, 90_000);
    assert.equal(delayedIn(world), 5);
    restart(world);
    untilState(world, e, S.DEFERRED);
    assert.equal(delayedIn(world), 5);
    assert.deepEqual(whys(world, 'hold', a), ['']);
    assert.equal(delayedIn(world), 4);
    delay(world, a, 60_000);
    assert.deepEqual(whys(world, 'release', b), ['']);
    const queue = onlyQueue(world.mirror('q1'));
    const { holds, entries } = coreOf(world);
    assert.equal(holds.endEntry(queue, entries.table.index.find(c.id, queue.handle), [0, 1], 'delete', WHO), '');
    assert.equal(delayedIn(world), 3);
    assert.equal(holds.endEntry(queue, entries.table.index.find(d.id, queue.handle), [0], 'bounce', WHO), '');
    world.until(() => d.reports.size === 1, 5000, 'the report');
    untilState(world, d, S.DEFERRED);
    assert.equal(delayedIn(world), 3);
    const { orders } = coreOf(world);
    const rebind = orders.begin({ verb: 'rebind', selector: { ids: [formatMessageId(e.id)] }, route: 'q2', ...WHO });
    assert.ok(typeof rebind !== 'string', String(rebind));
    world.until(() => orders.answerOf(rebind.order)?.phase === 'found', 5000);
    assert.ok(orders.go(rebind.order, 0));
    world.until(() => orders.answerOf(rebind.order)?.phase === 'done', 5000);
    assert.deepEqual([delayedIn(world), delayedIn(world, 'q2')], [2, 1]);
    world.run(100_000);
    assert.deepEqual([delayedIn(world), delayedIn(world, 'q2')], [0, 0], 'due, and put off by the next hop');
    assert.ok(others.length > 0 && onlyQueue(world.mirror('q1')).deferredCount >= others.length);
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.deepEqual([onlyQueue(world.mirror('q1')).deferredCount, delayedIn(world)], [0, 0]);
  });

  test('are not attempted before, longer than any retry is put off, and then at once; who and until when is told', () => {
    const world = World.started();
    world.hops.script = () => 'defer';
    const [delayed] = world.submitMany(3, ['q1']);
    assert.ok(delayed !== undefined);
    untilState(world, delayed, S.DEFERRED);
    delay(world, delayed, 60_000);
    assert.match(reasonOf(world, delayed), /^it is delayed until 2026-01-01T00:01:\d\dZ: ann: a look first$/);
    const before = delayed.attempts.get('q1');
    world.hops.script = () => 'accept';
    world.until(() => world.letters.delivered === 2, 5000, 'the others');
    world.run(50_000);
    assert.equal(delayed.attempts.get('q1'), before);
    world.until(() => delayed.arrivals.size === 1, 12_000, 'its time has come');
    world.untilQuiet();
    checkAll(world.letters, world.queueNames);
  });

  test('stay so over a restart, with who and why', () => {
    const world = World.started();
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1']);
    untilState(world, letter, S.DEFERRED);
    delay(world, letter, 60_000);
    world.hops.script = () => 'accept';
    restart(world);
    untilState(world, letter, S.DEFERRED);
    world.run(20_000);
    restart(world);
    world.run(30_000);
    assert.equal(letter.arrivals.size, 0);
    assert.match(reasonOf(world, letter), /^it is delayed until .*Z: ann: a look first$/);
    world.until(() => letter.arrivals.size === 1, 15_000, 'its time has come');
    world.untilQuiet();
    checkNoLoss(world.letters);
  });

  test('live from then on as long as mail does, whatever was before, and after a restart too', () => {
    const world = World.started({ lifetimeMs: 10_000 });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
    const letter = world.submit(['q1']);
    world.run(5000);
    delay(world, letter, 30_000);
    world.run(25_000);
    restart(world);
    world.run(12_000);
    assert.equal(letter.reports.size, 0, 'it has lived for seven seconds');
    restart(world);
    world.run(1000);
    assert.equal(letter.reports.size, 0);
    world.until(() => letter.reports.size === 1, 6000, 'its time is up');
    world.untilQuiet();
    checkAll(world.letters, world.queueNames);
  });

  test('have senders who are told of the delay with the end that mail has by then, not that of its envelope', () => {
    const [lifetimeMs, forMs] = [600_000, 3_600_000];
    const world = World.started({ lifetimeMs, delayAfterMs: 60_000 });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
    const letter = world.submit(['q1'], { notify: NOTIFY_DELAY });
    world.run(5000);
    const endMs = world.gateway.wallMs() + forMs + lifetimeMs;
    delay(world, letter, forMs);
    world.until(() => letter.reports.size === 1, 200_000, 'its delay is reported');
    const told = world.gateway.lastComposed?.envelope.expiryWallMs ?? 0;
    assert.ok(Math.abs(told - endMs) < 5000, String(told - endMs));
  });

  test('are released before their time, and stay so over a restart; a flush does not mean them', () => {
    const world = World.started();
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1']);
    untilState(world, letter, S.DEFERRED);
    delay(world, letter, 3_600_000);
    const { orders } = coreOf(world);
    const flush = orders.begin({ verb: 'flush', selector: { everything: true }, reason: 'now', who: 'ann' });
    assert.ok(typeof flush !== 'string');
    const told = (): QueueOrderAnswer | undefined => orders.answerOf(flush.order);
    world.until(() => told()?.phase === 'found', 5000, 'all is looked at');
    assert.deepEqual([told()?.matched, told()?.kept_back], [0, 1]);
    world.run(3000);
    const tried = letter.attempts.get('q1');
    const released = doById(coreOf(world), 'release', letter.id);
    assert.deepEqual(released.whys, ['']);
    world.until(() => released.isKept && letter.attempts.get('q1') === (tried ?? 0) + 1, 5000, 'it is tried at once');
    world.hops.script = () => 'accept';
    restart(world);
    world.until(() => letter.arrivals.size === 1, 5000, 'the delivery');
    world.untilQuiet();
    checkNoLoss(world.letters);
  });

  test('and what is said last counts: held it waits for a release, delayed again it does not', () => {
    const world = World.started();
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1']);
    untilState(world, letter, S.DEFERRED);
    delay(world, letter, 10_000);
    assert.deepEqual(whys(world, 'hold', letter), ['']);
    world.run(20_000);
    assert.equal(stateOf(coreOf(world), 'q1', letter), S.HELD);
    delay(world, letter, 10_000);
    const queue = onlyQueue(world.mirror('q1'));
    assert.deepEqual([queue.heldCount, queue.deferredCount], [0, 1]);
    world.hops.script = () => 'accept';
    world.run(9000);
    assert.equal(letter.arrivals.size, 0);
    world.until(() => letter.arrivals.size === 1, 2000, 'the delivery');
    world.untilQuiet();
    checkNoLoss(world.letters);
  });

  test('of a strict queue free it, and come back behind what is due; after a restart too', () => {
    const world = World.started({ queues: [{ name: 's', ordering: 'strict' }] });
    world.hops.script = () => 'defer';
    const [head, second, third] = world.submitMany(3, ['s']);
    assert.ok(head !== undefined && second !== undefined && third !== undefined);
    world.until(() => head.attempts.get('s') === 1, 5000);
    world.run(10);
    delay(world, head, 20_000);
    world.hops.script = ({ messageId }) => (messageId === second.id ? 'accept' : 'defer');
    world.until(() => second.arrivals.size === 1, 5000, 'the second goes on');
    restart(world);
    world.until(() => (third.attempts.get('s') ?? 0) > 0, 5000, 'the third heads the queue');
    world.run(25_000);
    const at = world.hops.arrivals.length;
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.deepEqual(world.hops.arrivals.slice(at).map(({ messageId }) => messageId), [third.id, head.id]);
  });

  test('by one order are delayed once each, also what was in hand, though the two clocks of the process are read a millisecond apart', () => {
    const world = World.started({ retryDelayMs: 60_000 });
    world.hops.script = () => 'defer';
    const early = world.submitMany(20, ['q1']);
    world.until(() => early.every((letter) => stateOf(coreOf(world), 'q1', letter) === S.DEFERRED), 30_000);
    world.hops.replyMs = 3000;
    const inHand = world.submit(['q1']);
    untilState(world, inHand, S.IN_FLIGHT);
    const { orders } = coreOf(world);
    const given = orders.begin({ verb: 'delay', selector: { everything: true }, not_before_ms: world.gateway.wallMs() + 600_000, ...WHO });
    assert.ok(typeof given !== 'string', String(given));
    const told = (): QueueOrderAnswer | undefined => orders.answerOf(given.order);
    world.until(() => told()?.phase === 'found', 5000);
    assert.ok(orders.go(given.order, 0));
    world.until(() => told()?.waiting === 1, 2000, 'the first walk');
    for (let phase = 0; phase < 10; phase++) {
      world.run(200);
      // Whole milliseconds of the wall clock, which change between those of the monotonic one.
      world.gateway.wallAheadMs = phase % 2;
    }
    world.until(() => told()?.phase === 'done', 20_000, 'the order is done');
    assert.deepEqual([told()?.matched, told()?.done, told()?.gone_before, delayedIn(world)], [21, 21, 0, 21]);
  });

  test('and that became due in a strict queue while their process was away head it no more', () => {
    const world = World.started({ queues: [{ name: 's', ordering: 'strict' }], retryDelayMs: 5000 });
    world.hops.script = () => 'defer';
    const [head, second, third] = world.submitMany(3, ['s']);
    assert.ok(head !== undefined && second !== undefined && third !== undefined);
    world.until(() => head.attempts.get('s') === 1, 5000);
    world.run(10);
    const done = doById(coreOf(world), 'delay', third.id, undefined, world.gateway.wallMs() + 1000);
    assert.deepEqual(done.whys, ['']);
    world.until(() => done.isKept, 5000, 'it is kept');
    world.hops.script = () => 'unreachable';
    assert.deepEqual(whys(world, 'hold', head), ['']);
    world.run(2000);
    restart(world);
    world.hops.script = () => 'accept';
    world.until(() => third.arrivals.size === 1, 10_000, 'the third');
    assert.deepEqual(world.hops.arrivals.map(({ messageId }) => messageId), [second.id, third.id]);
  });

  test('and ended in part wait for the rest of their recipients until their time, longer than any retry', () => {
    const world = World.started();
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
    const letter = world.submit(['q1'], { recipients: 2 });
    untilState(world, letter, S.DEFERRED);
    delay(world, letter, 30_000);
    const { holds, entries } = coreOf(world);
    const queue = onlyQueue(world.mirror('q1'));
    const row = entries.table.index.find(letter.id, queue.handle);
    assert.equal(holds.endEntry(queue, row, [0], 'bounce', { reason: 'no', who: 'ann' }), '');
    world.until(() => letter.reports.size === 1, 5000, 'the report');
    world.hops.script = () => 'accept';
    world.run(20_000);
    assert.equal(letter.arrivals.size, 0);
    world.until(() => letter.arrivals.size === 1, 12_000, 'its time has come');
    world.untilQuiet();
    checkAll(world.letters, world.queueNames);
  });

  test('can not be what is held for another reason', () => {
    const world = World.started();
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1']);
    untilState(world, letter, S.DEFERRED);
    world.unrouted.add('q1');
    restart(world);
    untilState(world, letter, S.HELD);
    assert.deepEqual(whys(world, 'delay', letter), ['no operator holds it: queue show says why it waits']);
  });

  test('are delayed by who takes their queue over, and by their owner when it is back', () => {
    const group = Group.started();
    group.hops.script = () => 'defer';
    const letters = [1, 2, 3].map(() => group.submit('gw-1', ['q1']));
    const [delayed] = letters;
    assert.ok(delayed !== undefined);
    const stateIn = (id: string): number | undefined => stateOf(coreOf({ gateway: group.gateway(id) }), 'q1', delayed);
    group.until(() => stateIn('gw-1') === S.DEFERRED, 'the deferral');
    const told = doById(coreOf({ gateway: group.gateway('gw-1') }), 'delay', delayed.id, undefined, group.gateway('gw-1').wallMs() + 300_000);
    group.until(() => told.isKept, 'it is kept');
    group.gateway('gw-1').kill();
    group.hops.script = () => 'accept';
    group.until(() => letters.filter((letter) => letter.arrivals.size === 1).length === 2, 'the rescued deliveries');
    group.run(2000);
    assert.equal(stateIn('gw-2'), S.DEFERRED);
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
    group.until(() => stateIn('gw-1') === S.DEFERRED, 'the delay at the owner');
    group.run(10_000);
    assert.equal(delayed.arrivals.size, 0);
    group.until(() => delayed.arrivals.size === 1, 'its time has come', 300_000);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });
});
