/**
 * The register names a process that has taken its term at no copy: it is cut off from the register as soon as that
 * names it, and lives, with its links to stores and the leases of other partitions there. Whoever reaches the register
 * and a copy goes on instead, says so meanwhile, and never delivers beside it (docs/model, rules 6, 9, 13).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { WaitingPartition } from '../../src/gateway/ownership/holdings.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { holderOf, judged, loaded, oneDeliversAtMost, untilHeldBy } from './pair.js';

const COUNT = 40;
const NAMES = ['gw-1/0', 'gw-1/1', 'gw-1/2', 'gw-1/3'];

function held(group: Group, id: string): readonly string[] {
  return NAMES.filter((name) => group.gateway(id).core?.registry.partitions.some((one) => one.name === name));
}

describe('a process that was named and learns nothing of it', () => {
  test('a rescuer: another one of the group takes what it did not take, within seconds', () => {
    const group = Group.started({ gateways: ['gw-1', 'gw-2', 'gw-3'], stores: 3, partitions: NAMES.length });
    group.hops.script = () => 'defer';
    for (let i = 0; i < COUNT; i++) group.submit('gw-1', ['q1']);
    group.run(300);
    assert.equal(group.letters.count(COMMITTED), COUNT);
    group.gateway('gw-1').kill();
    const isNamed = (): boolean => NAMES.some((name) => group.register.recordOf(name)?.holder.gatewayId === 'gw-2');
    group.until(isNamed, 'that gw-2 is named', 60_000);
    const process = group.gateway('gw-2').register;
    process?.cutOff();
    group.run(2000);
    const named = NAMES.filter((name) => group.register.recordOf(name)?.holder.gatewayId === 'gw-2');
    const unheld = named.filter((name) => !held(group, 'gw-2').includes(name));
    assert.ok(unheld.length > 0, 'named, and did not learn of it');
    const waiting = (): readonly WaitingPartition[] => group.gateway('gw-3').core?.holdings.waiting() ?? [];
    group.until(() => waiting().length > 0, 'that gw-3 says so', 10_000);
    const [first] = waiting();
    assert.deepEqual([first?.waitsFor, unheld.includes(first?.partition ?? '')], ['lease', true]);
    assert.match(first?.why ?? '', /names gw-2, which has not begun to hold it at any copy/);
    group.hops.script = () => 'accept';
    oneDeliversAtMost(group, 25_000, ['gw-2', 'gw-3']);
    assert.deepEqual(unheld.filter((name) => !held(group, 'gw-3').includes(name)), []);
    assert.deepEqual(waiting(), []);
    group.until(() => group.letters.delivered === COUNT, 'all deliveries', 60_000);
    process?.mend();
    oneDeliversAtMost(group, 20_000, ['gw-2', 'gw-3']);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('the owner that a partition is handed back to: the rescuer takes it again', () => {
    const pair = loaded({}, COUNT);
    const { group } = pair;
    group.gateway('gw-1').kill();
    untilHeldBy(pair, 'gw-2');
    group.gateway('gw-1').start();
    group.run(8500);
    const process = group.gateway('gw-1').register;
    process?.cutOff();
    group.until(() => holderOf(pair) === 'gw-1', 'the hand-back', 20_000);
    group.hops.script = () => 'accept';
    oneDeliversAtMost(group, 40_000);
    assert.equal(group.letters.delivered, COUNT);
    assert.equal(holderOf(pair), 'gw-2');
    process?.mend();
    judged(pair, COUNT);
  });
});
