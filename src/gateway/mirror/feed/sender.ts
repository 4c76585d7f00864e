/**
 * From what a turn changed to what goes to each store: seals the sections of dirty partitions, keeps them in
 * the ring, and puts them into the outboxes of the mirrors that are fed.
 *
 *   onDirty … flush ─► seal ─┬─► ring (change-ring.ts)
 *                            └─► each copy that is fed ─► outbox (outbox.ts) ─► one write
 *
 * DELETEs of what was delivered, for which nobody waits, go with the changes of the next turns when nothing
 * else is to be sent (mayWait): alone they were nearly half of all frames at full load, each of which wakes a
 * store, and is answered.
 *
 * Not here: which mirrors are fed (mirrors.ts), what a refill sends (resync.ts).
 */
import type { Packer } from '../../../platform/ports.js';
import { ChangeRing } from './change-ring.js';
import { FeedVariant } from './feed-variant.js';
import { ChangesEncoder, Outbox } from '../link/outbox.js';
import { PayloadSlabs } from './payload-slabs.js';
import type { OnTheWay } from './payload-slabs.js';
import type { DirtySink, Partition } from '../set/partition.js';
import type { CopyFeed } from './copy-feed.js';
import { FillPhase } from './copy-feed.js';
import type { StorePort } from '../link/store-port.js';
import { TextFeed } from './text-feed.js';
import type { SealedSection } from './turn-section.js';

/** Turns that DELETEs alone wait. In an idle process they pass at once; at full load the next go along. */
export const DELETE_TURNS_MAX = 2;

export interface SenderOptions {
  readonly frameTargetBytes: number;
  readonly ringBytes: number;
}

export interface SenderPorts {
  readonly packer: Packer;
  partitionOf(handle: number): Partition | undefined;
  storeOf(storeId: string): StorePort | undefined;
  /** What memory leaves for the changes that are kept. */
  ringRoomBytes(): number;
  /** Called when the first change of a turn needs a flush at its end. */
  requestFlush(): void;
}

export class Sender implements DirtySink, OnTheWay {
  readonly slabs = new PayloadSlabs(this);
  readonly ring: ChangeRing;
  readonly outboxes = new Map<StorePort, Outbox>();
  readonly texts: TextFeed;
  readonly #options: SenderOptions;
  readonly #ports: SenderPorts;
  readonly #encoder: ChangesEncoder;
  readonly #variant = new FeedVariant();
  #dirty: Partition[] = [];
  #spareDirty: Partition[] = [];
  #flushAsked = false;
  /** Something is to be sent at the end of this turn. */
  #isPressing = false;
  #turnsWaited = 0;
  /** Credit that changes in sections not yet sealed will use, at any store. */
  #unsealedCreditBytes = 0;

  constructor(options: SenderOptions, ports: SenderPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#encoder = new ChangesEncoder(ports.packer);
    this.texts = new TextFeed(ports.packer);
    this.ring = new ChangeRing({ bytesMax: options.ringBytes }, {
      releasableThrough: (handle) => ports.partitionOf(handle)?.releasableNumber ?? Number.MAX_SAFE_INTEGER,
      roomBytes: () => ports.ringRoomBytes(),
      onReleased: (section) => { for (const slab of section.slabs) this.slabs.release(slab); },
    });
  }

  addStore(store: StorePort): void {
    const { frameTargetBytes } = this.#options;
    this.outboxes.set(store, new Outbox({ frameTargetBytes }, this.#encoder, store));
  }

  get backlogBytes(): number {
    let bytes = 0;
    for (const outbox of this.outboxes.values()) bytes += outbox.backlogBytes;
    return bytes;
  }

  /** Changes kept for mirrors that lack them, or may come back, those of this turn included. */
  get changeBytes(): number {
    return this.ring.usedBytes + this.#unsealedCreditBytes;
  }

  /** What changeBytes grows by when this turn's changes are sealed: for who may use the last of memory. */
  get uncountedBytes(): number {
    let bytes = 0;
    for (const partition of this.#dirty) bytes += partition.uncountedBytes;
    return bytes;
  }

  /** OnTheWay, over all stores. */
  mark(): boolean {
    for (const outbox of this.outboxes.values()) if (!outbox.mark()) return false;
    return true;
  }

  get isPast(): boolean {
    for (const outbox of this.outboxes.values()) if (!outbox.isPastMark) return false;
    return true;
  }

  /** The connection that carried the requests to this store is gone. */
  onConnectionLost(store: StorePort): void {
    this.outboxes.get(store)?.clear();
    this.slabs.onConnectionLost();
  }

  onAdopted(partition: Partition): void {
    this.ring.begin(partition.handle, partition.lastNumber, partition.digest.a, partition.digest.b);
  }

  onDirty(partition: Partition): void {
    this.#dirty.push(partition);
    this.#ask();
  }

  onPressing(): void {
    this.#isPressing = true;
  }

  onLarge(partition: Partition): void {
    this.seal(partition);
  }

  onCharged(creditBytes: number): void {
    this.#isPressing = true;
    this.#unsealedCreditBytes += creditBytes;
  }

  creditOf(store: StorePort): number {
    return store.credit - this.#unsealedCreditBytes - (this.outboxes.get(store)?.creditBytes ?? 0);
  }

  askFlush(): void {
    this.#isPressing = true;
    this.#ask();
  }

  /** At the end of a turn: true when all there is to send may go with what the next turn brings. */
  mayWait(): boolean {
    if (this.#isPressing || this.#dirty.length === 0 || this.#turnsWaited >= DELETE_TURNS_MAX) return false;
    this.#turnsWaited += 1;
    return true;
  }

  /** What is asked for from here on waits for the next flush. */
  beginFlush(): void {
    this.#flushAsked = false;
    this.#isPressing = false;
    this.#turnsWaited = 0;
  }

  #ask(): void {
    if (this.#flushAsked) return;
    this.#flushAsked = true;
    this.#ports.requestFlush();
  }

  sealDirty(): void {
    while (this.#dirty.length > 0) {
      const dirty = this.#dirty;
      this.#dirty = this.#spareDirty;
      this.#spareDirty = dirty;
      for (const partition of dirty) this.seal(partition);
      dirty.length = 0;
    }
    for (const outbox of this.outboxes.values()) outbox.close();
    this.#encoder.forget();
  }

  seal(partition: Partition): void {
    const section = partition.seal();
    if (section === undefined) return;
    this.#unsealedCreditBytes -= section.creditBytes;
    // A partition that is held no more has no changes.
    if (this.#ports.partitionOf(partition.handle) !== partition) return;
    this.ring.add(section);
    for (const row of partition.rows) {
      const feed = partition.feedOf(row);
      if (feed.getsChanges) this.#put(feed, section);
    }
    partition.set?.onAppended();
  }

  storeOf(storeId: string): StorePort | undefined {
    return this.#ports.storeOf(storeId);
  }

  #put(feed: CopyFeed, section: SealedSection): void {
    if (feed.store === undefined) return;
    const isPartial = feed.fill === FillPhase.SENDING && feed.fillCursor < feed.fillBase;
    const sent = isPartial ? this.#variant.of(section, feed.fillCursor, feed.fillBase) : section;
    this.outboxes.get(feed.store)?.put(sent);
  }
}
