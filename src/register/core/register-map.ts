/**
 * The map itself: keys, values, revisions, and the sessions that keys end with. Pure, without a clock: when a
 * session has run out is for map-host.ts to say. Shared by the file and by the simulated register.
 *
 * Every change raises the revision by one; a revision is never given twice, unless an older state comes back.
 */
import { invariant } from '../../base/invariant.js';
import { ENTRIES_MAX, SESSIONS_MAX, isInRange } from '../limits.js';
import type { Change, LineWrite, WriteResult } from '../line.js';
import type { Entry, Range } from '../port.js';

/** Sessions of all clients of one register: one a gateway and store. */
const ALL_SESSIONS_MAX = SESSIONS_MAX * 64;

export class RegisterMap {
  #revision: number;
  readonly #entries: Map<string, Entry>;
  /** ttlMs by id. */
  readonly #sessions: Map<string, number>;

  constructor(
    revision = 0,
    entries: Iterable<Entry> = [],
    sessions: Iterable<readonly [string, number]> = [],
  ) {
    this.#revision = revision;
    this.#entries = new Map([...entries].map((entry) => [entry.key, entry]));
    this.#sessions = new Map(sessions);
  }

  /** Shares no state with this one; entries never change. */
  copy(): RegisterMap {
    return new RegisterMap(this.#revision, this.#entries.values(), this.#sessions);
  }

  get revision(): number {
    return this.#revision;
  }

  get sessions(): ReadonlyMap<string, number> {
    return this.#sessions;
  }

  get(key: string): Entry | undefined {
    return this.#entries.get(key);
  }

  /** In the order of their keys, each once. */
  list(ranges: readonly Range[]): Entry[] {
    const entries = [...this.#entries.values()].filter((entry) =>
      ranges.some((range) => isInRange(entry.key, range))
    );
    return entries.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Compares and writes; what changed is added to `changes`. */
  apply(write: LineWrite, changes: Change[]): WriteResult {
    const entry = this.#entries.get(write.key);
    const guard = write.guards.find(({ key, revision, value }) =>
      !isAt(this.#entries.get(key), revision, value)
    );
    if (!isAt(entry, write.ifRevision, write.ifValue) || guard !== undefined) {
      return { kind: 'stale', entry, guard: guard?.key ?? '' };
    }
    if (write.session !== '' && !this.#sessions.has(write.session)) {
      return { kind: 'refused', reason: 'session', why: `session ${write.session} is over` };
    }
    if (entry === undefined && write.value !== null && this.#entries.size >= ENTRIES_MAX) {
      return { kind: 'refused', reason: 'full', why: `the register has ${String(ENTRIES_MAX)} keys already` };
    }
    if (write.value !== null) {
      this.#put(
        { key: write.key, value: write.value, revision: this.#revision + 1, session: write.session },
        changes,
      );
    } else if (entry !== undefined) this.#delete(write.key, changes);
    return { kind: 'done', revision: this.#revision };
  }

  /** False when there are too many; opening it again is no change. */
  openSession(id: string, ttlMs: number): boolean {
    invariant(id !== '' && ttlMs > 0, 'a session has an id and a time to live');
    if (this.#sessions.has(id)) return true;
    if (this.#sessions.size >= ALL_SESSIONS_MAX) return false;
    this.#sessions.set(id, ttlMs);
    return true;
  }

  /** Deletes its keys too. */
  endSession(id: string, changes: Change[]): void {
    if (!this.#sessions.delete(id)) return;
    for (const entry of [...this.#entries.values()]) {
      if (entry.session === id) this.#delete(entry.key, changes);
    }
  }

  #put(entry: Entry, changes: Change[]): void {
    this.#revision = entry.revision;
    this.#entries.set(entry.key, entry);
    changes.push({ key: entry.key, revision: entry.revision, entry });
  }

  #delete(key: string, changes: Change[]): void {
    this.#revision += 1;
    this.#entries.delete(key);
    changes.push({ key, revision: this.#revision, entry: undefined });
  }
}

/** What a compare finds: this revision, 0 for absent; and this value, if one is given. */
export function isAt(entry: Entry | undefined, revision: number, value: string | undefined): boolean {
  return (entry?.revision ?? 0) === revision && (value === undefined || entry?.value === value);
}
