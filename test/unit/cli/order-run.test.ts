/** An order for the mail of a group as the command line follows it, src/cli/order-run.ts: what is left in the register, by whom. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueueRuleAnswer } from '../../../src/admin-api/queue-rules.js';
import type { LeaveOrder, LeftOrderAnswer, OrderPhase, QueueOrderAnswer } from '../../../src/admin-api/queue-orders.js';
import { NoAnswer } from '../../../src/cli/admin-client.js';
import type { AdminClient } from '../../../src/cli/admin-client.js';
import { Group } from '../../../src/cli/group.js';
import { NOT_ALL_KNOW } from '../../../src/cli/group.js';
import { runCli } from '../../../src/cli/main.js';
import { OrderRun } from '../../../src/cli/order-run.js';
import type { StandingTime } from '../../../src/cli/order-run.js';
import { contextFor } from './played-context.js';

const WHO = { reason: 'a flood', who: 'ann' };

/** A gateway that has been given an order. */
class PlayedGateway {
  readonly id: string;
  isSilent = false;
  /** What it says to an order, and with which code of HTTP. */
  refusal: readonly [string, number] | undefined;
  matched = 10;
  keptBack: number | undefined;
  unmet: readonly string[] | undefined;
  unread = 0;
  phase: OrderPhase = 'looking';
  partitions: readonly string[];
  moved = 0;
  given = '';
  isRegisterAway = false;
  /** Why no rule can be given here; and why none is, when one is asked for. */
  whyNoMore = '';
  /** Who lives, as it tells; and whom an order that is left waits for. */
  living: readonly string[] = [];
  holders: readonly string[] = ['gw-9'];
  whyNoRule = '';
  /** Where it is when it is told to go. */
  going: OrderPhase = 'acting';
  asked = 0;
  /** It does not hear the first so many times that it is to go; and how long a grace it was told. */
  goesLost = 0;
  readonly graces: number[] = [];
  /** It is cancelled by itself. */
  isUnfollowed = false;
  /** Messages that it has done a left order to. */
  leftDone = 0;
  /** All of that. */
  isOver = false;
  graceLeft = 0;
  readonly left: LeaveOrder[] = [];
  readonly withdrawn: string[] = [];
  /** What was asked of both, in order; and what stands. */
  readonly said: string[];
  readonly rules: QueueRuleAnswer[];
  onAsked: () => void = () => undefined;

  constructor(id: string, said: string[] = [], rules: QueueRuleAnswer[] = []) {
    this.id = id;
    this.said = said;
    this.rules = rules;
    this.partitions = [`${id}/0`, `${id}/1`];
  }

