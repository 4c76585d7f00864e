/**
 * Claimed queues come over, block after block, a few side by side (the paper's section IV.D).
 *
 *   CLAIMED ─ a turn, memory ─► PULL … BLOCK ⟲ ─ block with `end` ─► whole
 *                                 │ source lost or damaged / the next member
 *                                 └─ no member left ─► STRANDED ─ one is back, or has come back with its file ─► CLAIMED
 *
 * A block is asked for only while there is memory for it: above the mark the pull rests, and goes on as mail is
 * delivered and its memory gets free. So a process may take over more than it can hold: what has not come yet
 * stays at the stores, in order, and cannot be overtaken, because blocks come by ascending position.
 */
import type { EventLog, Packer } from '../platform/ports.js';
import { ENTRY_ROW_BYTES, entryBodyBytes } from '../protocol/entry-rows.js';
import { PULL } from '../protocol/message-types.js';
import type { Block } from '../protocol/messages/block.js';
import { encodePull } from '../protocol/messages/pull.js';
import { forceCommand } from './force.js';
import type { QueueJob } from './queue-job.js';
import type { StoreViews } from './store-views.js';

export interface PullOptions {
  readonly blockEntries: number;
  readonly blockBytes: number;
  /** The largest message that clients may send: a block has one entry at least, whatever its size. */
  readonly largestBytes?: number;
}

export interface PullPorts {
  readonly packer: Packer;
  readonly log: EventLog;
  readonly views: StoreViews;
  nowMs(): number;
  needFlush(): void;
  /** Whether one more block of a queue, our own or another gateway's, may come now, with so many on their way and this much arrived that is not counted yet. */
  mayPull(isOwn: boolean, pulling: number, inHandBytes: number): boolean;
  /**
   * Entry rows by ascending position, their payloads and texts; false when a checksum is wrong: another
   * mirror is asked.
   */
  onBlock(handle: number, rows: Uint8Array, bodies: Uint8Array, texts: Uint8Array, lastSource: boolean): boolean;
  /** Stores whose copy is a whole one up to this number, restarted since or not; undefined while one may be there that has not said so yet. */
  copiesUpTo(handle: number, number: number): readonly string[] | undefined;
  /** The queue is whole, or no more of it can be had. */
  onWhole(job: QueueJob): void;
}

const PULLS_AT_ONCE = 8;
/**
 * Entries of the first block; each later one may have twice as many, up to the block size. Code that has not run yet
 * takes ten times as long for an entry, in one turn; and the first delivery waits for the first block alone.
 */
const FIRST_ENTRIES = 64;
/** What this software adds to a message that was as large as it may be: trace headers, the text of a report around it. */
const ADDED_BYTES = 64 * 1024;

export class Pulls {
  private readonly options: PullOptions;
  private readonly ports: PullPorts;
  /** CLAIMED, PULLING and STRANDED jobs in the order of their claims. */
  private readonly jobs = new Set<QueueJob>();
  private entriesMax = FIRST_ENTRIES;
  private largeTold = false;

  constructor(options: PullOptions, ports: PullPorts) {
    this.options = options;
    this.ports = ports;
  }

  /** The queue is claimed; its turn comes. */
  add(job: QueueJob): void {
    this.jobs.add(job);
    this.start();
  }

  remove(job: QueueJob): void {
    this.jobs.delete(job);
  }

  /** Begins what may begin, and goes on where memory was short. */
  start(): void {
    let pulling = this.askedCount;
    for (const job of this.jobs) {
      if (pulling >= PULLS_AT_ONCE) return;
      if (job.state === 'claimed') job.transition('pulling');
      else if (job.state !== 'pulling' || job.asked) continue;
      this.pull(job);
      if (job.asked) pulling += 1;
    }
  }

  /** A queue that is only partly back goes on from any member that still has it; damaged ones come last. */
  resumeStranded(allListed: boolean): void {
    for (const job of this.jobs) {
      if (job.state !== 'stranded') continue;
      const copies = this.ports.copiesUpTo(job.handle, job.until);
      // Back with its file, and continued: it has what it had when it granted the claim.
      for (const storeId of copies ?? []) {
        const row = job.rows.get(storeId);
        if (row !== undefined && !job.claims.has(storeId)) job.claims.set(storeId, row);
      }
      const sound = [...job.claims.keys()].filter((id) => !job.damaged.has(id));
      const source = (sound.length > 0 ? sound : [...job.claims.keys()]).find((id) => this.isUsable(job, id));
      if (source !== undefined) {
        job.source = source;
        job.isRestGone = false;
        job.transition('claimed');
      } else if (job.claims.size === 0 && allListed && copies !== undefined) this.onRestGone(job);
    }
  }

  /** The operator goes on without the rest. */
  giveUpRest(job: QueueJob, reason: string): void {
    if (job.state === 'stranded') this.endStranded(job, 'the rest of a queue is given up by an operator: what it held is lost', reason);
  }

  onStoreDown(storeId: string): void {
    for (const job of this.jobs) if (job.state === 'pulling' && job.source === storeId) this.nextSource(job, 'its store is gone');
  }

  onRefusal(job: QueueJob, storeId: string): void {
    if (job.state === 'pulling' && job.source === storeId) this.nextSource(job, 'it refused');
  }

