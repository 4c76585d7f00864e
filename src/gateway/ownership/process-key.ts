/**
 * The key gateways/ID of this process: it says that the process lives, and stands as long as its session.
 *
 *   OPENING ── the session is open ──► LOOKING ── no key, or of a dead process ──► WRITING ── done ──► HELD
 *      ▲                                │  ▲ └── ours already ──────────────────────────────────►─┘     │
 *      │                                │  └── stale, no answer: after a while ◄── WRITING              │
 *      │                                ├── another process has it ──► WAITING, and looks again          │
 *      │                                └── a later process, or it stays ──► TAKEN: this one must end    │
 *      │                                                                                                 │
 *      │     HELD ── a tie is asked for ──► TYING ── done, or a guard failed ──► HELD                    │
 *      │     HELD, TYING ── the key may have changed ──► CHECKING ── still ours ──► HELD                 │
 *      └── the session is lost, or the key is not there any more: then with another session ◄────────────┘
 *
 * - A tie is a write of the key that finds the record of a partition unchanged (DESIGN, Ownership rule 7).
 *   Partitions that ask in one turn share a write: each is a guard of it, and the one that fails is named.
 * - A key that was deleted while its session runs was missing for a while: what counted on it must tie anew,
 *   so
 *   that the process begins with a new session.
 * - An older process that lives can't be told from one that died without a word just now, until its session
 *   has
 *   had the time to end: it is looked at for twice that.
 *
 * No timers: time comes by tick().
 */
import { invariant } from '../../base/invariant.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import { BrokenRule } from '../../register/core/shapes.js';
import { gatewayKey } from '../../register/keys.js';
import { GUARDS_MAX } from '../../register/limits.js';
import type { Entry, Guard, Outcome, Register, Session } from '../../register/port.js';
import { decodeGateway, encodeGateway } from '../../register/records.js';
import type { GatewayRecord } from '../../register/records.js';

export const KeyState = {
  OPENING: 0,
  LOOKING: 1,
  WRITING: 2,
  HELD: 3,
  TYING: 4,
  CHECKING: 5,
  WAITING: 6,
  TAKEN: 7,
  CLOSED: 8,
} as const;
export type KeyStateValue = (typeof KeyState)[keyof typeof KeyState];

const { OPENING, LOOKING, WRITING, HELD, TYING, CHECKING, WAITING, TAKEN, CLOSED } = KeyState;

const NEXT: Readonly<Record<KeyStateValue, readonly KeyStateValue[]>> = {
  [OPENING]: [LOOKING, CLOSED],
  [LOOKING]: [WRITING, HELD, WAITING, TAKEN, OPENING, CLOSED],
  [WRITING]: [HELD, LOOKING, OPENING, CLOSED],
  [HELD]: [TYING, CHECKING, OPENING, CLOSED],
  [TYING]: [HELD, CHECKING, OPENING, CLOSED],
  [CHECKING]: [HELD, OPENING, CLOSED],
  [WAITING]: [LOOKING, OPENING, CLOSED],
  [TAKEN]: [CLOSED],
  [CLOSED]: [],
};

export function isValidKeyTransition(from: KeyStateValue, to: KeyStateValue): boolean {
  return NEXT[from].includes(to);
}

/** After an answer that settles nothing, and between two looks at another's key. */
const AGAIN_MS = 500;

export interface ProcessKeyOptions {
  readonly gatewayId: string;
  /** What the key says. */
  readonly record: GatewayRecord;
  readonly ttlMs: number;
}

/** The process that has the key of this gateway. */
export interface OtherProcess {
  readonly incarnation: number;
  /** Label of its machine. */
  readonly host: string;
  /** It was started after this one. */
  readonly isLater: boolean;
}

export interface ProcessKeyPorts {
  readonly register: Register;
  readonly clock: Clock;
  readonly log: EventLog;
  /** The lock file of this machine proves that exactly this incarnation of this gateway is dead. */
  isProvenDead(incarnation: number): boolean;
  /** The key stands: at first, and each time again. */
  onHeld(): void;
  /** Once; nothing follows but close(). */
  onTaken(other: OtherProcess): void;
}

export interface Tie {
  readonly guard: Guard;
  readonly onTied: (sessionId: number) => void;
  /** The guarded key stands at another revision. */
  readonly onStale: () => void;
  readonly onNoAnswer: () => void;
}

