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
import type { QueueMirror } from './queue-mirror.js';

export interface ReadinessPorts {
  readonly placement: Placement;
  queues(): Iterable<QueueMirror>;
}

export class Readiness {
  private readonly minReplicas: number;
  private readonly ports: ReadinessPorts;
  private version = -1;
  private isReady = true;

  constructor(minReplicas: number, ports: ReadinessPorts) {
    this.minReplicas = minReplicas;
    this.ports = ports;
  }

  /** `version` rises with every change of a state: only then it is reckoned anew. */
  mayCommit(version: number): boolean {
    if (version === this.version) return this.isReady;
    let short = 0;
    let all = 0;
    for (const mirror of this.ports.queues()) {
      if (!takesNewMail(mirror)) continue;
      all += 1;
      if (mirror.inSyncCount < mirror.minReplicas) short += 1;
    }
    this.version = version;
    // A full store answers 452 for itself: it closes no port.
    this.isReady = all === 0 ? this.ports.placement.choose(this.minReplicas, [], [], true).length >= this.minReplicas : short * 2 < all;
    return this.isReady;
  }
}

function takesNewMail({ queue, isOwn }: QueueMirror): boolean {
  return isOwn && queue.routed && queue.route.queueClass !== 'control';
}
