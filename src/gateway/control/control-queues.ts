/**
 * The control queues that this process serves: its own, and those of gateways whose queues it has taken over. Owns
 * the records of each owner (control-records.ts) and knows which queue they are written to.
 *
 *   first record ─► queue founded, once it is known that none will come back
 *   recovery     ─► entry by entry into the records of their owner; whole ─► onBack
 *   hand-back    ─► the queue leaves with the others, its records with it
 *
 * Pure.
 */
import type { Mirrors } from '../mirror/mirrors.js';
import type { Partition } from '../mirror/partition.js';
import type { Clock, Crc32, EventLog, Packer } from '../../platform/ports.js';
import type { ControlExpected } from '../../recovery/waiting-queues.js';
import type { Entries } from '../queue/entries.js';
import { EntryState } from '../queue/entry-table.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import { CONTROL_ROUTE, ControlRecords } from './control-records.js';

export interface ControlQueuesPorts {
  readonly clock: Clock;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly entries: Entries;
  readonly mirrors: Mirrors;
  readonly registry: QueueRegistry;
  nextMessageId(): number;
  /** The stores have told what they hold, or had their time to. */
  isListed(): boolean;
  /** Whether a control queue of this owner is still to come back. */
  expected(ownerId: string): ControlExpected;
}

export class ControlQueues {
  private readonly gatewayId: string;
  private readonly ports: ControlQueuesPorts;
  private readonly byOwner = new Map<string, ControlRecords>();

  constructor(gatewayId: string, ports: ControlQueuesPorts) {
    this.gatewayId = gatewayId;
    this.ports = ports;
  }

  /** The records of this gateway. */
  get own(): ControlRecords {
    return this.recordsOf(this.gatewayId);
  }

  get owners(): Iterable<string> {
    return this.byOwner.keys();
  }

  recordsOf(ownerId: string): ControlRecords {
    const known = this.byOwner.get(ownerId);
    if (known !== undefined) return known;
    const { clock, crc32, packer, log, entries, mirrors, registry } = this.ports;
    const records = new ControlRecords({ clock, crc32, packer, log, entries, mirrors, registry, ownerId, queue: () => this.queueOf(ownerId), nextMessageId: () => this.ports.nextMessageId() });
    this.byOwner.set(ownerId, records);
    return records;
  }

  /** What the owner's records say is all known here, and what is set now will be written. */
  isOpen(ownerId: string): boolean {
    return this.ports.isListed() && this.ports.expected(ownerId) === '' && (ownerId === this.gatewayId || this.servedMirror(ownerId) !== undefined);
  }

  /** Everything that was set is acknowledged by the mirrors. */
  get isMirrored(): boolean {
    for (const records of this.byOwner.values()) if (records.unwritten > 0) return false;
    for (const partition of this.mirrors()) if (partition.isDirty || partition.committedNumber < partition.lastNumber) return false;
    return true;
  }

  /** Queues of class control that are served here. */
  *mirrors(): Iterable<Partition> {
    for (const partition of this.ports.registry.partitions) if (isControl(partition)) yield partition;
  }

  /** An entry came back. */
  onEntry(queue: MailQueue, row: number, sound: boolean): void {
    this.ports.entries.table.transition(row, EntryState.RECORD);
    this.recordsOf(queue.identity.ownerId).onRecovered(row, sound);
  }

  /** The queue is served here no more. Call it before its entries are freed. */
  forget(partition: Partition): void {
    if (isControl(partition)) this.byOwner.get(partition.identity.ownerId)?.forget(partition);
  }

  tick(): void {
    for (const records of this.byOwner.values()) records.tick();
  }

  /** The youngest queue of the owner's records; founded when there is none and none will come at once. */
  private queueOf(ownerId: string): MailQueue | undefined {
    const { registry } = this.ports;
    if (!this.ports.isListed() || this.ports.expected(ownerId) === 'soon') return undefined;
    let youngest: Partition | undefined;
    for (const partition of this.mirrors()) {
      const { ownerId: owner, birth, serial } = partition.identity;
      if (owner !== ownerId || partition.isLeaving) continue;
      if (partition.isRecovering) return undefined;
      const other = youngest?.identity;
      if (other === undefined || birth > other.birth || (birth === other.birth && serial > other.serial)) youngest = partition;
    }
    if (youngest !== undefined) return registry.queueIn(youngest, CONTROL_ROUTE, true);
    if (ownerId !== this.gatewayId) return undefined;
    const founded = registry.findOrCreate(CONTROL_ROUTE);
    return founded === undefined || founded.partition.isLeaving ? undefined : founded;
  }

  /** Any queue of the owner that stays here. */
  private servedMirror(ownerId: string): Partition | undefined {
    return this.ports.registry.partitions.find((partition) => partition.identity.ownerId === ownerId && !partition.isLeaving);
  }
}

/** Whether the queue holds records instead of mail. */
export function isControl(partition: Partition): boolean {
  return partition.kind === 'control';
}
