/**
 * Metrics of where messages came from (gateway/inbound/sender-checks): what SPF, DKIM and DMARC said of
 * those that were checked, and how long that took. Labels are words of RFC 8601; of several signatures the
 * best counts.
 */
import { ExportedHistogram, FixedHistogram } from './fixed-histogram.js';
import type { Series } from './series.js';

const SECONDS_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

type AuthenticationMethod = 'spf' | 'dkim' | 'dmarc';

export class AuthenticationMetrics {
  /** From the end of a message to what is said of it. */
  readonly seconds = new FixedHistogram(SECONDS_BUCKETS);
  /** Fields that said to be ours. */
  renamed = 0;
  readonly #results = new Map<string, { method: AuthenticationMethod; result: string; count: number }>();

  checked(spf: string, dkim: string, dmarc: string, ms: number): void {
    this.#count('spf', spf);
    this.#count('dkim', dkim);
    this.#count('dmarc', dmarc);
    this.seconds.observe(ms / 1000);
  }

  get results(): readonly { method: AuthenticationMethod; result: string; count: number }[] {
    return [...this.#results.values()];
  }

  #count(method: AuthenticationMethod, result: string): void {
    const key = `${method} ${result}`;
    const counted = this.#results.get(key) ?? { method, result, count: 0 };
    counted.count += 1;
    this.#results.set(key, counted);
  }
}

export function exportAuthentication(series: Series, metrics: AuthenticationMetrics): void {
  const what = 'Messages that were checked, by method and what it said';
  series.counters('authentication_results', what, ['method', 'result'], () =>
    metrics.results.map(({ method, result, count }) => [{ method, result }, count]));
  const renamed = 'Authentication-Results fields of strangers with our authserv-id';
  series.counter('authentication_results_renamed', renamed, () => metrics.renamed);
  const help = 'A message that has come until it is checked';
  new ExportedHistogram(series.registry, 'twinpost_authentication_seconds', help, metrics.seconds);
}
