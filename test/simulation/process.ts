/**
 * One machine of the simulated world with one process on it: its clock runs at its own rate from its own
 * start, it can be frozen, and what a process planned ends with that process.
 *
 *   RUNNING ─ freeze ─► FROZEN (time passes, nothing runs, the kernel keeps what arrives)
 *      ▲                  │ thaw: overdue timers first, as Node runs them before it reads sockets
 *      └──────────────────┘          any ─ end ─► plans and backlog are gone
 */
import type { Scheduler } from '../scenario/scheduler.js';
import type { Host, Timeline } from '../scenario/timeline.js';

export interface ClockOptions {
  /** What its monotonic clock showed when the world began. */
  readonly offsetMs: number;
  /** Its milliseconds for one true millisecond: within the drift bound of 1% between any two. */
  readonly rate: number;
}

export class SimProcess implements Timeline, Host {
  readonly name: string;
  isFrozen = false;
  /** How often the process behind the name has ended: what an older one planned is not run. */
  private generation = 0;
  private overdue: (() => void)[] = [];
  private deferred: (() => void)[] = [];
  private readonly clock: ClockOptions;
  private readonly scheduler: Scheduler;

  constructor(name: string, clock: ClockOptions, scheduler: Scheduler) {
    this.name = name;
    this.clock = clock;
    this.scheduler = scheduler;
  }

  get nowMs(): number {
    return this.clock.offsetMs + this.scheduler.nowMs * this.clock.rate;
  }

  /** What is to be added to nowMs for a wall clock that is right but for the drift. */
  wallBaseMs(trueWallMs: number): number {
    return trueWallMs - this.clock.offsetMs;
  }

  after(delayMs: number, run: () => void): void {
    const generation = this.generation;
    this.scheduler.after(delayMs / this.clock.rate, () => {
      if (generation !== this.generation) return;
      if (this.isFrozen) this.overdue.push(run);
      else run();
    });
  }

  soon(run: () => void): void {
    const generation = this.generation;
    this.scheduler.soon(() => {
      if (generation !== this.generation) return;
      if (this.isFrozen) this.deferred.push(run);
      else run();
    });
  }

  trace(text: string): void {
    this.scheduler.trace(`${this.name} ${text}`);
  }

  freeze(): void {
    this.isFrozen = true;
    this.trace('frozen');
  }

  /** What was due runs at this instant; bytes that arrived are read later (Network.thaw). */
  thaw(): void {
    if (!this.isFrozen) return;
    this.isFrozen = false;
    this.trace('thawed');
    const backlog = [...this.overdue, ...this.deferred];
    this.overdue = [];
    this.deferred = [];
    for (const run of backlog) this.soon(run);
  }

  /** The process is gone, whatever it was about to do. */
  end(): void {
    this.generation += 1;
    this.isFrozen = false;
    this.overdue = [];
    this.deferred = [];
  }
}
