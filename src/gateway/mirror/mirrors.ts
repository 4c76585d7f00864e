/**
 * How what a turn changed gets to the copies of the partitions that this process holds, and what their stores
 * answer.
 *
 *   changes of a turn ─► onDirty ─► flush: seal each dirty partition ─► ring ─► outbox of a store ─► a write
 *   the set wants a copy aligned, tailed, filled ─► FENCE, sections of the ring, REFILL… (resync.ts)
 *   acknowledgement, refusal ─► the row of the copy ─► its set
 *   path changed ─► FENCE again, what was not acknowledged is repeated from the ring; nothing is isolated
 *
 * Pure: ports only. Not here: who counts, and which store takes a copy (recovery/ownership,
 * ownership/holding.ts).
 */
import { FENCE } from '../../protocol/message-types.js';
import type { FENCE_FOUND } from '../../protocol/messages/fence.js';
import { FENCE_FILL, FENCE_JOIN, encodeFence } from '../../protocol/messages/fence.js';
import type { Refusal } from '../../protocol/messages/refusal.js';
import {
  REFUSAL_FENCED, REFUSAL_GAP, REFUSAL_LIMIT, REFUSAL_UNKNOWN, refusalReasonName,
} from '../../protocol/reasons.js';
import type { RecordedMember, Term } from '../../protocol/partition-record.js';
import type { PartitionHolder } from '../../recovery/ownership/holder.js';
import type { PartitionMember } from '../../recovery/ownership/member.js';
import { MemberState } from '../../recovery/ownership/member.js';
import type { OrderColumns } from './set/position-order.js';
import type { ChangeRing } from './feed/change-ring.js';
import { FillPhase } from './feed/copy-feed.js';
import type { CopyFeed } from './feed/copy-feed.js';
import type { MirrorsOptions, MirrorsPorts } from './mirrors-options.js';
import type { Outbox } from './link/outbox.js';
import { Partition } from './set/partition.js';
import type { PartitionOptions } from './set/partition.js';
import { Placement } from './set/placement.js';
import { Rebalance } from './set/rebalance.js';
import { RefillPace } from './feed/refill-pace.js';
import type { RepairCounters } from './feed/repair-counters.js';
import { Resync } from './feed/resync.js';
import { Sender } from './feed/sender.js';
import type { StorePort } from './link/store-port.js';
import { importedSection, wholeSection } from './feed/whole-section.js';

/** Sections of the ring looked at in a tick, beside those that each new one brings. */
const RING_LOOKS_PER_TICK = 1024;

/** A FENCE of one partition to one store. */
export interface FenceRequest {
  readonly handle: number;
  readonly partition: string;
  readonly term: Term;
  /** FENCE_JOIN or FENCE_FOUND; FENCE_FILL goes with a refill. */
  readonly how: typeof FENCE_JOIN | typeof FENCE_FOUND;
  readonly provenDead: number;
  /** FOUND: the epoch of the newest record that is known; else 0. */
  readonly number: number;
}

export class Mirrors {
  readonly options: MirrorsOptions;
  readonly counters: RepairCounters = { tails: 0, tailBytes: 0, refills: 0, refillBytes: 0 };
  readonly placement: Placement;
  readonly pace: RefillPace;
  readonly rebalance: Rebalance;
  readonly sender: Sender;
  /** Rises with every change of what is known of the stores: what was reckoned from it holds until then. */
  stateVersion = 0;
  readonly #ports: MirrorsPorts;
  /** With holes: of those that are held now. */
  readonly #byHandle: (Partition | undefined)[] = [];
  readonly #resyncs = new Map<StorePort, Resync>();
  readonly #storesById = new Map<string, StorePort>();
  /** Ids of stores that were asked to hold partitions which are being founded, by handle. */
  readonly #founding = new Map<number, Set<string>>();
  /** By handle and store: until when a store that refused a copy is not asked again. */
  readonly #declinedUntilMs = new Map<string, number>();

