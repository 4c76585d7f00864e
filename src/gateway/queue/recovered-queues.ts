/**
 * Queues that come back from the stores: where recovery (src/recovery) meets queues and mirrors.
 *
 * An adopted queue goes on at the number and digest of its longest mirror. Mirrors that stand at the same
 * number and digest count at once; the others are isolated and filled again when the queue is whole. Entries
 * become due as their blocks arrive; those with an owed or parked report wait until every queue is back,
 * because only then is it known whether the other half exists.
 */
import { CONTROL_ROUTE } from '../control/control-records.js';
import { joinCrc } from '../../base/crc-join.js';
import type { GatewayControl } from '../control/gateway-control.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { Clock, Crc32, EventLog, Packer } from '../../platform/ports.js';
import { FLAG_SHARED } from '../../protocol/change-rows.js';
import { TEXT_ROW_BYTES, textBytes, textOf, textPosition } from '../../protocol/text-rows.js';
import { ENTRY_ROW_BYTES, entryBodyBytes, entryCrc, entryFlags, entryHeadBytes, entryId, entryNoteBytes, entryNoteCrc, entryPosition, entryRoom } from '../../protocol/entry-rows.js';
import type { ClaimedQueue } from '../../recovery/queue-job.js';
import type { DueTimes } from './due-times.js';
import type { Entries } from './entries.js';
import { EntryState } from './entry-table.js';
import { headArrivalWallMs, headExpirySeconds, headFlags, isKnownHead } from './envelope.js';
import type { Note } from './note.js';
import { decodeNote, noteRoom, TO_TRY } from './note.js';
import type { MemoryGauge } from './memory-gauge.js';
import type { QueueRegistry } from './queue-registry.js';
import type { Reports } from './report-job.js';
import type { QueueIdentity } from './mail-queue.js';
import type { Settlement } from './settlement.js';
import type { Route, Router } from './types.js';
import { ENVELOPE_PARKED, QUEUE_CLASSES } from './types.js';

export interface RecoveredPorts {
  readonly clock: Clock;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly registry: QueueRegistry;
  readonly mirrors: Mirrors;
  readonly entries: Entries;
  readonly router: Router;
  readonly dueTimes: DueTimes;
  readonly settlement: Settlement;
  readonly reports: Reports;
  readonly control: GatewayControl;
  readonly memory: MemoryGauge;
  wake(mirror: QueueMirror): void;
  unpark(mirror: QueueMirror, row: number): void;
}

interface Found {
  readonly mirror: QueueMirror;
  readonly row: number;
}

const NO_BYTES = new Uint8Array(0);
/** Expiry of an entry whose own can't be read. */
const NEVER_SECONDS = 0xffffffff;

/** Why a member is not in sync at once. */
function whyAway(store: { readonly isUp: boolean }, holder: object | undefined): string {
  if (!store.isUp) return 'it could not be reached when the queue came back';
  return holder === undefined ? 'it had no copy when the queue came back' : 'its copy could not be continued when the queue came back';
}

/** Names what is shared: message ids are unique among those of one owner. */
function sharedKey(ownerId: string, messageId: number): string {
  return `${ownerId}/${String(messageId)}`;
}

/** Key of the change that decided a report, so that its parked copy is found again: each change has one report. */
function changeKey(messageId: number, queue: Omit<QueueIdentity, 'ownerId'>, change: number): string {
  return `${String(messageId)}/${String(queue.birth)}/${String(queue.serial)}/${String(change)}`;
}

export class RecoveredQueues {
  /** Entries taken in so far, for progress and metrics. */
  entryCount = 0;
  private readonly ports: RecoveredPorts;
  /** Shared bodies met so far: owner and message id → content row. Only during recovery. */
  private readonly sharedBodies = new Map<string, number>();
  /** Entries of queues claimed since the last block came, and their bytes. */
  private readonly expected = { entries: 0, bytes: 0 };
  /** Queues claimed and not whole yet. */
  private readonly open = new Set<QueueMirror>();
  private owing: Found[] = [];
  private parked: Found[] = [];

  constructor(ports: RecoveredPorts) {
    this.ports = ports;
  }

