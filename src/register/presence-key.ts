/**
 * The key that says that a process lives: gateways/ID, stores/ID. It stands as long as the session of its
 * process.
 *
 *   OPENING ── the session is open ──► LOOKING ── no key, ours of before, or of who is dead ──► WRITING
 *      ▲                                │ ▲ │                                                   │  │ done
 *      │                                │ └─┼──── stale, no answer: after a while ◄─────────────┘  ▼
 *      │                                │   └── ours already ────────────────────────────────► STANDING
 *      │                                ├── another process has it ──► WAITING, and looks again
 *      │                                └── a later process, or it stays ──► TAKEN: this one must end
 *      │
 *      │     STANDING ── rewrite() ──► REWRITING ── done, or a guard failed ──► STANDING
 *      │     STANDING, REWRITING ── the key may have changed ──► CHECKING ── still ours ──► STANDING
 *      └── the session is lost, or the key is not there any more: then with another session
 *
 * - A key that was deleted while its session runs was missing for a while: what counted on it must not go on
 *   as if nothing had been, so the process begins with a new session.
 * - An older process that lives can't be told from one that died without a word just now, until its session
 *   has had the time to end: it is looked at for twice that.
 *
 * No timers: time comes by tick().
 */
import { invariant } from '../base/invariant.js';
import type { Clock, EventLog } from '../platform/ports.js';
import { unchanged, type Entry, type Guard, type Outcome, type Register, type Session } from './port.js';

export const KeyState = {
  OPENING: 0,
  LOOKING: 1,
  WRITING: 2,
  STANDING: 3,
  REWRITING: 4,
  /** Nothing is done by the key until it is known whether it still stands. */
  CHECKING: 5,
  WAITING: 6,
  TAKEN: 7,
  CLOSED: 8,
} as const;
export type KeyStateValue = (typeof KeyState)[keyof typeof KeyState];

const { OPENING, LOOKING, WRITING, STANDING, REWRITING, CHECKING, WAITING, TAKEN, CLOSED } = KeyState;

const NEXT: Readonly<Record<KeyStateValue, readonly KeyStateValue[]>> = {
  [OPENING]: [LOOKING, CLOSED],
  [LOOKING]: [WRITING, STANDING, WAITING, TAKEN, OPENING, CLOSED],
  [WRITING]: [STANDING, LOOKING, OPENING, CLOSED],
  [STANDING]: [REWRITING, CHECKING, OPENING, CLOSED],
  [REWRITING]: [STANDING, CHECKING, OPENING, CLOSED],
  [CHECKING]: [STANDING, OPENING, CLOSED],
  [WAITING]: [LOOKING, OPENING, CLOSED],
  [TAKEN]: [CLOSED],
  [CLOSED]: [],
};

export function isValidKeyTransition(from: KeyStateValue, to: KeyStateValue): boolean {
  return NEXT[from].includes(to);
}

/** DESIGN "register session". */
export const SESSION_TTL_MS = 5_000;
/** After an answer that settles nothing, and between two looks at another's key. */
const AGAIN_MS = 500;

export interface PresenceKeyOptions {
  readonly key: string;
  /** 'gateway gw-1'. */
  readonly owner: string;
  /** Whether another process ends this one also when the key has stood: a register may be rolled back. */
  readonly yields: 'always' | 'until it stood';
}

/** Who wrote a value: this process, nobody who lives, or another process. */
export type Writer = 'we' | 'nobody' | OtherProcess;

export interface OtherProcess {
  /** In words: 'host box-1 …'. */
  readonly where: string;
  /** It was started after this one. */
  readonly isLater: boolean;
}

export interface PresenceKeyPorts {
  readonly register: Register;
  readonly clock: Clock;
  readonly log: EventLog;
  /** What the key is to say now. */
  value(): string;
  writerOf(value: string, hasStood: boolean): Writer;
  /** The key stands and says so, and nothing is under way: each time. */
  onStanding(value: string): void;
  /** Another process has the key. Once; nothing follows but close(). */
  onTaken(why: string): void;
}

export class PresenceKey {
  readonly #options: PresenceKeyOptions;
  readonly #ports: PresenceKeyPorts;
  #state: KeyStateValue = OPENING;
  #session: Session | undefined;
  /** Of the session; its answers alone are for us. */
  #attempt = 0;
  #isAsking = false;
  #againMs = -Infinity;
  #hasStood = false;
  /** What the key stands at, as far as we know, while it stands. */
  #standing: ReturnType<typeof unchanged> = unchanged(undefined);
  /** Since the question under way was sent: its answer may be from before. */
  #hasNews = false;
  /** Whose key was found in place of ours, and since when that was seen without a break. */
  #other = { session: '', sinceMs: 0 };

  constructor(options: PresenceKeyOptions, ports: PresenceKeyPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#open();
  }

  get state(): KeyStateValue {
    return this.#state;
  }

  get isStanding(): boolean {
    return this.#state === STANDING || this.#state === REWRITING || this.#state === CHECKING;
  }

  /** With which the key stands; 0: none. `endsMs` is 0 while it is not sure that it does. */
  session(): { readonly id: number; readonly endsMs: number } {
    const session = this.#session;
    const id = this.isStanding ? Number(session?.id ?? '') : 0;
    const isSure = id !== 0 && this.#state !== CHECKING;
    return { id, endsMs: isSure ? session?.validUntilMs ?? 0 : 0 };
  }

