/**
 * The partitions that a gateway serves, and the queues in them: by route, by handle, by name.
 *
 *   new mail ─► queue of its route ─ none yet ──────────────────► made in the quietest partition (homes.ts)
 *                     │ its partition can't take mail: fifo ────► a younger one in another partition (detour)
 *                     │                               strict ──► refused for now (451)
 *                     └ empty for RETIRE_MS ────────────────────► retired: at the mirrors its label is gone
 *   recovery ─► label of each entry ─► queue of that label in the partition that comes back
 *
 * A route may have more than one queue: one that came back after mail to it had been accepted, or whose
 * partition could not take mail. New mail goes to the youngest, which hands nothing out before the older ones
 * have started all they have (`isBehind`). While own partitions are still to come, what they hold is not
 * known: a new fifo queue is behind until all are whole; a strict one is not made.
 *
 * Queues in partitions of other gateways stand apart: no new mail goes there but reports about their own.
 */
import { Round } from '../../base/round.js';
import type { EventLog } from '../../platform/ports.js';
import type { PartitionHolder } from '../../recovery/ownership/holder.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { Partition, PartitionOptions } from '../mirror/set/partition.js';
import type { Expected } from '../ownership/expected.js';
import type { EntryTable } from './entry-table.js';
import { quietest, shouldMove } from './homes.js';
import { MailQueue } from './mail-queue.js';
import type { Place } from './queue-walk.js';
import type { PlaceRefusal, Route } from '../mail-types.js';

export interface RegistryOptions {
  readonly queuesMax: number;
}

export interface RegistryPorts {
  readonly table: EntryTable;
  readonly mirrors: Mirrors;
  readonly log: EventLog;
  nowMs(): number;
  /** Whether a partition of ours is still to come. */
  expected(): Expected;
  /** Partitions of ours are with other processes, which hand them back. */
  isAwaitedBack(): boolean;
  /** An operator wants nothing started from queues of this name. */
  isSuspended(route: Route): boolean;
  /** An order of an operator waits for the mail of this partition. */
  isUnderOrder(partition: Partition): boolean;
  wake(queue: MailQueue): void;
}

/** An empty queue is kept so long for what may come next. */
const RETIRE_MS = 60_000;
const QUEUES_PER_TICK = 1024;
/** How often what was stored lately is halved. */
const HALVE_MS = 1000;
/** An empty queue looks for another home at most this often. */
const MOVE_LOOK_MS = 1000;

export class QueueRegistry {
  /** Served here, of whatever gateway. */
  readonly partitions: Partition[] = [];
  /** Times that a queue took new mail in another partition because its own could not. */
  detours = 0;
  readonly #options: RegistryOptions;
  readonly #ports: RegistryPorts;
  /** Own queues of a label, the youngest last. */
  readonly #byLabel = new Map<string, MailQueue[]>();
  readonly #byHandle: (MailQueue | undefined)[] = [];
  readonly #freeHandles: number[] = [];
  readonly #behind = new Set<MailQueue>();
  readonly #round = new Round<MailQueue>({ partMax: QUEUES_PER_TICK });
  /** Mail queues in partitions of this gateway. */
  #ownCount = 0;
  #halvedMs = 0;

