/**
 * The connections to one next hop, shared by the queues that go there: one host, or those of one set of MX
 * records, which many domains may have (site-hosts.ts says which of them is tried next).
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
 * - After a failed connection attempt its host is left alone for a while that doubles up to a minute (after a
 *   refused password up to the longest retry, unless there is another password); then
 *   it is tried by one connection at a time (no storm at a host that comes back). When no other host may be
 *   tried, nor is one that has not failed, one delivery is given back untried, so that the reason is seen.
 *   What waits stays in its queue, in order, and its attempts are not spent.
 * - A host that greets and then turns the first mail of a connection away (421, or it closes) has failed like
 *   one that does not greet, and stays so until a connection has brought it mail. Later on a connection, that
 *   only ends it: some servers take so many messages on one.
 * - While the peer is fast, a message that is ready waits for the next dot of a busy connection rather than
 *   for a connection of its own: its envelope goes along in the same write, and comes back with its dot's
 *   answer in the same read (RFC 2920 3.1). A tick starts what a connection has kept waiting. Each host is
 *   tried with one envelope so; after the first odd answer none goes behind a dot there for an hour.
 * - Where TLS is only tried (`tls: may`) and does not come up, the next connection is in clear, at once, and
 *   so are all for an hour (host-memory.ts), unless the host then refuses mail as one that insists on TLS:
 *   that is tried next, after a back-off. Where TLS must be had, that is a failed attempt like any other.
 * - What the DNS says of a host's TLS (pure/host-tlsa.ts) is asked for each connection, which goes by it for
 *   its life: records that change meanwhile count 300 s later at most.
 * - Where the domains enforce a policy (MTA-STS), TLS must be had with hosts of the DNS, and be right by it;
 *   who waited when it was not has its policy fetched anew.
 * - Where TLSA records or a policy ask for TLS, a fallback of the route must have it too, unless it is on
 *   this machine, and gets no mail while a host of the DNS failed by its TLS (site-hosts.ts).
 * - An idle connection to a fallback, or to a later host of the route, ends when mail comes and one before it
 *   may be tried again: else it would be used for its whole life, though that one is back.
 * - Where all connections that may be open to all hosts are, and somebody's mail waits for one, no idle one
 *   is kept anywhere.
 * - A delivery that met a kept connection just closed by the peer is repeated once at once on a fresh one;
 *   that is no attempt of its own.
 *
 * Owns the peers and who is served next. Not here: the conversation (pure/smtp-session.ts), ticks
 * (dispatcher.ts).
 */
import { isIP } from 'node:net';
import { addressText, relayText } from '../../base/address-text.js';
import { invariant } from '../../base/invariant.js';
import type { Clock, EventLog, PasswordFound, Random } from '../../platform/ports.js';
import type { MailTransport } from '../../platform/transport.js';
import { termsText } from '../queue/next-hop.js';
import type {
  Delivery, NextHopAuth, NextHopTls, Outage, RecipientResult, TlsNeed,
} from '../mail-types.js';
import type { Lane, LaneHome } from './lane.js';
import { LaneRing } from './lane-ring.js';
import { Peer } from './peer.js';
import type { PeerEvents } from './peer.js';
import { Dial } from './dial.js';
import type { ConnectionAccount, FullLimit } from './connection-account.js';
import type { MxLookup, MxOptions } from './mx-lookup.js';
import type { Sources } from './sources.js';
import { SiteHosts } from './site-hosts.js';
import type { BackoffOptions, SiteHost } from './site-hosts.js';
import { systemTurns } from './pure/address-turns.js';
import { Trouble, classifyTrouble, deferred, isTlsTrouble } from './pure/classify.js';
import { STATE_DOING, State } from './pure/session-states.js';
import type { StateTimeouts } from './pure/session-states.js';
import type { SessionOptions, SessionPorts } from './pure/session-ports.js';
import type { HostMemory } from './host-memory.js';
import type { MailSource } from './pure/source-choice.js';
import { BY_STS, raisedBySts } from './pure/sts-policy.js';
import type { PolicySource } from './sts/sts-policies.js';
import type { TlsWatch, WatchedSession } from './tls-reports/tls-tally.js';

/** So many deliveries fail at once where no host can take them. */
const ENDED_MAX = 100;
/**
 * So many end in one turn because the peer lacks what they need: with its report each takes up to a
 * millisecond of the loop, and there may be as many as a queue holds.
 */
const UNSENT_MAX = 25;
/**
 * Connections being set up at once: a next hop is not met by one for each of thousands of queues. Those that
 * are ready take more messages.
 */
const CONNECTING_MAX = 256;

/** With a host for which nothing is said of TLS. */
const ANY_TLS: NextHopTls = {
  level: 'may', isFirst: false, terms: { serverName: '', mustVerify: false, caFile: undefined },
};

/** Domains for which one failed session counts. */
const WATCHED_MAX = 100;

