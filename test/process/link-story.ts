/**
 * What the links tell of each queue, kept by link-judge.ts: entries, sets of mirrors, acknowledgements, and
 * the questions that are asked of them. Plain data; nothing is judged here.
 */
import type { FrameRecord } from './fault-proxy.js';

export interface Ack {
  readonly number: number;
  readonly incarnation: number;
  readonly frame: FrameRecord;
}

/** A set of mirrors: told by an OPEN or a CLAIMED at a moment, or by change `number` of an incarnation. */
export interface MemberSet {
  readonly members: readonly string[];
  readonly number: number;
  readonly incarnation: number;
  readonly frame: FrameRecord;
}

export interface Entry {
  readonly messageId: number;
  readonly queue: Queue;
  readonly position: number;
  readonly incarnation: number;
  readonly storedMs: number;
  readonly deletes: { readonly number: number; readonly incarnation: number; readonly sentMs: number }[];
  withdrawn: boolean;
  /** Its number was used again: no store had it. */
  vanished: boolean;
}

export interface Queue {
  readonly name: string;
  /** By position, in ascending order. */
  readonly entries: Map<number, Entry>;
  positions: number[];
  /** Changes seen of each incarnation. Not the highest alone: two sockets are read in any order. */
  readonly seen: Map<number, Set<number>>;
  readonly sets: MemberSet[];
  epoch: number;
  /** By store. */
  readonly acks: Map<string, Ack[]>;
}

export function firstAck(queue: Queue, store: string, number: number, incarnation: number, afterMs: number): Ack | undefined {
  const list = queue.acks.get(store) ?? [];
  let low = 0;
  for (let high = list.length; low < high;) {
    const middle = (low + high) >> 1;
    if ((list[middle]?.frame.arrivedMs ?? 0) < afterMs) low = middle + 1;
    else high = middle;
  }
  for (let at = low; at < list.length; at++) {
    const ack = list[at];
    if (ack !== undefined && ack.incarnation > incarnation) return undefined;
    if (ack?.incarnation === incarnation && ack.number >= number) return ack;
  }
  return undefined;
}

/** When the gateway was handed the first acknowledgement that covers the change; Infinity if never. */
export function ackedMs(queue: Queue, store: string, number: number, incarnation: number, afterMs: number): number {
  return firstAck(queue, store, number, incarnation, afterMs)?.frame.passedMs ?? Infinity;
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
    const acked = (survivors.length > 0 ? survivors : set.members).map((member) => ackedMs(queue, member, set.number, set.incarnation, set.frame.arrivedMs));
    const fromMs = survivors.length > 0 ? Math.max(...acked) : Math.min(...acked);
    if (fromMs < Infinity) sets.push({ fromMs, members: set.members });
  }
  return sets;
}

/** Notes the change; false if the other store got it before. */
export function isFirst(queue: Queue, incarnation: number, number: number): boolean {
  let numbers = queue.seen.get(incarnation);
  if (numbers === undefined) {
    numbers = new Set();
    queue.seen.set(incarnation, numbers);
  }
  if (numbers.has(number)) return false;
  numbers.add(number);
  return true;
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
