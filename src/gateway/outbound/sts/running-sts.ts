/**
 * MTA-STS of a running gateway: policies (sts-policies.ts) with real HTTPS, and the counters around them. It
 * may be off (`delivery.mx.mta_sts`): then no domain has a policy, and what is kept stays as it is.
 */
import type { StsMetrics } from '../../../observability/sts-metrics.js';
import type { HttpsClient } from '../../../platform/node/https-client.js';
import type { Clock, EventLog } from '../../../platform/ports.js';
import type { Resolver } from '../../../platform/resolver.js';
import type { MxLookup } from '../mx-lookup.js';
import type { FetchedPolicy } from './policy-journal.js';
import { StsPolicies } from './sts-policies.js';
import type {
  ExplainedPolicies, PolicySource, PolicyTold, StsFailure, StsFetchResult,
} from './sts-policies.js';

export interface RunningStsPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly resolver: Resolver;
  readonly lookup: MxLookup;
  readonly metrics: StsMetrics;
  readonly https: HttpsClient;
}

/** Who reports on it (tls-reports/tls-tally.ts). */
export interface StsWatch {
  onFetched(domain: string, result: StsFetchResult): void;
  onUnnamed(domain: string): void;
}

export class RunningSts implements PolicySource, ExplainedPolicies {
  readonly #policies: StsPolicies;
  readonly #metrics: StsMetrics;
  /** Undefined: nobody. */
  watch: StsWatch | undefined;
  /** Only once it is loaded. */
  isOn = false;
  #isLoaded = false;

  constructor(stateDir: string | undefined, ports: RunningStsPorts) {
    const { clock, log, resolver, lookup, metrics, https } = ports;
    this.#metrics = metrics;
    this.#policies = new StsPolicies(stateDir, {
      clock, log, resolver, https, lookup,
      onFetched: (domain, result) => {
        this.watch?.onFetched(domain, result);
        metrics.fetched(result);
        metrics.policies = this.#policies.count;
      },
    });
  }

  /** Before mail leaves: what is kept from before. What can't be read is tried again by the next call. */
  async load(): Promise<void> {
    if (this.#isLoaded) return;
    this.#isLoaded = await this.#policies.load();
    this.#metrics.policies = this.#policies.count;
  }

  ask(domain: string, done: PolicyTold): void {
    if (this.isOn) this.#policies.ask(domain, done);
    else done(undefined, false);
  }

  knows(domain: string): boolean {
    return this.isOn && this.#policies.knows(domain);
  }

  kept(domain: string): FetchedPolicy | undefined {
    return this.isOn ? this.#policies.kept(domain) : undefined;
  }

  failureOf(domain: string): StsFailure | undefined {
    return this.#policies.failureOf(domain);
  }

  onFailure(domain: string, what: 'hosts' | 'tls'): void {
    if (!this.isOn) return;
    if (what === 'hosts') this.watch?.onUnnamed(domain);
    this.#metrics.failures += 1;
    this.#policies.onFailure(domain);
  }

  hasten(domain: string): void {
    if (this.isOn) this.#policies.hasten(domain);
  }

  tick(): void {
    if (!this.isOn) return;
    this.#policies.tick();
    this.#metrics.policies = this.#policies.count;
  }

  close(): Promise<void> {
    return this.#policies.flushed();
  }
}
