/**
 * The way of one queue whose mail goes where the DNS says: from the name of its domain to the connections of
 * its site (connection-pool.ts).
 *
 *   state     what it is                                                        next
 *   UNASKED   nothing was to be sent yet, or not since a reload                 mail ─► ASKING
 *   ASKING    the DNS is asked; mail waits                                      hosts ─► ROUTED, else NO_WAY
 *   ROUTED    its queue stands in the pool of its site. While mail is there     other hosts ─► ROUTED there;
 *             the DNS is asked every FRESH_MS, from what the resolver keeps     none for good ─► NO_WAY
 *   NO_WAY    failed: its mail ends, so many messages a tick. Deferred: one     after a while ─► ASKING
 *             message is given back with the reason, the rest waits, and the
 *             DNS is asked again after a wait that doubles up to a minute. Not asked, for
 *             want of room: the same, a second later, and nobody is told of it; also where
 *             that is so of the policy of the domain, and none is kept
 *
 * A way that is known is kept while the DNS does not answer, but not when the policy of the domain (MTA-STS)
 * leaves no host of it: that is asked for once its hosts are known. A reload leads from each state to
 * UNASKED: resolvers and policies may be others, and by what was known mail could go in clear, or end. The
 * pool it was in is kept until the DNS has answered, for since when its hosts are down. Owns no connection.
 */
import { invariant } from '../../base/invariant.js';
import type { Clock, EventLog, Random } from '../../platform/ports.js';
import { termsText } from '../queue/next-hop.js';
import { DEFERRED } from '../mail-types.js';
import type { DeliveryQueue, NextHop, Outage, RecipientResult } from '../mail-types.js';
import { codeOf } from './connection-pool.js';
import type { ConnectionPool, NextHopState } from './connection-pool.js';
import type { Lane, LaneHome } from './lane.js';
import type { MxLookup } from './mx-lookup.js';
import { isTlsJudged } from './pure/host-tlsa.js';
import type { HostsWay, MailWay } from './pure/mail-exchangers.js';
import { provedWay, underPolicy, wayUnasked } from './pure/sts-policy.js';
import type { PolicySource } from './sts/sts-policies.js';
import type { BackoffOptions } from './site-hosts.js';
import { backoffMs } from './site-hosts.js';

/** The resolver keeps answers by their TTL: this only bounds how often it is asked for them. */
const FRESH_MS = 30_000;
/** A domain that takes no mail may do so later. */
const FAILED_MS = 60_000;
/** The DNS had no room for its question. */
const UNASKED_MS = 1_000;
/** Messages of a domain without a way that end in one go: each may cost a report. */
const ENDED_MAX = 100;

const ASKING_THE_DNS = 'asking the DNS for the way';

const S = { UNASKED: 0, ASKING: 1, ROUTED: 2, NO_WAY: 3 } as const;
type MxState = (typeof S)[keyof typeof S];
const NEXT: readonly (readonly MxState[])[] = [
  [S.ASKING, S.UNASKED], [S.ROUTED, S.NO_WAY, S.UNASKED], [S.ROUTED, S.NO_WAY, S.UNASKED],
  [S.ASKING, S.UNASKED],
];

export interface MxPorts {
  readonly lookup: MxLookup;
  /** Undefined: no domain's policy is asked for. */
  readonly policies: PolicySource | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: EventLog;
  poolOf(way: HostsWay, hop: NextHop): ConnectionPool;
  /** The hosts that its mail goes to are known, or other ones, and nothing was begun there. */
  onWay(queue: DeliveryQueue, hosts: readonly string[]): void;
}

export class MxDestination implements LaneHome {
  readonly #hop: NextHop;
  readonly #lane: Lane;
  #options: BackoffOptions;
  readonly #ports: MxPorts;
  #state: MxState = S.UNASKED;
  #nowMs: number;
  #askedMs = -Infinity;
  /** Whose answer is awaited. */
  #question: object | undefined;
  #pool: ConnectionPool | undefined;
  /** Before a reload, until its way is known anew. */
  #poolBefore: ConnectionPool | undefined;
  #why: RecipientResult | undefined;
  #againMs = 0;
  #failures = 0;
  #downSinceWallMs: number | undefined;
  #isEnding = false;
  #isLeft = false;

