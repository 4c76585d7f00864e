/** MTA-STS of a running gateway: policies (sts-policies.ts) with real HTTPS, and the counters around them. */
import type { StsMetrics } from '../../../observability/sts-metrics.js';
import { HttpsClient } from '../../../platform/node/https-client.js';
import type { Clock, EventLog } from '../../../platform/ports.js';
import type { Resolver } from '../../../platform/resolver.js';
import { MxLookup } from '../mx-lookup.js';
import type { MxOptions } from '../mx-lookup.js';
import type { StsPolicy } from '../pure/sts-policy.js';
import { StsPolicies } from './sts-policies.js';
import type { PolicySource } from './sts-policies.js';

export interface RunningStsPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly resolver: Resolver;
  readonly metrics: StsMetrics;
}

export class RunningSts implements PolicySource {
  readonly #policies: StsPolicies;
  readonly #https = new HttpsClient();
  readonly #metrics: StsMetrics;

  constructor(stateDir: string | undefined, mx: MxOptions, ports: RunningStsPorts) {
    const { clock, log, resolver, metrics } = ports;
    this.#metrics = metrics;
    this.#policies = new StsPolicies(stateDir, {
      clock, log, resolver, https: this.#https, lookup: new MxLookup(mx, resolver),
      onFetched: (_domain, result) => {
        metrics.fetched(result);
        metrics.policies = this.#policies.count;
      },
    });
  }

  /** Before mail leaves: what is kept from before. */
  async load(): Promise<void> {
    await this.#policies.load();
    this.#metrics.policies = this.#policies.count;
  }

  ask(domain: string, done: (policy: StsPolicy | undefined) => void): void {
    this.#policies.ask(domain, done);
  }

  onFailure(domain: string): void {
    this.#metrics.failures += 1;
    this.#policies.onFailure(domain);
  }

  tick(): void {
    this.#policies.tick();
    this.#metrics.policies = this.#policies.count;
  }

  async close(): Promise<void> {
    this.#https.close();
    await this.#policies.flushed();
  }
}
