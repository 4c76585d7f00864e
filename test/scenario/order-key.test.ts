/** An order stands in the register before it acts, so that it outlives its gateway, src/gateway/orders/order-key.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { OrderVerb, QueueOrderAnswer, Selector } from '../../src/admin-api/queue-orders.js';
import { formatMessageId } from '../../src/base/text-id.js';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import type { LeftOrder } from '../../src/register/records.js';
import { checkNoDuplicates } from './checks.js';
import type { GroupOptions } from './group.js';
import { Group } from './group.js';
import { coreOf } from './inspect.js';
import type { Letter } from './letters.js';

const WHO = { reason: 'a flood', who: 'ann' };
const FLOODER = 'x@senders.example';
const OF_FLOODER: Selector = { sender: FLOODER };
const ID = 'cli-1';

function coreAt(group: Group, id: string): GatewayCore {
  return coreOf({ gateway: group.gateway(id) });
}

/** Each gateway has mail of a flooder and of others, that its next hop does not take. */
function flooded(count: number, at: readonly string[] = ['gw-1'], options: GroupOptions = {}): { readonly group: Group; readonly flood: readonly Letter[]; readonly others: readonly Letter[] } {
  const group = Group.started({ stores: 3, ...options });
  group.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
  const [flood, others]: [Letter[], Letter[]] = [[], []];
  for (const id of at) {
    for (let i = 0; i < count; i++) {
      flood.push(group.submit(id, ['q1'], FLOODER));
      others.push(group.submit(id, ['q1'], 'y@senders.example'));
    }
  }
  group.until(() => group.letters.count(COMMITTED) === 2 * count * at.length, 'all 250s', 60_000);
  return { group, flood, others };
}

/** It looks, and goes. */
function gone(group: Group, at: string, verb: OrderVerb, selector: Selector = OF_FLOODER, graceMs = 0): () => QueueOrderAnswer {
  const { orders } = coreAt(group, at);
  const begun = orders.begin({ verb, selector, id: ID, ...WHO });
  assert.ok(typeof begun !== 'string', String(begun));
  const told = (): QueueOrderAnswer => orders.answerOf(ID) ?? assert.fail();
  group.until(() => told().phase === 'found', 'all is looked at', 60_000);
  assert.ok(orders.go(ID, graceMs));
  return told;
}

function key(group: Group): LeftOrder | undefined {
  const [entry] = group.register.snapshot().list([{ prefix: 'rules/orders/' }]);
  return entry === undefined ? undefined : JSON.parse(entry.value) as LeftOrder;
}

function arrived(letters: readonly Letter[]): number {
  return letters.filter(({ arrivals }) => arrivals.size > 0).length;
}

function open(group: Group): void {
  group.hops.script = () => 'accept';
}

function names(gateway: string): readonly string[] {
  return [0, 1, 2, 3].map((n) => `${gateway}/${String(n)}`);
}

describe('an order whose gateway dies while it acts', () => {
  for (const isTaken of [false, true]) {
    test(`goes on ${isTaken ? 'at who takes its mail over' : 'where that starts again at once'}: nothing that is meant leaves`, () => {
      const { group, flood, others } = flooded(1500);
      // Reports are made a thousand a second.
      const told = gone(group, 'gw-1', 'bounce');
      group.until(() => told().done > 200, 'a part', 20_000);
      assert.ok(told().done < 1500);
      group.gateway('gw-1').kill();
      open(group);
      if (!isTaken) group.gateway('gw-1').start();
      const isReported = ({ reports }: Letter): boolean => reports.has('failure 0@q1.example');
      group.until(() => arrived(others) === 1500 && flood.every(isReported), 'reports, and the others', 180_000);
      group.until(() => key(group) === undefined, 'the end of the order', 20_000);
      assert.equal(arrived(flood), 0);
      checkNoDuplicates(group.letters);
      // What comes later is not meant.
      const later = group.submit(isTaken ? 'gw-2' : 'gw-1', ['q1'], FLOODER);
      group.until(() => later.arrivals.size === 1, 'what came after it');
    });
  }

  test('has been given up by nobody who shows it: it waits for its mail, and can be taken back', () => {
    const { group, flood } = flooded(1500, ['gw-1'], { noRescue: ['gw-2'] });
    const told = gone(group, 'gw-1', 'bounce');
    group.until(() => told().done > 200, 'a part', 20_000);
    assert.deepEqual(coreAt(group, 'gw-2').orders.allLeft(), [], 'its gateway passes over it');
    group.gateway('gw-1').kill();
    void coreAt(group, 'gw-2').orders.withdraw(ID, WHO);
    group.until(() => key(group) === undefined, 'it is gone');
    open(group);
    group.gateway('gw-1').start();
    const isReported = ({ reports }: Letter): boolean => reports.has('failure 0@q1.example');
    group.until(() => flood.every((letter) => isReported(letter) || letter.arrivals.size > 0), 'all of it', 60_000);
    assert.ok(arrived(flood) > 500);
  });
});

