/**
 * Answers to operators that wait until the mirrors know what was written down for them: a hold that somebody was told
 * of survives a crash of the gateway, or the answer says that it may not.
 *
 *   wait(owners) ─ each owner's records are written, and its control queues committed up to there ─► done(true)
 *                └ KEPT_WAIT_MS over ─────────────────────────────────────────────────────────────► done(false)
 *
 * Pure: time comes by tick().
 */
import type { Partition } from '../mirror/partition.js';
import type { Clock } from '../../platform/ports.js';
import type { ControlQueues } from './control-queues.js';

/** Less than the command line waits for an answer. A round trip to the mirrors is far shorter. */
export const KEPT_WAIT_MS = 3000;

interface Target {
  readonly partition: Partition;
  readonly number: number;
}

interface KeptWait {
  /** Owners whose records still wait for their queue, or for room at a partition. */
  unwritten: readonly string[];
  targets: readonly Target[];
  readonly untilMs: number;
  readonly done: (kept: boolean) => void;
}

export class KeptWaits {
  private readonly clock: Clock;
  private readonly queues: ControlQueues;
  private waits: readonly KeptWait[] = [];

  constructor(clock: Clock, queues: ControlQueues) {
    this.clock = clock;
    this.queues = queues;
  }

  /** What was set or deleted up to now, of these owners. `done` is called once, within the bound. */
  wait(owners: Iterable<string>, done: (kept: boolean) => void): void {
    this.waits = [...this.waits, { unwritten: [...new Set(owners)], targets: [], untilMs: this.clock.nowMs() + KEPT_WAIT_MS, done }];
    this.tick();
  }

  /** Called a few times in a tenth of a second. */
  tick(): void {
    if (this.waits.length === 0) return;
    const nowMs = this.clock.nowMs();
    const open: KeptWait[] = [];
    const over: (() => void)[] = [];
    for (const wait of this.waits) {
      if (this.isKept(wait)) over.push(() => { wait.done(true); });
      else if (nowMs >= wait.untilMs) over.push(() => { wait.done(false); });
      else open.push(wait);
    }
    this.waits = open;
    for (const tell of over) tell();
  }

  private isKept(wait: KeptWait): boolean {
    for (const ownerId of wait.unwritten) {
      if (this.queues.recordsOf(ownerId).unwritten > 0) continue;
      const targets = [...this.queues.mirrors()].filter((partition) => partition.identity.ownerId === ownerId);
      wait.targets = [...wait.targets, ...targets.map((partition) => ({ partition, number: partition.lastNumber }))];
      wait.unwritten = wait.unwritten.filter((other) => other !== ownerId);
    }
    return wait.unwritten.length === 0 && wait.targets.every(({ partition, number }) => partition.committedNumber >= number);
  }
}