  constructor(options: RegistryOptions, ports: RegistryPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** Every queue, with holes where some have gone. */
  get byHandle(): readonly (MailQueue | undefined)[] {
    return this.#byHandle;
  }

  /** Those that are served here: what is still to be freed of others is no mail of ours. */
  *queues(): IterableIterator<MailQueue> {
    for (const queue of this.#byHandle) if (queue?.partition.isForgotten === false) yield queue;
  }

  /** Every entry of the message that is served here. */
  *placesOf(messageId: number): Generator<Place, void, undefined> {
    for (const queue of this.queues()) {
      const row = this.#ports.table.index.find(messageId, queue.handle);
      if (row !== 0) yield { queue, row };
    }
  }

  get queueCount(): number {
    return this.#byHandle.length - this.#freeHandles.length - (this.#byHandle.length > 0 ? 1 : 0);
  }

  queueOf(row: number): MailQueue | undefined {
    return this.#byHandle[this.#ports.table.queueHandle(row)];
  }

  /** The queue that new mail of a route goes to, if there is one. */
  find(route: Route): MailQueue | undefined {
    return this.#byLabel.get(route.label)?.at(-1);
  }

  get isFull(): boolean {
    return this.#ownCount >= this.#options.queuesMax;
  }

  /** Some partition of ours takes new mail now. */
  canTake(): boolean {
    return this.partitions.some((one) => one.isOwn && this.#mayTake(one));
  }

  /**
   * Where new mail of a route may go: its queue, a partition that is to have one, or why it may go nowhere.
   * Makes nothing. What can't commit is told before any limit: it closes the port.
   */
  placeFor(route: Route): MailQueue | Partition | PlaceRefusal {
    const known = this.find(route);
    const isStrict = route.ordering === 'strict';
    if (known !== undefined) {
      if (this.#mayTake(known.partition)) {
        // What came back elsewhere would be older than new mail of an empty queue.
        const mayBeYounger = known.length === 0 && isStrict && !known.partition.isRecovering;
        return mayBeYounger && !this.#knowsAll() ? 'recovering' : known;
      }
      if (known.length > 0 && isStrict) return 'short';
    }
    const home = this.#chooseHome(route);
    if (home === undefined) {
      if (this.canTake()) return 'short';
      return this.#ports.isAwaitedBack() ? 'rescued' : 'no-store';
    }
    if (isStrict && !this.#knowsAll()) return 'recovering';
    return known === undefined && this.isFull ? 'queues' : home;
  }

  /** The queue that new mail of the route goes to, made now if need be; undefined when it may go nowhere. */
  findOrCreate(route: Route): MailQueue | undefined {
    const place = this.placeFor(route);
    if (typeof place === 'string') return undefined;
    if (place instanceof MailQueue) return place.length === 0 ? this.#emptyOne(place) : place;
    const known = this.find(route);
    const queue = this.queueIn(place, route, true);
    if (known !== undefined) this.#leave(known, queue);
    else if (!this.#knowsAll()) this.#putBehind(queue);
    return queue;
  }

  /**
   * The queue with this route's label in this partition, made now if need be. `isOlder`: what it gets is
   * older than mail that was accepted in other partitions meanwhile.
   */
  queueIn(partition: Partition, route: Route, routed: boolean, isOlder = false): MailQueue {
    const { label } = route;
    const known = partition.queues.get(label);
    if (known !== undefined) return known;
    const queue = this.#make(partition, route, routed);
    if (!partition.isOwn) return queue;
    const parts = this.#byLabel.get(label);
    if (parts === undefined) this.#byLabel.set(label, [queue]);
    // What comes back is older than what was accepted meanwhile.
    else if (isOlder || partition.isRecovering) {
      this.#noteBeside(partition, parts);
      parts.unshift(queue);
    }
    else parts.push(queue);
    return queue;
  }

  /**
   * The queue of this route in this partition for mail that an operator leads into it; new mail goes where it
   * went. Undefined: there are too many.
   */
  ledInto(partition: Partition, route: Route): MailQueue | undefined {
    const { label } = route;
    const known = partition.queues.get(label);
    if (known?.routed === true) return known;
    if (known !== undefined || (partition.isOwn && this.isFull)) return undefined;
    const queue = this.#make(partition, route, true);
    if (!partition.isOwn) return queue;
    const parts = this.#byLabel.get(label);
    if (parts === undefined) this.#byLabel.set(label, [queue]);
    else parts.unshift(queue);
    return queue;
  }

  #make(partition: Partition, route: Route, routed: boolean): MailQueue {
    const handle = this.#freeHandles.pop() ?? Math.max(1, this.#byHandle.length);
    const queue = new MailQueue({ handle, route, routed }, partition, this.#ports.table);
    queue.isSuspended = this.#ports.isSuspended(route);
    this.#byHandle[handle] = queue;
    partition.queues.set(route.label, queue);
    if (partition.isOwn) this.#ownCount += 1;
    return queue;
  }

  /** Mail of the queue was taken in another partition before this one was back: in no order to it (G3). */
  #noteBeside(partition: Partition, parts: readonly MailQueue[]): void {
    const beside = parts.at(-1);
    if (beside === undefined || beside.length === 0) return;
    this.detours += 1;
    this.#ports.log.info('detour', 'a queue that comes back took new mail in another partition meanwhile', {
      queue: beside.name, partition: partition.name, now_in: beside.partition.name,
    });
  }

  /** A partition that is taken or founded; the caller says where it stands. */
  adopt(options: PartitionOptions, holder: PartitionHolder): Partition {
    const partition = this.#ports.mirrors.create(options, holder, this.#ports.table.partitionColumns);
    partition.isUnderOrder = this.#ports.isUnderOrder(partition);
    this.partitions.push(partition);
    return partition;
  }

  /** The partition is served here no more. Its queues keep their handles until release(). */
  remove(partition: Partition): void {
    const at = this.partitions.indexOf(partition);
    if (at < 0) return;
    this.partitions.splice(at, 1);
    for (const queue of partition.queues.values()) this.#forgetRoute(queue);
    this.#ports.mirrors.remove(partition);
  }

  /** No entry names the queue any more. */
  release(queue: MailQueue): void {
    this.#byHandle[queue.handle] = undefined;
    this.#freeHandles.push(queue.handle);
  }

  byName(name: string): MailQueue[] {
    const isNamed = (queue: MailQueue): boolean =>
      queue.name === name || `${queue.name}/${queue.route.queueClass}` === name;
    return [...this.queues()].filter(isNamed);
  }

  /** The partition of this name, or those with a queue of it. */
  partitionsOf(name: string): readonly Partition[] {
    const named = this.partitions.filter((partition) => partition.name === name);
    return named.length > 0 ? named : [...new Set(this.byName(name).map((queue) => queue.partition))];
  }

  /** Called a few times a second. */
  tick(nowMs: number): void {
    if (nowMs - this.#halvedMs >= HALVE_MS) {
      this.#halvedMs = nowMs;
      for (const partition of this.partitions) partition.recentBytes /= 2;
    }
    for (const queue of this.#behind) if (this.#isNext(queue)) this.#goOn(queue);
    for (const queue of this.#round.next(this.#byHandle)) this.#retireEmpty(queue, nowMs);
  }

  /** All that our partitions hold is known here. */
  #knowsAll(): boolean {
    return this.#ports.expected() === '' && !this.partitions.some((one) => one.isOwn && one.isRecovering);
  }

  #mayTake(partition: Partition): boolean {
    return partition.mayTake(this.#ports.nowMs());
  }

  /** Where older mail of the queue waits, new mail would not stand behind what a younger one has. */
  #usable(route: Route): readonly Partition[] {
    const isEmpty = ({ queues }: Partition): boolean => (queues.get(route.label)?.length ?? 0) === 0;
    return this.partitions.filter((one) => one.isOwn && this.#mayTake(one) && isEmpty(one));
  }

  /** The partition for a new queue. */
  #chooseHome(route: Route): Partition | undefined {
    const usable = this.#usable(route);
    const withRoom = usable.filter((one) => one.credit > 0);
    return quietest(withRoom.length > 0 ? withRoom : usable);
  }

  /** Mail of an empty queue may still come back in another partition: new mail is older than none of that. */
  #emptyOne(queue: MailQueue): MailQueue {
    if (this.#knowsAll()) return this.#atBetterHome(queue);
    if (!queue.partition.isRecovering) this.#putBehind(queue);
    return queue;
  }

  /** An empty queue may live elsewhere. */
  #atBetterHome(queue: MailQueue): MailQueue {
    const { route, partition } = queue;
    const nowMs = this.#ports.nowMs();
    if (nowMs - queue.homeSeenMs < MOVE_LOOK_MS) return queue;
    queue.homeSeenMs = nowMs;
    const usable = this.partitions.filter((one) => one.isOwn && this.#mayTake(one) && one.credit > 0);
    const isFull = partition.credit <= 0 && usable.length > 0;
    if (!isFull && (!usable.includes(partition) || !shouldMove(partition, usable))) return queue;
    const home = quietest(usable.filter((one) => (one.queues.get(route.label)?.length ?? 0) === 0));
    if (home === undefined || home === partition) return queue;
    const moved = this.queueIn(home, route, true);
    moved.homeSeenMs = nowMs;
    this.#leave(queue, moved);
    return moved;
  }

  /** New mail goes to another partition: behind what the old queue has, which is retired when it has none. */
  #leave(old: MailQueue, queue: MailQueue): void {
    if (old === queue) return;
    const parts = this.#byLabel.get(queue.label);
    if (parts !== undefined && parts.at(-1) !== queue) {
      parts.splice(parts.indexOf(queue), 1);
      parts.push(queue);
    }
    if (old.length === 0) {
      if (!this.#knowsAll()) this.#putBehind(queue);
      else if (!old.isWoken) this.#retire(old);
      return;
    }
    this.detours += 1;
    this.#ports.log.warn('detour', 'a queue takes new mail in another partition: its own can not take any', {
      queue: queue.name, partition: old.partition.name, now_in: queue.partition.name, waiting: old.length,
    });
    this.#putBehind(queue);
  }

