/** What orders are about to end, or to lead elsewhere, stays until they do it or are over, src/gateway/orders/keeping-back.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { OrderVerb, QueueOrderAnswer, Selector } from '../../src/admin-api/queue-orders.js';
import { formatMessageId } from '../../src/base/text-id.js';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import { whyItIsHere } from '../../src/gateway/look/waiting-reason.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkAll, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { coreOf, stateOf } from './inspect.js';
import type { Letter } from './letters.js';
import type { QueueOptions } from './world.js';
import { World } from './world.js';

const WHO = { reason: 'a flood', who: 'ann' };
const FLOODER = 'x@senders.example';
const OF_FLOODER: Selector = { sender: FLOODER };
const S = EntryState;

interface Timed { until(condition: () => boolean, boundMs: number, what: string): void }

/** It goes, and has this grace. */
function gone(core: GatewayCore, world: Timed, verb: OrderVerb, selector: Selector, graceMs = 60_000, route?: string): () => QueueOrderAnswer {
  const { orders } = core;
  const begun = orders.begin({ verb, selector, ...WHO, ...(route === undefined ? {} : { route }) });
  assert.ok(typeof begun !== 'string', String(begun));
  const answer = (): QueueOrderAnswer => orders.answerOf(begun.order) ?? assert.fail();
  world.until(() => answer().phase === 'found', 20_000, 'all is looked at');
  assert.ok(orders.go(begun.order, graceMs));
  return answer;
}

function taken(core: GatewayCore, answer: QueueOrderAnswer): void {
  assert.ok(core.orders.cancel(answer.order, WHO));
}

/** Mail of a flooder and of others, turn by turn, all of it due and none of it tried; the next hop takes all from now on. */
function flooded(count: number, queue: Partial<QueueOptions> = {}, more: ConstructorParameters<typeof World>[0] = {}): { readonly world: World; readonly flood: readonly Letter[]; readonly others: readonly Letter[] } {
  const world = World.started({ queues: [{ name: 'q1', concurrency: 1, ...queue }, { name: 'q2' }], partitions: 1, ...more });
  world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'unreachable' : 'accept');
  const [flood, others]: [Letter[], Letter[]] = [[], []];
  for (let i = 0; i < count; i++) {
    flood.push(world.submit(['q1'], { reversePath: FLOODER }));
    others.push(world.submit(['q1']));
  }
  const isReady = (letter: Letter): boolean => stateOf(coreOf(world), 'q1', letter) === S.READY;
  world.until(() => [...flood, ...others].every(isReady), 20_000, 'mail that is due');
  return { world, flood, others };
}

function open(world: World): void {
  world.hops.script = () => 'accept';
}

function arrived(letters: readonly Letter[]): number {
  return letters.filter(({ arrivals }) => arrivals.size > 0).length;
}

/** Message ids in the order in which they arrived since. */
function sequence(world: World, since = 0): readonly number[] {
  return world.hops.arrivals.slice(since).map(({ messageId }) => messageId);
}

function ids(letters: readonly Letter[]): readonly number[] {
  return letters.map(({ id }) => id);
}

