/** Standing rules of operators over queues, src/gateway/orders/queue-rules.ts: suspended and refused queues, and who obeys. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RuleVerb } from '../../src/admin-api/queue-rules.js';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkAll, checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import { Group } from './group.js';
import { coreOf, stateOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';

const WHO = { reason: 'a test', who: 'ann' };
const SOON_MS = 1000;

interface Timed {
  run(ms: number): void;
}

/** In force at this gateway. */
function give(world: Timed, core: GatewayCore, verb: RuleVerb, queue: string, seconds?: number): void {
  const before = core.rules.all().length;
  void core.ruleDesk.add({ verb, queue, ...WHO, ...(seconds === undefined ? {} : { duration_seconds: seconds }) });
  world.run(SOON_MS);
  assert.equal(core.rules.all().length, before + 1, 'the rule is in force');
}

function cancelAll(world: Timed, core: GatewayCore): void {
  for (const { id } of core.rules.all()) void core.ruleDesk.cancel(id, WHO);
  world.run(SOON_MS);
  assert.equal(core.rules.all().length, 0, 'no rule is in force');
}

function tried(letters: readonly Letter[], queue = 'q1'): number {
  return letters.filter((letter) => letter.firstAttempt.has(queue)).length;
}

describe('a suspended queue', () => {
  test('starts nothing, others go on; what is in flight ends; resumed, all of it leaves in order', () => {
    const world = World.started({ queues: [{ name: 'q1', concurrency: 2 }, { name: 'q2' }] });
    world.hops.replyMs = 3000;
    const first = world.submitMany(5, ['q1']);
    world.run(500);
    assert.equal(tried(first), 2, 'as many as may be in flight');
    give(world, coreOf(world), 'suspend', 'q1');
    const more = world.submitMany(5, ['q1']);
    const other = world.submit(['q2']);
    world.run(20_000);
    assert.equal(tried([...first, ...more]), 2, 'nothing more is started');
    assert.equal(first.filter(({ arrivals }) => arrivals.size === 1).length, 2, 'what was in flight has ended');
    assert.equal(other.arrivals.size, 1);
    const [rule] = coreOf(world).rules.all();
    assert.deepEqual([rule?.queues, rule?.messages], [1, 8]);
    world.hops.replyMs = 2;
    cancelAll(world, coreOf(world));
    world.untilQuiet();
    checkAll(world.letters, ['q1', 'q2']);
    assert.ok([...first, ...more].every(({ arrivals }) => arrivals.size === 1));
  });

  test('keeps what is deferred in its place: it comes due, waits, and a strict queue goes on with its head', () => {
    const world = World.started({ queues: [{ name: 's1', ordering: 'strict', concurrency: 1 }] });
    world.hops.script = () => 'defer';
    const letters = world.submitMany(4, ['s1']);
    world.run(500);
    const [head] = letters;
    assert.ok(head !== undefined);
    give(world, coreOf(world), 'suspend', 's1');
    const before = head.firstAttempt.get('s1');
    world.hops.script = () => 'accept';
    world.run(30_000);
    assert.equal(tried(letters, 's1'), 1);
    assert.equal(stateOf(coreOf(world), 's1', head), EntryState.READY, 'its time has come');
    assert.equal(head.arrivals.size, 0);
    cancelAll(world, coreOf(world));
    world.untilQuiet();
    assert.equal(head.firstAttempt.get('s1'), before);
    checkAll(world.letters, ['s1']);
    assert.deepEqual(world.hops.arrivals.map(({ messageId }) => messageId), letters.map(({ id }) => id));
  });

  test('goes on by itself when the time of the rule is over, and the next order takes the rule out of the register', () => {
    const world = World.started();
    const core = coreOf(world);
    give(world, core, 'suspend', 'Q*', 10);
    const letter = world.submit(['q1']);
    world.run(7000);
    assert.equal(letter.arrivals.size, 0);
    world.run(3000);
    assert.equal(letter.arrivals.size, 1);
    const written = (): number => world.register.snapshot().list([{ prefix: 'rules/queues/' }]).length;
    assert.equal(written(), 1);
    world.run(60_000);
    give(world, core, 'refuse', 'q3');
    assert.equal(written(), 1, 'the new one alone');
  });

  test('does not stop the lifetime of its mail', () => {
    const world = World.started({ lifetimeMs: 60_000 });
    give(world, coreOf(world), 'suspend', 'q1');
    const letter = world.submit(['q1']);
    world.until(() => letter.reports.size === 1, 180_000, 'a report');
    assert.equal(tried([letter]), 0);
    assert.deepEqual([...letter.reports.keys()], ['failure 0@q1.example']);
  });

  test('is each of a route whose name is said, and new mail for it is refused by the same', () => {
    const world = World.started({ queues: [{ name: 'q1', perDomain: true }, { name: 'q2' }] });
    const core = coreOf(world);
    const rule = { selector: { route: 'q1' }, ...WHO } as const;
    void core.ruleDesk.add({ verb: 'suspend', ...rule });
    void core.ruleDesk.add({ verb: 'refuse', selector: { sender: '*@spam.example' }, ...WHO });
    world.run(SOON_MS);
    const letters = [world.submit(['q1']), world.submit(['q2'])];
    world.run(10_000);
    assert.deepEqual(letters.map(({ arrivals }) => arrivals.size), [0, 1]);
    assert.deepEqual([core.refusesFrom('x@spam.example', '', ''), core.refusesFrom('x@y.example', '', ''), core.refusesFrom('x@y.example', '', 'x@spam.example')], [true, false, true]);
    const [waiting] = [...core.registry.queues()];
    assert.ok(waiting !== undefined && core.admit(waiting.route) === '');
    void core.ruleDesk.add({ verb: 'refuse', ...rule });
    world.run(SOON_MS);
    assert.equal(core.admit(waiting.route), 'operator');
    cancelAll(world, core);
    world.untilQuiet();
    assert.equal(core.refusesFrom('x@spam.example', '', ''), false);
    checkAll(world.letters, world.queueNames);
  });

  test('is a domain\'s own by the name of the domain; of one that is shared the operator is told what to use in its place', async () => {
    const world = World.started({ queues: [{ name: 'q1', perDomain: true }, { name: 'q2' }] });
    const core = coreOf(world);
    for (const domain of ['q2.example', 'Q2.example']) {
      const { code, why } = await core.ruleDesk.add({ verb: 'suspend', selector: { domain }, ...WHO });
      assert.deepEqual([code, why], [404, `mail to ${domain} waits in the queue 'q2', which is not for it alone: twinpost queue suspend 'q2' stops all of that, twinpost queue hold --domain ${domain} --until-cancelled keeps back its mail alone; nothing was done`]);
    }
    const given = core.ruleDesk.add({ verb: 'suspend', selector: { domain: 'q*.example' }, ...WHO });
    world.run(SOON_MS);
    assert.match((await given).shared ?? '', /^mail to 'q\*\.example' also waits in the queue 'q2', which is not for it alone/);
    const letters = [world.submit(['q1']), world.submit(['q2'])];
    world.run(10_000);
    assert.deepEqual(letters.map(({ arrivals }) => arrivals.size), [0, 1]);
    cancelAll(world, core);
    world.untilQuiet();
    checkAll(world.letters, world.queueNames);
    const { code, why } = await coreOf(World.started()).ruleDesk.add({ verb: 'suspend', selector: { domain: '*.example' }, ...WHO });
    assert.equal(code, 404);
    assert.match(why, /^mail to '\*\.example' waits in the queues .*'q1', 'q2', .* not for it alone: .* queue hold --domain '\*\.example' --until-cancelled keeps back its mail alone; nothing was done$/);
  });

  test('is one by MX when the DNS has said that its mail goes to a site that is named, and no longer', () => {
    const world = World.started({ queues: [{ name: 'q1', perDomain: true, isByMx: true }] });
    const core = coreOf(world);
    void core.ruleDesk.add({ verb: 'suspend', selector: { site: 'mx1.host' }, ...WHO });
    world.run(SOON_MS);
    world.hops.script = () => 'unreachable';
    const letter = world.submit(['q1']);
    const [queue] = [...core.registry.queues()];
    assert.ok(queue !== undefined);
    core.onWay(queue, ['mx2.host', 'mx1.host']);
    assert.equal(queue.isSuspended, true);
    world.hops.script = () => 'accept';
    world.run(20_000);
    assert.equal(letter.arrivals.size, 0);
    core.onWay(queue, ['mx2.host']);
    world.untilQuiet();
    assert.equal(letter.arrivals.size, 1);
  });

  test('is one whose route leads to a site that is named since the configuration was read again, and no longer', () => {
    const world = World.started();
    const core = coreOf(world);
    void core.ruleDesk.add({ verb: 'suspend', selector: { site: 'bad.host' }, ...WHO });
    world.run(SOON_MS);
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1']);
    world.run(500);
    const before = letter.firstAttempt.get('q1');
    assert.ok(before !== undefined);
    world.hops.script = () => 'accept';
    world.lead('q1', 'bad.host');
    const late = world.submit(['q1']);
    world.run(20_000);
    assert.deepEqual([letter.arrivals.size, late.arrivals.size], [0, 0], 'nothing goes to a site that is suspended');
    assert.deepEqual(core.rules.all().map(({ queues, messages }) => [queues, messages]), [[1, 2]]);
    world.lead('q1', 'good.host');
    world.run(20_000);
    assert.deepEqual([letter.arrivals.size, late.arrivals.size], [1, 1], 'it goes on where the new route leads');
    world.untilQuiet();
    checkAll(world.letters, world.queueNames);
  });

  test('is one of class mail, unless the rule says which class', () => {
    const world = World.started();
    const core = coreOf(world);
    world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'reject' : 'accept');
    give(world, core, 'suspend', 'senders');
    const reported = world.submit(['q1']);
    world.run(2000);
    assert.equal(reported.reports.size, 1, 'the report leaves');
    cancelAll(world, core);
    give(world, core, 'suspend', 'senders/bounce');
    const [late, mail] = [world.submit(['q1']), world.submit(['senders'])];
    world.run(2000);
    assert.deepEqual([late.reports.size, mail.arrivals.size], [0, 1]);
    cancelAll(world, core);
    world.untilQuiet();
    assert.equal(late.reports.size, 1);
  });

  test('is not tried again by an order to flush, and is not dialled for new mail', () => {
    const world = World.started();
    const core = coreOf(world);
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1']);
    world.run(500);
    give(world, core, 'suspend', 'q1');
    let woken = 0;
    core.setDeliverySink({ onReady: () => { woken += 1; }, hasten: () => undefined, forget: () => undefined, outageOf: () => undefined });
    const order = core.orders.begin({ verb: 'flush', selector: { everything: true }, ...WHO });
    assert.ok(typeof order !== 'string');
    world.run(1000);
    assert.ok(core.orders.go(order.order, 0));
    world.submit(['q1']);
    world.run(5000);
    assert.deepEqual([woken, letter.arrivals.size], [0, 0]);
  });

  test('stays so when its gateway is killed and starts again', () => {
    const world = World.started();
    give(world, coreOf(world), 'suspend', 'q1');
    const letters = [...world.submitMany(20, ['q1']), world.submit(['q2'])];
    world.run(500);
    world.gateway.kill();
    world.gateway.start();
    world.until(() => letters.at(-1)?.arrivals.size === 1, 60_000, 'the mail of the other queue');
    world.run(10_000);
    assert.equal(tried(letters), 0);
    cancelAll(world, coreOf(world));
    world.untilQuiet();
    checkAll(world.letters, ['q1', 'q2']);
  });
});