  constructor(hop: NextHop, lane: Lane, options: BackoffOptions, ports: MxPorts, nowMs: number) {
    this.#hop = hop;
    this.#lane = lane;
    this.#options = options;
    this.#ports = ports;
    this.#nowMs = nowMs;
    lane.home = this;
  }

  /** LaneHome, and whenever its queue has something to send. */
  mayStart(): void {
    if (this.#isLeft || this.#lane.startable === 0) return;
    if (this.#state === S.ROUTED) {
      this.#refresh();
      this.#start();
    } else if (this.#state === S.UNASKED || (this.#state === S.NO_WAY && this.#nowMs >= this.#againMs)) {
      this.#transition(S.ASKING);
      this.#ask();
    } else if (this.#state === S.NO_WAY) {
      this.#endSome();
    }
  }

  /** Nothing more begins, or ends, by what is known of its way. */
  renew(options: BackoffOptions): void {
    this.#options = options;
    this.#question = undefined;
    this.#againMs = 0;
    if (this.#pool !== undefined) this.#keepPool(this.#pool);
    this.#leavePool();
    this.#transition(S.UNASKED);
  }

  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#state !== S.ROUTED) this.mayStart();
    else if (!this.#isLeft && this.#lane.queue.readyCount > 0) this.#refresh();
  }

  /** Whoever failed is tried now: its hosts, or the DNS for the way to them. */
  hasten(): void {
    this.#againMs = 0;
    if (this.#state === S.ROUTED) this.#ask();
    this.#pool?.hasten();
    this.mayStart();
  }

  /** Nothing more is sent. What is in flight goes on where it is. */
  stop(): void {
    this.#isLeft = true;
  }

  /** Its queue goes another way, or there is none any more. */
  leave(): void {
    this.stop();
    this.#leavePool();
    this.#keepPool(undefined);
  }

  #keepPool(pool: ConnectionPool | undefined): void {
    this.#poolBefore?.awaitedBy.delete(this);
    this.#poolBefore = pool;
    pool?.awaitedBy.add(this);
  }

  #leavePool(): void {
    this.#pool?.remove(this.#lane);
    this.#pool = undefined;
    this.#lane.home = this;
  }

  /** There is no way to it, or none of the hosts there can be reached. */
  get isDown(): boolean {
    return this.#downSinceWallMs !== undefined || (this.#pool?.isDown ?? false);
  }

  /** Why there is none, or why none can be reached. */
  outage(): Outage | undefined {
    const why = this.#downSinceWallMs === undefined ? undefined : this.#why;
    return why === undefined ? this.#pool?.outage() : { relay: this.#hop.host, why };
  }

  /** For status; undefined while there is a way, or nothing was asked. */
  trouble(): NextHopState | undefined {
    return this.#downSinceWallMs === undefined ? undefined : this.#unrouted();
  }

  #unrouted(): NextHopState {
    const forMs = this.#nowMs - this.#askedMs;
    const { host: relay } = this.#hop;
    return {
      relay: `${relay}${termsText(this.#hop)}`, connections: 0, idle: 0, failures: this.#failures,
      downSinceWallMs: this.#downSinceWallMs, waiting: this.#lane.queue.readyCount,
      bytes: this.#lane.queue.bytes, lastCode: codeOf(this.#why),
      isByMx: true, isDenied: false,
      connecting: this.#state === S.ASKING ? { relay, forMs, doing: ASKING_THE_DNS } : undefined,
      fullBy: undefined,
      retryInMs: Math.max(0, this.#againMs - this.#nowMs), lastError: this.#why?.text ?? '',
    };
  }

  /** Of the way, while there is none or it is asked for; else of its hosts. */
  state(): NextHopState | undefined {
    return this.trouble() ?? (this.#state === S.ASKING ? this.#unrouted() : this.#pool?.state());
  }

  #refresh(): void {
    if (this.#nowMs - this.#askedMs >= FRESH_MS) this.#ask();
  }

  #ask(): void {
    if (this.#question !== undefined) return;
    const question = {};
    this.#question = question;
    this.#askedMs = this.#nowMs;
    const onAnswer = (way: MailWay): void => {
      if (this.#question !== question) return;
      this.#question = undefined;
      this.#onAnswer(way);
    };
    const { lookup, policies } = this.#ports;
    const { host: domain } = this.#hop;
    lookup.ask(domain, (way) => {
      if (!('hosts' in way)) return onAnswer(way);
      if (policies === undefined || !isTlsJudged(this.#hop)) return onAnswer(this.#proved(way, false));
      policies.ask(domain, (policy, isUnknown, isUnasked) => {
        if (isUnasked === true) return onAnswer(wayUnasked(domain));
        const left = underPolicy(way, policy, domain);
        if (!('hosts' in left)) policies.onFailure(domain, 'hosts');
        onAnswer('hosts' in left ? this.#proved(left, isUnknown) : left);
      });
    });
  }

  #proved(way: HostsWay, isUnknown: boolean): MailWay {
    return this.#hop.tlsNeed === 'required' ? provedWay(way, this.#hop.host, isUnknown) : way;
  }

  #onAnswer(way: MailWay): void {
    if (this.#isLeft) return;
    if ('hosts' in way) this.#onHosts(way);
    else if (way.isUnasked === true) this.#onUnasked();
    else if (way.why.status !== DEFERRED || way.isVerdict === true || this.#state !== S.ROUTED) {
      this.#onNone(way.why);
    }
  }

  #onHosts(way: HostsWay): void {
    if (this.#failures > 0) {
      this.#ports.log.info('nexthop', 'the way to a domain is known again', { domain: this.#hop.host });
    }
    this.#failures = 0;
    this.#downSinceWallMs = undefined;
    const pool = this.#ports.poolOf(way, this.#hop);
    // Without a way it has no pool.
    if (pool !== this.#pool) {
      this.#transition(S.ROUTED);
      this.#pool?.remove(this.#lane);
      this.#pool = pool;
      this.#ports.onWay(this.#lane.queue, pool.hostNames);
      pool.add(this.#lane);
    }
    this.#keepPool(undefined);
    this.#start();
  }

  #onUnasked(): void {
    if (this.#state === S.ROUTED) return;
    this.#transition(S.NO_WAY);
    this.#againMs = this.#nowMs + UNASKED_MS;
    // What the DNS said of it before is out of date: no mail ends by that.
    if (this.#why?.status !== DEFERRED) this.#why = undefined;
  }

  #onNone(why: RecipientResult): void {
    this.#leavePool();
    this.#why = why;
    this.#transition(S.NO_WAY);
    if (why.status !== DEFERRED) {
      this.#keepPool(undefined);
      this.#failures = 0;
      this.#downSinceWallMs = undefined;
      this.#againMs = this.#nowMs + FAILED_MS;
      this.#endSome();
      return;
    }
    this.#againMs = this.#nowMs + backoffMs(this.#options, this.#failures, this.#ports.random);
    this.#failures++;
    this.#downSinceWallMs ??= this.#ports.clock.wallMs();
    const { host: domain } = this.#hop;
    // Strangers' domains are many: each is told once.
    const level = this.#failures === 1 ? 'warn' : 'debug';
    this.#ports.log[level]('nexthop', 'no way to a domain', {
      domain, failures: this.#failures, reply: why.text,
    });
    const delivery = this.#lane.take();
    if (delivery !== undefined) this.#lane.settleAll(delivery, domain, why, 0);
  }

  /** It is known that nobody takes mail for the domain. */
  #endSome(): void {
    const why = this.#why;
    if (this.#isEnding || why === undefined || why.status === DEFERRED) return;
    this.#isEnding = true;
    for (let ended = 0; ended < ENDED_MAX && this.#lane.startable > 0; ended++) {
      const delivery = this.#lane.take();
      if (delivery === undefined) break;
      this.#lane.settleAll(delivery, '', why, 0);
    }
    this.#isEnding = false;
  }

  #start(): void {
    this.#pool?.mayStart(this.#lane);
    this.#pool?.pump();
  }

  #transition(to: MxState): void {
    invariant(NEXT[this.#state]?.includes(to) === true, `a way by MX goes from ${this.#state} to ${to}`);
    this.#state = to;
  }
}
