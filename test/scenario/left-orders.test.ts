/**
 * Orders that wait in the register for mail that nobody had who was asked, src/gateway/orders/left-orders.ts: at a
 * takeover, at a restart, at a gateway that lives and was not reached; what they mean, and how they end.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { LeftOrderAnswer, OrderVerb, QueueOrderAnswer, Selector } from '../../src/admin-api/queue-orders.js';
import { formatMessageId } from '../../src/base/text-id.js';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { COMMITTED, NOTIFY_DELAY } from '../../src/gateway/mail-types.js';
import type { LeftOrder } from '../../src/register/records.js';
import { doById } from './by-id.js';
import { checkNoDuplicates, checkOrder } from './checks.js';
import type { GroupOptions } from './group.js';
import { Group } from './group.js';
import { coreOf, stateOf } from './inspect.js';
import type { Letter } from './letters.js';

const WHO = { reason: 'a flood', who: 'ann' };
const FLOODER = 'x@senders.example';
const OF_FLOODER: Selector = { sender: FLOODER };

interface Flooded {
  readonly group: Group;
  readonly flood: readonly Letter[];
  readonly others: readonly Letter[];
}

function coreAt(group: Group, id: string): GatewayCore {
  return coreOf({ gateway: group.gateway(id) });
}

/** gw-1 has mail of two senders, turn by turn, that its next hop does not take. */
function flooded(options: GroupOptions = {}, recipientCount = 1, count = 30, notify = 0): Flooded {
  const group = Group.started({ stores: 3, ...options });
  group.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
  const [flood, others]: [Letter[], Letter[]] = [[], []];
  for (let i = 0; i < count; i++) {
    flood.push(group.submit('gw-1', ['q1'], FLOODER, 200, recipientCount, notify));
    others.push(group.submit('gw-1', ['q1'], 'y@senders.example', 200, recipientCount, notify));
  }
  group.until(() => group.letters.count(COMMITTED) === 2 * count, 'all 250s');
  return { group, flood, others };
}

/** As the command line does: an order that goes at once, and is left for what this gateway has not passed over. */
function leave(group: Group, at: string, verb: OrderVerb, selector: Selector): LeftOrderAnswer {
  const { orders } = coreAt(group, at);
  const begun = orders.begin({ verb, selector, ...WHO });
  assert.ok(typeof begun !== 'string', String(begun));
  const told = (): QueueOrderAnswer | undefined => orders.answerOf(begun.order);
  group.until(() => told()?.phase === 'found', 'all is looked at');
  assert.ok(orders.go(begun.order, 0));
  group.until(() => told()?.phase === 'acting' || told()?.phase === 'done', 'it begins');
  void orders.leave(begun.order, told()?.partitions ?? []);
  const isLeft = (): boolean => group.register.snapshot().list([{ prefix: `rules/orders/${begun.order}` }])
    .some(({ value }) => (JSON.parse(value) as LeftOrder).partitions.length > 0);
  group.until(isLeft, 'it is left');
  return orders.left.answerOf(begun.order, orderInRegister(group, begun.order), 0);
}

function orderInRegister(group: Group, id: string): LeftOrder {
  const [entry] = group.register.snapshot().list([{ prefix: `rules/orders/${id}` }]);
  assert.ok(entry !== undefined);
  return JSON.parse(entry.value) as LeftOrder;
}

/** Orders in the register. */
function written(group: Group): number {
  return group.register.snapshot().list([{ prefix: 'rules/orders/' }]).length;
}

function attemptsOf(letters: readonly Letter[]): number {
  return letters.reduce((sum, { attempts }) => sum + (attempts.get('q1') ?? 0), 0);
}

function arrived(letters: readonly Letter[]): number {
  return letters.filter(({ arrivals }) => arrivals.size > 0).length;
}

/** gw-2 has taken over a part of gw-1's mail, and the stores say no more for now. */
function halfTaken(group: Group): { goOn: () => void } {
  const partitions = (): boolean => group.served('gw-2', 'gw-1').some(({ isRecovering, length }) => isRecovering && length > 0);
  group.until(partitions, 'the first block');
  for (const { id } of group.stores) group.network.holdAnswers('gw-2', id, true);
  return { goOn: () => { for (const { id } of group.stores) group.network.holdAnswers('gw-2', id, false); } };
}