describe('a group with a suspended queue', () => {
  /** Mail of gw-1 that waits, and its gateway is dead. */
  function died(isLate: boolean): { readonly group: Group; readonly letters: readonly Letter[] } {
    const group = Group.started({ stores: 3 });
    const [core, other] = [group.gateway('gw-1').core, group.gateway('gw-2')];
    assert.ok(core !== undefined && other.core !== undefined);
    if (isLate) other.register?.deafen('rules/');
    give(group, core, 'suspend', 'q1');
    assert.equal(other.core.rules.all().length, isLate ? 0 : 1, 'what the other one has heard');
    const letters = Array.from({ length: 20 }, () => group.submit('gw-1', ['q1']));
    letters.push(group.submit('gw-1', ['q2']));
    group.run(300);
    assert.equal(group.letters.count(COMMITTED), 21);
    group.gateway('gw-1').kill();
    return { group, letters };
  }

  for (const isLate of [false, true]) {
    test(`keeps it so at a takeover, and starts nothing first${isLate ? ', though the watch of the taker is late' : ''}`, () => {
      const { group, letters } = died(isLate);
      const holdsAll = (): boolean => group.served('gw-2', 'gw-1').length === 4
        && group.served('gw-2', 'gw-1').every(({ isRecovering }) => !isRecovering);
      group.until(() => {
        assert.equal(tried(letters), 0);
        return holdsAll();
      }, 'the takeover');
      group.run(20_000);
      assert.equal(tried(letters), 0);
      const core = group.gateway('gw-2').core;
      assert.ok(core !== undefined);
      assert.equal(core.rules.all()[0]?.messages, 20);
      void core.ruleDesk.cancel(core.rules.all()[0]?.id ?? '', WHO);
      // Whoever heard nothing of the rule hears nothing of its end: the owner does, and gets its mail back.
      group.gateway('gw-1').start();
      group.until(() => letters.every(({ arrivals }) => arrivals.size === 1), 'all deliveries', 120_000);
      checkNoLoss(group.letters);
      checkNoDuplicates(group.letters);
      checkOrder(group.letters, 'q1');
    });
  }

  test('keeps it so when the partition goes home', () => {
    const { group, letters } = died(false);
    group.until(() => group.served('gw-2', 'gw-1').length === 4, 'the takeover');
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-1', 'gw-1').length === 4, 'the hand-back', 120_000);
    group.run(20_000);
    assert.equal(tried(letters), 0);
    const core = group.gateway('gw-1').core;
    assert.ok(core !== undefined);
    cancelAll(group, core);
    group.until(() => letters.every(({ arrivals }) => arrivals.size === 1), 'all deliveries');
    checkOrder(group.letters, 'q1');
  });
});