interface WaitingTie extends Tie {
  readonly sinceMs: number;
}

export class ProcessKey {
  readonly #options: ProcessKeyOptions;
  readonly #ports: ProcessKeyPorts;
  readonly #key: string;
  readonly #value: string;
  #state: KeyStateValue = OPENING;
  #session: Session | undefined;
  /** Of the session; its answers alone are for us. */
  #attempt = 0;
  #isAsking = false;
  #againMs = -Infinity;
  /** Where the key stands, as far as we know, while it is held. */
  #revision = 0;
  /** Since the question under way was sent: its answer may be from before. */
  #hasNews = false;
  #ties: WaitingTie[] = [];
  /** Whose key was found in place of ours, and since when that was seen without a break. */
  #other = { session: '', sinceMs: 0 };

  constructor(options: ProcessKeyOptions, ports: ProcessKeyPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#key = gatewayKey(options.gatewayId);
    this.#value = encodeGateway(options.record);
    this.#open();
  }

  get state(): KeyStateValue {
    return this.#state;
  }

  /** While the key stands with it; 0: none. Until it is checked whether it still stands, nothing is done by it. */
  session(): { readonly id: number; readonly endsMs: number } {
    const session = this.#session;
    const id = this.#isStanding ? Number(session?.id ?? '') : 0;
    const isSure = id !== 0 && this.#state !== CHECKING;
    return { id, endsMs: isSure ? session?.validUntilMs ?? 0 : 0 };
  }

  /** Asked by partitions: those that were added in one turn go together at the next tie(). */
  addTie(tie: Tie): void {
    this.#ties.push({ ...tie, sinceMs: this.#ports.clock.nowMs() });
  }

