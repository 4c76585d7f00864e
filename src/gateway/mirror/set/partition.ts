/**
 * A partition that this process holds: the unit of mirroring. It numbers every change of the queues in it and
 * digests it. To its mirrors a queue is a label on entries: making one, or ten thousand, costs them nothing.
 *
 *   store, delete, annotate … ─► row of the turn's section (number n) ─► seal ─► a section for each copy fed
 *   acknowledgement (number m) ─► the set (recovery/ownership/partition-set.ts) ─► onCommitted ─► waiters
 *
 * Whose acknowledgements count is the set's to say (rule 3 of docs/model): `committed` is what a 250 may be
 * sent for, `acked by all` what an end or a withdrawal needs. Sending is mirrors.ts. Pure: entries are
 * synchronous, effects leave through DirtySink.
 */
import type { MailQueue } from '../../queue/mail-queue.js';
import { PositionOrder } from './position-order.js';
import type { OrderColumns } from './position-order.js';
import {
  CHANGE_ROW_BYTES, changeDigested, FLAG_BODY_ABSENT, FLAG_SHARED, KIND_ANNOTATE, KIND_DELETE, KIND_STORE,
  KIND_WITHDRAW,
} from '../../../protocol/change-rows.js';
import { Digest } from '../../../protocol/digest.js';
import { UNPAID_TARGET_BYTES } from '../../../protocol/messages/changes.js';
import { ownerOf } from '../../../protocol/partition-record.js';
import type { PartitionHolder } from '../../../recovery/ownership/holder.js';
import type { PartitionMember } from '../../../recovery/ownership/member.js';
import { MemberState } from '../../../recovery/ownership/member.js';
import type { PartitionSet } from '../../../recovery/ownership/partition-set.js';
import { Waiting } from '../../../recovery/ownership/waiting.js';
import { CopyFeed } from '../feed/copy-feed.js';
import type { StorePort } from '../link/store-port.js';
import type { PayloadSlabs } from '../feed/payload-slabs.js';
import type { SealedSection } from '../feed/turn-section.js';
import { TurnSection } from '../feed/turn-section.js';
import type { CommitWaiter } from '../wait-list.js';
import { WaitList } from '../wait-list.js';

/** What an entry costs a store beside its bytes (docs/PROTOCOL.md, credit). */
export const ENTRY_CREDIT_BYTES = 128;

/** A section past this is sealed before the turn ends: a frame takes 64 MiB, and one message more fits. */
const SECTION_BYTES_MAX = 1024 * 1024;
const NO_ROWS: readonly PartitionMember[] = [];

/** Told that the partition has something to send at the end of the turn. */
export interface DirtySink {
  /** The partition stands at a number that a store showed, or at none. */
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
  /** The store of this id, if it is configured. */
  storeOf(storeId: string): StorePort | undefined;
}

export interface PartitionOptions {
  readonly handle: number;
  /** GATEWAY/N. */
  readonly name: string;
  /** It belongs to this gateway; else it is served in place of its owner. */
  readonly isOwn: boolean;
  readonly minReplicas: number;
}

export class Partition {
  readonly handle: number;
  readonly name: string;
  /** Gateway that it belongs to, whoever holds it. */
  readonly ownerId: string;
  readonly isOwn: boolean;
  readonly minReplicas: number;
  readonly holder: PartitionHolder;
  /** Its queues by label (queue/label.ts). */
  readonly queues = new Map<string, MailQueue>();
  /** All entries, as its mirrors hold them. */
  readonly order: PositionOrder;
  /** It comes back from a store: entries are still missing. */
  isRecovering = false;
  /** Entries, or bodies of some, are still at the stores alone: it is no copy (rule 14 of docs/model). */
  isPartial = false;
  /** It goes to another process: nothing more is handed out or taken. */
  isLeaving = false;
  /** It takes no new mail; what it has is delivered: of an older configuration, or its gateway is retired. */
  isClosed = false;
  /** An operator's order may mean some of its mail: looked at before that leaves (orders/left-orders.ts). */
  isUnderOrder = false;
  /** A copy of it that was given up is being taken in (recovered/adoptions.ts). */
  isAdopting = false;
  /** It is held here no more. The same holder may have taken it again since, as another Partition. */
  isForgotten = false;
  /** Bytes stored lately, halved now and then: what homes are chosen by (queue/homes.ts). */
  recentBytes = 0;
  /** Number of the last change, sealed or not. */
  lastNumber = 0;
  readonly digest = new Digest();
  /** Bytes of all sections sealed so far. */
  sealedBytes = 0;
  isDirty = false;
  #sealedNumber = 0;
  /** The section must not be sealed before all of something is in it. */
  #isTogether = false;
  /** Entry that stands right behind the last deleted one, so that a run of deletes is one row; 0 none. */
  #deleteRunNext = 0;
  readonly #section: TurnSection;
  /** For a 250; and for what needs every copy, but no least number of them. */
  readonly #commits = new WaitList();
  readonly #ends = new WaitList();
  readonly #feeds = new Map<PartitionMember, CopyFeed>();
  readonly #sink: DirtySink;