describe('mail for a queue', () => {
  test('is refused while a rule says so, of that queue alone, and the port stays open', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    const core = coreOf(world);
    const before = world.submit(['q1']);
    world.run(200);
    give(world, core, 'refuse', 'q1');
    assert.deepEqual([core.admit(world.route('q1')), core.admit(world.route('senders'))], ['operator', '']);
    give(world, core, 'refuse', '*');
    world.run(2000);
    assert.equal(core.admit(world.route('senders')), 'operator');
    assert.equal(core.accepting, true);
    assert.equal(before.arrivals.size, 1, 'what was taken is delivered');
    cancelAll(world, core);
    assert.equal(core.admit(world.route('q1')), '');
  });
});

describe('an order about rules', () => {
  test('does nothing while the register is away, and says so', async () => {
    const world = World.started();
    const core = coreOf(world);
    give(world, core, 'suspend', 'q1');
    const [rule] = core.rules.all();
    world.register.goAway('refusing');
    world.run(10_000);
    const given = await core.ruleDesk.add({ verb: 'suspend', queue: 'q2', ...WHO });
    assert.equal(given.code, 503);
    assert.match(given.why, /does not answer.*nothing was done/);
    assert.equal((await core.ruleDesk.cancel(rule?.id ?? '', WHO)).code, 503);
    world.register.comeBack();
    world.run(10_000);
    assert.deepEqual(core.rules.all().map(({ rule: { queue } }) => queue), ['q1'], 'what stood is obeyed all the time');
  });

  test('is refused beyond 256 rules, and by an id that nobody knows', async () => {
    const world = World.started();
    const core = coreOf(world);
    for (let i = 0; i < 256; i++) void core.ruleDesk.add({ verb: 'suspend', queue: `x${String(i)}.example`, ...WHO });
    world.run(5000);
    assert.equal(core.rules.all().length, 256);
    const beyond = await core.ruleDesk.add({ verb: 'refuse', queue: 'q1', ...WHO });
    assert.equal(beyond.code, 409);
    assert.match(beyond.why, /256 rules stand already/);
    assert.equal((await core.ruleDesk.cancel('gw-9-1-1', WHO)).code, 404);
    assert.equal((await core.ruleDesk.cancel('../x', WHO)).code, 404);
  });
});