  get client(): AdminClient {
    const client: Partial<AdminClient> = {
      url: 'http://127.0.0.1:1',
      beginOrder: ({ id = '' }) => {
        this.given = id;
        return this.#answer('found');
      },
      goOrder: (_order, { grace_seconds: seconds }) => {
        this.goesLost -= 1;
        if (this.goesLost >= 0) return this.#silent();
        this.graces.push(seconds);
        this.said.push('go');
        return this.#answer(this.going);
      },
      addRule: ({ verb, since, duration_seconds: seconds = 0 }) => {
        if (this.refusal !== undefined) return Promise.reject(new NoAnswer('http://127.0.0.1:1', ...this.refusal));
        if (this.isRegisterAway) return Promise.reject(new NoAnswer('http://127.0.0.1:1', 'the register is away', 503));
        if (this.whyNoRule !== '') return Promise.reject(new NoAnswer('http://127.0.0.1:1', this.whyNoRule, 409));
        this.said.push(`rule to ${verb} since ${String(since)} for ${String(seconds)} s`);
        this.rules.push({ id: 'gw-1-1-9', verb, queue: '', ...WHO, since: 1, until: seconds === 0 ? null : 5000, local: false, queues: 0, messages: 0 });
        return Promise.resolve({ rule: 'gw-1-1-9', local: '' });
      },
      rules: () => Promise.resolve({ told_by: this.id, living: this.living, why_no_more: this.whyNoMore, rules: [...this.rules] }),
      cancelRule: (rule) => {
        if (this.rules.length === 0) return Promise.reject(new NoAnswer('http://127.0.0.1:1', 'no rule of this id stands', 404));
        if (this.isRegisterAway) return Promise.reject(new NoAnswer('http://127.0.0.1:1', 'the register is away', 503));
        this.said.push(`cancel ${rule}`);
        this.rules.length = 0;
        return Promise.resolve({ rule, local: '' });
      },
      queueOrder: () => {
        this.asked += 1;
        this.onAsked();
        return this.#answer(this.phase);
      },
      cancelOrder: () => this.#answer('cancelled'),
      leaveOrder: (order, { passed }) => {
        if (this.isSilent) return this.#silent();
        this.left.push({ passed });
        const left: LeftOrderAnswer = { order, verb: 'hold', selector: { everything: true }, ...WHO, given: 1, until: 2, partitions: ['gw-9/0'], holders: this.holders, done: 0 };
        return Promise.resolve(left);
      },
      queueOrders: () => Promise.resolve({
        orders: [], left: this.leftDone === 0 ? [] : [{ order: this.given, verb: 'hold', selector: { everything: true }, ...WHO, given: 1, until: 2, partitions: this.isOver ? [] : ['gw-9/0'], holders: [], done: this.leftDone }],
      }),
      withdrawOrder: (order) => {
        if (this.isSilent) return this.#silent();
        if (this.isRegisterAway) return Promise.reject(new NoAnswer('http://127.0.0.1:1', 'the register is away', 503));
        this.withdrawn.push(order);
        return Promise.resolve({ order });
      },
    };
    return client as AdminClient;
  }

  #answer(phase: OrderPhase): Promise<QueueOrderAnswer> {
    if (this.isSilent) return this.#silent();
    if (this.refusal !== undefined) return Promise.reject(new NoAnswer('http://127.0.0.1:1', ...this.refusal));
    this.phase = phase;
    return Promise.resolve({
      order: this.given, gateway: this.id, verb: 'hold', phase, ...(this.isUnfollowed && phase === 'cancelled' ? { unfollowed: true as const } : {}), dry_run: false, ...WHO, given: 1, looked_share: 1, matched: this.matched, matched_recipients: 10,
      matched_bytes: 10, ...(this.keptBack === undefined ? {} : { kept_back: this.keptBack }), done: phase === 'done' ? this.matched : 0, gone_before: 0, waiting: 0, waits_for: '', not_done: this.moved, moved: this.moved, unread: this.unread, incomplete: this.moved > 0,
      grace_left_seconds: phase === 'grace' ? Math.max(0, this.graceLeft) : 0, partitions: this.partitions, kept: true, unregistered: '', met: [], refused: [], ...(this.unmet === undefined ? {} : { ids_unmet: this.unmet }),
    });
  }

  #silent(): Promise<never> {
    return Promise.reject(new NoAnswer('http://127.0.0.1:1', 'timeout'));
  }
}

interface Played {
  readonly gateways: readonly [PlayedGateway, PlayedGateway];
  readonly printed: string[];
  run(): Promise<number>;
  stop(): void;
}

