/** Orders of operators that stand, src/gateway/orders/standing-orders.ts: what of new mail they catch, who else obeys, how they end. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NewQueueRule } from '../../src/admin-api/queue-rules.js';
import { formatMessageId } from '../../src/base/text-id.js';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import { bindingLimits } from '../../src/gateway/look/binding-limits.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { doById } from './by-id.js';
import { checkAll, checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { coreOf, stateOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const WHO = { reason: 'a flood', who: 'ann' };
const SOON_MS = 1000;

type Given = Pick<NewQueueRule, 'verb' | 'selector' | 'duration_seconds' | 'not_before_ms'>;

interface Timed {
  run(ms: number): void;
}

function give(world: Timed, core: GatewayCore, given: Given): string {
  let id = '';
  void core.ruleDesk.add({ ...given, ...WHO }).then((outcome) => { id = outcome.id; });
  const before = core.rules.all().length;
  world.run(SOON_MS);
  assert.equal(core.rules.all().length, before + 1, 'it stands');
  return core.rules.all().at(-1)?.id ?? id;
}

function cancel(world: Timed, core: GatewayCore, id: string): void {
  void core.ruleDesk.cancel(id, WHO);
  world.run(SOON_MS);
  assert.ok(core.rules.all().every((rule) => rule.id !== id), 'it is over');
}

function tried(letters: readonly Letter[], queue = 'q1'): number {
  return letters.filter((letter) => letter.firstAttempt.has(queue)).length;
}

function statesOf(core: GatewayCore, letters: readonly Letter[], queue = 'q1'): readonly (number | undefined)[] {
  return letters.map((letter) => stateOf(core, queue, letter));
}

describe('a hold that stands', () => {
  test('keeps back what comes before it is tried, and lets it go when it is cancelled; other mail goes', () => {
    const world = World.started();
    const core = coreOf(world);
    world.submit(['q2']);
    world.run(500);
    const id = give(world, core, { verb: 'hold', selector: { domain: 'q1.example' } });
    const letters = world.submitMany(5, ['q1']);
    const both = world.submit(['q1', 'q2']);
    world.run(10_000);
    assert.equal(tried([...letters, both]), 0);
    assert.deepEqual(statesOf(core, letters), letters.map(() => EntryState.HELD));
    assert.deepEqual([both.arrivals.size, core.rules.all()[0]?.messages], [1, 6]);
    cancel(world, core, id);
    assert.equal(core.orders.standing.isAny, false);
    world.untilQuiet();
    checkAll(world.letters, ['q2']);
    checkNoDuplicates(world.letters);
    assert.ok(letters.every(({ arrivals }) => arrivals.size === 1));
  });

  test('by site follows the routes when the configuration is read again', () => {
    const world = World.started();
    const core = coreOf(world);
    give(world, core, { verb: 'hold', selector: { site: 'bad.host' } });
    void core.ruleDesk.add({ verb: 'suspend', queue: 'q2', ...WHO });
    world.run(SOON_MS);
    world.lead('q1', 'bad.host');
    const [one, two] = [world.submit(['q1']), world.submit(['q2'])];
    world.run(SOON_MS);
    assert.deepEqual([stateOf(core, 'q1', one), stateOf(core, 'q2', two)], [EntryState.HELD, EntryState.READY]);
    world.lead('q1', 'good.host');
    world.lead('q2', 'bad.host');
    world.run(SOON_MS);
    assert.deepEqual([one.arrivals.size, stateOf(core, 'q2', two)], [1, EntryState.HELD], 'what leads elsewhere goes, what came is caught');
  });

  test('is done to mail as it comes, though nothing is handed out of its queue', () => {
    const world = World.started();
    const core = coreOf(world);
    void core.ruleDesk.add({ verb: 'suspend', queue: 'q1', ...WHO });
    world.run(SOON_MS);
    give(world, core, { verb: 'delete', selector: { larger_than_bytes: 5000 } });
    give(world, core, { verb: 'hold', selector: { domain: 'q1.example', sender: '*' } });
    const [held, both] = [world.submit(['q1']), world.submit(['q1', 'q2'])];
    world.run(SOON_MS);
    assert.deepEqual(statesOf(core, [held, both]), [EntryState.HELD, EntryState.HELD]);
    assert.equal(both.arrivals.size, 1);
  });

  test('means class mail, unless it says another one: reports go', () => {
    const world = World.started();
    const core = coreOf(world);
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'reject');
    give(world, core, { verb: 'hold', selector: { domain: 'senders.example' } });
    const letter = world.submit(['q1']);
    world.until(() => letter.reports.size === 1, 10_000, 'the report');
    world.untilQuiet();
  });

  test('does not catch again what an operator releases, over a restart either, and keeps what an operator holds by hand', () => {
    const world = World.started();
    const id = give(world, coreOf(world), { verb: 'hold', selector: { sender: '*' } });
    const [released, kept, caught] = world.submitMany(3, ['q1']);
    assert.ok(released !== undefined && kept !== undefined && caught !== undefined);
    world.hops.script = () => 'defer';
    world.run(SOON_MS);
    const told = doById(coreOf(world), 'release', released.id);
    assert.deepEqual(told.whys, ['']);
    world.until(() => told.isKept && tried([released]) === 1, 5000, 'it is tried');
    assert.deepEqual(doById(coreOf(world), 'hold', kept.id).whys, ['']);
    world.run(SOON_MS);
    world.gateway.kill();
    world.hops.script = () => 'accept';
    world.gateway.start();
    world.until(() => released.arrivals.size === 1, 20_000, 'what was released');
    world.run(5000);
    assert.deepEqual(statesOf(coreOf(world), [kept, caught]), [EntryState.HELD, EntryState.HELD]);
    cancel(world, coreOf(world), id);
    world.until(() => caught.arrivals.size === 1, 5000, 'what the rule held');
    world.run(5000);
    assert.deepEqual(statesOf(coreOf(world), [kept]), [EntryState.HELD]);
    doById(coreOf(world), 'release', kept.id);
    world.untilQuiet();
    checkAll(world.letters, ['q1']);
  });

  test('catches what was committed when the gateway ended, and had not been held yet', () => {
    const world = World.started();
    give(world, coreOf(world), { verb: 'hold', selector: { sender: '*' } });
    const letter = world.submit(['q1']);
    world.until(() => {
      const state = stateOf(coreOf(world), 'q1', letter);
      return state !== undefined && state !== EntryState.STORING;
    }, 5000, 'the commit');
    world.gateway.kill();
    world.gateway.start();
    world.run(30_000);
    assert.deepEqual([tried([letter]), stateOf(coreOf(world), 'q1', letter)], [0, EntryState.HELD]);
    assert.match(JSON.stringify(coreOf(world).rules.all()), /"messages":[01]/);
  });

  test('by the host that takes the mail is done when the DNS has named that, and stays so when nobody asks the DNS', () => {
    const world = World.started({ queues: [{ name: 'q1', perDomain: true, isByMx: true }] });
    const [core, id] = [coreOf(world), give(world, coreOf(world), { verb: 'hold', selector: { site: 'mx1.*' } })];
    const first = world.submit(['q1']);
    world.until(() => first.arrivals.size === 1, 5000, 'mail that is known to go nowhere else');
    for (const queue of core.registry.queues()) core.onWay(queue, ['mx1.host', 'mx2.host']);
    const letter = world.submit(['q1']);
    world.run(SOON_MS);
    assert.equal(tried([letter], 'q1/q1.example'), 0);
    world.gateway.kill();
    world.gateway.start();
    world.run(30_000);
    assert.equal(letter.arrivals.size, 0);
    cancel(world, coreOf(world), id);
    world.untilQuiet();
    assert.equal(letter.arrivals.size, 1);
  });

  test('stops the lifetime of its mail', () => {
    const world = World.started({ lifetimeMs: 10_000 });
    const id = give(world, coreOf(world), { verb: 'hold', selector: { sender: '*' } });
    const letter = world.submit(['q1']);
    world.run(60_000);
    cancel(world, coreOf(world), id);
    world.untilQuiet();
    assert.deepEqual([letter.arrivals.size, letter.reports.size], [1, 0]);
  });

  test('beside an order that passed over what was there lets go that, too; of two the mail waits for both', () => {
    const world = World.started();
    const core = coreOf(world);
    world.hops.script = () => 'defer';
    const before = world.submit(['q1']);
    world.until(() => stateOf(core, 'q1', before) === EntryState.DEFERRED, 5000, 'the deferral');
    const [one, two] = ['*@q1.example', '*'].map((recipient) => give(world, core, { verb: 'hold', selector: { recipient } }));
    assert.ok(one !== undefined && two !== undefined);
    const order = core.orders.begin({ verb: 'hold', selector: { recipient: '*@q1.example' }, standing: true, ...WHO });
    assert.ok(typeof order !== 'string');
    world.run(SOON_MS);
    assert.ok(core.orders.go(order.order, 0));
    world.run(SOON_MS);
    world.hops.script = () => 'accept';
    const later = world.submit(['q1']);
    world.run(5000);
    cancel(world, core, two);
    world.run(5000);
    assert.deepEqual(statesOf(core, [before, later]), [EntryState.HELD, EntryState.HELD]);
    cancel(world, core, one);
    world.untilQuiet();
    checkAll(world.letters, ['q1']);
  });

  test('that is over lets nothing go while the gateway may not deliver: its rules may be old', () => {
    const world = World.started({ partitions: 1 });
    const core = coreOf(world);
    const id = give(world, core, { verb: 'hold', selector: { sender: '*' } });
    const letter = world.submit(['q1']);
    world.run(SOON_MS);
    for (const store of world.stores) world.holdAnswers(store, true);
    const [place] = [...core.registry.placesOf(letter.id)];
    assert.ok(place !== undefined);
    world.until(() => !place.queue.partition.mayDeliver(world.scheduler.nowMs), 30_000, 'no lease');
    cancel(world, core, id);
    world.run(SOON_MS);
    assert.equal(core.holds.reasonOf(place.queue, place.row), `ann: a flood (rule ${id})`);
    for (const store of world.stores) world.holdAnswers(store, false);
    world.until(() => letter.arrivals.size === 1, 120_000, 'its delivery');
  });

  test('frees a strict queue', () => {
    const world = World.started({ queues: [{ name: 's1', ordering: 'strict', concurrency: 1 }] });
    const id = give(world, coreOf(world), { verb: 'hold', selector: { larger_than_bytes: 5000 } });
    const letters = [10, 9000, 10].map((bytes) => world.submit(['s1'], { bytes }));
    world.until(() => world.letters.delivered === 2, 5000, 'the others');
    cancel(world, coreOf(world), id);
    world.untilQuiet();
    assert.ok(letters.every(({ arrivals }) => arrivals.size === 1));
  });
});

describe('an order that stands', () => {
  test('returns, deletes and delays what comes, the newest first, each for the recipients it means, until its time is over', () => {
    const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }, { name: 'q3' }] });
    const core = coreOf(world);
    give(world, core, { verb: 'delete', selector: { domain: 'q*' }, duration_seconds: 60 });
    give(world, core, { verb: 'bounce', selector: { recipient: '1@q1.example' }, duration_seconds: 60 });
    const untilMs = core.frame.wallMs() + core.frame.aheadMs() + 30_000;
    give(world, core, { verb: 'delay', selector: { route: 'q3' }, not_before_ms: Math.ceil(untilMs), duration_seconds: 60 });
    const [part, gone, late] = [world.submit(['q1'], { recipients: 2 }), world.submit(['q2']), world.submit(['q3'])];
    world.run(10_000);
    assert.deepEqual([...part.reports.keys()], ['failure 1@q1.example']);
    assert.deepEqual([...gone.ended], [['0@q2.example', 'deleted by an operator']]);
    assert.deepEqual([part.arrivals.size, gone.arrivals.size, late.arrivals.size], [1, 0, 0]);
    assert.equal(stateOf(core, 'q3', late), EntryState.DEFERRED);
    assert.deepEqual(core.rules.all().map(({ messages }) => messages), [1, 1, 1]);
    world.until(() => late.arrivals.size === 1, 40_000, 'it is due');
    world.run(60_000);
    assert.deepEqual([core.rules.all(), core.orders.standing.isAny], [[], false]);
    const after = world.submit(['q2']);
    world.untilQuiet();
    assert.equal(after.arrivals.size, 1);
  });

  test('of a delay that is too far away is refused; of one that another program has written its mail waits', () => {
    const world = World.started();
    const core = coreOf(world);
    const farMs = (core.frame.wallMs() + core.frame.aheadMs()) * 1000;
    const given = { verb: 'delay', selector: { domain: 'q1.example' }, not_before_ms: Math.ceil(farMs), ...WHO } as const;
    const answers: unknown[] = [];
    void core.ruleDesk.add(given).then(({ code, why }) => { answers.push([code, why]); });
    const why = core.orders.begin(given);
    assert.match(String(why), /^a delay is a year at most/);
    world.run(SOON_MS);
    assert.deepEqual(core.rules.all(), []);
    core.orders.obey(new Map([['x', { ...given, not_before_ms: 253_402_300_799_999, wallMs: 1, untilWallMs: 0 }]]));
    const letter = world.submit(['q1']);
    world.run(SOON_MS);
    assert.deepEqual([world.gateway.isAlive, stateOf(core, 'q1', letter)], [true, EntryState.DEFERRED]);
  });

  test('of a delay whose time has come does nothing more', () => {
    const world = World.started();
    const core = coreOf(world);
    const untilMs = Math.ceil(core.frame.wallMs() + core.frame.aheadMs() + 5000);
    give(world, core, { verb: 'delay', selector: { domain: 'q1.example' }, not_before_ms: untilMs });
    world.run(10_000);
    const letter = world.submit(['q1']);
    world.run(SOON_MS);
    const [inForce] = core.rules.all();
    const [queue] = core.registry.byName('q1');
    assert.ok(inForce !== undefined && queue !== undefined);
    assert.deepEqual([letter.arrivals.size, inForce.messages, core.rules.shareOf(inForce.rule, queue)], [1, 0, 'none']);
  });

  test('catches what came since it was given, though nothing was tried of it, and nothing that came before', () => {
    const world = World.started();
    const core = coreOf(world);
    world.hops.script = () => 'unreachable';
    const before = world.submit(['q1']);
    world.run(5000);
    const sinceSeconds = Math.floor((core.frame.wallMs() + core.frame.aheadMs()) / 1000);
    world.run(2000);
    const between = world.submit(['q1']);
    world.run(2000);
    void core.ruleDesk.add({ verb: 'delete', selector: { domain: 'q1.example' }, since: sinceSeconds, ...WHO });
    world.run(5000);
    assert.deepEqual([between.ended.size, before.ended.size], [1, 0]);
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.deepEqual([before.arrivals.size, between.arrivals.size], [1, 0]);
  });
});

describe('an order that stands after a grace', () => {
  const secondsOf = (core: GatewayCore): number => Math.floor((core.frame.wallMs() + core.frame.aheadMs()) / 1000);
  function tried(): { readonly world: World; readonly letters: readonly [Letter, Letter, Letter]; readonly since: number } {
    const world = World.started();
    const core = coreOf(world);
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
    const untilTried = (letter: Letter): void => { world.until(() => stateOf(core, 'q1', letter) === EntryState.DEFERRED, 5000, 'the deferral'); };
    const before = world.submit(['q1']);
    untilTried(before);
    world.run(2000);
    const since = secondsOf(core);
    world.run(2000);
    const [meanwhile, released] = [world.submit(['q1']), world.submit(['q1'])];
    untilTried(meanwhile);
    untilTried(released);
    assert.deepEqual(doById(core, 'hold', released.id).whys, ['']);
    world.run(3000);
    assert.deepEqual(doById(core, 'release', released.id).whys, ['']);
    world.run(3000);
    return { world, letters: [before, meanwhile, released], since };
  }

  for (const verb of ['delete', 'bounce'] as const) {
    test(`means what came in it, to ${verb} it, though it was tried before; nothing that came before, or that an operator let go`, () => {
      const { world, letters: [before, meanwhile, released], since } = tried();
      const core = coreOf(world);
      void core.ruleDesk.add({ verb, selector: { domain: 'q1.example' }, since, ...WHO });
      world.run(2000);
      assert.deepEqual([core.rules.all()[0]?.messages, before, meanwhile, released].map((one) => (typeof one === 'object' ? one.ended.size + one.reports.size > 0 : one)), [1, false, true, false]);
      world.hops.script = () => 'accept';
      world.untilQuiet();
      assert.deepEqual([before, meanwhile, released].map(({ arrivals }) => [...arrivals.keys()].some((to) => to.endsWith('q1.example'))), [true, false, true]);
    });
  }
});

describe('a group in which a hold stands', () => {
  function died(): { readonly group: Group; readonly letters: Letter[]; readonly id: string } {
    const group = Group.started({ stores: 3 });
    const { core } = group.gateway('gw-1');
    assert.ok(core !== undefined);
    const id = give(group, core, { verb: 'hold', selector: { domain: 'q1.example' } });
    const letters = Array.from({ length: 20 }, () => group.submit('gw-1', ['q1']));
    letters.push(group.submit('gw-1', ['q2']));
    group.run(300);
    assert.equal(group.letters.count(COMMITTED), 21);
    group.gateway('gw-1').kill();
    return { group, letters, id };
  }

  function taken(group: Group): boolean {
    const served = group.served('gw-2', 'gw-1');
    return served.length === 4 && served.every(({ isRecovering }) => !isRecovering);
  }

  test('keeps its mail at a takeover, catches what the taker gets, and all of it goes when it is cancelled', () => {
    const { group, letters, id } = died();
    group.until(() => taken(group), 'the takeover');
    letters.push(group.submit('gw-2', ['q1']));
    group.run(20_000);
    const core = coreOf({ gateway: group.gateway('gw-2') });
    assert.equal(tried(letters), 0);
    assert.equal(letters.filter((letter) => stateOf(core, 'q1', letter) === EntryState.HELD).length, 21);
    cancel(group, core, id);
    group.until(() => tried(letters) === 21, 'its deliveries');
    group.run(2000);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('lets its mail go that nobody had when it was cancelled', () => {
    const { group, letters, id } = died();
    cancel(group, coreOf({ gateway: group.gateway('gw-2') }), id);
    assert.equal(tried(letters), 0, 'not taken yet');
    group.until(() => tried(letters) === 20, 'its deliveries by the taker');
    group.run(2000);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });
});

test('explain says that a rule binds where it means all mail of the queue, and else what it may mean', () => {
  const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }, { name: 'q99' }] });
  const core = coreOf(world);
  world.hops.script = () => 'unreachable';
  world.submit(['q1', 'q2']);
  world.run(SOON_MS);
  give(world, core, { verb: 'hold', selector: { queue: 'q1' } });
  give(world, core, { verb: 'bounce', selector: { domain: 'q1.*', client: '192.0.2.7' } });
  give(world, core, { verb: 'delete', selector: { recipient: 'ann@*', route: 'q1' } });
  void core.ruleDesk.add({ verb: 'suspend', queue: '*/bounce', ...WHO });
  void core.ruleDesk.add({ verb: 'refuse', queue: 'Q9*', ...WHO });
  world.run(SOON_MS);
  const told = (queue: string, to = ''): readonly string[] => bindingLimits(queue, to, { core, clock: { nowMs: () => world.scheduler.nowMs, wallMs: () => 0 }, connections: () => ({ open: 0, max: 9 }) })
    .limits.filter(({ limit }) => limit === 'rule').map(({ binds, text }) => `${binds ? 'BINDS' : 'may'} ${text.replace(/ by ann .*: a flood/, '')}`);
  const [hold, bounce, remove] = ['BINDS hold', 'may bounce; may mean mail of it: --domain q1.* --client 192.0.2.7', 'may delete; may mean mail of it: --rcpt ann@* --route q1'];
  assert.deepEqual(told('q1'), [hold, bounce, remove]);
  assert.deepEqual(told('q1', 'bob@q1.example'), [hold, bounce]);
  assert.deepEqual(told('q1', 'bob@other.example'), [hold]);
  assert.deepEqual(told('q1', 'ann@other.example'), [hold, remove]);
  assert.deepEqual(told('q1', 'other.example'), [hold, remove], 'somebody of that name');
  assert.deepEqual(told('q2'), [bounce]);
  assert.deepEqual(told('q99'), ['BINDS refuse', bounce], 'no mail is there yet');
  void core.ruleDesk.add({ verb: 'suspend', selector: { route: 'q99' }, ...WHO });
  void core.ruleDesk.add({ verb: 'refuse', selector: { route: 'q*' }, ...WHO });
  world.run(SOON_MS);
  assert.equal(core.registry.byName('q99').length, 0);
  assert.deepEqual(told('q99'), ['BINDS refuse', 'BINDS suspend', 'BINDS refuse', bounce]);
  assert.deepEqual(told('none'), []);
});

test('no order but a hold passes beside a rule', () => {
  const { orders } = coreOf(World.started());
  const why = orders.begin({ verb: 'delete', selector: { everything: true }, standing: true, ...WHO });
  assert.equal(why, 'standing is for a hold, not to delete');
});

test('an id is told in why a message is held', () => {
  const world = World.started();
  const core = coreOf(world);
  const id = give(world, core, { verb: 'hold', selector: { sender: '*' } });
  const letter = world.submit(['q1']);
  world.run(SOON_MS);
  const [place] = [...core.registry.placesOf(letter.id)];
  assert.ok(place !== undefined, formatMessageId(letter.id));
  assert.equal(core.holds.reasonOf(place.queue, place.row), `ann: a flood (rule ${id})`);
});
