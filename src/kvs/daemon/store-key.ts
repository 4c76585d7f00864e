/**
 * The key stores/ID of a running store: by it every gateway of the group finds the store, without a restart
 * of its own. It stands as long as the session of this process. Nothing that the store does for its gateways
 * depends on it: while the register is away, or the key is missing, it serves on.
 *
 *   OPENING ── the session is open ──► LOOKING ── no key, or ours, or of who was at our addresses ──► WRITING
 *      ▲                                │   ▲                                                           │
 *      │                                │   └── stale, no answer: after a while ◄───────────────────────┤
 *      │                                │   └── the key is gone, or another's ◄── STANDING ◄── done ────┘
 *      │                                │                                          │ what it says has changed
 *      │                                │                                          └──► WRITING
 *      │                                ├── another process has it ──► WAITING, and looks again
 *      │                                └── it stays, and ours never stood ──► REFUSED: this process must end
 *      └── the session is lost: then with another one
 *
 * - Whoever stood at the very addresses on which this process listens now is dead: a start overwrites its
 *   key. Any other one is waited for, twice as long as a session lasts.
 * - A process whose key stood once is never ended by the register, which may have been rolled back: copies
 *   of mail are here. It says in the log that there are two.
 *
 * No timers: time comes by tick().
 */
import { invariant } from '../../base/invariant.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import { BrokenRule } from '../../register/core/shapes.js';
import { storeKey } from '../../register/keys.js';
import type { Entry, Outcome, Register, Session } from '../../register/port.js';
import { decodeStore, encodeStore } from '../../register/records.js';
import type { StoreRecord } from '../../register/records.js';

export const StoreKeyState = {
  OPENING: 0,
  LOOKING: 1,
  WRITING: 2,
  STANDING: 3,
  WAITING: 4,
  REFUSED: 5,
  CLOSED: 6,
} as const;
export type StoreKeyStateValue = (typeof StoreKeyState)[keyof typeof StoreKeyState];

const { OPENING, LOOKING, WRITING, STANDING, WAITING, REFUSED, CLOSED } = StoreKeyState;

const NEXT: Readonly<Record<StoreKeyStateValue, readonly StoreKeyStateValue[]>> = {
  [OPENING]: [LOOKING, CLOSED],
  [LOOKING]: [WRITING, STANDING, WAITING, REFUSED, OPENING, CLOSED],
  [WRITING]: [STANDING, LOOKING, OPENING, CLOSED],
  [STANDING]: [WRITING, LOOKING, OPENING, CLOSED],
  [WAITING]: [LOOKING, OPENING, CLOSED],
  [REFUSED]: [CLOSED],
  [CLOSED]: [],
};

export function isValidStoreKeyTransition(from: StoreKeyStateValue, to: StoreKeyStateValue): boolean {
  return NEXT[from].includes(to);
}

/** As a gateway's session (DESIGN, "Keys"). */
const SESSION_TTL_MS = 5_000;
/** After an answer that settles nothing, and between two looks at another's key. */
const AGAIN_MS = 500;
/** Free memory is told when it has moved by more than this share, and no more often than that. */
const MOVED_SHARE = 0.1;
const REFRESH_MS = 10_000;

export interface StoreKeyPorts {
  readonly register: Register;
  readonly clock: Clock;
  readonly log: EventLog;
  /** What is so now. */
  record(): StoreRecord;
  /** Another process of this store lives, and did before this one: once; nothing follows but close(). */
  onRefused(why: string): void;
}

export class StoreKey {
  readonly #storeId: string;
  readonly #ports: StoreKeyPorts;
  readonly #key: string;
  #state: StoreKeyStateValue = OPENING;
  #session: Session | undefined;
  /** Of the session; its answers alone are for us. */
  #attempt = 0;
  #isAsking = false;
  #againMs = -Infinity;
  #hasStood = false;
  /** What was written last, at which revision, and when. */
  #written: StoreRecord | undefined;
  #revision = 0;
  #writtenMs = -Infinity;
  /** Whose key was found in place of ours, and since when that was seen without a break. */
  #other = { session: '', sinceMs: 0 };

  constructor(storeId: string, ports: StoreKeyPorts) {
    this.#storeId = storeId;
    this.#ports = ports;
    this.#key = storeKey(storeId);
    this.#open();
  }

  get state(): StoreKeyStateValue {
    return this.#state;
  }