describe('an order whose gateway dies in its grace', () => {
  test('keeps its mail back at who takes it over, and is done to it when others act', () => {
    const { group, flood, others } = flooded(20, ['gw-1', 'gw-2']);
    const { orders } = coreAt(group, 'gw-1');
    const told = gone(group, 'gw-2', 'delete', OF_FLOODER, 60_000);
    gone(group, 'gw-1', 'delete', OF_FLOODER, 60_000);
    assert.equal(orders.answerOf(ID)?.phase, 'grace');
    group.run(1000);
    assert.ok(coreAt(group, 'gw-2').orders.left.isUnder({ name: 'gw-1/0' } as Partition), 'from the first of its entries on');
    group.gateway('gw-1').kill();
    open(group);
    group.until(() => arrived(others) === 40, 'the others', 40_000);
    told();
    group.run(5000);
    assert.deepEqual([told().phase, arrived(flood)], ['grace', 0]);
    for (let i = 0; i < 6 && told().phase !== 'done'; i++) group.run(10_000);
    group.until(() => told().phase === 'done' && key(group) === undefined, 'the end', 20_000);
    group.run(5000);
    assert.equal(arrived(flood), 0);
    assert.equal(coreAt(group, 'gw-2').entries.table.inUse, 0);
  });

  test('lets its mail go at once when it is taken back', () => {
    const { group, flood } = flooded(20, ['gw-1', 'gw-2']);
    for (const at of ['gw-1', 'gw-2']) gone(group, at, 'delete', OF_FLOODER, 3_600_000);
    group.run(1000);
    group.gateway('gw-1').kill();
    open(group);
    group.until(() => group.served('gw-2', 'gw-1').filter(({ isRecovering }) => !isRecovering).length === 4, 'the takeover', 60_000);
    group.run(10_000);
    assert.equal(arrived(flood), 0);
    assert.ok(coreAt(group, 'gw-2').orders.cancel(ID, WHO));
    group.until(() => arrived(flood) === 40, 'all of it', 2000);
    assert.equal(key(group), undefined);
  });
});

test('an order whose only gateway ends in its grace says that nothing was done, and its mail goes on when that is over', () => {
  const { group, flood } = flooded(10, ['gw-1'], { gateways: ['gw-1'] });
  gone(group, 'gw-1', 'delete', OF_FLOODER, 20_000);
  group.run(1000);
  group.gateway('gw-1').kill();
  open(group);
  group.gateway('gw-1').start();
  group.until(() => group.served('gw-1', 'gw-1').length === 4, 'its mail is back', 60_000);
  group.run(5000);
  const { orders } = coreAt(group, 'gw-1');
  assert.deepEqual(orders.allLeft().map(({ order, in_grace: isInGrace, done }) => [order, isInGrace, done]), [[ID, true, 0]]);
  assert.deepEqual(orders.inForce().map(({ phase }) => phase), ['kept']);
  assert.equal(arrived(flood), 0);
  group.until(() => arrived(flood) === 10, 'all of it', 60_000);
});

