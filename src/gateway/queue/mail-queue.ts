/**
 * One queue of a gateway: which entries stand in it, in which order, and which of them may be tried now. A
 * queue is a label on entries of one partition; entries of one name in two partitions are two queues
 * (queue-registry.ts).
 *
 * Two orders over the same rows:
 *   position order  every entry, by the number of the change that stored it (position-order.ts)
 *   ready list      committed entries that are due, in the order in which they first became due (G3)
 * While the partition comes back from a store, entries that came back are ready before those accepted
 * meanwhile: the latter wait in the late list, which endRecovery() appends.
 *
 * A strict queue has at most one head that holds it (G3): an entry that was tried and is to be tried again.
 *
 *   nobody ─ blockBy(row, until) ─► held by row ─ its time has come, takeReady() ─► nobody, row in flight
 *                                       └ unblock(row), unlink(row): it ended or went away ─► nobody
 *
 * Whatever happens to other entries leaves the queue held: each call names the row it speaks of.
 *
 * What an order is about to end, or to lead elsewhere, is kept back (orders/keeping-back.ts): in a list of
 * its own, so that what stands behind it may go, until it is let go, one by one, and stands in front again.
 * Of a strict queue nothing is: it stands.
 *
 * An entry of a strict queue that an operator ends in part before its turn keeps its place in the ready list
 * while that is reported (REPORTING): what stands behind it waits there.
 *
 * Owns: list links, counts, the head of a strict queue. Not here: numbers and mirrors
 * (mirror/set/partition.ts), contents (content-store.ts), what results mean (settlement.ts).
 */
import { invariant } from '../../base/invariant.js';
import type { SecuredFacts } from '../../platform/transport.js';
import type { Partition } from '../mirror/set/partition.js';
import type { EntryTable } from './entry-table.js';
import { EntryState } from './entry-table.js';
import { PositionOrder } from '../mirror/set/position-order.js';
import type { DeliveryQueue, Route } from '../mail-types.js';

/** A doubly linked list of rows through two columns. 0 ends it. */
interface RowList {
  head: number;
  tail: number;
}

/** In the column `delayed`, of what is kept back; the second was back from an attempt that never began. */
const KEPT = 1;
const KEPT_RETURNED = 2;

export interface MailQueueOptions {
  /** Of the queue in this process: names its entries in the table. */
  readonly handle: number;
  readonly route: Route;
  readonly routed: boolean;
}

export class MailQueue implements DeliveryQueue {
  readonly handle: number;
  readonly partition: Partition;
  readonly route: Route;
  readyCount = 0;
  inFlightCount = 0;
  deferredCount = 0;
  /** Of those, what an operator delays. */
  delayedCount = 0;
  heldCount = 0;
  /** False when no route of the configuration leads out of it: its mail is held. */
  readonly routed: boolean;
  lastError = '';
  /** Recipients tried, and those of them refused for good, since somebody looked (hurting-queues.ts). */
  triedCount = 0;
  refusedCount = 0;
  lastRefusal = '';
  /** What the last connection that it used had of TLS; undefined: none yet. */
  lastTls: SecuredFacts | 'none' | undefined;
  /** Already on the list of queues that outbound is to look at. */
  isWoken = false;
  /** Younger than what may still come back of its name: nothing is handed out before (queue-registry.ts). */
  isBehind = false;
  /** An attempt from it keeps its partition from going to another process: nothing more is started. */
  isHeldBack = false;
  /** An operator wants nothing started from it (orders/queue-rules.ts). */
  isSuspended = false;
  /** Of a route by MX: the hosts of its site, as far as the DNS was asked (outbound/mx-destination.ts). */
  mxHosts: readonly string[] = [];
  /** Since when it has been empty; Infinity while it is not, or nobody has looked. */
  emptySinceMs = Infinity;
  /** When its home was looked at last (queue-registry.ts). */
  homeSeenMs = -Infinity;
  /** The head that holds a strict queue, 0 = none, and until which monotonic time; Infinity: till it says. */
  #head = 0;
  #headUntilMs = 0;
  readonly #table: EntryTable;
  readonly #order: PositionOrder;
  readonly #ready: RowList = { head: 0, tail: 0 };
  readonly #late: RowList = { head: 0, tail: 0 };
  /** Kept back, in the order in which they were ready; readyCount has none of them. */
  readonly #kept: RowList = { head: 0, tail: 0 };
  /** Of those, the next to be let go, or to stay; 0: none. */
  #toJudge = 0;
  /** The last one that was let go, or what stands before it now; 0: nothing does. */
  #letGoLast = 0;
  /** The first so many of the ready list, at most, are back from attempts that never began. */
  #returnedCount = 0;
  /** So many of those that are kept back, which are the first. */
  #keptReturnedCount = 0;

