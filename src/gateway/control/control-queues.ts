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
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { Clock, Crc32, EventLog, Packer } from '../../platform/ports.js';
import type { ControlExpected } from '../../recovery/waiting-queues.js';
import type { Entries } from '../queue/entries.js';
import { EntryState } from '../queue/entry-table.js';
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
    const { clock, crc32, packer, log, entries, mirrors } = this.ports;
    const records = new ControlRecords({ clock, crc32, packer, log, entries, mirrors, ownerId, queue: () => this.queueOf(ownerId), nextMessageId: () => this.ports.nextMessageId() });
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
    for (const mirror of this.mirrors()) if (mirror.isDirty || mirror.committedNumber < mirror.lastNumber) return false;
    return true;
  }

  /** Queues of class control that are served here. */
  *mirrors(): Iterable<QueueMirror> {
    for (const mirror of this.ports.registry.all) if (isControl(mirror)) yield mirror;
  }

  /** An entry came back. */
  onEntry(mirror: QueueMirror, row: number, sound: boolean): void {
    this.ports.entries.table.transition(row, EntryState.RECORD);
    this.recordsOf(mirror.queue.identity.ownerId).onRecovered(row, sound);
  }

  /** The queue is served here no more. Call it before its entries are freed. */
  forget(mirror: QueueMirror): void {
    if (isControl(mirror)) this.byOwner.get(mirror.queue.identity.ownerId)?.forget(mirror);
  }

  tick(): void {
    for (const records of this.byOwner.values()) records.tick();
  }

  /** The youngest queue of the owner's records; founded when there is none and none will come at once. */
  private queueOf(ownerId: string): QueueMirror | undefined {
    const { registry } = this.ports;
    if (!this.ports.isListed() || this.ports.expected(ownerId) === 'soon') return undefined;
    let youngest: QueueMirror | undefined;
    for (const mirror of this.mirrors()) {
      const { ownerId: owner, birth, serial } = mirror.queue.identity;
      if (owner !== ownerId || mirror.queue.isLeaving) continue;
      if (mirror.queue.isRecovering) return undefined;
      const other = youngest?.queue.identity;
      if (other === undefined || birth > other.birth || (birth === other.birth && serial > other.serial)) youngest = mirror;
    }
    if (youngest !== undefined) return youngest;
    const served = this.servedMirror(ownerId);
    if (ownerId !== this.gatewayId && served === undefined) return undefined;
    const founded = registry.findOrCreate(registry.routeFor(ownerId, CONTROL_ROUTE, served?.token ?? 0));
    return founded === undefined || founded.queue.isLeaving ? undefined : founded;
  }

  /** Any queue of the owner that stays here. */
  private servedMirror(ownerId: string): QueueMirror | undefined {
    return this.ports.registry.all.find((mirror) => mirror.queue.identity.ownerId === ownerId && !mirror.queue.isLeaving);
  }
}

/** Whether the queue holds records instead of mail. */
export function isControl(mirror: QueueMirror): boolean {
  return mirror.queue.route.queueClass === 'control';
}
