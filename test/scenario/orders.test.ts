/** Orders of an operator over many messages, src/gateway/orders: what is meant, what becomes of it, what is told of it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { OrderVerb, QueueOrderAnswer, Selector } from '../../src/admin-api/queue-orders.js';
import { formatMessageId } from '../../src/base/text-id.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { NOTIFY_DELAY, NOTIFY_FAILURE, NOTIFY_NEVER, NOTIFY_SUCCESS, NOT_READY } from '../../src/gateway/mail-types.js';
import { doById } from './by-id.js';
import { checkAll } from './checks.js';
import { Group } from './group.js';
import { coreOf, stateOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const WHO = { reason: 'a test', who: 'ann' };
const S = EntryState;

function idText({ id }: Letter): string {
  return formatMessageId(id);
}

function begin(world: World, verb: OrderVerb, selector: Selector, isDry = false): string {
  const answer = coreOf(world).orders.begin({ verb, selector, ...WHO, ...(isDry ? { dry_run: true } : {}) });
  assert.ok(typeof answer !== 'string', String(answer));
  return answer.order;
}

function answerOf(world: World, id: string): QueueOrderAnswer {
  const answer = coreOf(world).orders.answerOf(id);
  assert.ok(answer !== undefined);
  return answer;
}

/** Found, and not gone on with. */
function found(world: World, verb: OrderVerb, selector: Selector, isDry = false): string {
  const id = begin(world, verb, selector, isDry);
  world.until(() => answerOf(world, id).phase === 'found', 5000, 'all is looked at');
  return id;
}

function carriedOut(world: World, verb: OrderVerb, selector: Selector): QueueOrderAnswer {
  const id = found(world, verb, selector);
  assert.ok(coreOf(world).orders.go(id, 0));
  world.until(() => answerOf(world, id).phase === 'done', 10_000, 'the order is done');
  return answerOf(world, id);
}

/** Mail that is deferred, but of queue `senders`. */
function deferring(more: ConstructorParameters<typeof World>[0] = {}): World {
  const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }], ...more });
  world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
  return world;
}

function untilDeferred(world: World, letters: readonly Letter[], queue = 'q1', boundMs = 10_000): void {
  world.until(() => letters.every((letter) => stateOf(coreOf(world), queue, letter) === S.DEFERRED), boundMs, 'deferrals');
}

/** What is to be told of a failure, and to whom: all of it that ends without a report, and two that are told. */
const TELLINGS = [
  { notify: NOTIFY_NEVER }, { notify: NOTIFY_DELAY }, { notify: NOTIFY_SUCCESS }, { reversePath: '' }, { notify: NOTIFY_FAILURE }, { notify: 0 },
] as const;
type Place = 'DEFERRED' | 'READY' | 'HEAD' | 'BEHIND' | 'DELAYED' | 'HELD' | 'ASIDE';

/** Of messages in this state, each in a queue of its own, one recipient of each is ended, or every one; then mail flows. */
function endedIn(place: Place, verb: 'delete' | 'bounce' | 'expire'): void {
  const cases = TELLINGS.flatMap((telling) => [{ telling, isWhole: false }, { telling, isWhole: true }]);
  const ordering = place === 'HEAD' || place === 'BEHIND' ? 'strict' : 'fifo';
  const world = World.started({ queues: cases.map((_, i) => ({ name: `q${String(i)}`, ordering })), retryDelayMs: 600_000 });
  const { wayTo } = world.gateway;
  if (place === 'ASIDE') world.gateway.wayTo = () => NOT_READY;
  world.hops.script = ({ address }) => (place === 'READY' ? 'unreachable' : place === 'ASIDE' && address.startsWith('2') ? 'reject' : 'defer');
  const first = place === 'BEHIND' ? cases.map((_, i) => world.submit([`q${String(i)}`])) : [];
  const letters = cases.map(({ telling }, i) => world.submit([`q${String(i)}`], { recipients: place === 'ASIDE' ? 3 : 2, ...telling }));
  world.run(20_000);
  if (place === 'HELD') carriedOut(world, 'hold', { everything: true });
  if (place === 'DELAYED') for (const { id } of letters) doById(coreOf(world), 'delay', id, WHO, world.gateway.wallMs() + 86_400_000);
  const ids = (isWhole: boolean): string[] => letters.filter((_, i) => cases[i]?.isWhole === isWhole).map(idText);
  const part = carriedOut(world, verb, { recipient: '1@*', ids: ids(false) });
  assert.deepEqual([part.done, part.not_done], place === 'HELD' ? [0, 6] : [6, 0]);
  assert.equal(carriedOut(world, verb, { ids: ids(true) }).done, 6);
  world.run(1000);
  world.gateway.wayTo = wayTo;
  world.hops.script = () => 'accept';
  for (const { id } of letters) doById(coreOf(world), 'release', id);
  world.run(700_000);
  world.untilQuiet();
  assert.ok(first.every(({ arrivals }) => arrivals.size === 1));
  letters.forEach((letter, i) => {
    const { telling = TELLINGS[0], isWhole = false } = cases[i] ?? {};
    const isTold = 'notify' in telling && (telling.notify === 0 || telling.notify === NOTIFY_FAILURE);
    const end = (at: number): string => {
      const address = `${String(at)}@q${String(i)}.example`;
      const [arrived, reports] = [letter.arrivals.get(address) ?? 0, letter.reports.get(`failure ${address}`)?.size ?? 0];
      return `${String(arrived)} arrived, ${String(reports)} reported, ${letter.ended.has(address) ? 'ended' : 'not ended'}`;
    };
    const [arrived, ended] = ['1 arrived, 0 reported, not ended', isTold && verb !== 'delete' ? '0 arrived, 1 reported, not ended' : '0 arrived, 0 reported, ended'];
    const isEnded = isWhole || place !== 'HELD';
    assert.deepEqual([end(0), end(1)], [isWhole ? ended : arrived, isEnded ? ended : arrived], `letter ${String(i)}`);
  });
  for (const queue of coreOf(world).registry.queues()) {
    assert.deepEqual([queue.readyCount, queue.deferredCount, queue.delayedCount, queue.heldCount, queue.isBlocked], [0, 0, 0, 0, false]);
  }
}