function open(group: Group): void {
  group.hops.script = () => 'accept';
}

describe('an order for the mail of a dead gateway', () => {
  for (const isLate of [false, true]) {
    test(`is obeyed by who takes it over, before anything is tried${isLate ? ', though the watch of the taker is late' : ''}`, () => {
      const { group, flood, others } = flooded();
      if (isLate) group.gateway('gw-2').register?.deafen('rules/');
      group.gateway('gw-1').kill();
      const left = leave(group, 'gw-2', 'delete', OF_FLOODER);
      assert.deepEqual([left.partitions, left.holders], [['gw-1/0', 'gw-1/1', 'gw-1/2', 'gw-1/3'], ['gw-1']]);
      const before = attemptsOf(flood);
      group.run(1000);
      const later = group.submit('gw-2', ['q2'], FLOODER);
      open(group);
      group.until(() => arrived(others) === 30 && later.arrivals.size === 1, 'the others', 120_000);
      group.run(20_000);
      assert.deepEqual([arrived(flood), attemptsOf(flood) - before], [0, 0]);
      assert.equal(coreAt(group, 'gw-2').entries.table.inUse, 0);
      assert.equal(written(group), 0, 'it is done with');
      checkNoDuplicates(group.letters);
      checkOrder(group.letters, 'q1');
      if (isLate) return;
      const { orders } = coreAt(group, 'gw-2');
      const over = (): unknown => orders.allLeft().map(({ order, partitions, holders, done }) => [order, partitions, holders, done]);
      assert.deepEqual([over(), orders.left.count], [[[left.order, [], [], 30]], 0]);
      group.run(600_000);
      assert.deepEqual(over(), []);
    });
  }

  test('has its number for itself, at all gateways', () => {
    const { group } = flooded({ gateways: ['gw-1', 'gw-2', 'gw-3'] });
    group.gateway('gw-1').kill();
    const { order: id } = leave(group, 'gw-2', 'delete', OF_FLOODER);
    const { orders } = coreAt(group, 'gw-3');
    group.until(() => orders.left.has(id), 'the other one knows it');
    assert.equal(orders.begin({ verb: 'hold', selector: OF_FLOODER, ...WHO, id }), `${id} is left in the register already`);
  });

  test('is obeyed though its rules are read before the first of its mail comes', () => {
    const { group, flood, others } = flooded();
    group.gateway('gw-1').kill();
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    const before = attemptsOf(flood);
    open(group);
    group.until(() => group.register.recordOf('gw-1/0')?.holder.gatewayId === 'gw-2', 'the claim');
    for (const { id } of group.stores) group.network.holdAnswers('gw-2', id, true);
    group.run(1000);
    assert.equal(group.served('gw-2', 'gw-1').length, 0);
    for (const { id } of group.stores) group.network.holdAnswers('gw-2', id, false);
    group.until(() => arrived(others) === 30, 'the others', 120_000);
    assert.deepEqual([arrived(flood), attemptsOf(flood) - before], [0, 0]);
  });

  test('means what comes block by block, and no part of it less', () => {
    const { group, flood, others } = flooded({ blockEntries: 4 });
    group.gateway('gw-1').kill();
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    const before = attemptsOf(flood);
    open(group);
    const { goOn } = halfTaken(group);
    group.run(1500);
    goOn();
    group.until(() => arrived(others) === 30 && written(group) === 0, 'the others', 120_000);
    assert.deepEqual([arrived(flood), attemptsOf(flood) - before], [0, 0]);
  });

  test('has no report made of what expires before it comes to it', () => {
    const { group, flood, others } = flooded({ blockEntries: 4, lifetimeMs: 6_000 });
    group.gateway('gw-1').kill();
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    const { goOn } = halfTaken(group);
    const [held] = group.served('gw-2', 'gw-1').filter(({ isRecovering, length }) => isRecovering && length > 0);
    assert.ok(held !== undefined);
    group.run(3500);
    assert.equal(held.isRecovering, true);
    goOn();
    group.until(() => others.every(({ reports, arrivals }) => reports.size + arrivals.size === 1), 'the others', 120_000);
    group.run(5000);
    assert.deepEqual([arrived(flood), flood.filter(({ reports }) => reports.size > 0).length], [0, 0]);
  });

  test('has nobody told that what it means is late', () => {
    const { group, flood, others } = flooded({ blockEntries: 4, delayAfterMs: 6_000 }, 1, 30, NOTIFY_DELAY);
    group.gateway('gw-1').kill();
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    const { goOn } = halfTaken(group);
    group.run(5000);
    goOn();
    const isTold = ({ reports }: Letter): boolean => [...reports.keys()].some((what) => what.startsWith('delay'));
    group.until(() => others.every(isTold), 'the others', 120_000);
    assert.equal(flood.filter(isTold).length, 0);
  });

  test('means what memory is too short to have here, envelopes included, and comes on though nothing leaves', () => {
    const recipients = 300;
    // As in envelopes-beyond-memory.test.ts.
    const group = Group.started({ partitions: 1, memoryBytes: { 'gw-2': 1024 * 1024 }, storeMemoryBytes: 64 * 1024 * 1024, blockEntries: 100, segmentBytes: 16 * 1024 });
    group.hops.script = () => 'hang';
    const sent = (from: string): Letter => {
      const letter = group.submit('gw-1', ['q1'], from, 200, recipients);
      group.until(() => letter.outcome === COMMITTED, 'a commit');
      return letter;
    };
    // The flood stands behind more than memory holds.
    const others = Array.from({ length: 400 }, () => sent('y@senders.example'));
    const flood = Array.from({ length: 100 }, () => sent(FLOODER));
    group.gateway('gw-1').kill();
    group.hops.script = () => 'unreachable';
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    group.until(() => coreAt(group, 'gw-2').orders.allLeft()[0]?.done === 100, 'the flood is deleted', 240_000);
    group.until(() => written(group) === 0, 'the end of the order', 240_000);
    open(group);
    group.until(() => others.every(({ arrivals }) => arrivals.size === recipients), 'the others', 240_000);
    assert.equal(arrived(flood), 0);
  });

  test('is left for what is only coming back, too, when it is given', () => {
    const { group, flood, others } = flooded({ blockEntries: 4 });
    group.gateway('gw-1').kill();
    const { goOn } = halfTaken(group);
    const left = leave(group, 'gw-2', 'delete', OF_FLOODER);
    assert.ok(left.partitions.length > 0 && left.partitions.every((name) => name.startsWith('gw-1/')), left.partitions.join());
    // As a rule: within a tenth of a second of hearing it.
    group.run(200);
    goOn();
    open(group);
    group.until(() => arrived(others) === 30 && written(group) === 0, 'the others', 120_000);
    assert.equal(arrived(flood), 0);
  });

  test('is obeyed by itself when it is back', () => {
    const { group, flood, others } = flooded({ noRescue: ['gw-2'] });
    group.gateway('gw-1').kill();
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    const before = attemptsOf(flood);
    group.run(1000);
    open(group);
    group.gateway('gw-1').start();
    group.until(() => arrived(others) === 30, 'the others', 120_000);
    const later = group.submit('gw-1', ['q1'], FLOODER);
    group.until(() => later.arrivals.size === 1 && written(group) === 0, 'what came after the order');
    assert.deepEqual([arrived(flood), attemptsOf(flood) - before], [0, 0]);
  });

  test('means what waits for its time, too, and comes to it before that', () => {
    const { group, flood, others } = flooded();
    group.hops.script = () => 'defer';
    group.until(() => attemptsOf([...flood, ...others]) >= 120, 'deferrals');
    group.gateway('gw-1').kill();
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    const before = attemptsOf(flood);
    group.until(() => written(group) === 0, 'the end of the order', 120_000);
    assert.equal(attemptsOf(flood), before);
    open(group);
    group.until(() => arrived(others) === 30, 'the others');
    assert.equal(arrived(flood), 0);
  });

  test('goes on where another takes the mail over from the taker', () => {
    const { group, flood, others } = flooded({ gateways: ['gw-1', 'gw-2', 'gw-3'] });
    group.gateway('gw-1').kill();
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    const before = attemptsOf(flood);
    group.until(() => group.served('gw-2', 'gw-1').length + group.served('gw-3', 'gw-1').length > 0, 'a takeover');
    group.gateway('gw-2').kill();
    open(group);
    group.until(() => arrived(others) === 30, 'the others', 120_000);
    group.run(20_000);
    assert.deepEqual([arrived(flood), attemptsOf(flood) - before], [0, 0]);
  });

  for (const isFar of [false, true]) {
    test(`is done with before the owner has its mail back${isFar ? ', though it is given in the moment before' : ''}`, () => {
      const { group, flood, others } = flooded({}, 1, 1200);
      group.gateway('gw-1').kill();
      const taken = (): boolean => group.served('gw-2', 'gw-1').filter(({ isRecovering }) => !isRecovering).length === 4;
      group.until(taken, 'the takeover', 120_000);
      group.gateway('gw-1').start();
      group.run(isFar ? 9800 : 9000);
      const { orders } = coreAt(group, 'gw-2');
      const begun = orders.begin({ verb: 'bounce', selector: OF_FLOODER, ...WHO });
      assert.ok(typeof begun !== 'string');
      group.until(() => orders.answerOf(begun.order)?.phase === 'found', 'all is looked at');
      orders.go(begun.order, 0);
      group.until(() => orders.answerOf(begun.order)?.phase === 'done', 'the end', 120_000);
      const { matched, done, moved, gone_before: gone } = orders.answerOf(begun.order) ?? assert.fail();
      assert.deepEqual([matched, done, moved, gone], [1200, 1200, 0, 0]);
      open(group);
      group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back', 120_000);
      group.until(() => arrived(others) === 1200, 'the others', 120_000);
      assert.equal(arrived(flood), 0);
    });
  }

  test('keeps no partition back for ever: what went away is told, and not as passed over', () => {
    const { group } = flooded();
    group.gateway('gw-1').kill();
    const mail = (): boolean => group.served('gw-2', 'gw-1').filter(({ isRecovering }) => !isRecovering).length === 4;
    group.until(mail, 'the takeover', 120_000);
    const { orders } = coreAt(group, 'gw-2');
    group.hops.script = () => 'hang';
    group.hops.replyMs = 100_000_000;
    group.run(5000);
    const begun = orders.begin({ verb: 'delete', selector: OF_FLOODER, ...WHO });
    assert.ok(typeof begun !== 'string');
    group.until(() => orders.answerOf(begun.order)?.phase === 'found', 'all is looked at');
    orders.go(begun.order, 0);
    group.gateway('gw-1').start();
    group.run(580_000);
    assert.equal(group.served('gw-2', 'gw-1').length, 4);
    group.run(60_000);
    assert.equal(group.served('gw-2', 'gw-1').length < 4, true);
    const { phase, matched, done, not_done: notDone, moved, gone_before: gone, incomplete, partitions } =
      orders.answerOf(begun.order) ?? assert.fail();
    assert.deepEqual([phase, matched, done + notDone, gone, incomplete], ['done', 30, 30, 0, true]);
    assert.ok(moved > 0 && notDone === moved, 'what was in flight');
    assert.ok(!partitions.some((name) => name.startsWith('gw-1/')));
  });

  test('that is withdrawn has its mail delivered', () => {
    const { group, flood, others } = flooded();
    group.gateway('gw-1').kill();
    const { order } = leave(group, 'gw-2', 'delete', OF_FLOODER);
    void coreAt(group, 'gw-2').orders.withdraw(order, WHO);
    group.until(() => written(group) === 0, 'it is gone');
    open(group);
    group.until(() => arrived(flood) + arrived(others) === 60, 'all deliveries', 120_000);
    checkOrder(group.letters, 'q1');
  });

  test('that is over is obeyed by nobody, and goes out of the register', () => {
    const { group, flood } = flooded();
    group.gateway('gw-1').kill();
    const { order } = leave(group, 'gw-2', 'delete', OF_FLOODER);
    const known = orderInRegister(group, order);
    const bridge = group.gateway('gw-2').register?.bridge;
    bridge?.changeLeftOrder(order, () => ({ ...known, untilWallMs: known.wallMs + 3000 }), () => undefined);
    group.until(() => written(group) === 0, 'it is gone');
    assert.equal(coreAt(group, 'gw-2').orders.left.count, 0);
    open(group);
    group.until(() => arrived(flood) === 30, 'all deliveries', 120_000);
  });

  test('returns mail, so many a second: each sender is told once, and what waits behind it goes on', () => {
    const { group, flood, others } = flooded({}, 1, 1200);
    group.gateway('gw-1').kill();
    leave(group, 'gw-2', 'bounce', OF_FLOODER);
    open(group);
    // Deliveries come to what is meant before the walk does.
    group.hops.dotMs = 0;
    group.hops.replyMs = 0;
    const isReported = ({ reports }: Letter): boolean => reports.has('failure 0@q1.example');
    group.until(() => arrived(others) === 1200 && flood.every(isReported), 'reports', 120_000);
    group.run(5000);
    assert.equal(arrived(flood), 0);
    checkNoDuplicates(group.letters);
  });

  for (const verb of ['delete', 'bounce', 'expire'] as const) {
    test(`to ${verb} ends mail for the recipients that it means; the others get it, in order`, () => {
      const { group, flood, others } = flooded({ queues: [{ name: 'q1', ordering: 'strict' }, { name: 'q2' }] }, 2);
      group.gateway('gw-1').kill();
      leave(group, 'gw-2', verb, { sender: FLOODER, recipient: '1@*' });
      open(group);
      group.until(() => arrived(flood) === 30 && arrived(others) === 30, 'the others', 120_000);
      const order = group.hops.arrivals.filter(({ queueName }) => queueName !== 'senders').map(({ messageId }) => messageId);
      assert.deepEqual([...new Set(order)], flood.flatMap(({ id }, i) => [id, others[i]?.id]));
      assert.ok(flood.every(({ arrivals }) => arrivals.size === 1 && arrivals.has('0@q1.example')));
    });
  }

  test('of a strict queue leaves the others in order', () => {
    const { group, flood, others } = flooded({ queues: [{ name: 'q1', ordering: 'strict' }, { name: 'q2' }] });
    group.gateway('gw-1').kill();
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    open(group);
    group.until(() => arrived(others) === 30, 'the others', 120_000);
    assert.equal(arrived(flood), 0);
    assert.deepEqual(group.hops.arrivals.map(({ messageId }) => messageId), others.map(({ id }) => id));
  });

  test('holds once: what is released then stays so', () => {
    const { group, flood, others } = flooded();
    group.gateway('gw-1').kill();
    leave(group, 'gw-2', 'hold', OF_FLOODER);
    open(group);
    group.until(() => arrived(others) === 30 && written(group) === 0, 'the others', 120_000);
    assert.equal(arrived(flood), 0);
    for (const { id } of flood) doById(coreAt(group, 'gw-2'), 'release', id);
    group.until(() => arrived(flood) === 30, 'what was released');
    // Its owner gets its partitions back.
    group.gateway('gw-1').start();
    group.run(20_000);
    checkNoDuplicates(group.letters);
  });

  test('to release lets go what was held, but not what ended two processes: they may have obeyed it', () => {
    const { group, flood, others } = flooded({ noRescue: ['gw-2'] });
    const [poison] = flood;
    assert.ok(poison !== undefined);
    for (const { id } of flood.slice(1)) assert.deepEqual(doById(coreAt(group, 'gw-1'), 'hold', id).whys, ['']);
    group.run(1000);
    const gateway = group.gateway('gw-1');
    gateway.kill();
    gateway.crashNotes = [11, 12].map((incarnation) => ({ ownerId: 'gw-1', messageId: poison.id, incarnation }));
    leave(group, 'gw-2', 'release', OF_FLOODER);
    open(group);
    gateway.start();
    group.until(() => arrived(others) === 30 && written(group) === 0, 'the end of the order', 120_000);
    group.until(() => arrived(flood) === 29, 'what was held');
    group.run(5000);
    assert.equal(stateOf(coreAt(group, 'gw-1'), 'q1', poison), EntryState.HELD);
    doById(coreAt(group, 'gw-1'), 'release', poison.id);
    group.until(() => poison.arrivals.size === 1, 'what an operator released');
  });
});

