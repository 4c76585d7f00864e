/**
 * Three machines, each with a gateway and a store: a copy on the machine of its own gateway is none that counts as
 * another one, whoever holds the partition meanwhile.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Degradation } from '../../src/gateway/admin/degradation.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';

const GATEWAYS = ['gw-1', 'gw-2', 'gw-3'];
const OWN_STORE: Readonly<Record<string, string>> = { 'gw-1': 'store-a', 'gw-2': 'store-b', 'gw-3': 'store-c' };
const STORE_HOSTS = Object.fromEntries(Object.entries(OWN_STORE).map(([host, store]) => [store, host]));

function started(): Group {
  return Group.started({ gateways: GATEWAYS, storeHosts: STORE_HOSTS });
}

/** Members of partitions of `owner` at these stores, whoever holds them. */
function copiesAt(group: Group, owner: string, storeId: string): number {
  return GATEWAYS.flatMap((id) => (group.gateway(id).isAlive ? group.served(id, owner) : []))
    .flatMap(({ rows }) => rows).filter((row) => row.isRecorded && row.storeId === storeId).length;
}

/** As status shows it. */
function onOwnHost(group: Group, id: string): number {
  const core = group.gateway(id).core ?? assert.fail(`${id} lives`);
  const ports = { core, log: group.log, clock: { nowMs: () => 0, wallMs: () => 0 }, stores: () => [] };
  return new Degradation(2, ports).partitionsOnOwnHost();
}

function killAndRescue(group: Group): void {
  group.gateway('gw-3').kill();
  group.until(() => group.served('gw-1', 'gw-3').length + group.served('gw-2', 'gw-3').length === 4, 'the rescue');
}

describe('a gateway on the machine of a store', () => {
  test('is rescued and comes back, and no copy of its mail has come to its own machine', () => {
    const group = started();
    killAndRescue(group);
    assert.ok(onOwnHost(group, 'gw-1') + onOwnHost(group, 'gw-2') > 0, 'a rescuer says that a copy is on its machine');
    for (const id of ['gw-1', 'gw-2']) group.gateway(id).core?.mirrors.rebalance.order();
    group.run(60_000);
    assert.equal(copiesAt(group, 'gw-3', 'store-c'), 0);
    group.gateway('gw-3').start();
    group.until(() => group.served('gw-3', 'gw-3').length === 4, 'the hand-back');
    assert.equal(onOwnHost(group, 'gw-3'), 0);
  });

  test('has a copy beside it when there is no other store meanwhile, and moves it away by itself', () => {
    const group = started();
    killAndRescue(group);
    group.store('b').kill();
    group.until(() => copiesAt(group, 'gw-3', 'store-c') > 0, 'better there than nowhere');
    for (let i = 0; i < 10; i++) group.submit('gw-1', ['q1', 'q2']);
    group.gateway('gw-3').start();
    group.until(() => group.served('gw-3', 'gw-3').length === 4, 'the hand-back');
    assert.ok(onOwnHost(group, 'gw-3') > 0, 'it says so');
    group.store('b').start();
    group.run(20_000);
    assert.deepEqual([copiesAt(group, 'gw-3', 'store-a'), copiesAt(group, 'gw-3', 'store-b')], [4, 4]);
    assert.deepEqual(GATEWAYS.map((id) => onOwnHost(group, id)), [0, 0, 0]);
    assert.equal(group.letters.count(COMMITTED), 10);
    group.run(5000);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });
});
