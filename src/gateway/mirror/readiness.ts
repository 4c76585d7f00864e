/**
 * Whether mail can be committed (G6): most queues that new mail goes to have the mirrors in sync that a message needs.
 * The SMTP port is open exactly then; a queue that lacks one answers 451 for itself meanwhile.
 *
 *   counted       mail queues of this gateway that have a route
 *   not counted   its own records: they are told as degraded (degradation.ts), no mail waits for them; and queues of
 *                 others that it delivers: no new mail goes there, and when they go home nothing has changed here
 *   none counted  the first mail will found a queue: stores that may be chosen must be there for it
 */
import type { Placement } from './placement.js';
import type { Partition } from './partition.js';

export interface ReadinessPorts {
  readonly placement: Placement;
  partitionOf(handle: number): Partition | undefined;
}

/** Asked with every message: so only queues of which something has changed are looked at, not all of them. */
export class Readiness {
  private readonly minReplicas: number;
  private readonly ports: ReadinessPorts;
  /** Of each counted queue whether it is short of mirrors. */
  private readonly counted = new Map<Partition, boolean>();
  private short = 0;
  private readonly changed = new Set<Partition>();
  private version = -1;
  private isReady = true;

  constructor(minReplicas: number, ports: ReadinessPorts) {
    this.minReplicas = minReplicas;
    this.ports = ports;
  }

  /** The queue is new or gone, or its set or the state of one of its mirrors is another. */
  onChanged(partition: Partition): void {
    this.changed.add(partition);
  }

  /** `version` rises with every change of what is known of the stores. */
  mayCommit(version: number): boolean {
    if (version === this.version && this.changed.size === 0) return this.isReady;
    for (const partition of this.changed) this.count(partition);
    this.changed.clear();
    this.version = version;
    const all = this.counted.size;
    // A full store answers 452 for itself: it closes no port.
    this.isReady = all === 0 ? this.ports.placement.choose(this.minReplicas, [], [], true).length >= this.minReplicas : this.short * 2 < all;
    return this.isReady;
  }

  private count(partition: Partition): void {
    if (this.counted.get(partition) === true) this.short -= 1;
    this.counted.delete(partition);
    if (this.ports.partitionOf(partition.handle) !== partition || !takesNewMail(partition)) return;
    const isShort = partition.inSyncCount < partition.minReplicas;
    this.counted.set(partition, isShort);
    if (isShort) this.short += 1;
  }
}

function takesNewMail({ kind, isOwn }: Partition): boolean {
  return isOwn && kind === 'mail';
}