  onClaimed(claimed: ClaimedQueue): void {
    const { registry, mirrors, log } = this.ports;
    const queueClass = QUEUE_CLASSES.find((known) => known === claimed.queueClass) ?? 'mail';
    const found = queueClass === 'control' ? CONTROL_ROUTE : this.ports.router.routeOfQueue(claimed.name, queueClass);
    const route: Route = found !== undefined ? registry.routeFor(claimed.ownerId, found, claimed.token) : { queueName: claimed.name, queueClass, nextHop: { protocol: 'smtp', host: 'invalid', port: 25 }, ordering: 'fifo', concurrency: 1, lengthMax: 0 };
    const mirror = registry.adopt(claimed.handle, { ownerId: claimed.ownerId, birth: claimed.birth, serial: claimed.serial }, claimed.name, route, found !== undefined);
    mirror.adopt(claimed.epoch, claimed.number, claimed.digestA, claimed.digestB);
    mirror.token = claimed.token;
    for (const store of claimed.given) mirror.giveUp(store, claimed.givenEpoch);
    const { tail } = claimed;
    if (tail !== undefined) mirrors.importTail(mirror, tail.firstNumber, tail.rows, tail.bodies, tail.digestA, tail.digestB);
    mirror.queue.beginRecovery();
    this.open.add(mirror);
    this.expected.entries += claimed.holders[0]?.count ?? 0;
    this.expected.bytes += claimed.holders[0]?.bytes ?? 0;
    for (const store of mirrors.stores) {
      const holder = claimed.holders.find((row) => row.storeId === store.storeId);
      if (holder === undefined && !claimed.members.includes(store.storeId)) continue;
      const replica = mirrors.addReplica(mirror, store);
      replica.member = claimed.members.includes(store.storeId);
      replica.wanted = replica.member;
      replica.awayCause = claimed.given.includes(store.storeId) ? 'given up by an operator' : whyAway(store, holder);
      replica.claimBootId = claimed.copies.includes(store.storeId) ? store.bootId : '';
      // That no other process had the queue by a member is the operator's word.
      if (claimed.isOutside) replica.lossWitnessed = replica.member;
      if (holder !== undefined) mirrors.adoptMember(mirror, replica, holder.number, holder.digestA, holder.digestB);
    }
    if (found === undefined) log.warn('recovery', 'no route leads out of this queue any more: its mail is held; add a route with its name or move the mail', { queue: claimed.name });
    mirrors.reviseSetOf(mirror);
  }

  /**
   * Entry rows by ascending position, and the texts of some of them; false when a checksum is wrong and
   * another mirror can be asked.
   */
  onBlock(handle: number, rows: Uint8Array, bodies: Uint8Array, texts: Uint8Array, lastSource: boolean): boolean {
    const mirror = this.ports.mirrors.mirrorOf(handle);
    if (mirror === undefined) return true;
    if (this.expected.entries > 0) this.makeRoom();
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    const payload = new DataView(bodies.buffer, bodies.byteOffset, bodies.byteLength);
    // All of the block is checked before any of it is taken, so that another mirror can be asked for it as a whole.
    const sound = this.isSound(view, bodies);
    if (!sound && !lastSource) return false;
    let textAt = 0;
    for (let offset = 0, at = 0; offset < view.byteLength; offset += ENTRY_ROW_BYTES) {
      const ownEnd = at + entryBodyBytes(view, offset) + entryHeadBytes(view, offset);
      const end = ownEnd + entryNoteBytes(view, offset);
      const own = bodies.subarray(at, ownEnd);
      const note = end === ownEnd ? NO_BYTES : bodies.subarray(ownEnd, end);
      const row = this.takeEntry(mirror, view, offset, own, note, payload, at, sound || this.checkEntry(view, offset, own, note));
      at = end;
      if (textAt < texts.length && textPosition(texts, textAt) === entryPosition(view, offset)) {
        if (row !== 0 && this.ports.entries.hasNote(row)) this.ports.entries.texts.put(row, textOf(texts, textAt));
        textAt += TEXT_ROW_BYTES + textBytes(texts, textAt);
      }
    }
    this.ports.wake(mirror);
    return true;
  }

  /** For all queues that were claimed together at once: memory is made in few pieces. */
  private makeRoom(): void {
    const { expected } = this;
    this.ports.entries.expect(expected.entries, expected.bytes, this.ports.memory.limitBytes);
    expected.entries = 0;
    expected.bytes = 0;
  }

  onRecovered(handle: number): void {
    const mirror = this.ports.mirrors.mirrorOf(handle);
    if (mirror === undefined) return;
    mirror.queue.endRecovery();
    this.close(mirror);
    this.ports.log.info('recovery', 'a queue is back', { queue: mirror.queue.name, messages: mirror.queue.length, epoch: mirror.epoch, transactions: mirror.lastNumber });
    this.ports.wake(mirror);
    this.ports.mirrors.onWhole(mirror);
    if (mirror.queue.route.queueClass === 'control') this.ports.control.onWhole(mirror);
  }

