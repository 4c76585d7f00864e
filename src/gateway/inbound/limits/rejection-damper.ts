/**
 * How many refusals the mail log gets: each costs a line, and a client may earn a thousand a second, from an
 * address of its own each. Of a client, of its network, and of all together so many in a minute are written,
 * the others counted; the count is told once the minute is over. Metrics count all.
 *
 *   refusal ─ client, network and all have lines left in their minutes ─▶ a line
 *           └ else ─▶ counted at the first that has none ─ its minute is over ─▶ a line
 *
 * Owns an entry a client and a network that was refused in the last minute or two, at most ENTRIES_MAX of
 * each: when those are used up, refusals of others are counted together.
 */
import { clientKey, networkKey } from './client-counts.js';

const MINUTE_MS = 60_000;
/** Of 350 bytes some 70 KB a minute; of 3 KB at most, whatever addresses they name (mail-log.ts). */
const CLIENT_LINES = 200;
const NETWORK_LINES = 400;
/** Of a listener in each worker, whoever comes: some 3.5 MB a minute, 30 at most. */
const ALL_LINES = 10_000;
const ENTRIES_MAX = 10_000;
/** Those that found no entry, and all. */
const OTHERS = '';

/** `whose`: a client, a network, '' for several. */
type Tell = (whose: string, count: number) => void;

export class RejectionDamper {
  readonly #clients: Lines;
  readonly #networks: Lines;
  readonly #all: Lines;

  /** `tell`: so many refusals had no line. */
  constructor(tell: Tell) {
    this.#clients = new Lines(CLIENT_LINES, tell);
    this.#networks = new Lines(NETWORK_LINES, tell);
    this.#all = new Lines(ALL_LINES, tell);
  }

  /** Whether this refusal gets a line. */
  onRefusal(address: string, nowMs: number): boolean {
    return this.#clients.take(clientKey(address), nowMs)
      && this.#networks.take(networkKey(address), nowMs)
      && this.#all.take(OTHERS, nowMs);
  }

  tick(nowMs: number): void {
    this.#clients.tick(nowMs);
    this.#networks.tick(nowMs);
    this.#all.tick(nowMs);
  }
}

interface Entry {
  readonly sinceMs: number;
  lines: number;
  /** Without a line. */
  unwritten: number;
}

class Lines {
  readonly #most: number;
  readonly #tell: Tell;
  /** By key, the one whose minute is over first in front. */
  readonly #entries = new Map<string, Entry>();

  constructor(most: number, tell: Tell) {
    this.#most = most;
    this.#tell = tell;
  }

  /** Takes a line of the minute, or counts one that there is not. */
  take(wanted: string, nowMs: number): boolean {
    const key = this.#entries.has(wanted) || this.#entries.size < ENTRIES_MAX ? wanted : OTHERS;
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = { sinceMs: nowMs, lines: 0, unwritten: 0 };
      this.#entries.set(key, entry);
    }
    const hasLine = entry.lines < this.#most;
    if (hasLine) entry.lines++;
    else entry.unwritten++;
    return hasLine;
  }

  tick(nowMs: number): void {
    for (const [key, { sinceMs, unwritten }] of this.#entries) {
      if (nowMs - sinceMs < MINUTE_MS) return;
      this.#entries.delete(key);
      if (unwritten > 0) this.#tell(key, unwritten);
    }
  }
}
