/**
 * Whether any resolver of DNS answers. A question that fails says little: the zone that it is about may be in
 * trouble, and a stranger may have chosen it. So when nothing at all was answered for DOUBT_MS, one is asked
 * that no stranger has in his hand: a name below our own host name that nobody has asked for before.
 *
 *   answered ─ a question fails ─► in doubt ─ DOUBT_MS ─► a check is asked ─ fails as well ─► away
 *      ▲                              │                        ▲                              │
 *      └───────── any answer ─────────┴────────────────────────┼────────── any answer ────────┘
 *                                                              └─ each CHECK_EVERY_MS until then
 *
 * That it does not exist is an answer, too. Counts of each resolver are in observability/dns-metrics.ts.
 */
import { addressText } from '../../base/address-text.js';
import type { DnsMetrics, DnsResult } from '../../observability/dns-metrics.js';
import type { DnsServer, DnsVerdict } from '../../platform/node/dns/dns-exchange.js';
import type { DnsWatch } from '../../platform/node/dns/dns-client.js';
import type { Clock, EventLog, Random } from '../../platform/ports.js';
import type { Resolver } from '../../platform/resolver.js';

const DOUBT_MS = 5_000;
const CHECK_EVERY_MS = 10_000;
const NONE_ANSWERS = 'no resolver answers: mail by MX waits, and so does what else the DNS says; see '
  + 'whether the resolvers of dns.resolvers, or of the system, run and are reached';

export interface ResolverWatchPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly random: Random;
  readonly metrics: DnsMetrics;
  readonly resolver: Resolver;
}

export class ResolverWatch implements DnsWatch {
  /** Its own name, which may change. */
  hostName: string;
  readonly #ports: ResolverWatchPorts;
  /** The first question that failed since the last answer. */
  #doubtSinceMs: number | undefined;
  #nextCheckMs = 0;
  /** Of the last one. */
  #why = '';
  #isAway = false;

  constructor(hostName: string, ports: ResolverWatchPorts) {
    this.hostName = hostName;
    this.#ports = ports;
  }

  /** Why no resolver answers; '' while one does. */
  get away(): string {
    return this.#isAway ? this.#why : '';
  }

  asked({ host, port }: DnsServer, verdict: DnsVerdict): void {
    const { clock, metrics } = this.#ports;
    const resolver = addressText(host, port);
    metrics.asked(resolver, resultOf(verdict));
    if (verdict.kind === 'answer') return this.#answered(resolver);
    this.#why = `${resolver}: ${verdict.why}`;
    if (this.#doubtSinceMs !== undefined) return;
    this.#doubtSinceMs = clock.nowMs();
    this.#nextCheckMs = this.#doubtSinceMs + DOUBT_MS;
  }

  tick(nowMs: number): void {
    const sinceMs = this.#doubtSinceMs;
    if (sinceMs === undefined || nowMs < this.#nextCheckMs) return;
    this.#nextCheckMs = nowMs + CHECK_EVERY_MS;
    const { random, resolver } = this.#ports;
    const unasked = Math.floor(random() * 0x1_0000_0000).toString(16);
    resolver.ask(`dns-check-${unasked}.${this.hostName}`, 'A', (answer) => {
      // Any answer, to this or to something else, has ended that doubt.
      const wasAsked = answer.kind !== 'failed' || answer.isUnasked !== true;
      if (wasAsked && this.#doubtSinceMs === sinceMs) this.#lost();
    });
  }

  #answered(resolver: string): void {
    this.#doubtSinceMs = undefined;
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#ports.log.info('dns', 'a resolver answers again', { resolver });
  }

  #lost(): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#ports.log.error('dns', NONE_ANSWERS, { why: this.#why });
  }
}

function resultOf(verdict: DnsVerdict): DnsResult {
  if (verdict.kind === 'answer') return 'answer';
  return verdict.isSilent === true ? 'silent' : 'refused';
}
