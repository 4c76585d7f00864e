/**
 * Mirrors that change their store: missing ones are made up, those away for long are replaced, and the queues of
 * a store that is drained or about to stop move away.
 *
 *   away for replace_after ─► a mirror on another store ─► in sync first: the old one is forgotten
 *                                                      └─► the old one back first: the new one is
 *   drain, stopping        ─► a mirror on another store ─► in sync: the set without the old ─► DROP there
 *                          └─► no such store: the set without the old, if min_replicas still holds ─► DROP there,
 *                              but not at one that stops: it keeps the copy in its file, for a tail
 *
 * What a store holds that is no mirror any more is dropped when it can be reached. One that comes back, or that a
 * process before us had left, tells of its copy itself (out of a file, or left behind): that is dropped when the queue has
 * all the mirrors it should have. Till then the store may be chosen again, and the copy is good for a tail.
 */
import type { EventLog, Packer } from '../../platform/ports.js';
import { DROP, OPEN } from '../../protocol/message-types.js';
import { encodeDrop } from '../../protocol/messages/drop.js';
import type { Mirrors } from './mirrors.js';
import { encodeOpenOf } from './open-queue.js';
import type { Placement } from './placement.js';
import type { Partition } from './partition.js';
import type { Replica } from './replica.js';
import { Leave } from './replica.js';
import type { StorePort } from './store-port.js';

export interface MovesOptions {
  readonly group: readonly string[];
  readonly replicas: number;
  readonly replaceAfterMs: number;
}

export interface MovesPorts {
  readonly packer: Packer;
  readonly log: EventLog;
  readonly mirrors: Mirrors;
  readonly placement: Placement;
}

/** A copy that is no mirror any more. */
interface Leftover {
  readonly partition: Partition;
  readonly store: StorePort;
  readonly bootId: string;
  /** The store told of it: it waits until the queue needs no more mirrors. */
  readonly wasTold: boolean;
}

export class Moves {
  private readonly options: MovesOptions;
  private readonly ports: MovesPorts;
  private leftovers: Leftover[] = [];

  constructor(options: MovesOptions, ports: MovesPorts) {
    this.options = options;
    this.ports = ports;
  }

  /** All queues move away from the store, and no new one goes there; false when it is drained already. */
  drain(storeId: string): boolean {
    const { drained } = this.ports.placement;
    if (drained.has(storeId)) return false;
    drained.add(storeId);
    this.ports.mirrors.stateVersion += 1;
    this.ports.log.info('drain', 'the partitions of a store move away', { store: storeId, mirrors: this.mirrorsAt(storeId) });
    return true;
  }

  /** What has not left the store stays. */
  undrain(storeId: string): boolean {
    if (!this.ports.placement.drained.delete(storeId)) return false;
    this.ports.mirrors.stateVersion += 1;
    this.ports.log.info('drain', 'a store is used again', { store: storeId });
    return true;
  }

  /** The store has said that it is about to stop. */
  onStopping(store: StorePort): void {
    this.ports.placement.stopping.add(store.storeId);
    this.ports.mirrors.stateVersion += 1;
    this.ports.log.info('drain', 'a store is about to stop: its partitions move away', { store: store.storeId, mirrors: this.mirrorsAt(store.storeId) });
  }

  /** The link is gone, or came up again: what was said before is over. */
  onLinkChanged(store: StorePort): void {
    this.ports.placement.stopping.delete(store.storeId);
  }

  /** A store has a copy of a queue of ours, and we hold it there. */
  onCopyTold(handle: number, storeId: string): void {
    const { mirrors } = this.ports;
    const partition = mirrors.partitionOf(handle);
    const store = mirrors.stores.find((one) => one.storeId === storeId);
    if (partition === undefined || store === undefined || partition.replicas.some((replica) => replica.store === store)) return;
    if (this.leftovers.some((leftover) => leftover.partition === partition && leftover.store === store && leftover.bootId === store.bootId)) return;
    this.leftovers.push({ partition, store, bootId: store.bootId, wasTold: true });
  }

  /** Mirrors and leftovers that a store has of our queues: 0 when it is drained. */
  mirrorsAt(storeId: string): number {
    let count = 0;
    for (const partition of this.ports.mirrors.all()) for (const replica of partition.replicas) if (replica.store.storeId === storeId) count += 1;
    for (const leftover of this.leftovers) if (leftover.store.storeId === storeId && leftover.bootId === leftover.store.bootId) count += 1;
    return count;
  }

  /** Mirrors that stay although their store is to be left: no other takes them, and without them too few would be left. */
  stuckAt(storeId: string): number {
    let count = 0;
    for (const partition of this.ports.mirrors.all()) {
      for (const replica of partition.replicas) {
        if (replica.store.storeId !== storeId || replica.leaving !== Leave.NOW || !replica.member) continue;
        if (countStaying(partition) < Math.max(1, partition.minReplicas)) count += 1;
      }
    }
    return count;
  }

  /** Queues with fewer copies than configured, not counting those that are about to leave. */
  copiesMissing(): number {
    let count = 0;
    for (const partition of this.ports.mirrors.all()) if (countStaying(partition) < this.options.replicas) count += 1;
    return count;
  }

