/**
 * The line in front of one hook: so many messages wait for a place, no more, none for ever.
 *
 *   ask ─┬─ a place is free ──▶ STARTED ─ answer ──────────────────▶ SETTLED
 *        ├─ none, room ───────▶ WAITING    └ late: onLate, failed ──▶ SETTLED
 *        └─ none, no room: busy    └ a place is free ─▶ STARTED;  late: busy;  its client has gone: abandoned
 *
 * Its time limit counts twice, as it waits and as it is worked on: a message that takes long must not make
 * those behind it look as if they did. Each time is measured by itself: a wait that has ended must never be
 * taken for an answer that did not come, for what follows then is up to on_failure.
 *
 * Whoever is settled is let go: its content is no longer counted as memory in use.
 */
import type { HookAnswer, JudgedMessage } from '../message-hook.js';

/** Each is a message of which nothing is submitted, held in memory that is counted. */
const WAITING_MAX = 1000;

export interface HookLinePorts {
  hasPlace(): boolean;
  /** It has one, and must be settled; ask.onLate() is called when its time is over. */
  start(ask: HookAsk, message: JudgedMessage): void;
}

export class HookLine {
  readonly #timeoutMs: number;
  readonly #ports: HookLinePorts;
  readonly #goOn = (): void => { this.goOn(); };
  readonly #waiting: HookAsk[] = [];

  constructor(timeoutMs: number, ports: HookLinePorts) {
    this.#timeoutMs = timeoutMs;
    this.#ports = ports;
  }

  ask(message: JudgedMessage, done: (answer: HookAnswer) => void): void {
    if (this.#waiting.length >= WAITING_MAX) return done({ action: 'busy' });
    this.#waiting.push(new HookAsk(message, this.#timeoutMs, done, this.#goOn));
    this.goOn();
  }

  /** A place may be free, or the first of those that wait is settled. */
  goOn(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const { message } = first;
      if (message !== undefined && !this.#ports.hasPlace()) return;
      this.#waiting.shift();
      if (message === undefined) continue;
      if (message.isAbandoned) first.settle({ action: 'abandoned' });
      else if (first.isLate) first.settle({ action: 'busy' });
      else {
        first.begin();
        this.#ports.start(first, message);
      }
    }
  }

  /** Nobody is left who could say anything. */
  failAll(why: string): void {
    for (const ask of this.#waiting.splice(0)) ask.settle({ action: 'failed', why });
  }
}

export class HookAsk {
  /** Done after it was settled because its time was over: its work is ended, or it leaves the line. */
  onLate: (() => void) | undefined;
  readonly #timeoutMs: number;
  readonly #done: (answer: HookAnswer) => void;
  #message: JudgedMessage | undefined;
  #timer: NodeJS.Timeout;
  #endMs = 0;
  #hasBegun = false;

  constructor(
    message: JudgedMessage, timeoutMs: number, done: (answer: HookAnswer) => void, onLate: () => void,
  ) {
    this.#message = message;
    this.#timeoutMs = timeoutMs;
    this.#done = done;
    this.onLate = onLate;
    this.#timer = this.#timed();
  }

  /** Undefined once it is settled. */
  get message(): JudgedMessage | undefined {
    return this.#message;
  }

  get isSettled(): boolean {
    return this.#message === undefined;
  }

  /** By the clock: its timer may not have run yet. */
  get isLate(): boolean {
    return performance.now() >= this.#endMs;
  }

  begin(): void {
    this.#hasBegun = true;
    this.onLate = undefined;
    clearTimeout(this.#timer);
    this.#timer = this.#timed();
  }

  /** The first answer counts. */
  settle(answer: HookAnswer): void {
    if (this.isSettled) return;
    this.#message = undefined;
    clearTimeout(this.#timer);
    this.#done(answer);
  }

  #timed(): NodeJS.Timeout {
    this.#endMs = performance.now() + this.#timeoutMs;
    // Node runs timers before it reads sockets: after a stall the answer may lie in the kernel. What is read
    // there may also begin this very message, whose time is another one then.
    const timer = setTimeout(() => setImmediate(() => {
      if (timer === this.#timer) this.#onLate();
    }), this.#timeoutMs);
    return timer;
  }

  #onLate(): void {
    if (this.isSettled) return;
    const why = `no answer in ${String(this.#timeoutMs)} ms`;
    this.settle(this.#hasBegun ? { action: 'failed', why } : { action: 'busy' });
    this.onLate?.();
  }
}