function played(missing: boolean | 'away', verb: 'hold' | 'delete' | 'bounce' | 'flush' = 'hold', stands?: StandingTime, expect?: number, graceMs?: number, more: { readonly isDry?: true; readonly json?: true } = {}): Played {
  const [said, rules]: [string[], QueueRuleAnswer[]] = [[], []];
  const gateways = [new PlayedGateway('gw-1', said, rules), new PlayedGateway('gw-2', said, rules)] as const;
  const printed: string[] = [];
  const stopping = new AbortController();
  // At the address of one that is missing there may be another: it knows nothing of the order.
  const another: Partial<AdminClient> = { withdrawOrder: () => Promise.reject(new NoAnswer('http://127.0.0.1:9', 'no such order', 404)) };
  const members = [...(missing === true ? [{ id: 'gw-9', client: another as AdminClient }] : []), ...gateways].map(({ id, client }) => ({ id, kind: 'gateway', client }) as const);
  const away = { id: 'gw-9', kind: 'gateway', address: '', why: 'it is down', how: missing === 'away' ? 'away' : 'silent' } as const;
  const run = new OrderRun(
    { verb, selector: { everything: true }, ...WHO, ...(more.isDry === true ? { dry_run: true } : {}) },
    { expect, graceMs, isPartialWanted: false, json: more.json === true, past: 'held', stands },
    new Group(members, missing ? [away] : []), { ...contextFor(printed), stopSignal: stopping.signal },
  );
  return { gateways, printed, run: () => run.run(), stop: () => { stopping.abort(); } };
}

test('what a command leaves has one key, whoever leaves it, and is withdrawn by whoever answers, though the one that left it fell silent', async () => {
  const { gateways: [first, second], printed, run, stop } = played(true);
  second.leftDone = 4;
  first.onAsked = () => {
    // It has left the order by then.
    if (first.left.length > 0) first.isSilent = true;
  };
  second.onAsked = () => {
    if (second.asked > 2 && second.phase === 'acting') second.phase = 'done';
  };
  assert.equal(await run(), NOT_ALL_KNOW);
  assert.deepEqual([first.left.length, second.left.length], [1, 1]);
  const told = printed.filter((line) => line.startsWith('left in the register as'));
  assert.match(first.given, /^cli-[0-9a-f]{12}$/);
  assert.deepEqual(told.map((line) => line.split(' ')[5]), [first.given]);
  assert.match(told[0] ?? '', / for gw-9: mail of 1 partition is dealt with .*; to 4 messages of that it was done by now$/);
  assert.equal(second.given, first.given);

  const stopped = played(true);
  stopped.gateways[0].onAsked = () => {
    if (stopped.gateways[0].left.length === 0) return;
    stopped.gateways[0].isSilent = true;
    stopped.stop();
  };
  await stopped.run();
  assert.deepEqual(stopped.gateways[1].withdrawn, [stopped.gateways[0].given]);
  assert.ok(!stopped.printed.some((line) => line.startsWith('left in the register')));
  stop();
});

test('a flush says how many messages it does not try since they are held or delayed, also where it tries none', async () => {
  const { gateways: [first, second], printed, run } = played(false, 'flush');
  [first.matched, first.keptBack, second.matched, second.keptBack] = [0, 3, 0, 1];
  assert.equal(await run(), 1);
  assert.deepEqual(printed.slice(1), [
    'held or delayed: 4 messages, which a flush does not try: twinpost queue release first',
    '! twinpost: nothing was done: no other message is meant',
  ]);
});

