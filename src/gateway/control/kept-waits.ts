/**
 * Answers to operators that wait until the mirrors know what was written down for them: a hold that somebody was told
 * of survives a crash of the gateway, or the answer says that it may not.
 *
 *   wait(owners) ─ each owner's records are written, and its control queues committed up to there ─► done(true)
 *                └ KEPT_WAIT_MS over ─────────────────────────────────────────────────────────────► done(false)
 *
 * Pure: time comes by tick().
 */
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { Clock } from '../../platform/ports.js';
import type { ControlQueues } from './control-queues.js';

/** Less than the command line waits for an answer. A round trip to the mirrors is far shorter. */
export const KEPT_WAIT_MS = 3000;

/** A change of a queue that is to be committed. */
export interface QueueChange {
  readonly mirror: QueueMirror;
  readonly number: number;
}

interface KeptWait {
  /** Owners whose records still wait for their queue, or for room at a mirror. */
  unwritten: readonly string[];
  targets: readonly QueueChange[];
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

  /**
   * What was set or deleted up to now in the records of these owners, and these changes. `done` is called once,
   * within the bound.
   */
  wait(owners: Iterable<string>, changes: readonly QueueChange[], done: (kept: boolean) => void): void {
    const untilMs = this.clock.nowMs() + KEPT_WAIT_MS;
    this.waits = [...this.waits, { unwritten: [...new Set(owners)], targets: changes, untilMs, done }];
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
      const targets = [...this.queues.mirrors()].filter((mirror) => mirror.queue.identity.ownerId === ownerId);
      wait.targets = [...wait.targets, ...targets.map((mirror) => ({ mirror, number: mirror.lastNumber }))];
      wait.unwritten = wait.unwritten.filter((other) => other !== ownerId);
    }
    return wait.unwritten.length === 0 && wait.targets.every(({ mirror, number }) => mirror.committedNumber >= number);
  }
}
