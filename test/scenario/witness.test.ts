/**
 * A process that was cut off for longer than a lease, and remembers that it heard of a store's restart in time: it may
 * found the next set beside nobody (src/gateway/mirror/replica-set.ts, THE RULE OF FOUNDING).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueueMirror } from '../../src/gateway/mirror/queue-mirror.js';
import type { MirroredQueue } from '../../src/kvs/core/mirrored-queue.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { queuesOf } from './inspect.js';
import type { StoreNode } from './store-node.js';

const LETTERS = 5;

function restart(store: StoreNode): void {
  store.kill();
  store.start();
}

function queueAt(node: StoreNode): MirroredQueue | undefined {
  return node.store === undefined ? undefined : queuesOf(node.store, 'q1')[0];
}

function servedAt(group: Group, id: string): QueueMirror | undefined {
  return group.served(id, 'gw-1').find(({ queue }) => queue.name === 'q1');
}

interface Loaded {
  readonly group: Group;
  readonly own: QueueMirror;
  readonly first: StoreNode;
  readonly second: StoreNode;
  readonly third: StoreNode;
}

/** gw-1, the younger one, has some messages that do not leave, at the first two of three stores. */
function loaded(): Loaded {
  const group = Group.started({ stores: 3 }, ['gw-2']);
  group.gateway('gw-1').start();
  group.run(500);
  group.hops.script = () => 'defer';
  for (let i = 0; i < LETTERS; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  assert.equal(group.letters.count(COMMITTED), LETTERS);
  const own = servedAt(group, 'gw-1');
  const [first, second] = (own?.replicas ?? []).map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
  const third = group.stores.find((store) => store !== first && store !== second);
  assert.ok(own !== undefined && first !== undefined && second !== undefined && third !== undefined);
  return { group, own, first, second, third };
}

function oneDeliversAtMost(group: Group, ms: number): void {
  const end = group.scheduler.nowMs + ms;
  while (group.scheduler.nowMs < end) {
    group.run(10);
    const owners = ['gw-1', 'gw-2'].filter((id) => group.served(id, 'gw-1').some((mirror) => group.gateway(id).core?.mirrors.mayDeliver(mirror, group.scheduler.nowMs)));
    assert.ok(owners.length <= 1, 'one owner');
  }
}

function stateAt(group: Group, id: string): string | undefined {
  return group.gateway(id).core?.recovery.held().find(({ queue }) => queue === 'q1')?.state;
}

/** All paths are there again: what is held goes out, by one of the two. */
function deliverAll(group: Group): void {
  for (const store of group.stores) for (const id of ['gw-1', 'gw-2']) group.network.heal(id, store.id);
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === LETTERS, 'all deliveries', 120_000);
  group.until(() => servedAt(group, 'gw-1') !== undefined && servedAt(group, 'gw-2') === undefined, 'the queue at its owner', 120_000);
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}

/**
 * gw-1 was cut off; gw-2 has the queue by its claim at the one mirror and moves on. gw-1 reaches that store again: its lease
 * begins anew with the handshake, nothing confirms its right. The store restarts before it answers our CLAIM: what runs is a
 * lease, so the restart counts as witnessed.
 */
for (const moved of [true, false]) for (const isSent of [false, true]) test(`a lease that began anew, and under which no right was confirmed, witnesses nothing: the rescuer ${moved ? 'had moved on' : 'still had it there'}${isSent ? '; by what arrives' : ''}`, () => {
  const { group, own, first, second, third } = loaded();
  third.kill();
  second.kill();
  group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of one');
  for (const store of group.stores) group.network.cut('gw-1', store.id);
  third.start();
  group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'the takeover, and a second mirror', 120_000);
  if (moved) {
    group.gateway('gw-2').core?.mirrors.moves.drain(first.id);
    group.until(() => queueAt(first) === undefined, 'the end of the copy');
  }
  group.network.cut('gw-2', first.id);
  group.until(() => servedAt(group, 'gw-2')?.memberCount === 1, 'gw-2 at the third alone', 60_000);
  const boot = first.bootId;
  group.network.heal('gw-1', first.id);
  group.until(() => group.gateway('gw-1').link(first.id)?.isUp === true, 'the link');
  assert.equal(group.gateway('gw-1').link(first.id)?.bootId, boot);
  restart(first);
  if (isSent) {
    group.hops.script = () => 'accept';
    group.run(20_000);
    checkNoDuplicates(group.letters);
  } else {
    oneDeliversAtMost(group, 20_000);
    assert.equal(stateAt(group, 'gw-1'), 'no survivor');
    deliverAll(group);
  }
});