test('an id that no gateway has a message of is named, and the order is not whole', async () => {
  const { gateways: [one, two], printed, run } = played(false);
  [one.matched, two.matched, one.unmet, two.unmet] = [1, 0, ['B', 'C'], ['A', 'B']];
  [one.going, two.going] = ['done', 'done'];
  assert.equal(await run(), 1);
  assert.deepEqual(printed.filter((line) => /^no message|of 1 held/.test(line)), ['no message B', '1 of 1 held']);
  const dry = played(false, 'hold', undefined, undefined, undefined, { isDry: true });
  [dry.gateways[0].unmet, dry.gateways[1].unmet] = [['B'], ['B']];
  assert.deepEqual([await dry.run(), dry.printed.at(-1), dry.gateways[0].phase], [1, 'no message B', 'cancelled']);
  const older = played(false);
  [older.gateways[0].unmet, older.gateways[0].going, older.gateways[1].going] = [['A', 'B'], 'done', 'done'];
  assert.equal(await older.run(), 0, 'a gateway of a release before does not tell it');
  const partial = played(true);
  [partial.gateways[0].unmet, partial.gateways[1].unmet] = [['B'], ['B']];
  [partial.gateways[0].going, partial.gateways[1].going] = ['done', 'done'];
  assert.equal(await partial.run(), NOT_ALL_KNOW, 'one that is silent may have it');
  const unread = played(false);
  [unread.gateways[0].unmet, unread.gateways[1].unmet, unread.gateways[1].unread] = [['B'], ['B'], 1];
  [unread.gateways[0].going, unread.gateways[1].going] = ['done', 'done'];
  assert.equal(await unread.run(), NOT_ALL_KNOW, 'and what could not be read');
  const json = played(true, 'hold', undefined, undefined, undefined, { isDry: true, json: true });
  [json.gateways[0].unmet, json.gateways[1].unmet] = [['B'], ['B']];
  await json.run();
  assert.deepEqual(JSON.parse(json.printed[0] ?? ''), { ids_unmet: ['B'], partial: true });
  const whereOf = (lines: readonly string[]): readonly string[] => lines.filter((line) => line.startsWith('no message'));
  assert.deepEqual([whereOf(partial.printed), whereOf(unread.printed)], [['no message B at those who answer'], ['no message B in what could be read']]);
});

test('a hold that stands does so before it is carried out, what ends mail when nobody has taken it back, and Ctrl-C cancels it', async () => {
  const held = played(false, 'hold', { seconds: undefined });
  for (const one of held.gateways) one.onAsked = () => { one.phase = 'done'; };
  assert.equal(await held.run(), 0);
  assert.deepEqual(held.gateways[0].said, ['rule to hold since 1 for 0 s', 'go', 'go']);
  assert.ok(held.printed.includes('what comes is held, until it is cancelled; twinpost rules cancel gw-1-1-9 ends that'), held.printed.join('\n'));

  const returned = played(false, 'bounce', { seconds: 60 });
  for (const one of returned.gateways) one.onAsked = () => { one.phase = 'done'; };
  assert.equal(await returned.run(), 0);
  assert.deepEqual(returned.gateways[0].said, ['go', 'go', 'rule to bounce since 1 for 60 s']);

  const stopped = played(false, 'hold', { seconds: 60 });
  stopped.gateways[0].onAsked = () => { stopped.stop(); };
  assert.equal(await stopped.run(), 1);
  assert.deepEqual(stopped.gateways[0].said.at(-1), 'cancel gw-1-1-9');

  const left = played(false, 'hold', { seconds: 60 });
  left.gateways[0].onAsked = () => {
    for (const one of left.gateways) one.isRegisterAway = true;
    left.stop();
  };
  assert.equal(await left.run(), NOT_ALL_KNOW);
  assert.ok(left.printed.some((line) => line.includes('gw-1-1-9 STILL STANDS, cancel it by twinpost rules cancel: ')), left.printed.join('\n'));
});