test('an order waits for what it counted and went back to the stores since', () => {
  // As above: an envelope comes for whoever looks, and does not stay.
  const group = Group.started({ partitions: 1, memoryBytes: { 'gw-2': 1024 * 1024 }, storeMemoryBytes: 64 * 1024 * 1024, blockEntries: 100, segmentBytes: 16 * 1024 });
  group.hops.script = () => 'hang';
  for (let i = 0; i < 500; i++) {
    const letter = group.submit('gw-1', ['q1'], FLOODER, 200, 300);
    group.until(() => letter.outcome === COMMITTED, 'a commit');
  }
  group.gateway('gw-1').kill();
  group.hops.script = () => 'unreachable';
  group.until(() => group.served('gw-2', 'gw-1').some(({ isRecovering, length }) => !isRecovering && length === 500), 'the takeover', 240_000);
  const { orders } = coreAt(group, 'gw-2');
  orders.begin({ verb: 'hold', selector: OF_FLOODER, dry_run: true, ...WHO });
  group.run(1000);
  const begun = orders.begin({ verb: 'hold', selector: OF_FLOODER, ...WHO });
  assert.ok(typeof begun !== 'string');
  const told = (): QueueOrderAnswer => orders.answerOf(begun.order) ?? assert.fail();
  group.until(() => told().phase === 'found', 'all is looked at');
  const { matched, unread } = told();
  assert.ok(matched > 100 && unread > 0, `${String(matched)} counted, ${String(unread)} not read`);
  group.run(30_000);
  orders.go(begun.order, 0);
  group.until(() => told().phase === 'done', 'the end', 600_000);
  assert.deepEqual([told().done, told().gone_before, told().not_done], [matched, 0, 0]);
});

