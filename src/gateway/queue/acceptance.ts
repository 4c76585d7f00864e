/**
 * From a whole message to entries in queues and changes at mirrors: the step between inbound and the
 * commit point. Everything that can be refused is refused here, before any number is used (docs/PROTOCOL.md
 * "Acknowledgement and credit").
 */
import type { CommitPoint, PendingCommit } from '../mirror/commit-point.js';
import type { Mirrors } from '../mirror/mirrors.js';
import { ENTRY_CREDIT_BYTES } from '../mirror/set/partition.js';
import type { Partition } from '../mirror/set/partition.js';
import type { CommitWaiter } from '../mirror/wait-list.js';
import type { Clock, Crc32, Packer } from '../../platform/ports.js';
import { FLAG_SHARED } from '../../protocol/change-rows.js';
import { EndingReserve } from './reports/ending-reserve.js';
import type { Entries } from './entries.js';
import { ENTRY_BOOKKEEPING_BYTES } from './entries.js';
import { EntryState } from './entry-table.js';
import { HeadWriter } from './head-writer.js';
import { MailQueue } from './mail-queue.js';
import { noteRoom } from './note.js';
import type { MemoryGauge } from './memory-gauge.js';
import type { QueueRegistry } from './queue-registry.js';
import { isStuck } from './readiness.js';
import type { AdmissionVerdict, Envelope, Route, Submission, SubmissionOutcome } from '../mail-types.js';
import { NO_MEMORY, NOT_READY, NOTIFY_NEVER } from '../mail-types.js';
import type { WallFrame } from './wall-frame.js';

export interface AcceptanceOptions {
  readonly lifetimeMs: number;
  readonly bounceLifetimeMs: number;
  /** Share of the accept mark that one next hop may fill. */
  readonly nextHopShare: number;
}

export interface AcceptancePorts {
  readonly clock: Clock;
  /** Of the expiry. */
  readonly frame: WallFrame;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly registry: QueueRegistry;
  readonly mirrors: Mirrors;
  readonly entries: Entries;
  readonly memory: MemoryGauge;
  readonly commitPoint: CommitPoint;
  /** An operator wants no new mail for it. */
  isRefused(route: Route): boolean;
  /** The entry is committed: it may be delivered. */
  release(queue: MailQueue, row: number): void;
}

/** A report of ours: one recipient, null reverse-path. */
export interface ReportRequest {
  readonly messageId: number;
  readonly route: Route;
  /** The partition of the message that it is about. */
  readonly home: Partition;
  readonly recipient: string;
  readonly content: Uint8Array;
  readonly flags: number;
  /** With it a message ends: it may use what is kept for that. */
  readonly isEnding: boolean;
}

/** A report that is being stored: due when it is committed. Never withdrawn: its source has ended with it. */
class StoredReport implements CommitWaiter {
  readonly #queue: MailQueue;
  readonly #row: number;
  readonly #owner: Pick<AcceptancePorts, 'release'>;

  constructor(queue: MailQueue, row: number, owner: Pick<AcceptancePorts, 'release'>) {
    this.#queue = queue;
    this.#row = row;
    this.#owner = owner;
  }

  onCommitted(): void {
    this.#owner.release(this.#queue, this.#row);
  }
}

export class Acceptance {
  #options: AcceptanceOptions;
  readonly #ports: AcceptancePorts;
  readonly endingReserve: EndingReserve;
  readonly #headWriter: HeadWriter;

  constructor(options: AcceptanceOptions, ports: AcceptancePorts) {
    this.#options = options;
    this.#ports = ports;
    this.endingReserve = new EndingReserve(ports.entries.table);
    this.#headWriter = new HeadWriter(ports.packer);
  }

  /** For mail that is taken from now on. */
  renew(options: AcceptanceOptions): void {
    this.#options = options;
  }

