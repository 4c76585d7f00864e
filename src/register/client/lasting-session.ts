/**
 * One session of a client, kept alive as long as it is wanted.
 *
 *   OPENING ── granted / onOpen ──► OPEN ── no such session any more / onLost ──► LOST
 *      │  failed: again, as a new one    │   renewed every third of its time
 *      └──────────── close() ────────────┴──► CLOSING ── revoked, or given up / done ──► CLOSED
 *
 * The end that is sure, `validUntilMs`, is counted from before a request was sent, and the drift between two
 * clocks is taken off. It may pass without the session being lost: if the register answers again, it goes on.
 */
import { invariant } from '../../base/invariant.js';
import type { Random } from '../../platform/ports.js';
import { DRIFT_MS, DRIFT_SHARE } from '../limits.js';
import type { LeaseAnswer, Line } from '../line.js';
import type { Session, SessionListener } from '../port.js';

export const SessionState = { opening: 0, open: 1, lost: 2, closing: 3, closed: 4 } as const;
export type SessionState = (typeof SessionState)[keyof typeof SessionState];

const NEXT: Readonly<Record<SessionState, readonly SessionState[]>> = {
  [SessionState.opening]: [SessionState.open, SessionState.closing, SessionState.closed],
  [SessionState.open]: [SessionState.lost, SessionState.closing, SessionState.closed],
  [SessionState.lost]: [SessionState.closed],
  [SessionState.closing]: [SessionState.closed],
  [SessionState.closed]: [],
};

/** A granting or renewal that failed is tried again after so long. */
const AGAIN_MS = 300;
/** Ids are whole numbers below this: etcd takes 63 bits, a number has 53; 0 would let etcd choose. */
const IDS = 2 ** 52;

export function isValidSessionTransition(from: SessionState, to: SessionState): boolean {
  return NEXT[from].includes(to);
}

export interface LastingSessionPorts {
  readonly random: Random;
  readonly soon: (run: () => void) => void;
  /** Called when anything changed that the client may have to act on. */
  readonly onChange: () => void;
}

export class LastingSession implements Session {
  readonly #ttlMs: number;
  readonly #listener: SessionListener;
  readonly #ports: LastingSessionPorts;
  #state: SessionState = SessionState.opening;
  #id = '';
  #validUntilMs = 0;
  #nextMs = 0;
  /** Undefined: nothing under way. */
  #sentMs: number | undefined;
  #attempt = 0;
  #closeDone: ((isKnown: boolean) => void) | undefined;
  #closeDeadlineMs = 0;

  constructor(ttlMs: number, listener: SessionListener, ports: LastingSessionPorts) {
    this.#ttlMs = ttlMs;
    this.#listener = listener;
    this.#ports = ports;
  }

  get id(): string {
    return this.#state === SessionState.open ? this.#id : '';
  }

  get validUntilMs(): number {
    return this.#state === SessionState.open ? this.#validUntilMs : 0;
  }

  get isOver(): boolean {
    return this.#state === SessionState.closed || this.#state === SessionState.lost;
  }

  get awaitingSinceMs(): number | undefined {
    return this.#sentMs;
  }

  close(done: (isKnown: boolean) => void): void {
    invariant(this.#closeDone === undefined, 'a session is closed once');
    this.#closeDone = done;
    if (this.isOver) {
      return this.#ports.soon(() => {
        this.#endClose(true);
      });
    }
    // An attempt under way may still open it: then that one is what has to be revoked.
    this.#transition(SessionState.closing);
    this.#attempt += 1;
    this.#sentMs = undefined;
    this.#nextMs = 0;
    this.#ports.onChange();
  }

  /** Sends what is due. `line` undefined: it is down. */
  act(line: Line | undefined, nowMs: number, callTimeoutMs: number, heard: () => void): void {
    if (this.#state === SessionState.closing && this.#closeDeadlineMs === 0) {
      this.#closeDeadlineMs = nowMs + callTimeoutMs;
    }
    if (this.isOver) return;
    if (this.#state === SessionState.closing && (nowMs >= this.#closeDeadlineMs || this.#id === '')) {
      const isKnown = this.#id === '';
      this.#transition(SessionState.closed);
      return this.#endClose(isKnown);
    }
    if (line === undefined || this.#sentMs !== undefined || nowMs < this.#nextMs) return;
    this.#sentMs = nowMs;
    this.#attempt += 1;
    const attempt = this.#attempt;
    const done = (answer: LeaseAnswer): void => {
      if (attempt !== this.#attempt) return;
      this.#sentMs = undefined;
      heard();
      this.#onAnswer(answer, nowMs);
    };
    if (this.#state === SessionState.closing) line.revoke(this.#id, done);
    else if (this.#state === SessionState.open) line.renew(this.#id, done);
    else this.#grant(line, done);
  }

  /** What was under way is not answered any more. */
  lineDown(): void {
    this.#attempt += 1;
    this.#sentMs = undefined;
    this.#nextMs = 0;
  }

  /** The client is closed: it ends by itself. */
  abandon(): void {
    this.#attempt += 1;
    this.#sentMs = undefined;
    if (!this.isOver) this.#transition(SessionState.closed);
    this.#endClose(false);
  }

  /** Each attempt is a session of its own: one whose answer is lost has no keys, and ends by itself. */
  #grant(line: Line, done: (answer: LeaseAnswer) => void): void {
    this.#id = String(1 + Math.floor(this.#ports.random() * (IDS - 1)));
    line.grant(this.#id, this.#ttlMs, done);
  }

  #onAnswer(answer: LeaseAnswer, sentMs: number): void {
    switch (answer.kind) {
      case 'granted': {
        if (this.#state === SessionState.closing) break;
        // A register may grant more than was asked for; nobody counts on that.
        const ttlMs = Math.min(this.#ttlMs, answer.ttlMs);
        this.#validUntilMs = Math.max(this.#validUntilMs, sentMs + ttlMs * (1 - DRIFT_SHARE) - DRIFT_MS);
        this.#nextMs = sentMs + ttlMs / 3;
        if (this.#state === SessionState.open) break;
        this.#transition(SessionState.open);
        this.#listener.onOpen();
        break;
      }
      case 'gone':
        if (this.#state === SessionState.closing) {
          this.#transition(SessionState.closed);
          this.#endClose(true);
        } else if (this.#state === SessionState.open) {
          this.#transition(SessionState.lost);
          this.#listener.onLost('the register has ended it: it was not heard from in time');
        }
        break;
      case 'failed':
        this.#nextMs = sentMs + AGAIN_MS;
        break;
    }
    this.#ports.onChange();
  }

  #endClose(isKnown: boolean): void {
    const done = this.#closeDone;
    this.#closeDone = undefined;
    done?.(isKnown);
  }

  #transition(to: SessionState): void {
    invariant(
      isValidSessionTransition(this.#state, to),
      `a session does not go from ${String(this.#state)} to ${String(to)}`,
    );
    this.#state = to;
  }
}