  constructor(
    { handle, name, isOwn, minReplicas }: PartitionOptions, holder: PartitionHolder, columns: OrderColumns,
    slabs: PayloadSlabs, sink: DirtySink,
  ) {
    this.handle = handle;
    this.name = name;
    this.ownerId = ownerOf(name);
    this.isOwn = isOwn;
    this.minReplicas = minReplicas;
    this.holder = holder;
    this.order = new PositionOrder(columns);
    this.#section = new TurnSection(slabs);
    this.#sink = sink;
  }

  /** Who counts; undefined for a moment while it is taken, and for good once it is lost. */
  get set(): PartitionSet | undefined {
    return this.isForgotten ? undefined : this.holder.set;
  }

  /** RIGHT BEFORE EACH FINAL DOT. */
  mayDeliver(nowMs: number): boolean {
    return !this.isForgotten && this.holder.mayDeliver(nowMs);
  }

  /** Rows of the management table. */
  get rows(): readonly PartitionMember[] {
    return this.set?.rows ?? NO_ROWS;
  }

  get epoch(): number {
    return this.holder.record?.epoch ?? 0;
  }

  /** What is sent to this copy. */
  feedOf(row: PartitionMember): CopyFeed {
    let feed = this.#feeds.get(row);
    if (feed === undefined) {
      feed = new CopyFeed(row, this.#sink.storeOf(row.storeId));
      this.#feeds.set(row, feed);
    }
    // Recorded before the register told us where it is.
    feed.store ??= this.#sink.storeOf(row.storeId);
    return feed;
  }

  /** The row of the copy at this store that is fed now, or was on its present boot. */
  rowAt(store: StorePort): PartitionMember | undefined {
    for (const row of this.rows) if (row.storeId === store.storeId && row.bootId === store.bootId) return row;
    return undefined;
  }

  /** Rows that the set has forgotten take their feeds with them. */
  forgetFeeds(): void {
    const { rows } = this;
    for (const row of this.#feeds.keys()) if (!rows.includes(row)) this.#feeds.delete(row);
  }

  get committedNumber(): number {
    return this.set?.committedNumber ?? 0;
  }

  /** Every copy that counts has all up to here. */
  get ackedNumber(): number {
    return this.set?.ackedByAllNumber ?? 0;
  }

  /**
   * New mail may be taken: enough members are in step, and none that counts is missing while it can't be let
   * go: the register does not answer, or its record may not be written again yet.
   */
  mayTake(nowMs: number): boolean {
    if (this.isLeaving || this.isClosed || this.isForgotten || !this.holder.mayAccept) return false;
    if (this.inSyncCount < Math.max(1, this.minReplicas)) return false;
    return !this.hasMissing || this.holder.waitsFor(nowMs) === Waiting.NOTHING;
  }

  /** Enough copies count that what they acknowledge is committed. */
  get mayCommit(): boolean {
    return this.set?.mayCommit === true;
  }

  /** A copy that counts holds commits up. */
  get hasMissing(): boolean {
    for (const row of this.rows) if (row.isPossible && !row.isInStep) return true;
    return false;
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
  adopt(number: number, digestA: number, digestB: number): void {
    this.lastNumber = number;
    this.#sealedNumber = number;
    this.digest.reset(digestA, digestB);
    this.#sink.onAdopted(this);
  }

  /** Recorded members that have every change but those under way. */
  get inSyncCount(): number {
    let count = 0;
    for (const row of this.rows) if (row.isRecorded && row.isInStep) count += 1;
    return count;
  }

  get memberCount(): number {
    let count = 0;
    for (const row of this.rows) if (row.isRecorded) count += 1;
    return count;
  }

  /** Up to here no copy will ask for changes again: all that are fed have them, and all that may count. */
  get releasableNumber(): number {
    let least = this.#sealedNumber;
    for (const row of this.rows) {
      const acked = row.state === MemberState.FILLING ? this.feedOf(row).storeNumber : row.acked;
      if ((row.isPossible || row.isFed) && acked < least) least = acked;
    }
    return least;
  }

  get waitingCount(): number {
    return this.#commits.length + this.#ends.length;
  }

  get isFilling(): boolean {
    for (const row of this.rows) if (row.state === MemberState.FILLING) return true;
    return false;
  }

  /** Bytes that every copy can take that counts or is about to: a full store being filled stops no mail. */
  get credit(): number {
    let least = Number.MAX_SAFE_INTEGER;
    for (const row of this.rows) {
      const { store } = this.feedOf(row);
      if (takesCredit(row) && store !== undefined) least = Math.min(least, this.#sink.creditOf(store));
    }
    return least;
  }

  /** So much was refused for want of credit: the stores that lack it are asked for more. */
  askCredit(creditBytes: number): void {
    for (const row of this.rows) {
      const { store } = this.feedOf(row);
      if (store === undefined || !takesCredit(row)) continue;
      if (this.#sink.creditOf(store) < creditBytes) store.askCredit(creditBytes);
    }
  }

  /**
   * STORE of a message whose body goes along: returns the entry's position. `room`: for its note, paid for
   * now.
   */
  store(
    messageId: number, flags: number, chunks: readonly Uint8Array[], bodyBytes: number, head: Uint8Array,
    checksum: number, room: number,
  ): number {
    const number = this.#nextChange();
    this.#section.addRow(KIND_STORE, flags, bodyBytes, head.length, checksum, messageId, room);
    for (const chunk of chunks) this.#section.addPayload(chunk);
    this.#charge(bodyBytes, head, room);
    return number;
  }

  /**
   * STORE of a message whose body another queue's STORE brings to the same stores. `body` must stay as it is;
   * `keptBytes` is what it costs here.
   */
  storeAbsent(
    messageId: number, body: readonly Uint8Array[], keptBytes: number, bodyBytes: number, head: Uint8Array,
    checksum: number, room: number,
  ): number {
    const number = this.#nextChange();
    const flags = FLAG_SHARED | FLAG_BODY_ABSENT;
    this.#section.addRow(KIND_STORE, flags, bodyBytes, head.length, checksum, messageId, room);
    this.#section.addAbsent(body, keptBytes);
    this.#charge(0, head, room);
    return number;
  }

  #charge(sentBodyBytes: number, head: Uint8Array, room: number): void {
    this.#section.addPayload(head);
    const creditBytes = sentBodyBytes + head.length + room + ENTRY_CREDIT_BYTES;
    this.#section.creditBytes += creditBytes;
    this.recentBytes += creditBytes;
    this.#sink.onCharged(creditBytes);
  }

  /** DELETE of an entry that was just unlinked; `following` is the row that stood behind it. */
  delete(row: number, position: number, following: number): number {
    if (row === this.#deleteRunNext && row !== 0 && this.#section.rowCount > 0) {
      this.#section.extendLastDelete();
      this.#deleteRunNext = following;
      return this.lastNumber;
    }
    const number = this.#nextChange();
    this.#section.addRow(KIND_DELETE, 0, 0, 1, 0, position, 0);
    // A run could straddle the cursor of a refill, or the place where recovered entries still come in: then
    // each entry is a change of its own.
    const isPlain = !this.isFilling && !this.isRecovering;
    this.#deleteRunNext = isPlain ? following : 0;
    if (!isPlain) this.#sink.onPressing();
    return number;
  }

  /** WITHDRAW of an uncommitted entry (G9). */
  withdraw(position: number): number {
    const number = this.#nextChange();
    this.#section.addRow(KIND_WITHDRAW, 0, 0, 0, 0, position, 0);
    this.#sink.onPressing();
    return number;
  }

  /** ANNOTATE: the entry's note is replaced. */
  annotate(position: number, note: Uint8Array, checksum: number): number {
    const number = this.#nextChange();
    this.#section.addRow(KIND_ANNOTATE, 0, 0, note.length, checksum, position, 0);
    this.#addUnpaid(note);
    this.#sink.onPressing();
    return number;
  }

  /** Payload that no credit pays for: a store holds so much of it, however full, while it reads a frame. */
  #addUnpaid(bytes: Uint8Array): void {
    this.#section.addPayload(bytes);
    this.#section.unpaidBytes += bytes.length;
  }

  /** `waiter` is told when a 250 may be sent for the change; maybe at once. */
  awaitCommit(number: number, waiter: CommitWaiter): void {
    this.#waitFor(number, this.committedNumber, this.#commits, waiter);
  }

  /** `waiter` is told when every copy that counts has the change, however few there are; maybe at once. */
  awaitEnd(number: number, waiter: CommitWaiter): void {
    this.#waitFor(number, this.ackedNumber, this.#ends, waiter);
  }

  #waitFor(number: number, reached: number, list: WaitList, waiter: CommitWaiter): void {
    if (number <= reached) {
      waiter.onCommitted();
      return;
    }
    list.add(number, waiter);
    if (number > this.#sealedNumber) this.#sink.onPressing();
  }

  /** The set says that more is committed, or acknowledged by all. */
  advance(): void {
    const { set } = this;
    if (set === undefined) return;
    this.#commits.advance(set.committedNumber);
    this.#ends.advance(set.ackedByAllNumber);
  }

  /** The rows since the last seal as a section, or undefined when there are none. */
  seal(): SealedSection | undefined {
    this.isDirty = false;
    this.#deleteRunNext = 0;
    const section = this.#section;
    if (section.rowCount === 0) return undefined;
    const view = section.rowView();
    const digest = this.digest;
    for (let i = 0, at = 0; i < section.rowCount; i++, at += CHANGE_ROW_BYTES) {
      digest.add(
        changeDigested(view, at), view.getUint32(at + 4, true), view.getUint32(at + 8, true),
        view.getUint32(at + 12, true), view.getFloat64(at + 16, true),
      );
    }
    const sealed: SealedSection = {
      handle: this.handle,
      firstNumber: this.#sealedNumber + 1,
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
    this.#sealedNumber = this.lastNumber;
    this.sealedBytes += sealed.rows.length + sealed.payloadBytes;
    section.reset();
    return sealed;
  }

  /** What the changes of this turn will cost beyond what is counted for them. */
  get uncountedBytes(): number {
    return this.#section.uncountedBytes;
  }

  /** What its feeds know of how far behind they are. */
  noteProgress(feed: CopyFeed, number: number): void {
    feed.progress.acknowledged(number, this.#sealedNumber, this.sealedBytes);
  }

  /** What `changes` makes stands in one section: a mirror takes all of it or nothing. One note at most. */
  together<T>(changes: () => T): T {
    this.#endLarge();
    this.#isTogether = true;
    const result = changes();
    this.#isTogether = false;
    return result;
  }

  /** A section that is long, or brings as much unpaid payload as a frame may, goes before the next change. */
  #endLarge(): void {
    const { payloadBytes, unpaidBytes } = this.#section;
    if (payloadBytes >= SECTION_BYTES_MAX || unpaidBytes >= UNPAID_TARGET_BYTES) this.#sink.onLarge(this);
  }

  #nextChange(): number {
    this.#deleteRunNext = 0;
    if (!this.#isTogether) this.#endLarge();
    this.lastNumber += 1;
    if (!this.isDirty) {
      this.isDirty = true;
      this.#sink.onDirty(this);
    }
    return this.lastNumber;
  }
}

/** What a new message costs is asked of it. */
function takesCredit(row: PartitionMember): boolean {
  return row.state === MemberState.IN_STEP || row.state === MemberState.TAIL;
}
