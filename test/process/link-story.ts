/**
 * What the links tell of each queue, kept by link-record.ts: entries, sets of mirrors, acknowledgements, and
 * the questions that are asked of them. Plain data; nothing is judged here.
 */
import type { FrameRecord } from './fault-proxy.js';

/**
 * Who wrote to a queue, one after the other: a process (gateway and incarnation) under one claim. A reign's
 * number is its place in Queue.reigns; a gateway that is restarted, or rescues, begins a new one.
 */
export interface Reign {
  readonly writer: string;
  readonly gateway: string;
  readonly token: number;
  readonly sinceMs: number;
}

export interface Ack {
  readonly number: number;
  readonly reign: number;
  readonly frame: FrameRecord;
}

/** A set of mirrors: told by an OPEN or a CLAIMED at a moment, or by change `number` of a reign. */
export interface MemberSet {
  readonly members: readonly string[];
  readonly number: number;
  readonly reign: number;
  readonly frame: FrameRecord;
}

/** A change as it was first seen. */
export interface Change {
  readonly reign: number;
  readonly kind: number;
  readonly ref: number;
  readonly size: number;
  /** What a DELETE took away. */
  readonly deleted: Entry[];
}

export interface Entry {
  readonly messageId: number;
  readonly queue: Queue;
  readonly position: number;
  /**
   * The change whose acknowledgement says that a store has it: its STORE; of an entry that only refills brought, the
   * first set of mirrors told behind it. Infinity before there is one.
   */
  ackNumber: number;
  readonly reign: number;
  readonly storedMs: number;
  readonly deletes: { readonly number: number; readonly reign: number; readonly sentMs: number }[];
  withdrawn: boolean;
  /** Its number was used again: no store had it. */
  vanished: boolean;
}

export interface Queue {
  /** Owner, birth, serial. */
  readonly key: string;
  readonly name: string;
  readonly reigns: Reign[];
  /** By position, in ascending order. */
  readonly entries: Map<number, Entry>;
  positions: number[];
  /** By number: as the last reign had it. */
  readonly changes: Map<number, Change>;
  readonly sets: MemberSet[];
  epoch: number;
  /** By store. */
  readonly acks: Map<string, Ack[]>;
  /** Entries that only a refill brought, and no set was told since. */
  readonly refilled: Entry[];
}

/** Where those that came at afterMs or later begin. */
function lowerBoundOf(acks: readonly Ack[], afterMs: number): number {
  let low = 0;
  for (let high = acks.length; low < high;) {
    const middle = (low + high) >> 1;
    if ((acks[middle]?.frame.arrivedMs ?? 0) < afterMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

function firstAck(queue: Queue, store: string, number: number, reign: number, afterMs: number): Ack | undefined {
  const list = queue.acks.get(store) ?? [];
  for (let at = lowerBoundOf(list, afterMs); at < list.length; at++) {
    const ack = list[at];
    if (ack !== undefined && ack.reign > reign) return undefined;
    if (ack?.reign === reign && ack.number >= number) return ack;
  }
  return undefined;
}

/**
 * When the gateway was handed the first acknowledgement that covers the change; Infinity if never. One that
 * came to the proxy earlier may be handed on later: it waits on a path that stands still.
 */
export function ackedMs(queue: Queue, store: string, number: number, reign: number, afterMs: number): number {
  const list = queue.acks.get(store) ?? [];
  const first = firstAck(queue, store, number, reign, afterMs);
  let earliestMs = first?.frame.passedMs ?? Infinity;
  for (let at = first === undefined ? list.length : list.indexOf(first, lowerBoundOf(list, afterMs)); at < list.length; at++) {
    const ack = list[at];
    if (ack === undefined || ack.frame.arrivedMs >= earliestMs) break;
    if (ack.reign === reign && ack.number >= number) earliestMs = Math.min(earliestMs, ack.frame.passedMs);
  }
  return earliestMs;
}

/** Whether any store acknowledged the change to that reign. */
export function wasAcked(queue: Queue, number: number, reign: number, afterMs: number): boolean {
  for (const store of queue.acks.keys()) if (firstAck(queue, store, number, reign, afterMs) !== undefined) return true;
  return false;
}

/** The sets of mirrors of a queue with the moment from which each counts: when its survivors had acknowledged it. */
export function setsInForce(queue: Queue): { fromMs: number; members: readonly string[] }[] {
  const sets: { fromMs: number; members: readonly string[] }[] = [];
  for (const set of queue.sets) {
    if (set.number === 0) {
      sets.push({ fromMs: set.frame.arrivedMs, members: set.members });
      continue;
    }
    const before = sets.at(-1)?.members ?? [];
    const survivors = set.members.filter((member) => before.includes(member));
    const acked = (survivors.length > 0 ? survivors : set.members).map((member) => ackedMs(queue, member, set.number, set.reign, set.frame.arrivedMs));
    const fromMs = survivors.length > 0 ? Math.max(...acked) : Math.min(...acked);
    if (fromMs < Infinity) sets.push({ fromMs, members: set.members });
  }
  return sets;
}

/** The reign of `writer` under `token`, begun now if it is new. */
export function reignUnder(queue: Queue, writer: string, gateway: string, token: number, nowMs: number): number {
  const known = queue.reigns.findIndex((reign) => reign.writer === writer && reign.token === token);
  return known >= 0 ? known : queue.reigns.push({ writer, gateway, token, sinceMs: nowMs }) - 1;
}

/** The last reign of a process; undefined if it never had the queue. */
export function lastReignOf(queue: Queue, writer: string): number | undefined {
  const at = queue.reigns.findLastIndex((reign) => reign.writer === writer);
  return at < 0 ? undefined : at;
}

/** The last reign of a gateway that had begun by then; -1 for none. */
export function reignAt(queue: Queue, gateway: string, atMs: number): number {
  return queue.reigns.findLastIndex((reign) => reign.gateway === gateway && reign.sinceMs <= atMs);
}

export function lowerBound(sorted: readonly number[], value: number): number {
  let low = 0;
  for (let high = sorted.length; low < high;) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
