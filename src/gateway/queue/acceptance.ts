/**
 * From a whole message to entries in queues and changes at mirrors: the step between inbound and the
 * commit point. Everything that can be refused is refused here, before any number is used (docs/PROTOCOL.md
 * "Acknowledgement and credit").
 */
import type { CommitPoint, PendingCommit } from '../mirror/commit-point.js';
import type { Mirrors } from '../mirror/mirrors.js';
import { ENTRY_CREDIT_BYTES } from '../mirror/queue-mirror.js';
import type { QueueMirror } from '../mirror/queue-mirror.js';
import { ResyncPhase, SyncState } from '../mirror/replica.js';
import type { Clock, Crc32, Packer } from '../../platform/ports.js';
import { FLAG_SHARED } from '../../protocol/change-rows.js';
import { EndingReserve } from './ending-reserve.js';
import type { Entries } from './entries.js';
import { ENTRY_BOOKKEEPING_BYTES } from './entries.js';
import { EntryState } from './entry-table.js';
import { HeadWriter } from './head-writer.js';
import { noteRoom } from './note.js';
import type { MemoryGauge } from './memory-gauge.js';
import type { QueueRegistry } from './queue-registry.js';
import type { Admission, Envelope, Origin, Route, Submission, SubmissionOutcome } from './types.js';
import { NO_MEMORY, NOT_READY } from './types.js';

export interface AcceptanceOptions {
  readonly lifetimeMs: number;
  readonly bounceLifetimeMs: number;
  /** Share of the accept mark that one next hop may fill. */
  readonly nextHopShare: number;
}

export interface AcceptancePorts {
  readonly clock: Clock;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly registry: QueueRegistry;
  readonly mirrors: Mirrors;
  readonly entries: Entries;
  readonly memory: MemoryGauge;
  readonly commitPoint: CommitPoint;
}

/** What is stored: a submission of a client, or a report of ours, which says where it comes from. */
export interface StoreRequest extends Submission {
  readonly origin?: Origin | undefined;
}

export class Acceptance {
  private readonly options: AcceptanceOptions;
  private readonly ports: AcceptancePorts;
  private readonly endingReserve: EndingReserve;
  private readonly headWriter: HeadWriter;

  constructor(options: AcceptanceOptions, ports: AcceptancePorts) {
    this.options = options;
    this.ports = ports;
    this.endingReserve = new EndingReserve(ports.entries.table);
    this.headWriter = new HeadWriter(ports.packer);
  }

  /** Whether a recipient of this route may be taken now. */
  admit(route: Route): Admission {
    const { registry, memory } = this.ports;
    if (!memory.admits(0)) return 'memory';
    const mirror = registry.find(route);
    if (mirror === undefined) return registry.isFull ? 'queues' : '';
    if (mirror.queue.length >= route.lengthMax) return 'queue-full';
    if (mirror.queue.bytes > memory.acceptBytes * this.options.nextHopShare) return 'share';
    return isReady(mirror) ? '' : 'not-ready';
  }

  /** Stores the message in every queue it goes to. `ending`: a report, which may use the last reserve, here and at stores. */
  store(request: StoreRequest, ending: boolean): SubmissionOutcome | PendingCommit {
    const mirrors: QueueMirror[] = [];
    for (const group of request.groups) {
      const mirror = this.ports.registry.findOrCreate(group.route, ending);
      if (mirror === undefined || !isReady(mirror)) return NOT_READY;
      mirrors.push(mirror);
    }
    const envelopes = this.envelopesOf(request);
    const heads: Uint8Array[] = [];
    for (const envelope of envelopes) heads.push(this.headWriter.write(envelope));
    const carriers = carriersOf(mirrors);
    const creditBytes = creditNeeded(request, mirrors, carriers, heads);
    // Judged as if all of it went to each store: the same store then has room whatever the queues share.
    const isBeyond = mirrors.some((mirror) => mirror.credit < creditBytes);
    if (isBeyond) for (const mirror of mirrors) mirror.askCredit(creditBytes);
    if (isBeyond && !(ending && this.endingReserve.admits(creditBytes))) return NO_MEMORY;
    const keptBytes = mirrors.every((mirror, i) => mirror === carriers[i]) ? 0 : request.contentBytes;
    if (!this.fits(request, heads, creditBytes + keptBytes, ending)) return NO_MEMORY;
    const pending = this.number(request, mirrors, carriers, envelopes, heads);
    if (isBeyond) this.endingReserve.add(request.messageId, pending.rows[0] ?? 0, creditBytes);
    return pending;
  }

  /** Nobody waits for mail with the null reverse-path, whoever made it: ours or a report of another server. */
  private lifetimeMs(request: StoreRequest): number {
    return request.reversePath === '' ? this.options.bounceLifetimeMs : this.options.lifetimeMs;
  }

  private envelopesOf(request: StoreRequest): Envelope[] {
    const arrivalWallMs = this.ports.clock.wallMs();
    const envelopes: Envelope[] = [];
    for (const group of request.groups) {
      envelopes.push({
        messageId: request.messageId,
        reversePath: request.reversePath,
        recipients: group.recipients,
        flags: request.flags,
        ret: request.ret,
        envid: request.envid,
        arrivalWallMs,
        expiryWallMs: arrivalWallMs + this.lifetimeMs(request),
        client: request.client,
        helo: request.helo,
        origin: request.origin,
      });
    }
    return envelopes;
  }