  /** What a watch tells of the key: no more than a reason to look. */
  onNews(entry: Entry | undefined): void {
    if (entry !== undefined && this.#isOurs(entry)) return;
    this.#hasNews = true;
    if (this.#state === WAITING) this.#againMs = -Infinity;
    if (this.#state === STANDING) this.#check();
  }

  tick(nowMs: number): void {
    if (nowMs < this.#againMs) return;
    if (this.#state === WAITING) this.#transition(LOOKING);
    if (!this.#isAsking && (this.#state === LOOKING || this.#state === CHECKING)) this.#look();
  }

  /** Writes the key again while it is STANDING; undefined: the session ended before there was an answer. */
  rewrite(guards: readonly Guard[], done: (outcome: Outcome | undefined) => void): void {
    this.#transition(REWRITING);
    this.#write(this.#standing, guards, (outcome, value) => {
      if (outcome?.kind === 'done') this.#stands(outcome.revision, value);
      else if (outcome?.kind === 'stale' && outcome.entry !== undefined && this.#isOurs(outcome.entry)) {
        // A guard failed; or a write that was late has moved the key.
        this.#stands(outcome.entry.revision, outcome.entry.value);
      } else if (outcome !== undefined && isSessionOver(outcome)) this.#renew('its session is over');
      else if (outcome !== undefined) this.#check();
      done(outcome);
    });
  }

  /** Ends the session and deletes the key; `done` when that is known, or given up. */
  close(done: () => void): void {
    invariant(this.#state !== CLOSED, 'the key of a process is closed once');
    const session = this.#session;
    this.#transition(CLOSED);
    this.#leave();
    if (session === undefined) done();
    else session.close(() => { done(); });
  }

  #isOurs({ session, value }: Entry): boolean {
    return session === this.#session?.id && this.#ports.writerOf(value, this.#hasStood) === 'we';
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
        if (attempt !== this.#attempt) return;
        this.#ports.log.warn('register', 'the session of this process is lost; it opens another', { why });
        this.#reopen();
      },
    });
  }

  /** The key is not what it was: with this session nothing begins again. */
  #renew(why: string): void {
    this.#ports.log.warn('register', 'the key of this process is gone; it opens another session', { why });
    this.#session?.close(() => undefined);
    this.#reopen();
  }

  #reopen(): void {
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
    this.#hasNews = false;
    this.#ports.register.read({ key: this.#options.key }, (result) => {
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
    if (entry !== undefined && this.#isOurs(entry)) return this.#stands(entry.revision, entry.value);
    if (this.#state === CHECKING) {
      return this.#renew(entry === undefined ? 'it was deleted' : 'another one stands there');
    }
    const writer = entry === undefined ? 'nobody' : this.#ports.writerOf(entry.value, this.#hasStood);
    // One of our own is of a session that we lost or never heard of.
    if (entry === undefined || writer === 'we' || writer === 'nobody') this.#make(unchanged(entry));
    else this.#wait(writer, entry.session);
  }

  #wait({ where, isLater }: OtherProcess, session: string): void {
    const { log, clock, onTaken } = this.#ports;
    const { owner, yields } = this.#options;
    const nowMs = clock.nowMs();
    if (this.#other.session !== session) {
      this.#other = { session, sinceMs: nowMs };
      const text =
        'another process of this id is in the register: its end is waited for; stop one of the two';
      log[this.#hasStood ? 'error' : 'warn']('register', text, { of: owner, where });
    }
    const isLasting = isLater || nowMs - this.#other.sinceMs >= 2 * SESSION_TTL_MS;
    if (isLasting && (yields === 'always' || !this.#hasStood)) {
      this.#transition(TAKEN);
      onTaken(`a process of ${owner} runs on ${where}: stop that one, or give one of the two another id`);
      return;
    }
    this.#transition(WAITING);
    this.#again();
  }

  #make(at: ReturnType<typeof unchanged>): void {
    this.#transition(WRITING);
    this.#write(at, [], (outcome, value) => {
      if (outcome === undefined) return;
      if (outcome.kind === 'done') return this.#stands(outcome.revision, value);
      if (isSessionOver(outcome)) return this.#renew('its session is over');
      this.#transition(LOOKING);
      this.#again();
    });
  }

  #stands(revision: number, value: string): void {
    this.#standing = { ifRevision: revision, ifValue: value };
    this.#hasStood = true;
    this.#transition(STANDING);
    if (this.#hasNews) this.#check();
    else this.#ports.onStanding(value);
  }

  #check(): void {
    this.#transition(CHECKING);
    if (!this.#isAsking) this.#look();
  }

  #write(
    at: ReturnType<typeof unchanged>, guards: readonly Guard[],
    done: (outcome: Outcome | undefined, value: string) => void,
  ): void {
    const attempt = this.#attempt;
    const value = this.#ports.value();
    this.#hasNews = false;
    const write = { key: this.#options.key, ...at, value, session: this.#session, guards };
    this.#ports.register.write([write], (_index, outcome) => {
      if (attempt === this.#attempt) done(outcome, value);
      else if (this.#state !== CLOSED) done(undefined, value);
    });
  }

  #again(): void {
    this.#againMs = this.#ports.clock.nowMs() + AGAIN_MS;
  }

  #transition(to: KeyStateValue): void {
    invariant(
      isValidKeyTransition(this.#state, to),
      `the key of a process does not go from ${String(this.#state)} to ${String(to)}`,
    );
    this.#state = to;
  }
}

function isSessionOver(outcome: Outcome): boolean {
  return outcome.kind === 'refused' && outcome.reason === 'session';
}