test('an order that somebody else takes back in its grace gives no rule, one that stood before goes with it, and nothing is left', async () => {
  const cancelled = (one: Played): void => {
    for (const gateway of one.gateways) gateway.onAsked = () => { gateway.phase = 'cancelled'; };
  };
  for (const verb of ['delete', 'bounce'] as const) {
    const ending = played(false, verb, { seconds: 3600 });
    for (const one of ending.gateways) one.going = 'grace';
    cancelled(ending);
    assert.equal(await ending.run(), 1);
    assert.deepEqual(ending.gateways[0].said, ['go', 'go'], verb);
    assert.ok(ending.printed.includes('taken back: the others go on as before'), ending.printed.join('\n'));
  }
  const held = played(false, 'hold', { seconds: undefined });
  cancelled(held);
  assert.equal(await held.run(), 1);
  assert.deepEqual(held.gateways[0].said, ['rule to hold since 1 for 0 s', 'go', 'go', 'cancel gw-1-1-9']);

  const both = played(false, 'hold', { seconds: undefined });
  for (const one of both.gateways) {
    one.onAsked = () => {
      one.phase = 'cancelled';
      one.rules.length = 0;
    };
  }
  assert.equal(await both.run(), 1);
  assert.ok(!both.printed.some((line) => line.includes('STILL STANDS')), both.printed.join('\n'));

  const early = played(true);
  for (const one of early.gateways) one.going = 'grace';
  cancelled(early);
  assert.equal(await early.run(), NOT_ALL_KNOW);
  assert.deepEqual(early.gateways.map(({ left }) => left.length), [0, 0]);

  const late = played(true);
  cancelled(late);
  assert.equal(await late.run(), NOT_ALL_KNOW);
  assert.deepEqual([late.gateways[0].left.length, late.gateways[0].withdrawn], [1, [late.gateways[0].given]]);
  assert.ok(!late.printed.some((line) => line.startsWith('left in the register')), late.printed.join('\n'));
});

test('mail of a gateway that is away is not told as open when all of it was met', async () => {
  const { gateways: [first, second], printed, run } = played('away');
  second.onAsked = () => {
    [second.phase, second.leftDone, second.isOver] = ['done', 7, true];
    first.phase = 'done';
  };
  assert.equal(await run(), NOT_ALL_KNOW);
  assert.deepEqual(printed.slice(-2), [
    'PARTIAL: gw-9: no session at the register, no answer: dead, or cut off',
    'nothing is left to be done: all mail is at gateways that have heard; to 7 messages of that it was done by now',
  ]);
});

test('a gateway that heard nothing of an order in its grace: all take it back while none has begun; else it is as one that is silent', { timeout: 30_000 }, async () => {
  const early = played(false, 'delete');
  for (const one of early.gateways) one.going = 'grace';
  const [, frozen] = early.gateways;
  frozen.onAsked = () => { [frozen.phase, frozen.isUnfollowed] = ['cancelled', true]; };
  assert.equal(await early.run(), 1);
  assert.deepEqual(early.gateways.map(({ phase, left }) => [phase, left.length]), [['cancelled', 0], ['cancelled', 0]]);
  assert.equal(early.printed.at(-1), 'taken back: the others go on as before; gw-2 heard nothing of it for a while, so it ended nothing anywhere: give it again');

  const late = played(false, 'delete');
  const [first, second] = late.gateways;
  second.going = 'grace';
  second.onAsked = () => {
    [second.phase, second.isUnfollowed] = ['cancelled', true];
    if (first.left.length > 0) [second.leftDone, second.isOver] = [7, true];
  };
  first.onAsked = () => { if (first.left.length > 0) first.phase = 'done'; };
  assert.equal(await late.run(), NOT_ALL_KNOW);
  assert.deepEqual([first.left, first.withdrawn], [[{ passed: ['gw-1/0', 'gw-1/1'] }], []]);
  assert.ok(!late.printed.some((line) => line.startsWith('taken back')), late.printed.join('\n'));
  assert.deepEqual(late.printed.slice(-3), [
    '10 of 10 held', 'PARTIAL: gw-2: it heard nothing of the order for a while, and took its own part back before it began',
    'nothing is left to be done: all mail is at gateways that have heard; to 7 messages of that it was done by now',
  ]);
});

