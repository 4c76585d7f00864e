/**
 * A partition: the unit of mirroring. It numbers every change of the queues in it, digests it, and knows how far each
 * mirror is. To its mirrors a queue is a label on entries: making one, or ten thousand, costs them nothing.
 *
 *   store, delete, annotate … ─► row of the turn's section (number n) ─► seal ─► one section for each mirror
 *   acknowledgement (number m) ─► replica.acked ─► committed = min over the acknowledged set ─► waiters
 *
 * A change is COMMITTED when every member of the acknowledged set has it and the set has at least
 * min_replicas members (G1). Changes of the set are replica-set.ts; sending is mirrors.ts.
 * Pure: entries are synchronous, effects leave through MirrorPorts.
 */
import type { MailQueue } from '../queue/mail-queue.js';
import { PositionOrder } from '../queue/position-order.js';
import type { OrderColumns } from '../queue/position-order.js';
import {
  CHANGE_ROW_BYTES, changeDigested, FLAG_BODY_ABSENT, FLAG_SHARED, KIND_ANNOTATE, KIND_DELETE, KIND_SET_MEMBERS, KIND_STORE, KIND_WITHDRAW,
} from '../../protocol/change-rows.js';
import { Digest } from '../../protocol/digest.js';
import { UNPAID_TARGET_BYTES } from '../../protocol/messages/changes.js';
import type { Replica } from './replica.js';
import { SyncState } from './replica.js';
import type { StorePort } from './store-port.js';
import type { PayloadSlabs } from './payload-slabs.js';
import type { SealedSection } from './turn-section.js';
import { TurnSection } from './turn-section.js';
import type { CommitWaiter } from './wait-list.js';
import { WaitList } from './wait-list.js';

/** What an entry costs a store beside its bytes (docs/PROTOCOL.md, credit). */
export const ENTRY_CREDIT_BYTES = 128;

/** A section past this is sealed before the turn ends: a frame takes 64 MiB, and one message more must fit. */
const SECTION_BYTES_MAX = 1024 * 1024;

/** Told that the queue has something to send at the end of the turn. */
export interface DirtySink {
  /** The queue stands at a number that a store showed, or at none. */
  onAdopted(partition: Partition): void;
  onDirty(partition: Partition): void;
  /** The section has grown large: it is sealed now. */
  onLarge(partition: Partition): void;
  /** A change that needs credit waits in a section. */
  onCharged(creditBytes: number): void;
  /** A change that is not to wait beyond the end of the turn: any but the DELETE of a delivered entry. */
  onPressing(): void;
  /** What the store still takes, less what waits here for the end of the turn or for its window. */
  creditOf(store: StorePort): number;
}

/** Identity of a partition on every store, for ever: (gateway, birth incarnation, serial). */
export interface PartitionIdentity {
  /** Gateway that the partition belongs to, whoever serves it now. */
  readonly ownerId: string;
  readonly birth: number;
  readonly serial: number;
}

export interface PartitionOptions {
  readonly handle: number;
  readonly identity: PartitionIdentity;
  /** "p" and its number among those of its gateway. */
  readonly name: string;
}

