/**
 * Bodies that deliveries of recovered mail need, and what memory has room for: asks for those of the next in
 * a queue, and gives back those of attempts that ended, or that another copy was filled with, while memory is
 * short. So what lies before a next hop that does not answer never keeps the memory that the others need.
 *
 *   take: the next has no body ─► wanted soon, with as many as may be in flight (memory short: few) ─► none
 *   an attempt ended, and the entry stays ─ memory is short, the stores have it ─► its body goes
 *   a refill has sent it (mirror/resync.ts) ─ likewise ─► its body goes (absent-bodies.ts)
 */
import type { Partition } from '../mirror/partition.js';
import type { Entries } from './entries.js';
import { EntryState, NEVER_SECONDS } from './entry-table.js';
import type { MailQueue } from './mail-queue.js';
import type { MemoryGauge } from './memory-gauge.js';

/** Of one queue while memory is short, unless the next is larger by itself. */
const SHORT_BYTES = 16 * 1024;

export class DueBodies {
  readonly #ports: { readonly entries: Entries; readonly memory: MemoryGauge };

  constructor(ports: { readonly entries: Entries; readonly memory: MemoryGauge }) {
    this.#ports = ports;
  }

  /** Whether the next entry can be sent now; else its body is asked for, and the queue woken with it. */
  isHere(queue: MailQueue, row: number): boolean {
    const { entries } = this.#ports;
    if (!entries.isAbsent(row)) return true;
    const isShort = this.#isShort(queue.partition);
    const { ordering, concurrency } = queue.route;
    // What is in flight gives memory back first; its end wakes the queue.
    if (isShort && queue.inFlightCount > 0) return false;
    const free = ordering === 'strict' ? 1 : concurrency - queue.inFlightCount;
    let bytes = 0;
    let next = row;
    for (let i = 0; i < free && next !== 0; i += 1, next = queue.readyBehind(next)) {
      if (!entries.isAbsent(next)) continue;
      bytes += entries.table.bodyBytes.get(next);
      if (isShort && i > 0 && bytes > SHORT_BYTES) break;
      entries.absent.wantSoon(queue.partition, next);
    }
    return false;
  }

  /** The attempt of a message is over: it has ended, or waits for the next. */
  onAttempted(queue: MailQueue, row: number, messageId: number): void {
    const { entries } = this.#ports;
    if (entries.table.index.find(messageId, queue.handle) === row) this.onRefilled(queue.partition, row);
  }

  /** A copy that is being filled has it: its body goes, unless something here works on it. */
  onRefilled(partition: Partition, row: number): void {
    const { table, absent } = this.#ports.entries;
    if (!partition.isPartial || this.#ports.entries.isAbsent(row)) return;
    if (!absent.isAtStores(partition, row) || !this.#isShort(partition)) return;
    const state = table.state(row);
    // What can't be read is held and never expires: what the stores have of it may be no better.
    const isSoundlyHeld = state === EntryState.HELD && table.expirySeconds.get(row) !== NEVER_SECONDS;
    if (state !== EntryState.READY && state !== EntryState.DEFERRED && !isSoundlyHeld) return;
    this.#ports.entries.dropBody(partition, row);
  }

  #isShort(partition: Partition): boolean {
    const { memory, entries } = this.#ports;
    return memory.usedBytes + entries.absent.askedBytes > memory.restBytes(partition.isOwn);
  }
}
