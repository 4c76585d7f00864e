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
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { EventLog } from '../../platform/ports.js';

export interface DeparturesPorts {
  readonly log: EventLog;
  /** A report about its mail is on its way to stores that may not show it yet: whoever has the queue next would make another. */
  isParkingFor(mirror: QueueMirror): boolean;
  /** Out of registry, mirrors and memory. */
  forget(mirror: QueueMirror): void;
  /** Gives the claims back at these members, and drops what others still hold of the queue. */
  released(handle: number, members: readonly string[], others: readonly string[]): void;
}

export class Departures {
  private readonly ports: DeparturesPorts;
  private readonly quiescing = new Set<QueueMirror>();

  constructor(ports: DeparturesPorts) {
    this.ports = ports;
  }

  /** Queues on their way back to their owners. */
  get openCount(): number {
    return this.quiescing.size;
  }

  /** The owner is back: no new attempts. */
  handBack(mirror: QueueMirror): void {
    if (this.quiescing.has(mirror)) return;
    this.quiescing.add(mirror);
    const { queue } = mirror;
    queue.isLeaving = true;
    this.ports.log.info('takeover', 'the owner of a queue is back; it is handed back when nothing of it is in flight', { queue: queue.name, owner: queue.identity.ownerId, messages: queue.length, in_flight: queue.inFlightCount });
  }

  /** Another process has it already. */
  onForgotten(mirror: QueueMirror): void {
    this.quiescing.delete(mirror);
  }

  tick(): void {
    for (const mirror of this.quiescing) if (isQuiet(mirror) && !this.ports.isParkingFor(mirror)) this.release(mirror);
  }

  private release(mirror: QueueMirror): void {
    const { name, length, identity } = mirror.queue;
    const idsOf = (member: boolean): string[] => mirror.replicas.filter((replica) => replica.member === member).map((replica) => replica.store.storeId);
    this.quiescing.delete(mirror);
    this.ports.forget(mirror);
    this.ports.released(mirror.handle, idsOf(true), idsOf(false));
    this.ports.log.info('takeover', 'a queue is handed back', { cause: 'its owner is back', queue: name, to: identity.ownerId, epoch: mirror.epoch, transactions: mirror.lastNumber, messages: length });
  }
}

/** Nothing of the queue is under way, here or at a mirror. */
function isQuiet(mirror: QueueMirror): boolean {
  return mirror.queue.inFlightCount === 0 && !mirror.isDirty && mirror.setChangeNumber === 0 && isAcknowledged(mirror);
}

/**
 * Every member has every change. That it is committed would ask for too much: with fewer members than min_replicas
 * nothing is, and its owner, whose lease runs at the other stores, lets no more join. Without a mirror in sync there is
 * nothing that its owner could have: what is here in memory is all that is left.
 */
function isAcknowledged(mirror: QueueMirror): boolean {
  if (mirror.inSyncCount === 0) return false;
  if (mirror.committedNumber === mirror.lastNumber) return true;
  return mirror.replicas.every((replica) => !replica.member || (replica.inSync && replica.acked === mirror.lastNumber));
}
