/**
 * A store: mirrored queues of many gateways in one memory. This is the whole of what a store does once bytes have
 * become requests; store-connection.ts turns bytes into requests and answers into bytes.
 *
 *   accounts ── incarnation, lease, grant              admission ── credit, three marks
 *   queues ──── identity, holder, number, digest       section / refill / blocks ── entries in segments
 *
 * Every operation answers 0 or the reason of a refusal, and changes nothing when it refuses. Time comes in with
 * the calls that need it. docs/PROTOCOL.md.
 */

import { stockBytesMax } from '../../base/segment-stock.js';
import { Segments } from '../../base/segments.js';
import { TextPool, textsBytesMax } from '../../base/text-pool.js';
import type { Crc32, Packer } from '../../platform/ports.js';
import {
  CLAIM_GRANTED, CLAIM_TOKEN_LOW, CLAIM_UNKNOWN, REFUSAL_DENIED, REFUSAL_FENCED, REFUSAL_LIMIT,
  REFUSAL_UNKNOWN, ROLE_FILLING, ROLE_MEMBER,
} from '../../protocol/reasons.js';
import { TEXT_ROW_BYTES, textBytes, textOf, textPosition } from '../../protocol/text-rows.js';
import { allowsTakeover, toldRole } from '../../protocol/versions.js';
import { GatewayAccount } from './accounts.js';
import { Admission } from './admission.js';
import type { Attachment } from './attachment.js';
import { Blocks } from './blocks.js';
import { AppliedChanges } from './applied-changes.js';
import type { ClaimVerdict } from './claims.js';
import { claim, confirms, mayClaim, mayWrite, release } from './claims.js';
import { Contents } from './contents.js';
import { StoredEntries } from './stored-entries.js';
import type { MirroredQueue, QueueAttributes } from './mirrored-queue.js';
import { QueueTable } from './queue-table.js';
import { RefillTarget } from './refill-target.js';
import { SectionApplier } from './section.js';
import type { SpilledQueue } from './spill/records.js';
import { SharedBodies } from './shared-bodies.js';

export interface StoreOptions {
  readonly storeId: string;
  readonly gateways: readonly { readonly id: string; readonly secret: Uint8Array }[];
  readonly memoryLimitBytes: number;
  readonly leaseMs: number;
  /** Monotonic time of the start: the first lease period begins here. */
  readonly startMs: number;
  readonly segmentBytes: number;
  /** Bytes of the last changes kept for each gateway; never more than a sixteenth of the memory. 0: none. */
  readonly ringBytes: number;
  readonly grantMaxBytes: number;
  readonly reserveShare: number;
  readonly endShare: number;
  /** Seed of the indexes: unpredictable in production, so that no sender can choose colliding keys. */
  readonly indexSeed: number;
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

/** What OPEN carries besides the handle. */
export interface OpenRequest {
  readonly attributes: QueueAttributes;
  readonly epoch: number;
  readonly members: readonly string[];
}

/** Outcome of OPEN: the queue, or why not. */
export interface Opened {
  readonly reason: number;
  readonly queue: MirroredQueue | undefined;
}

export interface StorePorts {
  readonly crc32: Crc32;
  readonly packer: Packer;
}

const DONE = 0;
/** Of the memory limit, the most that the ring of one gateway may have. */
const RING_SHARE = 1 / 16;
/** Bytes that one step of compaction moves, entries that one step of discarding frees: about a millisecond. */
const COMPACT_STEP_BYTES = 1024 * 1024;
const DISCARD_STEP_ENTRIES = 4096;

export class Store {
  readonly storeId: string;
  readonly leaseMs: number;
  readonly segments: Segments;
  readonly entries: StoredEntries;
  readonly shared: SharedBodies;
  /** What next hops said of entries, by row: soft state. */
  readonly texts: TextPool;
  readonly queues: QueueTable;
  readonly admission: Admission;
  readonly blocks: Blocks;
  readonly applier: SectionApplier;
  readonly refills: RefillTarget;
  readonly #accounts = new Map<string, GatewayAccount>();
  /** Owners that have no account here still need a number of their own for shared bodies. */
  readonly #strangers = new Map<string, number>();
  /** By the number of the owner. */
  readonly #rings = new Map<number, AppliedChanges>();
  readonly #ringBytesMax: number;
  readonly #firstPeriodEndsMs: number;