test('a flush has the next hop tried before the first of its mail, though it looks at much more', () => {
  const retryDelayMs = 3_600_000;
  const group = Group.started({ partitions: 1, retryDelayMs, lifetimeMs: 10 * retryDelayMs });
  group.hops.script = () => 'defer';
  for (let i = 0; i < 200; i++) group.submit('gw-1', ['q1'], FLOODER, 200, 300);
  const core = coreAt(group, 'gw-1');
  group.until(() => core.entries.table.census.count(EntryState.DEFERRED) === 200, 'the deferrals');
  const said: string[] = [];
  core.setDeliverySink({ onReady: () => { said.push('due'); }, hasten: () => { said.push('hasten'); }, forget: () => undefined, outageOf: () => undefined });
  const flush = core.orders.begin({ verb: 'flush', selector: OF_FLOODER, ...WHO });
  assert.ok(typeof flush !== 'string');
  group.until(() => core.orders.answerOf(flush.order)?.phase === 'found', 'all is looked at');
  core.orders.go(flush.order, 0);
  group.until(() => core.orders.answerOf(flush.order)?.phase === 'done', 'the end');
  assert.deepEqual([said[0], said.filter((one) => one === 'hasten').length], ['hasten', 1]);
  assert.ok(said.includes('due'));
});

