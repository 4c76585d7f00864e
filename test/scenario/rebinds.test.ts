/** Mail that an operator leads by another route, src/gateway/orders/rebinding.ts: where it goes, with what, and in whose hands. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { QueueOrderAnswer, Selector } from '../../src/admin-api/queue-orders.js';
import { formatMessageId } from '../../src/base/text-id.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import type { LeftOrder } from '../../src/register/records.js';
import { doById } from './by-id.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { coreOf, stateOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const S = EntryState;
const MEBIBYTE = 1024 * 1024;
const BYTES = 100_000;
const WHO = { reason: 'their network is gone', who: 'ann' };

/** The order goes; how far it is. */
function given(world: World, selector: Selector, route = 'q2'): () => QueueOrderAnswer {
  const { orders } = coreOf(world);
  const begun = orders.begin({ verb: 'rebind', selector, route, ...WHO });
  assert.ok(typeof begun !== 'string', String(begun));
  const answer = (): QueueOrderAnswer => orders.answerOf(begun.order) ?? assert.fail();
  world.until(() => answer().phase === 'found', 5000, 'all is looked at');
  assert.ok(orders.go(begun.order, 0));
  return answer;
}

function carriedOut(world: World, selector: Selector, route = 'q2'): QueueOrderAnswer {
  const answer = given(world, selector, route);
  world.until(() => answer().phase === 'done', 10_000, 'the order is done');
  return answer();
}

/** Mail of q1 that its next hop does not take; that of q2 takes all. */
function stuck(count: number, more: ConstructorParameters<typeof World>[0] = {}, recipients = 1): { readonly world: World; readonly letters: readonly Letter[] } {
  const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }, { name: 's', ordering: 'strict' }], ...more });
  world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'defer' : 'accept');
  const letters = world.submitMany(count, ['q1'], { recipients });
  world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === S.DEFERRED), 10_000, 'deferrals');
  return { world, letters };
}

/** Mail of q1 until its stores have no room for more; the first message is long. */
function fullStores(): { readonly world: World; readonly long: Letter; readonly others: readonly Letter[] } {
  const world = World.started({
    queues: [{ name: 'q1' }, { name: 'q2' }], gatewayMemoryBytes: 512 * MEBIBYTE, storeMemoryBytes: 48 * MEBIBYTE, windowBytes: MEBIBYTE,
  });
  world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'unreachable' : 'accept');
  const [long] = world.submitMany(1, ['q1'], { bytes: 600_000 });
  assert.ok(long !== undefined);
  world.run(500);
  const [queue] = coreOf(world).registry.byName('q1');
  assert.ok(queue !== undefined);
  const others: Letter[] = [];
  for (let shortCount = 0; shortCount < 20; shortCount = queue.partition.credit < BYTES ? shortCount + 1 : 0) {
    others.push(world.submit(['q1'], { bytes: BYTES }));
    world.run(50);
  }
  return { world, long, others: others.filter(({ outcome }) => outcome === COMMITTED) };
}

function restart(world: World): void {
  world.gateway.kill();
  world.startGateway();
}

