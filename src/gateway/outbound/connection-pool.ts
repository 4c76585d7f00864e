/**
 * The connections to one next hop, shared by the queues that go there.
 *
 *            wanted, no back-off           ready                 begin / settled
 *   (none) ───────────────────► connecting ─────► idle ◄───────────────────────► busy
 *      ▲                            │ failed        │ 5 s idle, 100 messages, 300 s │
 *      │   back-off, one delivery   │               │           lost, 421           │
 *      └──── given back ◄───────────┘     closed ◄──┴───────────────────────────────┘
 *
 * - A delivery is taken from its queue only when a connection is ready for it: so they start in the order
 *   they are taken, however long connecting takes. Queues take turns (lane-ring.ts).
 * - A connection is asked for where there is none for a delivery that could start, so many at once at most.
 * - A failed connection attempt gives one delivery back untried, so that its reason is seen, and starts a
 *   back-off that doubles up to a minute; while it lasts nothing is tried, after it one connection at a time
 *   (no storm at a host that comes back). What waits stays in its queue, in order, and its attempts are not
 *   spent.
 * - Where the route pipelines across messages, and while the peer is fast, a message that is ready waits for
 *   the next dot of a busy connection rather than for a connection of its own: its envelope goes along in the
 *   same write, and comes back with its dot's answer in the same read (RFC 2920 3.1). A tick starts what a
 *   connection has kept waiting.
 * - Where TLS is only tried (`tls: may`) and does not come up, the next connection is in clear, at once, and
 *   so are all for an hour (tls-memory.ts). Where it must be had, that is a failed attempt like any other.
 * - A delivery that met a kept connection just closed by the peer is repeated once at once on a fresh one;
 *   that is no attempt of its own.
 *
 * Owns the peers and who is served next. Not here: the conversation (pure/smtp-session.ts), ticks
 * (dispatcher.ts).
 */
import { invariant } from '../../base/invariant.js';
import type { Clock, EventLog, Random } from '../../platform/ports.js';
import type { Transport } from '../../platform/transport.js';
import { nextHopKey } from '../queue/next-hop.js';
import type { Delivery, NextHop, RecipientResult } from '../queue/types.js';
import type { Lane, LaneHome } from './lane.js';
import { LaneRing } from './lane-ring.js';
import { Peer } from './peer.js';
import type { PeerEvents } from './peer.js';
import { Trouble, classifyTrouble } from './pure/classify.js';
import { State } from './pure/session-states.js';
import type { StateTimeouts } from './pure/session-states.js';
import type { SessionOptions, SessionPorts } from './pure/session-ports.js';
import type { TlsMemory } from './tls-memory.js';

/** After an envelope behind a dot went wrong, none is put there for this long. */
const FOLLOW_AGAIN_MS = 600_000;
/**
 * Connections being set up at once: a next hop is not met by one for each of thousands of queues. Those that
 * are ready take more messages.
 */
const CONNECTING_MAX = 256;

const TLS_FAILED =
  'TLS that a next hop offers does not come up; mail goes there in clear for an hour, then it is tried again';

export interface PoolOptions {
  readonly heloName: string;
  readonly timeouts: StateTimeouts;
  /** Messages on one connection at most: some servers count against us (Postfix users know 100). */
  readonly messagesPerConnectionMax: number;
  /** A connection older than this is not used again. */
  readonly connectionLifeMs: number;
  /** An idle connection is kept this long. */
  readonly idleMs: number;
  /** First and longest wait after failed connection attempts. */
  readonly backoffFirstMs: number;
  readonly backoffMaxMs: number;
}

export interface PoolPorts {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly session: SessionPorts;
  readonly log: EventLog;
  readonly tlsMemory: TlsMemory;
  /** TLS that was only tried did not come up. */
  onTlsFallback(): void;
}

/** For status. */
export interface NextHopState {
  readonly relay: string;
  readonly connections: number;
  readonly idle: number;
  readonly failures: number;
  /** Since the first of those; undefined while it answers. */
  readonly downSinceWallMs: number | undefined;
  /** Deliveries that could start, did it answer. */
  readonly waiting: number;
  /** Milliseconds of back-off left; 0 = none. */
  readonly retryInMs: number;
  readonly lastError: string;
}

interface Retry {
  readonly lane: Lane;
  readonly delivery: Delivery;
}

export class ConnectionPool implements PeerEvents, LaneHome {
  readonly #hop: NextHop;
  readonly #options: PoolOptions;
  readonly #ports: PoolPorts;
  readonly #session: SessionOptions;
  /** For connections of a next hop whose TLS has failed where it need not be had. */
  readonly #clearSession: SessionOptions;
  readonly #peers = new Set<Peer>();
  /** The last one used is used next, so that spare connections grow idle and end. */
  readonly #idle: Peer[] = [];
  readonly #lanes = new Set<Lane>();
  readonly #turns = new LaneRing();
  readonly #retries: Retry[] = [];
  #connecting = 0;
  #failures = 0;
  #downSinceWallMs: number | undefined;
  #notBeforeMs = 0;
  #followFromMs = 0;
  #lastError = '';
  #nowMs: number;
  #isPumping = false;
  #isStopping = false;

