/**
 * A partition is only partly back when its mirrors are restarted in good order, each back with its file: the rest of it is
 * there, and is read on when those boots go on (src/recovery/readings.ts).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import type { GroupOptions } from './group.js';
import { Group } from './group.js';
import { hasQueue } from './inspect.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import type { StoreNode } from './store-node.js';

function servedAt(group: Group, id: string): Partition | undefined {
  return group.served(id, 'gw-1').find((one) => hasQueue(one, 'q1'));
}

function loadedGroup(options: GroupOptions, letters: number): Group {
  const group = Group.started({ stores: 2, blockEntries: 7, ...options });
  group.hops.script = () => 'defer';
  for (let i = 0; i < letters; i++) group.submit('gw-1', ['q1'], 'alice@senders.example', 2000);
  group.run(letters);
  assert.equal(group.letters.count(COMMITTED), letters);
  return group;
}

function hasPart(group: Group, id: string): void {
  group.until(() => (servedAt(group, id)?.length ?? 0) > 20, 'a part of it', 60_000);
}

function leaveAndBack(group: Group, store: StoreNode): void {
  let isBack = false;
  store.leave(0, true, () => { store.kill(); store.start(); isBack = true; });
  group.until(() => isBack, 'the store, back with its file', 30_000);
}

function restartGateway(group: Group): void {
  group.gateway('gw-1').kill();
  group.run(200);
  group.gateway('gw-1').start();
}

/** Of its two copies one is down, with its file and without what did not commit; of the other a part is read. */
function readAtLate(): { readonly group: Group; readonly early: StoreNode; readonly late: StoreNode } {
  const group = loadedGroup({ gateways: ['gw-1'] }, 400);
  const [early, late] = group.stores;
  assert.ok(early !== undefined && late !== undefined);
  group.network.strand('gw-1', early.id, true);
  group.submit('gw-1', ['q1'], 'alice@senders.example', 2000);
  group.run(50);
  group.gateway('gw-1').kill();
  early.leave(0, true, () => { early.kill(); });
  group.network.strand('gw-1', early.id, false);
  group.network.slow('gw-1', late.id, 200);
  group.gateway('gw-1').start();
  hasPart(group, 'gw-1');
  const partition = servedAt(group, 'gw-1');
  group.until(() => partition?.rows.filter((row) => row.isRecorded).length === 1, 'a record without the one that is down', 5000);
  assert.equal(partition?.isPartial, true);
  group.network.slow('gw-1', late.id, 0);
  return { group, early, late };
}

function deliversAll(group: Group, letters: number): void {
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === letters, 'all deliveries', 300_000);
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}

describe('the rest of a queue that is in the files of its stores', () => {
  for (const gapMs of [0, 6000]) test(`is read by its owner, whose way to them was gone meanwhile; ${String(gapMs)} ms between the two restarts`, () => {
    const group = loadedGroup({ gateways: ['gw-1'] }, 400);
    restartGateway(group);
    hasPart(group, 'gw-1');
    for (const store of group.stores) group.network.cut('gw-1', store.id);
    for (const store of group.stores) {
      leaveAndBack(group, store);
      group.run(gapMs);
    }
    for (const store of group.stores) group.network.heal('gw-1', store.id);
    group.until(() => servedAt(group, 'gw-1')?.length === 400, 'all of it', 60_000);
    deliversAll(group, 400);
  });

  test('is read by its owner when both stop at a time', () => {
    const group = loadedGroup({ gateways: ['gw-1'] }, 400);
    restartGateway(group);
    hasPart(group, 'gw-1');
    for (const store of group.stores) store.leave(0, true, () => { store.kill(); store.start(); });
    group.until(() => servedAt(group, 'gw-1')?.length === 400, 'all of it', 60_000);
    deliversAll(group, 400);
  });

  for (const how of ['lost', 'lost, and not known to be', 'given up', 'given up before the other is back']) {
    test(`is read at the copy that lacks what did not commit, when the one that was read is ${how}`, () => {
      const { group, early, late } = readAtLate();
      late.kill();
      if (how === 'lost') {
        late.start();
        group.run(2000);
      }
      if (how !== 'given up before the other is back') {
        early.start();
        group.run(2000);
      }
      if (how === 'lost, and not known to be') late.start();
      if (how.startsWith('given up')) {
        const giveUp = (): number => group.gateway('gw-1').core?.holdings.giveUp([late.id]).length ?? 0;
        group.until(() => giveUp() > 0, 'a partition that waits for the order', 60_000);
      }
      if (how === 'given up before the other is back') {
        group.run(5000);
        early.start();
        late.start();
      }
      deliversAll(group, 400);
      if (how === 'given up') late.start();
      group.until(() => servedAt(group, 'gw-1')?.inSyncCount === 2, 'two copies', 60_000);
    });
  }

  for (const gapMs of [0, 30_000]) test(`is read by a rescuer that has memory for a part of it only, as it delivers; ${String(gapMs)} ms between the restarts`, () => {
    const group = loadedGroup({ memoryBytes: { 'gw-2': 4 * 1024 * 1024 } }, 3000);
    group.gateway('gw-1').kill();
    hasPart(group, 'gw-2');
    group.run(20_000);
    for (const store of group.stores) {
      leaveAndBack(group, store);
      group.run(gapMs);
    }
    deliversAll(group, 3000);
  });
});