  #putBehind(queue: MailQueue): void {
    queue.isBehind = true;
    this.#behind.add(queue);
  }

  /** Nothing older of its route is left to be started. */
  #isNext(queue: MailQueue): boolean {
    if (this.#ports.expected() === 'soon') return false;
    if (this.partitions.some((one) => one.isOwn && one.isRecovering)) return false;
    for (const older of this.#byLabel.get(queue.label) ?? []) {
      if (older === queue) return true;
      if (older.readyCount > 0 || older.inFlightCount > 0) return false;
    }
    return true;
  }

  #goOn(queue: MailQueue): void {
    this.#behind.delete(queue);
    queue.isBehind = false;
    this.#ports.wake(queue);
  }

  #retireEmpty(queue: MailQueue, nowMs: number): void {
    if (queue.length > 0 || queue.inFlightCount > 0 || queue.isWoken || queue.partition.isRecovering) return;
    if (!this.partitions.includes(queue.partition)) return;
    if (queue.emptySinceMs === Infinity) queue.emptySinceMs = nowMs;
    else if (nowMs - queue.emptySinceMs >= RETIRE_MS) this.#retire(queue);
  }

  /**
   * What was tried, and nobody has looked at, goes on with the queue that takes its mail now. A queue without
   * one has been empty for RETIRE_MS, and was looked at in that time.
   */
  #retire(queue: MailQueue): void {
    queue.partition.queues.delete(queue.label);
    this.#forgetRoute(queue);
    this.find(queue.route)?.addTried(queue);
    this.release(queue);
  }

  #forgetRoute(queue: MailQueue): void {
    this.#behind.delete(queue);
    if (!queue.partition.isOwn) return;
    this.#ownCount -= 1;
    const parts = this.#byLabel.get(queue.label);
    const at = parts?.indexOf(queue) ?? -1;
    if (parts === undefined || at < 0) return;
    parts.splice(at, 1);
    if (parts.length === 0) this.#byLabel.delete(queue.label);
  }
}
