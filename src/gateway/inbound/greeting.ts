/**
 * When a client is greeted. It must wait for the greeting (RFC 5321 4.3.1); programs that only ever send do not,
 * and are sent away. So that they show, a client that nobody knows is greeted after a delay; one that has waited
 * once, or that may relay here, is greeted as soon as what it had already sent would have been read.
 *
 *   unknown ── delay ──▶ greeted: known, for KNOWN_MS
 *   known, trusted ── one full poll of the sockets ──▶ greeted
 *   any ── talks before ──▶ 421: known no longer
 *
 * Owns the clients known, at most KNOWN_MAX.
 */

const KNOWN_MS = 3_600_000;
const KNOWN_MAX = 10_000;

/** A connection that waits for its greeting. */
export interface Greeted {
  /** Greets, unless the connection is over. */
  connectionReady(): void;
  readonly _closing: boolean;
  readonly _closed: boolean;
}

export class Greeting {
  readonly #delayMs: number;
  readonly #nowMs: () => number;
  /** Key of the client (client-counts.ts) → when it had waited, oldest first. */
  readonly #known = new Map<string, number>();

  constructor(delayMs: number, nowMs: () => number) {
    this.#delayMs = delayMs;
    this.#nowMs = nowMs;
  }

  /** Greets when the time has come. */
  prepare(connection: Greeted, clientKey: string, trusted: boolean): void {
    if (this.#delayMs === 0) connection.connectionReady();
    // The poll between two immediates reads what came with the connection.
    else if (trusted || this.#isKnown(clientKey)) setImmediate(() => setImmediate(() => { connection.connectionReady(); }));
    else {
      setTimeout(() => {
        if (!connection._closing && !connection._closed) this.#waited(clientKey);
        connection.connectionReady();
      }, this.#delayMs).unref();
    }
  }

  /** The client talked before it was greeted. */
  onEarlyTalk(clientKey: string): void {
    this.#known.delete(clientKey);
  }

  #isKnown(clientKey: string): boolean {
    const sinceMs = this.#known.get(clientKey);
    return sinceMs !== undefined && this.#nowMs() - sinceMs < KNOWN_MS;
  }

  #waited(clientKey: string): void {
    this.#known.delete(clientKey);
    this.#known.set(clientKey, this.#nowMs());
    if (this.#known.size <= KNOWN_MAX) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }
}
