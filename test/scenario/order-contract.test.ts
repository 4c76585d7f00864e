/**
 * The contract of what operators do to messages (src/gateway/orders): one list of orders, each with what becomes of its
 * messages, and one of rules, given to whoever has the mail in each of these situations; then the mail goes to another
 * process, and all is still so.
 *
 *   under load      its own gateway, which takes and delivers other mail meanwhile
 *   failover        a store has died, and its own gateway after it
 *   takeover        the rescuer, which has the mail of a dead gateway
 *   give-up         the rescuer, by whom both copies were given up, and which has their mail from them all the same
 *   hand-back       its own gateway, which has it back from the rescuer
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { OrderVerb, QueueOrder, QueueOrderAnswer } from '../../src/admin-api/queue-orders.js';
import type { NewQueueRule } from '../../src/admin-api/queue-rules.js';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates } from './checks.js';
import { Group } from './group.js';
import { coreOf, stateOf } from './inspect.js';
import type { Letter } from './letters.js';

const WHO = { reason: 'a night', who: 'ann' };
const EACH = 3;
const DELAY_MS = 600_000;

type Done = Partial<Pick<QueueOrder, 'route' | 'not_before_ms' | 'standing'>>;

interface Operation {
  readonly verb: OrderVerb;
  /** Done to its messages before. */
  readonly first?: OrderVerb;
  terms?(nowWallMs: number): Done;
  /** How often its messages have arrived when their route takes mail again, and have been reported. */
  readonly arrivals: number;
  readonly reports: number;
  /** Where they have arrived. */
  readonly queue?: string;
  /** Of what is here then. */
  readonly state?: EntryState;
}

const delayed = (nowWallMs: number): Done => ({ not_before_ms: nowWallMs + DELAY_MS });

const OPERATIONS: Readonly<Record<string, Operation>> = {
  hold: { verb: 'hold', arrivals: 0, reports: 0, state: EntryState.HELD },
  delay: { verb: 'delay', terms: delayed, arrivals: 0, reports: 0, state: EntryState.DEFERRED },
  'release of held': { verb: 'release', first: 'hold', arrivals: 1, reports: 0 },
  'release of delayed': { verb: 'release', first: 'delay', arrivals: 1, reports: 0 },
  rebind: { verb: 'rebind', terms: () => ({ route: 'q2' }), arrivals: 1, reports: 0, queue: 'q2' },
  flush: { verb: 'flush', arrivals: 1, reports: 0 },
  delete: { verb: 'delete', arrivals: 0, reports: 0 },
  bounce: { verb: 'bounce', arrivals: 0, reports: 1 },
  expire: { verb: 'expire', arrivals: 0, reports: 1 },
  nothing: { verb: 'flush', arrivals: 1, reports: 0 },
};

interface Rule {
  readonly given: Pick<NewQueueRule, 'verb' | 'queue' | 'selector'>;
  /** Where its mail waits. */
  readonly queue: string;
  /** It is taken back where it was given. */
  readonly isCancelled: boolean;
}

const RULES: Readonly<Record<string, Rule>> = {
  'a hold': { given: { verb: 'hold', selector: { sender: senderOf('a hold') } }, queue: 'q1', isCancelled: false },
  'a hold, cancelled': { given: { verb: 'hold', selector: { sender: senderOf('a hold, cancelled') } }, queue: 'q1', isCancelled: true },
  suspend: { given: { verb: 'suspend', queue: 'suspended' }, queue: 'suspended', isCancelled: false },
  'suspend, cancelled': { given: { verb: 'suspend', queue: 'resumed' }, queue: 'resumed', isCancelled: true },
  refuse: { given: { verb: 'refuse', queue: 'refused' }, queue: 'refused', isCancelled: false },
  'refuse, cancelled': { given: { verb: 'refuse', queue: 'allowed' }, queue: 'allowed', isCancelled: true },
};

/** Mail in them waits for their route. */
const CLOSED = new Set(['q1', ...Object.values(RULES).map(({ queue }) => queue)]);

function coreAt(group: Group, id: string): GatewayCore {
  return coreOf({ gateway: group.gateway(id) });
}

function untilTaken(group: Group): void {
  group.until(() => group.served('gw-2', 'gw-1').length === 4 && !coreAt(group, 'gw-2').isIncomplete, 'the takeover');
}

function untilBack(group: Group): void {
  group.until(() => group.served('gw-1', 'gw-1').length === 4 && !coreAt(group, 'gw-1').isIncomplete, 'the hand-back', 120_000);
}

function takeOver(group: Group): void {
  group.gateway('gw-1').kill();
  untilTaken(group);
}