test('of ids that are named it is told which are met, also by a flush that does not try what is held', () => {
  const world = deferring();
  const [one, two] = world.submitMany(2, ['q1']);
  assert.ok(one !== undefined && two !== undefined);
  untilDeferred(world, [one, two]);
  const ids = [idText(one).toLowerCase(), idText(two), '00000000001'];
  assert.deepEqual(answerOf(world, found(world, 'hold', { ids }, true)).ids_unmet, ['00000000001']);
  assert.deepEqual(answerOf(world, found(world, 'hold', { ids, domain: 'q2.example' }, true)).ids_unmet, ids);
  assert.deepEqual(doById(coreOf(world), 'hold', two.id).whys, ['']);
  assert.deepEqual(answerOf(world, found(world, 'flush', { ids }, true)).ids_unmet, ['00000000001']);
  assert.deepEqual(answerOf(world, found(world, 'release', { ids }, true)).ids_unmet, [ids[0], ids[2]]);
  assert.equal(answerOf(world, found(world, 'hold', { everything: true }, true)).ids_unmet, undefined);
});

describe('an order over many messages', () => {
  test('has the number that it is given: the same once more is the same order, another one is refused', () => {
    const world = deferring();
    untilDeferred(world, [world.submit(['q1']), world.submit(['q1'])]);
    const { orders } = coreOf(world);
    const given = { verb: 'hold', selector: { queue: 'q1', queue_class: 'mail' }, ...WHO, id: 'flood-7' } as const;
    const begun = orders.begin(given);
    assert.ok(typeof begun !== 'string' && begun.order === 'flood-7', String(begun));
    world.until(() => answerOf(world, 'flood-7').phase === 'found', 5000, 'all is looked at');
    const again = orders.begin({ ...given, selector: { queue_class: 'mail', queue: 'q1' }, reason: 'sent twice' });
    assert.ok(typeof again !== 'string');
    assert.deepEqual([again.phase, again.matched, again.reason, orders.all().length], ['found', 2, WHO.reason, 1]);
    for (const other of [{ verb: 'delete' }, { selector: { queue: 'q2', queue_class: 'mail' } }, { dry_run: true }] as const) {
      assert.equal(orders.begin({ ...given, ...other }), 'flood-7 is another order');
    }
    for (const id of ['', 'a/b', '-x', 'x'.repeat(121)]) assert.match(String(orders.begin({ ...given, id })), /^an id of an order is up to 120/);
    assert.equal(orders.all().length, 1);
  });

  test('deletes those whom it means, of the queue and the recipients it names, and nobody is told', () => {
    const world = deferring();
    const [both, other] = [world.submit(['q1'], { recipients: 3 }), world.submit(['q2'])];
    untilDeferred(world, [both]);
    untilDeferred(world, [other], 'q2');
    const one = carriedOut(world, 'delete', { recipient: '1@q1.*' });
    assert.deepEqual([one.matched, one.matched_recipients, one.done, one.kept], [1, 1, 1, true]);
    assert.deepEqual([...both.ended], [['1@q1.example', 'deleted by an operator']]);
    const rest = carriedOut(world, 'delete', { domain: 'q1.example' });
    assert.deepEqual([rest.matched, rest.matched_recipients, rest.done], [1, 2, 1]);
    assert.equal(both.ended.size, 3);
    assert.equal(both.reports.size, 0);
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.deepEqual([both.arrivals.size, other.arrivals.size], [0, 1]);
    checkAll(world.letters, ['q1']);
  });

  test('returns, and expires, for the recipients it means: each is reported once, the others are delivered', () => {
    const world = deferring();
    const [returned, expired] = [world.submit(['q1'], { recipients: 2 }), world.submit(['q2'], { recipients: 2 })];
    untilDeferred(world, [returned]);
    untilDeferred(world, [expired], 'q2');
    assert.equal(carriedOut(world, 'bounce', { recipient: '0@q1.example' }).done, 1);
    assert.equal(carriedOut(world, 'expire', { recipient: '1@q2.example' }).done, 1);
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.deepEqual([...returned.reports.keys()], ['failure 0@q1.example']);
    assert.deepEqual([...expired.reports.keys()], ['failure 1@q2.example']);
    assert.deepEqual([[...returned.arrivals.keys()], [...expired.arrivals.keys()]], [['1@q1.example'], ['0@q2.example']]);
  });

  test('changes nothing before it may go on; what leaves meanwhile counts as gone before', () => {
    const world = deferring();
    const letters = world.submitMany(5, ['q1']);
    untilDeferred(world, letters);
    const id = found(world, 'bounce', { everything: true });
    world.hops.script = ({ messageId, queueName }) => (queueName === 'senders' || messageId === letters[0]?.id ? 'accept' : 'defer');
    world.until(() => letters[0]?.arrivals.size === 1, 10_000, 'one leaves');
    coreOf(world).orders.go(id, 0);
    world.until(() => answerOf(world, id).phase === 'done', 10_000, 'done');
    const { matched, done, gone_before: gone } = answerOf(world, id);
    assert.deepEqual([matched, done, gone], [5, 4, 1]);
    world.untilQuiet();
    assert.deepEqual(letters.map(({ arrivals, reports }) => [arrivals.size, reports.size]), [[1, 0], [0, 1], [0, 1], [0, 1], [0, 1]]);
    assert.equal(coreOf(world).orders.cancel(id, WHO), false, 'it is over');
  });

  test('is cancelled by itself when nobody says that it may go on', () => {
    const world = deferring();
    const letter = world.submit(['q1']);
    untilDeferred(world, [letter]);
    const id = found(world, 'delete', { everything: true });
    // Whoever asks for it is still there; a look at all orders is none of that.
    world.run(100_000);
    assert.equal(answerOf(world, id).phase, 'found');
    world.run(100_000);
    assert.equal(coreOf(world).orders.all()[0]?.phase, 'found');
    const isCancelled = (): boolean => coreOf(world).orders.all()[0]?.phase === 'cancelled';
    world.until(isCancelled, 30_000, 'the end of patience');
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.equal(letter.arrivals.size, 1);
  });

  test('that somebody followed is cancelled in its grace soon after that one is gone, and so ends nothing', () => {
    const world = deferring();
    const letter = world.submit(['q1']);
    untilDeferred(world, [letter]);
    const id = found(world, 'delete', { everything: true });
    assert.ok(coreOf(world).orders.go(id, 60_000));
    for (let i = 0; i < 4; i += 1) {
      // As slow as it is while another gateway does not answer.
      world.run(6000);
      assert.equal(answerOf(world, id).phase, 'grace');
    }
    world.run(16_000);
    const [ended] = coreOf(world).orders.all();
    assert.deepEqual([ended?.phase, ended?.unfollowed], ['cancelled', true]);
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.equal(letter.arrivals.size, 1);
  });

  test('waits for its grace, and a cancel within it ends nothing', () => {
    const world = deferring();
    const letters = world.submitMany(3, ['q1']);
    untilDeferred(world, letters);
    const id = found(world, 'delete', { everything: true });
    assert.ok(coreOf(world).orders.go(id, 60_000));
    world.run(50_000);
    assert.equal(answerOf(world, id).phase, 'grace');
    assert.equal(answerOf(world, id).done, 0);
    const wallMs = world.gateway.wallMs();
    const { given, ...inForce } = coreOf(world).orders.inForce()[0] ?? { given: 0 };
    assert.deepEqual(inForce, {
      order: id, verb: 'delete', selector: '--everything', phase: 'grace', ...WHO, matched: 3, done: 0,
      grace_ends: Math.ceil(wallMs / 1000) + 10, until: null,
    });
    assert.ok(given <= wallMs / 1000);
    coreOf(world).orders.cancel(id, WHO);
    assert.deepEqual(coreOf(world).orders.inForce(), []);
    assert.equal(answerOf(world, id).unfollowed, undefined, 'somebody did');
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.equal(world.letters.delivered, 3);
  });

  test('that is a dry run keeps nothing back, and can not be carried out', () => {
    const world = deferring();
    const letters = world.submitMany(4, ['q1']);
    untilDeferred(world, letters);
    const id = found(world, 'delete', { queue: 'q*' }, true);
    assert.equal(answerOf(world, id).matched, 4);
    assert.equal(coreOf(world).orders.go(id, 0), false);
    assert.deepEqual(coreOf(world).orders.inForce(), [], 'it does nothing');
    assert.ok(letters.every((letter) => stateOf(coreOf(world), 'q1', letter) !== S.HELD));
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.equal(world.letters.delivered, 4);
  });

  test('does not mean what is accepted after it was given', () => {
    const world = deferring();
    // What comes later takes the rows of what has gone.
    const [early, before] = [world.submitMany(2, ['q1']), world.submitMany(2, ['q1'])];
    untilDeferred(world, [...early, ...before]);
    carriedOut(world, 'delete', { ids: early.map(idText) });
    const id = begin(world, 'delete', { everything: true });
    const after = world.submitMany(2, ['q1']);
    world.until(() => answerOf(world, id).phase === 'found', 5000, 'all is looked at');
    coreOf(world).orders.go(id, 0);
    world.until(() => answerOf(world, id).phase === 'done', 10_000, 'done');
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.deepEqual(before.map(({ arrivals }) => arrivals.size), [0, 0]);
    assert.deepEqual(after.map(({ arrivals }) => arrivals.size), [1, 1]);
  });

  test('means what is there, though the clock was set back since it came', () => {
    const world = deferring();
    const letters = world.submitMany(2, ['q1']);
    untilDeferred(world, letters);
    world.gateway.wallAheadMs = -3_600_000;
    world.gateway.kill();
    world.startGateway();
    untilDeferred(world, letters);
    assert.equal(carriedOut(world, 'delete', { everything: true }).done, 2);
  });

  test('comes to what is being delivered when that has ended; what was delivered counts as gone before', () => {
    const world = deferring();
    world.hops.replyMs = 3000;
    world.hops.script = ({ messageId }) => (messageId % 2 === 0 ? 'accept' : 'defer');
    const letters = world.submitMany(4, ['q1']);
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === S.IN_FLIGHT), 2000, 'deliveries');
    const id = found(world, 'delete', { everything: true });
    coreOf(world).orders.go(id, 0);
    world.until(() => answerOf(world, id).waiting === 4, 2000, 'it waits');
    world.until(() => answerOf(world, id).phase === 'done', 10_000, 'done');
    const { matched, done, gone_before: gone } = answerOf(world, id);
    assert.deepEqual([matched, done, gone], [4, 2, 2]);
    world.untilQuiet();
    assert.equal(letters.filter(({ arrivals }) => arrivals.size === 1).length, 2);
    assert.equal(letters.filter(({ ended }) => ended.size === 1).length, 2);
  });

  test('frees a strict queue by the end of its head, and keeps the order of the rest', () => {
    const world = deferring({ queues: [{ name: 'q1', ordering: 'strict' }] });
    const letters = world.submitMany(4, ['q1']);
    const [head] = letters;
    assert.ok(head !== undefined);
    world.run(500);
    world.hops.script = ({ messageId, queueName }) => (messageId === head.id && queueName === 'q1' ? 'defer' : 'accept');
    carriedOut(world, 'bounce', { ids: [idText(head)] });
    world.until(() => world.letters.delivered === 3, 5000, 'the rest flows');
    world.untilQuiet();
    assert.deepEqual([...head.reports.keys()], ['failure 0@q1.example']);
    checkAll(world.letters, ['q1']);
  });

  test('of some recipients of another message of a strict queue leaves its head the head', () => {
    const world = deferring({ queues: [{ name: 'q1', ordering: 'strict' }], retryMs: 5000 });
    const [head, second] = [world.submit(['q1']), world.submit(['q1'], { recipients: 2 })];
    world.run(500);
    carriedOut(world, 'bounce', { recipient: '1@q1.example', ids: [idText(second)] });
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.deepEqual([...second.reports.keys()], ['failure 1@q1.example']);
    assert.deepEqual([head.attempts.get('q1'), second.attempts.get('q1')], [2, 1]);
    checkAll(world.letters, ['q1']);
  });

  test('is not done before the copies know of it', () => {
    const world = deferring();
    const letters = world.submitMany(3, ['q1']);
    untilDeferred(world, letters);
    const id = found(world, 'hold', { everything: true });
    for (const store of world.stores) world.holdAnswers(store, true);
    coreOf(world).orders.go(id, 0);
    world.run(2000);
    assert.deepEqual([answerOf(world, id).phase, answerOf(world, id).done, answerOf(world, id).kept], ['acting', 3, false]);
    for (const store of world.stores) world.holdAnswers(store, false);
    world.until(() => answerOf(world, id).phase === 'done', 5000, 'the copies have it');
    assert.ok(answerOf(world, id).kept);
  });

  test('of some recipients of the head of a strict queue leaves it the head', () => {
    const world = deferring({ queues: [{ name: 'q1', ordering: 'strict' }] });
    const [head] = [world.submit(['q1'], { recipients: 2 }), ...world.submitMany(2, ['q1'])];
    world.run(500);
    carriedOut(world, 'delete', { recipient: '1@q1.example', ids: [idText(head)] });
    world.run(500);
    assert.equal(world.letters.delivered, 0, 'the head still holds its queue');
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.deepEqual([...head.arrivals.keys()], ['0@q1.example']);
    checkAll(world.letters, ['q1']);
  });

  for (const verb of ['delete', 'bounce', 'expire'] as const) {
    test(`to ${verb} some recipients of one that waits in a strict queue leaves it its place`, () => {
      const world = deferring({ queues: [{ name: 'q1', ordering: 'strict' }] });
      world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
      const letters = [2, 1, 2, 1, 2, 2, 1].map((recipients) => world.submit(['q1'], { recipients }));
      world.run(200);
      const id = found(world, verb, { recipient: '1@q1.example' });
      world.hops.script = () => 'accept';
      assert.ok(coreOf(world).orders.go(id, 0));
      world.untilQuiet();
      assert.equal(answerOf(world, id).done, 4);
      const arrived = world.hops.arrivals.filter(({ queueName }) => queueName !== 'senders');
      assert.deepEqual(arrived.map(({ messageId }) => messageId), letters.map((letter) => letter.id));
      checkAll(world.letters, ['q1']);
    });
  }

  for (const place of ['DEFERRED', 'READY', 'HEAD', 'BEHIND', 'DELAYED', 'HELD', 'ASIDE'] as const) {
    for (const verb of ['delete', 'bounce', 'expire'] as const) {
      test(`to ${verb} recipients of what is ${place} tells whoever is to be told, and the others go on`, () => { endedIn(place, verb); });
    }
  }

  test('keeps that place over a takeover while its report is made', () => {
    const group = Group.started({ queues: [{ name: 'q1', ordering: 'strict' }] });
    group.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
    const letters = Array.from({ length: 12 }, (_, i) => group.submit('gw-1', ['q1'], `s${String(i)}@senders.example`, 200, 1 + (i % 2)));
    group.run(1000);
    const { orders, entries: { table } } = coreOf({ gateway: group.gateway('gw-1') });
    const begun = orders.begin({ verb: 'bounce', selector: { recipient: '1@q1.example' }, ...WHO });
    assert.ok(typeof begun !== 'string');
    group.until(() => orders.answerOf(begun.order)?.phase === 'found', 'all is looked at');
    for (const { id } of group.stores) group.network.holdAnswers('gw-1', id, true);
    orders.go(begun.order, 0);
    group.run(300);
    assert.equal(table.census.count(S.REPORTING), 6);
    group.gateway('gw-1').kill();
    group.until(() => group.served('gw-2', 'gw-1').length > 0, 'the takeover', 60_000);
    group.hops.script = () => 'accept';
    group.until(() => letters.every(({ arrivals }) => arrivals.size === 1), 'the others', 60_000);
    const arrived = group.hops.arrivals.filter(({ queueName }) => queueName !== 'senders').map(({ messageId }) => messageId);
    assert.deepEqual(arrived, letters.map(({ id }) => id));
    assert.equal(letters.filter(({ reports }) => reports.has('failure 1@q1.example')).length, 6);
  });

  test('flushes: what waits for its time is tried at once, and so is a next hop that was down', () => {
    const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }], retryDelayMs: 600_000 });
    world.hops.script = ({ queueName }) => (queueName === 'q2' ? 'unreachable' : 'defer');
    const letters = [...world.submitMany(10, ['q1']), world.submit(['q2'])];
    untilDeferred(world, letters.slice(0, 10));
    world.run(20_000);
    world.hops.script = () => 'accept';
    world.run(100);
    assert.equal(world.letters.delivered, 0);
    const { matched, done } = carriedOut(world, 'flush', { everything: true });
    assert.deepEqual([matched, done], [11, 11]);
    world.until(() => world.letters.delivered === 11, 1000, 'all is tried');
  });

  test('holds and releases; what was ended stays so over a crash, and what was only found goes on', () => {
    const world = deferring();
    const letters = world.submitMany(6, ['q1']);
    untilDeferred(world, letters);
    assert.equal(carriedOut(world, 'hold', { ids: letters.slice(0, 2).map(idText) }).done, 2);
    assert.equal(carriedOut(world, 'delete', { ids: letters.slice(2, 4).map(idText) }).done, 2);
    found(world, 'delete', { ids: letters.slice(4).map(idText) });
    world.gateway.kill();
    world.startGateway();
    world.hops.script = () => 'accept';
    world.until(() => world.letters.delivered === 2, 20_000, 'what was only found');
    world.run(5000);
    assert.deepEqual(letters.map(({ arrivals }) => arrivals.size), [0, 0, 0, 0, 1, 1]);
    assert.equal(carriedOut(world, 'release', { everything: true }).done, 2);
    world.untilQuiet();
    assert.deepEqual(letters.map(({ arrivals }) => arrivals.size), [1, 1, 0, 0, 1, 1]);
  });

  test('can not end some recipients of what an operator holds: it says so', () => {
    const world = deferring();
    const letter = world.submit(['q1'], { recipients: 2 });
    untilDeferred(world, [letter]);
    carriedOut(world, 'hold', { ids: [idText(letter)] });
    const { done, not_done: notDone, refused } = carriedOut(world, 'bounce', { recipient: '0@q1.example' });
    assert.deepEqual([done, notDone], [0, 1]);
    assert.match(refused[0]?.why ?? '', /not all of its recipients are meant/);
    assert.equal(carriedOut(world, 'bounce', { ids: [idText(letter)] }).done, 1);
    world.untilQuiet();
    assert.equal(letter.reports.size, 2);
  });

  test('at a gateway that has lost the partition changes nothing', () => {
    const group = Group.started();
    group.hops.script = () => 'defer';
    const letter = group.submit('gw-1', ['q1']);
    group.until(() => stateOf(coreOf({ gateway: group.gateway('gw-1') }), 'q1', letter) === S.DEFERRED, 'the deferral');
    group.gateway('gw-1').kill();
    group.until(() => group.served('gw-2', 'gw-1').length > 0, 'the takeover');
    const rescuer = { gateway: group.gateway('gw-2') };
    group.until(() => stateOf(coreOf(rescuer), 'q1', letter) === S.DEFERRED, 'the mail');
    const begun = coreOf(rescuer).orders.begin({ verb: 'hold', selector: { everything: true }, ...WHO });
    assert.ok(typeof begun !== 'string');
    const told = (): QueueOrderAnswer | undefined => coreOf(rescuer).orders.answerOf(begun.order);
    group.until(() => told()?.phase === 'found', 'all is looked at');
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
    coreOf(rescuer).orders.go(begun.order, 0);
    group.until(() => told()?.phase === 'done', 'the end');
    const { matched, done, not_done: notDone, moved, gone_before: gone, incomplete, partitions } = told() ?? assert.fail();
    assert.deepEqual([matched, done, notDone, moved, gone, incomplete], [1, 0, 1, 1, 0, true]);
    assert.ok(!partitions.some((name) => name.startsWith('gw-1/')), 'nobody has passed over it');
  });

  test('can not end a part of a message that was met in crashes: it stays held, all of it', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    const [poison] = world.submitMany(2, ['q1'], { recipients: 2 });
    assert.ok(poison !== undefined);
    world.run(100);
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'reject');
    world.poison.add(poison.id);
    world.gateway.kill();
    world.gateway.crashNotes = [11, 12].map((incarnation) => ({ ownerId: 'gw-1', messageId: poison.id, incarnation }));
    world.startGateway();
    world.until(() => stateOf(coreOf(world), 'q1', poison) === S.HELD, 10_000, 'held');
    world.run(1000);
    carriedOut(world, 'delete', { recipient: '1@q1.example', ids: [idText(poison)] });
    world.run(5000);
    assert.ok(world.gateway.isAlive, 'nobody released the poison');
    assert.equal(stateOf(coreOf(world), 'q1', poison), S.HELD);
  });

  test('can not end a part of a message that no route leads on', () => {
    const world = deferring();
    const letter = world.submit(['q1'], { recipients: 2 });
    untilDeferred(world, [letter]);
    world.unrouted.add('q1');
    world.gateway.kill();
    world.startGateway();
    world.until(() => stateOf(coreOf(world), 'q1', letter) === S.HELD, 10_000, 'held');
    world.run(1000);
    const answer = carriedOut(world, 'delete', { recipient: '1@q1.example' });
    world.run(1500);
    assert.equal(stateOf(coreOf(world), 'q1', letter), S.HELD, JSON.stringify(answer));
  });

  test('can not end a part of a damaged message, and sends nothing of it', () => {
    const world = deferring();
    const letter = world.submit(['q1'], { recipients: 2 });
    untilDeferred(world, [letter]);
    carriedOut(world, 'hold', { everything: true });
    for (const store of world.stores) world.holdAnswers(store, true);
    const release = found(world, 'release', { everything: true });
    coreOf(world).orders.go(release, 0);
    world.run(300);
    const { entries, registry, holds } = coreOf(world);
    const [queue] = registry.byName('q1');
    assert.ok(queue !== undefined);
    const row = entries.table.index.find(letter.id, queue.handle);
    const body = entries.contents.segments.read(entries.table.slot.get(row));
    body[0] = (body[0] ?? 0) ^ 1;
    for (const store of world.stores) world.holdAnswers(store, false);
    world.run(2000);
    assert.equal(holds.reasonOf(queue, row), 'its checksum is wrong');
    carriedOut(world, 'delete', { recipient: '1@q1.example' });
    world.run(500);
    assert.equal(stateOf(coreOf(world), 'q1', letter), S.HELD);
  });

  test('deletes a message whose envelope nobody can read by its id, and by nothing that only the envelope tells', () => {
    const world = deferring();
    const letter = world.submit(['q1']);
    untilDeferred(world, [letter]);
    carriedOut(world, 'hold', { everything: true });
    const { entries, registry } = coreOf(world);
    const [queue] = registry.byName('q1');
    assert.ok(queue !== undefined);
    const row = entries.table.index.find(letter.id, queue.handle);
    entries.head(row).fill(0xff);
    entries.envelopes.forget(row);
    const byRecipient = answerOf(world, found(world, 'delete', { ids: [idText(letter)], domain: 'q1.example' }));
    assert.deepEqual([byRecipient.matched, byRecipient.unread, byRecipient.ids_unmet], [0, 1, []], 'it is there, whatever its envelope says');
    const returned = carriedOut(world, 'bounce', { ids: [idText(letter)] });
    assert.deepEqual([returned.matched, returned.done, returned.refused[0]?.why], [1, 0, 'this release can not read its envelope: export it, or delete it by --id']);
    const deleted = carriedOut(world, 'delete', { ids: [idText(letter)] });
    assert.deepEqual([deleted.matched, deleted.unread, deleted.done, deleted.refused], [1, 0, 1, []]);
    assert.equal(stateOf(coreOf(world), 'q1', letter), undefined);
  });

  test('releases in the order in which messages stood, of a strict queue too', () => {
    const world = deferring({ queues: [{ name: 'q1', ordering: 'strict' }, { name: 'q2' }] });
    world.hops.script = ({ queueName }) => (queueName === 'q2' ? 'hang' : 'accept');
    // Somebody keeps a row, so that the others come back in the order in which they were given back.
    world.submit(['q2']);
    world.submitMany(6, ['q1']);
    world.run(2000);
    world.hops.script = ({ queueName }) => (queueName === 'q2' ? 'hang' : 'unreachable');
    const letters = world.submitMany(6, ['q1']);
    world.run(1000);
    const at = world.hops.arrivals.length;
    carriedOut(world, 'hold', { queue: 'q1' });
    carriedOut(world, 'release', { queue: 'q1' });
    world.hops.script = () => 'accept';
    world.run(5000);
    assert.deepEqual(world.hops.arrivals.slice(at).map(({ messageId }) => messageId), letters.map(({ id: one }) => one));
  });

  test('of some recipients of the head of a strict queue lets nobody overtake what is left of it', () => {
    const world = deferring({ queues: [{ name: 'q1', ordering: 'strict' }] });
    const head = world.submit(['q1'], { recipients: 2 });
    world.submitMany(2, ['q1']);
    world.run(500);
    world.hops.script = ({ messageId }) => (messageId === head.id ? 'defer' : 'accept');
    carriedOut(world, 'delete', { recipient: '1@q1.example', ids: [idText(head)] });
    world.run(3000);
    assert.equal(world.letters.delivered, 0, 'the head still holds its queue');
  });

  test('that is cancelled lets nobody overtake the head of a strict queue', () => {
    const world = deferring({ queues: [{ name: 'q1', ordering: 'strict' }] });
    const head = world.submit(['q1']);
    world.submitMany(2, ['q1']);
    world.run(500);
    world.hops.script = ({ messageId }) => (messageId === head.id ? 'defer' : 'accept');
    const id = found(world, 'delete', { ids: [idText(head)] });
    coreOf(world).orders.cancel(id, WHO);
    world.run(3000);
    assert.equal(world.letters.delivered, 0);
  });

  test('has at most 1,000 reports made in a second', () => {
    const world = deferring({ queues: [{ name: 'q1', concurrency: 1 }] });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'hang');
    world.submitMany(4000, ['q1']);
    world.run(3000);
    const id = found(world, 'bounce', { domain: 'q1.example' });
    world.run(2000);
    coreOf(world).orders.go(id, 0);
    world.run(1000);
    assert.ok(answerOf(world, id).done <= 1100, `${String(answerOf(world, id).done)} reports in a second`);
  });

  test('ends no more than was counted, though more is meant by then', () => {
    const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }] });
    world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'defer' : 'unreachable');
    const [first, second] = [world.submit(['q1']), world.submit(['q2'])];
    untilDeferred(world, [first]);
    const id = found(world, 'delete', { reply: '4.3.0' });
    assert.equal(answerOf(world, id).matched, 1);
    world.hops.script = () => 'defer';
    untilDeferred(world, [second], 'q2');
    coreOf(world).orders.go(id, 0);
    world.until(() => answerOf(world, id).phase === 'done', 10_000, 'done');
    assert.deepEqual([answerOf(world, id).done, first.ended.size, second.ended.size], [1, 1, 0]);
  });

  test('does not mean whom a report is owed of already, to return it', () => {
    const world = deferring({ partitions: 1 });
    world.hops.script = ({ address, queueName }) => (queueName === 'senders' ? 'accept' : address.startsWith('0') ? 'reject' : 'defer');
    world.submit(['q1'], { recipients: 2 });
    world.until(() => coreOf(world).entries.table.census.count(S.REPORTING) === 1, 5000, 'a report that is owed');
    for (const store of world.stores) world.holdAnswers(store, true);
    const [returned, deleted] = (['bounce', 'delete'] as const).map((verb) => found(world, verb, { queue: 'q1' }, true));
    assert.deepEqual([returned, deleted].map((id) => answerOf(world, id ?? '').matched_recipients), [1, 2]);
  });

  test('says in every answer what it means, and where that is led', () => {
    const world = deferring();
    const id = found(world, 'hold', { queue: 'q1' });
    const begun = coreOf(world).orders.begin({ verb: 'rebind', selector: { queue: 'q1' }, route: 'q2', ...WHO });
    assert.ok(typeof begun !== 'string');
    assert.deepEqual([answerOf(world, id).selector, begun.selector, begun.route], [{ queue: 'q1' }, { queue: 'q1' }, 'q2']);
    assert.deepEqual(coreOf(world).orders.inForce().map(({ selector }) => selector), ['--queue q1', '--queue q1 by route q2']);
  });

  test('flushes a thousand messages a second, and not all at once', () => {
    const world = World.started({ queues: [{ name: 'q1', concurrency: 1000 }], partitions: 1, retryDelayMs: 600_000 });
    world.hops.script = () => 'defer';
    const letters = world.submitMany(500, ['q1']);
    untilDeferred(world, letters);
    world.hops.script = () => 'accept';
    assert.equal(carriedOut(world, 'flush', { everything: true }).done, 500);
    const [before, sinceMs] = [world.letters.delivered, world.scheduler.nowMs];
    world.run(200);
    const [count, ms] = [world.letters.delivered - before, world.scheduler.nowMs - sinceMs];
    assert.ok(count > 100 && count <= ms + 50, `${String(count)} in ${String(ms)} ms`);
    world.until(() => world.letters.delivered === 500, 1000, 'all is tried');
  });

  for (const [when, replyMs, tries] of [['within a minute', 20_000, 2], ['later', 70_000, 1]] as const) {
    test(`flushes what is being tried meanwhile, and deferred ${when}: it is tried ${String(tries)} times in all`, () => {
      const world = World.started({ queues: [{ name: 'q1', concurrency: 2 }], partitions: 1, retryDelayMs: 600_000 });
      world.hops.replyMs = replyMs;
      let tried = 0;
      world.hops.script = () => {
        tried += 1;
        return 'defer';
      };
      const letters = world.submitMany(2, ['q1']);
      world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === S.IN_FLIGHT), 5000, 'attempts');
      const { matched, done } = carriedOut(world, 'flush', { everything: true });
      assert.deepEqual([matched, done, tried], [2, 2, 2]);
      untilDeferred(world, letters, 'q1', 80_000);
      world.hops.replyMs = 2;
      world.run(60_000);
      assert.equal(tried, 2 * tries, 'and not again');
    });
  }

  for (const when of ['tried', 'reported'] as const) {
    test(`flushes what is being ${when} meanwhile, though a report on some of its recipients takes long: the others are tried once more`, () => {
      const world = deferring({ partitions: 1, retryDelayMs: 600_000 });
      world.hops.replyMs = 1_000;
      world.hops.script = ({ address, queueName }) => (queueName === 'senders' ? 'accept' : address.startsWith('0') ? 'reject' : 'defer');
      const letter = world.submit(['q1'], { recipients: 2 });
      const becomes = (state: number): void => { world.until(() => stateOf(coreOf(world), 'q1', letter) === state, 5_000, `state ${String(state)}`); };
      becomes(S.IN_FLIGHT);
      if (when === 'tried') carriedOut(world, 'flush', { everything: true });
      becomes(S.REPORTING);
      for (const store of world.stores) world.holdAnswers(store, true);
      if (when === 'reported') carriedOut(world, 'flush', { everything: true });
      world.run(1_000);
      assert.equal(stateOf(coreOf(world), 'q1', letter), S.REPORTING);
      for (const store of world.stores) world.holdAnswers(store, false);
      world.hops.script = () => 'accept';
      world.run(10_000);
      assert.equal(letter.arrivals.size, 1);
    });
  }

  test('flushes what is being tried meanwhile, unless an operator holds or delays it as soon as it is deferred', () => {
    const world = deferring({ retryDelayMs: 600_000 });
    world.hops.replyMs = 10_000;
    const [held, late, free] = world.submitMany(3, ['q1']);
    assert.ok(held !== undefined && late !== undefined && free !== undefined);
    world.run(1000);
    carriedOut(world, 'flush', { everything: true });
    untilDeferred(world, [held, late, free], 'q1', 20_000);
    doById(coreOf(world), 'hold', held.id);
    doById(coreOf(world), 'delay', late.id, WHO, world.gateway.wallMs() + 600_000);
    world.hops.replyMs = 2;
    world.hops.script = () => 'accept';
    world.run(30_000);
    assert.deepEqual([held, late, free].map(({ arrivals }) => arrivals.size), [0, 0, 1]);
  });

  test('flushes nothing of a queue that is suspended, and says so', () => {
    const world = deferring({ retryDelayMs: 600_000 });
    const letters = [world.submit(['q1']), world.submit(['q2'])];
    world.until(() => letters.every((letter, i) => stateOf(coreOf(world), `q${String(i + 1)}`, letter) === S.DEFERRED), 10_000, 'deferrals');
    void coreOf(world).ruleDesk.add({ verb: 'suspend', queue: 'q1', ...WHO });
    world.run(1000);
    world.hops.script = () => 'accept';
    const { matched, done, not_done: notDone, refused } = carriedOut(world, 'flush', { everything: true });
    assert.deepEqual([matched, done, notDone, refused.map(({ queue_name: name, why }) => [name, why])], [2, 1, 1, [['q1', 'its queue is suspended: queue resume lets it go']]]);
    world.run(5000);
    assert.deepEqual(letters.map(({ arrivals }) => arrivals.size), [0, 1]);
  });

  test('flushes nothing that is held, and does not count it', () => {
    const world = deferring();
    const letters = world.submitMany(3, ['q1']);
    untilDeferred(world, letters);
    carriedOut(world, 'hold', { everything: true });
    const { done } = carriedOut(world, 'flush', { everything: true });
    assert.equal(done, 0);
  });
});
