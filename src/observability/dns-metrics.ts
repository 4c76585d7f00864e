/**
 * Metrics of resolvers (gateway/daemon/resolver-watch.ts). Resolvers are configured, results are words of
 * ours.
 */
import type { Series } from './series.js';

/** `refused`: a code such as SERVFAIL, or what is no answer. `silent`: nothing came. */
export type DnsResult = 'answer' | 'refused' | 'silent';

export class DnsMetrics {
  readonly #questions = new Map<string, Record<DnsResult, number>>();

  asked(resolver: string, result: DnsResult): void {
    const counts = this.#questions.get(resolver) ?? { answer: 0, refused: 0, silent: 0 };
    this.#questions.set(resolver, counts);
    counts[result] += 1;
  }

  get questions(): ReadonlyMap<string, Readonly<Record<DnsResult, number>>> {
    return this.#questions;
  }
}

export function exportDns(series: Series, metrics: DnsMetrics): void {
  const help = 'Questions to resolvers of DNS, each try by itself, by what came of them';
  series.counters('dns_questions', help, ['resolver', 'result'], () =>
    [...metrics.questions].flatMap(([resolver, counts]) =>
      Object.entries(counts).map(([result, count]) => [{ resolver, result }, count] as const)));
}
