/**
 * Which bodies of a partition that comes back are still at the stores, which of them are wanted here, and
 * which are on their way. An entry without its body stands in its queue with all else that is known of it
 * (entries.ts): it is counted, listed, held, deleted as any other. Where memory is too short even for that,
 * head and note stay at the stores, too: what is here is its place in the queue, its times and sizes. What is
 * missing is asked for, all of it, when something needs it:
 *
 *   ABSENT ─ first: a delivery is due (handing-out.ts) ─────────► ASKED ─ it came, sound ──────────► here
 *     ▲      then: a report, its expiry, an export                  │ └─ gone or damaged at all ─► here, HELD
 *     │      then: another copy is filled (resync.ts)               │
 *     │      last, while memory is plenty: by position ───────────► │
 *     ├── the source is away, or another is read ◄──────────────────┘
 *     └── memory is short, an attempt ended or a refill sent it, the stores have it ◄── here
 *
 * A partition is no copy before all its bodies are here (rule 14 of docs/model). Not here: who asks the
 * stores (recovery/readings.ts), how much memory there is for it (ownership/holdings.ts). Pure bookkeeping.
 */
import type { Partition } from '../mirror/set/partition.js';
import type { EntryTable } from './entry-table.js';

/** In an entry's place for a shared content: the body is still at the stores. */
export const ABSENT = 0xffff_ffff;
/** Likewise, and head and note with it: in the record's place stands how large the head is. */
export const ALL_ABSENT = 0xffff_fffe;

/** What is needed soon, but by nobody who waits: more of that is asked for when these are here. */
const LATER_MAX = 64;
/** Memory short for so long is other mail's, which does not go: a large body that is wanted comes alone. */
const STUCK_MS = 2_000;
/** Below it a body comes however short memory is. */
export const SMALL_BYTES = 64 * 1024;
/** Wanted bodies without room that are passed over in one look for smaller ones. */
const PASSED_MAX = 1024;
/** Entries looked at in one call for the next by position: half a millisecond. */
const WALK_MAX = 65_536;

/** How much may be asked for now. */
export interface BodyRoom {
  readonly countMax: number;
  readonly bytesMax: number;
  /** Memory for what is wanted, and for what nobody waits for. */
  readonly wantedBytes: number;
  readonly restBytes: number;
  /** One that is wanted may come whatever its size. */
  readonly mayTakeOne: boolean;
  /** One of this size may come where nothing else helps. */
  readonly aloneBytes: number;
  readonly nowMs: number;
}

class PartitionBodies {
  /** Entries that came from the stores stand up to here; later ones were made here. */
  readonly untilPosition: number;
  count = 0;
  /** Rows by turn. */
  readonly soon = new Set<number>();
  readonly later = new Set<number>();
  readonly toRefill = new Set<number>();
  /** Position → row, and their bytes. */
  readonly asked = new Map<number, number>();
  askedBytes = 0;
  /** Where the walk by position goes on; 0: at the first. */
  cursor = 0;
  /** Since when a body is wanted that has no room, and no large one came. */
  shortSinceMs = Infinity;

  constructor(untilPosition: number) {
    this.untilPosition = untilPosition;
  }
}

export class AbsentBodies {
  /** Of bodies on their way. */
  askedBytes = 0;
  /** Bodies that are still at the stores. */
  count = 0;
  /** A delivery, or a refill, has come to wait for one. */
  isAwaited = false;
  readonly #table: EntryTable;
  readonly #partitions = new Map<Partition, PartitionBodies>();

  constructor(table: EntryTable) {
    this.#table = table;
  }

  begin(partition: Partition, untilPosition: number): void {
    this.#partitions.set(partition, new PartitionBodies(untilPosition));
  }

  /** All is here, or nothing of it concerns us any more. */
  end(partition: Partition): void {
    const bodies = this.#partitions.get(partition);
    if (bodies === undefined) return;
    this.#partitions.delete(partition);
    this.askedBytes -= bodies.askedBytes;
    this.count -= bodies.count;
  }

  countOf(partition: Partition): number {
    return this.#partitions.get(partition)?.count ?? 0;
  }

  /** Whether the stores that are read have the entry, so that its body may go from here. */
  isAtStores(partition: Partition, row: number): boolean {
    const bodies = this.#partitions.get(partition);
    return bodies !== undefined && this.#table.position.get(row) <= bodies.untilPosition;
  }

  onAbsent(partition: Partition): void {
    const bodies = this.#partitions.get(partition);
    if (bodies === undefined) return;
    bodies.count += 1;
    this.count += 1;
  }

  /** It came: said while its row has still the mark. */
  onHere(partition: Partition, row: number): void {
    const bodies = this.#partitions.get(partition);
    if (bodies === undefined) return;
    this.#leave(bodies, row);
    bodies.count -= 1;
    this.count -= 1;
  }

