/**
 * When a client is greeted. It must wait for the greeting (RFC 5321 4.3.1); programs that only ever send do
 * not, and are sent away. So that they show, a client that nobody knows is greeted after a delay; one that
 * has waited once, or that may relay here, is greeted as soon as what it had already sent has been read.
 *
 *   unknown ── delay ──▶ greeted: known, for KNOWN_MS
 *   known, trusted ── its connection opens (all that came with it was read) ──▶ greeted
 *   any ── talks before ──▶ 421: known no longer
 *
 * Owns the clients known, at most KNOWN_MAX, and the line of those who wait.
 */
import { Newest } from '../../../base/newest.js';

const KNOWN_MS = 3_600_000;
const KNOWN_MAX = 10_000;

/** A connection that waits for its greeting. */
export interface Greeted {
  /** Greets; nothing happens when the connection is over, or was sent away. */
  greet(): void;
  readonly isGreetable: boolean;
}

interface Waiting {
  readonly connection: Greeted;
  readonly clientKey: string;
  readonly dueMs: number;
}

export class Greeting {
  readonly #delayMs: number;
  readonly #nowMs: () => number;
  /** Key of the client (client-counts.ts) → when it had waited. */
  readonly #known = new Newest<number>(KNOWN_MAX);
  /** In the order in which they are due: the delay is one for all. */
  readonly #line: Waiting[] = [];

  constructor(delayMs: number, nowMs: () => number) {
    this.#delayMs = delayMs;
    this.#nowMs = nowMs;
  }

  /** Its connection is open: greets when the time has come. */
  prepare(connection: Greeted, clientKey: string, trusted: boolean): void {
    if (trusted || this.#delayMs === 0 || this.#isKnown(clientKey)) connection.greet();
    else this.#line.push({ connection, clientKey, dueMs: this.#nowMs() + this.#delayMs });
  }

  tick(nowMs: number): void {
    let due = 0;
    for (const { connection, clientKey, dueMs } of this.#line) {
      if (dueMs > nowMs) break;
      due++;
      if (!connection.isGreetable) continue;
      this.#known.set(clientKey, this.#nowMs());
      connection.greet();
    }
    if (due > 0) this.#line.splice(0, due);
  }

  /** The client talked before it was greeted. */
  onEarlyTalk(clientKey: string): void {
    this.#known.delete(clientKey);
  }

  #isKnown(clientKey: string): boolean {
    const sinceMs = this.#known.get(clientKey);
    return sinceMs !== undefined && this.#nowMs() - sinceMs < KNOWN_MS;
  }
}
