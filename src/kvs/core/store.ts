/**
 * A store: mirrored partitions of many gateways in one memory. This is the whole of what a store does once
 * bytes have become requests; store-connection.ts turns bytes into requests and answers into bytes.
 *
 *   accounts ──── incarnation, grant                   admission ── credit, three marks
 *   leases ────── by process (ownership)               section / refill / blocks ── entries in segments
 *   partitions ── fence (ownership), copy
 *
 * Every operation answers 0, its message, or the reason of a refusal, and changes nothing when it refuses.
 * Time comes in with the calls that need it. What a copy is worth in the register's record is no matter of a
 * store, which keeps what it was told and is asked for it. docs/PROTOCOL.md.
 */

import { stockBytesMax } from '../../base/segment-stock.js';
import { Segments, segmentBytesWithin } from '../../base/segments.js';
import { TextPool, textsBytesMax } from '../../base/text-pool.js';
import type { Crc32 } from '../../platform/ports.js';
import type { Ask } from '../../protocol/messages/ask.js';
import type { Asked } from '../../protocol/messages/asked.js';
import type { Fence } from '../../protocol/messages/fence.js';
import { FENCE_FOUND, FENCE_JOIN } from '../../protocol/messages/fence.js';
import type { Fenced } from '../../protocol/messages/fenced.js';
import type { List } from '../../protocol/messages/list.js';
import type { Listed } from '../../protocol/messages/listed.js';
import { LISTED_MAX } from '../../protocol/messages/listed.js';
import type { Tell } from '../../protocol/messages/tell.js';
import { isEnded, isMemberOf, ownerOf } from '../../protocol/partition-record.js';
import {
  DECLINED_FULL, DECLINED_LOWER, DECLINED_NO_COPY, DECLINED_OTHER_NONCE, DECLINED_STALE, REFUSAL_FENCED,
  REFUSAL_INVALID, REFUSAL_LIMIT, REFUSAL_UNKNOWN,
} from '../../protocol/reasons.js';
import { TEXT_ROW_BYTES, textBytes, textOf, textPosition } from '../../protocol/text-rows.js';
import { GatewayAccount } from './accounts.js';
import { Admission } from './admission.js';
import type { Attachment } from './attachment.js';
import { Blocks } from './blocks.js';
import { AppliedChanges } from './applied-changes.js';
import { Contents } from './contents.js';
import { StoredEntries } from './stored-entries.js';
import type { MirroredPartition } from './mirrored-partition.js';
import type { CarriedFence, FenceVerdictValue } from './ownership/partition-fence.js';
import { FenceVerdict, isUndoneBy } from './ownership/partition-fence.js';
import type { HeartbeatAnswer } from './ownership/process-leases.js';
import { ProcessLeases } from './ownership/process-leases.js';
import { PartitionTable } from './partition-table.js';
import { RefillTarget } from './refill-target.js';
import { SectionApplier } from './section.js';
import { SharedBodies } from './shared-bodies.js';
import { Strangers } from './strangers.js';

export interface StoreOptions {
  readonly storeId: string;
  /**
   * Of this memory, in hex: new with each start, but for one that carries on what its predecessor left in a
   * file.
   */
  readonly bootId: string;
  readonly gateways: readonly { readonly id: string; readonly secret: Uint8Array }[];
  /** Any gateway that proves it is let in, whatever its name; undefined: those of `gateways` only. */
  readonly groupSecret?: Uint8Array | undefined;
  readonly memoryLimitBytes: number;
  readonly leaseMs: number;
  /** The longest lease that the predecessor granted in this boot, whose ends nobody knows; 0 in a new one. */
  readonly inheritedLeaseMs?: number;
  /** Monotonic time of the start. */
  readonly startMs: number;
  readonly segmentBytes: number;
  /** Bytes of the last changes kept for each gateway; never more than a sixteenth of the memory. 0: none. */
  readonly ringBytes: number;
  readonly grantMaxBytes: number;
  readonly reserveShare: number;
  readonly endShare: number;
  /** Seed of the indexes: unpredictable in production, so that no sender can choose colliding keys. */
  readonly indexSeed: number;
  /** For tests; partition-table.ts has the usual one. */
  readonly copiesMax?: number;
}

/** What is usual; the composition root overrides what its configuration says. */
export const STORE_DEFAULTS = {
  leaseMs: 10_000,
  segmentBytes: 1024 * 1024,
  ringBytes: 64 * 1024 * 1024,
  grantMaxBytes: 32 * 1024 * 1024,
  reserveShare: 0.15,
  endShare: 0.03,
} as const;