for (const isOfIds of [false, true]) test(`a flush of ${isOfIds ? 'ids' : 'a sender'} tries each message once that it counts as done, though some went back to the stores since`, () => {
  const retryDelayMs = 3_600_000;
  const group = Group.started({ partitions: 1, memoryBytes: { 'gw-2': 1024 * 1024 }, storeMemoryBytes: 64 * 1024 * 1024, blockEntries: 100, segmentBytes: 16 * 1024, retryDelayMs, lifetimeMs: 10 * retryDelayMs });
  group.hops.script = () => 'hang';
  const letters = Array.from({ length: 300 }, () => {
    const letter = group.submit('gw-1', ['q1'], FLOODER, 200, 300);
    group.until(() => letter.outcome === COMMITTED, 'a commit');
    return letter;
  });
  group.gateway('gw-1').kill();
  group.hops.script = () => 'defer';
  const triedOf = (): readonly number[] => letters.map(({ attempts }) => attempts.get('q1') ?? 0);
  const isDeferred = (): boolean => coreAt(group, 'gw-2').entries.table.census.count(EntryState.DEFERRED) === letters.length;
  group.until(isDeferred, 'the deferrals', 600_000);
  const { orders } = coreAt(group, 'gw-2');
  const seen = orders.begin({ verb: 'flush', selector: OF_FLOODER, dry_run: true, ...WHO });
  group.run(1000);
  assert.ok(typeof seen !== 'string');
  const ids = orders.answerOf(seen.order)?.met.map(({ queue_id: id }) => id) ?? [];
  const begun = orders.begin({ verb: 'flush', selector: isOfIds ? { ...OF_FLOODER, ids } : OF_FLOODER, ...WHO });
  assert.ok(typeof begun !== 'string');
  const told = (): QueueOrderAnswer => orders.answerOf(begun.order) ?? assert.fail();
  group.until(() => told().phase === 'found', 'all is looked at');
  const { matched, unread } = told();
  assert.ok(matched > 50 && (isOfIds || unread > 0), `${String(matched)} counted, ${String(unread)} not read`);
  group.run(30_000);
  // Who looks at all of them needs the memory for others.
  orders.begin({ verb: 'flush', selector: { reply: '5' }, dry_run: true, ...WHO });
  group.run(5_000);
  const before = triedOf();
  orders.go(begun.order, 0);
  group.until(() => told().phase === 'done', 'the end', 600_000);
  group.run(10_000);
  const more = triedOf().map((count, at) => count - (before[at] ?? 0));
  assert.deepEqual([told().done, more.filter((count) => count === 1).length, Math.max(...more)], [matched, matched, 1]);
});