  constructor(hop: NextHop, options: PoolOptions, ports: PoolPorts, nowMs: number) {
    this.#hop = hop;
    this.#options = options;
    this.#ports = ports;
    this.#nowMs = nowMs;
    const { heloName, timeouts } = options;
    this.#session = { protocol: hop.protocol, heloName, relay: relayName(hop), timeouts, tls: hop.tls };
    this.#clearSession = { ...this.#session, tls: undefined };
  }

  /** Nothing is open and nobody uses it. */
  get isUnused(): boolean {
    return this.#peers.size === 0 && this.#lanes.size === 0;
  }

  /** Whether `hop` leads to the same place. */
  leadsTo(hop: NextHop): boolean {
    return hop === this.#hop || nextHopKey(hop) === nextHopKey(this.#hop);
  }

  add(lane: Lane): void {
    this.#lanes.add(lane);
    lane.home = this;
  }

  remove(lane: Lane): void {
    this.#lanes.delete(lane);
    this.#turns.remove(lane);
    lane.home = undefined;
  }

  mayStart(lane: Lane): void {
    if (lane.startable > 0) this.#turns.add(lane);
  }

  state(): NextHopState {
    let waiting = this.#retries.length;
    for (const { queue } of this.#lanes) waiting += queue.readyCount;
    return {
      downSinceWallMs: this.#downSinceWallMs,
      waiting,
      relay: this.#session.relay,
      connections: this.#peers.size,
      idle: this.#idle.length,
      failures: this.#failures,
      retryInMs: Math.max(0, this.#notBeforeMs - this.#nowMs),
      lastError: this.#lastError,
    };
  }

  /** Starts what can start: on ready connections first, then asks for more of them. */
  pump(): void {
    if (this.#isPumping || this.#isStopping) return;
    this.#isPumping = true;
    this.#startOnIdle();
    this.#connectWanted();
    this.#isPumping = false;
  }

  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    for (const peer of this.#peers) {
      peer.session.tick(nowMs);
      const isIdle = peer.session.state === State.IDLE;
      if (isIdle && nowMs - peer.idleSinceMs >= this.#options.idleMs) this.#retire(peer);
    }
    for (const lane of this.#lanes) {
      lane.isHoldingBack = false;
      this.mayStart(lane);
    }
    this.pump();
    for (const lane of this.#lanes) lane.isHoldingBack = true;
  }

  /** Takes no more; what is in flight goes on. */
  stop(): void {
    this.#isStopping = true;
    const result = classifyTrouble(Trouble.ABANDONED, 'this gateway is stopping');
    const { relay } = this.#session;
    for (const { lane, delivery } of this.#retries.splice(0)) lane.settleAll(delivery, relay, result, 0);
    for (const peer of this.#peers) {
      if (peer.session.state === State.IDLE) this.#retire(peer);
      else if (!peer.isReady) peer.session.abandon('stopping');
    }
  }

  /** Ends everything at once. */
  abandon(): void {
    for (const peer of this.#peers) peer.session.abandon('this gateway stopped');
  }

  onPeerIdle(peer: Peer): void {
    if (this.#failures > 0) {
      const { relay } = this.#session;
      this.#ports.log.info('nexthop', 'next hop answers again', { relay, failures: this.#failures });
    }
    this.#failures = 0;
    this.#downSinceWallMs = undefined;
    this.#lastError = '';
    const isFresh = peer.session.transactions === 0;
    if (isFresh) this.#connecting--;
    peer.idleSinceMs = this.#nowMs;
    const retry = isFresh ? this.#retries.shift() : undefined;
    if (retry !== undefined) peer.begin(retry.lane, retry.delivery, true);
    if (peer.session.state === State.IDLE) {
      this.#idle.push(peer);
      if (this.#isStopping || this.#isWornOut(peer)) this.#retire(peer);
    }
    this.pump();
  }

  mayFollow(peer: Peer): boolean {
    if (this.#isStopping || this.#retries.length > 0 || this.#nowMs < this.#followFromMs) return false;
    return !this.#isWornOut(peer, 2);
  }

  onFollowerLost(): void {
    this.#followFromMs = this.#nowMs + FOLLOW_AGAIN_MS;
  }

  takeBehind(lane: Lane): Delivery | undefined {
    // The queue may have got another route meanwhile.
    return lane.home === this && !this.#isStopping ? lane.takeBehind() : undefined;
  }

  onPeerStale(peer: Peer, lane: Lane, delivery: Delivery, isRetry: boolean): void {
    if (!isRetry && !this.#isStopping) {
      this.#retries.push({ lane, delivery });
      return;
    }
    const text = `${peer.relay} closes connections before the first reply`;
    lane.settleAll(delivery, peer.relay, classifyTrouble(Trouble.LOST, text), 0);
  }

  onPeerClosed(peer: Peer, why: RecipientResult | undefined): void {
    this.#peers.delete(peer);
    const at = this.#idle.indexOf(peer);
    if (at >= 0) this.#idle.splice(at, 1);
    if (!peer.isReady) {
      this.#connecting--;
      const mayBeInClear = peer.session.hasTlsFailed && this.#hop.tls?.level === 'may';
      if (why !== undefined && mayBeInClear) this.#onTlsFailed(peer, why);
      else if (why !== undefined && !this.#isStopping) this.#onConnectFailed(peer, why);
    }
    this.pump();
  }

  /** It is tried again in clear, as one that was never tried. */
  #onTlsFailed({ relay }: Peer, { text: why }: RecipientResult): void {
    const { host, port } = this.#hop;
    const { tlsMemory, log, onTlsFallback } = this.#ports;
    onTlsFallback();
    const isKnown = tlsMemory.hasFailed(host, port, this.#nowMs);
    tlsMemory.note(host, port, this.#nowMs);
    if (!isKnown) log.warn('tls', TLS_FAILED, { relay, why });
  }

  #onConnectFailed(peer: Peer, why: RecipientResult): void {
    this.#lastError = why.text;
    // Attempts that ran side by side and failed together are one failure.
    if (this.#nowMs < this.#notBeforeMs) return;
    const { backoffFirstMs, backoffMaxMs } = this.#options;
    const delayMs = Math.min(backoffMaxMs, backoffFirstMs * 2 ** Math.min(this.#failures, 20));
    this.#failures++;
    this.#downSinceWallMs ??= this.#ports.clock.wallMs();
    this.#notBeforeMs = this.#nowMs + delayMs * (0.75 + 0.5 * this.#ports.random());
    this.#ports.log.warn('nexthop', 'next hop can not be reached', {
      relay: peer.relay, failures: this.#failures, reply: why.text,
    });
    const retry = this.#retries.shift();
    const lane = retry?.lane ?? this.#turns.take();
    const delivery = retry?.delivery ?? lane?.take();
    if (lane === undefined || delivery === undefined) return;
    lane.settleAll(delivery, peer.relay, why, peer.setupMs, peer.session.tls);
  }

  #startOnIdle(): void {
    while (this.#idle.length > 0) {
      const lane = this.#turns.take();
      if (lane === undefined) return;
      const delivery = lane.take();
      if (delivery === undefined) continue;
      const peer = this.#idle.pop();
      invariant(peer !== undefined, 'a connection is idle');
      peer.begin(lane, delivery, false);
      this.mayStart(lane);
      // Settled without a transaction (too large for the peer): it is still free.
      if (peer.session.state === State.IDLE) this.#idle.push(peer);
    }
  }

  #connectWanted(): void {
    if (this.#nowMs < this.#notBeforeMs) return;
    // A host in trouble is asked by one connection at a time.
    const most = this.#failures > 0 ? 1 : CONNECTING_MAX;
    if (this.#connecting >= most) return;
    const wanted = Math.min(most, this.#retries.length + this.#turns.startable(most));
    while (this.#connecting < wanted) this.#connect();
  }

  #connect(): void {
    const { host, port, tls } = this.#hop;
    const { clock, transport, tlsMemory, session } = this.#ports;
    const isInClear = tls?.level === 'may' && tlsMemory.hasFailed(host, port, this.#nowMs);
    const options = isInClear ? this.#clearSession : this.#session;
    const peer = new Peer(options, session, clock, this, this.#nowMs);
    this.#peers.add(peer);
    this.#connecting++;
    peer.session.attach(transport.connect(host, port, peer.session));
  }

  /** Whether it should not begin `more` transactions. */
  #isWornOut(peer: Peer, more = 1): boolean {
    const { messagesPerConnectionMax, connectionLifeMs } = this.#options;
    const isUsedUp = peer.session.transactions + more > messagesPerConnectionMax;
    return isUsedUp || this.#nowMs - peer.openedMs >= connectionLifeMs;
  }

  /** Ends an idle connection. */
  #retire(peer: Peer): void {
    const at = this.#idle.indexOf(peer);
    if (at >= 0) this.#idle.splice(at, 1);
    peer.session.quit();
  }
}

/** "host[address]:port"; the address where the route names one. */
function relayName(hop: NextHop): string {
  const isNumber = (part: string): boolean => part !== '' && Number.isInteger(Number(part));
  const isAddress = hop.host.includes(':') || hop.host.split('.').every(isNumber);
  return isAddress ? `${hop.host}[${hop.host}]:${hop.port}` : `${hop.host}:${hop.port}`;
}