  /** The entry leaves the partition's order. */
  onUnlinked(partition: Partition, row: number, following: number, isAbsent: boolean): void {
    if (this.#partitions.size === 0) return;
    const bodies = this.#partitions.get(partition);
    if (bodies === undefined) return;
    if (bodies.cursor === row) bodies.cursor = following;
    if (isAbsent) this.onHere(partition, row);
  }

  /** It is on its way. */
  isAsked(partition: Partition, row: number): boolean {
    return this.#partitions.get(partition)?.asked.has(this.#table.position.get(row)) === true;
  }

  /** What it will take here when it comes. */
  sizeOf(row: number): number {
    const { bodyBytes, shared, slot, note } = this.#table;
    const bytes = bodyBytes.get(row);
    return shared.get(row) === ALL_ABSENT ? bytes + slot.get(row) + (note.get(row) & 0xffff) : bytes;
  }

  /** A delivery waits for it. */
  wantSoon(partition: Partition, row: number): void {
    const bodies = this.#partitions.get(partition);
    if (bodies === undefined || bodies.asked.has(this.#table.position.get(row))) return;
    bodies.later.delete(row);
    bodies.toRefill.delete(row);
    bodies.soon.add(row);
    this.isAwaited = true;
  }

  /** Whoever needs it comes back for it. */
  wantLater(partition: Partition, row: number): void {
    const bodies = this.#partitions.get(partition);
    if (bodies === undefined || bodies.later.size >= LATER_MAX) return;
    if (!bodies.soon.has(row) && !bodies.asked.has(this.#table.position.get(row))) bodies.later.add(row);
  }

  /** A refill stands at it, or soon will (recovery/refill-source.ts). */
  wantToRefill(partition: Partition, row: number): void {
    const bodies = this.#partitions.get(partition);
    if (bodies === undefined || bodies.asked.has(this.#table.position.get(row))) return;
    if (bodies.soon.has(row) || bodies.later.has(row) || bodies.toRefill.has(row)) return;
    bodies.toRefill.add(row);
    this.isAwaited = true;
  }

  /** Takes what is to be asked for next: positions, ascending. `withRest`: also what nobody waits for. */
  next(partition: Partition, room: BodyRoom, withRest: boolean): readonly number[] {
    const bodies = this.#partitions.get(partition);
    if (bodies === undefined || bodies.count === bodies.asked.size) return [];
    const positions: number[] = [];
    let bytes = 0;
    let passed = 0;
    const aloneBytes = room.nowMs - bodies.shortSinceMs >= STUCK_MS ? room.aloneBytes : 0;
    for (const wanted of [bodies.soon, bodies.later, bodies.toRefill]) {
      for (const row of wanted) {
        const size = this.sizeOf(row);
        const isFirst = positions.length === 0;
        if (positions.length >= room.countMax || (!isFirst && bytes + size > room.bytesMax)) break;
        if (bytes + size > room.wantedBytes && !(isFirst && (room.mayTakeOne || size <= aloneBytes))) {
          // A large one that has no room holds no small one up.
          passed += 1;
          if (passed >= PASSED_MAX) break;
          continue;
        }
        wanted.delete(row);
        bytes += size;
        if (bytes <= room.wantedBytes && size >= SMALL_BYTES) bodies.shortSinceMs = Infinity;
        positions.push(this.#ask(bodies, row, size));
      }
    }
    if (passed === 0) bodies.shortSinceMs = Infinity;
    else if (bodies.shortSinceMs === Infinity) bodies.shortSinceMs = room.nowMs;
    if (withRest) this.#addRest(partition, bodies, positions, bytes, room);
    return positions.sort((a, b) => a - b);
  }

  /** The row that was asked for at this position; 0 when it has ended meanwhile. */
  askedAt(partition: Partition, position: number): number {
    return this.#partitions.get(partition)?.asked.get(position) ?? 0;
  }

  /** Rows asked for up to here. */
  askedUntil(partition: Partition, untilPosition: number): readonly number[] {
    const rows: number[] = [];
    for (const [position, row] of this.#partitions.get(partition)?.asked ?? []) {
      if (position <= untilPosition) rows.push(row);
    }
    return rows;
  }

  /** What was asked for and has not come is asked for again, first. */
  askAgain(partition: Partition): void {
    const bodies = this.#partitions.get(partition);
    if (bodies === undefined) return;
    for (const row of bodies.asked.values()) bodies.soon.add(row);
    bodies.asked.clear();
    this.askedBytes -= bodies.askedBytes;
    bodies.askedBytes = 0;
  }

  #addRest(
    partition: Partition, bodies: PartitionBodies, positions: number[], wantedBytes: number, room: BodyRoom,
  ): void {
    const table = this.#table;
    const { order } = partition;
    let bytes = wantedBytes;
    let row = bodies.cursor === 0 ? order.first : bodies.cursor;
    for (let left = WALK_MAX; left > 0 && row !== 0; left -= 1, row = order.following(row)) {
      if (table.shared.get(row) < ALL_ABSENT || bodies.asked.has(table.position.get(row))) continue;
      const size = this.sizeOf(row);
      if (positions.length >= room.countMax || bytes + size > room.restBytes) break;
      if (positions.length > 0 && bytes + size > room.bytesMax) break;
      bodies.soon.delete(row);
      bodies.later.delete(row);
      bodies.toRefill.delete(row);
      bytes += size;
      positions.push(this.#ask(bodies, row, size));
    }
    bodies.cursor = row;
  }

  #ask(bodies: PartitionBodies, row: number, size: number): number {
    const position = this.#table.position.get(row);
    bodies.asked.set(position, row);
    bodies.askedBytes += size;
    this.askedBytes += size;
    return position;
  }

  #leave(bodies: PartitionBodies, row: number): void {
    bodies.soon.delete(row);
    bodies.later.delete(row);
    bodies.toRefill.delete(row);
    if (!bodies.asked.delete(this.#table.position.get(row))) return;
    const size = this.sizeOf(row);
    bodies.askedBytes -= size;
    this.askedBytes -= size;
  }
}