  /** What a watch tells of the key: no more than a reason to look. */
  onNews(entry: Entry | undefined): void {
    if (this.#state === WAITING) this.#againMs = -Infinity;
    if (this.#state !== STANDING || entry?.session === this.#session?.id) return;
    this.#transition(LOOKING);
    this.#againMs = -Infinity;
  }

  tick(nowMs: number): void {
    if (this.#state === WAITING && nowMs >= this.#againMs) this.#transition(LOOKING);
    if (this.#state === LOOKING && !this.#isAsking && nowMs >= this.#againMs) this.#look();
    const session = this.#session;
    if (this.#state === STANDING && session !== undefined && this.#isDue(nowMs)) {
      this.#write(session, this.#revision);
    }
  }

  /** Ends the session and deletes the key; `done` when that is known, or given up. */
  close(done: () => void): void {
    const session = this.#session;
    this.#transition(CLOSED);
    this.#leave();
    if (session === undefined) done();
    else {
      session.close(() => {
        done();
      });
    }
  }

  #isDue(nowMs: number): boolean {
    const now = this.#ports.record();
    const before = this.#written;
    if (before === undefined || now.draining !== before.draining) return true;
    const moved = Math.abs(now.memoryFreeBytes - before.memoryFreeBytes);
    return moved > MOVED_SHARE * before.memoryFreeBytes && nowMs - this.#writtenMs >= REFRESH_MS;
  }

  #open(): void {
    this.#attempt += 1;
    const attempt = this.#attempt;
    this.#session = this.#ports.register.openSession(SESSION_TTL_MS, {
      onOpen: () => {
        if (attempt !== this.#attempt) return;
        this.#transition(LOOKING);
        this.#look();
      },
      onLost: (why) => {
        if (attempt === this.#attempt) this.#renew(why);
      },
    });
  }

  #renew(why: string): void {
    const { log } = this.#ports;
    log.warn('register', 'the session of this store is lost; it serves on and opens another', { why });
    this.#leave();
    this.#transition(OPENING);
    this.#open();
  }

  /** Answers that are under way are for nobody. */
  #leave(): void {
    this.#attempt += 1;
    this.#isAsking = false;
    this.#session = undefined;
    this.#againMs = -Infinity;
  }

  #look(): void {
    const attempt = this.#attempt;
    this.#isAsking = true;
    this.#ports.register.read({ key: this.#key }, (result) => {
      if (attempt !== this.#attempt) return;
      this.#isAsking = false;
      if (result.kind === 'entries') this.#onEntry(result.entries[0]);
      else {
        // Whether its session has ended meanwhile, nobody could tell us.
        this.#other = { session: '', sinceMs: 0 };
        this.#again();
      }
    });
  }

  #onEntry(entry: Entry | undefined): void {
    const session = this.#session;
    if (session === undefined) return;
    const other = entry === undefined ? undefined : this.#otherProcess(entry, session);
    if (other === undefined || entry === undefined) this.#write(session, entry?.revision ?? 0);
    else this.#wait(other, entry.session);
  }

  /** Where it is; undefined: nobody lives who wrote this. */
  #otherProcess({ value, session }: Entry, { id }: Session): string | undefined {
    const found = decodeStore(value);
    if (session === id) return undefined;
    if (found instanceof BrokenRule) return '(unreadable record)';
    const own = this.#ports.record();
    // One of our own, of a session that we lost or never heard of.
    if (found.bootId === own.bootId) return undefined;
    const isHere = found.host === own.host && found.addresses.join() === own.addresses.join();
    // Once ours has stood, whoever writes there came later: two that overwrite each other would never end.
    return isHere && !this.#hasStood ? undefined : `host ${found.host} at ${found.addresses.join(' and ')}`;
  }

  #wait(where: string, session: string): void {
    const nowMs = this.#ports.clock.nowMs();
    const isNew = this.#other.session !== session;
    if (isNew) this.#other = { session, sinceMs: nowMs };
    const isLasting = nowMs - this.#other.sinceMs >= 2 * SESSION_TTL_MS;
    if (isLasting && !this.#hasStood) {
      this.#transition(REFUSED);
      const which = `a process of store ${this.#storeId} runs on ${where}`;
      this.#ports.onRefused(`${which}: stop that one, or give one of the two another id`);
      return;
    }
    if (isNew) {
      const text = 'another process of this store is in the register: its end is waited for; stop one of the two';
      this.#ports.log[this.#hasStood ? 'error' : 'warn']('register', text, { store: this.#storeId, where });
    }
    this.#transition(WAITING);
    this.#again();
  }

  #write(session: Session, ifRevision: number): void {
    this.#transition(WRITING);
    const attempt = this.#attempt;
    const record = this.#ports.record();
    const write = { key: this.#key, ifRevision, value: encodeStore(record), session };
    this.#ports.register.write([write], (_index, outcome) => {
      if (attempt === this.#attempt) this.#onWritten(record, outcome);
    });
  }

  #onWritten(record: StoreRecord, outcome: Outcome): void {
    if (outcome.kind === 'done') {
      this.#written = record;
      this.#revision = outcome.revision;
      this.#writtenMs = this.#ports.clock.nowMs();
      this.#hasStood = true;
      this.#transition(STANDING);
    } else if (outcome.kind === 'refused' && outcome.reason === 'session') {
      this.#renew(outcome.why);
    } else {
      this.#transition(LOOKING);
      if (outcome.kind !== 'stale') this.#again();
    }
  }

  #again(): void {
    this.#againMs = this.#ports.clock.nowMs() + AGAIN_MS;
  }

  #transition(to: StoreKeyStateValue): void {
    invariant(
      isValidStoreKeyTransition(this.#state, to),
      `the key of a store does not go from ${String(this.#state)} to ${String(to)}`,
    );
    this.#state = to;
  }
}
