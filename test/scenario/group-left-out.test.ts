/**
 * `group` left out: every gateway that the register knows is of it, from when it is known, and until an operator
 * retires it.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rendezvous } from '../../src/gateway/ownership/rendezvous.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { partitionName } from '../../src/protocol/partition-record.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import type { GroupOptions } from './group.js';

const ALL = ['gw-1', 'gw-2', 'gw-3'];
const OPTIONS: GroupOptions = { gateways: ALL, noGroup: ALL };

/** The first ones are started; each has mail that waits. */
function started(ids: readonly string[], options: GroupOptions = OPTIONS): Group {
  const group = Group.started(options, ids);
  group.hops.script = () => 'defer';
  for (const id of ids) submit(group, id);
  return group;
}

/** Ten messages of two copies each. */
function submit(group: Group, id: string): void {
  const before = group.letters.count(COMMITTED);
  for (let i = 0; i < 10; i++) group.submit(id, ['q1', 'q2']);
  group.until(() => group.letters.count(COMMITTED) === before + 10, 'their commits');
}

function join(group: Group, id: string): void {
  group.gateway(id).start();
  group.run(group.leaseMs + 500);
  submit(group, id);
}

function kill(group: Group, ...ids: readonly string[]): void {
  for (const id of ids) group.gateway(id).kill();
  group.hops.script = () => 'accept';
}

/** By order at gw-2. */
function retire(group: Group, id: string): void {
  group.gateway('gw-2').register?.bridge.setRetired(id, { who: 'ann', reason: 'gone', wallMs: 1 }, () => undefined);
}

function judged(group: Group): void {
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}

function orphansAt(group: Group, id: string): readonly string[] {
  return (group.gateway(id).core?.holdings.orphans() ?? []).map(({ owner }) => owner);
}

function holderOf(group: Group, id: string, n: number): string {
  return group.register.recordOf(partitionName(id, n))?.holder.gatewayId ?? '';
}

describe('a group that no configuration names', () => {
  test('has dead gateways\' mail delivered by one that was started after all others', () => {
    const group = started(['gw-1', 'gw-2']);
    join(group, 'gw-3');
    const diedMs = group.scheduler.nowMs;
    kill(group, 'gw-1');
    group.until(() => group.letters.delivered === 60, 'all deliveries');
    assert.ok(group.scheduler.nowMs - diedMs <= group.leaseMs + 3000, 'as soon as in a group that is named');
    group.run(1000);
    group.hops.script = () => 'defer';
    submit(group, 'gw-2');
    kill(group, 'gw-2');
    group.until(() => group.letters.delivered === 80, 'what gw-2 had, by gw-3 alone');
    judged(group);
  });

  test('delivers the mail of one that was started after all others', () => {
    const group = started(['gw-1', 'gw-2']);
    join(group, 'gw-3');
    kill(group, 'gw-3');
    group.until(() => group.letters.delivered === 60, 'all deliveries');
    judged(group);
  });

  test('takes turns by who lives: each partition goes to the first of these, a newcomer or not', () => {
    const group = started(['gw-1', 'gw-2'], { ...OPTIONS, partitions: 16 });
    join(group, 'gw-3');
    kill(group, 'gw-1');
    const holders = (): readonly string[] => Array.from({ length: 16 }, (_, n) => holderOf(group, 'gw-1', n));
    group.until(() => holders().every((id) => id !== 'gw-1'), 'the takeover');
    assert.deepEqual(holders(), Array.from({ length: 16 }, (_, n) => {
      const name = partitionName('gw-1', n);
      return rendezvous('gw-2', name) < rendezvous('gw-3', name) ? 'gw-2' : 'gw-3';
    }));
    assert.ok(new Set(holders()).size === 2);
  });

  test('has nobody who is gone but by order: a gateway that never came back is no orphan', () => {
    const group = started(['gw-1', 'gw-2'], { ...OPTIONS, orphanGraceMs: 1000 });
    kill(group, 'gw-1');
    group.until(() => group.letters.delivered === 40, 'all deliveries');
    group.run(60_000);
    assert.deepEqual([orphansAt(group, 'gw-2'), group.served('gw-2', 'gw-1').length], [[], 4]);
    assert.deepEqual([...group.gateway('gw-2').register?.bridge.gateways() ?? []].sort(), ['gw-1', 'gw-2']);
    retire(group, 'gw-1');
    group.until(() => group.register.recordOf(partitionName('gw-1', 0)) === undefined, 'the end of its partitions');
    group.run(5000);
    assert.deepEqual([...group.gateway('gw-2').register?.bridge.gateways() ?? []], ['gw-2']);
    judged(group);
  });

  test('is that of all for others, too: whom they do not name is no orphan while it lives', () => {
    const group = started(['gw-1', 'gw-2', 'gw-3'], {
      ...OPTIONS, noGroup: ['gw-3'], groupOf: { 'gw-1': ['gw-1'], 'gw-2': ['gw-2'] }, orphanGraceMs: 1000,
    });
    kill(group, 'gw-1');
    group.run(20_000);
    assert.deepEqual([orphansAt(group, 'gw-2'), group.served('gw-3', 'gw-1').length], [[], 4]);
    kill(group, 'gw-3');
    group.until(() => orphansAt(group, 'gw-2').includes('gw-1'), 'nobody says any more that gw-1 is of its group');
  });

  test('is no other gateway for who does not rescue: whom nobody names is an orphan, and its mail is delivered', () => {
    const group = started(['gw-1', 'gw-2', 'gw-3'], {
      ...OPTIONS, noGroup: ['gw-3'], groupOf: { 'gw-1': ['gw-1'], 'gw-2': ['gw-2'] }, orphanGraceMs: 1000, noRescue: ['gw-3'],
    });
    kill(group, 'gw-1');
    group.until(() => orphansAt(group, 'gw-2').includes('gw-1') && orphansAt(group, 'gw-3').includes('gw-1'), 'it is an orphan');
    group.until(() => group.letters.delivered === 60, 'all deliveries', 120_000);
  });

  test('is left by who names one: it takes over from nobody else', () => {
    const group = started(['gw-1', 'gw-2'], { ...OPTIONS, noGroup: ['gw-1', 'gw-3'], groupOf: { 'gw-2': ['gw-2'] } });
    kill(group, 'gw-1');
    group.run(10 * group.leaseMs);
    assert.deepEqual([group.served('gw-2', 'gw-1').length, group.letters.delivered], [0, 20]);
    group.gateway('gw-3').start();
    group.until(() => group.letters.delivered === 40, 'what gw-1 had, by a newcomer');
    judged(group);
  });

  for (const [whose, noGroup, noRescue] of [['the retired one\'s', ['gw-1'], ['gw-2']], ['the heir\'s', ['gw-2'], []]] as const) {
    test(`gets what a retired gateway has, if it is ${whose} that is left out`, () => {
      const group = started(['gw-1', 'gw-2'], { ...OPTIONS, noGroup, groupOf: { 'gw-1': ['gw-1'], 'gw-2': ['gw-2'] }, noRescue });
      group.run(10_000);
      retire(group, 'gw-1');
      group.until(() => group.served('gw-1', 'gw-1').length === 0 && group.served('gw-2', 'gw-1').length > 0, 'the hand-over');
      group.hops.script = () => 'accept';
      group.until(() => group.letters.delivered === 40, 'all deliveries');
      judged(group);
    });
  }
});
