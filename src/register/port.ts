/**
 * The register as its users see it: a small linearizable map of texts, changed by compare-and-set, with
 * sessions that end when their owner falls silent. It says who holds a partition (DESIGN "register") and
 * stands beside the path of mail, never on it.
 *
 *     users (machines of gateways and stores)
 *        │  Register                     this file
 *     client/ RegisterClient             deadlines, batches, watches, sessions; the same code for all
 *        │  Line                         line.ts: one connection to one endpoint
 *     etcd/ · file/ · simulated/         who really keeps the map
 *
 * What every implementation promises:
 * - Nothing given to a call is called from inside that call: a machine is not entered twice.
 * - Each call is answered exactly once, at the latest when its deadline is over, close() included.
 * - A write is settled by itself: what stands beside it in one call neither fails nor delays it for good.
 * - 'unknown' may still be applied, at any later time, also after this process died. A read that shows the
 *   old revision says nothing about it; only a moved revision does (DESIGN, Ownership rule 2).
 * - 'refused' was never sent, or was answered by a refusal: it is not applied, now or ever.
 * - Reads are linearizable: they show every write that was settled before they began.
 */

/**
 * What stands under a key. Revisions grow with every change of any key; 0 is the revision of what is absent.
 */
export interface Entry {
  readonly key: string;
  readonly value: string;
  readonly revision: number;
  /** The session that it ends with; '' when it stays. */
  readonly session: string;
}

/** A further compare of a write: nothing is written unless `key` stands at `revision` too. */
export interface Guard {
  readonly key: string;
  /** 0: absent. */
  readonly revision: number;
  /** And with this value: see Write.ifValue. */
  readonly value?: string | undefined;
}

export interface Write {
  readonly key: string;
  /** Written only if the key stands at this revision; 0: only if it is absent. */
  readonly ifRevision: number;
  /**
   * And only if it has this value: a register that was put back to an older state gives its revisions once
   * more, to other values (rule 15.8 of docs/model).
   */
  readonly ifValue?: string | undefined;
  /** null deletes. */
  readonly value: string | null;
  /** The key ends with this session. */
  readonly session?: Session | undefined;
  readonly guards?: readonly Guard[] | undefined;
}

/** The compare of a write with what was read: nothing changed since, even if an older state came back. */
export function unchanged(entry: Entry | undefined): Pick<Write, 'ifRevision' | 'ifValue'> {
  return { ifRevision: entry?.revision ?? 0, ifValue: entry?.value };
}

export type Outcome =
  | { readonly kind: 'done'; readonly revision: number; }
  /**
   * Not applied: a compare failed. `entry` is what stands under the key; `guard` the first guard
   * that failed, '' for none.
   */
  | { readonly kind: 'stale'; readonly entry: Entry | undefined; readonly guard: string; }
  /** Sent and not answered: may still be applied, at any time. */
  | { readonly kind: 'unknown'; readonly why: string; }
  /** Not applied, and never will be. */
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly why: string; };

/**
 * away: the register was not reached within the deadline · full: too much waits here, or is kept there ·
 * limit: a key, value or count past its limit · session: the session is not open · denied: the register does
 * not let this user · closed: this client is closed.
 */
export type RefusalReason = 'away' | 'full' | 'limit' | 'session' | 'denied' | 'closed';

/** One key, or all keys that begin with a prefix. */
export type Range = { readonly key: string; } | { readonly prefix: string; };

export type ReadResult =
  | { readonly kind: 'entries'; readonly entries: readonly Entry[]; readonly revision: number; }
  | { readonly kind: 'unreachable'; readonly why: string; };

/** News of all keys with one of the prefixes of a watch. Each key's changes come in order, none twice. */
export interface WatchListener {
  /**
   * All that stands there now. The first answer of a watch; and again after onAway, which it ends: `deleted`
   * names the keys that were told before and are gone meanwhile.
   */
  onSnapshot(entries: readonly Entry[], deleted: readonly string[]): void;
  onChange(entry: Entry): void;
  onDeleted(key: string, revision: number): void;
  /** What was told may be old from now on, until the next snapshot. Never a verdict about any key. */
  onAway(why: string): void;
}

export interface Watch {
  close(): void;
}

export interface SessionListener {
  /** Keys can be written with it. */
  onOpen(): void;
  /** It is over, and its keys are deleted. Comes at most once, and not after close(). */
  onLost(why: string): void;
}

/**
 * A lease of keys, kept alive until it is closed or lost. Who acts by it asks `validUntilMs`, not whether it
 * was told to be lost: news may come late.
 */
export interface Session {
  /** As in Entry.session; '' until it is open. */
  readonly id: string;
  /**
   * On the monotonic clock: until then its keys stand for sure. Counted from before the last
   * keep-alive that was answered had been sent, with the drift bound taken off; 0 until it is open and
   * once it is lost or closed.
   */
  readonly validUntilMs: number;
  /** Ends it and deletes its keys; `done` when that is known, or given up (then they end by themselves). */
  close(done: (isKnown: boolean) => void): void;
}

export interface RegisterState {
  readonly isUp: boolean;
  /** The endpoint in use, '' while away. */
  readonly endpoint: string;
  /** Why it is away, with what to do. */
  readonly why: string;
  /** On the monotonic clock. */
  readonly sinceMs: number;
}

export interface Register {
  readonly state: RegisterState;
  /** `settled` comes once for each write, with its index. */
  write(writes: readonly Write[], settled: (index: number, outcome: Outcome) => void): void;
  read(range: Range, done: (result: ReadResult) => void): void;
  watch(prefixes: readonly string[], listener: WatchListener): Watch;
  openSession(ttlMs: number, listener: SessionListener): Session;
  /** Answers what waits and lets go of everything. Sessions that were not closed end by themselves. */
  close(): void;
}
