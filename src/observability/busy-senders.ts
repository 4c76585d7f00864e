/**
 * Who submits most of what is accepted, in the last minute or two: clients by address, reverse-paths, users.
 * For status, so that a flood has a name. Two windows: the last whole one, and the one that runs.
 */
import type { BusiestAnswer } from '../admin-api/gateway-answers.js';
import { FrequentNames } from '../base/frequent-names.js';

/** A name that has 1% of the messages is known. */
const NAMES_MAX = 128;
const WINDOW_MS = 60_000;
const SHOWN_MAX = 3;

class Window {
  readonly beganMs: number;
  messages = 0;
  readonly clients = new FrequentNames(NAMES_MAX);
  readonly senders = new FrequentNames(NAMES_MAX);
  readonly users = new FrequentNames(NAMES_MAX);

  constructor(beganMs: number) {
    this.beganMs = beganMs;
  }
}

type Party = 'clients' | 'senders' | 'users';

export class BusySenders {
  #before: Window;
  #now: Window;

  constructor(nowMs: number) {
    this.#now = new Window(nowMs);
    this.#before = this.#now;
  }

  /** `sender`: the same however he is written. `user`: '' of a client that did not log in. */
  received(client: string, sender: string, user: string): void {
    const window = this.#now;
    window.messages += 1;
    window.clients.note(client);
    window.senders.note(sender);
    if (user !== '') window.users.note(user);
  }

  /** Called with each tick. */
  tick(nowMs: number): void {
    if (nowMs - this.#now.beganMs < WINDOW_MS) return;
    this.#before = this.#now;
    this.#now = new Window(nowMs);
  }

  answer(nowMs: number): BusiestAnswer {
    const windows = new Set([this.#before, this.#now]);
    const messages = [...windows].reduce((sum, window) => sum + window.messages, 0);
    const of = (party: Party): BusiestAnswer['clients'] => {
      const names = new Set([...windows].flatMap((window) => [...window[party].names()]));
      return Array.from(names, (name) => ({
        name, messages: [...windows].reduce((sum, window) => sum + window[party].countOf(name), 0),
      })).sort((a, b) => b.messages - a.messages).slice(0, SHOWN_MAX);
    };
    const seconds = Math.max(1, Math.round((nowMs - this.#before.beganMs) / 1000));
    return { seconds, messages, clients: of('clients'), senders: of('senders'), users: of('users') };
  }
}
