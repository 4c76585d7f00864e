/**
 * All mirrored queues of a store by identity, and the chains of entries that left a queue as a whole (DROP,
 * REFILL_BEGIN, a DELETE of very many) and are freed a few at a time, so that a million of them never stop the store.
 *
 * Owns: identities, keys (salts of entries, never used twice), order of listing.
 */

import type { AppliedChanges } from './applied-changes.js';
import { DroppedQueues } from './dropped-queues.js';
import type { StoredEntries } from './stored-entries.js';
import type { QueueAttributes } from './mirrored-queue.js';
import { MirroredQueue } from './mirrored-queue.js';

/** Mirrored queues of one store. A gateway keeps about a thousand; the number bounds tables, not memory of mail. */
const QUEUES_MAX = 65_536;

export class QueueTable {
  readonly #byIdentity = new Map<string, MirroredQueue>();
  /** By order of creation, for listing in pages. */
  readonly #byOrdinal = new Map<number, MirroredQueue>();
  readonly #ordinals = new Map<MirroredQueue, number>();
  #nextOrdinal = 1;
  #nextKey = 1;
  readonly #dropped = new DroppedQueues();
  readonly #entries: StoredEntries;
  /** First rows of chains to be freed. */
  readonly #discards: number[] = [];

  constructor(parts: { readonly entries: StoredEntries }) {
    this.#entries = parts.entries;
  }

  get count(): number {
    return this.#byIdentity.size;
  }

  get isFull(): boolean {
    return this.count >= QUEUES_MAX;
  }

  find(ownerId: string, birth: number, serial: number): MirroredQueue | undefined {
    return this.#byIdentity.get(identity(ownerId, birth, serial));
  }

  create(attributes: QueueAttributes, ownerAccount: number, ring: AppliedChanges): MirroredQueue {
    const queue = new MirroredQueue(attributes, ownerAccount, this.#takeKey(), ring);
    this.#byIdentity.set(identity(attributes.ownerId, attributes.birth, attributes.serial), queue);
    this.#byOrdinal.set(this.#nextOrdinal, queue);
    this.#ordinals.set(queue, this.#nextOrdinal);
    this.#nextOrdinal += 1;
    return queue;
  }

  /** Whether it was here, claimed, and dropped since the store started. */
  wasDropped(ownerId: string, birth: number, serial: number): boolean {
    return this.#dropped.has(identity(ownerId, birth, serial));
  }

  drop(queue: MirroredQueue): void {
    const { ownerId, birth, serial } = queue.attributes;
    const key = identity(ownerId, birth, serial);
    this.empty(queue, 0, 0, 0);
    this.#byIdentity.delete(key);
    if (queue.wasClaimed) this.#dropped.add(key);
    const ordinal = this.#ordinals.get(queue);
    this.#ordinals.delete(queue);
    if (ordinal !== undefined) this.#byOrdinal.delete(ordinal);
  }

  /** The queue stands empty at this number; its old entries are freed by discard(). */
  empty(queue: MirroredQueue, number: number, a: number, b: number): void {
    if (queue.first !== 0) this.#discards.push(queue.first);
    queue.restart(this.#takeKey(), number, a, b);
  }

  /** A chain that was cut out of its queue. */
  discardLater(first: number): void {
    this.#discards.push(first);
  }

  get hasDiscards(): boolean {
    return this.#discards.length > 0;
  }

  /** Frees up to `most` entries of emptied queues. */
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

  /** Queues behind the cursor in order of creation; the visitor answers false to stop. */
  visit(cursor: number, visitor: (queue: MirroredQueue, ordinal: number) => boolean): void {
    for (const [ordinal, queue] of this.#byOrdinal) {
      if (ordinal > cursor && !visitor(queue, ordinal)) return;
    }
  }

  #takeKey(): number {
    const key = this.#nextKey;
    this.#nextKey = (this.#nextKey + 1) >>> 0;
    return key;
  }
}

function identity(ownerId: string, birth: number, serial: number): string {
  return `${String(birth)}/${String(serial)}/${ownerId}`;
}
