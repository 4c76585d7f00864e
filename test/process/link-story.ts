/**
 * What the links tell of each partition, kept by link-record.ts: entries, sets of members, acknowledgements, and
 * the questions that are asked of them. Plain data; nothing is judged here.
 */
import type { FrameRecord } from './fault-proxy.js';

/**
 * A change of a record is known to its holder, and counts there, before members are told of it: by a tick, and what
 * a busy machine adds to that.
 */
const TOLD_WITHIN_MS = 250;

/**
 * Who wrote to a partition, one after the other: a process (gateway and incarnation) under one term. A reign's
 * number is its place in Partition.reigns; a gateway that is restarted, or rescues, begins a new one.
 */
export interface Reign {
  readonly writer: string;
  readonly gateway: string;
  readonly term: string;
  readonly sinceMs: number;
}

export interface Ack {
  readonly number: number;
  readonly reign: number;
  readonly frame: FrameRecord;
}

/** A record as it was first told to a store. Members are store and boot. */
export interface ToldRecord {
  readonly epoch: number;
  readonly members: readonly string[];
  readonly toldMs: number;
  /** When it is first known to have been made, by whatever says so: on a path full of data TELL comes late. */
  knownMs: number;
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
  readonly partition: Partition;
  readonly position: number;
  readonly reign: number;
  readonly storedMs: number;
  readonly deletes: { readonly number: number; readonly reign: number; readonly sentMs: number }[];
  withdrawn: boolean;
  /** Its number was used again: no store had it. */
  vanished: boolean;
}

/** One history of a partition: where every copy was lost it begins anew, with numbers from 1 on. */
export interface Partition {
  /** Its name, and the term that founded it. */
  readonly key: string;
  readonly reigns: Reign[];
  /** By position, in ascending order. */
  readonly entries: Map<number, Entry>;
  positions: number[];
  /** By number: as the last reign had it. */
  readonly changes: Map<number, Change>;
  /** Records of the partition, of all its histories; by epoch, ascending. */
  readonly records: ToldRecord[];
  /** By store and boot. */
  readonly acks: Map<string, Ack[]>;
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

function firstAck(partition: Partition, store: string, number: number, reign: number, afterMs: number): Ack | undefined {
  const list = partition.acks.get(store) ?? [];
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
export function ackedMs(partition: Partition, store: string, number: number, reign: number, afterMs: number): number {
  const list = partition.acks.get(store) ?? [];
  const first = firstAck(partition, store, number, reign, afterMs);
  let earliestMs = first?.frame.passedMs ?? Infinity;
  for (let at = first === undefined ? list.length : list.indexOf(first, lowerBoundOf(list, afterMs)); at < list.length; at++) {
    const ack = list[at];
    if (ack === undefined || ack.frame.arrivedMs >= earliestMs) break;
    if (ack.reign === reign && ack.number >= number) earliestMs = Math.min(earliestMs, ack.frame.passedMs);
  }
  return earliestMs;
}

/** Whether it acknowledged anything in that time: then it had not left before. */
export function wasHeardWithin(partition: Partition, store: string, afterMs: number, untilMs: number): boolean {
  const list = partition.acks.get(store) ?? [];
  const ack = list[lowerBoundOf(list, afterMs)];
  return ack !== undefined && ack.frame.arrivedMs <= untilMs;
}

/** Whether any store acknowledged the change to that reign. */
export function wasAcked(partition: Partition, number: number, reign: number, afterMs: number): boolean {
  for (const store of partition.acks.keys()) if (firstAck(partition, store, number, reign, afterMs) !== undefined) return true;
  return false;
}

export interface SetInForce {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly members: readonly string[];
  /** A change that nobody was told of, since its members died before, may have been without these. */
  readonly mayHaveLeft: readonly string[];
}

/** The sets of members, each with the time in which it may have counted. */
export function setsInForce({ records }: Partition): SetInForce[] {
  return records.map(({ epoch, members, toldMs, knownMs }, at) => {
    const next = records[at + 1];
    const isUntold = next !== undefined && next.epoch > epoch + 1;
    return {
      fromMs: Math.min(toldMs - TOLD_WITHIN_MS, knownMs), untilMs: next?.toldMs ?? Infinity, members,
      mayHaveLeft: isUntold ? members.filter((member) => !next.members.includes(member)) : [],
    };
  });
}

/** The reign of `writer` under `term`, begun now if it is new. */
export function reignUnder(partition: Partition, writer: string, gateway: string, term: string, nowMs: number): number {
  const known = partition.reigns.findIndex((reign) => reign.writer === writer && reign.term === term);
  return known >= 0 ? known : partition.reigns.push({ writer, gateway, term, sinceMs: nowMs }) - 1;
}

/** The last reign of a gateway that had begun by then; -1 for none. */
export function reignAt(partition: Partition, gateway: string, atMs: number): number {
  return partition.reigns.findLastIndex((reign) => reign.gateway === gateway && reign.sinceMs <= atMs);
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
