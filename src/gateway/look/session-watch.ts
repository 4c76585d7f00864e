/**
 * Who follows SMTP sessions live, and what each is told: the lines of the sessions that he asked for, as many
 * a second as he may have; what is beyond is counted, and told as a number. Sessions tell it by SessionTap.
 *
 *   session ─ said() ─► watchers that want this peer ─► a line each, or one more that was left out
 *
 * Owns the watchers. Pure; the stream of a watcher is gateway/admin/trace-api.ts.
 */
import type { TraceLine } from '../../admin-api/trace.js';
import type { Clock } from '../../platform/ports.js';
import type { SessionTap, Speaker } from '../../smtp/session-tap.js';

/** At one gateway: each costs every line of every session a comparison. */
const WATCHERS_MAX = 8;
const LINES_PER_SECOND_MAX = 500;
const TEXT_CHARACTERS_MAX = 1_000;
/** Of one reply. */
const LINES_AT_ONCE_MAX = 100;

export interface SessionWatcher {
  wants(peer: string): boolean;
  /** False: there was no room for it. */
  write(line: TraceLine): boolean;
}

interface Followed {
  readonly watcher: SessionWatcher;
  /** In this second. */
  lines: number;
  leftOut: number;
}

export class SessionWatch implements SessionTap {
  #isOn = false;
  readonly #clock: Clock;
  readonly #watching = new Map<SessionWatcher, Followed>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** False: too many follow already. */
  add(watcher: SessionWatcher): boolean {
    if (this.#watching.size >= WATCHERS_MAX) return false;
    this.#watching.set(watcher, { watcher, lines: 0, leftOut: 0 });
    this.#isOn = true;
    return true;
  }

  remove(watcher: SessionWatcher): void {
    this.#watching.delete(watcher);
    this.#isOn = this.#watching.size > 0;
  }

  /** Once a second; returns how many lines were left out since. */
  nextSecond(watcher: SessionWatcher): number {
    const watching = this.#watching.get(watcher);
    if (watching === undefined) return 0;
    const { leftOut } = watching;
    watching.lines = 0;
    watching.leftOut = 0;
    return leftOut;
  }

  said(peer: string, port: number, who: Speaker, text: string): void {
    for (const watching of this.#watching.values()) {
      if (watching.watcher.wants(peer)) this.#tell(watching, peer, port, who, text);
    }
  }

  #tell(watching: Followed, peer: string, port: number, who: Speaker, text: string): void {
    const at = this.#clock.wallMs();
    for (const line of text.split('\r\n', LINES_AT_ONCE_MAX)) {
      if (line === '') continue;
      const said = line.slice(0, TEXT_CHARACTERS_MAX);
      const isRoom = watching.lines++ < LINES_PER_SECOND_MAX;
      if (!isRoom || !watching.watcher.write({ at, peer, port, who, text: said })) watching.leftOut += 1;
    }
  }
}