  /** `changeBytes`: what its changes take besides, until every mirror has them. */
  private fits(request: StoreRequest, heads: readonly Uint8Array[], changeBytes: number, ending: boolean): boolean {
    const { memory } = this.ports;
    let bytes = request.contentBytes;
    for (let i = 0; i < heads.length; i++) {
      bytes += (heads[i]?.length ?? 0) + ENTRY_BOOKKEEPING_BYTES + roomOf(request, i);
    }
    return ending ? memory.admitsEnding(bytes + changeBytes) : memory.admits(bytes) && memory.admitsPassing(bytes + changeBytes);
  }

  private number(request: StoreRequest, mirrors: readonly QueueMirror[], carriers: readonly QueueMirror[], envelopes: readonly Envelope[], heads: readonly Uint8Array[]): PendingCommit {
    const { entries, crc32, clock, commitPoint } = this.ports;
    const { chunks, contentBytes } = request;
    let bodyChecksum = 0;
    for (const chunk of chunks) bodyChecksum = crc32(chunk, bodyChecksum);
    const sharedContent = mirrors.length > 1 ? entries.contents.storeShared(chunks, contentBytes, request.messageId) : 0;
    // Sections go out in the order in which queues became dirty: the one with the body must be first.
    if (sharedContent !== 0) this.ports.mirrors.sealPending();
    const pending = commitPoint.begin(request, clock.nowMs());
    const arrivalSeconds = Math.floor(clock.wallMs() / 1000);
    let kept: readonly Uint8Array[] | undefined;
    for (let i = 0; i < mirrors.length; i++) {
      const mirror = mirrors[i];
      const head = heads[i];
      const envelope = envelopes[i];
      if (mirror === undefined || head === undefined || envelope === undefined) continue;
      const checksum = crc32(head, bodyChecksum);
      const room = noteRoom(envelope.recipients.length);
      const slot = sharedContent === 0 ? entries.contents.storeOwn(chunks, contentBytes, head, room) : entries.contents.storeBytes(head, room);
      const expirySeconds = arrivalSeconds + Math.ceil(this.lifetimeMs(request) / 1000);
      const row = entries.create(mirror.queue, request.messageId, slot, sharedContent, contentBytes, checksum, arrivalSeconds, expirySeconds, room);
      entries.table.transition(row, EntryState.STORING);
      entries.envelopes.remember(row, envelope);
      let position: number;
      if (carriers[i] !== mirror) {
        // The client's chunks are used again: one copy for all queues, in case a mirror must get the body after all.
        const isFirst = kept === undefined;
        kept ??= chunks.map((chunk) => chunk.slice());
        position = mirror.storeAbsent(request.messageId, kept, isFirst ? contentBytes : 0, contentBytes, head, checksum, room);
      } else position = mirror.store(request.messageId, sharedContent === 0 ? 0 : FLAG_SHARED, chunks, contentBytes, head, checksum, room);
      entries.table.position.set(row, position);
      mirror.queue.append(row, entries.bytes(row));
      pending.add(mirror, row);
    }
    for (let i = 0; i < mirrors.length; i++) {
      const row = pending.rows[i];
      if (row !== undefined) mirrors[i]?.await(entries.table.position.get(row), pending);
    }
    return pending;
  }
}

/**
 * For each queue the one whose STORE brings the body to all of its stores: itself, or one before it. So the body goes
 * out, and stands among the changes, once for each set of stores, not for each queue.
 */
function carriersOf(mirrors: readonly QueueMirror[]): readonly QueueMirror[] {
  if (mirrors.length === 1) return mirrors;
  const carriers: QueueMirror[] = [];
  const own: QueueMirror[] = [];
  for (const mirror of mirrors) {
    const carrier = own.find((earlier) => sameFeed(earlier, mirror));
    if (carrier === undefined) own.push(mirror);
    carriers.push(carrier ?? mirror);
  }
  return carriers;
}

/** What all of the message costs at a store that gets all of it. */
function creditNeeded(request: StoreRequest, mirrors: readonly QueueMirror[], carriers: readonly QueueMirror[], heads: readonly Uint8Array[]): number {
  let creditBytes = 0;
  for (let i = 0; i < mirrors.length; i++) {
    creditBytes += (heads[i]?.length ?? 0) + roomOf(request, i) + ENTRY_CREDIT_BYTES;
    if (carriers[i] === mirrors[i]) creditBytes += request.contentBytes;
  }
  return creditBytes;
}

/** What the message will need in its i-th queue until its end, beside what is stored of it now. */
function roomOf(request: StoreRequest, i: number): number {
  return noteRoom(request.groups[i]?.recipients.length ?? 0);
}

/** Enough in-sync mirrors that a message can be committed. */
function isReady(mirror: QueueMirror): boolean {
  return mirror.inSyncCount >= mirror.minReplicas;
}

/** Whether everything one mirror's stores get reaches the other's stores too, in the same frames. */
function sameFeed(a: QueueMirror, b: QueueMirror): boolean {
  for (const replica of b.replicas) {
    if (!replica.isFed) continue;
    const twin = a.replicas.find((candidate) => candidate.store === replica.store);
    if (twin === undefined || !twin.isFed || twin.phase === ResyncPhase.JOINING) return false;
    if (twin.sync !== SyncState.SYNC || replica.sync !== SyncState.SYNC) return false;
  }
  return true;
}