const ANOTHER_WAY = 'the connection was lost before the first reply, and its mail goes another way now';

const TLS_FAILED =
  'TLS that a next hop offers does not come up; mail goes there in clear for an hour, then it is tried again';

const DANE_FAILED = 'a host does not do what its TLSA records say, or they can not be had: '
  + 'no mail goes there until that is mended';

const STS_FAILED = 'a host does not do what the MTA-STS policy of a domain says: '
  + 'no mail of it goes there until that is mended';

const SLOW = 'a next hop takes a content slower than delivery.min_data_rate, and is given up';

export interface PoolOptions extends BackoffOptions {
  readonly mx: Pick<MxOptions, 'connectionsMax'>;
  readonly heloName: string;
  readonly timeouts: StateTimeouts;
  readonly contentBytesPerSecondMin: number;
  /** Messages on one connection at most: some servers count against us (Postfix users know 100). */
  readonly messagesPerConnectionMax: number;
  /** A connection older than this is not used again. */
  readonly connectionLifeMs: number;
  /** An idle connection is kept this long. */
  readonly idleMs: number;
}

/** What a pool leads to. */
export interface Site {
  /** One for each place; of queues that have the same one connections are shared. */
  readonly key: string;
  readonly protocol: 'smtp' | 'lmtp';
  readonly hosts: readonly SiteHost[];
  /** Of hosts without terms of their own. */
  readonly tls: NextHopTls | undefined;
  readonly auth: NextHopAuth | undefined;
  /** Addresses of ours that its mail may leave from; undefined: any. */
  readonly sources: readonly string[] | undefined;
  /** Of all mail that goes there; undefined: as its route says. */
  readonly tlsNeed: TlsNeed | undefined;
  /**
   * The DNS has proved that mail goes to these hosts: their TLSA records are asked for. `domain`: the only
   * one whose mail does, or ''.
   */
  readonly dane: { readonly domain: string } | undefined;
  /** The domains whose mail goes there enforce it by policies (pure/sts-policy.ts). */
  readonly isBySts: boolean;
}

export interface PoolPorts {
  readonly transport: MailTransport;
  readonly lookup: MxLookup;
  readonly sources: Sources;
  readonly policies: PolicySource | undefined;
  /** Who counts sessions with hosts by MX; undefined: nobody. */
  readonly tlsWatch: TlsWatch | undefined;
  /** Of all pools. */
  readonly connections: ConnectionAccount;
  readonly clock: Clock;
  readonly random: Random;
  readonly session: SessionPorts;
  readonly log: EventLog;
  /** Hosts whose TLS did not come up where it need not. */
  readonly tlsFailed: HostMemory;
  /** Hosts that do not bear an envelope behind a dot. */
  readonly followersOdd: HostMemory;
  /** Addresses, by addressName(), that did not take a connection, or mail on it. */
  readonly badAddresses: HostMemory;
  /** Hosts that took a content too slowly. */
  readonly slow: HostMemory;
  /** TLS that was only tried did not come up. */
  onTlsFallback(): void;
  /** A host did not do what its TLSA records say, or they could not be had. */
  onDaneFailed(): void;
  /** A host took a content too slowly. */
  onSlow(): void;
}

/** A connection that is being set up. */
export interface ConnectingState {
  /** With the address once that is known. */
  readonly relay: string;
  readonly forMs: number;
  /** What is waited for, "waiting for the greeting"; '': for the connection itself. */
  readonly doing: string;
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
  /** Of all that is in the queues that go there. */
  readonly bytes: number;
  /** Milliseconds of back-off left; 0 = none. */
  readonly retryInMs: number;
  readonly lastError: string;
  /** The reply code of that, or the status where there was no reply; '' while it answers. */
  readonly lastCode: string;
  /** The one that takes longest, while none is ready. */
  readonly connecting: ConnectingState | undefined;
  /** Why no further connection is opened; undefined: one may be. */
  readonly fullBy: FullLimit | undefined;
  /** It answers, and refuses our user and password. */
  readonly isDenied: boolean;
  /** Somebody's host or domain; else one that the configuration names. */
  readonly isByMx: boolean;
}

interface Retry {
  readonly lane: Lane;
  readonly delivery: Delivery;
}