  onBlock(storeId: string, block: Block, bodies: Uint8Array, jobOf: (handle: number) => QueueJob | undefined): void {
    const job = jobOf(block.handle);
    if (job === undefined || job.state !== 'pulling' || !job.asked) return;
    if (job.source !== storeId || block.afterPosition !== job.cursor) return;
    this.tellLarge(job, block.rows, bodies.length);
    const before = job.cursor;
    job.cursor = block.nextPosition;
    job.asked = false;
    if (this.entriesMax < this.options.blockEntries) this.entriesMax *= 2;
    // The next block travels while this one is taken in, if there is memory for both.
    if (!block.end) {
      this.pull(job, block.rows.length + bodies.length);
      this.ports.views.get(job.source)?.store.flush();
    }
    if (!this.ports.onBlock(job.handle, block.rows, bodies, block.texts, job.sources.length === 0)) {
      job.cursor = before;
      job.damaged.add(storeId);
      this.nextSource(job, 'it holds a damaged message');
      return;
    }
    if (!block.end) return;
    job.transition('done');
    this.jobs.delete(job);
    this.ports.onWhole(job);
    this.start();
  }

  /** Blocks on their way. */
  private get askedCount(): number {
    let asked = 0;
    for (const job of this.jobs) if (job.state === 'pulling' && job.asked) asked += 1;
    return asked;
  }

  private pull(job: QueueJob, inHandBytes = 0): void {
    const view = this.ports.views.get(job.source);
    if (view === undefined || !this.isUsable(job, job.source)) {
      this.nextSource(job, 'its store is gone');
      return;
    }
    if (!this.ports.mayPull(job.isOwn, this.askedCount, inHandBytes)) {
      this.tellShort(job);
      return;
    }
    job.asked = true;
    const { blockEntries, blockBytes } = this.options;
    const control = encodePull(this.ports.packer, {
      handle: job.handle, afterPosition: job.cursor, untilPosition: job.until,
      entriesMax: Math.min(blockEntries, this.entriesMax), bytesMax: blockBytes, bodies: true,
    });
    view.store.request(PULL, control, [], 0);
    this.ports.needFlush();
  }

  /** Not for a block that others on their way hold up: their end is near. */
  private tellShort(job: QueueJob): void {
    if (job.shortTold || this.askedCount > 0) return;
    job.shortTold = true;
    this.ports.log.info('recovery', 'a queue that comes back waits at its stores: this gateway has no memory for it; it goes on as mail is delivered', { queue: job.name, owner: job.ownerId, from: job.cursor });
  }

  /** Nobody tells a gateway what clients of another may send: that it is more shows in such a message. Once a process. */
  private tellLarge(job: QueueJob, rows: Uint8Array, bodyBytes: number): void {
    const { largestBytes = 0 } = this.options;
    if (this.largeTold || largestBytes === 0 || bodyBytes <= largestBytes + ADDED_BYTES) return;
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    let bytes = 0;
    for (let at = 0; at + ENTRY_ROW_BYTES <= rows.length; at += ENTRY_ROW_BYTES) bytes = Math.max(bytes, entryBodyBytes(view, at));
    if (bytes <= largestBytes + ADDED_BYTES) return;
    this.largeTold = true;
    this.ports.log.warn('recovery', 'a message that comes back is larger than message_size_limit here: all gateways of a group need the same, or one that takes over goes beyond its memory limit by the difference', { queue: job.name, owner: job.ownerId, bytes, message_size_limit: largestBytes });
  }

  private nextSource(job: QueueJob, why: string): void {
    const lost = job.source;
    const next = job.sources.shift();
    job.asked = false;
    if (next === undefined) {
      job.transition('stranded');
      job.missingSinceMs = this.ports.nowMs();
      this.ports.log.error('recovery', 'a queue is only partly back and no other mirror has the rest; start the store that had it', { queue: job.name, owner: job.ownerId, store: lost, why, from: job.cursor });
      return;
    }
    this.ports.log.warn('recovery', 'going on from another mirror', { queue: job.name, store: lost, next, why });
    job.source = next;
    this.pull(job);
  }

  /**
   * No store has the rest any more. Of a queue that no other gateway may claim it is lost. Else its gateway may have
   * all of it in memory, or its rescuer if it is ours, and would give that up for a newer set of ours: it waits for an operator to
   * say which of the two goes on.
   */
  private onRestGone(job: QueueJob): void {
    if (!job.mayBeOthers) {
      this.endStranded(job, 'the rest of a queue is lost: every store that had it has restarted', '');
      return;
    }
    if (job.isRestGone) return;
    job.isRestGone = true;
    this.ports.log.error('recovery', 'no store has the rest of this queue any more: every one that had it has restarted; the gateway that had it may have all of it in memory, if it lives: go on there, or here without the rest by the command', { queue: job.name, owner: job.ownerId, gateway: job.otherMemory, from: job.cursor, command: forceCommand(job, job.source) });
  }

  private endStranded(job: QueueJob, text: string, reason: string): void {
    this.ports.log.error('recovery', text, { queue: job.name, owner: job.ownerId, from: job.cursor, ...(reason === '' ? {} : { reason }) });
    job.transition('done');
    this.jobs.delete(job);
    this.ports.onWhole(job);
  }

  /** Whether the store is there and has what it had when it granted the claim. */
  private isUsable(job: QueueJob, storeId: string): boolean {
    return job.claims.has(storeId) && this.ports.views.get(storeId)?.store.isUp === true;
  }
}
