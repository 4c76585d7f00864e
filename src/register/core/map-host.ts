/**
 * A map with its clock, its watchers and its place on disk: the whole of a register that one process keeps.
 * Pure: the disk is a port. What one turn brings is applied to a copy, kept once, and only
 * then answered and told.
 *
 *     calls of a turn ──► queue ── end of turn ──► copy of the map ── keep()
 *                                                                       │
 *         kept ──► the copy is the map; answers; changes to watchers  ◄─┤
 *      refused ──► the copy is dropped; answers 'refused'             ◄─┤
 *       unsure ──► the copy is the map; answers 'unknown';            ◄─┘
 *                  nothing is read or told until it is kept
 *
 * Sessions run by the clock here. At the start, and after anything that kept calls from coming in, each has
 * its whole time again: a holder's view of its session must end first.
 */
import type { Clock } from '../../platform/ports.js';
import type {
  Change,
  ChangesHandler,
  LeaseAnswer,
  LineWrite,
  RangeAnswer,
  TransactionAnswer,
  WriteResult,
} from '../line.js';
import type { Range } from '../port.js';
import type { RegisterMap } from './register-map.js';

/** Changes kept for watchers that come back. */
const HISTORY_MAX = 1_024;
/** After keeping failed it is tried again. */
const KEEP_AGAIN_MS = 1_000;

/** Who was not ticked for so long may not have read what came in meanwhile. */
const STALL_MS = 1_000;

/** refused: the old state is what is kept. unsure: either may be. */
export type KeepResult = { readonly kind: 'kept'; } | {
  readonly kind: 'refused' | 'unsure';
  readonly why: string;
};

export interface MapHostPorts {
  readonly clock: Clock;
  /** Runs later in this turn, or right after it. */
  readonly soon: (run: () => void) => void;
  /** Makes a state last; answers later, and one at a time. */
  readonly keep: (map: RegisterMap, done: (result: KeepResult) => void) => void;
}

interface Step {
  /** Changes the copy and answers what is to be called once that is kept. */
  readonly apply: (map: RegisterMap, changes: Change[]) => () => void;
  readonly fail: (result: { readonly kind: 'refused' | 'unsure'; readonly why: string; }) => void;
}

interface Watcher {
  readonly prefixes: readonly string[];
  readonly handler: ChangesHandler;
  /** It was told what the history had for it; from now on it hears of each change. */
  isCurrent: boolean;
}

export class MapHost {
  #map: RegisterMap;
  readonly #ports: MapHostPorts;
  readonly #endsMs = new Map<string, number>();
  readonly #watchers = new Set<Watcher>();
  #history: Change[] = [];
  /** Changes of the map here that are not yet known to be kept. */
  readonly #untold: Change[] = [];
  /** The revision before the first change of the history. */
  #historyFrom: number;
  #queue: Step[] = [];
  #isKeeping = false;
  #isTurnAsked = false;
  /** Why the state here is not known to be kept; '' when it is. */
  #unsure = '';
  #keepAgainMs = 0;
  #tickMs: number;
  /** Counts replaced states: what was being kept then is nobody's. */
  #replaced = 0;
  #stopped = '';
  readonly #stopping = new Set<(why: string) => void>();

  constructor(map: RegisterMap, ports: MapHostPorts) {
    this.#map = map;
    this.#ports = ports;
    this.#historyFrom = map.revision;
    this.#tickMs = ports.clock.nowMs();
    this.extendSessions();
  }

  get map(): RegisterMap {
    return this.#map;
  }

  /** Why it was given up; '' while it was not. */
  get stopped(): string {
    return this.#stopped;
  }