export class ConnectionPool implements PeerEvents, LaneHome {
  /** Of all its hosts: one list for all who come. */
  readonly hostNames: readonly string[];
  readonly #site: Site;
  readonly #hosts: SiteHosts;
  #options: PoolOptions;
  readonly #ports: PoolPorts;
  /** As the log calls it. */
  readonly #relay: string;
  /** As status does. */
  readonly #shown: string;
  readonly #peers = new Set<Peer>();
  /** The last one used is used next, so that spare connections grow idle and end. */
  readonly #idle: Peer[] = [];
  readonly #lanes = new Set<Lane>();
  /** Ways by MX that led here before a reload, and may again: since when it is down is kept for them. */
  readonly awaitedBy = new Set<object>();
  /** Hosts of the route stand behind others. */
  readonly #hasFallback: boolean;
  readonly #turns = new LaneRing();
  readonly #retries: Retry[] = [];
  /** Whose failed TLS was counted for reports: the session in clear that follows is told with it, as one. */
  readonly #failedTold = new Set<Lane>();
  /** Connections at work that are about to send a dot and will take one message more along. */
  #expecting = 0;
  /** Off now and then: a connection that does not come to its dot keeps nothing waiting for long. */
  #isHoldingBack = true;
  /** Deliveries that ended in this turn without a transaction: each may cost a report. */
  #endedInTurn = 0;
  readonly #runNextTurn = (): void => {
    this.#endedInTurn = 0;
    this.pump();
  };
  #connecting = 0;
  /** Of those, to hosts that failed last. */
  #probing = 0;
  #nowMs: number;
  #isPumping = false;
  #isStopping = false;

  constructor(site: Site, options: PoolOptions, ports: PoolPorts, nowMs: number) {
    this.#site = site;
    this.hostNames = site.hosts.map(({ name }) => name);
    for (const host of site.hosts) {
      if (this.#authOf(host) !== undefined) host.isProven = false;
      host.isBound = host.isByMx && (site.dane !== undefined || site.isBySts);
    }
    this.#hasFallback = site.hosts.length > 1 && site.hosts.some(({ isByMx }) => !isByMx);
    this.#hosts = new SiteHosts(site.hosts, options, ports.random);
    this.#options = options;
    this.#ports = ports;
    this.#nowMs = nowMs;
    const [first] = site.hosts;
    const others = site.hosts.length > 1 ? ` and ${String(site.hosts.length - 1)} more` : '';
    this.#relay = first === undefined ? site.key : relayName(first.name, first.port) + others;
    const isOneUser = site.hosts.every((host) => this.#authOf(host)?.user === site.auth?.user);
    this.#shown = this.#relay + termsText(isOneUser ? site : { ...site, auth: undefined }, policiesOf(site));
  }

  /** Nothing is open and nobody uses it. */
  get isUnused(): boolean {
    return this.#peers.size + this.#lanes.size + this.awaitedBy.size + this.#retries.length === 0;
  }

  /** Hosts by MX are tried at once when mail comes to them: their addresses may be others. */
  renew(options: PoolOptions): void {
    this.#options = options;
    this.#hosts.renew(options);
    if (this.#isByMx) this.#hosts.hasten();
  }

  add(lane: Lane): void {
    this.#lanes.add(lane);
    lane.home = this;
  }

  /** Its queue goes another way. What was to be tried once more here is given back first, by this home. */
  remove(lane: Lane): void {
    this.#giveBackRetries(lane);
    this.#failedTold.delete(lane);
    this.#lanes.delete(lane);
    this.#turns.remove(lane);
    lane.home = undefined;
  }

  mayStart(lane: Lane): void {
    if (lane.startable > 0) this.#turns.add(lane);
  }

  state(): NextHopState {
    let waiting = this.#retries.length;
    let bytes = 0;
    for (const { queue } of this.#lanes) {
      waiting += queue.readyCount;
      bytes += queue.bytes;
    }
    const first = this.#hosts.firstToMend;
    return {
      downSinceWallMs: this.#hosts.downSinceWallMs,
      waiting,
      bytes,
      relay: this.#shown,
      connections: this.#peers.size,
      idle: this.#idle.length,
      failures: first?.failures ?? 0,
      retryInMs: Math.max(0, (first?.notBeforeMs ?? 0) - this.#nowMs),
      lastError: first?.lastWhy?.text ?? '',
      lastCode: codeOf(first?.lastWhy),
      connecting: this.#connectingState(),
      fullBy: this.#fullBy(),
      isDenied: this.#hosts.isDenied,
      isByMx: this.#isByMx,
    };
  }

  get #isByMx(): boolean { return this.#site.hosts[0]?.isByMx === true; }

  get #connectionsMax(): number { return this.#isByMx ? this.#options.mx.connectionsMax : Infinity; }

  /** None of its hosts can be reached. */
  get isDown(): boolean {
    return this.#hosts.downSinceWallMs !== undefined;
  }

  #connectingState(): ConnectingState | undefined {
    let slowest: Peer | undefined;
    for (const peer of this.#peers) {
      if (peer.isReady) return undefined;
      if (slowest === undefined || peer.openedMs < slowest.openedMs) slowest = peer;
    }
    const kept = this.#keptByLookup();
    if (kept !== undefined || slowest === undefined) return kept;
    const { relay, openedMs, session: { state } } = slowest;
    const doing = state === State.CONNECTING ? '' : STATE_DOING[state] ?? '';
    return { relay, forMs: this.#nowMs - openedMs, doing };
  }

  /** Also between two connections, while the host is put off for that (dial.ts, onNoRoom). */
  #keptByLookup(): ConnectingState | undefined {
    for (const { name, port, isByMx, failures } of this.#site.hosts) {
      const wait = isByMx || failures > 0 ? undefined : this.#ports.transport.waitOf?.(name);
      if (wait !== undefined) return { relay: relayName(name, port), ...wait };
    }
    return undefined;
  }

  #fullBy(): FullLimit | undefined {
    const { connections } = this.#ports;
    const { hosts } = this.#site;
    const connectionsMax = this.#connectionsMax;
    if (this.#peers.size >= connectionsMax) {
      const text = `${String(this.#peers.size)} of ${String(connectionsMax)} to its hosts are open`;
      return { key: 'delivery.mx.connections', text };
    }
    const full = connections.fullFor(this.#isByMx);
    if (full !== undefined) return full;
    const host = hosts.find(({ fullAddress: one }) => one !== '' && connections.isAddressFull(one));
    if (host === undefined) return undefined;
    const text = `there are as many to ${host.fullAddress} as may be`;
    return { key: 'delivery.mx.connections_per_address', text };
  }

  /** Why none of them can be reached. */
  outage(): Outage | undefined {
    const host = this.#hosts.firstOfNone;
    const why = host?.lastWhy;
    if (host === undefined || why === undefined) return undefined;
    return { relay: relayName(host.name, host.port), why: deferred(why) };
  }

  /** Whoever failed is tried now. */
  hasten(): void {
    this.#hosts.hasten();
    this.pump();
  }

  /** Starts what can start: on ready connections first, then asks for more of them. */
  pump(): void {
    if (this.#isPumping || this.#isStopping) return;
    this.#isPumping = true;
    if (this.#hasFallback) this.#leaveFallback();
    this.#startOnIdle();
    this.#makeRoom();
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
    for (const lane of this.#lanes) this.mayStart(lane);
    this.#lookAtPassword();
    this.#isHoldingBack = false;
    this.pump();
    this.#isHoldingBack = true;
  }

  /** One that was refused is not tried for long; one that was mended meanwhile is at once. */
  #lookAtPassword(): void {
    if (this.#hosts.isDenied) this.#hosts.notePasswords((host) => this.#passwordOf(host));
  }

  #authOf({ terms }: SiteHost): NextHopAuth | undefined {
    return terms === undefined ? this.#site.auth : terms.auth;
  }

  #passwordOf(host: SiteHost): PasswordFound | undefined {
    const auth = this.#authOf(host);
    return auth === undefined ? undefined : this.#ports.session.password(auth.passwordFile);
  }

  /** Takes no more; what is in flight goes on. */
  stop(): void {
    this.#isStopping = true;
    const result = classifyTrouble(Trouble.ABANDONED, 'this gateway is stopping');
    const retries = this.#retries.splice(0);
    for (const { lane, delivery } of retries) lane.settleAll(delivery, this.#relay, result, 0);
    for (const peer of this.#peers) {
      if (peer.session.state === State.IDLE) this.#retire(peer);
      else if (!peer.isReady) peer.session.abandon('stopping');
    }
  }

  /** Ends everything at once. */
  abandon(): void {
    for (const peer of this.#peers) peer.session.abandon('this gateway stopped');
  }

  #giveBackRetries(lane: Lane): void {
    if (!this.#retries.some((retry) => retry.lane === lane)) return;
    const result = classifyTrouble(Trouble.LOST, ANOTHER_WAY);
    const retries = this.#retries.splice(0);
    for (const retry of retries) {
      if (retry.lane === lane) lane.settleAll(retry.delivery, this.#relay, result, 0);
      else this.#retries.push(retry);
    }
  }

  onPeerIdle(peer: Peer): void {
    const { host } = peer;
    const isFresh = peer.session.transactions === 0;
    if (isFresh) host.ready++;
    if (peer.isBeingSetUp && !(isFresh && host.isTurningAway)) this.#onAnswered(peer);
    peer.idleSinceMs = this.#nowMs;
    // Over a kept one it may come back, which costs it nothing; but there is no room for another.
    const mayRetry = this.#mayTake(peer) && (isFresh || this.#isFull);
    const retry = mayRetry ? this.#retries.shift() : undefined;
    if (retry !== undefined) this.#begin(peer, retry, true);
    if (peer.session.state === State.IDLE) {
      this.#idle.push(peer);
      if (this.#isStopping || this.#isWornOut(peer)) this.#retire(peer);
    }
    this.pump();
  }

  /** Not when a kept connection goes on: the host may take no more of them. */
  #onAnswered(peer: Peer): void {
    const { host, relay, tried } = peer;
    this.#noteConnected(peer);
    this.#ports.badAddresses.forget(addressName(host, tried), host.port);
    host.isProven = true;
    host.metMs = this.#nowMs;
    if (host.failures > 0) {
      const fields = { relay, ...sourceField(peer), failures: host.failures };
      this.#ports.log.info('nexthop', 'next hop answers again', fields);
    }
    // What failed while it was put off counts as no failure, but was noted and told.
    this.#hosts.noteAnswer(host);
  }

  expectsMore(peer: Peer): boolean {
    if (this.#isStopping || this.#retries.length > 0 || this.#isWornOut(peer, 2)) return false;
    // Its first mail tells whether the host takes any.
    if (peer.isBeingSetUp) return false;
    if (this.#site.protocol === 'lmtp' || !this.#mayBearFollowers(peer.host)) return false;
    this.#expecting++;
    return true;
  }

  expectsNoMore(): void {
    this.#expecting--;
  }

  onFollowersNotBorne({ host }: Peer): void {
    host.bearsFollowers = false;
    this.#ports.followersOdd.note(host.name, host.port, this.#nowMs, '');
  }

  takeBehind(peer: Peer): void {
    const { host } = peer;
    if (this.#isStopping || !this.#mayBearFollowers(host) || !this.#mayTake(peer)) return;
    for (let lane = this.#turns.take(); lane !== undefined; lane = this.#turns.take()) {
      const delivery = lane.take();
      if (delivery === undefined) continue;
      this.mayStart(lane);
      if (!host.bearsFollowers) host.isTrying = true;
      this.#watch(peer, lane);
      peer.follow(lane, delivery);
      return;
    }
  }

  onPeerStale(peer: Peer, lane: Lane, delivery: Delivery, isRetry: boolean): void {
    if (!this.#lanes.has(lane)) {
      // Its mail goes another way meanwhile, maybe by stricter terms: nothing of it begins here any more.
      lane.settleAll(delivery, peer.relay, classifyTrouble(Trouble.LOST, ANOTHER_WAY), 0);
      return;
    }
    if (!isRetry && !this.#isStopping) {
      this.#retries.push({ lane, delivery });
      return;
    }
    const text = `${peer.relay} closes connections before the first reply`;
    lane.settleAll(delivery, peer.relay, classifyTrouble(Trouble.LOST, text), 0);
  }

  /** Each host is told of once an hour. */
  onPeerSlow({ host, relay }: Peer): void {
    const { slow, log, onSlow } = this.#ports;
    onSlow();
    if (slow.has(host.name, host.port, this.#nowMs)) return;
    slow.note(host.name, host.port, this.#nowMs, '');
    log.warn('nexthop', SLOW, { relay });
  }

  onTlsWanted({ host }: Peer): void {
    this.#ports.tlsFailed.forget(host.name, host.port);
    for (const idle of this.#idle.filter((one) => one.host === host && one.lostTls !== undefined)) {
      this.#retire(idle);
    }
  }

  onSourceOpen(source: MailSource): void {
    this.#ports.sources.noteOpen(source);
  }

  /**
   * No connection to it, or none that took mail: where its host is named by a route, other addresses of that
   * go before it for an hour, or until it answers.
   */
  onAddressFailed({ host, tried }: Peer): void {
    if (host.isByMx || tried === '') return;
    this.#ports.badAddresses.note(addressName(host, tried), host.port, this.#nowMs, '');
  }

  onPeerClosed(peer: Peer, why: RecipientResult | undefined): void {
    this.#peers.delete(peer);
    const at = this.#idle.indexOf(peer);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#ports.connections.onClosed();
    if (peer.host.isByMx && peer.address !== '') this.#ports.connections.giveAddress(peer.address);
    if (peer.isBeingSetUp) this.#noteConnected(peer);
    if (peer.isReady) {
      peer.host.ready--;
      if (why !== undefined) this.#onTurnedAway(peer, why);
    } else {
      const mayBeInClear = peer.session.hasTlsFailed && peer.tls?.level === 'may';
      if (peer.isRoomless) {
        this.#hosts.putOff(peer.host, peer.fullAddress, this.#nowMs);
        return this.pump();
      }
      this.#noteTls(peer, why);
      this.#watchFailed(peer, why);
      if (why !== undefined && mayBeInClear) this.#onTlsFailed(peer, why);
      else if (why !== undefined && !this.#isStopping) this.#onConnectFailed(peer, why);
    }
    this.pump();
  }

  /** The first mail of the connection: no storm of them there, and what waits keeps its attempts. */
  #onTurnedAway(peer: Peer, why: RecipientResult): void {
    const { host, relay } = peer;
    this.onAddressFailed(peer);
    if (!this.#hosts.noteTurnedAway(host, why, this.#nowMs, this.#ports.clock.wallMs())) return;
    const level = host.isByMx && host.failures > 1 ? 'debug' : 'warn';
    this.#ports.log[level]('nexthop', 'next hop takes no mail for now', {
      relay, ...sourceField(peer), failures: host.failures, reply: why.text,
    });
  }

  /** It is tried again in clear, as one that was never tried. */
  #onTlsFailed({ relay, host }: Peer, { text: why }: RecipientResult): void {
    const { name, port } = host;
    const { tlsFailed, log, onTlsFallback } = this.#ports;
    onTlsFallback();
    const isKnown = tlsFailed.has(name, port, this.#nowMs);
    tlsFailed.note(name, port, this.#nowMs, why);
    // It was refused in clear, and TLS is tried anew each time: that is told once.
    const level = host.isTurningAway ? 'debug' : 'warn';
    if (!isKnown) log[level]('tls', TLS_FAILED, { relay, why });
  }

  #noteTls({ host, relay, tls, isByDane }: Peer, why: RecipientResult | undefined): void {
    const isOfPolicy = !isByDane && tls?.terms.isBySts === true;
    if (!(isByDane || isOfPolicy) || why === undefined || !isTlsTrouble(why)) return;
    if (!isOfPolicy) this.#ports.onDaneFailed();
    if (host.isTlsTold) return;
    host.isTlsTold = true;
    this.#ports.log.warn('tls', isOfPolicy ? STS_FAILED : DANE_FAILED, { relay, why: why.text });
  }

  #begin(peer: Peer, { lane, delivery }: Retry, isRetry: boolean): void {
    this.#watch(peer, lane);
    peer.begin(lane, delivery, isRetry);
  }

  /** Mail of the queue goes over the connection. */
  #watch(peer: Peer, lane: Lane): void {
    const { tlsWatch } = this.#ports;
    const { lostTls } = peer;
    if (tlsWatch === undefined || !peer.host.isByMx || (peer.tls ?? lostTls) === undefined) return;
    if (!isReported(lane) || !peer.isNewTo(lane)) return;
    if (lostTls === undefined) tlsWatch.onSession(domainOf(lane), watched(peer), peer.session.tls);
    else if (!this.#failedTold.delete(lane)) {
      tlsWatch.onFailedSession(domainOf(lane), watched(peer), lostTls);
    }
  }

  #watchFailed(peer: Peer, why: RecipientResult | undefined): void {
    const { tlsWatch } = this.#ports;
    if (tlsWatch === undefined || !peer.host.isByMx || why === undefined || !isTlsTrouble(why)) return;
    let told = 0;
    for (const lane of this.#lanes) {
      if (lane.queue.readyCount === 0 || !isReported(lane)) continue;
      tlsWatch.onFailedSession(domainOf(lane), watched(peer), why.text);
      this.#failedTold.add(lane);
      if (++told >= WATCHED_MAX) return;
    }
  }

  #onConnectFailed(peer: Peer, why: RecipientResult): void {
    const { host, relay, isSourceless } = peer;
    this.onAddressFailed(peer);
    const sinceMs = isSourceless ? undefined : this.#ports.clock.wallMs();
    if (!this.#hosts.noteFailure(host, why, this.#nowMs, sinceMs, peer.password)) return;
    if (this.#site.tls?.isRequired === true && this.#hosts.areAllRefusing) return this.#endLacking(peer, why);
    // Strangers' hosts are many: each is told once. Of a source that is gone sources.ts tells.
    const level = isSourceless || (host.isByMx && host.failures > 1) ? 'debug' : 'warn';
    this.#ports.log[level]('nexthop', 'next hop can not be reached', {
      relay, ...sourceField(peer), failures: host.failures, reply: why.text,
    });
    if (this.#hosts.next(this.#nowMs) !== undefined || this.#hosts.isAnyBeingMet) return;
    const retry = this.#retries.shift();
    const lane = retry?.lane ?? this.#turns.take();
    const delivery = retry?.delivery ?? lane?.take();
    if (lane === undefined || delivery === undefined) return;
    if (this.#site.isBySts && host.isByMx && isTlsTrouble(why)) {
      this.#ports.policies?.onFailure(lane.queue.route.nextHop.host, 'tls');
    }
    const said = this.#hosts.areAllRefusing ? why : deferred(why);
    lane.settleAll(delivery, relay, said, peer.setupMs, peer.session.tls, peer.source);
  }

  /**
   * No host of the site does what the senders of this mail ask of TLS (RFC 8689): all of it fails, though the
   * hosts are well.
   */
  #endLacking({ host, relay, setupMs, session, source }: Peer, why: RecipientResult): void {
    host.downSinceWallMs = undefined;
    this.#ports.log.debug('tls', 'a next hop lacks what mail asks of TLS: that fails', {
      relay, reply: why.text,
    });
    for (let ended = 0; ended < ENDED_MAX; ended++) {
      const retry = this.#retries.shift();
      const lane = retry?.lane ?? this.#turns.take();
      if (lane === undefined) return;
      const delivery = retry?.delivery ?? lane.take();
      if (delivery !== undefined) lane.settleAll(delivery, relay, why, setupMs, session.tls, source);
    }
  }

  /** It takes mail now, or it failed. */
  #noteConnected(peer: Peer): void {
    const { host, isProbe } = peer;
    peer.isBeingSetUp = false;
    this.#connecting--;
    this.#ports.connections.onSetUp(this.#isByMx);
    if (isProbe) this.#probing--;
    host.connecting--;
  }

  #startOnIdle(): void {
    while (this.#idle.length > 0 && this.#startable(1) > 0) {
      const lane = this.#turns.take();
      if (lane === undefined) return;
      const delivery = lane.take();
      if (delivery === undefined) continue;
      const peer = this.#idle.pop();
      invariant(peer !== undefined, 'a connection is idle');
      this.#begin(peer, { lane, delivery }, false);
      this.mayStart(lane);
      if (peer.session.state === State.IDLE) this.#onEndedUnsent(peer);
    }
  }

  /** Settled without a transaction (too large for the peer, say): the connection is still free. */
  #onEndedUnsent(peer: Peer): void {
    this.#idle.push(peer);
    if (this.#endedInTurn++ === 0) setImmediate(this.#runNextTurn);
  }

  get #isFull(): boolean {
    const { connections } = this.#ports;
    return this.#peers.size >= this.#connectionsMax || connections.areAllOpen;
  }

  /** For another pool, whose mail waits for one. */
  #makeRoom(): void {
    const { connections } = this.#ports;
    if (this.#idle.length === 0 || !connections.isAnyWanted) return;
    for (const peer of this.#idle.filter(({ address }) => connections.isWanted(address))) this.#retire(peer);
  }

  #connectWanted(): void {
    const { connections } = this.#ports;
    const own = this.#connectionsMax - this.#peers.size;
    const left = connections.room(this.#isByMx);
    if (left <= 0 && own > 0 && this.#retries.length + this.#startable(1) > 0) connections.noteRefused();
    const room = Math.min(own, left);
    const most = Math.min(CONNECTING_MAX, room + this.#connecting);
    if (this.#connecting >= most) return;
    let host = this.#hosts.next(this.#nowMs);
    if (host === undefined || this.#waitsForAddress(host)) return;
    const wanted = this.#retries.length + this.#startable(most);
    // No mail waits for a host that may still be away, where there is another one.
    while (host !== undefined && this.#connecting < most && this.#connecting - this.#probing < wanted) {
      this.#connect(host);
      host = this.#hosts.next(this.#nowMs);
    }
  }

  /** Its address has as many connections as may be: it is not even looked up before there is room. */
  #waitsForAddress(host: SiteHost): boolean {
    if (host.fullAddress === '') return false;
    if (this.#ports.connections.waitsForAddress(host.fullAddress)) return true;
    host.fullAddress = '';
    return false;
  }

  /**
   * Deliveries that could start in this turn, less what is left to connections at work; counted up to `most`.
   */
  #startable(most: number): number {
    if (this.#endedInTurn >= UNSENT_MAX) return 0;
    const left = this.#isHoldingBack ? this.#expecting : 0;
    return Math.max(0, this.#turns.startable(most + left) - left);
  }

  #connect(host: SiteHost): void {
    const { name, port, isByMx } = host;
    const { protocol, dane } = this.#site;
    const auth = this.#authOf(host);
    const { heloName, timeouts, contentBytesPerSecondMin } = this.#options;
    const { clock, transport, sources } = this.#ports;
    const relay = relayName(name, port);
    const tls = this.#tlsOf(host);
    const options = { protocol, heloName, timeouts, contentBytesPerSecondMin, relay, ...tls, auth };
    const peer = new Peer(options, this.#ports.session, clock, this, host, this.#nowMs);
    peer.password = this.#passwordOf(host);
    this.#peers.add(peer);
    this.#ports.connections.onAskedFor(this.#isByMx);
    this.#connecting++;
    if (peer.isProbe) this.#probing++;
    host.connecting++;
    const { session } = peer;
    // A name goes by Dial: Node gives each address but the last 250 ms, a SYN sent once more takes 1 s.
    const isAddress = !isByMx && sources.areNone && isIP(name) !== 0;
    if (isAddress) return session.attach(transport.connect(name, port, session));
    const handlers = peer.dialled(this.#routeTls(host), dane?.domain ?? '');
    const site = this.#site.hosts[0]?.name ?? name;
    const withinMs = timeouts[State.CONNECTING] ?? 0;
    const terms = {
      asksTlsa: isByMx && dane !== undefined, site, sources: this.#site.sources, withinMs,
      inOrder: (addresses: readonly string[]) => this.#inOrder(host, addresses),
    };
    session.attach(new Dial(host, terms, this.#ports, handlers));
  }

  /** Where all have failed they are alike again: else the first one that answers would have all the mail. */
  #inOrder(host: SiteHost, addresses: readonly string[]): readonly string[] {
    const { badAddresses } = this.#ports;
    const nameOf = (address: string): string => addressName(host, address);
    const bad = addresses.filter((address) => badAddresses.has(nameOf(address), host.port, this.#nowMs));
    if (bad.length < addresses.length) return systemTurns(addresses, bad);
    for (const address of bad) badAddresses.forget(nameOf(address), host.port);
    return systemTurns(addresses, []);
  }

  /** Asked before each transaction; an idle connection that may not is ended before that (#leaveFallback). */
  #mayTake({ host, session }: Peer): boolean {
    return !this.#hasFallback || this.#hosts.mayTake(host, session.tls !== undefined);
  }

  /** Ends idle connections that no mail may go over any more, or while one before their host may be tried. */
  #leaveFallback(): void {
    if (this.#idle.length === 0) return;
    const mayConnect = !this.#isFull && this.#startable(1) > 0;
    const first = mayConnect ? this.#hosts.next(this.#nowMs)?.preference : undefined;
    const isBehind = ({ host }: Peer): boolean => !host.isByMx && host.preference > (first ?? Infinity);
    const left = this.#idle.filter((idle) => isBehind(idle) || !this.#mayTake(idle));
    for (const peer of left) this.#retire(peer);
  }

  #tlsOf(host: SiteHost): Pick<SessionOptions, 'tls' | 'lostTls'> {
    const tls = this.#routeTls(host);
    const lostTls = tls?.level === 'may' ? this.#lostTlsOf(host) : undefined;
    return { tls: lostTls === undefined ? tls : undefined, lostTls };
  }

  #lostTlsOf({ name, port }: SiteHost): string | undefined {
    return this.#ports.tlsFailed.known(name, port, this.#nowMs)?.why;
  }

  /** Of several hosts each shows a certificate of its own. */
  #routeTls({ name, isByMx, isHere, terms: own }: SiteHost): NextHopTls | undefined {
    const { isBySts } = this.#site;
    const isRaised = !isByMx && !isHere && this.#hosts.isBound;
    const said = own === undefined ? this.#site.tls : own.tls;
    const tls = said ?? (isRaised ? ANY_TLS : undefined);
    if (tls === undefined) return undefined;
    if (isBySts && isByMx) return raisedBySts(tls, name);
    const terms = tls.terms.serverName !== '' ? tls.terms : { ...tls.terms, serverName: name };
    if (!isRaised || tls.level !== 'may') return { ...tls, terms };
    const why = isBySts ? BY_STS : 'a host before it has TLSA records, or may have';
    return { ...tls, terms, level: 'encrypt', why };
  }

  /** One finds out for all connections: what goes wrong then costs one message a round trip. */
  #mayBearFollowers(host: SiteHost): boolean {
    if (host.bearsFollowers) return true;
    return !host.isTrying && !this.#ports.followersOdd.has(host.name, host.port, this.#nowMs);
  }

  /** Whether it should not begin `more` transactions. */
  #isWornOut(peer: Peer, more = 1): boolean {
    const { messagesPerConnectionMax, connectionLifeMs } = this.#options;
    const isUsedUp = peer.session.transactions + more > messagesPerConnectionMax;
    if (isUsedUp || this.#nowMs - peer.openedMs >= connectionLifeMs) return true;
    return peer.lostTls !== undefined && this.#lostTlsOf(peer.host) === undefined;
  }

  /** Ends an idle connection. */
  #retire(peer: Peer): void {
    const at = this.#idle.indexOf(peer);
    if (at >= 0) this.#idle.splice(at, 1);
    peer.session.quit();
  }
}

/** Of a reply, or of trouble that is none. */
export function codeOf(why: RecipientResult | undefined): string {
  if (why === undefined) return '';
  return why.code === 0 ? why.enhanced : String(why.code);
}

function policiesOf({ dane, isBySts }: Site): readonly string[] {
  const domain = dane?.domain ?? '';
  const daneText = domain === '' ? 'dane' : `dane of ${domain}`;
  return [...(dane === undefined ? [] : [daneText]), ...(isBySts ? ['sts'] : [])];
}

function sourceField({ source }: Peer): { readonly source?: string } {
  return source === '' ? {} : { source };
}

/** Reports go where TLS is not asked for: they would bring about reports on themselves. */
function isReported({ queue }: Lane): boolean {
  return queue.route.nextHop.tlsNeed !== 'optional';
}

function domainOf({ queue }: Lane): string {
  return queue.route.nextHop.host;
}

function watched({ host, address, ownAddress, isByDane, tls }: Peer): WatchedSession {
  const dane = isByDane ? tls?.terms.dane ?? { records: [], names: [host.name] } : undefined;
  return { mxHost: host.name, address, source: ownAddress, dane };
}

function addressName({ name }: SiteHost, address: string): string {
  return `${name}[${address}]`;
}

/** "host[address]:port"; the address where the route names one. */
function relayName(host: string, port: number): string {
  const isNumber = (part: string): boolean => part !== '' && Number.isInteger(Number(part));
  const isAddress = host.includes(':') || host.split('.').every(isNumber);
  return isAddress ? relayText(host, host, port) : addressText(host, port);
}
