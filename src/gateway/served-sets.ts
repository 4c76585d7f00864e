/**
 * The sets of mirrors as they were acknowledged last, for the next process (local-notes.ts): of what is served, and, as the
 * process before told them, of queues that have not come back. There may be thousands: whether any has changed is one walk
 * that makes nothing, and hints are made one by one as they are asked for.
 *
 * Pure.
 */
import type { SetHint } from '../recovery/set-hints.js';
import type { QueueMirror } from './mirror/queue-mirror.js';

export interface ServedSetsPorts {
  /** Of queues that have not come back. */
  openHints(): Iterable<SetHint>;
  served(): readonly QueueMirror[];
}

export class ServedSets {
  private readonly ports: ServedSetsPorts;

  constructor(ports: ServedSetsPorts) {
    this.ports = ports;
  }

  /** Another number for another list of (queue, epoch), but for one time in 2^32: the next change is told then. */
  signature(): number {
    let sum = 0;
    for (const hint of this.ports.openHints()) sum = added(sum, hint.birth, hint.serial, hint.epoch);
    for (const { queue, epoch } of this.ports.served()) sum = added(sum, queue.identity.birth, queue.identity.serial, epoch);
    return sum;
  }

  /** A queue that comes or goes while they are asked for may be missing or one too many: the signature is another then. */
  *hints(): Generator<SetHint, undefined> {
    yield* this.ports.openHints();
    for (const { queue, epoch, replicas } of this.ports.served()) {
      const members = replicas.filter((replica) => replica.member).map((replica) => replica.store.storeId);
      yield { ...queue.identity, name: queue.name, queueClass: queue.route.queueClass, epoch, members };
    }
  }
}

function added(sum: number, birth: number, serial: number, epoch: number): number {
  return (Math.imul(sum, 31) + (birth | 0) + Math.imul(serial, 7) + Math.imul(epoch, 13)) | 0;
}
