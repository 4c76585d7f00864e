/**
 * Queues of another gateway that go home.
 *
 *   SERVED ─ its owner is back ─► QUIESCING ─ nothing in flight, every member has every change, and no report about it is on
 *                                             its way to its stores ─► RELEASE at every member ─► forgotten
 *
 * While QUIESCING, attempts under way end and their changes are mirrored; nothing is handed out. After RELEASE
 * nothing of the queue may be done here: who has it next finds reports at whatever step they are and goes on from
 * there (report-job.ts). A RELEASE that is lost with its link shows in the next list, and is made again
 * (recovery/rescue-watch.ts).
 */
import type { Partition } from '../mirror/partition.js';
import type { EventLog } from '../../platform/ports.js';

export interface DeparturesPorts {
  readonly log: EventLog;
  /** Out of registry, mirrors and memory. */
  forget(partition: Partition): void;
  /** Gives the claims back at these members, and drops what others still hold of the queue. */
  released(handle: number, members: readonly string[], others: readonly string[]): void;
}

export class Departures {
  private readonly ports: DeparturesPorts;
  private readonly quiescing = new Set<Partition>();

  constructor(ports: DeparturesPorts) {
    this.ports = ports;
  }

  /** Queues on their way back to their owners. */
  get openCount(): number {
    return this.quiescing.size;
  }

  /** The owner is back: no new attempts. */
  handBack(partition: Partition): void {
    if (this.quiescing.has(partition)) return;
    this.quiescing.add(partition);
    partition.isLeaving = true;
    this.ports.log.info('takeover', 'the owner of a partition is back; it is handed back when nothing of it is in flight', {
      partition: partition.name, owner: partition.identity.ownerId, messages: partition.length, in_flight: partition.inFlightCount,
    });
  }

  /** Another process has it already. */
  onForgotten(partition: Partition): void {
    this.quiescing.delete(partition);
  }

  tick(): void {
    for (const partition of this.quiescing) if (isQuiet(partition)) this.release(partition);
  }

  private release(partition: Partition): void {
    const { name, length, identity } = partition;
    const idsOf = (member: boolean): string[] => partition.replicas.filter((replica) => replica.member === member).map((replica) => replica.store.storeId);
    this.quiescing.delete(partition);
    this.ports.forget(partition);
    this.ports.released(partition.handle, idsOf(true), idsOf(false));
    this.ports.log.info('takeover', 'a partition is handed back', { cause: 'its owner is back', partition: name, to: identity.ownerId, epoch: partition.epoch, transactions: partition.lastNumber, messages: length });
  }
}

/** Nothing of the queue is under way, here or at a partition. */
function isQuiet(partition: Partition): boolean {
  return partition.inFlightCount === 0 && !partition.isDirty && partition.setChangeNumber === 0 && isAcknowledged(partition);
}

/**
 * Every member has every change. That it is committed would ask for too much: with fewer members than min_replicas
 * nothing is, and its owner, whose lease runs at the other stores, lets no more join. Without a mirror in sync there is
 * nothing that its owner could have: what is here in memory is all that is left.
 */
function isAcknowledged(partition: Partition): boolean {
  if (partition.inSyncCount === 0) return false;
  if (partition.committedNumber === partition.lastNumber) return true;
  return partition.replicas.every((replica) => !replica.member || (replica.inSync && replica.acked === partition.lastNumber));
}