describe('what an order is about to end', () => {
  test('stays in its grace while other mail of the queue flows; taken back it goes on at once, in its order', () => {
    const { world, flood, others } = flooded(50);
    const core = coreOf(world);
    const answer = gone(core, world, 'delete', OF_FLOODER);
    open(world);
    world.run(30_000);
    assert.deepEqual([answer().phase, arrived(flood), sequence(world)], ['grace', 0, ids(others)]);
    const later = world.submit(['q1'], { reversePath: FLOODER });
    world.run(1000);
    assert.equal(later.arrivals.size, 1, 'what comes after the order is not meant');
    taken(core, answer());
    world.run(1000);
    assert.deepEqual(sequence(world, 51), ids(flood));
    world.untilQuiet();
    checkAll(world.letters, []);
  });

  for (const verb of ['delete', 'bounce', 'expire', 'rebind'] as const) {
    test(`stays before a ${verb} in its grace, and is dealt with when that is over`, () => {
      const { world, flood, others } = flooded(20);
      const answer = gone(coreOf(world), world, verb, OF_FLOODER, 30_000, verb === 'rebind' ? 'q2' : undefined);
      open(world);
      world.run(29_000);
      assert.deepEqual([arrived(flood), arrived(others), answer().done], [0, 20, 0]);
      world.until(() => answer().phase === 'done', 5000, 'the end');
      const { matched, done, gone_before: before, not_done: notDone } = answer();
      assert.deepEqual([matched, done, before, notDone], [20, 20, 0, 0]);
      world.untilQuiet();
      assert.deepEqual(world.hops.arrivals.filter(({ queueName }) => queueName === 'q1').length, 20);
      assert.equal(arrived(flood), verb === 'rebind' ? 20 : 0);
      assert.ok(flood.every(({ reports }) => reports.size === (verb === 'bounce' || verb === 'expire' ? 1 : 0)));
    });
  }

  test('is not tried again when that is due, and what is in flight ends and counts as gone before', () => {
    const { world, flood } = flooded(20, { concurrency: 40 }, { retryDelayMs: 5000 });
    const [first, ...rest] = flood;
    assert.ok(first !== undefined);
    world.hops.script = ({ messageId, queueName }) => (queueName === 'q1' && messageId !== first.id ? 'defer' : 'accept');
    world.hops.replyMs = 8000;
    world.until(() => stateOf(coreOf(world), 'q1', first) === S.IN_FLIGHT, 5000, 'attempts');
    const answer = gone(coreOf(world), world, 'delete', OF_FLOODER);
    world.run(10_000);
    open(world);
    world.run(40_000);
    assert.deepEqual([first.arrivals.size, arrived(rest), answer().phase], [1, 0, 'grace']);
    assert.ok(rest.every((letter) => stateOf(coreOf(world), 'q1', letter) === S.READY));
    world.until(() => answer().phase === 'done', 20_000, 'the end');
    const { matched, done, gone_before: before } = answer();
    assert.deepEqual([matched, done, before, arrived(rest)], [20, 19, 1, 0]);
  });

  test('of a strict queue stands with all that is behind it; taken back its order is exact', () => {
    const { world, flood, others } = flooded(5, { ordering: 'strict' });
    const [head] = others;
    assert.ok(head !== undefined && flood[0] !== undefined);
    const answer = gone(coreOf(world), world, 'delete', { ids: [...flood.slice(1)].map(({ id }) => formatMessageId(id)) });
    open(world);
    world.run(30_000);
    assert.deepEqual(sequence(world), [flood[0].id, head.id], 'what is before it flows');
    taken(coreOf(world), answer());
    world.untilQuiet();
    assert.deepEqual(sequence(world), flood.flatMap(({ id }, i) => [id, others[i]?.id]));
    checkAll(world.letters, ['q1']);
  });

  test('of a strict queue makes way, as soon as it is ended, for what is behind it', () => {
    const { world, others } = flooded(3, { ordering: 'strict' });
    const answer = gone(coreOf(world), world, 'delete', OF_FLOODER, 10_000);
    open(world);
    world.run(9000);
    assert.equal(world.hops.arrivals.length, 0);
    world.until(() => answer().done === 3, 5000, 'the order acts');
    world.run(1000);
    assert.deepEqual(sequence(world), ids(others));
  });

  test('does not expire by itself in the grace, nor is its sender told that it is late', () => {
    const { world, flood, others } = flooded(3, {}, { lifetimeMs: 20_000, delayAfterMs: 8000, delayUnasked: true });
    const answer = gone(coreOf(world), world, 'delete', OF_FLOODER);
    world.run(50_000);
    assert.equal(answer().phase, 'grace');
    assert.ok(flood.every(({ reports }) => reports.size === 0));
    assert.ok(others.every(({ reports }) => [...reports.keys()].join() === 'delay 0@q1.example,failure 0@q1.example'), JSON.stringify(others.map(({ reports }) => [...reports.keys()])));
    world.until(() => answer().phase === 'done', 20_000, 'the end');
    assert.equal(answer().done, 3);
    world.untilQuiet();
    assert.ok(flood.every(({ reports, ended }) => reports.size === 0 && ended.size === 1));
  });

  test('counts as gone before for what else became of it: delivered, expired, ended by another order', () => {
    const world = World.started({ queues: [{ name: 'q1' }], partitions: 1, lifetimeMs: 60_000, retryDelayMs: 600_000 });
    const core = coreOf(world);
    world.hops.script = () => 'unreachable';
    const sent = (count: number): readonly Letter[] => Array.from({ length: count }, () => world.submit(['q1'], { reversePath: FLOODER }));
    const expired = sent(5);
    world.run(40_000);
    const [delivered, bounced, deleted] = [sent(10), sent(4), sent(20)];
    world.run(2000);
    const begun = core.orders.begin({ verb: 'delete', selector: OF_FLOODER, ...WHO });
    assert.ok(typeof begun !== 'string', String(begun));
    const answer = (): QueueOrderAnswer => core.orders.answerOf(begun.order) ?? assert.fail();
    world.until(() => answer().phase === 'found', 2000, 'all is looked at');
    const passing = new Set(ids(delivered));
    world.hops.script = ({ messageId, queueName }) => (queueName === 'q1' && !passing.has(messageId) ? 'defer' : 'accept');
    const other = gone(core, world, 'bounce', { ids: bounced.map(({ id }) => formatMessageId(id)) }, 0);
    world.until(() => other().phase === 'done' && arrived(delivered) === 10 && expired.every(({ reports }) => reports.size === 1), 30_000, 'all that leaves otherwise');
    assert.ok(core.orders.go(begun.order, 0));
    world.until(() => answer().phase === 'done', 10_000, 'the end');
    world.untilQuiet();
    const { matched, done, gone_before: before, not_done: notDone } = answer();
    const left = [...delivered, ...expired, ...bounced].filter(({ arrivals, reports }) => arrivals.size + reports.size === 1).length;
    const ended = deleted.filter(({ arrivals, reports, ended: none }) => arrivals.size + reports.size === 0 && none.size === 1).length;
    assert.deepEqual([left, ended], [19, 20]);
    assert.deepEqual([matched, done, before, notDone], [left + ended, ended, left, 0]);
  });

  test('is not handed out either when there is no grace', () => {
    const { world, flood, others } = flooded(3000);
    open(world);
    const answer = gone(coreOf(world), world, 'delete', OF_FLOODER, 0);
    const before = arrived(flood);
    world.until(() => answer().phase === 'done', 60_000, 'the end');
    assert.ok(arrived(flood) <= before + 1, 'but for one that was in flight');
    assert.equal(answer().matched, answer().done + answer().gone_before);
    world.untilQuiet();
    assert.equal(arrived(others), 3000);
  });

  test('is kept back, however much it is, while other queues and other mail of its queue flow', () => {
    const { world, flood } = flooded(1);
    world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'unreachable' : 'accept');
    const more = world.submitMany(12_000, ['q1'], { reversePath: FLOODER });
    const last = world.submit(['q1']);
    world.until(() => stateOf(coreOf(world), 'q1', last) === S.READY, 60_000, 'all is there');
    const answer = gone(coreOf(world), world, 'delete', OF_FLOODER);
    open(world);
    const other = world.submit(['q2']);
    world.until(() => other.arrivals.size === 1, 500, 'the other queue');
    world.until(() => last.arrivals.size === 1, 3000, 'what stands behind all of it');
    assert.equal(arrived([...flood, ...more]), 0);
    const at = world.hops.arrivals.length;
    taken(coreOf(world), answer());
    const readyCount = coreOf(world).registry.byName('q1')[0]?.readyCount ?? 0;
    assert.ok(readyCount > 0 && readyCount <= 2500, `${String(readyCount)} are let go in one turn`);
    world.until(() => world.hops.arrivals.length === at + 12_001, 120_000, 'all the rest');
    assert.deepEqual(sequence(world, at), ids([...flood, ...more]));
  });

  test('by two orders stays when one of them is taken back, and what that one alone meant goes on', () => {
    const { world, flood, others } = flooded(5);
    const core = coreOf(world);
    const all = gone(core, world, 'bounce', { queue: 'q1' });
    const some = gone(core, world, 'delete', OF_FLOODER);
    open(world);
    world.run(10_000);
    assert.equal(world.hops.arrivals.length, 0);
    taken(core, all());
    world.run(5000);
    assert.deepEqual(sequence(world), ids(others));
    taken(core, some());
    world.untilQuiet();
    assert.deepEqual(sequence(world), [...ids(others), ...ids(flood)]);
  });

  test('by a large order stays where it is when a small one is taken back: what is behind it flows', () => {
    const { world, flood } = flooded(1);
    world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'unreachable' : 'accept');
    const more = world.submitMany(3000, ['q1'], { reversePath: FLOODER });
    const few = Array.from({ length: 3 }, () => world.submit(['q1'], { reversePath: 'y@senders.example' }));
    world.until(() => few.every((letter) => stateOf(coreOf(world), 'q1', letter) === S.READY), 60_000, 'all is there');
    const core = coreOf(world);
    const large = gone(core, world, 'delete', OF_FLOODER, 100_000);
    const small = gone(core, world, 'bounce', { sender: 'y@senders.example' }, 100_000);
    open(world);
    world.run(5000);
    const [queue] = core.registry.byName('q1');
    const at = world.hops.arrivals.length;
    taken(core, small());
    let readyMost = queue?.readyCount ?? 0;
    for (let i = 0; i < 100; i++) {
      world.run(10);
      readyMost = Math.max(readyMost, queue?.readyCount ?? 0);
    }
    assert.ok(readyMost <= few.length, `${String(readyMost)} stand in front again`);
    assert.deepEqual(sequence(world, at), ids(few));
    taken(core, large());
    world.until(() => world.hops.arrivals.length === at + few.length + 3001, 120_000, 'all the rest');
    assert.deepEqual(sequence(world, at + few.length), ids([...flood, ...more]));
  });

  test('by an attempt that never began comes back before the others', () => {
    const { world, flood } = flooded(6, { concurrency: 2 });
    world.run(400);
    // The first two are out at this moment.
    world.hops.dotMs = 3000;
    world.until(() => coreOf(world).registry.byName('q1').some(({ inFlightCount }) => inFlightCount === 2), 2000, 'attempts');
    const answer = gone(coreOf(world), world, 'delete', { queue: 'q1' });
    open(world);
    world.hops.dotMs = 2;
    world.run(10_000);
    assert.equal(world.hops.arrivals.length, 0);
    const [queue] = coreOf(world).registry.byName('q1');
    taken(coreOf(world), answer());
    const order: number[] = [];
    for (let row = queue?.firstReady ?? 0; row !== 0; row = queue?.readyBehind(row) ?? 0) order.push(coreOf(world).entries.table.position.get(row));
    assert.deepEqual(order, [...order].sort((a, b) => a - b));
    world.untilQuiet();
    assert.equal(arrived(flood), 6);
  });

  test('is let go when the order is through, if it was not done to it', () => {
    const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }] });
    world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'defer' : 'unreachable');
    const [first, second] = [world.submit(['q1']), world.submit(['q2'])];
    world.until(() => stateOf(coreOf(world), 'q1', first) === S.DEFERRED, 10_000, 'a deferral');
    const answer = gone(coreOf(world), world, 'delete', { reply: '4.3.0' }, 20_000);
    world.hops.script = ({ queueName }) => (queueName === 'q2' ? 'defer' : 'accept');
    world.until(() => stateOf(coreOf(world), 'q2', second) === S.DEFERRED, 5000, 'more that is meant');
    open(world);
    world.run(10_000);
    assert.deepEqual([first.arrivals.size, second.arrivals.size], [0, 0]);
    world.until(() => answer().phase === 'done', 20_000, 'the end');
    assert.equal(answer().done, 1);
    world.until(() => second.arrivals.size + first.arrivals.size === 1, 2000, 'the other one');
  });

  test('makes room for what stands behind it where memory is short', () => {
    const group = Group.started({ partitions: 1, memoryBytes: { 'gw-2': 1024 * 1024 }, storeMemoryBytes: 64 * 1024 * 1024, blockEntries: 100, segmentBytes: 16 * 1024 });
    group.hops.script = () => 'unreachable';
    const sent = (from: string): Letter => {
      const letter = group.submit('gw-1', ['q1'], from, 20_000);
      group.until(() => letter.outcome === COMMITTED, 'a commit');
      return letter;
    };
    const flood = Array.from({ length: 200 }, () => sent(FLOODER));
    const others = Array.from({ length: 20 }, () => sent('y@senders.example'));
    group.gateway('gw-1').kill();
    group.until(() => group.served('gw-2', 'gw-1').some(({ isRecovering, length }) => !isRecovering && length === 220), 'the takeover', 240_000);
    const core = coreOf({ gateway: group.gateway('gw-2') });
    const answer = gone(core, { until: (condition, boundMs, what) => { group.until(condition, what, boundMs); } }, 'delete', OF_FLOODER, 60_000);
    group.hops.script = () => 'accept';
    group.until(() => arrived(others) === 20, 'the others', 20_000);
    assert.deepEqual([arrived(flood), answer().phase], [0, 'grace']);
    group.until(() => answer().phase === 'done', 'the end', 120_000);
    assert.equal(arrived(flood), 0);
  });

  test('is let go when the order is taken back, though the DNS says other hosts of its queue since', () => {
    const world = World.started({ queues: [{ name: 'q1', perDomain: true, isByMx: true }] });
    world.hops.script = () => 'unreachable';
    const letter = world.submit(['q1']);
    const [queue] = [...coreOf(world).registry.queues()];
    assert.ok(queue !== undefined);
    coreOf(world).onWay(queue, ['mx1.host']);
    const answer = gone(coreOf(world), world, 'delete', { site: 'mx1.host' });
    open(world);
    world.run(5000);
    assert.deepEqual([answer().matched, letter.arrivals.size, queue.keepsAny], [1, 0, true]);
    coreOf(world).onWay(queue, ['mx2.host']);
    taken(coreOf(world), answer());
    world.untilQuiet();
    assert.equal(letter.arrivals.size, 1);
  });

  test('is let go where nothing was done to any of it for long', () => {
    const { world, flood } = flooded(4);
    const [partition] = coreOf(world).registry.partitions;
    assert.ok(partition !== undefined);
    // A rebind waits for that.
    Object.defineProperty(partition, 'isAdopting', { get: () => true, set: () => undefined });
    const answer = gone(coreOf(world), world, 'rebind', OF_FLOODER, 60_000, 'q2');
    open(world);
    world.run(600_000);
    assert.deepEqual([answer().phase, answer().waiting, arrived(flood)], ['acting', 4, 0]);
    world.run(70_000);
    assert.equal(arrived(flood), 4);
    checkNoLoss(world.letters);
  });

  test('says why it waits, in a strict queue too', () => {
    const { world, flood } = flooded(2);
    const core = coreOf(world);
    const strict = flooded(1, { ordering: 'strict' });
    for (const one of [world, strict.world]) gone(coreOf(one), one, 'delete', OF_FLOODER);
    open(world);
    open(strict.world);
    world.run(5000);
    strict.world.run(5000);
    const whys = ([[world, flood[1]], [strict.world, strict.flood[0]]] as const).map(([at, letter]) => {
      const [queue] = coreOf(at).registry.byName('q1');
      assert.ok(queue !== undefined && letter !== undefined);
      const row = coreOf(at).entries.table.index.find(letter.id, queue.handle);
      return whyItIsHere(queue, row, { core: coreOf(at), clock: { nowMs: () => at.scheduler.nowMs, wallMs: () => at.scheduler.nowMs } });
    });
    for (const why of whys) assert.match(why, /^an order keeps it back/);
    const [queue] = core.registry.byName('q1');
    assert.deepEqual([queue?.readyCount, core.entries.table.census.count(S.READY)], [0, 2]);
  });
});

