/**
 * Bodies that deliveries of recovered mail need, and what memory has room for: asks for those of the next in
 * a queue, and gives back those of attempts that ended, or that another copy was filled with, while memory is
 * short. So what lies before a next hop that does not answer never keeps the memory that the others need.
 *
 *   take: the next has no body ─► wanted soon, with as many as may be in flight (memory short: few) ─► none
 *   an attempt ended, and the entry stays ─ memory is short, the stores have it ─► its body goes
 *   a refill has sent it (mirror/feed/resync.ts) ─ likewise ─► its body goes (absent-bodies.ts)
 *   likewise, memory too short for envelopes ─ every copy has what became of it ─► head and note go, too,
 *                                              unless a report of it is put aside (report-job.ts)
 *   it came, and whoever wanted it is gone, or only looked at it ─ a while later ─► likewise
 */
import type { Partition } from '../mirror/set/partition.js';
import type { Entries } from './entries.js';
import { EntryState, NEVER_SECONDS } from './entry-table.js';
import type { MailQueue } from './mail-queue.js';
import type { MemoryGauge } from './memory-gauge.js';
import { owesReportIn } from './note.js';

/** Of one queue while memory is short, unless the next is larger by itself. */
const SHORT_BYTES = 16 * 1024;
/** Of which the copies do not have all yet; heads of more than these stay here. */
const LEAVING_MAX = 16_384;
/** What came is used within that time, or asked for again: a delivery begins, an operator asks once more. */
const KEPT_MS = 5_000;

/** An entry as it was: its row may be another's by now. */
interface Known {
  readonly partition: Partition;
  readonly row: number;
  readonly position: number;
  readonly messageId: number;
}

/** Its head goes when every copy has the change of this number: its note is not newer. */
interface Leaving extends Known {
  readonly noteChecksum: number;
  readonly number: number;
}

interface Came extends Known {
  readonly atMs: number;
}

export class DueBodies {
  readonly #ports: { readonly entries: Entries; readonly memory: MemoryGauge };
  #leaving: Leaving[] = [];
  /** While memory was short, oldest first. */
  #came: Came[] = [];
  #nowMs = 0;

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
      bytes += entries.absent.sizeOf(next);
      if (isShort && i > 0 && bytes > SHORT_BYTES) break;
      entries.absent.wantSoon(queue.partition, next);
    }
    return false;
  }

  /** It is here, for somebody who wanted it. */
  onCame(partition: Partition, row: number): void {
    if (partition.isPartial && this.#isShort(partition)) {
      this.#came.push({ ...this.#known(partition, row), atMs: this.#nowMs });
    }
  }

  /** The attempt of a message is over: it has ended, or waits for the next. */
  onAttempted(queue: MailQueue, row: number, messageId: number): void {
    const { entries } = this.#ports;
    if (entries.table.index.find(messageId, queue.handle) === row) this.onUsed(queue.partition, row);
  }

  /** What needed it, needs it no more: it goes, unless something here works on it. */
  onUsed(partition: Partition, row: number): void {
    const { entries, memory } = this.#ports;
    if (!partition.isPartial || entries.isAbsent(row)) return;
    if (!this.#mayGo(partition, row) || !this.#isShort(partition)) return;
    const isTooShort = memory.usedBytes + entries.absent.askedBytes > memory.entriesBytes(partition.isOwn)
      && !owesReportIn(entries.note(row));
    if (isTooShort && partition.ackedNumber >= partition.lastNumber) entries.dropAll(partition, row);
    else {
      entries.dropBody(partition, row);
      if (isTooShort) this.#leave(partition, row);
    }
  }

  /** Called a few times in a tenth of a second. */
  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#giveBack();
    if (this.#leaving.length === 0) return;
    const leaving = this.#leaving;
    this.#leaving = [];
    for (const one of leaving) {
      if (one.partition.ackedNumber < one.number && one.partition.isPartial) this.#leaving.push(one);
      else this.#goes(one);
    }
  }

  #giveBack(): void {
    let count = 0;
    for (const { atMs } of this.#came) {
      if (this.#nowMs - atMs < KEPT_MS) break;
      count += 1;
    }
    if (count === 0) return;
    for (const one of this.#came.splice(0, count)) if (this.#isSame(one)) this.onUsed(one.partition, one.row);
  }

  /** Unless it is wanted again meanwhile, here already, or the row is another's. */
  #goes(leaving: Leaving): void {
    const { partition, row, noteChecksum } = leaving;
    const { entries } = this.#ports;
    const { absent } = entries;
    if (!partition.isPartial || !this.#isSame(leaving)) return;
    if (!entries.isAbsent(row) || entries.isAllAbsent(row) || absent.isAsked(partition, row)) return;
    if (!this.#mayGo(partition, row) || owesReportIn(entries.note(row))) return;
    // Something became of it since then: not every copy may have that.
    if (entries.noteChecksum(row) !== noteChecksum) this.#leave(partition, row);
    else entries.dropAll(partition, row);
  }

  #leave(partition: Partition, row: number): void {
    if (this.#leaving.length >= LEAVING_MAX) return;
    const { entries } = this.#ports;
    this.#leaving.push({
      ...this.#known(partition, row), noteChecksum: entries.noteChecksum(row), number: partition.lastNumber,
    });
  }

  #known(partition: Partition, row: number): Known {
    const { table } = this.#ports.entries;
    return { partition, row, position: table.position.get(row), messageId: table.messageId(row) };
  }

  #isSame({ row, position, messageId }: Known): boolean {
    const { table } = this.#ports.entries;
    return table.position.get(row) === position && table.messageId(row) === messageId;
  }

  /** It rests, and the stores have it. */
  #mayGo(partition: Partition, row: number): boolean {
    const { table, absent } = this.#ports.entries;
    if (!absent.isAtStores(partition, row)) return false;
    const state = table.state(row);
    // What can't be read is held and never expires: what the stores have of it may be no better.
    const isSoundlyHeld = state === EntryState.HELD && table.expirySeconds.get(row) !== NEVER_SECONDS;
    return state === EntryState.READY || state === EntryState.DEFERRED || isSoundlyHeld;
  }

  #isShort(partition: Partition): boolean {
    const { memory, entries } = this.#ports;
    return memory.usedBytes + entries.absent.askedBytes > memory.restBytes(partition.isOwn);
  }
}
