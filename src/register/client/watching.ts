/**
 * One watch of a client: what was told of each key, so that after any gap exactly the difference is told.
 *
 *   WAITING ── line up, and it is time / range ──► ASKING ── all entries at one revision / onSnapshot ──►
 *      ▲                                              │       FOLLOWING ── changes / onChange, onDeleted
 *      │                                              ▼           ▼
 *      └── line down, or watch broken (compacted, cancelled) / onAway, once
 *   any but CLOSED ── close() ──► CLOSED
 *
 * After a gap it always reads anew and compares: so it does not matter whether the changes were compacted, or
 * an older state of the register came back with lower revisions.
 */
import { invariant } from '../../base/invariant.js';
import { ENTRIES_MAX } from '../limits.js';
import type { Change, Line, RangeAnswer } from '../line.js';
import type { WatchListener } from '../port.js';

const WatchState = { waiting: 0, asking: 1, following: 2, closed: 3 } as const;
type WatchState = (typeof WatchState)[keyof typeof WatchState];

const NEXT: Readonly<Record<WatchState, readonly WatchState[]>> = {
  [WatchState.waiting]: [WatchState.asking, WatchState.closed],
  [WatchState.asking]: [WatchState.following, WatchState.waiting, WatchState.closed],
  [WatchState.following]: [WatchState.waiting, WatchState.closed],
  [WatchState.closed]: [],
};

/** A read or watch that failed while the line is up is tried again after so long. */
const AGAIN_MS = 500;

export class Watching {
  readonly prefixes: readonly string[];
  readonly #listener: WatchListener;
  /** Revision of each key that the listener knows of. */
  #known = new Map<string, number>();
  #state: WatchState = WatchState.waiting;
  #isAway = true;
  /** A snapshot was told: from then on a gap is told too. */
  #isTold = false;
  #againMs = 0;
  #sentMs = 0;
  /** Answers of an older attempt are not for us. */
  #attempt = 0;
  #following: { close(): void; } | undefined;

  constructor(prefixes: readonly string[], listener: WatchListener) {
    this.prefixes = prefixes;
    this.#listener = listener;
  }

  /** Since when an answer is awaited; undefined for none. */
  get awaitingSinceMs(): number | undefined {
    return this.#state === WatchState.asking ? this.#sentMs : undefined;
  }

  /** Asks when it is time to. `heard` is told of every answer. */
  ask(line: Line, nowMs: number, heard: () => void): void {
    if (this.#state !== WatchState.waiting || nowMs < this.#againMs) return;
    this.#transition(WatchState.asking);
    this.#sentMs = nowMs;
    this.#attempt += 1;
    const attempt = this.#attempt;
    line.range(this.prefixes.map((prefix) => ({ prefix })), (answer) => {
      if (attempt !== this.#attempt || this.#state !== WatchState.asking) return;
      heard();
      this.#onRange(line, answer, nowMs, heard);
    });
  }

  /** The line is down, or the watch broke: what was told may be old. */
  lose(why: string, againMs = 0): void {
    if (this.#state === WatchState.closed) return;
    if (this.#state !== WatchState.waiting) this.#transition(WatchState.waiting);
    this.#againMs = againMs;
    this.#attempt += 1;
    this.#following?.close();
    this.#following = undefined;
    if (this.#isAway) return;
    this.#isAway = true;
    if (this.#isTold) this.#listener.onAway(why);
  }

  close(): void {
    if (this.#state !== WatchState.closed) this.#transition(WatchState.closed);
    this.#attempt += 1;
    this.#following?.close();
    this.#following = undefined;
    this.#known.clear();
  }

  #onRange(line: Line, answer: RangeAnswer, nowMs: number, heard: () => void): void {
    const tooMany = answer.kind === 'entries' && answer.entries.length > ENTRIES_MAX;
    if (answer.kind === 'failed' || tooMany) {
      this.lose(
        answer.kind === 'failed' ? answer.why : `more than ${String(ENTRIES_MAX)} keys`,
        nowMs + AGAIN_MS,
      );
      return;
    }
    this.#transition(WatchState.following);
    const attempt = this.#attempt;
    this.#following = line.watch(this.prefixes, answer.revision, {
      onChanges: (changes) => {
        if (attempt !== this.#attempt) return;
        heard();
        for (const change of changes) this.#onChange(change, attempt);
      },
      onBroken: (why) => {
        if (attempt === this.#attempt) this.lose(why, nowMs + AGAIN_MS);
      },
    });
    const known = new Map(answer.entries.map(({ key, revision }) => [key, revision]));
    const deleted = [...this.#known.keys()].filter((key) => !known.has(key));
    this.#known = known;
    this.#isAway = false;
    this.#isTold = true;
    this.#listener.onSnapshot(answer.entries, deleted);
  }

  #onChange(change: Change, attempt: number): void {
    // The listener may have closed it at the change before.
    if (attempt !== this.#attempt) return;
    if (change.entry === undefined) {
      if (this.#known.delete(change.key)) this.#listener.onDeleted(change.key, change.revision);
      return;
    }
    if ((this.#known.get(change.key) ?? 0) >= change.revision) return;
    this.#known.set(change.key, change.revision);
    if (this.#known.size > ENTRIES_MAX) this.lose(`more than ${String(ENTRIES_MAX)} keys`);
    else this.#listener.onChange(change.entry);
  }

  #transition(to: WatchState): void {
    const from = this.#state;
    invariant(NEXT[from].includes(to), `a watch does not go from ${String(from)} to ${String(to)}`);
    this.#state = to;
  }
}