test('an order names no partition again that its gateway has no more', () => {
  const { group } = flooded(5, ['gw-1', 'gw-2']);
  group.gateway('gw-1').kill();
  group.until(() => group.served('gw-2', 'gw-1').filter(({ isRecovering }) => !isRecovering).length === 4, 'the takeover', 120_000);
  for (const { id } of group.stores) group.network.holdAnswers('gw-2', id, true);
  const told = gone(group, 'gw-2', 'hold');
  group.until(() => told().done === 10, 'it is held');
  for (const partition of group.served('gw-2', 'gw-1')) partition.isLeaving = true;
  group.until(() => key(group)?.underWay?.length === 8, 'the key');
  group.gateway('gw-2').register?.bridge.changeLeftOrder(ID, () => undefined, () => undefined);
  group.until(() => key(group) === undefined, 'another has done it');
  group.until(() => key(group) !== undefined, 'it is named again', 5000);
  assert.deepEqual(key(group)?.underWay, names('gw-2'));
});

describe('the key of an order', () => {
  test('names the partitions of all gateways that pass, each until it is through, and is gone then', () => {
    const { group } = flooded(20, ['gw-1', 'gw-2']);
    // Nothing is through before the copies have it.
    for (const { id } of group.stores) group.network.holdAnswers('gw-1', id, true);
    const second = gone(group, 'gw-2', 'delete', OF_FLOODER, 2000);
    const first = gone(group, 'gw-1', 'delete', OF_FLOODER, 2000);
    group.run(500);
    assert.deepEqual([key(group)?.underWay, key(group)?.partitions, key(group)?.inGrace], [[...names('gw-1'), ...names('gw-2')], [], true]);
    group.until(() => second().phase === 'done', 'the end of one');
    group.until(() => key(group)?.underWay?.length === 4, 'its names are gone', 2000);
    assert.deepEqual([key(group)?.underWay, key(group)?.inGrace, first().phase], [names('gw-1'), undefined, 'acting']);
    for (const { id } of group.stores) group.network.holdAnswers('gw-1', id, false);
    group.until(() => first().phase === 'done' && key(group) === undefined, 'the end of both');
  });

  test('is there before anything is done, and is waited for', () => {
    const { group } = flooded(5);
    const { orders } = coreAt(group, 'gw-1');
    orders.begin({ verb: 'delete', selector: OF_FLOODER, id: ID, ...WHO });
    group.until(() => orders.answerOf(ID)?.phase === 'found', 'all is looked at');
    group.register.goAway('silent');
    assert.ok(orders.go(ID, 0));
    group.run(1500);
    assert.deepEqual([orders.answerOf(ID)?.done, key(group)], [0, undefined]);
    group.register.comeBack();
    group.until(() => orders.answerOf(ID)?.phase === 'done', 'the end', 20_000);
    assert.equal(orders.answerOf(ID)?.done, 5);
    group.until(() => key(group) === undefined, 'its key is gone', 20_000);
  });

  test('is not waited for long while the register is away: that is told, and it is tried again', () => {
    const { group } = flooded(1500);
    group.register.goAway('refusing');
    group.run(3000);
    const told = gone(group, 'gw-1', 'bounce');
    group.until(() => told().done > 100, 'it acts', 5000);
    assert.match(told().unregistered, /does not answer/);
    group.register.comeBack();
    group.until(() => key(group) !== undefined, 'it is there after all', 20_000);
    assert.equal(told().phase, 'acting');
    group.until(() => told().unregistered === '', 'that is told');
    group.until(() => told().phase === 'done' && key(group) === undefined, 'the end', 60_000);
  });

  test('has no room for many words, nor beyond 64 orders: it acts, and says so', () => {
    const { group, flood } = flooded(3);
    for (const { id } of group.stores) group.network.holdAnswers('gw-1', id, true);
    const ids = [...flood.map(({ id }) => id), ...Array.from({ length: 990 }, (_, i) => i + 1)].map(formatMessageId);
    const long = gone(group, 'gw-1', 'hold', { ids });
    group.until(() => long().done === 3, 'it acts', 1000);
    assert.match(long().unregistered, /more words than the register keeps/);
    assert.ok(coreAt(group, 'gw-1').orders.cancel(ID, WHO));
    const order: LeftOrder = { verb: 'hold', selector: { sender: 'nobody@x' }, ...WHO, wallMs: 1, untilWallMs: 8.64e15, partitions: ['gw-9/0'] };
    for (let i = 0; i < 64; i++) group.gateway('gw-2').register?.bridge.changeLeftOrder(`gw-9-1-${String(i)}`, () => order, () => undefined);
    const { orders } = coreAt(group, 'gw-1');
    group.until(() => orders.left.count === 64, 'they stand');
    orders.begin({ verb: 'delete', selector: OF_FLOODER, id: 'cli-2', ...WHO });
    group.until(() => orders.answerOf('cli-2')?.phase === 'found', 'all is looked at');
    orders.go('cli-2', 0);
    group.until(() => orders.answerOf('cli-2')?.phase === 'acting', 'it acts', 1000);
    assert.match(orders.answerOf('cli-2')?.unregistered ?? '', /64 orders stand in the register already/);
  });

  test('keeps the names of those that pass when it is left for others', () => {
    const { group } = flooded(5, ['gw-1', 'gw-2', 'gw-3'], { gateways: ['gw-1', 'gw-2', 'gw-3'], noRescue: ['gw-1', 'gw-2'] });
    group.gateway('gw-3').kill();
    for (const { id } of group.stores) group.network.holdAnswers('gw-1', id, true);
    const [first, second] = [gone(group, 'gw-1', 'delete'), gone(group, 'gw-2', 'delete')];
    group.until(() => first().done === 5 && second().phase === 'done', 'one is through, and one waits for its copies');
    void coreAt(group, 'gw-2').orders.leave(ID, [...names('gw-1'), ...names('gw-2')]);
    group.until(() => key(group)?.partitions.length === 4, 'it is left');
    for (let ms = 0; ms < 500; ms += 5) {
      assert.deepEqual([key(group)?.partitions, key(group)?.underWay], [names('gw-3'), names('gw-1')]);
      group.run(5);
    }
  });

  test('in its grace is deleted, that being over, by nobody who has not heard that others act', () => {
    const { group } = flooded(5);
    for (const { id } of group.stores) group.network.holdAnswers('gw-1', id, true);
    const told = gone(group, 'gw-1', 'delete', OF_FLOODER, 2000);
    group.run(1000);
    const deaf = coreAt(group, 'gw-2').orders.left;
    assert.equal(deaf.count, 1);
    group.gateway('gw-2').register?.deafen('rules/');
    for (let ms = 0; ms < 36_000; ms += 50) {
      group.run(50);
      assert.ok(key(group) !== undefined, `after ${String(ms)} ms`);
    }
    assert.deepEqual([told().phase, key(group)?.inGrace], ['acting', undefined]);
  });

  test('is cleaned of what was left for a gateway that is through', () => {
    const { group } = flooded(5, ['gw-1', 'gw-2']);
    const [first, second] = [gone(group, 'gw-1', 'delete'), gone(group, 'gw-2', 'delete')];
    group.until(() => first().phase === 'done' && second().phase === 'done' && key(group) === undefined, 'the end');
    void coreAt(group, 'gw-2').orders.leave(ID, names('gw-2'));
    group.run(100);
    assert.deepEqual(key(group)?.partitions, names('gw-1'));
    group.until(() => key(group) === undefined, 'it is clean', 3000);
  });

  test('stands on for others when one heard no more of it in the grace', () => {
    const { group } = flooded(5, ['gw-1', 'gw-2']);
    const told = gone(group, 'gw-2', 'delete', OF_FLOODER, 200_000);
    const { orders } = coreAt(group, 'gw-1');
    gone(group, 'gw-1', 'delete', OF_FLOODER, 200_000);
    const follow = (seconds: number): void => {
      for (let i = 0; i < seconds; i += 5) {
        group.run(5000);
        told();
      }
    };
    follow(100);
    assert.equal(key(group)?.underWay?.length, 8);
    follow(50);
    assert.equal(orders.all()[0]?.unfollowed, true);
    assert.deepEqual([key(group)?.underWay, key(group)?.inGrace], [names('gw-2'), true]);
    open(group);
    group.until(() => group.letters.all.filter(({ arrivals }) => arrivals.size > 0).length === 15, 'its mail, and the others', 60_000);
  });
});
