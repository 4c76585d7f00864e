/**
 * The line in front of one hook: so many messages wait for a place, no more, none for ever.
 *
 *   ask ─┬─ a place is free ──▶ STARTED ─ answer ──────────────────▶ SETTLED
 *        ├─ none, room ───────▶ WAITING    └ late: onLate, failed ──▶ SETTLED
 *        └─ none, no room: busy    └ a place is free ─▶ STARTED;  late: busy;  its client has gone: abandoned
 *
 * Its time limit counts twice, as it waits and as it is worked on: a message that takes long must not make
 * those behind it look as if they did.
 */
import type { HookAnswer, JudgedMessage } from './hooks/message-hook.js';

/** Each is a message of which nothing is submitted, held in memory that is counted. */
const WAITING_MAX = 1000;

export interface HookLinePorts {
  hasPlace(): boolean;
  /** It has one, and must be settled; ask.onLate() is called when its time is over. */
  start(ask: HookAsk): void;
}

export class HookLine {
  readonly timeoutMs: number;
  readonly #ports: HookLinePorts;
  readonly #waiting: HookAsk[] = [];

  constructor(timeoutMs: number, ports: HookLinePorts) {
    this.timeoutMs = timeoutMs;
    this.#ports = ports;
  }

  ask(message: JudgedMessage, done: (answer: HookAnswer) => void): void {
    if (this.#waiting.length >= WAITING_MAX) this.#dropSettled();
    if (this.#waiting.length >= WAITING_MAX) return done({ action: 'busy' });
    this.#waiting.push(new HookAsk(message, this.timeoutMs, done));
    this.goOn();
  }

  /** A place may be free. */
  goOn(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (!first.isSettled && !this.#ports.hasPlace()) return;
      this.#waiting.shift();
      if (first.message.isAbandoned) first.settle({ action: 'abandoned' });
      if (first.isSettled) continue;
      first.begin();
      this.#ports.start(first);
    }
  }

  /** Nobody is left who could say anything. */
  failAll(why: string): void {
    for (const ask of this.#waiting.splice(0)) ask.settle({ action: 'failed', why });
  }

  #dropSettled(): void {
    const open = this.#waiting.filter(({ isSettled }) => !isSettled);
    this.#waiting.splice(0, this.#waiting.length, ...open);
  }
}

export class HookAsk {
  readonly message: JudgedMessage;
  /** What is to be ended when time is over. */
  onLate: (() => void) | undefined;
  isSettled = false;
  readonly #done: (answer: HookAnswer) => void;
  readonly #timer: NodeJS.Timeout;
  #hasBegun = false;

  constructor(message: JudgedMessage, timeoutMs: number, done: (answer: HookAnswer) => void) {
    this.message = message;
    this.#done = done;
    // Node runs timers before it reads sockets: after a stall the answer may lie in the kernel.
    this.#timer = setTimeout(() => setImmediate(() => { this.#onLate(timeoutMs); }), timeoutMs);
  }

  begin(): void {
    this.#hasBegun = true;
    this.#timer.refresh();
  }

  /** The first answer counts. */
  settle(answer: HookAnswer): void {
    if (this.isSettled) return;
    this.isSettled = true;
    clearTimeout(this.#timer);
    this.#done(answer);
  }

  #onLate(timeoutMs: number): void {
    if (this.isSettled) return;
    if (!this.#hasBegun) return this.settle({ action: 'busy' });
    this.settle({ action: 'failed', why: `no answer in ${String(timeoutMs)} ms` });
    this.onLate?.();
  }
}
