/**
 * All partitions that a store knows: fences, copies of those that it holds, and the chains of entries that
 * left a copy as a whole (TELL, FENCE, a DELETE of very many) and are freed a few at a time, so that a
 * million of them never stop the store.
 *
 * Owns: names, keys (salts of entries, never used twice), order of listing.
 */

import type { AppliedChanges } from './applied-changes.js';
import { MirroredPartition } from './mirrored-partition.js';
import { PartitionFence } from './ownership/partition-fence.js';
import type { ProcessLeases } from './ownership/process-leases.js';
import type { StoredEntries } from './stored-entries.js';

/** Copies of one store: 16 of each of a hundred gateways are 1,600. It bounds tables, not memory of mail. */
const COPIES_MAX = 16_384;
/**
 * With those of partitions that have no copy here. Past it the oldest of these is forgotten: nobody counts on
 * a store without a copy, so nobody's lease is waited for there, and what it was told others know too.
 */
const FENCES_MAX = 2 * COPIES_MAX;

export interface PartitionTableOptions {
  /** For tests; the constants above otherwise. */
  readonly copiesMax?: number;
  /** Leases of a boot that was carried on by file may run until then (partition-fence.ts). */
  readonly inheritedEndsMs: number;
}

export class PartitionTable {
  readonly #copiesMax: number;
  readonly #fencesMax: number;
  readonly #inheritedEndsMs: number;
  readonly #entries: StoredEntries;
  readonly #leases: ProcessLeases;
  readonly #fences = new Map<string, PartitionFence>();
  /** In the order in which they were made. */
  readonly #copies = new Map<string, MirroredPartition>();
  #nextOrdinal = 1;
  #nextKey = 1;
  /** First rows of chains to be freed. */
  readonly #discards: number[] = [];

  constructor(
    options: PartitionTableOptions,
    parts: { readonly entries: StoredEntries; readonly leases: ProcessLeases },
  ) {
    this.#copiesMax = options.copiesMax ?? COPIES_MAX;
    this.#fencesMax = options.copiesMax === undefined ? FENCES_MAX : 2 * options.copiesMax;
    this.#inheritedEndsMs = options.inheritedEndsMs;
    this.#entries = parts.entries;
    this.#leases = parts.leases;
  }

  /** Copies. */
  get count(): number {
    return this.#copies.size;
  }

  get fenceCount(): number {
    return this.#fences.size;
  }

  get isFull(): boolean {
    return this.count >= this.#copiesMax;
  }

  find(partition: string): MirroredPartition | undefined {
    return this.#copies.get(partition);
  }

  /** To look at: what nothing is known of is not kept by it. */
  peek(partition: string): PartitionFence {
    return this.#fences.get(partition) ?? new PartitionFence(partition, this.#leases, this.#inheritedEndsMs);
  }

  /** To change. */
  fenceOf(partition: string): PartitionFence {
    const fence = this.peek(partition);
    if (this.#fences.has(partition)) return fence;
    if (this.#fences.size >= this.#fencesMax) this.#forgetOldest();
    this.#fences.set(partition, fence);
    return fence;
  }

  /** A new copy, empty and incomplete at number 0. */
  create(fence: PartitionFence, ownerAccount: number, ring: AppliedChanges): MirroredPartition {
    const copy = new MirroredPartition(fence, ownerAccount, this.#nextOrdinal, this.#takeKey(), ring);
    this.#copies.set(fence.partition, copy);
    this.#nextOrdinal += 1;
    return copy;
  }

  /** The fence stays. */
  drop(copy: MirroredPartition): void {
    this.empty(copy, 0, 0, 0);
    copy.isGone = true;
    this.#copies.delete(copy.partition);
  }

  /** The copy stands empty at this number; its old entries are freed by discard(). */
  empty(copy: MirroredPartition, number: number, a: number, b: number): void {
    if (copy.first !== 0) this.#discards.push(copy.first);
    copy.restart(this.#takeKey(), number, a, b);
  }

  /** A chain that was cut out of its copy. */
  discardLater(first: number): void {
    this.#discards.push(first);
  }

  get hasDiscards(): boolean {
    return this.#discards.length > 0;
  }

  /** Frees up to `most` entries of emptied copies. */
  discard(most: number): void {
    let left = most;
    while (left > 0) {
      const first = this.#discards.pop();
      if (first === undefined) return;
      const step = Math.min(left, 1024);
      const rest = this.#entries.discardChain(first, step);
      if (rest !== 0) this.#discards.push(rest);
      left -= step;
    }
  }

  copies(): IterableIterator<MirroredPartition> {
    return this.#copies.values();
  }

  fences(): IterableIterator<PartitionFence> {
    return this.#fences.values();
  }

  #forgetOldest(): void {
    for (const partition of this.#fences.keys()) {
      if (this.#copies.has(partition)) continue;
      this.#fences.delete(partition);
      return;
    }
  }

  #takeKey(): number {
    const key = this.#nextKey;
    this.#nextKey = (this.#nextKey + 1) >>> 0;
    return key;
  }
}