  /** Gives the map up: nothing is read or written any more. */
  stop(why: string): void {
    if (this.#stopped !== '') return;
    this.#stopped = why;
    this.#unsure = why;
    for (const stopping of [...this.#stopping]) stopping(why);
  }

  onStop(stopping: (why: string) => void): { close(): void; } {
    this.#stopping.add(stopping);
    return {
      close: () => {
        this.#stopping.delete(stopping);
      },
    };
  }

  transact(writes: readonly LineWrite[], done: (answer: TransactionAnswer) => void): void {
    this.#enter({
      apply: (map, changes) => {
        const results: WriteResult[] = writes.map((write) => map.apply(write, changes));
        return () => {
          done({ kind: 'settled', results });
        };
      },
      fail: ({ kind, why }) => {
        done(kind === 'refused' ? { kind, reason: 'away', why } : { kind: 'unknown', why });
      },
    });
  }

  range(ranges: readonly Range[], done: (answer: RangeAnswer) => void): void {
    this.#ports.soon(() => {
      if (this.#unsure !== '') done({ kind: 'failed', why: this.#unsure });
      else done({ kind: 'entries', entries: this.#map.list(ranges), revision: this.#map.revision });
    });
  }

  watch(prefixes: readonly string[], afterRevision: number, handler: ChangesHandler): { close(): void; } {
    const watcher: Watcher = { prefixes, handler, isCurrent: false };
    this.#watchers.add(watcher);
    this.#ports.soon(() => {
      if (!this.#watchers.has(watcher)) return;
      if (afterRevision < this.#historyFrom || afterRevision > this.#map.revision) {
        this.#watchers.delete(watcher);
        handler.onBroken(`changes since revision ${String(afterRevision)} are not kept`);
        return;
      }
      watcher.isCurrent = true;
      tell(watcher, this.#history.filter((change) => change.revision > afterRevision));
    });
    return {
      close: () => {
        this.#watchers.delete(watcher);
      },
    };
  }

  grant(session: string, ttlMs: number, done: (answer: LeaseAnswer) => void): void {
    this.#enter({
      apply: (map) => {
        const isOpen = map.openSession(session, ttlMs);
        if (isOpen) this.#endsMs.set(session, this.#ports.clock.nowMs() + ttlMs);
        return () => {
          done(
            isOpen
              ? { kind: 'granted', ttlMs }
              : { kind: 'failed', why: 'the register has too many sessions' },
          );
        };
      },
      fail: ({ why }) => {
        done({ kind: 'failed', why });
      },
    });
  }

