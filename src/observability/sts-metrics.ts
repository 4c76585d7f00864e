/**
 * Metrics of MTA-STS (gateway/outbound/sts), and of reports on TLS (gateway/outbound/tls-reports): policies
 * fetched, mail that could not go by one, reports sent. Totals only: domains are strangers' and many.
 */
import type { Series } from './series.js';

export class StsMetrics {
  /** Kept now. */
  policies = 0;
  /** Times that mail was kept back by a policy, and the policy looked for anew. */
  failures = 0;
  readonly #fetches = new Map<string, number>();
  readonly #reports = new Map<string, number>();

  /** `result` is a word of ours. */
  fetched(result: string): void {
    this.#fetches.set(result, (this.#fetches.get(result) ?? 0) + 1);
  }

  /** `how` is a word of ours. */
  reported(how: string): void {
    this.#reports.set(how, (this.#reports.get(how) ?? 0) + 1);
  }

  get reports(): ReadonlyMap<string, number> {
    return this.#reports;
  }

  get fetches(): ReadonlyMap<string, number> {
    return this.#fetches;
  }
}

export function exportSts(series: Series, metrics: StsMetrics): void {
  series.gauge('mta_sts_policies', 'MTA-STS policies of domains that are kept', () => metrics.policies);
  series.counter('mta_sts_failures', 'Times that mail could not go by the MTA-STS policy of its domain',
    () => metrics.failures);
  series.counters('mta_sts_fetches', 'Fetches of MTA-STS policies by what came of them', ['result'], () =>
    [...metrics.fetches].map(([result, count]) => [{ result }, count]));
  series.counters('tls_reports', 'Reports on TLS (RFC 8460) by how they were sent', ['how'], () =>
    [...metrics.reports].map(([how, count]) => [{ how }, count]));
}
