/**
 * What an operator is told of queues that wait to be taken back or over (claiming.ts): each state once, with what he can
 * do. The fields of the job that are set here say the same in `twinpost status` (waiting-queues.ts).
 *
 *   tellMissing    a store that may know more has not answered
 *   tellEmpty      a member came back empty, and another process may have begun a newer set there
 *   tellAllGone    every member came back empty; a store that had left before has a file
 *   tellElsewhere  no store has a copy any more; another process, which had the queue, may have its mail in memory
 *   tellGivenUp    an operator goes on, and no copy that counts is there
 */
import type { EventLog } from '../platform/ports.js';
import { leaverOf, leftCopies } from './census.js';
import { forceCommand, forceCommands } from './force.js';
import type { QueueJob } from './queue-job.js';
import type { SetHints } from './set-hints.js';
import { memberText } from './set-hints.js';

export interface WaitingNewsPorts {
  readonly log: EventLog;
  readonly hints: SetHints;
  nowMs(): number;
}

export class WaitingNews {
  /** A store that has not answered is news. */
  isLate = false;
  private readonly ports: WaitingNewsPorts;

  constructor(ports: WaitingNewsPorts) {
    this.ports = ports;
  }

  /** Those that answer have shown a newer set before, and do not any more. */
  tellWait(job: QueueJob, missing: readonly string[], answering: ReadonlySet<string>): void {
    const silent = missing.filter((store) => !answering.has(store));
    const [empty] = missing;
    if (silent.length > 0 || empty === undefined) this.tellMissing(job, silent, 'unreachable');
    else this.tellEmpty(job, empty, 'it had a set by which an operator had the queue go on, and another gateway may have its mail in memory', this.ports.hints.get(job.key)?.epoch);
  }

  tellMissing(job: QueueJob, missing: readonly string[], why: string): void {
    if (!this.isLate || missing.join(' ') === job.missing.join(' ')) return;
    this.waitFor(job, missing);
    const hint = this.ports.hints.get(job.key);
    this.ports.log.warn('recovery', 'mail of this partition is held: a store that may know more of it has not answered; start it, or go on without it by the command', { partition: job.name, owner: job.ownerId, missing, why, command: forceCommands(job, missing), ...(hint === undefined ? {} : { known: memberText(hint) }) });
  }

  /** `why`: what hinders going on without that store. */
  tellEmpty(job: QueueJob, storeId: string, why: string, epoch = job.epoch): void {
    if (job.empty === storeId) return;
    this.waitFor(job, [storeId]);
    job.empty = storeId;
    this.ports.log.warn('recovery', 'mail of this partition is held: a mirror came back empty, and a process that had the partition there may still live; end it, then go on without that mirror by the command', { partition: job.name, owner: job.ownerId, epoch, empty: [storeId], why, command: forceCommand(job, storeId) });
  }

  tellAllGone(job: QueueJob): void {
    const left = leaverOf(job.rows.values(), job.epoch, job.members);
    const missing = job.members.filter((member) => !job.given.has(member));
    if (left === undefined || (job.leftAt === left.storeId && job.missing.join(' ') === missing.join(' '))) return;
    this.waitFor(job, missing);
    job.leftAt = left.storeId;
    this.ports.log.warn('recovery', 'mail of this partition is held: every mirror of its newest set came back empty; a store that had left the set before it stopped has a copy in its file, which lacks what came after that and repeats what was delivered after that; have it read by the command', { partition: job.name, owner: job.ownerId, epoch: job.epoch, empty: missing, store: left.storeId, messages: left.count, command: forceCommand(job, missing[0] ?? '') });
  }

  /** `stores`: those that showed the queue last. */
  tellElsewhere(job: QueueJob, stores: readonly string[]): void {
    if (job.isElsewhere) return;
    job.blocked = '';
    this.waitFor(job, stores);
    job.isElsewhere = true;
    this.ports.log.warn('recovery', 'mail of this partition is held: no store has a copy of it any more, and another gateway, which had taken it over, may have its mail in memory; look at the status of that gateway first, it goes on by itself or by its operator; if it has nothing of it, give the partition up by the command', { partition: job.name, owner: job.ownerId, gateway: job.heldBy, stores, command: forceCommand(job, stores[0] ?? '') });
  }

  tellGivenUp(job: QueueJob): void {
    const left = leftCopies(job.rows.values());
    const fields = { partition: job.name, owner: job.ownerId, without: [...job.given] };
    if (left.length === 0) this.ports.log.warn('recovery', 'a partition is given up by an operator: no store that answers has a copy of it', fields);
    else this.ports.log.warn('recovery', 'a partition is given up by an operator: no store that answers is in its set; copies that a process before was filling count for nothing, and can be written to files by the command', { ...fields, stores: left.map(({ storeId }) => storeId), messages: left.map(({ count }) => count), command: `twinpost store export --partition ${job.name} DIR --from ADDRESS` });
  }

  private waitFor(job: QueueJob, missing: readonly string[]): void {
    job.missing = missing;
    job.empty = '';
    job.leftAt = '';
    job.isElsewhere = false;
    job.missingSinceMs = this.ports.nowMs();
  }
}