export class Partition {
  readonly handle: number;
  readonly identity: PartitionIdentity;
  readonly name: string;
  readonly minReplicas: number;
  /** Its queues by label (queue/label.ts). */
  readonly queues = new Map<string, MailQueue>();
  /** All entries, as its mirrors hold them. */
  readonly order: PositionOrder;
  /** It comes back from a store: entries are still missing. */
  isRecovering = false;
  /** It goes to another process: nothing more is handed out. */
  isLeaving = false;
  /** Bytes stored lately, halved now and then: what homes are chosen by (queue/homes.ts). */
  recentBytes = 0;
  replicas: Replica[] = [];
  epoch = 0;
  /** Number of the change that carries the set sent last; 0 when no change of the set is open. */
  setChangeNumber = 0;
  /** Epoch of that set. */
  setEpoch = 0;
  /** Why that change was made, for the log. */
  setCause = '';
  /** It belongs to this gateway; else it is served in place of its owner. */
  isOwn = false;
  /** Token under which we hold the queue at its stores. */
  token = 0;
  /** Members that OPEN named at number 0; undefined for a queue that came back. */
  firstMembers: readonly string[] | undefined;
  /** Stores that an operator gave up for this queue, till a set is begun that is numbered beyond any that one of them may tell of (replica-set.ts). */
  readonly given = new Set<string>();
  /** The newest epoch that was known when one was given up, of whatever process. */
  givenEpoch = 0;
  /** True when the open set change founds the epoch on stores that had lost everything. */
  founding = false;
  /** Number of the last change, sealed or not. */
  lastNumber = 0;
  /** Number up to which changes are committed. */
  committedNumber = 0;
  readonly digest = new Digest();
  /** Bytes of all sections sealed so far. */
  sealedBytes = 0;
  isDirty = false;
  private sealedNumber = 0;
  /** The section must not be sealed before all of something is in it. */
  private isTogether = false;
  /** Entry that stands right behind the last deleted one, so that a run of deletes is one row; 0 none. */
  private deleteRunNext = 0;
  private readonly section: TurnSection;
  private readonly waits = new WaitList();
  private readonly sink: DirtySink;

  constructor(
    { handle, identity, name }: PartitionOptions,
    minReplicas: number, columns: OrderColumns, slabs: PayloadSlabs, sink: DirtySink,
  ) {
    this.handle = handle;
    this.identity = identity;
    this.name = name;
    this.order = new PositionOrder(columns);
    this.minReplicas = minReplicas;
    this.section = new TurnSection(slabs);
    this.sink = sink;
  }

  /** Entries of all its queues, and their bytes. */
  get length(): number {
    return this.order.length;
  }

  get bytes(): number {
    return this.order.bytes;
  }

  /** Deliveries under way from its queues. */
  get inFlightCount(): number {
    let count = 0;
    for (const queue of this.queues.values()) count += queue.inFlightCount;
    return count;
  }

  /** All entries are back: what was accepted meanwhile may follow. */
  endRecovery(): void {
    this.isRecovering = false;
    this.order.endRecovery();
    for (const queue of this.queues.values()) queue.endRecovery();
  }

  /** Starts from a state that a store showed: nothing is pending. */
  adopt(epoch: number, number: number, digestA: number, digestB: number): void {
    this.epoch = epoch;
    this.lastNumber = number;
    this.sealedNumber = number;
    this.committedNumber = number;
    this.digest.reset(digestA, digestB);
    this.sink.onAdopted(this);
  }

  /** The last epoch that was begun, acknowledged or not. */
  get newestEpoch(): number {
    return this.setChangeNumber === 0 ? this.epoch : this.setEpoch;
  }

  /** An operator goes on without this store; `epoch` is the newest that is known. */
  giveUp(storeId: string, epoch: number): void {
    this.given.add(storeId);
    this.givenEpoch = Math.max(this.givenEpoch, epoch);
  }

  /** In-sync members of the acknowledged set. */
  get inSyncCount(): number {
    let count = 0;
    for (const replica of this.replicas) if (replica.inSync) count += 1;
    return count;
  }

  /** The change by which a mirror joined that has not told yet that it has it; 0: all that count have theirs. */
  get joiningNumber(): number {
    let number = 0;
    for (const replica of this.replicas) if (replica.inSync && replica.acked < replica.joinedBy) number = Math.max(number, replica.joinedBy);
    return number;
  }

  get memberCount(): number {
    let count = 0;
    for (const replica of this.replicas) if (replica.member) count += 1;
    return count;
  }

  /**
   * Up to here no mirror will ask for changes again: all that are fed have them, and with none in sync also those
   * that can still come back with what they hold. One that a sent change drops is none to go on with.
   */
  get releasableNumber(): number {
    let least = this.sealedNumber;
    let hasSync = false;
    for (const replica of this.replicas) {
      if (!replica.isFed) continue;
      if (replica.inSync && (this.setChangeNumber === 0 || replica.wanted)) hasSync = true;
      if (replica.acked < least) least = replica.acked;
    }
    if (hasSync) return least;
    for (const replica of this.replicas) if (replica.mayHoldCopy && replica.acked < least) least = replica.acked;
    return least;
  }

