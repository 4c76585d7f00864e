/**
 * How many refusals of one client the mail log gets: each costs a line, and a client may earn a thousand a
 * second. The first of a minute are written, the others counted; the count is told once the minute is over.
 * Metrics count all.
 *
 *   refusal ─ fewer than LINES_A_MINUTE in this minute ─▶ a line;   else ─▶ counted ─ minute over ─▶ a line
 *
 * Owns an entry a client that was refused in the last minute or two, at most CLIENTS_MAX: when those are used
 * up, refusals of others are counted together.
 */

const MINUTE_MS = 60_000;
const LINES_A_MINUTE = 200;
const CLIENTS_MAX = 10_000;
/** Those that found no entry. */
const OTHERS = '';

interface Refusals {
  readonly sinceMs: number;
  lines: number;
  /** Without a line. */
  unwritten: number;
}

export class RejectionDamper {
  /** By key of the client (client-counts.ts), the one whose minute is over first in front. */
  readonly #clients = new Map<string, Refusals>();
  readonly #tell: (clientKey: string, count: number) => void;

  /** `tell`: so many refusals of this client ('': of several) had no line. */
  constructor(tell: (clientKey: string, count: number) => void) {
    this.#tell = tell;
  }

  /** Whether this refusal gets a line. */
  onRefusal(clientKey: string, nowMs: number): boolean {
    const key = this.#clients.has(clientKey) || this.#clients.size < CLIENTS_MAX ? clientKey : OTHERS;
    let refusals = this.#clients.get(key);
    if (refusals === undefined) {
      refusals = { sinceMs: nowMs, lines: 0, unwritten: 0 };
      this.#clients.set(key, refusals);
    }
    if (refusals.lines < LINES_A_MINUTE) {
      refusals.lines++;
      return true;
    }
    refusals.unwritten++;
    return false;
  }

  tick(nowMs: number): void {
    for (const [key, { sinceMs, unwritten }] of this.#clients) {
      if (nowMs - sinceMs < MINUTE_MS) return;
      this.#clients.delete(key);
      if (unwritten > 0) this.#tell(key, unwritten);
    }
  }
}
