/**
 * Takes due mail from the queues and hands it to next hops: the sending side of a gateway.
 *
 *   queue ─onReady─► dispatcher ─lane of the queue─► connection pool of the next hop ─► session ─► socket
 *                               └─ by MX ─► mx-destination.ts ─┘ (once its hosts are known)
 *     ▲                                                                                    │
 *     └──────────────── settle, exactly once for each delivery taken ◄─────────────────────┘
 *
 * Owns the lanes, the pools and the one timer of outbound: a coarse tick for all timeouts. Node runs timers
 * before it reads sockets, so the tick looks at timeouts only after one full poll (setImmediate), and time
 * during which the process stood still does not count: the tick brings session time, which never jumps.
 * Not here: order and due times (gateway/queue), retries and reports (daemon/core.ts, gateway/bounce).
 */
import type { Clock, EventLog, Passwords, Random } from '../../platform/ports.js';
import type { Resolver } from '../../platform/resolver.js';
import type { MailTransport } from '../../platform/transport.js';
import { nextHopKey, termsKey } from '../queue/next-hop.js';
import type {
  Delivery, DeliveryQueue, DeliverySink, DeliverySource, NextHop, OtherHost, Outage,
} from '../mail-types.js';
import { ConnectionAccount } from './connection-account.js';
import type { AccountLimits } from './connection-account.js';
import { ConnectionPool } from './connection-pool.js';
import type { NextHopState, PoolOptions, PoolPorts, Site } from './connection-pool.js';
import { MxDestination } from './mx-destination.js';
import type { MxPorts } from './mx-destination.js';
import { MxLookup } from './mx-lookup.js';
import type { MxOptions } from './mx-lookup.js';
import { isTlsJudged } from './pure/host-tlsa.js';
import { siteKey } from './pure/mail-exchangers.js';
import type { HostsWay } from './pure/mail-exchangers.js';
import type { MailSource } from './pure/source-choice.js';
import { SiteHost } from './site-hosts.js';
import type { PolicySource } from './sts/sts-policies.js';
import type { TlsWatch } from './tls-reports/tls-tally.js';
import { Sources } from './sources.js';
import type { JudgedSource, SourceState } from './sources.js';
import { Lane } from './lane.js';
import type { InFlight } from './lane.js';
import { HostMemory } from './host-memory.js';
import type { LostTls } from './host-memory.js';
import { NO_TAP } from '../../smtp/session-tap.js';
import type { SessionTap } from '../../smtp/session-tap.js';
import { WriteBuffer } from '../../smtp/write-buffer.js';

const TICK_MS = 250;
/** A tick that comes later than this says that the process stood still: only this much counts. */
const TICK_COUNTS_MS_MAX = 2 * TICK_MS;
/** A queue without work keeps its lane this long; then a new one is made when it has work again. */
const LANE_IDLE_TICKS = 240;

export interface DispatcherOptions extends PoolOptions {
  /** To all next hops together. */
  readonly connectionsMax: number;
  readonly mx: MxOptions;
  /** Addresses that mail leaves from; none: as the system chooses. */
  readonly sources: readonly MailSource[];
}

/** What no configuration says. */
export const DISPATCHER_LIMITS = {
  backoffFirstMs: 1_000,
  backoffMaxMs: 60_000,
} as const satisfies Partial<DispatcherOptions>;

export interface DispatcherPorts {
  readonly source: DeliverySource;
  readonly transport: MailTransport;
  readonly resolver: Resolver;
  /** MTA-STS; undefined: no domain's policy counts. */
  readonly policies: PolicySource | undefined;
  /** Who counts sessions with hosts by MX; undefined: nobody. */
  readonly tlsWatch: TlsWatch | undefined;
  readonly passwords: Passwords;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: EventLog;
  /** Whether this process still owns the delivery's queue; asked right before each final dot (G5). */
  mayDot(delivery: Delivery): boolean;
  /** TLS with a next hop did not come up, and mail goes there in clear. */
  onTlsFallback(): void;
  onDaneFailed(): void;
  /** A next hop took a content too slowly, and was given up. */
  onSlow(): void;
  /** It is known which hosts take the mail of a queue by MX (rules over sites); undefined: nobody asks. */
  onWay?(queue: DeliveryQueue, hosts: readonly string[]): void;
  /** Told what sessions say while somebody follows them; undefined: nobody may. */
  readonly tap?: SessionTap;
}