test('a hold that is left keeps what a standing hold has when that is over', () => {
  const { group } = flooded({}, 1, 3);
  const { ruleDesk } = coreAt(group, 'gw-1');
  void ruleDesk.add({ verb: 'hold', selector: OF_FLOODER, ...WHO });
  group.run(1000);
  const held = [group.submit('gw-1', ['q1'], FLOODER), group.submit('gw-1', ['q1'], FLOODER)];
  group.until(() => held.every((letter) => stateOf(coreAt(group, 'gw-1'), 'q1', letter) === EntryState.HELD), 'the rule');
  group.run(1000);
  group.gateway('gw-1').kill();
  leave(group, 'gw-2', 'hold', OF_FLOODER);
  group.until(() => written(group) === 0, 'the end of the order', 120_000);
  const core = coreAt(group, 'gw-2');
  for (const { id } of core.rules.all()) void core.ruleDesk.cancel(id, WHO);
  group.run(10_000);
  assert.deepEqual(held.map((letter) => stateOf(core, 'q1', letter)), [EntryState.HELD, EntryState.HELD]);
});

describe('an order that a gateway was not asked for, though it lives', () => {
  test('is obeyed there, and means what arrived before it alone', () => {
    const { group, flood, others } = flooded();
    group.hops.replyMs = 5000;
    group.hops.script = () => 'defer';
    group.run(1000);
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    group.run(1100);
    const later = group.submit('gw-1', ['q1'], FLOODER);
    group.run(1000);
    assert.equal(written(group), 1, 'something is still in flight');
    open(group);
    group.hops.replyMs = 2;
    group.until(() => arrived(others) === 30 && later.arrivals.size === 1 && written(group) === 0, 'the others');
    assert.equal(arrived(flood), 0);
  });

  test('is obeyed after those that were given before: what one holds, the next releases', () => {
    const { group, flood, others } = flooded();
    group.hops.replyMs = 8000;
    group.hops.script = () => 'defer';
    group.run(1500);
    leave(group, 'gw-2', 'hold', OF_FLOODER);
    group.run(500);
    leave(group, 'gw-2', 'release', OF_FLOODER);
    group.run(3000);
    assert.equal(written(group), 2, 'something is still in flight, which the first means');
    group.hops.replyMs = 2;
    open(group);
    group.until(() => arrived(flood) + arrived(others) === 60 && written(group) === 0, 'all deliveries', 120_000);
  });

  test('is done with when the copies have all of it', () => {
    const { group } = flooded();
    for (const { id } of group.stores) group.network.holdAnswers('gw-1', id, true);
    leave(group, 'gw-2', 'delete', OF_FLOODER);
    const { orders } = coreAt(group, 'gw-1');
    group.until(() => orders.allLeft()[0]?.done === 30, 'all is deleted');
    group.run(2000);
    assert.equal(written(group), 1);
    for (const { id } of group.stores) group.network.holdAnswers('gw-1', id, false);
    group.until(() => written(group) === 0, 'the end of the order');
  });

  test('is not left where all mail was passed over, nor for a flush, nor before it goes', async () => {
    const group = Group.started({ gateways: ['gw-1'] });
    const { orders } = coreAt(group, 'gw-1');
    const begin = (verb: OrderVerb): string => {
      const begun = orders.begin({ verb, selector: { everything: true }, ...WHO });
      assert.ok(typeof begun !== 'string');
      group.until(() => orders.answerOf(begun.order)?.phase === 'found', 'all is looked at');
      return begun.order;
    };
    const [flush, held] = [begin('flush'), begin('hold')];
    assert.equal(orders.leave(held, []), undefined);
    assert.ok(orders.go(held, 0) && orders.go(flush, 0));
    group.run(1000);
    assert.equal(orders.leave(flush, []), undefined);
    const outcome = await orders.leave(held, orders.answerOf(held)?.partitions ?? []);
    assert.deepEqual([outcome?.code, outcome?.left.partitions], [200, []]);
    assert.equal(written(group), 0);
    group.register.goAway('refusing');
    group.run(10_000);
    const away = await orders.leave(held, []);
    assert.equal(away?.code, 503);
    assert.match(away.why, /does not answer/);
    assert.equal((await orders.withdraw(held, WHO)).code, 503);
    group.register.comeBack();
    group.run(10_000);
    const unknown = orders.withdraw(held, WHO);
    group.run(1000);
    assert.equal((await unknown).code, 404);
  });

  test('is passed over with a time that is no date, as is a rule, and nobody is hurt', () => {
    const group = Group.started({ stores: 3 });
    const until = { ...WHO, version: 1, wallMs: 9e15, untilWallMs: 9e15 };
    const odd = { 'orders/gw-9-1-1': { ...until, verb: 'delete', selector: { everything: true }, partitions: ['gw-1/0'] },
      'queues/gw-9-1-2': { ...until, verb: 'suspend', queue: '*' } };
    for (const [key, value] of Object.entries(odd)) {
      group.gateway('gw-2').register?.client.write([{ key: `rules/${key}`, ifRevision: 0, value: JSON.stringify(value) }], () => undefined);
    }
    group.until(() => written(group) === 1, 'it is there');
    group.run(5000);
    const core = coreAt(group, 'gw-1');
    assert.deepEqual([core.orders.allLeft(), core.rules.all()], [[], []]);
  });

  test('goes when all its partitions were passed over after all', () => {
    const { group } = flooded();
    group.gateway('gw-1').kill();
    const { order } = leave(group, 'gw-2', 'delete', OF_FLOODER);
    group.run(200);
    const all = [1, 2].flatMap((gateway) => [0, 1, 2, 3].map((n) => `gw-${String(gateway)}/${String(n)}`));
    void coreAt(group, 'gw-2').orders.leave(order, all);
    group.until(() => written(group) === 0, 'it is gone', 2000);
  });

  test('is refused when it is too long, and beyond 64 of them', async () => {
    const { group } = flooded();
    const core = coreAt(group, 'gw-2');
    const bridge = group.gateway('gw-2').register?.bridge;
    const order: LeftOrder = {
      verb: 'hold', selector: { sender: 'nobody@x' }, ...WHO, wallMs: 1, untilWallMs: 8.64e15, partitions: ['gw-9/0'],
    };
    const carriedOut = (selector: Selector): string => {
      const begun = core.orders.begin({ verb: 'hold', selector, ...WHO });
      assert.ok(typeof begun !== 'string', String(begun));
      group.until(() => core.orders.answerOf(begun.order)?.phase === 'found', 'all is looked at');
      core.orders.go(begun.order, 0);
      group.until(() => core.orders.answerOf(begun.order)?.phase === 'done', 'done');
      return begun.order;
    };
    const ids = Array.from({ length: 1000 }, (_, i) => formatMessageId(i + 1));
    const long = await core.orders.leave(carriedOut({ ids }), []);
    assert.equal(long?.code, 409);
    assert.match(long.why, /more words than the register keeps/);
    for (let i = 0; i < 64; i++) bridge?.changeLeftOrder(`gw-9-1-${String(i)}`, () => order, () => undefined);
    group.until(() => core.orders.left.count === 64, 'they stand');
    const beyond = await core.orders.leave(carriedOut(OF_FLOODER), []);
    assert.equal(beyond?.code, 409);
    assert.match(beyond.why, /64 orders are left already/);
  });
});
