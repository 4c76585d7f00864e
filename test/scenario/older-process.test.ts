/**
 * Two processes of one gateway at a time: the older one is cut off, and nothing proves to the next one, on another host, that
 * it is gone. What the older one fills is none of the mirrors that the next one named (src/recovery/census.ts, isOnItsWay).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import { ROLE_FILLING } from '../../src/protocol/reasons.js';
import type { Group } from './group.js';
import { LETTERS, loaded, queueAt, restart, servedAt, stateAt } from './one-owner.js';

/** The host of the next process of gw-1. */
const NEXT = 'gw-1-next';

function mayDeliver(group: Group, host: string, mirror: Partition | undefined): boolean {
  return mirror !== undefined && group.gateway(host).core?.mirrors.mayDeliver(mirror, group.scheduler.nowMs) === true;
}

/**
 * The next process has the queue at {second, first}; second has heard of that set, and is out of its reach since. It goes on
 * with first, which restarts, empty, once while it is reached, and once while it is not: the older one fills it then.
 */
test('a member that came back empty, and was filled by an older process of the gateway that named it, is not on its way', () => {
  const { group, own, first, second, third } = loaded({ unproven: ['gw-1'], elsewhere: { [NEXT]: 'gw-1' } });
  third.kill();
  first.kill();
  group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of the second');
  for (const store of group.stores) group.network.cut('gw-1', store.id);
  first.start();
  group.gateway(NEXT).start();
  const next = (): Partition | undefined => servedAt(group, NEXT);
  group.until(() => next()?.inSyncCount === 2, 'the next process has it, and a second mirror', 120_000);
  group.network.cut(NEXT, second.id);
  group.until(() => next()?.memberCount === 1 && next()?.setChangeNumber === 0, 'the set of the first');
  restart(first);
  group.until(() => queueAt(first)?.role === ROLE_FILLING, 'the refill by the next process');
  group.network.cut(NEXT, first.id);
  restart(first);
  group.network.heal('gw-1', first.id);
  group.until(() => queueAt(first)?.role === ROLE_FILLING, 'the refill by the older one');
  group.run(500);
  assert.deepEqual([queueAt(first)?.holder, queueAt(second)?.holder, queueAt(second)?.members.length], ['gw-1', 'gw-1', 2]);
  // The older one ends; the rescuer looks at the two, and the next process has a third store to go on at.
  group.gateway('gw-1').kill();
  group.network.cut('gw-2', third.id);
  third.start();
  const end = group.scheduler.nowMs + 90_000;
  while (group.scheduler.nowMs < end) {
    group.run(10);
    assert.ok(!(mayDeliver(group, 'gw-2', servedAt(group, 'gw-2')) && mayDeliver(group, NEXT, next())), `two owners; log:\n${group.lastLog()}`);
  }
  assert.equal(stateAt(group, 'gw-2'), 'waiting');
  assert.deepEqual([next()?.inSyncCount, next()?.length], [1, LETTERS]);
});
