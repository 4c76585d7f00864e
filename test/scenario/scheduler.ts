/**
 * The one thread of the scenario world: events in the order of their virtual time, those of one instant in
 * the order in which they were asked for. Nothing happens between two steps, so a run is a list of steps and
 * the same seed gives the same list.
 *
 * Owns: the virtual clock, the heap of events, the hash of what was traced. Not here: what the events do.
 */
import { invariant } from '../../src/base/invariant.js';
import type { Timeline } from './timeline.js';

interface Step {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
/** A scenario that takes more steps turns in a circle. */
const STEPS_MAX = 3_000_000;

/** Thrown where a process of the world meets a fatal error, once it is killed: what it was doing goes no further. */
export class ProcessEnded extends Error {}

export class Scheduler implements Timeline {
  nowMs = 0;
  stepCount = 0;
  /** Hash over all steps and all that was traced: two runs of one seed must agree. */
  traceHash = FNV_OFFSET;
  /** Gets what is traced as text, for a run that is looked at closely. */
  onTrace: ((text: string) => void) | undefined;
  private order = 0;
  private readonly heap: Step[] = [];

  at(atMs: number, run: () => void): void {
    this.order += 1;
    this.push({ atMs: Math.max(atMs, this.nowMs), order: this.order, run });
  }

  after(delayMs: number, run: () => void): void {
    this.at(this.nowMs + delayMs, run);
  }

  /** At this instant, behind everything that was asked for before: what setImmediate is to a process. */
  soon(run: () => void): void {
    this.at(this.nowMs, run);
  }

  /** Notes an event in the hash. */
  trace(text: string): void {
    this.onTrace?.(text);
    let hash = this.traceHash;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
    this.traceHash = Math.imul(hash ^ Math.floor(this.nowMs * 1000), FNV_PRIME) >>> 0;
  }

  /** Runs one event; false when none is left. */
  step(): boolean {
    const step = this.pop();
    if (step === undefined) return false;
    this.nowMs = step.atMs;
    this.stepCount += 1;
    this.traceHash = Math.imul(this.traceHash ^ Math.floor(step.atMs * 1000) ^ step.order, FNV_PRIME) >>> 0;
    invariant(this.stepCount < STEPS_MAX, 'a scenario ends');
    try {
      step.run();
    } catch (error) {
      if (!(error instanceof ProcessEnded)) throw error;
    }
    return true;
  }

  /** Runs what is due up to `untilMs`; the clock stands there afterwards. */
  runUntil(untilMs: number): void {
    for (let next = this.heap[0]; next !== undefined && next.atMs <= untilMs; next = this.heap[0]) this.step();
    this.nowMs = untilMs;
  }

  private push(step: Step): void {
    const heap = this.heap;
    let at = heap.length;
    heap.push(step);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, step)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = step;
  }

  private pop(): Step | undefined {
    const heap = this.heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const left = heap[child];
      if (left === undefined) break;
      const right = heap[child + 1];
      let least = left;
      if (right !== undefined && isBefore(right, left)) {
        least = right;
        child += 1;
      }
      if (isBefore(last, least)) break;
      heap[at] = least;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(a: Step, b: Step): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