  /** Sends the ties that wait, when the key is held. */
  tie(): void {
    const session = this.#session;
    if (this.#state !== HELD || this.#ties.length === 0 || session === undefined) return;
    const ties = this.#ties.splice(0, GUARDS_MAX);
    this.#transition(TYING);
    const guards = ties.map(({ guard }) => guard);
    this.#write(session, this.#revision, guards, (outcome) => {
      this.#onTieOutcome(session, ties, outcome);
    }, ties);
  }

  /** What a watch tells of the key. */
  onNews(entry: Entry | undefined): void {
    const isOurs = entry !== undefined && entry.session === this.#session?.id && entry.value === this.#value;
    if (isOurs) return;
    this.#hasNews = true;
    if (this.#state === WAITING) this.#againMs = -Infinity;
    if (this.#state === HELD) this.#check();
  }

  tick(nowMs: number): void {
    if (this.#state === WAITING && nowMs >= this.#againMs) this.#transition(LOOKING);
    if (nowMs >= this.#againMs && !this.#isAsking && (this.#state === LOOKING || this.#state === CHECKING)) {
      this.#look();
    }
    const late = this.#ties.filter(({ sinceMs }) => nowMs - sinceMs >= this.#options.ttlMs);
    if (late.length > 0) this.#ties = this.#ties.filter((tie) => !late.includes(tie));
    for (const { onNoAnswer } of late) onNoAnswer();
    this.tie();
  }

  /** Ends the session and deletes the key; `done` when that is known, or given up. */
  close(done: () => void): void {
    invariant(this.#state !== CLOSED, 'the key of a process is closed once');
    const session = this.#session;
    this.#transition(CLOSED);
    this.#leave();
    this.#ties = [];
    if (session === undefined) done();
    else {
      session.close(() => {
        done();
      });
    }
  }

  get #isStanding(): boolean {
    return this.#state === HELD || this.#state === TYING || this.#state === CHECKING;
  }

  #open(): void {
    this.#attempt += 1;
    const attempt = this.#attempt;
    this.#session = this.#ports.register.openSession(this.#options.ttlMs, {
      onOpen: () => {
        if (attempt !== this.#attempt) return;
        this.#transition(LOOKING);
        this.#look();
      },
      onLost: (why) => {
        if (attempt !== this.#attempt) return;
        this.#ports.log.warn('register', 'the session of this gateway is lost; it opens another', { why });
        this.#leave();
        this.#transition(OPENING);
        this.#open();
      },
    });
  }

  /** The key is not what it was: with this session nothing begins again. */
  #renew(why: string): void {
    const session = this.#session;
    this.#ports.log.warn('register', 'the key of this gateway is gone; it opens another session', { why });
    this.#leave();
    session?.close(() => undefined);
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
    if (entry !== undefined && entry.session === session.id && entry.value === this.#value) {
      return this.#held(entry.revision);
    }
    if (this.#state === CHECKING) {
      return this.#renew(entry === undefined ? 'it was deleted' : 'another one stands there');
    }
    const other = entry === undefined ? undefined : this.#otherProcess(entry);
    if (other === undefined) return this.#make(session, entry?.revision ?? 0);
    this.#wait(other, entry?.session ?? '');
  }

  /** Undefined: nobody lives who wrote this. */
  #otherProcess({ value }: Entry): OtherProcess | undefined {
    const { record } = this.#options;
    const found = decodeGateway(value);
    if (found instanceof BrokenRule) return { incarnation: 0, host: '(unreadable record)', isLater: false };
    const { incarnation, ordinal, host } = found;
    // One of our own, of a session that we lost or never heard of.
    if (incarnation === record.incarnation && ordinal === record.ordinal) return undefined;
    if (this.#ports.isProvenDead(incarnation)) return undefined;
    return { incarnation, host, isLater: incarnation > record.incarnation };
  }

  #wait(other: OtherProcess, session: string): void {
    const nowMs = this.#ports.clock.nowMs();
    if (this.#other.session !== session) {
      this.#other = { session, sinceMs: nowMs };
      const { incarnation, host } = other;
      this.#ports.log.warn('register', 'a process of this gateway has a session: it is waited for its end', {
        gateway: this.#options.gatewayId, incarnation, host,
      });
    }
    if (other.isLater || nowMs - this.#other.sinceMs >= 2 * this.#options.ttlMs) {
      this.#transition(TAKEN);
      this.#ports.onTaken(other);
      return;
    }
    this.#transition(WAITING);
    this.#againMs = nowMs + AGAIN_MS;
  }

  #make(session: Session, revision: number): void {
    this.#transition(WRITING);
    this.#write(session, revision, [], (outcome) => {
      if (outcome.kind === 'done') return this.#held(outcome.revision);
      if (isSessionOver(outcome)) return this.#renew('its session is over');
      this.#transition(LOOKING);
      this.#again();
    }, []);
  }

  #held(revision: number): void {
    const isNew = this.#state !== TYING && this.#state !== CHECKING;
    this.#revision = revision;
    this.#transition(HELD);
    if (isNew) this.#ports.onHeld();
    if (this.#hasNews) this.#check();
    else this.tie();
  }

  #onTieOutcome(session: Session, ties: readonly Tie[], outcome: Outcome): void {
    if (outcome.kind === 'done') {
      const id = Number(session.id);
      this.#held(outcome.revision);
      for (const { onTied } of ties) onTied(id);
    } else if (outcome.kind === 'stale') {
      this.#onTieStale(session, ties, outcome);
    } else {
      if (isSessionOver(outcome)) this.#renew('its session is over');
      else this.#check();
      for (const { onNoAnswer } of ties) onNoAnswer();
    }
  }

  /** Of a write that was late, the key may have another revision and be ours all the same. */
  #onTieStale(session: Session, ties: readonly Tie[], { entry, guard }: Outcome & { kind: 'stale' }): void {
    const nowMs = this.#ports.clock.nowMs();
    const stale = ties.filter((tie) => tie.guard.key === guard);
    const others = ties.filter((tie) => tie.guard.key !== guard);
    this.#ties.unshift(...others.map((tie) => ({ ...tie, sinceMs: nowMs })));
    if (entry !== undefined && entry.session === session.id && entry.value === this.#value) {
      this.#held(entry.revision);
    } else this.#check();
    for (const { onStale } of stale) onStale();
  }

  #check(): void {
    this.#transition(CHECKING);
    if (!this.#isAsking) this.#look();
  }

  #write(
    session: Session, ifRevision: number, guards: readonly Guard[], done: (outcome: Outcome) => void,
    ties: readonly Tie[],
  ): void {
    const attempt = this.#attempt;
    this.#hasNews = false;
    const write = { key: this.#key, ifRevision, value: this.#value, session, guards };
    this.#ports.register.write([write], (_index, outcome) => {
      if (attempt === this.#attempt) done(outcome);
      else if (this.#state !== CLOSED) for (const { onNoAnswer } of ties) onNoAnswer();
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
