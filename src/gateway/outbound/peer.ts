/**
 * One connection of a pool: the session on it, the queue it works for at the moment, and its times. Turns
 * what the session reports into the end of an attempt.
 */
import { invariant } from '../../base/invariant.js';
import type { Clock } from '../../platform/ports.js';
import type { Delivery, RecipientResult } from '../queue/types.js';
import type { Lane } from './lane.js';
import { CAN_DSN } from './pure/capabilities.js';
import { SmtpSession } from './pure/smtp-session.js';
import type { SessionOptions, SessionPorts } from './pure/session-ports.js';
import type { SessionEvents } from './pure/smtp-session.js';

/** What the pool wants to hear of its connections. */
export interface PeerEvents {
  onPeerIdle(peer: Peer): void;
  onPeerStale(peer: Peer, lane: Lane, delivery: Delivery, isRetry: boolean): void;
  /** `why` when it never became ready. */
  onPeerClosed(peer: Peer, why: RecipientResult | undefined): void;
}

export class Peer implements SessionEvents {
  readonly session: SmtpSession;
  readonly relay: string;
  /** Session time when the connection was asked for, and since when it has been idle. */
  readonly openedMs: number;
  idleSinceMs: number;
  isReady = false;
  readonly #clock: Clock;
  readonly #events: PeerEvents;
  readonly #connectMs: number;
  #lane: Lane | undefined;
  #isRetry = false;
  /** Set-up time, told with the first message only. */
  #setupMs = 0;
  #beganMs = 0;

  constructor(options: SessionOptions, ports: SessionPorts, clock: Clock, events: PeerEvents, sessionMs: number) {
    this.session = new SmtpSession(options, ports, this, sessionMs);
    this.relay = options.relay;
    this.openedMs = sessionMs;
    this.idleSinceMs = sessionMs;
    this.#clock = clock;
    this.#events = events;
    this.#connectMs = clock.nowMs();
  }

  get setupMs(): number {
    return this.isReady ? this.#setupMs : this.#clock.nowMs() - this.#connectMs;
  }

  begin(lane: Lane, delivery: Delivery, isRetry: boolean): void {
    this.#lane = lane;
    this.#isRetry = isRetry;
    this.#beganMs = this.#clock.nowMs();
    this.session.begin(delivery);
  }

  onIdle(_session: SmtpSession): void {
    if (!this.isReady) {
      this.#setupMs = this.#clock.nowMs() - this.#connectMs;
      this.isReady = true;
    }
    this.#events.onPeerIdle(this);
  }

  onSettled(session: SmtpSession, delivery: Delivery, results: readonly RecipientResult[], dotUnanswered: boolean): void {
    const lane = this.#takeLane();
    const setupMs = this.#setupMs;
    this.#setupMs = 0;
    lane.settle(delivery, {
      results,
      relay: this.relay,
      setupMs,
      transmitMs: this.#clock.nowMs() - this.#beganMs,
      dotUnanswered,
      dsnPassedOn: (session.capabilities.bits & CAN_DSN) !== 0,
    });
  }

  onStale(_session: SmtpSession, delivery: Delivery): void {
    this.#events.onPeerStale(this, this.#takeLane(), delivery, this.#isRetry);
  }

  onNoRight(_session: SmtpSession, delivery: Delivery, why: RecipientResult): void {
    const setupMs = this.#setupMs;
    this.#setupMs = 0;
    this.#takeLane().withoutRight(delivery, this.relay, why, setupMs);
  }

  onClosed(_session: SmtpSession, why: RecipientResult | undefined): void {
    this.#events.onPeerClosed(this, why);
  }

  #takeLane(): Lane {
    const lane = this.#lane;
    invariant(lane !== undefined, 'a transaction belongs to a queue');
    this.#lane = undefined;
    return lane;
  }
}
