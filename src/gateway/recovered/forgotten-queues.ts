/**
 * Partitions that are not ours any more: another process took them over, or has them back. Nothing of them is
 * sent to a store or delivered from then on; their memory is given back in steps, so that a million entries
 * stop nobody.
 *
 *   forget ─► out of registry and mirrors ─► being stored: no reply ─► entries freed, so many a tick ─► gone
 *             in flight: the attempt ends before its final dot, or its result is of no account; then freed
 */
import type { CommitPoint } from '../mirror/commit-point.js';
import type { Partition } from '../mirror/set/partition.js';
import type { DueTimes } from '../queue/due-times.js';
import type { Entries } from '../queue/entries.js';
import { EntryState } from '../queue/entry-table.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { RecoveredQueues } from './recovered-queues.js';
import type { Reports } from '../queue/reports/report-job.js';

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
  readonly #ports: ForgottenPorts;
  readonly #partitions = new Set<Partition>();

  constructor(ports: ForgottenPorts) {
    this.#ports = ports;
  }

  /** Partitions whose memory is not all given back yet. */
  get count(): number {
    return this.#partitions.size;
  }

  has(partition: Partition): boolean {
    return this.#partitions.has(partition);
  }

  forget(partition: Partition): void {
    if (this.#partitions.has(partition)) return;
    const { registry, commitPoint, reports, recovered, entries, dueTimes } = this.#ports;
    registry.remove(partition);
    this.#partitions.add(partition);
    commitPoint.abandon(partition);
    recovered.forget(partition);
    entries.absent.end(partition);
    reports.forget(partition);
    for (const queue of partition.queues.values()) dueTimes.forget(queue);
  }

  /** An attempt of an entry has ended; true when its partition was forgotten: the result is of no account. */
  onSettled(queue: MailQueue, row: number): boolean {
    if (!this.#partitions.has(queue.partition)) return false;
    queue.inFlightCount -= 1;
    this.#ports.entries.remove(queue, row);
    return true;
  }

  tick(): void {
    let left = FREED_PER_TICK;
    for (const partition of this.#partitions) {
      left = this.#free(partition, left);
      if (partition.length === 0) {
        this.#partitions.delete(partition);
        for (const queue of partition.queues.values()) this.#ports.registry.release(queue);
      }
      if (left === 0) return;
    }
  }

  /** Frees what rests; entries in flight are freed by onSettled(). */
  #free({ order }: Partition, most: number): number {
    const { entries, dueTimes, registry } = this.#ports;
    let left = most;
    for (let row = order.first; row !== 0 && left > 0; left -= 1) {
      const following = order.following(row);
      const state = entries.table.state(row);
      const queue = registry.queueOf(row);
      if (state === EntryState.DEFERRED) {
        dueTimes.cancel(row);
        queue?.uncountDeferred(row);
      }
      if (state !== EntryState.IN_FLIGHT && queue !== undefined) entries.remove(queue, row);
      row = following;
    }
    return left;
  }
}