  get waitingCount(): number {
    return this.waits.length;
  }

  get isFilling(): boolean {
    for (const replica of this.replicas) if (replica.sync === SyncState.RESYNC) return true;
    return false;
  }

  /** Bytes that every mirror can still take that is in sync or about to be: a full store that is being filled stops no mail. */
  get credit(): number {
    let least = Number.MAX_SAFE_INTEGER;
    for (const replica of this.replicas) if (replica.isFed && !replica.isFilling) least = Math.min(least, this.sink.creditOf(replica.store));
    return least;
  }

  /** So much was refused for want of credit: the stores that lack it are asked for more. */
  askCredit(creditBytes: number): void {
    for (const replica of this.replicas) if (replica.isFed && !replica.isFilling && this.sink.creditOf(replica.store) < creditBytes) replica.store.askCredit(creditBytes);
  }

  /**
   * STORE of a message whose body goes along: returns the entry's position. `room`: for its note, paid for
   * now.
   */
  store(
    messageId: number, flags: number, chunks: readonly Uint8Array[], bodyBytes: number, head: Uint8Array,
    checksum: number, room: number,
  ): number {
    const number = this.nextChange();
    this.section.addRow(KIND_STORE, flags, bodyBytes, head.length, checksum, messageId, room);
    for (const chunk of chunks) this.section.addPayload(chunk);
    this.charge(bodyBytes, head, room);
    return number;
  }

  /** STORE of a message whose body another queue's STORE brings to the same stores. `body` must stay as it is; `keptBytes` is what it costs here. */
  storeAbsent(
    messageId: number, body: readonly Uint8Array[], keptBytes: number, bodyBytes: number, head: Uint8Array,
    checksum: number, room: number,
  ): number {
    const number = this.nextChange();
    const flags = FLAG_SHARED | FLAG_BODY_ABSENT;
    this.section.addRow(KIND_STORE, flags, bodyBytes, head.length, checksum, messageId, room);
    this.section.addAbsent(body, keptBytes);
    this.charge(0, head, room);
    return number;
  }

  private charge(sentBodyBytes: number, head: Uint8Array, room: number): void {
    this.section.addPayload(head);
    const creditBytes = sentBodyBytes + head.length + room + ENTRY_CREDIT_BYTES;
    this.section.creditBytes += creditBytes;
    this.recentBytes += creditBytes;
    this.sink.onCharged(creditBytes);
  }

  /** DELETE of an entry that was just unlinked; `following` is the row that stood behind it. */
  delete(row: number, position: number, following: number): number {
    if (row === this.deleteRunNext && row !== 0 && this.section.rowCount > 0) {
      this.section.extendLastDelete();
      this.deleteRunNext = following;
      return this.lastNumber;
    }
    const number = this.nextChange();
    this.section.addRow(KIND_DELETE, 0, 0, 1, 0, position, 0);
    // A run could straddle the cursor of a refill, or the place where recovered entries still come in: then
    // each entry is a change of its own.
    const isPlain = !this.isFilling && !this.isRecovering;
    this.deleteRunNext = isPlain ? following : 0;
    if (!isPlain || this.setChangeNumber !== 0) this.sink.onPressing();
    return number;
  }

  /** WITHDRAW of an uncommitted entry (G9). */
  withdraw(position: number): number {
    const number = this.nextChange();
    this.section.addRow(KIND_WITHDRAW, 0, 0, 0, 0, position, 0);
    this.sink.onPressing();
    return number;
  }

  /** ANNOTATE: the entry's note is replaced. */
  annotate(position: number, note: Uint8Array, checksum: number): number {
    const number = this.nextChange();
    this.section.addRow(KIND_ANNOTATE, 0, 0, note.length, checksum, position, 0);
    this.addUnpaid(note);
    this.sink.onPressing();
    return number;
  }