  /** Touches no disk: after a restart each session has its whole time again. */
  renew(session: string, done: (answer: LeaseAnswer) => void): void {
    const ttlMs = this.#map.sessions.get(session);
    // One that runs out is ended in a turn of its own; until then it may be renewed,
    // but not once that has begun.
    if (ttlMs !== undefined && this.#endsMs.has(session)) {
      this.#endsMs.set(session, this.#ports.clock.nowMs() + ttlMs);
    }
    const isOpen = ttlMs !== undefined && this.#endsMs.has(session);
    this.#ports.soon(() => {
      done(isOpen ? { kind: 'granted', ttlMs } : { kind: 'gone' });
    });
  }

  revoke(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#endSession(session, done);
  }

  /** Gives every session its whole time from now on. */
  extendSessions(): void {
    const nowMs = this.#ports.clock.nowMs();
    this.#endsMs.clear();
    for (const [id, ttlMs] of this.#map.sessions) this.#endsMs.set(id, nowMs + ttlMs);
  }

  tick(nowMs: number): void {
    if (this.#stopped !== '') return;
    const stalledMs = nowMs - this.#tickMs;
    this.#tickMs = nowMs;
    if (stalledMs >= STALL_MS) this.extendSessions();
    for (const [id, endsMs] of this.#endsMs) if (nowMs >= endsMs) this.#endSession(id, () => {});
    if (this.#unsure !== '' && nowMs >= this.#keepAgainMs) this.#askTurn();
  }

  /** Another state, older or empty: what a restored backup does. Watchers are cut off. */
  replace(map: RegisterMap): void {
    this.#replaced += 1;
    this.#map = map;
    this.#history = [];
    this.#untold.length = 0;
    this.#historyFrom = map.revision;
    this.extendSessions();
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    for (const { handler } of watchers) handler.onBroken('the register has another state');
  }

  #endSession(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#endsMs.delete(session);
    this.#enter({
      apply: (map, changes) => {
        map.endSession(session, changes);
        return () => {
          done({ kind: 'gone' });
        };
      },
      fail: ({ why }) => {
        // It stays, and runs out once more.
        if (this.#map.sessions.has(session)) {
          this.#endsMs.set(session, this.#ports.clock.nowMs() + KEEP_AGAIN_MS);
        }
        done({ kind: 'failed', why });
      },
    });
  }

  #enter(step: Step): void {
    this.#queue.push(step);
    this.#askTurn();
  }

  #askTurn(): void {
    if (this.#isTurnAsked || this.#isKeeping) return;
    this.#isTurnAsked = true;
    this.#ports.soon(() => {
      this.#endOfTurn();
    });
  }

  #endOfTurn(): void {
    this.#isTurnAsked = false;
    const steps = this.#queue;
    this.#queue = [];
    if (this.#unsure !== '' && steps.length > 0) {
      // Nothing is built on a state that may not be there after a crash.
      for (const step of steps.splice(0)) step.fail({ kind: 'refused', why: this.#unsure });
    }
    if (this.#stopped !== '' || (this.#unsure !== '' && this.#ports.clock.nowMs() < this.#keepAgainMs)) {
      return;
    }
    const copy = this.#map.copy();
    const changes: Change[] = [];
    const answers = steps.map((step) => step.apply(copy, changes));
    const isSame = changes.length === 0 && sameSessions(copy.sessions, this.#map.sessions)
      && this.#unsure === '';
    if (isSame) {
      for (const answer of answers) answer();
      return;
    }
    this.#isKeeping = true;
    const replaced = this.#replaced;
    this.#ports.keep(copy, (result) => {
      this.#isKeeping = false;
      if (replaced === this.#replaced) this.#onKept(result, copy, changes, steps, answers);
      else for (const step of steps) step.fail({ kind: 'unsure', why: 'the register has another state' });
      if (this.#queue.length > 0) this.#askTurn();
    });
  }

  #onKept(
    result: KeepResult,
    copy: RegisterMap,
    changes: readonly Change[],
    steps: readonly Step[],
    answers: readonly (() => void)[],
  ): void {
    if (result.kind !== 'refused') this.#adopt(copy, changes);
    if (result.kind === 'kept') {
      this.#unsure = this.#stopped;
      this.#tellAll();
      for (const answer of answers) answer();
    } else {
      if (result.kind === 'unsure') this.#unsure = result.why;
      this.#keepAgainMs = this.#ports.clock.nowMs() + KEEP_AGAIN_MS;
      for (const step of steps) step.fail(result);
    }
  }

  #adopt(map: RegisterMap, changes: readonly Change[]): void {
    this.#map = map;
    for (const id of this.#endsMs.keys()) if (!map.sessions.has(id)) this.#endsMs.delete(id);
    this.#untold.push(...changes);
  }

  /** Watchers hear only of what is kept. */
  #tellAll(): void {
    const changes = this.#untold.splice(0);
    if (changes.length === 0) return;
    this.#history.push(...changes);
    const surplus = this.#history.length - HISTORY_MAX;
    if (surplus > 0) {
      this.#historyFrom = this.#history.splice(0, surplus).at(-1)?.revision ?? this.#historyFrom;
    }
    for (const watcher of [...this.#watchers]) if (watcher.isCurrent) tell(watcher, changes);
  }
}

function tell({ prefixes, handler }: Watcher, changes: readonly Change[]): void {
  const wanted = changes.filter(({ key }) => prefixes.some((prefix) => key.startsWith(prefix)));
  if (wanted.length > 0) handler.onChanges(wanted);
}

function sameSessions(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  if (a.size !== b.size) return false;
  for (const id of a.keys()) if (!b.has(id)) return false;
  return true;
}