  /**
   * Whether a recipient of this route may be taken now. What can't commit is told before any limit: it closes
   * the port.
   */
  admit(route: Route): AdmissionVerdict {
    const { registry, memory } = this.#ports;
    const place = registry.placeFor(route);
    if (typeof place === 'string' && isStuck(place)) return place;
    if (this.#ports.isRefused(route)) return 'operator';
    if (!memory.admits(0)) return 'memory';
    if (typeof place === 'string') return place;
    const queue = place instanceof MailQueue ? place : registry.find(route);
    if (queue === undefined) return '';
    if (queue.length >= route.lengthMax) return 'queue-full';
    return queue.bytes > memory.acceptBytes * this.#options.nextHopShare ? 'share' : '';
  }

  /** Stores the message in every queue it goes to. */
  store(request: Submission): SubmissionOutcome | PendingCommit {
    const queues: MailQueue[] = [];
    for (const group of request.groups) {
      const queue = this.#ports.registry.findOrCreate(group.route);
      if (queue === undefined) return NOT_READY;
      queues.push(queue);
    }
    const envelopes = this.#envelopesOf(request);
    const heads: Uint8Array[] = [];
    for (const envelope of envelopes) heads.push(this.#headWriter.write(envelope));
    const carriers = carriersOf(queues);
    const creditBytes = creditNeeded(request, queues, carriers, heads);
    // Judged as if all of it went to each store: the same store then has room whatever the queues share.
    const isBeyond = queues.some(({ partition }) => partition.credit < creditBytes);
    if (isBeyond) for (const { partition } of queues) partition.askCredit(creditBytes);
    if (isBeyond) return NO_MEMORY;
    const keptBytes = queues.every((queue, i) => queue === carriers[i]) ? 0 : request.contentBytes;
    if (!this.#fits(request, heads, creditBytes + keptBytes)) return NO_MEMORY;
    return this.#number(request, queues, carriers, envelopes, heads);
  }

  /**
   * Stores a report, if it ends a message with the last reserve where that is needed, here and at stores.
   * Undefined when that is done.
   */
  storeReport(report: ReportRequest): typeof NO_MEMORY | typeof NOT_READY | undefined {
    const { registry, memory, clock, crc32, entries, mirrors } = this.#ports;
    const { home, content, messageId } = report;
    if (!home.mayCommit) return NOT_READY;
    const arrivalWallMs = clock.wallMs();
    const envelope: Envelope = {
      messageId, queueClass: report.route.queueClass, queueName: report.route.queueName, reversePath: '',
      recipients: [{ address: report.recipient, notify: NOTIFY_NEVER, orcpt: '' }], flags: report.flags,
      ret: 0, envid: '', client: '', helo: '', arrivalWallMs,
      expiryWallMs: this.#ports.frame.wallMs() + this.#options.bounceLifetimeMs,
    };
    const head = this.#headWriter.write(envelope);
    const room = noteRoom(1);
    const recordBytes = content.length + head.length + room;
    const creditBytes = recordBytes + ENTRY_CREDIT_BYTES;
    const isBeyond = home.credit < creditBytes;
    if (isBeyond) home.askCredit(creditBytes);
    const bytes = recordBytes + ENTRY_BOOKKEEPING_BYTES + creditBytes;
    if (!report.isEnding && (isBeyond || !memory.admits(bytes))) return NO_MEMORY;
    if (isBeyond && !this.endingReserve.admits(creditBytes)) return NO_MEMORY;
    // A segment more may be held at any time: for a text, or to close up others. And what ended in this turn
    // has changes that are not counted yet.
    const coming = entries.grainBytes + mirrors.sender.uncountedBytes;
    if (!memory.admitsEnding(bytes + coming)) return NO_MEMORY;
    const queue = registry.queueIn(home, report.route, true);
    const checksum = crc32(head, crc32(content, 0));
    const slot = entries.contents.storeOwn([content], content.length, head, room);
    const arrivalSeconds = Math.floor(arrivalWallMs / 1000);
    const expirySeconds = Math.ceil(envelope.expiryWallMs / 1000);
    const row = entries.create(
      queue, messageId, slot, 0, content.length, checksum, arrivalSeconds, expirySeconds, room,
    );
    entries.table.transition(row, EntryState.STORING);
    entries.envelopes.remember(row, envelope);
    const position = home.store(messageId, 0, [content], content.length, head, checksum, room);
    entries.table.position.set(row, position);
    queue.append(row, entries.bytes(row));
    home.awaitEnd(position, new StoredReport(queue, row, this.#ports));
    if (isBeyond) this.endingReserve.add(messageId, row, creditBytes);
    return undefined;
  }

  /** Nobody waits for mail with the null reverse-path: a report of ours or of another server. */
  #lifetimeMs(request: Submission): number {
    return request.reversePath === '' ? this.#options.bounceLifetimeMs : this.#options.lifetimeMs;
  }

  #envelopesOf(request: Submission): Envelope[] {
    const arrivalWallMs = this.#ports.clock.wallMs();
    const expiryWallMs = this.#ports.frame.wallMs() + this.#lifetimeMs(request);
    const envelopes: Envelope[] = [];
    for (const group of request.groups) {
      envelopes.push({
        messageId: request.messageId,
        queueClass: group.route.queueClass,
        queueName: group.route.queueName,
        reversePath: request.reversePath,
        recipients: group.recipients,
        flags: request.flags,
        ret: request.ret,
        envid: request.envid,
        arrivalWallMs,
        expiryWallMs,
        client: request.client,
        helo: request.helo,
      });
    }
    return envelopes;
  }

  /** `changeBytes`: what its changes take besides, until every mirror has them. */
  #fits(request: Submission, heads: readonly Uint8Array[], changeBytes: number): boolean {
    const { memory } = this.#ports;
    let bytes = request.contentBytes;
    for (let i = 0; i < heads.length; i++) {
      bytes += (heads[i]?.length ?? 0) + ENTRY_BOOKKEEPING_BYTES + roomOf(request, i);
    }
    return memory.admits(bytes) && memory.admitsPassing(bytes + changeBytes);
  }

  #number(
    request: Submission, queues: readonly MailQueue[], carriers: readonly MailQueue[],
    envelopes: readonly Envelope[], heads: readonly Uint8Array[],
  ): PendingCommit {
    const { entries, crc32, clock, commitPoint } = this.#ports;
    const { chunks, contentBytes, messageId } = request;
    let bodyChecksum = 0;
    for (const chunk of chunks) bodyChecksum = crc32(chunk, bodyChecksum);
    const shared = queues.length > 1 ? entries.contents.storeShared(chunks, contentBytes, messageId) : 0;
    // Sections go out in the order in which partitions became dirty: the one with the body must be first.
    if (shared !== 0) this.#ports.mirrors.sealPending();
    const pending = commitPoint.begin(request, clock.nowMs());
    const arrivalSeconds = Math.floor(clock.wallMs() / 1000);
    let kept: readonly Uint8Array[] | undefined;
    for (let i = 0; i < queues.length; i++) {
      const queue = queues[i];
      const head = heads[i];
      const envelope = envelopes[i];
      if (queue === undefined || head === undefined || envelope === undefined) continue;
      const checksum = crc32(head, bodyChecksum);
      const expirySeconds = Math.ceil(envelope.expiryWallMs / 1000);
      const room = noteRoom(envelope.recipients.length);
      const slot = shared === 0
        ? entries.contents.storeOwn(chunks, contentBytes, head, room)
        : entries.contents.storeBytes(head, room);
      const row = entries.create(
        queue, messageId, slot, shared, contentBytes, checksum, arrivalSeconds, expirySeconds, room,
      );
      entries.table.transition(row, EntryState.STORING);
      entries.envelopes.remember(row, envelope);
      let position: number;
      if (carriers[i] !== queue) {
        // The client's chunks are used again: one copy for all queues, in case a mirror must get the body.
        const bytes = kept === undefined ? contentBytes : 0;
        kept ??= chunks.map((chunk) => chunk.slice());
        position = queue.partition.storeAbsent(messageId, kept, bytes, contentBytes, head, checksum, room);
      } else {
        const flags = shared === 0 ? 0 : FLAG_SHARED;
        position = queue.partition.store(messageId, flags, chunks, contentBytes, head, checksum, room);
      }
      entries.table.position.set(row, position);
      queue.append(row, entries.bytes(row));
      pending.add(queue, row);
    }
    for (let i = 0; i < queues.length; i++) {
      const row = pending.rows[i];
      if (row !== undefined) queues[i]?.partition.awaitCommit(entries.table.position.get(row), pending);
    }
    return pending;
  }
}

/**
 * For each queue the one whose STORE brings the body to all of its stores: itself, or one before it. So the
 * body goes out, and stands among the changes, once for each set of stores, not for each queue.
 */
function carriersOf(queues: readonly MailQueue[]): readonly MailQueue[] {
  if (queues.length === 1) return queues;
  const carriers: MailQueue[] = [];
  const own: MailQueue[] = [];
  for (const queue of queues) {
    const isFed = ({ partition }: MailQueue): boolean =>
      partition === queue.partition || sameFeed(partition, queue.partition);
    const carrier = own.find(isFed);
    if (carrier === undefined) own.push(queue);
    carriers.push(carrier ?? queue);
  }
  return carriers;
}

/** What all of the message costs at a store that gets all of it. */
function creditNeeded(
  request: Submission, queues: readonly MailQueue[], carriers: readonly MailQueue[],
  heads: readonly Uint8Array[],
): number {
  let creditBytes = 0;
  for (let i = 0; i < queues.length; i++) {
    creditBytes += (heads[i]?.length ?? 0) + roomOf(request, i) + ENTRY_CREDIT_BYTES;
    if (carriers[i] === queues[i]) creditBytes += request.contentBytes;
  }
  return creditBytes;
}

/** What the message will need in its i-th queue until its end, beside what is stored of it now. */
function roomOf(request: Submission, i: number): number {
  return noteRoom(request.groups[i]?.recipients.length ?? 0);
}

/** Whether everything one partition's stores get reaches the other's stores too, in the same frames. */
function sameFeed(a: Partition, b: Partition): boolean {
  for (const row of b.rows) {
    if (!b.feedOf(row).getsChanges) continue;
    const twin = a.rows.find(({ storeId, bootId }) => storeId === row.storeId && bootId === row.bootId);
    if (twin === undefined || !twin.isInStep || !row.isInStep) return false;
  }
  return true;
}