describe('what an order keeps back in a partition of another gateway', () => {
  function held(graceMs = 3_600_000): { readonly group: Group; readonly flood: readonly Letter[]; readonly answer: () => QueueOrderAnswer } {
    const group = Group.started({ stores: 3 });
    group.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
    const flood = Array.from({ length: 30 }, () => group.submit('gw-1', ['q1'], FLOODER));
    group.run(2000);
    group.gateway('gw-1').kill();
    group.until(() => group.served('gw-2', 'gw-1').filter(({ isRecovering }) => !isRecovering).length === 4, 'the takeover', 120_000);
    const core = coreOf({ gateway: group.gateway('gw-2') });
    const answer = gone(core, { until: (condition, boundMs, what) => { group.until(condition, what, boundMs); } }, 'delete', OF_FLOODER, graceMs);
    group.hops.script = () => 'accept';
    group.run(20_000);
    assert.deepEqual([answer().phase, answer().matched, arrived(flood)], ['grace', 30, 0]);
    return { group, flood, answer };
  }

  /** Whoever gave it asks for it. */
  function follow(group: Group, answer: () => QueueOrderAnswer, seconds: number): void {
    for (let i = 0; i < seconds; i += 5) {
      group.run(5000);
      answer();
    }
  }

  test('stays back at who takes that when the gateway dies, and goes on when nobody acts after the grace', () => {
    const { group, flood } = held(60_000);
    group.gateway('gw-2').kill();
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-1', 'gw-1').length === 4, 'its mail is back', 30_000);
    const { orders } = coreOf({ gateway: group.gateway('gw-1') });
    assert.equal(orders.left.waitingCount, 1, 'it is shown');
    group.run(25_000);
    assert.equal(arrived(flood), 0);
    group.until(() => arrived(flood) === 30, 'all of it', 60_000);
    assert.equal(orders.left.waitingCount, 0);
  });

  test('goes on there at once when an operator takes it back', () => {
    const { group, flood, answer } = held();
    group.gateway('gw-2').kill();
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-1', 'gw-1').length === 4, 'its mail is back', 30_000);
    const { orders } = coreOf({ gateway: group.gateway('gw-1') });
    assert.equal(orders.left.waitingCount, 1, 'it is shown');
    group.run(10_000);
    assert.equal(arrived(flood), 0);
    void orders.withdraw(answer().order, WHO);
    group.until(() => arrived(flood) === 30, 'all of it', 2000);
  });

  test('goes home with it in a long grace, and stays back there, until the order is taken back', () => {
    const { group, flood, answer } = held();
    group.gateway('gw-1').start();
    follow(group, answer, 560);
    assert.deepEqual([group.served('gw-2', 'gw-1').length, arrived(flood)], [4, 0]);
    follow(group, answer, 120);
    assert.deepEqual([group.served('gw-2', 'gw-1').length, arrived(flood), answer().phase], [0, 0, 'grace']);
    assert.equal(answer().moved, 30);
    taken(coreOf({ gateway: group.gateway('gw-2') }), answer());
    group.until(() => arrived(flood) === 30, 'all of it', 5000);
  });

  test('goes on where the partition was to go home, and stays after all', () => {
    const { group, flood, answer } = held();
    const partitions = group.served('gw-2', 'gw-1');
    for (const partition of partitions) partition.isLeaving = true;
    follow(group, answer, 10);
    for (const partition of partitions) {
      partition.isLeaving = false;
      for (const queue of partition.queues.values()) coreOf({ gateway: group.gateway('gw-2') }).wake(queue);
    }
    group.run(5000);
    assert.equal(arrived(flood), 0, 'by what the register has of it');
    taken(coreOf({ gateway: group.gateway('gw-2') }), answer());
    group.until(() => arrived(flood) === 30, 'all of it', 5000);
  });
});
