/**
 * One connection of a pool: the session on it, the queue it works for at the moment, and its times. Turns
 * what the session reports into the end of an attempt.
 */
import { relayText } from '../../base/address-text.js';
import { invariant } from '../../base/invariant.js';
import type { Clock, PasswordFound } from '../../platform/ports.js';
import type { Delivery, NextHopTls, RecipientResult } from '../mail-types.js';
import type { DialHandlers } from './dial.js';
import type { Lane } from './lane.js';
import type { SiteHost } from './site-hosts.js';
import { CAN_DSN, CAN_PIPELINE } from '../../smtp/capabilities.js';
import { Trouble } from './pure/classify.js';
import { raisedByTlsa } from './pure/host-tlsa.js';
import { SmtpSession } from './pure/smtp-session.js';
import type { MailSource } from './pure/source-choice.js';
import type { SessionEvents, SessionOptions, SessionPorts, SessionView } from './pure/session-ports.js';
import { SMALL_CONTENT_BYTES } from '../../smtp/write-buffer.js';

/** An envelope stands behind the dot of a content up to this: both leave in one write all the same. */
const FOLLOWED_BYTES_MAX = SMALL_CONTENT_BYTES - 1024;
/** Nothing is put behind the dot of a peer that took longer for its last message: others may be sooner. */
const FAST_MS_MAX = 250;

/**
 * Of its session; who answers is known by address only when a connection is open, and what TLS it needs, and
 * who we are there.
 */
export interface PeerOptions extends SessionOptions {
  relay: string;
  /** Of the source, where there is one. */
  heloName: string;
  /** May be raised by the DNS, then too. */
  tls: NextHopTls | undefined;
}

/** What the pool wants to hear of its connections. */
export interface PeerEvents {
  onPeerIdle(peer: Peer): void;
  /** Whether the connection may take one message more than it has begun: at its dot it will ask for it. */
  expectsMore(peer: Peer): boolean;
  /** It asks, or will not. */
  expectsNoMore(): void;
  /** Has follow() called with the next message of whichever queue, if there is one for it. */
  takeBehind(peer: Peer): void;
  onPeerStale(peer: Peer, lane: Lane, delivery: Delivery, isRetry: boolean): void;
  /** An envelope behind a dot was not taken as what it is, or nothing came of it at the first try. */
  onFollowersNotBorne(peer: Peer): void;
  /** It is given up, as it takes a content too slowly. */
  onPeerSlow(peer: Peer): void;
  /** The one that it tried did not take the connection, and it goes on to the next. */
  onAddressFailed(peer: Peer): void;
  /** A connection from there is open. */
  onSourceOpen(source: MailSource): void;
  /** It is in clear because TLS did not come up, and the host may insist on that. */
  onTlsWanted(peer: Peer): void;
  /** `why` when it never became ready, was turned away with its first mail, or the host wants TLS. */
  onPeerClosed(peer: Peer, why: RecipientResult | undefined): void;
}

export class Peer implements SessionEvents {
  readonly session: SmtpSession;
  readonly host: SiteHost;
  readonly #options: PeerOptions;
  /** Session time when the connection was asked for, and since when it has been idle. */
  readonly openedMs: number;
  idleSinceMs: number;
  isReady = false;
  /** It counts as one that is being set up; ready it may be (connection-pool.ts). */
  isBeingSetUp = true;
  /** Its host has failed before: is it back? */
  readonly isProbe: boolean;
  /** As it was when the connection was asked for; undefined: it asks for none. */
  password: PasswordFound | undefined;
  /** Queues whose mail it has taken, where somebody counts that (tls-reports/tls-tally.ts). */
  readonly #served = new Set<Lane>();
  /** "192.0.2.1", counted in the account where it is by MX; '' before it is connected to. */
  address = '';
  /** Of its host, where that is dialled: the one that it leads to, or was tried last; '' if none was. */
  tried = '';
  /** Of ours, that it comes from, or was tried from last; '': as the system chose. */
  source = '';
  /** The one that it comes from, whoever chose it; '': not known. */
  ownAddress = '';
  /** Not even connected to: the address that it was to come from is not to be had. */
  isSourceless = false;
  /** Not even connected to: others have all the room there is, in the DNS or at its address. */
  isRoomless = false;
  /** There is none left at this address; '' otherwise. */
  fullAddress = '';
  /** Not even connected to: nobody could tell its TLSA records. */
  #isTlsaUntold = false;
  readonly #clock: Clock;
  readonly #events: PeerEvents;
  readonly #connectMs: number;
  #lane: Lane | undefined;
  #isRetry = false;
  /** Set-up time, told with the first message only. */
  #setupMs = 0;
  #beganMs = 0;
  #lastMs = Infinity;
  /** Will ask for a delivery at its dot: the pool holds one back for it. */
  #isExpecting = false;
  #following: Delivery | undefined;
  #followingLane: Lane | undefined;
  /** The envelope of the current delivery stood behind a dot. */
  #isFollower = false;