/** Who has the mail then. */
const SITUATIONS: Readonly<Record<string, (group: Group) => 'gw-1' | 'gw-2'>> = {
  'under load': () => 'gw-1',
  'after failover': (group) => {
    group.store('a').kill();
    group.run(500);
    group.gateway('gw-1').kill();
    group.gateway('gw-1').start();
    group.until(() => group.gateway('gw-1').core !== undefined, 'its next process');
    untilBack(group);
    return 'gw-1';
  },
  'after takeover': (group) => {
    takeOver(group);
    return 'gw-2';
  },
  'after rescue --give-up': (group) => {
    const mine = coreAt(group, 'gw-1').registry.byName('q1').find(({ length }) => length > 0)?.partition ?? assert.fail();
    const { name, length } = mine;
    const copies = group.stores.filter(({ id }) => group.register.recordOf(name)?.members.some(({ storeId }) => storeId === id) === true);
    const { holdings } = coreAt(group, 'gw-2');
    group.gateway('gw-1').kill();
    group.cutOff('gw-2', true, copies);
    group.until(() => holdings.waiting().some(({ partition }) => partition === name), 'that it waits for its copies');
    assert.ok(holdings.giveUp(copies.map(({ id }) => id)).includes(name));
    const founded = (): number | undefined => group.served('gw-2', 'gw-1').find((one) => one.name === name)?.length;
    group.until(() => founded() === 0, 'that it is founded anew');
    group.cutOff('gw-2', false);
    untilTaken(group);
    group.until(() => founded() === length, 'what the copies had');
    return 'gw-2';
  },
  'after hand-back': (group) => {
    takeOver(group);
    group.gateway('gw-1').start();
    group.until(() => group.gateway('gw-1').core !== undefined, 'its next process');
    untilBack(group);
    return 'gw-1';
  },
};

/** Carried out, by the reverse-path of the operation. */
function carryOut(group: Group, at: string, name: string, verb: OrderVerb, terms: Done): QueueOrderAnswer {
  const { orders } = coreAt(group, at);
  const begun = orders.begin({ verb, selector: { sender: senderOf(name) }, ...terms, ...WHO });
  assert.ok(typeof begun !== 'string', String(begun));
  const told = (): QueueOrderAnswer => orders.answerOf(begun.order) ?? assert.fail();
  group.until(() => told().phase === 'found', `${name}: all is looked at`);
  assert.ok(orders.go(begun.order, 0));
  group.until(() => told().phase === 'done', `${name}: it is done`);
  return told();
}

function senderOf(name: string): string {
  return `${name.replaceAll(/\W+/g, '-')}@senders.example`;
}

/** They stand, or were cancelled, at this gateway; what comes for them then. */
function giveRules(group: Group, at: string): ReadonlyMap<string, readonly Letter[]> {
  const { ruleDesk, rules } = coreAt(group, at);
  const came = new Map<string, readonly Letter[]>();
  for (const [name, { given, queue, isCancelled }] of Object.entries(RULES)) {
    const known = rules.all().length;
    void ruleDesk.add({ ...given, ...WHO });
    group.until(() => rules.all().length === known + 1, `${name}: it stands`);
    if (given.verb === 'hold') carryOut(group, at, name, 'hold', { standing: true });
    if (given.verb !== 'refuse') came.set(name, Array.from({ length: EACH }, () => group.submit(at, [queue], senderOf(name))));
    group.run(200);
    if (!isCancelled) continue;
    void ruleDesk.cancel(rules.all().at(-1)?.id ?? '', WHO);
    group.until(() => rules.all().length === known, `${name}: it is over`);
  }
  return came;
}

/** The mail that was there, and what came since, moves for those that were cancelled alone; new mail is taken for those alone. */
function judgeRules(group: Group, at: string, letters: ReadonlyMap<string, readonly Letter[]>, isOver: boolean): void {
  const core = coreAt(group, at);
  for (const [name, { given: { verb }, queue, isCancelled }] of Object.entries(RULES)) {
    const isFree = isCancelled || isOver;
    const route = group.routeOf(queue);
    if (verb === 'refuse') assert.equal(core.admit(route), isFree ? '' : 'operator', name);
    const arrivals = isFree || verb === 'refuse' ? 1 : 0;
    for (const letter of letters.get(name) ?? []) assert.equal(letter.arrivals.size, arrivals, name);
  }
}

function wallMs(group: Group, at: string): number {
  return group.gateway(at).wallMs();
}