test('a gateway that did not hear that an order goes is told again, with what is left of the grace', { timeout: 30_000 }, async () => {
  const { gateways: [first, second], printed, run } = played(false, 'delete', undefined, undefined, 60_000);
  for (const one of [first, second]) {
    one.going = 'grace';
    one.onAsked = () => { if (one.asked > 7) one.phase = 'done'; };
  }
  second.goesLost = 6;
  assert.equal(await run(), 0, printed.join('\n'));
  assert.deepEqual(first.graces, [60]);
  const [left = 0, ...more] = second.graces;
  assert.ok(left > 0 && left < 60 && more.length === 0, String(second.graces));
  assert.equal(printed.at(-1), '20 of 20 held');

  const off = played(false, 'hold');
  off.gateways[1].goesLost = 1;
  off.gateways[0].onAsked = () => { off.gateways[0].phase = 'cancelled'; };
  off.gateways[1].onAsked = () => { off.gateways[1].isSilent = off.gateways[1].asked === 1; };
  assert.equal(await off.run(), 1, off.printed.join('\n'));
  assert.deepEqual([off.gateways[1].graces, off.gateways[1].phase], [[], 'cancelled'], 'another took it back');
});

test('what a gateway has that looks still when the others act is left in the register', { timeout: 30_000 }, async () => {
  const { gateways: [first, second], printed, run } = played(false);
  second.goesLost = Infinity;
  second.onAsked = () => { second.phase = 'looking'; };
  first.onAsked = () => { if (first.left.length > 0) first.phase = 'done'; };
  assert.equal(await run(), NOT_ALL_KNOW);
  assert.deepEqual(first.left, [{ passed: ['gw-1/0', 'gw-1/1'] }]);
  assert.ok(printed.includes('PARTIAL: gw-2: it looks still, and has done nothing'), printed.join('\n'));
});

test('what ends mail and stands ends nothing when no rule can be given; when none could after all, it says that what comes is not met', async () => {
  const full = played(false, 'delete', { seconds: 60 });
  for (const one of full.gateways) one.whyNoMore = '256 rules stand already: cancel one of them';
  assert.equal(await full.run(), 1);
  assert.deepEqual([full.gateways[0].said, full.printed.at(-1)], [[], '! twinpost: nothing was done: 256 rules stand already: cancel one of them']);

  const half = played(false, 'hold', { seconds: 60 });
  half.gateways[0].whyNoMore = 'the register, which is to keep it, does not answer';
  for (const one of half.gateways) one.onAsked = () => { one.phase = 'done'; };
  assert.equal(await half.run(), 0, 'another one can');

  const late = played(false, 'delete', { seconds: 60 });
  for (const one of late.gateways) {
    one.whyNoRule = '256 rules stand already';
    one.onAsked = () => { one.phase = 'done'; };
  }
  assert.equal(await late.run(), NOT_ALL_KNOW);
  assert.ok(late.printed.includes('20 of 20 held'), late.printed.join('\n'));
  assert.ok(late.printed.includes('what was there: 20 held; what comes is NOT met: http://127.0.0.1:1: 256 rules stand already'), late.printed.join('\n'));
});

test('--expect bounds what any verb is done to: a tenth more, and nothing beyond', async () => {
  for (const verb of ['hold', 'delete'] as const) {
    for (const [matched, isRefused] of [[11, false], [12, true]] as const) {
      const { gateways, printed, run } = played(false, verb, undefined, 20);
      for (const one of gateways) {
        one.matched = matched;
        one.onAsked = () => { one.phase = 'done'; };
      }
      assert.equal(await run(), isRefused ? 1 : 0, `${verb} ${String(matched)}`);
      assert.equal(printed.includes('! twinpost: nothing was done: 24 are meant, and 20 were expected'), isRefused, printed.join('\n'));
      assert.deepEqual(gateways[0].said, isRefused ? [] : ['go', 'go']);
    }
  }
});

test('what ends more than 10,000 messages, and does not say how many, is refused with their number', async () => {
  for (const [verb, expect, isRefused] of [['delete', undefined, true], ['bounce', undefined, true], ['delete', 10_001, false], ['hold', undefined, false]] as const) {
    for (const matched of [10_000, 10_001]) {
      const { gateways: [first, second], printed, run } = played(false, verb, undefined, expect);
      [first.matched, second.matched] = [matched - 1, 1];
      for (const one of [first, second]) one.onAsked = () => { one.phase = 'done'; };
      const isOver = isRefused && matched > 10_000;
      assert.equal(await run(), isOver ? 1 : 0, `${verb} ${String(matched)}`);
      assert.equal(printed.includes('! twinpost: nothing was done: more than 10,000 are meant: say --expect 10001 if that is right'), isOver, printed.join('\n'));
      assert.deepEqual(first.said, isOver ? [] : ['go', 'go']);
    }
  }
});

