/**
 * The sets of mirrors as they were acknowledged last, for the next process (local-notes.ts): of what is served, and, as the
 * process before told them, of queues that have not come back. There may be thousands: whether any has changed is one walk
 * that makes nothing, and hints are made one by one as they are asked for.
 *
 * Pure.
 */
import type { SetHint } from '../recovery/set-hints.js';
import type { Partition } from './mirror/partition.js';

export interface ServedSetsPorts {
  /** Of queues that have not come back. */
  openHints(): Iterable<SetHint>;
  served(): readonly Partition[];
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
    for (const { identity, epoch } of this.ports.served()) sum = added(sum, identity.birth, identity.serial, epoch);
    return sum;
  }

  /** A queue that comes or goes while they are asked for may be missing or one too many: the signature is another then. */
  *hints(): Generator<SetHint, undefined> {
    yield* this.ports.openHints();
    for (const { identity, name, epoch, replicas } of this.ports.served()) {
      const members = replicas.filter((replica) => replica.member).map((replica) => replica.store.storeId);
      yield { ...identity, name, queueClass: 'mail', epoch, members };
    }
  }
}

function added(sum: number, birth: number, serial: number, epoch: number): number {
  return (Math.imul(sum, 31) + (birth | 0) + Math.imul(serial, 7) + Math.imul(epoch, 13)) | 0;
}