  /** Looks at these queues. */
  tick(nowMs: number, mirrors: readonly Partition[]): void {
    for (const partition of mirrors) this.look(partition, nowMs);
    this.dropLeftovers();
  }

  private look(partition: Partition, nowMs: number): void {
    const staying: Replica[] = [];
    let leaving = 0;
    for (const replica of partition.replicas) {
      const { placement } = this.ports;
      const { storeId } = replica.store;
      const avoided = placement.isAvoided(storeId);
      if (avoided) replica.leavingWhy = placement.stopping.has(storeId) ? 'the store stops' : 'the store is drained';
      if (!avoided) replica.leaving = Leave.NO;
      else if (replica.leaving === Leave.NO) replica.leaving = Leave.REPLACED;
      if (avoided) leaving += 1;
      else if (replica.inSync || nowMs - replica.awaySinceMs < this.options.replaceAfterMs) staying.push(replica);
    }
    if (staying.length < this.options.replicas && !partition.isRecovering) this.complete(partition, staying, leaving > 0);
    if (leaving > 0) this.ports.mirrors.reviseSetOf(partition);
    this.trim(partition);
  }

  /** One more mirror, or, when no store is there for it, leave to go without. */
  private complete(partition: Partition, staying: readonly Replica[], hasLeaving: boolean): void {
    const { mirrors, placement, log } = this.ports;
    const taken = partition.replicas.map((replica) => replica.store);
    const store = placement.choose(1, taken, staying.map((replica) => replica.store))[0];
    if (store !== undefined) {
      mirrors.addReplica(partition, store);
      const replaced = partition.replicas.filter((replica) => replica.store !== store && !staying.includes(replica));
      log.info('mirror', 'a mirror is made on another store', { partition: partition.name, store: store.storeId, instead_of: replaced.map((replica) => replica.store.storeId), why: this.whyMoved(replaced) });
    } else if (hasLeaving) for (const replica of partition.replicas) if (replica.leaving === Leave.REPLACED) replica.leaving = Leave.NOW;
  }

  /** Forgets mirrors that are not needed: all are in sync that should be, or they have left the set. */
  private trim(partition: Partition): void {
    if (partition.setChangeNumber !== 0) return;
    const inSync = countStaying(partition);
    const isComplete = inSync >= this.options.replicas;
    for (const replica of [...partition.replicas]) {
      if (replica.member || !(isComplete || (replica.leaving !== Leave.NO && inSync > 0))) continue;
      this.ports.mirrors.removeReplica(partition, replica);
      // What leaves a stopping store with nobody in its place may come back with it, out of its file.
      const isKept = replica.leaving === Leave.NOW && this.ports.placement.stopping.has(replica.store.storeId);
      if (!isKept) this.leftovers.push({ partition, store: replica.store, bootId: replica.store.bootId, wasTold: false });
      this.ports.log.info('mirror', 'a mirror is given up', { partition: partition.name, store: replica.store.storeId, now_at: partition.replicas.filter((other) => other.inSync).map((other) => other.store.storeId), why: replica.leaving === Leave.NO ? 'another has taken its place' : 'it has moved away' });
    }
  }

  private whyMoved(replaced: readonly Replica[]): string {
    const { drained, stopping } = this.ports.placement;
    if (replaced.length === 0) return 'it has fewer copies than configured';
    if (replaced.some(({ store }) => stopping.has(store.storeId))) return 'the store stops';
    return replaced.some(({ store }) => drained.has(store.storeId)) ? 'the store is drained' : 'away for longer than replace_after';
  }

  /** Whether a copy that its store told of may yet become a mirror: not at one that is drained, while another is in sync. */
  private mayNeed(partition: Partition, store: StorePort): boolean {
    if (partition.setChangeNumber !== 0 || partition.isRecovering) return true;
    const least = this.ports.placement.drained.has(store.storeId) ? 1 : this.options.replicas;
    return countStaying(partition) < least;
  }

  private dropLeftovers(): void {
    if (this.leftovers.length === 0) return;
    const { mirrors, packer } = this.ports;
    this.leftovers = this.leftovers.filter(({ partition, store, bootId, wasTold }) => {
      if (store.bootId !== bootId || mirrors.partitionOf(partition.handle) !== partition || partition.replicas.some((replica) => replica.store === store)) return false;
      if (wasTold && this.mayNeed(partition, store)) return true;
      const outbox = mirrors.outboxOf(store);
      if (outbox === undefined || !store.isUp || !store.canSend || outbox.isBacklogged) return true;
      outbox.request(OPEN, encodeOpenOf(packer, this.options.group, partition, 0, []));
      outbox.request(DROP, encodeDrop(packer, { handle: partition.handle }));
      mirrors.askFlush();
      if (wasTold) this.ports.log.info('mirror', 'a copy that is no mirror any more is dropped', { partition: partition.name, store: store.storeId });
      return false;
    });
  }
}

/** Copies in sync that are not to leave. */
function countStaying(partition: Partition): number {
  let count = 0;
  for (const replica of partition.replicas) if (replica.inSync && replica.leaving === Leave.NO) count += 1;
  return count;
}