test('what means nothing to a verb is wrong usage: a grace, or going on without a gateway, of what can be taken back', async () => {
  for (const verb of ['flush', 'hold', 'release']) {
    for (const option of ['--now', '--grace=5s', '--partial']) {
      const printed: string[] = [];
      assert.equal(await runCli(['queue', verb, '--everything', '--reason', 'x', option], contextFor(printed)), 2, `${verb} ${option}`);
      assert.match(printed.join('\n'), /grace|now|partial/);
    }
  }
});

test('what names no class, or no reply, is wrong usage, and says what there is', async () => {
  for (const [option, why] of [
    ['--class=foo', '! twinpost: queue hold: --class is one of mail, bounce, billing, notification'],
    ['--reply=abc', '! twinpost: queue hold: reply: a code as 421, or a status as 4.7.1, or 4.7 for all below it'],
  ] as const) {
    const printed: string[] = [];
    assert.equal(await runCli(['queue', 'hold', option, '--reason', 'x', '--until-cancelled'], contextFor(printed)), 2);
    assert.deepEqual(printed, [why]);
  }
});

test('a delay stands no longer than it delays anything', async () => {
  for (const [times, isWrong] of [[['--for=1h', '--duration=3h'], true], [['--for=1h30min', '--duration=91min'], true], [['--for=2h', '--duration=2h'], false]] as const) {
    const printed: string[] = [];
    const code = await runCli(['queue', 'delay', '--client', '192.0.2.7', ...times, '--reason', 'x', '--from', '127.0.0.1:1'], contextFor(printed));
    assert.equal(code === 2, isWrong, `${String(code)} ${printed.join('\n')}`);
    assert.equal(/--duration goes no further than --for or --until/.test(printed.join('\n')), isWrong);
  }
});

test('what goes to another gateway while an order acts is left at once', async () => {
  const { gateways: [first, second], printed, run } = played(false);
  first.onAsked = () => {
    if (first.asked === 2) [first.partitions, first.moved] = [['gw-1/0'], 3];
    if (first.asked === 4) assert.deepEqual(first.left, [{ passed: ['gw-1/0', 'gw-2/0', 'gw-2/1'] }]);
    if (first.asked > 4) first.phase = 'done';
  };
  second.onAsked = () => { second.phase = 'done'; };
  assert.equal(await run(), NOT_ALL_KNOW);
  assert.equal(first.left.length, 1);
  assert.ok(printed.some((line) => line.includes('3 went to another gateway with their partitions first')));
});

test('an order that every gateway has heard and refuses is no order that somebody has not heard of', async () => {
  const { gateways, printed, run } = played(false);
  for (const gateway of gateways) gateway.refusal = ["it refused: there is no route 'nosuch'", 400];
  assert.equal(await run(), 1);
  assert.deepEqual(printed, ["! twinpost: nothing was done: it refused: there is no route 'nosuch'"]);
  const half = played(false);
  half.gateways[0].refusal = ['it refused: not you', 403];
  half.gateways[1].isSilent = true;
  assert.equal(await half.run(), NOT_ALL_KNOW, 'one may have begun');
});

test('a gateway without the route that is named is of no account, unless none has it', async () => {
  const none = "it refused: there is no route 'typo' here; there are: out";
  const half = played(false);
  half.gateways[0].refusal = [none, 404];
  half.gateways[1].onAsked = () => { half.gateways[1].phase = 'done'; };
  assert.equal(await half.run(), 0, half.printed.join('\n'));
  assert.ok(half.printed.includes('10 of 10 held'), half.printed.join('\n'));
  const all = played(false);
  for (const gateway of all.gateways) gateway.refusal = [none, 404];
  assert.equal(await all.run(), 1);
  assert.deepEqual(all.printed, [`! twinpost: nothing was done: ${none}`]);
});