  constructor(options: MailQueueOptions, partition: Partition, table: EntryTable) {
    this.handle = options.handle;
    this.partition = partition;
    this.route = options.route;
    this.routed = options.routed;
    this.#table = table;
    this.#order = new PositionOrder(table.queueColumns);
  }

  get name(): string {
    return this.route.queueName;
  }

  /** Name and class as its entries carry them. */
  get label(): string {
    return this.route.label;
  }

  /** Whose mail it is. */
  get ownerId(): string {
    return this.partition.ownerId;
  }

  /** Of a queue of the same label that retires: else one that moves each second would count nothing. */
  addTried({ triedCount, refusedCount, lastRefusal }: MailQueue): void {
    if (this.refusedCount === 0) this.lastRefusal = lastRefusal;
    this.triedCount += triedCount;
    this.refusedCount += refusedCount;
  }

  /** Entries in any state. */
  get length(): number {
    return this.#order.length;
  }

  /** Bytes of content and head of those. */
  get bytes(): number {
    return this.#order.bytes;
  }

  /** Entries of its partition are still missing. */
  get isRecovering(): boolean {
    return this.partition.isRecovering;
  }

  /** Monotonic time before which a strict queue hands nothing out, because its head holds it; 0 = free. */
  get blockedUntilMs(): number {
    return this.#headUntilMs;
  }

  /** First entry by position, 0 when empty. */
  get first(): number {
    return this.#order.first;
  }

  /** Unix seconds at which the oldest entry arrived, 0 when empty. */
  get oldestArrivalSeconds(): number {
    return this.#order.first === 0 ? 0 : this.#table.arrivalSeconds.get(this.#order.first);
  }

  following(row: number): number {
    return this.#order.following(row);
  }

  /** A live entry at the end of both orders. */
  append(row: number, bytes: number): void {
    this.partition.order.append(row, bytes);
    this.#order.append(row, bytes);
    this.emptySinceMs = Infinity;
  }

  /** A recovered entry behind the last recovered one, in front of all that came since. */
  appendRecovered(row: number, bytes: number): void {
    this.partition.order.appendRecovered(row, bytes);
    this.#order.appendRecovered(row, bytes);
    this.emptySinceMs = Infinity;
  }