  constructor(options: MirrorsOptions, ports: MirrorsPorts) {
    this.options = options;
    this.#ports = ports;
    this.pace = new RefillPace(() => ports.nowMs());
    const { rebalanceBytesPerSecond: bytesPerSecond } = options;
    this.rebalance = new Rebalance({ bytesPerSecond }, { log: ports.log, mirrors: this, pace: this.pace });
    this.sender = new Sender(options, {
      packer: ports.packer,
      partitionOf: (handle) => this.#byHandle[handle],
      ringRoomBytes: () => ports.ringRoomBytes(),
      requestFlush: () => { ports.requestFlush(); },
      storeOf: (storeId) => this.#storesById.get(storeId),
    });
    this.placement = new Placement(options.placement, {
      stores: () => this.stores, copiesAt: (store) => this.copiesAt(store),
      hostOfGateway: (gatewayId) => ports.hostOfGateway(gatewayId),
    });
  }

  addStore(store: StorePort): void {
    this.sender.addStore(store);
    this.#storesById.set(store.storeId, store);
    this.#resyncs.set(store, new Resync(
      { frameBytes: this.options.refillFrameBytes },
      {
        packer: this.#ports.packer, refillEntries: this.#ports.refillEntries, counters: this.counters,
        nowMs: () => this.#ports.nowMs(),
        pace: this.pace,
        sealAll: () => { this.sender.sealDirty(); },
        needFlush: () => { this.askFlush(); },
        fenceToFill: (partition) => { this.#fenceToFill(partition, store); },
        isBacklogged: () => this.sender.outboxes.get(store)?.isBacklogged === true,
      },
      store,
    ));
  }

  get stores(): StorePort[] {
    return [...this.sender.outboxes.keys()];
  }

  storeOf(storeId: string): StorePort | undefined {
    return this.#storesById.get(storeId);
  }

  /** The store of a copy, while it can be asked: a later boot has another copy, or none. */
  storeAt({ storeId, bootId }: RecordedMember): StorePort | undefined {
    const store = this.#storesById.get(storeId);
    return store?.isUp === true && store.bootId === bootId ? store : undefined;
  }

  get backlogBytes(): number {
    return this.sender.backlogBytes;
  }

  /** The last changes, for copies that come back. */
  get ring(): ChangeRing {
    return this.sender.ring;
  }

  askFlush(): void {
    this.sender.askFlush();
  }

  outboxOf(store: StorePort): Outbox | undefined {
    return this.sender.outboxes.get(store);
  }

  /** A partition that is taken or founded; the caller says where it stands (adopt()). */
  create(options: PartitionOptions, holder: PartitionHolder, columns: OrderColumns): Partition {
    const partition = new Partition(options, holder, columns, this.sender.slabs, this.sender);
    this.#byHandle[partition.handle] = partition;
    this.stateVersion += 1;
    return partition;
  }

  /** It is held no more: nothing of it is sent. */
  remove(partition: Partition): void {
    partition.isForgotten = true;
    for (const resync of this.#resyncs.values()) resync.cancel(partition);
    this.ring.forget(partition.handle);
    this.#byHandle[partition.handle] = undefined;
    this.stateVersion += 1;
  }

  partitionOf(handle: number): Partition | undefined {
    return this.#byHandle[handle];
  }

  *all(): IterableIterator<Partition> {
    for (const partition of this.#byHandle) if (partition !== undefined) yield partition;
  }

  /** Rows that a store has of our partitions, and those about to be founded there. */
  copiesAt(store: StorePort): number {
    let count = 0;
    for (const stores of this.#founding.values()) if (stores.has(store.storeId)) count += 1;
    for (const { rows } of this.all()) {
      for (const row of rows) if (row.storeId === store.storeId) count += 1;
    }
    return count;
  }

  /** Another round of asking stores to hold a partition that is to begin. */
  beginFounding(handle: number): void {
    this.#founding.set(handle, new Set());
  }

  foundAt(handle: number, storeId: string): void {
    this.#founding.get(handle)?.add(storeId);
  }

  /** It has its copies, or is not to have any. */
  endFounding(handle: number): void {
    this.#founding.delete(handle);
  }

  // ── what the set wants ──────────────────────────────────────────────────────────────────────────

  /** Our term to a copy; the handle is bound to it on this connection. */
  fence(store: StorePort, request: FenceRequest): void {
    const control = encodeFence(this.#ports.packer, { ...request, digestA: 0, digestB: 0 });
    this.outboxOf(store)?.request(FENCE, control);
    this.askFlush();
  }

  /** Sends what follows `after` once more; what is not sealed yet follows behind it with the next flush. */
  repeat(partition: Partition, row: PartitionMember, after: number): number {
    const { store } = partition.feedOf(row);
    const outbox = store === undefined ? undefined : this.outboxOf(store);
    if (outbox === undefined) return 0;
    let bytes = 0;
    for (const section of this.ring.after(partition.handle, after)) {
      const whole = wholeSection(section);
      bytes += whole.rows.length + whole.payloadBytes;
      outbox.put(whole);
    }
    if (bytes > 0) this.askFlush();
    return bytes;
  }

  /** A copy goes on from where it stands. It is a TAIL row from now on: what is sealed later follows. */
  startTail(partition: Partition, row: PartitionMember, after: number): void {
    partition.feedOf(row).storeNumber = after;
    this.counters.tails += 1;
    const bytes = this.repeat(partition, row, after);
    this.counters.tailBytes += bytes;
    this.#ports.log.info('mirror', 'a mirror goes on from where it stood', {
      partition: partition.name, store: row.storeId, from: after, to: partition.lastNumber, tail_bytes: bytes,
    });
  }

  /** A copy is emptied and filled. */
  startFill(partition: Partition, row: PartitionMember): void {
    const feed = partition.feedOf(row);
    const resync = feed.store === undefined ? undefined : this.#resyncs.get(feed.store);
    feed.endFill();
    resync?.cancel(partition);
    resync?.add(partition, feed);
  }

  /** Whether a copy at this number and digest can go on from what is kept. */
  stands(partition: Partition, number: number, digestA: number, digestB: number): boolean {
    this.sender.seal(partition);
    return this.ring.stands(partition.handle, number, digestA, digestB);
  }

  /**
   * What another member of a partition that was taken lacks, as the store that is read answered TAIL: `rows`
   * and `bodies` of TAILED, which may go on into what was changed since; digests are those at firstNumber -
   * 1. Copied.
   */
  importTail(
    partition: Partition, firstNumber: number, rows: Uint8Array, bodies: Uint8Array, startDigestA: number,
    startDigestB: number,
  ): void {
    this.sender.seal(partition);
    const base = this.ring.baseOf(partition.handle);
    if (base === undefined) return;
    const section = importedSection(partition.handle, firstNumber, base, rows, bodies);
    if (section !== undefined) this.ring.prepend(section, startDigestA, startDigestB);
  }

  #fenceToFill(partition: Partition, store: StorePort): void {
    const { handle, name, lastNumber: number, digest } = partition;
    const control = encodeFence(this.#ports.packer, {
      handle, partition: name, term: partition.holder.term, how: FENCE_FILL, provenDead: 0, number,
      digestA: digest.a, digestB: digest.b,
    });
    this.outboxOf(store)?.request(FENCE, control);
  }

  // ── time ────────────────────────────────────────────────────────────────────────────────────────

  /** Seals what is pending, so that later changes begin sections behind it. */
  sealPending(): void {
    this.sender.sealDirty();
  }

  /** Sends what all partitions changed since the last flush: one request and one write a store. */
  flush(): void {
    this.sender.beginFlush();
    this.sender.sealDirty();
    for (const resync of this.#resyncs.values()) resync.pump();
    this.sender.sealDirty();
    this.sender.texts.send(this.sender.outboxes.values());
    for (const outbox of this.sender.outboxes.values()) outbox.store.flush();
  }

  tick(): void {
    for (const partition of this.all()) partition.forgetFeeds();
    this.ring.trim(RING_LOOKS_PER_TICK);
    for (const resync of this.#resyncs.values()) if (resync.hasWork) this.askFlush();
  }

  /** An entry left a queue: a refill that stands at it moves on. */
  onUnlinked(partition: Partition, row: number, following: number): void {
    if (!partition.isFilling) return;
    for (const resync of this.#resyncs.values()) resync.onUnlinked(partition, row, following);
  }

  // ── what links tell ─────────────────────────────────────────────────────────────────────────────

  /** The connection that carried requests is gone with all that was under way. Before the sets hear of it. */
  onConnectionLost(store: StorePort): void {
    this.stateVersion += 1;
    this.placement.stopping.delete(store.storeId);
    this.#resyncs.get(store)?.reset();
    this.sender.onConnectionLost(store);
  }

  onConnected(): void {
    this.stateVersion += 1;
    this.askFlush();
  }

  /**
   * Another path carries the link: handles and unacknowledged requests are gone, the store's memory is not.
   * All that was not acknowledged is repeated under the same numbers; refills begin anew. Nothing is
   * isolated.
   */
  onLinkSwitched(store: StorePort): void {
    this.onConnectionLost(store);
    for (const partition of this.all()) {
      const row = partition.rowAt(store);
      if (row === undefined || row.state === MemberState.NG) continue;
      if (row.state === MemberState.FILLING) {
        this.startFill(partition, row);
        continue;
      }
      const { handle, name, holder: { term } } = partition;
      this.fence(store, { handle, partition: name, term, how: FENCE_JOIN, provenDead: 0, number: 0 });
      if (row.state !== MemberState.ALIGNING) this.repeat(partition, row, row.acked);
    }
    this.askFlush();
  }

  /** Per partition touched: the number the store stands at. */
  onAcknowledged(store: StorePort, handle: number, number: number): void {
    const partition = this.#byHandle[handle];
    const row = partition?.rowAt(store);
    if (partition === undefined || row === undefined || number > partition.lastNumber) return;
    const feed = partition.feedOf(row);
    if (!feed.getsChanges) return;
    feed.storeNumber = number;
    partition.noteProgress(feed, number);
    partition.set?.onAcked(row, number, this.#ports.nowMs());
  }

  onAckedThrough(store: StorePort, sequence: number): void {
    this.#resyncs.get(store)?.onAckedThrough(sequence, (partition, feed) => {
      this.#onFilled(partition, feed);
    });
    const outbox = this.sender.outboxes.get(store);
    if (outbox === undefined) return;
    outbox.onAckedThrough(sequence);
    if (outbox.drain()) this.askFlush();
  }

  onWritable(store: StorePort): void {
    this.sender.outboxes.get(store)?.drain();
    this.askFlush();
  }

  /** A request about a copy was refused: where it stands, or what is known there, decides what it becomes. */
  onRefusal(store: StorePort, refusal: Refusal): boolean {
    const partition = this.#byHandle[refusal.handle];
    const row = partition?.rowAt(store);
    if (partition === undefined || row === undefined) return false;
    const feed = partition.feedOf(row);
    if (!feed.getsChanges) return false;
    const { reason, text } = refusal;
    this.#ports.log.warn('mirror', 'a store refused what a partition changed', {
      partition: partition.name, store: store.storeId, reason: refusalReasonName(reason), text,
    });
    this.#resyncs.get(store)?.cancel(partition);
    const wasFilling = row.state === MemberState.FILLING;
    feed.endFill();
    const nowMs = this.#ports.nowMs();
    // FENCED and UNKNOWN: the answer to another FENCE says who has it; after a gap, where it stands.
    const mayAlign = reason === REFUSAL_FENCED || reason === REFUSAL_UNKNOWN || reason === REFUSAL_GAP;
    if (reason === REFUSAL_LIMIT) this.putOff(store, partition, nowMs);
    if (wasFilling || !mayAlign) partition.set?.onUnfit(row, 0, nowMs);
    else partition.set?.onGap(row, nowMs);
    return true;
  }

  /** The store takes no copy of it for a while. */
  putOff(store: StorePort, partition: Partition, nowMs: number): void {
    this.#declinedUntilMs.set(`${String(partition.handle)}/${store.storeId}`, nowMs + this.options.retryMs);
  }

  isPutOff(store: StorePort, handle: number, nowMs: number): boolean {
    if (this.#declinedUntilMs.size === 0) return false;
    const key = `${String(handle)}/${store.storeId}`;
    const untilMs = this.#declinedUntilMs.get(key);
    if (untilMs === undefined) return false;
    if (nowMs < untilMs) return true;
    this.#declinedUntilMs.delete(key);
    return false;
  }

  /** Empties one copy and fills it again, at the operator's wish; false when no other is in step. */
  refillAgain(partition: Partition, row: PartitionMember): boolean {
    const isOtherSound = partition.rows.some((other) => other !== row && other.isRecorded && other.isInStep);
    if (!isOtherSound || partition.set === undefined) return false;
    partition.set.onUnfit(row, 0, this.#ports.nowMs());
    return true;
  }

  #onFilled(partition: Partition, feed: CopyFeed): void {
    if (feed.fill !== FillPhase.ENDING) return;
    feed.endFill();
    const { set } = partition;
    if (set === undefined || !set.rows.includes(feed.row)) return;
    this.#ports.log.info('mirror', 'a mirror is filled', {
      partition: partition.name, store: feed.row.storeId, number: feed.storeNumber,
    });
    set.onFilled(feed.row, feed.storeNumber, this.#ports.nowMs());
  }
}