  /** Owners with reports of which a half has come back. */
  get owners(): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const { mirror } of [...this.owing, ...this.parked]) ids.add(mirror.queue.identity.ownerId);
    return ids;
  }

  /** Of this queue nothing comes any more; with the last one, of none. */
  private close(mirror: QueueMirror): void {
    this.open.delete(mirror);
    if (this.open.size === 0) this.ports.entries.expectNoMore();
  }

  /** No queue is being read any more. */
  onAllRead(): void {
    this.sharedBodies.clear();
  }

  /** A half of a report whose other half has left. */
  noteOwing(mirror: QueueMirror, row: number): void {
    this.owing.push({ mirror, row });
  }

  noteParked(mirror: QueueMirror, row: number): void {
    this.parked.push({ mirror, row });
  }

  /** The queue leaves: what was found in it goes with it. */
  forget(mirror: QueueMirror): void {
    if (this.open.has(mirror)) this.close(mirror);
    this.owing = this.owing.filter((found) => found.mirror !== mirror);
    this.parked = this.parked.filter((found) => found.mirror !== mirror);
  }

  /** Every queue of the owner is here: reports that were under way go on (report-job.ts). */
  onAllRecovered(ownerId: string): void {
    const { settlement, reports, unpark } = this.ports;
    const isTheirs = ({ mirror }: Found): boolean => mirror.queue.identity.ownerId === ownerId;
    const owing = this.owing.filter(isTheirs);
    const parked = this.parked.filter(isTheirs);
    this.owing = this.owing.filter((found) => !isTheirs(found));
    this.parked = this.parked.filter((found) => !isTheirs(found));
    const copies = new Map<string, Found>();
    for (const found of parked) {
      const origin = settlement.envelopeOf(found.row)?.origin;
      if (origin !== undefined) copies.set(changeKey(origin.messageId, { birth: origin.queueBirth, serial: origin.queueSerial }, origin.change), found);
    }
    for (const found of owing) {
      const envelope = settlement.envelopeOf(found.row);
      if (envelope === undefined) continue;
      const note = settlement.noteOf(found.row, envelope.recipients.length);
      const key = changeKey(envelope.messageId, found.mirror.queue.identity, note.owedChange);
      const copy = copies.get(key);
      copies.delete(key);
      // With a copy nothing has to be made any more.
      if (copy === undefined && this.ports.control.holds.holdsReport(found.mirror, found.row)) continue;
      reports.resume(found.mirror, found.row, copy);
    }
    for (const found of copies.values()) unpark(found.mirror, found.row);
  }

  /** Whether the payload is what its rows say: one checksum over all of it (base/crc-join.ts), which a call for each entry would cost as much as. */
  private isSound(view: DataView, bodies: Uint8Array): boolean {
    let crc = 0;
    let bytes = 0;
    for (let offset = 0; offset < view.byteLength; offset += ENTRY_ROW_BYTES) {
      const ownBytes = entryBodyBytes(view, offset) + entryHeadBytes(view, offset);
      const noteBytes = entryNoteBytes(view, offset);
      crc = joinCrc(crc, entryCrc(view, offset), ownBytes);
      if (noteBytes > 0) crc = joinCrc(crc, entryNoteCrc(view, offset), noteBytes);
      bytes += ownBytes + noteBytes;
    }
    return bytes === bodies.length && crc >>> 0 === this.ports.crc32(bodies, 0);
  }

  private checkEntry(view: DataView, offset: number, own: Uint8Array, note: Uint8Array): boolean {
    const { crc32 } = this.ports;
    return crc32(own, 0) === entryCrc(view, offset) && (note.length === 0 || crc32(note, 0) === entryNoteCrc(view, offset));
  }

  /**
   * `own` is body ‖ head, and lies at `at` of the block's payload. Answers the row, 0 when the entry has
   * ended at once.
   */
  private takeEntry(
    mirror: QueueMirror, view: DataView, offset: number, own: Uint8Array, note: Uint8Array, payload: DataView, at: number, sound: boolean,
  ): number {
    const { entries } = this.ports;
    const bodyBytes = entryBodyBytes(view, offset);
    const headAt = at + bodyBytes;
    const id = entryId(view, offset);
    // Nothing that damaged bytes say is believed: such an entry never expires, and shares its body with no other.
    const known = sound && mirror.queue.route.queueClass !== 'control' && isKnownHead(payload, headAt, own.length - bodyBytes);
    const shared = sound && (entryFlags(view, offset) & FLAG_SHARED) !== 0 ? this.sharedBody(mirror.queue.identity.ownerId, id, own.subarray(0, bodyBytes)) : 0;
    const room = entryRoom(view, offset);
    const slot = entries.contents.storeBytes(shared === 0 ? own : own.subarray(bodyBytes), room);
    const arrivalSeconds = known ? Math.floor(headArrivalWallMs(payload, headAt) / 1000) : 0;
    const expirySeconds = known ? headExpirySeconds(payload, headAt) : NEVER_SECONDS;
    const row = entries.create(mirror.queue, id, slot, shared, bodyBytes, entryCrc(view, offset), arrivalSeconds, expirySeconds, room);
    entries.table.position.set(row, entryPosition(view, offset));
    if (sound && note.length > 0) entries.setNote(row, note);
    mirror.queue.appendRecovered(row, entries.bytes(row));
    this.entryCount += 1;
    this.place(mirror, row, known ? headFlags(payload, headAt) : undefined, note, sound);
    return entries.table.state(row) === EntryState.FREE ? 0 : row;
  }

  /** The content row of a body that several queues name. */
  private sharedBody(ownerId: string, id: number, body: Uint8Array): number {
    const { contents } = this.ports.entries;
    const key = sharedKey(ownerId, id);
    const known = this.sharedBodies.get(key);
    // Deliveries go on meanwhile: the entries that brought the body may have ended, and the body with them.
    if (known !== undefined && contents.holdsShared(known, id)) return known;
    const made = contents.storeShared([body], body.length, id);
    this.sharedBodies.set(key, made);
    return made;
  }

  /** Decides what a recovered entry waits for. */
  private place(mirror: QueueMirror, row: number, flags: number | undefined, noteBytes: Uint8Array, sound: boolean): void {
    const { entries, clock, dueTimes, log } = this.ports;
    const queue = mirror.queue;
    if (queue.route.queueClass === 'control') {
      this.ports.control.onEntry(mirror, row, sound);
      return;
    }
    const note = !sound || noteBytes.length === 0 ? undefined : decodeNote(noteBytes);
    const isParked = flags !== undefined && (flags & ENVELOPE_PARKED) !== 0 && note?.unparked !== true;
    // A report under way goes on even where no route leads out: else the restart after a new route would make it again.
    const isReport = isParked || (note !== undefined && note.owedChange !== 0);
    if (!sound || flags === undefined || (!queue.routed && !isReport) || (noteBytes.length > 0 && note === undefined) || entries.room(row) < noteRoom(1)) {
      entries.table.transition(row, EntryState.HELD);
      queue.heldCount += 1;
      if (!sound) log.error('recovery', 'a message is held: its checksum is wrong at the last mirror that has it', { queue: queue.name, queue_id: entries.table.messageId(row) });
      return;
    }
    if (isParked) {
      entries.table.transition(row, EntryState.PARKED);
      this.parked.push({ mirror, row });
      return;
    }
    if (note !== undefined && this.placeEnding(mirror, row, note)) return;
    if (this.ports.control.holds.holdsBack(mirror, row)) return;
    if (note === undefined) {
      queue.makeReady(row, true);
      return;
    }
    const delayMs = note.dueWallMs - clock.wallMs();
    if (delayMs <= 0) {
      queue.makeReady(row, true);
      return;
    }
    if (queue.route.ordering === 'strict') {
      queue.makeReady(row, true);
      queue.blockedUntilMs = clock.nowMs() + delayMs;
      dueTimes.wakeAt(mirror, queue.blockedUntilMs);
      return;
    }
    entries.table.transition(row, EntryState.DEFERRED);
    queue.deferredCount += 1;
    dueTimes.schedule(row, delayMs);
  }
  /** An entry that owes a report, or has nobody left to try. */
  private placeEnding(mirror: QueueMirror, row: number, note: Note): boolean {
    const { entries, settlement } = this.ports;
    entries.table.attempts.set(row, Math.min(255, note.attempts));
    if (note.owedChange !== 0) {
      entries.table.transition(row, EntryState.REPORTING);
      this.owing.push({ mirror, row });
      if (mirror.queue.route.ordering === 'strict' && note.states.includes(TO_TRY)) mirror.queue.blockedUntilMs = Infinity;
      return true;
    }
    if (note.states.includes(TO_TRY)) return false;
    // The crash came between "reported" and the end of the entry.
    entries.table.transition(row, EntryState.REPORTING);
    settlement.end(mirror, row);
    return true;
  }
}