  /** All entries are back: what was accepted meanwhile may follow. */
  endRecovery(): void {
    this.#order.endRecovery();
    if (this.#late.head === 0) return;
    if (this.#ready.tail === 0) this.#ready.head = this.#late.head;
    else {
      this.#table.readyNext.set(this.#ready.tail, this.#late.head);
      this.#table.readyPrevious.set(this.#late.head, this.#ready.tail);
    }
    this.#ready.tail = this.#late.tail;
    for (let row = this.#late.head; row !== 0; row = this.#table.readyNext.get(row)) this.readyCount += 1;
    this.#late.head = 0;
    this.#late.tail = 0;
  }

  /** Takes the entry out of both orders; no other list has it. Answers the one behind it in the partition. */
  unlink(row: number, bytes: number): number {
    this.unblock(row);
    this.#order.unlink(row, bytes);
    return this.partition.order.unlink(row, bytes);
  }

  /** An entry waits for its due time; `isDelayed`: which an operator has set. */
  countDeferred(row: number, isDelayed: boolean): void {
    this.deferredCount += 1;
    if (!isDelayed) return;
    this.delayedCount += 1;
    this.#table.delayed.set(row, 1);
  }

  /** It does so no more. */
  uncountDeferred(row: number): void {
    this.deferredCount -= 1;
    if (this.#table.delayed.get(row) === 0) return;
    this.delayedCount -= 1;
    this.#table.delayed.set(row, 0);
  }

  /**
   * The entry became due. `recovered`: it came back from a store just now. One that came back before and is
   * due again stands in front of all that is still to come: it must not wait for that, which may wait for the
   * memory it takes.
   */
  makeReady(row: number, recovered: boolean): void {
    this.#table.transition(row, EntryState.READY);
    if (this.partition.isRecovering && !recovered && !this.#order.hasComeBack(row)) {
      this.#link(this.#late, row, this.#late.tail);
      return;
    }
    this.#link(this.#ready, row, this.#ready.tail);
    this.readyCount += 1;
  }

  /**
   * The entry is among the next again: a strict queue's head, or attempts that never began. Those that come
   * back together keep the order of their positions, and go before all others: so whoever overtakes one of
   * them was in flight beside it. The walk is bounded by how many can be out.
   */
  makeReadyFirst(row: number): void {
    this.#table.transition(row, EntryState.READY);
    this.#pushFirst(row);
  }

  #pushFirst(row: number): void {
    this.#insert(this.#ready, row, this.#returnedCount);
    this.readyCount += 1;
    this.#returnedCount += 1;
  }

  /** Among the first so many by its position, and before all others. */
  #insert(list: RowList, row: number, among: number): void {
    const table = this.#table;
    const position = table.position.get(row);
    let previous = 0;
    let next = list.head;
    for (let left = among; left > 0 && next !== 0; left -= 1) {
      if (table.position.get(next) >= position) break;
      previous = next;
      next = table.readyNext.get(next);
    }
    this.#link(list, row, previous);
  }

  /** Behind another one; 0: before all. */
  #link(list: RowList, row: number, previous: number): void {
    const { readyNext, readyPrevious } = this.#table;
    const next = previous === 0 ? list.head : readyNext.get(previous);
    readyPrevious.set(row, previous);
    readyNext.set(row, next);
    if (previous === 0) list.head = row;
    else readyNext.set(previous, row);
    if (next === 0) list.tail = row;
    else readyPrevious.set(next, row);
  }

  /** The next entry is kept back: those behind it may be tried. */
  keepBack(row: number): void {
    const isReturned = this.#returnedCount > 0;
    this.#unlinkReady(row);
    this.#table.delayed.set(row, isReturned ? KEPT_RETURNED : KEPT);
    if (!isReturned) {
      this.#link(this.#kept, row, this.#kept.tail);
      return;
    }
    this.#returnedCount -= 1;
    this.#insert(this.#kept, row, this.#keptReturnedCount);
    this.#keptReturnedCount += 1;
  }

  /** Some is kept back. */
  get keepsAny(): boolean {
    return this.#kept.head !== 0;
  }

  /** What is kept back is judged anew, from the first on. */
  beginToLetGo(): void {
    this.#toJudge = this.#kept.head;
    this.#letGoLast = 0;
  }

  /**
   * The next that is kept back stays so, or stands where it stood: before all but attempts that never began,
   * and behind those that were let go before it. False: there is none any more.
   */
  letGoNext(staysBack: (row: number) => boolean): boolean {
    const row = this.#toJudge;
    if (row === 0) return false;
    if (staysBack(row)) {
      this.#toJudge = this.#table.readyNext.get(row);
      return true;
    }
    const isReturned = this.#table.delayed.get(row) === KEPT_RETURNED;
    this.#unlinkReady(row);
    if (isReturned) this.#pushFirst(row);
    else {
      this.#link(this.#ready, row, this.#placeOfLetGo());
      this.readyCount += 1;
      this.#letGoLast = row;
    }
    return true;
  }

  /** Behind which the next one is to stand that is let go. */
  #placeOfLetGo(): number {
    const last = this.#letGoLast;
    if (last !== 0 && !this.#isReturned(last)) return last;
    let previous = 0;
    let next = this.#ready.head;
    for (let left = this.#returnedCount; left > 0 && next !== 0; left -= 1) {
      previous = next;
      next = this.#table.readyNext.get(next);
    }
    return previous;
  }

  /** The entry heads a strict queue, which hands nothing out until then: first to be tried, or reported. */
  blockBy(row: number, untilMs: number): void {
    invariant(this.route.ordering === 'strict', 'only a strict queue is held by its head');
    this.#head = row;
    this.#headUntilMs = untilMs;
  }

  /** Some entry is the head that holds the queue. */
  get isBlocked(): boolean {
    return this.#head !== 0;
  }

  isBlockedBy(row: number): boolean {
    return this.#head === row;
  }

  /** The entry holds the queue no more; false when it did not. */
  unblock(row: number): boolean {
    if (this.#head !== row) return false;
    this.#head = 0;
    this.#headUntilMs = 0;
    return true;
  }

  /** The next entry that may be tried; 0 when there is none. */
  nextReady(nowMs: number): number {
    if (this.isSuspended || this.isBehind || this.isHeldBack || this.partition.isLeaving) return 0;
    if (this.#headUntilMs > nowMs) return 0;
    const { head } = this.#ready;
    if (this.route.ordering !== 'strict' || head === 0) return head;
    return this.inFlightCount > 0 || this.#table.state(head) !== EntryState.READY ? 0 : head;
  }

  /** It stands in a ready list: READY, or REPORTING where it keeps its place. */
  hasPlace(row: number): boolean {
    return row === this.#ready.head || row === this.#late.head || row === this.#kept.head
      || this.#table.readyPrevious.get(row) !== 0;
  }

  /** Of what is due, whether it may be tried now or not; 0 when there is none. */
  get firstReady(): number {
    return this.#ready.head;
  }

  /** The one that is ready behind it; 0 at the end. */
  readyBehind(row: number): number {
    return this.#table.readyNext.get(row);
  }

  /** The next entry that may be tried, now IN_FLIGHT; 0 when there is none. */
  takeReady(nowMs: number): number {
    const row = this.nextReady(nowMs);
    if (row === 0) return 0;
    this.#unlinkReady(row);
    if (this.#returnedCount > 0) this.#returnedCount -= 1;
    this.unblock(row);
    this.#table.transition(row, EntryState.IN_FLIGHT);
    this.inFlightCount += 1;
    return row;
  }

  /** Takes an entry that has a place out of whichever ready list it is in, before its turn. */
  removeReady(row: number): void {
    if (this.#isReturned(row)) this.#returnedCount -= 1;
    this.#unlinkReady(row);
  }

  /** Whether the entry is one of the first of the ready list that are back from attempts that never began. */
  #isReturned(row: number): boolean {
    let at = this.#ready.head;
    for (let step = 0; step < this.#returnedCount && at !== 0; step++) {
      if (at === row) return true;
      at = this.#table.readyNext.get(at);
    }
    return false;
  }

  #unlinkReady(row: number): void {
    const table = this.#table;
    const previous = table.readyPrevious.get(row);
    const next = table.readyNext.get(row);
    const list = this.#listOf(row);
    if (row === this.#toJudge) this.#toJudge = next;
    if (row === this.#letGoLast) this.#letGoLast = previous;
    if (previous === 0) list.head = next;
    else table.readyNext.set(previous, next);
    if (next === 0) list.tail = previous;
    else table.readyPrevious.set(next, previous);
    table.readyPrevious.set(row, 0);
    table.readyNext.set(row, 0);
    if (list === this.#ready) this.readyCount -= 1;
    if (list !== this.#kept) return;
    if (table.delayed.get(row) === KEPT_RETURNED) this.#keptReturnedCount -= 1;
    table.delayed.set(row, 0);
  }

  #listOf(row: number): RowList {
    if (this.#kept.head !== 0 && this.#table.delayed.get(row) !== 0) return this.#kept;
    return this.#isLate(row) ? this.#late : this.#ready;
  }

  /** The late list exists only during recovery, so only then is a walk to its head ever needed. */
  #isLate(row: number): boolean {
    if (this.#late.head === 0) return false;
    let at = row;
    const { readyPrevious } = this.#table;
    let previous: number;
    while ((previous = readyPrevious.get(at)) !== 0) at = previous;
    return at === this.#late.head;
  }
}