/** Outcome of FENCE: the copy, or why not. */
export interface FenceOutcome {
  /** 0 or DECLINED_…. */
  readonly reason: number;
  readonly copy: MirroredPartition | undefined;
}

export interface StorePorts {
  readonly crc32: Crc32;
}

const DONE = 0;
const DECLINED_BY_VERDICT: Readonly<Record<FenceVerdictValue, number>> = {
  [FenceVerdict.ACCEPTED]: DONE,
  [FenceVerdict.LOWER]: DECLINED_LOWER,
  [FenceVerdict.OTHER_NONCE]: DECLINED_OTHER_NONCE,
  [FenceVerdict.STALE]: DECLINED_STALE,
};
/** What a u32 of a message holds: no lease is so long. */
const U32_MAX = 0xffff_ffff;
/** Gateways of a group, named nowhere: it bounds tables, and the shares of memory among them. */
const GROUP_MAX = 1024;
/** Of the memory limit, the most that the ring of one gateway may have. */
const RING_SHARE = 1 / 16;
/**
 * Bytes that one step of compaction moves, entries that one step of discarding frees: about a millisecond.
 */
const COMPACT_STEP_BYTES = 1024 * 1024;
const DISCARD_STEP_ENTRIES = 4096;

export class Store {
  readonly storeId: string;
  readonly bootId: string;
  readonly leaseMs: number;
  readonly segments: Segments;
  readonly entries: StoredEntries;
  readonly shared: SharedBodies;
  /** What next hops said of entries, by row: soft state. */
  readonly texts: TextPool;
  readonly leases: ProcessLeases;
  readonly partitions: PartitionTable;
  readonly admission: Admission;
  readonly blocks: Blocks;
  readonly applier: SectionApplier;
  readonly refills: RefillTarget;
  readonly strangers = new Strangers();
  /** Also of gateways that are not let in any more: an older process, and what was told, stays known. */
  readonly #accounts = new Map<string, GatewayAccount>();
  /** Of those, the ones that may come, or are here. */
  readonly #sharers = new Set<GatewayAccount>();
  /** Each owner has one for its shared bodies, also one that has no account here, or none yet. */
  readonly #numbers = new Map<string, number>();
  #lastNumber = 0;
  #secrets: ReadonlyMap<string, Uint8Array> = new Map();
  #groupSecret: Uint8Array | undefined;
  /** By the number of the owner. */
  readonly #rings = new Map<number, AppliedChanges>();
  readonly #ringBytesMax: number;

  constructor(options: StoreOptions, ports: StorePorts) {
    this.storeId = options.storeId;
    this.bootId = options.bootId;
    this.leaseMs = options.leaseMs;
    this.#ringBytesMax = Math.min(options.ringBytes, Math.floor(options.memoryLimitBytes * RING_SHARE));
    this.segments = new Segments({
      segmentBytes: segmentBytesWithin(options.memoryLimitBytes, options.segmentBytes),
    });
    this.shared = new SharedBodies(
      { indexSeed: options.indexSeed ^ 0x5bd1e995 }, { segments: this.segments },
    );
    const textsMax = textsBytesMax(options.memoryLimitBytes);
    this.texts = new TextPool({ bytesMax: textsMax }, { segments: this.segments });
    const held = { segments: this.segments, shared: this.shared, texts: this.texts };
    this.entries = new StoredEntries({ indexSeed: options.indexSeed }, held);
    const { copiesMax, inheritedLeaseMs = 0 } = options;
    this.leases = new ProcessLeases(options.leaseMs, inheritedLeaseMs);
    this.partitions = new PartitionTable({
      ...(copiesMax === undefined ? {} : { copiesMax }),
      inheritedEndsMs: inheritedLeaseMs === 0 ? -Infinity : options.startMs + inheritedLeaseMs,
    }, { entries: this.entries, leases: this.leases });
    // All that may come, not those that are here: a grant is not taken back, and who comes later must find
    // some.
    this.admission = new Admission(options, {
      segments: this.segments, entries: this.entries, texts: this.texts,
      sharers: () => this.#sharers,
    });
    this.blocks = new Blocks({ ...held, entries: this.entries });
    const { crc32 } = ports;
    const contents = new Contents({ segments: this.segments, shared: this.shared, crc32 });
    this.applier = new SectionApplier({
      entries: this.entries, crc32, contents,
      discardLater: (first) => { this.partitions.discardLater(first); },
    });
    this.refills = new RefillTarget({ crc32, entries: this.entries, contents });
    this.letIn(options);
  }