test('an order that stands is a rule for gateways without its route, too, and what is left does not wait for them', async () => {
  const stand = (missing: boolean, verb: 'hold' | 'delete' = 'hold'): Played => {
    const one = played(missing, verb, { seconds: undefined });
    one.gateways[0].refusal = ["it refused: there is no route 'out' here; there are: in", 404];
    for (const gateway of one.gateways) [gateway.living, gateway.holders] = [['gw-1', 'gw-2'], ['gw-1', 'gw-9']];
    one.gateways[1].onAsked = () => { one.gateways[1].phase = 'done'; };
    return one;
  };
  const held = stand(false);
  assert.equal(await held.run(), 0, held.printed.join('\n'));
  assert.deepEqual(held.gateways[1].said, ['rule to hold since 1 for 0 s', 'go']);

  const stopped = stand(false);
  stopped.gateways[1].onAsked = stopped.stop;
  assert.equal(await stopped.run(), 1, 'all have heard that it is cancelled');

  const left = stand(true);
  assert.equal(await left.run(), NOT_ALL_KNOW);
  assert.ok(left.printed.some((line) => line.includes(' for gw-9: mail of 1 partition ')), left.printed.join('\n'));

  const away = stand(false);
  away.gateways[1].isRegisterAway = true;
  await assert.rejects(away.run(), /the register is away/);

  const none = stand(false, 'delete');
  none.gateways[1].whyNoMore = '256 rules stand already: cancel one of them';
  assert.equal(await none.run(), 1);
  assert.deepEqual(none.gateways[1].said, [], 'who lacks the route can give none');
});

test('a grace is announced with its own length', async () => {
  const { gateways, printed, run } = played(false, 'delete', undefined, undefined, 15_000);
  for (const one of gateways) {
    [one.going, one.graceLeft] = ['grace', 15];
    one.onAsked = () => {
      one.graceLeft -= 5;
      if (one.graceLeft < 0) one.phase = 'done';
    };
  }
  assert.equal(await run(), 0);
  assert.deepEqual(printed.filter((line) => line.startsWith('in ')), ['in 15 s; Ctrl-C takes it back', 'in 10 s; Ctrl-C takes it back']);
});

test('that no message is meant is not said of mail that nobody could look at', async () => {
  for (const missing of [true, false]) {
    const { gateways, printed, run } = played(missing, 'delete');
    for (const gateway of gateways) gateway.matched = 0;
    assert.equal(await run(), missing ? NOT_ALL_KNOW : 1);
    const said = printed.filter((line) => line.startsWith('! '));
    assert.deepEqual(said, [missing
      ? '! twinpost: nothing was done: no message that could be looked at is meant, and not all could be: with --partial the order waits in the register for the rest'
      : '! twinpost: nothing was done: no message is meant']);
  }
});

for (const isAway of [false, true]) {
  test(`Ctrl-C takes back what stands in the register of an order that acts${isAway ? ', and says that it may stand there' : ', though none was left there for others'}`, async () => {
    const { gateways: [first, second], printed, run, stop } = played(false, 'delete', undefined, undefined, 0);
    for (const one of [first, second]) one.isRegisterAway = isAway;
    first.onAsked = () => {
      if (first.phase === 'acting') stop();
    };
    assert.equal(await run(), isAway ? NOT_ALL_KNOW : 1);
    assert.deepEqual([...first.withdrawn, ...second.withdrawn], isAway ? [] : [first.given]);
    assert.equal(printed.some((line) => line.includes(`${first.given} MAY STAND in the register`)), isAway);
  });
}