  constructor(
    options: PeerOptions, ports: SessionPorts, clock: Clock, events: PeerEvents, host: SiteHost,
    sessionMs: number,
  ) {
    this.session = new SmtpSession(options, ports, this, sessionMs);
    this.host = host;
    this.isProbe = host.failures > 0;
    this.#options = options;
    this.openedMs = sessionMs;
    this.idleSinceMs = sessionMs;
    this.#clock = clock;
    this.#events = events;
    this.#connectMs = clock.nowMs();
  }

  /** As logs name it; with the address once one is known. */
  get relay(): string {
    return this.#options.relay;
  }

  /** TLSA records judge it, or nobody could tell whether there are some. */
  get isByDane(): boolean {
    return this.#isTlsaUntold || this.tls?.terms.dane !== undefined;
  }

  /** What it has asked of TLS; undefined: nothing. */
  get tls(): NextHopTls | undefined {
    return this.#options.tls;
  }

  /** Why TLS did not come up there before, where it is in clear for that. */
  get lostTls(): string | undefined {
    return this.session.tls === undefined ? this.#options.lostTls : undefined;
  }

  /**
   * For who dials: the session goes on with the connection that is open. `routeTls` is what TLSA records
   * raise; a certificate may be for `domain`, unless that is ''.
   */
  dialled(routeTls: NextHopTls | undefined, domain: string): DialHandlers {
    const { session, host } = this;
    return {
      onJudged: (tlsa) => {
        host.isBound = tlsa !== undefined || routeTls?.terms.isBySts === true;
        if (tlsa !== undefined) this.#options.tls = raisedByTlsa(routeTls, tlsa, domain);
      },
      onTrying: ({ address, from }) => {
        if (this.tried !== '') this.#events.onAddressFailed(this);
        this.tried = address;
        this.source = from?.address ?? '';
      },
      onSourceless: () => { this.tried = ''; },
      onOpened: (connection, { address, from }) => {
        this.address = address;
        this.ownAddress = from?.address ?? connection.local ?? '';
        if (from !== undefined) {
          this.#options.heloName = from.name;
          this.#events.onSourceOpen(from);
        }
        this.#options.relay = relayText(host.name, address, host.port);
        session.attach(connection);
      },
      onForbidden: (reason, isTlsaUntold) => {
        this.#isTlsaUntold = isTlsaUntold;
        // Else the policy does not name it, and it has no records: whoever it is, it speaks for nobody.
        host.isBound = isTlsaUntold;
        session.forbid(Trouble.TLS_FAILED, reason);
      },
      onNoSource: (reason) => {
        this.isSourceless = true;
        session.forbid(Trouble.NO_SOURCE, reason);
      },
      onNoRoom: (address) => {
        this.isRoomless = true;
        this.fullAddress = address;
        session.abandon('no room');
      },
      onOpen: () => { session.onOpen(); },
      onData: (bytes) => { session.onData(bytes); },
      onDrain: () => { session.onDrain(); },
      onClose: (reason, isUnresolved = false) => {
        if (isUnresolved) session.forbid(Trouble.UNRESOLVED, reason);
        else session.onClose(reason);
      },
    };
  }

  /** True once for each queue. */
  isNewTo(lane: Lane): boolean {
    const { size } = this.#served;
    return this.#served.add(lane).size > size;
  }

