/**
 * Why no store takes a copy of a queue, and what can be done about it, in words for who looks at `no store free`
 * (lost-sets.ts): what each store said last, and all ways out that these words leave.
 *
 *   is silent ─► start it    is full ─► make room    held by a lease ─► stop the holder, or export and go on there
 *   table of queues full ─► another store            taken by a newer claim ─► export and go on there
 *
 * A store does not tell who the holder is: its own status does.
 */
import { Decline, hasRefused, isAsked, wordOf } from './declined.js';
import type { Mirrors } from './mirrors.js';
import type { Partition } from './partition.js';
import type { Replica } from './replica.js';
import { SyncState } from './replica.js';
import type { StorePort } from './store-port.js';

/** Stores that would take a copy if they could be reached. */
export function silentStores(mirrors: Mirrors, partition: Partition): string[] {
  const silent = mirrors.stores.filter((store) => !store.isUp && (isReplicaAt(partition, store) || !mirrors.placement.isAvoided(store.storeId)));
  return silent.map(({ storeId }) => storeId);
}

export function whyNoStore(mirrors: Mirrors, partition: Partition, nowMs: number): string {
  const silent = silentStores(mirrors, partition);
  const full = mirrors.stores.filter((store) => isFull(mirrors, partition, store)).map(({ storeId }) => storeId);
  const crowded = partition.replicas.filter((replica) => hasRefused(replica) && wordOf(replica)?.why === Decline.TABLE_FULL).map(({ store }) => store.storeId);
  const others = partition.replicas.filter(({ store }) => store.isUp && !full.includes(store.storeId) && !crowded.includes(store.storeId));
  const drained = mirrors.stores.filter((store) => store.isUp && !isReplicaAt(partition, store) && mirrors.placement.isAvoided(store.storeId));
  const told = [
    ...silent.map((id) => `${id} is silent`), ...full.map((id) => `${id} is full`),
    ...crowded.map((id) => `${id} has no room in its table of queues`),
    ...others.map((replica) => `${replica.store.storeId} ${toldBy(replica, nowMs)}`), ...drained.map(({ storeId }) => `${storeId} is drained or stops`),
  ];
  const ways: string[] = [];
  if (silent.length > 0) ways.push(`start ${silent.join(' or ')}`);
  if (full.length > 0) ways.push(`make room at ${full.join(' or ')}`);
  if (crowded.length > 0) ways.push(`add a store, or move other queues away from ${crowded.join(' or ')}: twinpost store drain, and with --undo again when some are gone`);
  const isHeld = others.some(({ declined }) => declined?.why === Decline.HELD);
  const { ownerId } = partition.identity;
  const holder = `(${partition.isOwn ? '' : `${ownerId}, or one that goes on for it: `}twinpost store status shows which)`;
  if (isHeld) ways.push(`stop the gateway that holds it ${holder} for longer than a lease, until this queue has a mirror, or export what is here and go on there`);
  else if (others.some(({ declined }) => declined?.why === Decline.TAKEN)) ways.push(`export what is here and go on at the gateway that holds it ${holder}`);
  return `no mirror is in sync, and no store takes a copy: ${told.join(', ')}${ways.length === 0 ? '' : `; ${ways.join(', or ')}`}`;
}

/** It said so; or has no credit, so that it was not even asked. */
function isFull(mirrors: Mirrors, partition: Partition, store: StorePort): boolean {
  if (!store.isUp) return false;
  const replica = partition.replicas.find((one) => one.store === store);
  if (replica === undefined) return store.credit <= 0 && !mirrors.placement.isAvoided(store.storeId);
  return hasRefused(replica) && wordOf(replica)?.why === Decline.FULL;
}

function toldBy(replica: Replica, nowMs: number): string {
  const declined = wordOf(replica);
  if (replica.sync !== SyncState.NG) return 'is being filled';
  if (declined === undefined) return isAsked(replica, nowMs) ? 'is asked' : 'has not answered';
  if (declined.why === Decline.HELD) return 'says that another gateway holds it, whose lease runs';
  if (declined.why === Decline.TAKEN) return 'says that another gateway has taken it';
  return declined.why === Decline.GRACE ? 'has just started, and waits for a lease of before' : `refuses it (${declined.text})`;
}

function isReplicaAt(partition: Partition, store: StorePort): boolean {
  return partition.replicas.some((replica) => replica.store === store);
}
