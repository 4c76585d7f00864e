/**
 * Whether mail can be committed (G6): most queues that new mail goes to have the mirrors in sync that a message needs.
 * The SMTP port is open exactly then; a queue that lacks one answers 451 for itself meanwhile.
 *
 *   counted       queues of this gateway that have a route
 *   not counted   queues of others that it delivers: no new mail goes there, and when they go home nothing has
 *                 changed here
 *   none counted  the first mail will found a queue: stores that may be chosen must be there for it
 */
import type { Placement } from './placement.js';
import type { QueueMirror } from './queue-mirror.js';

export interface ReadinessPorts {
  readonly placement: Placement;
  mirrorOf(handle: number): QueueMirror | undefined;
}

/** Asked with every message: so only queues of which something has changed are looked at, not all of them. */
export class Readiness {
  private readonly minReplicas: number;
  private readonly ports: ReadinessPorts;
  /** Of each counted queue whether it is short of mirrors. */
  private readonly counted = new Map<QueueMirror, boolean>();
  private short = 0;
  private readonly changed = new Set<QueueMirror>();
  private version = -1;
  private isReady = true;

  constructor(minReplicas: number, ports: ReadinessPorts) {
    this.minReplicas = minReplicas;
    this.ports = ports;
  }

  /** The queue is new or gone, or its set or the state of one of its mirrors is another. */
  onChanged(mirror: QueueMirror): void {
    this.changed.add(mirror);
  }

  /** `version` rises with every change of what is known of the stores. */
  mayCommit(version: number): boolean {
    if (version === this.version && this.changed.size === 0) return this.isReady;
    for (const mirror of this.changed) this.count(mirror);
    this.changed.clear();
    this.version = version;
    const all = this.counted.size;
    // A full store answers 452 for itself: it closes no port.
    this.isReady = all === 0 ? this.ports.placement.choose(this.minReplicas, [], [], true).length >= this.minReplicas : this.short * 2 < all;
    return this.isReady;
  }

  private count(mirror: QueueMirror): void {
    if (this.counted.get(mirror) === true) this.short -= 1;
    this.counted.delete(mirror);
    if (this.ports.mirrorOf(mirror.handle) !== mirror || !takesNewMail(mirror)) return;
    const isShort = mirror.inSyncCount < mirror.minReplicas;
    this.counted.set(mirror, isShort);
    if (isShort) this.short += 1;
  }
}

function takesNewMail({ queue, isOwn }: QueueMirror): boolean {
  return isOwn && queue.routed;
}