  get setupMs(): number {
    return this.isReady ? this.#setupMs : this.#clock.nowMs() - this.#connectMs;
  }

  begin(lane: Lane, delivery: Delivery, isRetry: boolean): void {
    this.#lane = lane;
    this.#isRetry = isRetry;
    this.#isFollower = false;
    this.#onBegin(delivery);
    this.session.begin(delivery);
  }

  get bearsFollowers(): boolean {
    return this.host.bearsFollowers;
  }

  onDot(): Delivery | undefined {
    if (this.#isExpecting) {
      this.#expectNoMore();
      this.#events.takeBehind(this);
    }
    return this.#following;
  }

  /** For takeBehind() alone. */
  follow(lane: Lane, delivery: Delivery): void {
    this.#following = delivery;
    this.#followingLane = lane;
  }

  onIdle(_session: SessionView): void {
    if (!this.isReady) {
      this.#setupMs = this.#clock.nowMs() - this.#connectMs;
      this.isReady = true;
    }
    this.#events.onPeerIdle(this);
  }

  onSettled(
    session: SessionView, delivery: Delivery, results: readonly RecipientResult[], dotUnanswered: boolean,
  ): void {
    const lane = this.#takeLane();
    const setupMs = this.#setupMs;
    this.#setupMs = 0;
    this.#noteBorne();
    const transmitMs = this.#clock.nowMs() - this.#beganMs;
    this.#lastMs = transmitMs;
    const [following, followingLane] = [this.#following, this.#followingLane];
    this.#following = undefined;
    if (following !== undefined && followingLane !== undefined) {
      this.#lane = followingLane;
      this.#isRetry = false;
      this.#isFollower = true;
      this.#onBegin(following);
    }
    const dsnPassedOn = (session.capabilities.bits & CAN_DSN) !== 0;
    const { tls } = session;
    const { relay, source } = this;
    lane.settle(delivery, {
      results, relay, source, setupMs, transmitMs, dotUnanswered, dsnPassedOn, tls,
    });
  }

  onStale(_session: SessionView, delivery: Delivery, isOdd: boolean): void {
    if (this.#isFollower || this.#following !== undefined) this.host.isTrying = false;
    if (isOdd) this.#events.onFollowersNotBorne(this);
    if (delivery !== this.#following) {
      this.#events.onPeerStale(this, this.#takeLane(), delivery, this.#isRetry);
      return;
    }
    this.#following = undefined;
    const lane = this.#followingLane;
    if (lane !== undefined) this.#events.onPeerStale(this, lane, delivery, false);
  }

  onSlow(): void {
    this.#events.onPeerSlow(this);
  }

  onTlsWanted(): void {
    this.#events.onTlsWanted(this);
  }

  onNoRight(_session: SessionView, delivery: Delivery, why: RecipientResult): void {
    const setupMs = this.#setupMs;
    this.#setupMs = 0;
    this.#noteBorne();
    this.#takeLane().withoutRight(delivery, this.relay, why, setupMs);
  }

  onClosed(_session: SessionView, why: RecipientResult | undefined): void {
    this.#events.onPeerClosed(this, why);
  }

  /** Of an envelope that stood behind a dot and came to its end, whatever that is. */
  #noteBorne(): void {
    const { host } = this;
    // Another connection may have found otherwise meanwhile.
    if (!this.#isFollower || !(host.isTrying || host.bearsFollowers)) return;
    host.bearsFollowers = true;
    host.isTrying = false;
  }

  #takeLane(): Lane {
    const lane = this.#lane;
    invariant(lane !== undefined, 'a transaction belongs to a queue');
    this.#lane = undefined;
    this.#expectNoMore();
    return lane;
  }

  #onBegin(delivery: Delivery): void {
    this.#beganMs = this.#clock.nowMs();
    if (this.#lastMs > FAST_MS_MAX || delivery.contentBytes > FOLLOWED_BYTES_MAX) return;
    if ((this.session.capabilities.bits & CAN_PIPELINE) === 0) return;
    this.#isExpecting = this.#events.expectsMore(this);
  }

  #expectNoMore(): void {
    if (!this.#isExpecting) return;
    this.#isExpecting = false;
    this.#events.expectsNoMore();
  }
}