  /** SET_MEMBERS; `members` are the packed store ids. */
  setMembers(epoch: number, members: Uint8Array, checksum: number): number {
    const number = this.nextChange();
    this.section.addRow(KIND_SET_MEMBERS, 0, 0, members.length, checksum, epoch, 0);
    this.addUnpaid(members);
    this.sink.onPressing();
    return number;
  }

  /** Payload that no credit pays for: a store holds so much of it, however full, while it reads a frame. */
  private addUnpaid(bytes: Uint8Array): void {
    this.section.addPayload(bytes);
    this.section.unpaidBytes += bytes.length;
  }

  /** `waiter` is told when the change is committed; maybe at once. */
  await(number: number, waiter: CommitWaiter): void {
    if (number <= this.committedNumber) {
      waiter.onCommitted();
      return;
    }
    this.waits.add(number, waiter);
    if (number > this.sealedNumber) this.sink.onPressing();
  }

  /** The rows since the last seal as a section, or undefined when there are none. */
  seal(): SealedSection | undefined {
    this.isDirty = false;
    this.deleteRunNext = 0;
    const section = this.section;
    if (section.rowCount === 0) return undefined;
    const view = section.rowView();
    const digest = this.digest;
    for (let i = 0, at = 0; i < section.rowCount; i++, at += CHANGE_ROW_BYTES) {
      digest.add(changeDigested(view, at), view.getUint32(at + 4, true), view.getUint32(at + 8, true), view.getUint32(at + 12, true), view.getFloat64(at + 16, true));
    }
    const sealed: SealedSection = {
      handle: this.handle,
      firstNumber: this.sealedNumber + 1,
      lastNumber: this.lastNumber,
      digestA: digest.a,
      digestB: digest.b,
      rows: section.takeRows(),
      pieces: section.takePieces(),
      payloadBytes: section.payloadBytes,
      creditBytes: section.creditBytes,
      unpaidBytes: section.unpaidBytes,
      absent: section.takeAbsent(),
      keptBytes: section.keptBytes,
      slabs: section.takeSlabs(),
    };
    this.sealedNumber = this.lastNumber;
    this.sealedBytes += sealed.rows.length + sealed.payloadBytes;
    section.reset();
    return sealed;
  }

  /** The store of `replica` stands at `number`. */
  acknowledge(replica: Replica, number: number): void {
    if (number <= replica.acked || number > this.lastNumber) return;
    replica.acked = number;
    replica.progress.acknowledged(number, this.sealedNumber, this.sealedBytes);
  }

  /** Recomputes what is committed and tells the waiters. */
  advance(): void {
    let least = this.lastNumber;
    let members = 0;
    for (const replica of this.replicas) {
      if (!replica.member) continue;
      // A member that is lost, or emptied and being filled, acknowledged what it may not have any more.
      if (replica.sync !== SyncState.SYNC) return;
      // Mail that waited for a second copy has it once that copy is a member's.
      if (replica.acked < replica.joinedBy) return;
      members += 1;
      if (replica.acked < least) least = replica.acked;
    }
    if (members < this.minReplicas || members === 0 || least <= this.committedNumber) return;
    this.committedNumber = least;
    this.waits.advance(least);
  }

  /** What `changes` makes stands in one section: a mirror takes all of it or nothing. One note at most may be among it. */
  together<T>(changes: () => T): T {
    this.endLarge();
    this.isTogether = true;
    const result = changes();
    this.isTogether = false;
    return result;
  }

  /** A section that is long, or brings as much unpaid payload as a frame may, goes before the next change. */
  private endLarge(): void {
    if (this.section.payloadBytes >= SECTION_BYTES_MAX || this.section.unpaidBytes >= UNPAID_TARGET_BYTES) this.sink.onLarge(this);
  }

  private nextChange(): number {
    this.deleteRunNext = 0;
    if (!this.isTogether) this.endLarge();
    this.lastNumber += 1;
    if (!this.isDirty) {
      this.isDirty = true;
      this.sink.onDirty(this);
    }
    return this.lastNumber;
  }
}
