/**
 * The contract of what operators do to messages (src/gateway/orders): one list of operations, each with what becomes of
 * its messages, run by whoever has the mail in each of these situations; then the mail goes to another process, and all
 * is still so.
 *
 *   under load      its own gateway, which takes and delivers other mail meanwhile
 *   failover        a store has died, and its own gateway after it
 *   takeover        the rescuer, which has the mail of a dead gateway
 *   hand-back       its own gateway, which has it back from the rescuer
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { OrderVerb, QueueOrder, QueueOrderAnswer } from '../../src/admin-api/queue-orders.js';
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

type Done = Partial<Pick<QueueOrder, 'route' | 'not_before_ms'>>;

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
  return `${name.replaceAll(' ', '-')}@senders.example`;
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

describe('what an operator does to messages', () => {
  for (const [situation, come] of Object.entries(SITUATIONS)) {
    test(`${situation}: each operation does its own, and it stays so when the mail goes to another process`, () => {
      const group = Group.started({ stores: 3, queues: [{ name: 'q1' }, { name: 'q2' }, { name: 'q3' }] });
      group.hops.script = ({ queueName }) => (queueName === 'q1' ? 'defer' : 'accept');
      const names = Object.keys(OPERATIONS);
      const letters = new Map(names.map((name) =>
        [name, Array.from({ length: EACH }, () => group.submit('gw-1', ['q1'], senderOf(name)))] as const));
      group.until(() => group.letters.count(COMMITTED) === names.length * EACH, 'all 250s');
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
      group.until(() => others.every(({ arrivals }) => arrivals.size === 1), 'the other mail');
      const then = moveOn(group, at);
      group.run(2000);
      group.hops.script = () => 'accept';
      group.run(5000);
      assert.ok(wallMs(group, then) < beganMs + DELAY_MS, 'before the delay is over');
      judge(group, then, letters);
      const [held = [], late = []] = [letters.get('hold'), letters.get('delay')];
      group.until(() => late.every(({ arrivals }) => arrivals.size === 1), 'what was delayed', DELAY_MS);
      assert.ok(wallMs(group, then) >= beganMs + DELAY_MS - 60_000);
      carryOut(group, then, 'hold', 'release', {});
      group.until(() => held.every(({ arrivals }) => arrivals.size === 1), 'what was held');
      checkNoDuplicates(group.letters);
    });
  }
});