  /** These from now on. Connections stay, also of one that is not among them any more. */
  letIn({ gateways, groupSecret }: Pick<StoreOptions, 'gateways' | 'groupSecret'>): void {
    this.#secrets = new Map(gateways.map(({ id, secret }) => [id, secret]));
    this.#groupSecret = groupSecret;
    for (const { id } of gateways) this.#open(id);
  }

  /** What a gateway of this name has to prove; undefined: it is not let in, whatever it knows. */
  secretOf(id: string): Uint8Array | undefined {
    return this.#secrets.get(id) ?? this.#groupSecret;
  }

  /** Of a gateway that is configured, or has proved the group's secret just now; undefined: too many have. */
  accountOf(id: string): GatewayAccount | undefined {
    const account = this.#accounts.get(id);
    if (this.#groupSecret === undefined) return account;
    return account === undefined && this.#accounts.size >= GROUP_MAX ? undefined : this.#open(id);
  }

  #open(id: string): GatewayAccount {
    const account = this.#accounts.get(id) ?? new GatewayAccount(id, this.#numberOf(id));
    this.#accounts.set(id, account);
    this.#sharers.add(account);
    this.admission.share(this.#sharers.size);
    return account;
  }

  account(id: string): GatewayAccount | undefined {
    return this.#accounts.get(id);
  }

  /** Of a spill file: also of one that is not let in, for it may be later, and its older processes not. */
  restoreAccount(told: Pick<GatewayAccount, 'id' | 'incarnation' | 'nonce'>): void {
    const account = this.accountOf(told.id) ?? new GatewayAccount(told.id, this.#numberOf(told.id));
    this.#accounts.set(told.id, account);
    account.restore(told);
  }

  /** Of gateways that may come, or are here. */
  accounts(): Iterable<GatewayAccount> {
    return this.#sharers;
  }

  knownAccounts(): Iterable<GatewayAccount> {
    return this.#accounts.values();
  }

  /** A lease begins, and goes on, with heartbeats only. */
  heartbeat(account: GatewayAccount, fencesProcessed: number, nowMs: number): HeartbeatAnswer {
    return this.leases.heartbeat(account.process, fencesProcessed, nowMs);
  }

  /** A term takes the copy that is there, or makes one. Declined, it changes nothing. */
  fence(account: GatewayAccount, message: Fence, nowMs: number): FenceOutcome {
    const { partition, term, how, number } = message;
    const copy = this.partitions.find(partition);
    const known = this.partitions.peek(partition);
    if (how === FENCE_FOUND && known.isNewsTo(number)) return { reason: DECLINED_STALE, copy: undefined };
    // A copy that a living holder has just filled may be recorded at this moment.
    if (how === FENCE_FOUND && copy?.isComplete === true && !known.mayFound(account.holder, nowMs)) {
      return { reason: DECLINED_NO_COPY, copy: undefined };
    }
    const reason = DECLINED_BY_VERDICT[known.judge(term)];
    if (reason !== DONE) return { reason, copy: undefined };
    // Only to whom the term admits: a deposed holder would take it for the loss of its own copy.
    if (how === FENCE_JOIN && copy === undefined) return { reason: DECLINED_NO_COPY, copy: undefined };
    if (copy === undefined && this.partitions.isFull) return { reason: DECLINED_FULL, copy: undefined };
    const fence = this.partitions.fenceOf(partition);
    fence.raise(term, account.holder, nowMs);
    if (how === FENCE_JOIN) return { reason: DONE, copy };
    return { reason: DONE, copy: this.#beginCopy(account, message, copy ?? this.#create(partition)) };
  }

  /** What FENCED says of a copy that was bound just now. */
  fenced(
    account: GatewayAccount, { handle, term, how, provenDead }: Fence, copy: MirroredPartition, nowMs: number,
  ): Fenced {
    const { isComplete, number, digestA, digestB, lastTerm, count, bytes } = copy;
    const dead = provenDead === 0 ? undefined : { gatewayId: account.id, incarnation: provenDead };
    return {
      handle, term, how, isComplete, number, digestA, digestB, lastTerm, count, bytes,
      olderLeaseMs: wholeMs(copy.fence.olderLeaseMs(nowMs, dead)),
      holderWallMs: copy.clock?.wallMs(nowMs) ?? 0,
    };
  }

  ask({ partition, holder }: Ask, nowMs: number): Asked {
    const fence = this.partitions.peek(partition);
    return {
      partition, hasCopy: this.partitions.find(partition)?.isComplete === true,
      leaseLeftMs: wholeMs(fence.leaseLeftMs(holder, nowMs)), termNumber: fence.term.number, told: fence.told,
    };
  }

  /**
   * False: a newer record is known, or one that counts on the copy here and that the teller does not know of:
   * the register has lost it. A copy that was given up stays, to be adopted.
   */
  tell({ partition, record, isOut }: Tell): boolean {
    const fence = this.partitions.fenceOf(partition);
    const isGivenUp = isMemberOf(record.gaveUp, this.storeId, this.bootId);
    const isUnsettled = fence.isNeverSettled(record);
    if ((isOut || isUnsettled) && fence.isUnknownTo(record, this.storeId, this.bootId)) return false;
    if (isUnsettled) {
      fence.dropTerm(record);
      const lastTerm = this.partitions.find(partition)?.lastTerm;
      // What was founded, filled or changed by that term goes with it. What it only joined is as it was.
      if (!isGivenUp && lastTerm !== undefined && isUndoneBy(record, lastTerm)) this.#drop(partition);
    }
    if (!fence.tell(record)) return false;
    if (isOut && fence.isOutBy(record) && !isGivenUp) this.#drop(partition);
    return true;
  }

  /**
   * Copies that count, and what nobody serves and is not empty: it may have been filled and never recorded,
   * and its end told while the disk with it was away. Asked seldom: all names are looked at.
   */
  list({ after }: List, nowMs: number): Listed {
    const names: string[] = [];
    for (const copy of this.partitions.copies()) {
      const isListed = this.isMember(copy) || (copy.number > 0 && copy.fence.isUnserved(nowMs));
      if (copy.partition > after && isListed) names.push(copy.partition);
    }
    const partitions = names.sort().slice(0, LISTED_MAX);
    return { after, partitions, isLast: partitions.length === names.length };
  }

  /** Does the record that was told last count on the copy here? One that has ended counts on none. */
  isMember({ fence: { told } }: MirroredPartition): boolean {
    return told !== undefined && !isEnded(told) && isMemberOf(told.members, this.storeId, this.bootId);
  }

  /** Why a request may not touch the copy behind its handle, or 0. */
  check(attachment: Attachment | undefined): number {
    if (attachment === undefined || attachment.copy.isGone) return REFUSAL_UNKNOWN;
    return attachment.copy.fence.admits(attachment.term) ? DONE : REFUSAL_FENCED;
  }

  /** As check(), for what reads: a copy with holes is none. */
  checkReader(attachment: Attachment | undefined): number {
    const reason = this.check(attachment);
    return reason === DONE && attachment?.copy.isComplete !== true ? REFUSAL_INVALID : reason;
  }

  release({ copy, term }: Attachment): void {
    copy.fence.release(term);
  }

  /** Out of a spill file: the fence as it stood, and a copy to be filled when one follows. */
  restoreFence(partition: string, carried: CarriedFence): void {
    this.partitions.fenceOf(partition).carryOn(carried);
  }

  /** Undefined when there are too many. */
  restoreCopy(partition: string, number: number, a: number, b: number): MirroredPartition | undefined {
    if (this.partitions.isFull || this.partitions.find(partition) !== undefined) return undefined;
    const copy = this.#create(partition);
    this.partitions.empty(copy, number, a, b);
    return copy;
  }

  #create(partition: string): MirroredPartition {
    const owner = this.#numberOf(ownerOf(partition));
    return this.partitions.create(this.partitions.fenceOf(partition), owner, this.#ringOf(owner));
  }

  #beginCopy(
    account: GatewayAccount, { term, how, number, digestA, digestB }: Fence, copy: MirroredPartition,
  ): MirroredPartition {
    const isFounded = how === FENCE_FOUND;
    if (isFounded) this.partitions.empty(copy, 0, 0, 0);
    else this.partitions.empty(copy, number, digestA, digestB);
    copy.isComplete = isFounded;
    copy.lastTerm = term;
    copy.clock = account.clock;
    return copy;
  }

  #drop(partition: string): void {
    const copy = this.partitions.find(partition);
    if (copy !== undefined) this.partitions.drop(copy);
  }

  /**
   * One measured section under the term of the attachment: `costBytes` as SectionMeasure found it. Without a
   * STORE it costs nothing, and is never refused for memory.
   */
  applySection(
    account: GatewayAccount, { copy, term }: Attachment,
    firstNumber: number, digestA: number, digestB: number, view: DataView, rowsAt: number, rowCount: number,
    payload: Uint8Array, payloadAt: number, costBytes: number,
  ): number {
    const admission = this.admission;
    const isRoom = copy.isComplete
      ? admission.mayStore(account, costBytes)
      : admission.mayRefill(account, costBytes);
    if (!isRoom) return REFUSAL_LIMIT;
    const { number } = copy;
    const reason = this.applier.apply(
      copy, firstNumber, digestA, digestB, view, rowsAt, rowCount, payload, payloadAt,
    );
    if (reason !== DONE) return reason;
    admission.spend(account, costBytes);
    // A repeat says nothing of who made it first.
    if (copy.number === number) return DONE;
    copy.lastTerm = term;
    copy.clock = account.clock;
    return DONE;
  }

  /**
   * What next hops said of entries of the copy. Soft: what there is no room for beside mail, and all that
   * was promised to it, is passed over. An entry that was never tried has none; one that is gone takes none.
   */
  keepTexts(copy: MirroredPartition, rows: Uint8Array): void {
    for (let at = 0; at < rows.length; at += TEXT_ROW_BYTES + textBytes(rows, at)) {
      const row = this.entries.find(copy, textPosition(rows, at));
      if (row === 0 || this.entries.noteBytesOf(row) === 0) continue;
      const text = textOf(rows, at);
      if (this.admission.mayLend(TextPool.costOf(text))) this.texts.put(row, text);
      else this.texts.drop(row);
    }
  }

  /** One REFILL frame: out of the account's credit first, beyond it out of the reserve. */
  refill(
    account: GatewayAccount, copy: MirroredPartition, view: DataView, rowsAt: number, rowCount: number,
    payload: Uint8Array,
  ): number {
    const costBytes = this.refills.costBytes(view, rowsAt, rowCount);
    if (!this.admission.mayRefill(account, costBytes)) return REFUSAL_LIMIT;
    const reason = this.refills.take(copy, view, rowsAt, rowCount, payload);
    if (reason === DONE) this.admission.spend(account, costBytes);
    return reason;
  }

  /** Whether work() has something to do. */
  get hasWork(): boolean {
    return this.partitions.hasDiscards || this.segments.hasGaps;
  }

  /**
   * A step of the work that nobody waits for: frees emptied copies, closes gaps in segments. Between turns
   * only; answers whether there is more.
   */
  work(): boolean {
    if (this.partitions.hasDiscards) this.partitions.discard(DISCARD_STEP_ENTRIES);
    const moved = this.segments.hasGaps ? this.segments.compact(COMPACT_STEP_BYTES) : 0;
    return this.partitions.hasDiscards || (moved > 0 && this.segments.hasGaps);
  }

  /**
   * Lapsed leases give their grants back: a gateway that returns later finds the reserve. One that is not let
   * in any more has no share then. Memory that a burst needed is kept for the next, or goes.
   */
  tick(nowMs: number): void {
    this.segments.rest();
    this.segments.keepStock(nowMs, stockBytesMax(this.admission.limitBytes, this.admission.usedBytes));
    for (const account of this.#sharers) {
      if (account.active !== undefined || nowMs <= this.leases.endsMs(account.process)) continue;
      this.admission.forget(account);
      if (account.connections.size > 0 || this.secretOf(account.id) !== undefined) continue;
      this.#sharers.delete(account);
      this.admission.share(this.#sharers.size);
    }
    if (this.leases.count > this.#accounts.size) this.leases.forgetEnded(nowMs, this.#isLast);
  }

  /** Of its gateway here: an older process can't come back. */
  readonly #isLast = (process: string): boolean => {
    for (const account of this.#accounts.values()) if (account.process === process) return true;
    return false;
  };

  #ringOf(owner: number): AppliedChanges {
    let ring = this.#rings.get(owner);
    if (ring === undefined) {
      ring = new AppliedChanges({ bytesMax: this.#ringBytesMax }, { memory: this.admission });
      this.#rings.set(owner, ring);
    }
    return ring;
  }

  #numberOf(gatewayId: string): number {
    const known = this.#numbers.get(gatewayId);
    if (known !== undefined) return known;
    this.#lastNumber += 1;
    this.#numbers.set(gatewayId, this.#lastNumber);
    return this.#lastNumber;
  }
}

/** Of a lease that has not ended more than 0 is left: rounded up. */
function wholeMs(leftMs: number): number {
  return Math.min(U32_MAX, Math.ceil(leftMs));
}