describe('mail that an operator leads by another route', () => {
  test('goes there at once, in its order, and is gone from where it was; it stays in its partition', () => {
    const { world, letters } = stuck(20, { retryDelayMs: 60_000 });
    const [before] = coreOf(world).registry.byName('q1');
    const answer = carriedOut(world, { domain: 'q1.example' });
    assert.deepEqual([answer.matched, answer.done, answer.not_done, answer.kept], [20, 20, 0, true]);
    const [queue] = coreOf(world).registry.byName('q2');
    assert.equal(queue?.partition, before?.partition);
    world.until(() => world.letters.delivered === 20, 5000, 'at once');
    world.untilQuiet();
    assert.deepEqual(letters.map(({ arrivals }) => arrivals.size), letters.map(() => 1));
    const arrived = world.hops.arrivals.filter(({ queueName }) => queueName === 'q2').map(({ messageId }) => messageId);
    assert.equal(arrived.length, 20);
    for (const [i, id] of arrived.entries()) assert.ok(Math.abs(letters.findIndex((letter) => letter.id === id) - i) < 4, 'no further than its concurrency');
    checkNoLoss(world.letters);
    checkNoDuplicates(world.letters);
    world.assertSameContent();
  });

  test('is in the new queue after a crash when the order is done, with what became of it: who was delivered, and that it is held', () => {
    const { world, letters } = stuck(2, {}, 2);
    const [held, free] = letters;
    assert.ok(held !== undefined && free !== undefined);
    world.hops.script = ({ queueName, address }) => (queueName === 'q2' || address.startsWith('0') ? 'accept' : 'defer');
    world.until(() => letters.every(({ arrivals }) => arrivals.size === 1), 10_000, 'one recipient of each');
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === S.DEFERRED));
    assert.deepEqual(doById(coreOf(world), 'hold', held.id).whys, ['']);
    world.hops.script = () => 'unreachable';
    const answer = carriedOut(world, { everything: true });
    assert.equal(answer.done, 2);
    restart(world);
    world.until(() => stateOf(coreOf(world), 'q2', held) === S.HELD, 5000, 'the hold');
    const [queue] = coreOf(world).registry.byName('q2');
    assert.ok(queue !== undefined);
    const row = coreOf(world).entries.table.index.find(held.id, queue.handle);
    assert.equal(coreOf(world).holds.reasonOf(queue, row), 'ann: a look first');
    assert.deepEqual(coreOf(world).envelopeOf(row)?.recipients.map(({ address }) => address), ['1@q1.example']);
    world.hops.script = () => 'accept';
    world.until(() => free.arrivals.size === 2, 5000, 'the other');
    assert.equal(held.arrivals.size, 1);
    assert.deepEqual(doById(coreOf(world), 'release', held.id).whys, ['']);
    world.untilQuiet();
    checkNoLoss(world.letters);
    checkNoDuplicates(world.letters);
  });

  test('is not lost and not doubled by a crash in the middle, and starts when every copy has it', () => {
    const { world, letters } = stuck(10);
    world.holdAnswers(world.store('b'), true);
    const { orders } = coreOf(world);
    const begun = orders.begin({ verb: 'rebind', selector: { everything: true }, route: 'q2', ...WHO });
    assert.ok(typeof begun !== 'string');
    world.until(() => orders.answerOf(begun.order)?.phase === 'found');
    orders.go(begun.order, 0);
    world.run(2000);
    assert.deepEqual([orders.answerOf(begun.order)?.kept, world.letters.delivered], [false, 0]);
    restart(world);
    world.holdAnswers(world.store('b'), false);
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.deepEqual(letters.map(({ arrivals }) => [...arrivals.values()]), letters.map(() => [1]));
    world.assertSameContent();
  });

  test('of a delay waits for its time there', () => {
    const { world, letters: [letter] } = stuck(1);
    assert.ok(letter !== undefined);
    assert.deepEqual(doById(coreOf(world), 'delay', letter.id, undefined, world.gateway.wallMs() + 30_000).whys, ['']);
    assert.equal(carriedOut(world, { ids: [formatMessageId(letter.id)] }).done, 1);
    restart(world);
    world.run(25_000);
    assert.equal(letter.arrivals.size, 0);
    world.until(() => letter.arrivals.size === 1, 10_000, 'its time');
  });

  test('expires when it would have, with a report', () => {
    const { world, letters: [letter] } = stuck(1, { lifetimeMs: 10_000 });
    assert.ok(letter !== undefined);
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
    world.run(5000);
    assert.equal(carriedOut(world, { everything: true }).done, 1);
    world.until(() => letter.reports.size === 1, 6000, 'its report');
    world.untilQuiet();
    checkNoLoss(world.letters);
  });

  test('frees a strict queue of its head, and goes on from there', () => {
    const world = World.started({ queues: [{ name: 's', ordering: 'strict' }, { name: 'q2' }] });
    world.hops.script = ({ queueName }) => (queueName === 's' ? 'defer' : 'accept');
    const [head, second] = world.submitMany(2, ['s']);
    assert.ok(head !== undefined && second !== undefined);
    world.until(() => head.attempts.get('s') === 1, 5000);
    world.run(10);
    world.hops.script = ({ queueName, messageId }) => (queueName === 's' && messageId === head.id ? 'defer' : 'accept');
    assert.equal(carriedOut(world, { ids: [formatMessageId(head.id)] }).done, 1);
    world.untilQuiet();
    assert.deepEqual([head.arrivals.size, second.arrivals.size], [1, 1]);
  });

  test('of a queue that has no route any more goes on', () => {
    const { world, letters } = stuck(3);
    world.unrouted.add('q1');
    restart(world);
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === S.HELD), 10_000, 'held');
    assert.equal(carriedOut(world, { everything: true }).done, 3);
    world.untilQuiet();
    assert.equal(world.letters.delivered, 3);
  });

  test('is not done by a route that nobody knows, nor into a strict one, and not twice', () => {
    const { world } = stuck(2);
    const { orders } = coreOf(world);
    const begun = (route?: string): unknown => orders.begin({ verb: 'rebind', selector: { everything: true }, ...(route === undefined ? {} : { route }), ...WHO });
    assert.equal(begun('q9'), "this gateway has no route named 'q9'");
    assert.match(String(begun('s')), /^route 's' is strict/);
    assert.equal(begun(), 'say by which route');
    world.hops.script = () => 'unreachable';
    assert.equal(carriedOut(world, { everything: true }).done, 2);
    assert.equal(carriedOut(world, { everything: true }).matched, 0);
  });

  test('is refused where its recipients would go into several queues, and goes on as before', () => {
    const { world, letters: [near] } = stuck(1, { queues: [{ name: 'q1' }, { name: 'd', perDomain: true }] }, 2);
    const [far] = world.submitMany(1, ['q1'], { recipients: 3, hasDomains: true });
    assert.ok(near !== undefined && far !== undefined);
    world.until(() => stateOf(coreOf(world), 'q1', far) === S.DEFERRED, 5000);
    const answer = carriedOut(world, { everything: true }, 'd');
    assert.deepEqual([answer.done, answer.not_done], [1, 1]);
    assert.match(answer.refused[0]?.why ?? '', /^its recipients would go into 3 queues of that route/);
    world.until(() => near.arrivals.size === 2, 5000, 'the one of one domain');
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.equal(far.arrivals.size, 3);
  });

  test('is not led where it waits already, for others of its recipients', () => {
    const { world } = stuck(0, { partitions: 1 });
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1', 'q2']);
    world.until(() => ['q1', 'q2'].every((queue) => stateOf(coreOf(world), queue, letter) === S.DEFERRED), 10_000, 'deferrals');
    const { done, not_done: notDone, refused: [first] } = carriedOut(world, { queue: 'q1' });
    assert.deepEqual([done, notDone, first?.why], [0, 1, 'it waits in a queue of that route, too, for others of its recipients']);
    world.hops.script = () => 'accept';
    world.untilQuiet();
    checkNoDuplicates(world.letters);
  });

  test('goes though memory is full of it', () => {
    const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }], gatewayMemoryBytes: 32 * MEBIBYTE, retryDelayMs: 3_600_000 });
    world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'defer' : 'accept');
    const letters: Letter[] = [];
    while (coreOf(world).memory.admits(BYTES)) {
      letters.push(world.submit(['q1'], { bytes: BYTES }));
      world.run(20);
    }
    const answer = given(world, { everything: true });
    world.until(() => answer().phase === 'done', 60_000, 'the order is done');
    assert.ok(letters.length > 100 && answer().done === letters.length);
    world.untilQuiet();
    assert.equal(world.letters.delivered, letters.length);
  });

  test('goes though the stores are full of it, one after the other; what is long waits for room, and it is said', () => {
    const { world, long, others } = fullStores();
    const answer = given(world, { everything: true });
    world.until(() => answer().waits_for === 'no room at the stores', 1000, 'why it waits');
    world.until(() => answer().phase === 'done', 60_000, 'the order is done');
    assert.ok(others.length > 100 && answer().done === 1 + others.length);
    world.untilQuiet();
    assert.deepEqual([...others, long].filter(({ arrivals }) => arrivals.size !== 1), []);
    checkNoDuplicates(world.letters);
    world.assertSameContent();
  });

  test('of an order that is left, and has no room, lets the other mail of its queue pass', () => {
    const { world, long, others } = fullStores();
    const { orders } = coreOf(world);
    const answer = given(world, { larger_than_bytes: 500_000 });
    world.until(() => answer().waits_for !== '', 1000);
    assert.ok(orders.cancel(answer().order, WHO));
    // By a gateway that is no more.
    const left: LeftOrder = {
      verb: 'rebind', selector: { larger_than_bytes: 500_000 }, route: 'q2', ...WHO, wallMs: Math.floor(world.gateway.wallMs()), untilWallMs: 8.64e15,
      partitions: coreOf(world).registry.partitions.map(({ name }) => name),
    };
    world.gateway.register?.bridge.changeLeftOrder('gw-9-1-1', () => left, () => undefined);
    world.until(() => orders.left.count === 1, 5000, 'it is left');
    world.run(2000);
    world.hops.script = () => 'accept';
    world.until(() => others.every(({ arrivals }) => arrivals.size === 1), 60_000, 'the others');
    world.untilQuiet();
    assert.deepEqual(world.hops.arrivals.filter(({ messageId }) => messageId === long.id).map(({ queueName }) => queueName), ['q2']);
  });

  test('waits while its partition is being read', () => {
    const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }], partitions: 1, retryDelayMs: 3000, blockEntries: 7 });
    world.hops.script = () => 'defer';
    const letters = Array.from({ length: 30 }, (_, i) => world.submit(i % 2 === 0 ? ['q1', 'q2'] : ['q1'], { bytes: 300 }));
    world.run(2000);
    restart(world);
    const partition = (): Partition | undefined => world.gateway.core?.registry.partitions.find(({ name }) => name === 'gw-1/0');
    world.until(() => partition()?.isRecovering === true && (partition()?.length ?? 0) >= 7, 20_000, 'a part of it');
    for (const store of world.stores) world.holdAnswers(store, true);
    const answer = given(world, { queue: 'q1' });
    world.until(() => answer().waits_for === 'its partition is still being read', 1000, 'why it waits');
    assert.deepEqual([answer().done, partition()?.isRecovering], [0, true]);
    for (const store of world.stores) world.holdAnswers(store, false);
    world.until(() => answer().phase === 'done', 20_000, 'the order is done');
    assert.ok(answer().done > 0);
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.equal(letters.filter(({ arrivals }, i) => arrivals.size !== (i % 2 === 0 ? 2 : 1)).length, 0);
    checkNoDuplicates(world.letters);
  });

  test('stands behind what its new queue has, and new mail of that goes where it went', () => {
    const { world, letters } = stuck(3);
    world.hops.script = () => 'unreachable';
    const there = world.submitMany(3, ['q2']);
    world.run(500);
    carriedOut(world, { domain: 'q1.example' });
    const home = coreOf(world).registry.byName('q2').find((queue) => there.every(({ id }) => coreOf(world).entries.table.index.find(id, queue.handle) !== 0));
    const [later] = world.submitMany(1, ['q2']);
    world.run(500);
    assert.ok(home !== undefined && later !== undefined);
    assert.notEqual(coreOf(world).entries.table.index.find(later.id, home.handle), 0);
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.deepEqual([...letters, ...there, later].map(({ arrivals }) => arrivals.size), Array.from({ length: 7 }, () => 1));
    const arrived = world.hops.arrivals.map(({ messageId }) => messageId);
    assert.ok(arrived.indexOf(later.id) > arrived.indexOf(there[0]?.id ?? 0), 'behind older mail of its queue');
  });

  test('is led by who takes a dead gateway over, and stays so when the owner is back', () => {
    const group = Group.started({ stores: 3 });
    group.hops.script = ({ queueName }) => (queueName === 'q1' ? 'unreachable' : 'accept');
    const letters = Array.from({ length: 12 }, () => group.submit('gw-1', ['q1']));
    group.until(() => group.letters.count(COMMITTED) === 12, 'all 250s');
    group.gateway('gw-1').kill();
    const { orders } = coreOf({ gateway: group.gateway('gw-2') });
    const begun = orders.begin({ verb: 'rebind', selector: { everything: true }, route: 'q2', ...WHO });
    assert.ok(typeof begun !== 'string', String(begun));
    const told = (): QueueOrderAnswer => orders.answerOf(begun.order) ?? assert.fail();
    group.until(() => told().phase === 'found', 'all is looked at');
    orders.go(begun.order, 0);
    group.until(() => told().phase === 'done', 'it is done');
    void orders.leave(begun.order, told().partitions);
    group.until(() => letters.every(({ arrivals }) => arrivals.size === 1), 'all by the other route');
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
    group.run(5000);
    assert.equal(group.register.snapshot().list([{ prefix: 'rules/orders/' }]).length, 0, 'the order is done with');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });
});
