/**
 * Whether mail can be committed (G6): most queues have the mirrors in sync that a message needs. The SMTP port is
 * open exactly then; a queue that lacks one answers 451 for itself meanwhile.
 */
import type { QueueMirror } from './queue-mirror.js';

export class Readiness {
  private version = -1;
  private isReady = true;

  /** `version` rises with every change of a state: only then it is reckoned anew. */
  mayCommit(version: number, queues: Iterable<QueueMirror>): boolean {
    if (version === this.version) return this.isReady;
    let short = 0;
    let all = 0;
    for (const mirror of queues) {
      if (!mirror.queue.routed) continue;
      all += 1;
      if (mirror.inSyncCount < mirror.minReplicas) short += 1;
    }
    this.version = version;
    this.isReady = all === 0 || short * 2 < all;
    return this.isReady;
  }
}