/** It goes to the other process. */
function moveOn(group: Group, from: 'gw-1' | 'gw-2'): 'gw-1' | 'gw-2' {
  if (from === 'gw-1') {
    takeOver(group);
    return 'gw-2';
  }
  group.gateway('gw-1').start();
  group.until(() => group.gateway('gw-1').core !== undefined, 'its next process');
  untilBack(group);
  return 'gw-1';
}

function judge(group: Group, at: string, letters: ReadonlyMap<string, readonly Letter[]>): void {
  for (const [name, { arrivals, reports, queue = 'q1', state }] of Object.entries(OPERATIONS)) {
    for (const letter of letters.get(name) ?? []) {
      assert.deepEqual([letter.arrivals.size, letter.reports.size], [arrivals, reports], name);
      if (arrivals > 0) assert.deepEqual(group.hops.arrivals.filter(({ messageId }) => messageId === letter.id).map(({ queueName }) => queueName), [queue], name);
      assert.equal(stateOf(coreAt(group, at), 'q1', letter), state, name);
    }
  }
}

/** By their names: those of orders, and of rules. */
function lettersOf(group: Group, queues: Readonly<Record<string, string>>): Map<string, Letter[]> {
  return new Map(Object.entries(queues).map(([name, queue]) =>
    [name, Array.from({ length: EACH }, () => group.submit('gw-1', [queue], senderOf(name)))]));
}

function isArrived({ arrivals }: Letter): boolean {
  return arrivals.size === 1;
}

/** All that was carried out and given is still so, at whoever has the mail then; and goes on when it is over there. */
function stillSo(group: Group, then: string, ordered: ReadonlyMap<string, readonly Letter[]>, ruled: ReadonlyMap<string, readonly Letter[]>, beganMs: number): void {
  assert.ok(wallMs(group, then) < beganMs + DELAY_MS, 'before the delay is over');
  judge(group, then, ordered);
  judgeRules(group, then, ruled, false);
  for (const letter of ruled.get('a hold')?.slice(0, EACH) ?? []) assert.equal(stateOf(coreAt(group, then), 'q1', letter), EntryState.HELD);
  const { ruleDesk, rules } = coreAt(group, then);
  for (const { id } of rules.all()) void ruleDesk.cancel(id, WHO);
  group.until(() => [...ruled.values()].flat().every(isArrived), 'what the rules kept back');
  judgeRules(group, then, ruled, true);
  const [held = [], late = []] = [ordered.get('hold'), ordered.get('delay')];
  group.until(() => late.every(isArrived), 'what was delayed', DELAY_MS);
  assert.ok(wallMs(group, then) >= beganMs + DELAY_MS - 60_000);
  carryOut(group, then, 'hold', 'release', {});
  group.until(() => held.every(isArrived), 'what was held');
  checkNoDuplicates(group.letters);
}

describe('what an operator does to messages', () => {
  for (const [situation, come] of Object.entries(SITUATIONS)) {
    test(`${situation}: each order and rule does its own, and it stays so when the mail goes to another process`, () => {
      const group = Group.started({ stores: 3, queues: ['q2', 'q3', ...CLOSED].map((name) => ({ name })) });
      group.hops.script = ({ queueName }) => (CLOSED.has(queueName) ? 'defer' : 'accept');
      const ordered = lettersOf(group, Object.fromEntries(Object.keys(OPERATIONS).map((name) => [name, 'q1'])));
      const ruled = lettersOf(group, Object.fromEntries(Object.entries(RULES).map(([name, { queue }]) => [name, queue])));
      group.until(() => group.letters.all.every(({ outcome }) => outcome === COMMITTED), 'all 250s');
      group.run(500);
      const at = come(group);
      const others: Letter[] = [];
      for (const [name, { verb, first, terms }] of Object.entries(OPERATIONS)) {
        // Other mail comes and goes meanwhile.
        for (let i = 0; i < 5; i++) others.push(group.submit(at, ['q3']));
        if (first !== undefined) {
          const before = carryOut(group, at, name, first, first === 'delay' ? delayed(wallMs(group, at)) : {});
          assert.equal(before.done, EACH, name);
        }
        const { matched, done, not_done: notDone, kept } = carryOut(group, at, name, verb, terms?.(wallMs(group, at)) ?? {});
        assert.deepEqual([matched, done, notDone, kept], [EACH, EACH, 0, true], name);
      }
      const beganMs = wallMs(group, at);
      for (const [name, came] of giveRules(group, at)) ruled.get(name)?.push(...came);
      group.until(() => others.every(isArrived), 'the other mail');
      const then = moveOn(group, at);
      group.run(2000);
      group.hops.script = () => 'accept';
      group.run(5000);
      stillSo(group, then, ordered, ruled, beganMs);
    });
  }
});