interface LaneSeat {
  readonly lane: Lane;
  hop: NextHop;
  /** The pool that it stands in, or who finds it one. */
  place: ConnectionPool | MxDestination;
  idleTicks: number;
}

export class Dispatcher implements DeliverySink, InFlight {
  #options: DispatcherOptions;
  readonly #ports: DispatcherPorts;
  readonly #poolPorts: PoolPorts;
  readonly #mxPorts: MxPorts;
  readonly #sources: Sources;
  readonly #seats = new Map<DeliveryQueue, LaneSeat>();
  /** By relay: thousands of destinations may each have a next hop of their own. */
  readonly #pools = new Map<string, ConnectionPool>();
  readonly #buffer = new WriteBuffer();
  readonly #runTick = (): void => { this.#tick(); };
  #timer: NodeJS.Timeout | undefined;
  #lastTickMs: number;
  #sessionMs = 0;
  #isStopping = false;
  #stopped: Promise<void> | undefined;
  #onStopped: (() => void) | undefined;
  /** InFlight: deliveries taken and not settled. */
  count = 0;

  constructor(options: DispatcherOptions, ports: DispatcherPorts) {
    this.#options = options;
    this.#ports = ports;
    const source = ports.source;
    const lookup = new MxLookup(options.mx, ports.resolver);
    const { policies, clock, random, log } = ports;
    this.#sources = new Sources(options.sources, { resolver: ports.resolver, log });
    this.#mxPorts = {
      lookup, policies, clock, random, log, poolOf: (way, hop) => this.#poolOfHosts(way, hop),
      onWay: (queue, hosts) => { ports.onWay?.(queue, hosts); },
    };
    this.#poolPorts = {
      lookup,
      sources: this.#sources,
      policies,
      tlsWatch: ports.tlsWatch,
      connections: new ConnectionAccount(limitsOf(options), log),
      transport: ports.transport,
      clock,
      random,
      log,
      tlsFailed: new HostMemory(),
      followersOdd: new HostMemory(),
      badAddresses: new HostMemory(),
      slow: new HostMemory(),
      onTlsFallback: () => { ports.onTlsFallback(); },
      onDaneFailed: () => { ports.onDaneFailed(); },
      onSlow: () => { ports.onSlow(); },
      session: {
        buffer: this.#buffer,
        copyContent: (delivery, target, at, from, bytes) => {
          source.copyContent(delivery, target, at, from, bytes);
        },
        mayDot: (delivery) => ports.mayDot(delivery),
        secure: (clear, terms, handlers) => ports.transport.secure(clear, terms, handlers),
        password: (file) => ports.passwords.read(file),
        tap: ports.tap ?? NO_TAP,
      },
    };
    this.#lastTickMs = ports.clock.nowMs();
  }

  /** Starts the tick. onReady may come before or after. */
  start(): void {
    this.#lastTickMs = this.#ports.clock.nowMs();
    this.#sources.tick(this.#sessionMs);
    this.#timer = setInterval(() => { setImmediate(this.#runTick); }, TICK_MS);
  }

  /**
   * For connections from now on; those that are open keep their timeouts, and the address they come from.
   * Routes are other ones: nothing more begins the old way. The DNS is asked for everything anew.
   */
  renew(options: DispatcherOptions): void {
    this.#options = options;
    this.#ports.resolver.forgetAll?.();
    this.#poolPorts.lookup.renew(options.mx);
    this.#sources.renew(options.sources);
    this.#poolPorts.connections.renew(limitsOf(options));
    for (const pool of this.#pools.values()) pool.renew(options);
    for (const queue of this.#seats.keys()) {
      const { place } = this.#seatOf(queue);
      if (place instanceof MxDestination) place.renew(options);
    }
  }

  onReady(queue: DeliveryQueue): void {
    if (this.#isStopping) return;
    const seat = this.#seatOf(queue);
    seat.lane.isDry = false;
    seat.idleTicks = 0;
    seat.place.mayStart(seat.lane);
    if (seat.place instanceof ConnectionPool) seat.place.pump();
  }

  hasten(queue: DeliveryQueue): void {
    const { host, isByMx } = queue.route.nextHop;
    if (isByMx === true) {
      this.#mxPorts.lookup.forgetMissing(host);
      this.#mxPorts.policies?.hasten(host);
    }
    this.#seats.get(queue)?.place.hasten();
  }

  /** What is in flight ends where it is; nothing else here may speak of mail that is not ours any more. */
  forget(queue: DeliveryQueue): void {
    const seat = this.#seats.get(queue);
    if (seat === undefined) return;
    this.#seats.delete(queue);
    this.#leave(seat);
    seat.lane.endParts();
  }

  /**
   * Takes nothing more and resolves when nothing is in flight, after withinMs at the latest: what is then
   * before its final dot ends deferred, what is after it deferred with dotUnanswered.
   */
  stop(withinMs: number): Promise<void> {
    this.#stopped ??= this.#stop(withinMs);
    return this.#stopped;
  }

  #stop(withinMs: number): Promise<void> {
    this.#isStopping = true;
    return new Promise((resolve) => {
      const bound = setTimeout(() => { this.#abandon(); }, withinMs);
      this.#onStopped = () => {
        this.#onStopped = undefined;
        clearTimeout(bound);
        clearInterval(this.#timer);
        this.#abandon();
        resolve();
      };
      for (const { lane, place } of this.#seats.values()) {
        lane.endParts();
        if (place instanceof MxDestination) place.stop();
      }
      for (const pool of this.#pools.values()) pool.stop();
      this.onSettled();
    });
  }

  /** State of each next hop in use, for status. */
  nextHops(): NextHopState[] {
    const states = Array.from(this.#pools.values(), (pool) => pool.state());
    for (const { place } of this.#seats.values()) {
      const trouble = place instanceof MxDestination ? place.trouble() : undefined;
      if (trouble !== undefined) states.push(trouble);
    }
    return toldApart(states);
  }

  /** Why mail waits for a connection, whoever its next hop; '' while they are to be had. */
  get whyFull(): string {
    return this.#poolPorts.connections.whyFull;
  }

  /** No connection comes up to where its mail goes. */
  isDown(queue: DeliveryQueue): boolean {
    return this.#seats.get(queue)?.place.isDown ?? false;
  }

  outageOf(queue: DeliveryQueue): Outage | undefined {
    return this.#seats.get(queue)?.place.outage();
  }

  /** Of the one that mail of this queue goes to; undefined: there was none to be sent lately. */
  nextHopOf(queue: DeliveryQueue): NextHopState | undefined {
    return this.#seats.get(queue)?.place.state();
  }

  /** TLS with a host did not come up where it need not: mail goes there in clear; undefined: it does not. */
  lostTlsOf(host: string, port: number): LostTls | undefined {
    const known = this.#poolPorts.tlsFailed.known(host, port, this.#sessionMs);
    if (known === undefined) return undefined;
    return { why: known.why, untilWallMs: this.#ports.clock.wallMs() + known.untilMs - this.#sessionMs };
  }

  /** What is known of each address that mail leaves from, for status. */
  sources(): readonly SourceState[] {
    return this.#sources.states();
  }

  /** Of those of IPv6, what mail by MX goes by. */
  judgedSources(): readonly JudgedSource[] {
    return this.#sources.judged();
  }

  /** Bytes of contents that are under way to next hops, for the memory account. */
  get heldBytes(): number {
    return this.#buffer.heldBytes;
  }

  /** InFlight. */
  onSettled(): void {
    if (this.#isStopping && this.count === 0) this.#onStopped?.();
  }

  #abandon(): void {
    for (const pool of this.#pools.values()) pool.abandon();
  }

  #tick(): void {
    const nowMs = this.#ports.clock.nowMs();
    this.#sessionMs += Math.min(nowMs - this.#lastTickMs, TICK_COUNTS_MS_MAX);
    this.#lastTickMs = nowMs;
    this.#ports.policies?.tick();
    this.#sources.tick(this.#sessionMs);
    this.#poolPorts.connections.tick(this.#sessionMs);
    for (const pool of this.#pools.values()) pool.tick(this.#sessionMs);
    for (const [queue, seat] of this.#seats) {
      if (seat.place instanceof MxDestination) seat.place.tick(this.#sessionMs);
      seat.lane.tick();
      const isIdle = seat.lane.inFlightCount === 0 && seat.lane.waitingCount === 0;
      seat.idleTicks = isIdle ? seat.idleTicks + 1 : 0;
      if (seat.idleTicks < LANE_IDLE_TICKS) continue;
      this.#leave(seat);
      this.#seats.delete(queue);
    }
    for (const [key, pool] of this.#pools) if (pool.isUnused) this.#pools.delete(key);
  }

  #seatOf(queue: DeliveryQueue): LaneSeat {
    const hop = queue.route.nextHop;
    const seat = this.#seats.get(queue);
    if (seat === undefined) {
      const lane = new Lane(queue, this.#ports.source, this);
      const made: LaneSeat = { lane, hop, place: this.#placeOf(hop, lane), idleTicks: 0 };
      this.#seats.set(queue, made);
      return made;
    }
    // A new route: what is in flight ends where it began, the rest goes the new way.
    if (seat.hop !== hop && nextHopKey(seat.hop) !== nextHopKey(hop)) {
      this.#leave(seat);
      seat.place = this.#placeOf(hop, seat.lane);
    }
    seat.hop = hop;
    return seat;
  }

  #leave({ lane, place }: LaneSeat): void {
    if (place instanceof ConnectionPool) place.remove(lane);
    else place.leave();
  }

  #placeOf(hop: NextHop, lane: Lane): ConnectionPool | MxDestination {
    if (hop.isByMx === true) {
      return new MxDestination(hop, lane, this.#options, this.#mxPorts, this.#sessionMs);
    }
    const { protocol, host, port, tls, auth, sources, others = [], tlsNeed } = hop;
    const key = nextHopKey(hop);
    const pool = this.#pools.get(key) ?? this.#makePool({
      key, protocol, hosts: [new SiteHost(host, port, 0, false), ...others.map(siteHostOf)], tls,
      auth, sources, tlsNeed, dane: undefined, isBySts: false,
    });
    pool.add(lane);
    return pool;
  }

  #poolOfHosts({ hosts: named, isAuthentic, sts }: HostsWay, hop: NextHop): ConnectionPool {
    const { host: domain, port, tls, sources, others = [], tlsNeed } = hop;
    // A certificate by a trust anchor may be for the domain instead of the host (RFC 7672 3.2.2). Then others
    // may not share its connections: so that is taken of hosts of its own alone.
    const hasOwnHost = named.some(({ name }) => name.endsWith(`.${domain}`));
    const dane = isAuthentic && isTlsJudged(hop) ? { domain: hasOwnHost ? domain : '' } : undefined;
    const daneKey = dane === undefined ? '' : ` dane ${dane.domain}`;
    // No connection begun without the policy serves a domain that enforces one.
    const isBySts = sts === 'enforce';
    const tlsKey = `${termsKey(hop)}${daneKey}${isBySts ? ' sts' : ''}`;
    const key = `hosts ${String(port)}${tlsKey} ${siteKey(named)}`;
    const known = this.#pools.get(key);
    if (known !== undefined) return known;
    const hosts = named.map(({ name, preference, isUnnamed }) =>
      new SiteHost(name, port, preference, true, isUnnamed));
    return this.#makePool({
      key, protocol: 'smtp', hosts: [...hosts, ...others.map(siteHostOf)], tls, dane, sources,
      tlsNeed, isBySts, auth: undefined,
    });
  }

  #makePool(site: Site): ConnectionPool {
    const pool = new ConnectionPool(site, this.#options, this.#poolPorts, this.#sessionMs);
    this.#pools.set(site.key, pool);
    return pool;
  }
}

/** What their names do not tell apart has numbers: two series of the same labels would spoil all others. */
function toldApart(states: readonly NextHopState[]): NextHopState[] {
  const counts = new Map<string, number>();
  return states.map((state) => {
    const count = (counts.get(state.relay) ?? 0) + 1;
    counts.set(state.relay, count);
    return count === 1 ? state : { ...state, relay: `${state.relay} #${String(count)}` };
  });
}

function limitsOf({ connectionsMax, mx }: DispatcherOptions): AccountLimits {
  return { connectionsMax, ofAddressMax: mx.connectionsPerAddressMax };
}

function siteHostOf({ host, port, preference, terms }: OtherHost): SiteHost {
  return new SiteHost(host, port, preference, false, false, terms);
}
