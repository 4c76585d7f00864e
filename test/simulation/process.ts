/**
 * One machine of the simulated world with one process on it: its clock runs at its own rate from its own
 * start, it can be frozen, and what a process planned ends with that process.
 *
 *   RUNNING ─ freeze ─► FROZEN (time passes, nothing runs, the kernel keeps what arrives)
 *      ▲                  │ thaw: what the turn had left to do, overdue timers, then the sockets, as Node does it
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
  /** Asked for by the turn in which it was frozen. */
  private immediate: (() => void)[] = [];
  private news: (() => void)[] = [];
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
      if (this.isFrozen) this.immediate.push(run);
      else run();
    });
  }

  tell(run: () => void): void {
    const generation = this.generation;
    this.scheduler.soon(() => {
      if (generation !== this.generation) return;
      if (this.isFrozen) this.news.push(run);
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
    const { immediate, overdue, news } = this;
    this.forget();
    for (const run of [...immediate, ...overdue]) this.soon(run);
    for (const run of news) this.tell(run);
  }

  /** The process is gone, whatever it was about to do. */
  end(): void {
    this.generation += 1;
    this.isFrozen = false;
    this.forget();
  }

  private forget(): void {
    this.immediate = [];
    this.overdue = [];
    this.news = [];
  }
}
