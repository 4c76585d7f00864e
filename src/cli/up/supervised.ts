/**
 * One process that `up` keeps alive: started, watched, started again when it dies, stopped in good order.
 *
 *              start()                 exits, not stopping / onDied
 *   IDLE ───────────────► RUNNING ────────────────────────────► WAITING
 *                          │  ▲        after a back-off that grows    │
 *                          │  └──────────────────────────────────────┘
 *                          │       (a plan may ask for a longer one)
 *                          │ stop(): SIGTERM, past the bound SIGKILL
 *                          └───────────────► STOPPED
 *
 * It runs in a process group of its own, so that Ctrl-C reaches `up` alone, which then stops all in order.
 * The IPC channel is its lifeline: when `up` dies, even by SIGKILL, the channel closes and the process ends
 * itself (src/bin). Nothing else is said over it.
 *
 * SIGHUP and SIGUSR2 are passed on, to a process that has just been started when it has said its first words:
 * before, it may not follow them yet, and would die.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { Restarts } from '../../base/restarts.js';
import type { PassedSignal } from '../context.js';
import type { ProcessPlan } from './plan.js';
import type { ProcessLog } from './process-log.js';

/** Deaths in a row after which it is said clearly. */
export const CRASH_LOOP_DEATHS = 4;

export interface SupervisedOptions {
  readonly plan: ProcessPlan;
  /** The program that node runs. */
  readonly entry: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface SupervisedEvents {
  onStarted(process: Supervised, again: boolean): void;
  /** `how`: "SIGKILL" or "exit code 1". `deaths` in a row, this one counted. */
  onDied(process: Supervised, how: string, deaths: number, againInMs: number): void;
}

export class Supervised {
  readonly name: string;
  readonly log: ProcessLog;
  readonly #options: SupervisedOptions;
  readonly #events: SupervisedEvents;
  #child: ChildProcess | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopping = false;
  /** It follows signals. */
  #hasSpoken = false;
  readonly #waiting = new Set<PassedSignal>();
  readonly #restarts = new Restarts();
  #startedMs = 0;
  #startedBefore = false;
  #onGone: (() => void) | undefined;

  constructor(options: SupervisedOptions, log: ProcessLog, events: SupervisedEvents) {
    this.name = options.plan.name;
    this.log = log;
    this.#options = options;
    this.#events = events;
  }

  /** 0 while it does not run. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  start(): void {
    if (this.#stopping) return;
    const child = spawn(process.execPath, [this.#options.entry, ...this.#options.plan.args], {
      detached: true,
      env: this.#options.environment,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#child = child;
    this.#startedMs = performance.now();
    this.#hasSpoken = false;
    child.stdout?.on('data', (bytes: Buffer) => { this.#onWords(bytes); });
    child.stderr?.on('data', (bytes: Buffer) => { this.#onWords(bytes); });
    let over = false;
    const gone = (how: string): void => {
      if (over) return;
      over = true;
      this.#onExit(how);
    };
    child.once('error', (error) => { gone(error.message); });
    child.once('exit', (code, signal) => { gone(signal ?? `exit code ${String(code)}`); });
    this.#events.onStarted(this, this.#startedBefore);
    this.#startedBefore = true;
  }

  /** Resolves when it is gone: by itself after SIGTERM, or killed after the bound. */
  stop(boundMs: number): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(() => { child.kill('SIGKILL'); }, boundMs);
      this.#onGone = () => {
        clearTimeout(timer);
        resolve();
      };
      child.kill('SIGTERM');
    });
  }

  pass(signal: PassedSignal): void {
    if (this.#hasSpoken) this.#child?.kill(signal);
    else this.#waiting.add(signal);
  }

  /** For the impatient: at once. */
  kill(): void {
    this.#stopping = true;
    clearTimeout(this.#timer);
    this.#child?.kill('SIGKILL');
  }

  #onWords(bytes: Buffer): void {
    this.log.write(bytes);
    this.#hasSpoken = true;
    for (const signal of this.#waiting) this.#child?.kill(signal);
    this.#waiting.clear();
  }

  #onExit(how: string): void {
    this.#child = undefined;
    this.#hasSpoken = false;
    if (this.#stopping) {
      this.#onGone?.();
      return;
    }
    const backoffMs = this.#restarts.onDeath(performance.now() - this.#startedMs, Math.random);
    const delayMs = Math.max(backoffMs, this.#options.plan.againAfterMs ?? 0);
    this.#events.onDied(this, how, this.#restarts.deaths, delayMs);
    this.#timer = setTimeout(() => { this.start(); }, delayMs);
  }
}