  constructor(options: StoreOptions, ports: StorePorts) {
    this.storeId = options.storeId;
    this.leaseMs = options.leaseMs;
    this.#firstPeriodEndsMs = options.startMs + options.leaseMs;
    this.#ringBytesMax = Math.min(options.ringBytes, Math.floor(options.memoryLimitBytes * RING_SHARE));
    this.segments = new Segments({ segmentBytes: segmentBytesWithin(options) });
    this.shared = new SharedBodies({ indexSeed: options.indexSeed ^ 0x5bd1e995 }, { segments: this.segments });
    this.texts = new TextPool({ bytesMax: textsBytesMax(options.memoryLimitBytes) }, { segments: this.segments });
    this.entries = new StoredEntries({ indexSeed: options.indexSeed }, { segments: this.segments, shared: this.shared, texts: this.texts });
    this.queues = new QueueTable({ entries: this.entries });
    // All that may come, not those that are here: a grant is not taken back, and who comes later must find some.
    this.admission = new Admission(options, { segments: this.segments, entries: this.entries, texts: this.texts, sharers: () => this.#accounts.values() });
    this.blocks = new Blocks({ segments: this.segments, entries: this.entries, shared: this.shared, texts: this.texts });
    const parts = { segments: this.segments, entries: this.entries, shared: this.shared, crc32: ports.crc32, packer: ports.packer };
    const contents = new Contents(parts);
    this.applier = new SectionApplier({ storeId: options.storeId }, { ...parts, contents, discardLater: (first) => { this.queues.discardLater(first); } });
    this.refills = new RefillTarget({ crc32: ports.crc32, entries: this.entries, contents });
    for (const { id, secret } of options.gateways) {
      this.#accounts.set(id, new GatewayAccount(id, this.#accounts.size + 1, secret));
    }
  }

  account(id: string): GatewayAccount | undefined {
    return this.#accounts.get(id);
  }

  accounts(): IterableIterator<GatewayAccount> {
    return this.#accounts.values();
  }


  heartbeat(account: GatewayAccount, nowMs: number): void {
    account.renewLease(nowMs + this.leaseMs);
  }

  /** How long this store still grants no claim for lack of memory of what was before it started. */
  graceMs(nowMs: number): number {
    return Math.max(0, Math.ceil(this.#firstPeriodEndsMs - nowMs));
  }

  open(account: GatewayAccount, request: OpenRequest): Opened {
    const { ownerId, birth, serial } = request.attributes;
    const known = this.queues.find(ownerId, birth, serial);
    if (known !== undefined) {
      if (mayWrite(known, account.id)) return { reason: DONE, queue: known };
      return { reason: mayClaim(known, account.id) ? REFUSAL_FENCED : REFUSAL_DENIED, queue: undefined };
    }
    if (ownerId !== account.id && !request.attributes.claimants.includes(account.id)) return { reason: REFUSAL_DENIED, queue: undefined };
    if (request.epoch > 0 && this.queues.wasDropped(ownerId, birth, serial)) return { reason: REFUSAL_FENCED, queue: undefined };
    if (this.queues.isFull) return { reason: REFUSAL_LIMIT, queue: undefined };
    const owner = this.#numberOf(ownerId);
    const queue = this.queues.create(request.attributes, owner, this.#ringOf(owner));
    queue.holder = account.id;
    queue.holderToken = account.incarnation;
    queue.highestToken = account.incarnation;
    queue.epoch = request.epoch;
    queue.members = request.members;
    if (request.epoch > 0 && request.members.includes(this.storeId)) queue.role = ROLE_MEMBER;
    queue.writer.write(account);
    queue.clock = account.clock;
    return { reason: DONE, queue };
  }

  /** A queue of a spill file, ready to be filled; undefined when it is known already or the table is full. */
  restoreQueue(spilled: SpilledQueue): MirroredQueue | undefined {
    const { ownerId, birth, serial } = spilled.attributes;
    if (this.queues.isFull || this.queues.find(ownerId, birth, serial) !== undefined) return undefined;
    const owner = this.#numberOf(ownerId);
    const queue = this.queues.create(spilled.attributes, owner, this.#ringOf(owner));
    queue.epoch = spilled.epoch;
    queue.members = spilled.members;
    queue.holder = spilled.holder;
    queue.holderToken = spilled.holderToken;
    queue.highestToken = spilled.highestToken;
    queue.wasClaimed = true;
    queue.mustClaim = spilled.holderToken === 0;
    queue.isClaimOfThisBoot = false;
    this.beginRefill(queue, spilled.number, spilled.digestA, spilled.digestB);
    return queue;
  }

  /** Why the account may not touch the queue behind the handle, or 0. */
  checkHolder(account: GatewayAccount, attachment: Attachment | undefined): number {
    if (attachment === undefined) return REFUSAL_UNKNOWN;
    return mayWrite(attachment.queue, account.id) ? DONE : REFUSAL_FENCED;
  }

  drop(queue: MirroredQueue): void {
    this.queues.drop(queue);
  }

  /**
   * One measured section: `costBytes` as SectionMeasure found it. Without a STORE it costs nothing, and is
   * never refused for memory.
   */
  applySection(
    account: GatewayAccount, queue: MirroredQueue, firstNumber: number, digestA: number, digestB: number,
    view: DataView, rowsAt: number, rowCount: number, payload: Uint8Array, payloadAt: number, costBytes: number,
  ): number {
    const admission = this.admission;
    const isRoom = queue.refilling ? admission.mayRefill(account, costBytes) : admission.mayStore(account, costBytes);
    if (!isRoom) return REFUSAL_LIMIT;
    const { epoch } = queue;
    const reason = this.applier.apply(queue, firstNumber, digestA, digestB, view, rowsAt, rowCount, payload, payloadAt);
    if (reason !== DONE) return reason;
    admission.spend(account, costBytes);
    if (queue.epoch !== epoch) queue.writer.write(account);
    queue.clock = account.clock;
    return DONE;
  }

  /**
   * What next hops said of entries of the queue. Soft: what there is no room for beside mail, and all that
   * was promised to it, is passed over. An entry that was never tried has none; one that is gone takes none.
   */
  keepTexts(queue: MirroredQueue, rows: Uint8Array): void {
    for (let at = 0; at < rows.length; at += TEXT_ROW_BYTES + textBytes(rows, at)) {
      const row = this.entries.find(queue, textPosition(rows, at));
      if (row === 0 || this.entries.noteBytesOf(row) === 0) continue;
      const text = textOf(rows, at);
      if (this.admission.mayLend(TextPool.costOf(text))) this.texts.put(row, text);
      else this.texts.drop(row);
    }
  }

  /** As its holder asks: the queue is emptied, and is filled by this account from here on. */
  fillAnew(account: GatewayAccount, queue: MirroredQueue, number: number, a: number, b: number): void {
    this.beginRefill(queue, number, a, b);
    queue.writer.write(account);
    queue.clock = account.clock;
  }

  beginRefill(queue: MirroredQueue, number: number, a: number, b: number): void {
    this.queues.empty(queue, number, a, b);
    queue.role = ROLE_FILLING;
    queue.refilling = true;
  }

  /** One REFILL frame: out of the account's credit first, beyond it out of the reserve. */
  refill(account: GatewayAccount, queue: MirroredQueue, view: DataView, rowsAt: number, rowCount: number, payload: Uint8Array): number {
    const costBytes = this.refills.costBytes(view, rowsAt, rowCount);
    if (!this.admission.mayRefill(account, costBytes)) return REFUSAL_LIMIT;
    const reason = this.refills.take(queue, view, rowsAt, rowCount, payload);
    if (reason === DONE) this.admission.spend(account, costBytes);
    return reason;
  }

  /**
   * Decides a claim; the queue is undefined when the store does not know it. A holder that speaks a version without
   * leases delivers on without one: nobody else gets its queues.
   */
  claim(account: GatewayAccount, queue: MirroredQueue | undefined, token: number, nowMs: number): ClaimVerdict {
    if (queue === undefined) return { result: CLAIM_UNKNOWN, waitMs: 0 };
    const holder = this.#accounts.get(queue.holder);
    const leaseEndsMs = holder === undefined ? -Infinity : allowsTakeover(holder.version) ? holder.leaseEndsMs : nowMs + this.leaseMs;
    const verdict = claim(queue, account.id, token, nowMs, leaseEndsMs, this.#firstPeriodEndsMs);
    if (verdict.result === CLAIM_GRANTED) queue.writer.claimed(account, token);
    return verdict;
  }

  /** A holder that stands in for the owner hears by the way how long the owner's own lease runs: is it back? */
  confirm(account: GatewayAccount, queue: MirroredQueue | undefined, token: number, nowMs: number): ClaimVerdict {
    if (queue === undefined) return { result: CLAIM_UNKNOWN, waitMs: 0 };
    if (!confirms(queue, account.id, token)) return { result: CLAIM_TOKEN_LOW, waitMs: 0 };
    const { ownerId } = queue.attributes;
    const leaseEndsMs = ownerId === account.id ? -Infinity : this.#accounts.get(ownerId)?.leaseEndsMs ?? -Infinity;
    return { result: CLAIM_GRANTED, waitMs: Math.max(0, Math.ceil(leaseEndsMs - nowMs)) };
  }

  /** `unused`: the asker never served the queue by this claim. */
  release(account: GatewayAccount, queue: MirroredQueue, token: number, unused: boolean): void {
    if (unused) queue.writer.releasedUnused(account, token);
    release(queue, account.id, token);
  }

  /** Visits the queues of a gateway ('' for all) that the asker owns or may claim, behind the cursor. */
  list(account: GatewayAccount, gatewayId: string, cursor: number, visitor: (queue: MirroredQueue, ordinal: number) => boolean): void {
    this.queues.visit(cursor, (queue, ordinal) => {
      if (gatewayId !== '' && queue.attributes.ownerId !== gatewayId) return true;
      if (!mayClaim(queue, account.id)) return true;
      return visitor(queue, ordinal);
    });
  }

  /** What this store is to the queue, in the words of the version that the asker speaks. */
  roleToldTo(account: GatewayAccount, queue: MirroredQueue): number {
    return toldRole(account.version, queue.role, queue.members.includes(this.storeId));
  }

  /** Whether work() has something to do. */
  get hasWork(): boolean {
    return this.queues.hasDiscards || this.segments.hasGaps;
  }

  /** A step of the work that nobody waits for: frees emptied queues, closes gaps in segments. Between turns only; answers whether there is more. */
  work(): boolean {
    if (this.queues.hasDiscards) this.queues.discard(DISCARD_STEP_ENTRIES);
    const moved = this.segments.hasGaps ? this.segments.compact(COMPACT_STEP_BYTES) : 0;
    return this.queues.hasDiscards || (moved > 0 && this.segments.hasGaps);
  }

  /** Lapsed leases give their grants back: a gateway that returns later finds the reserve. Memory that a burst needed is kept for the next, or goes. */
  tick(nowMs: number): void {
    this.segments.rest();
    this.segments.keepStock(nowMs, stockBytesMax(this.admission.limitBytes, this.admission.usedBytes));
    for (const account of this.#accounts.values()) {
      if (account.granted > 0 && account.active === undefined && nowMs > account.leaseEndsMs) this.admission.forget(account);
    }
  }

  #ringOf(owner: number): AppliedChanges {
    let ring = this.#rings.get(owner);
    if (ring === undefined) {
      ring = new AppliedChanges({ bytesMax: this.#ringBytesMax }, { memory: this.admission });
      this.#rings.set(owner, ring);
    }
    return ring;
  }

  #numberOf(gatewayId: string): number {
    const account = this.#accounts.get(gatewayId);
    if (account !== undefined) return account.number;
    const known = this.#strangers.get(gatewayId);
    if (known !== undefined) return known;
    const number = this.#accounts.size + this.#strangers.size + 1;
    this.#strangers.set(gatewayId, number);
    return number;
  }
}

/** A segment is taken whole, when the marks have been looked at: so a small store has small ones. A power of two, as it was. */
function segmentBytesWithin({ segmentBytes, memoryLimitBytes }: StoreOptions): number {
  return Math.max(SEGMENT_BYTES_MIN, Math.min(segmentBytes, 2 ** Math.floor(Math.log2(memoryLimitBytes * SEGMENT_SHARE))));
}

/** Of the memory limit, the most that one segment may have: below what the marks leave between one another. */
const SEGMENT_SHARE = 1 / 128;
const SEGMENT_BYTES_MIN = 4096;
