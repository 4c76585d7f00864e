/**
 * Queues that are not ours any more: another process took them over, or has them back. Nothing of them is sent to
 * a store or delivered from then on; their memory is given back in steps, so that a queue of a million stops nobody.
 *
 *   forget ─► out of registry and mirrors ─► being stored: no reply ─► entries freed, so many a tick ─► gone
 *             in flight: the attempt ends before its final dot, or its result is of no account; then freed
 */
import type { CommitPoint } from '../mirror/commit-point.js';
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { DueTimes } from './due-times.js';
import type { Entries } from './entries.js';
import { EntryState } from './entry-table.js';
import type { QueueRegistry } from './queue-registry.js';
import type { RecoveredQueues } from './recovered-queues.js';
import type { Reports } from './report-job.js';

/** Entries freed in a tick: about two milliseconds. */
const FREED_PER_TICK = 4096;

export interface ForgottenPorts {
  readonly registry: QueueRegistry;
  readonly entries: Entries;
  readonly dueTimes: DueTimes;
  readonly reports: Reports;
  readonly recovered: RecoveredQueues;
  readonly commitPoint: CommitPoint;
}

export class ForgottenQueues {
  private readonly ports: ForgottenPorts;
  private readonly byHandle = new Map<number, QueueMirror>();

  constructor(ports: ForgottenPorts) {
    this.ports = ports;
  }

  /** Queues whose memory is not all given back yet. */
  get count(): number {
    return this.byHandle.size;
  }

  forget(mirror: QueueMirror): void {
    if (this.byHandle.has(mirror.handle)) return;
    const { registry, commitPoint, reports, recovered } = this.ports;
    registry.remove(mirror);
    this.byHandle.set(mirror.handle, mirror);
    commitPoint.abandon(mirror);
    recovered.forget(mirror);
    reports.forget(mirror, {
      owing: (source, row) => { recovered.noteOwing(source, row); },
      parked: (target, row) => { recovered.noteParked(target, row); },
    });
  }

  /** An attempt of an entry has ended; true when its queue was forgotten: the result is of no account. */
  onSettled(row: number): boolean {
    const { entries } = this.ports;
    const mirror = this.byHandle.get(entries.table.queueHandle(row));
    if (mirror === undefined) return false;
    mirror.queue.inFlightCount -= 1;
    entries.remove(mirror.queue, row);
    return true;
  }

  tick(): void {
    let left = FREED_PER_TICK;
    for (const [handle, mirror] of this.byHandle) {
      left = this.free(mirror, left);
      if (mirror.queue.length === 0) this.byHandle.delete(handle);
      if (left === 0) return;
    }
  }

  /** Frees what rests; entries in flight are freed by onSettled(). */
  private free(mirror: QueueMirror, most: number): number {
    const { entries, dueTimes } = this.ports;
    const { queue } = mirror;
    let left = most;
    for (let row = queue.first; row !== 0 && left > 0; left -= 1) {
      const following = queue.following(row);
      const state = entries.table.state(row);
      if (state === EntryState.DEFERRED) dueTimes.cancel(row);
      if (state !== EntryState.IN_FLIGHT) entries.remove(queue, row);
      row = following;
    }
    return left;
  }
}
