/**
 * Metrics of signatures (gateway/dkim): what became of the messages of our own, and of reports. Totals only:
 * domains are as many as an operator has.
 */
import { ExportedHistogram, FixedHistogram } from './fixed-histogram.js';
import type { Series } from './series.js';

/**
 * `no-key`: none for the domain of its From. `from`: that is not plain, or not one. `not-theirs`: it is none
 * that its user may send from. `header`: too long, or not plainly one. These four go unsigned; `failed` and
 * `busy` were told to come later.
 */
export type DkimOutcome =
  'signed' | 'no-key' | 'from' | 'not-theirs' | 'header' | 'failed' | 'busy' | 'abandoned';

const SECONDS_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class DkimMetrics {
  /** A message handed to the signer until its signature. */
  readonly seconds = new FixedHistogram(SECONDS_BUCKETS);
  reportsSigned = 0;
  /** While a domain has a key, whichever that is. */
  reportsUnsigned = 0;
  readonly #messages = new Map<DkimOutcome, number>();

  message(outcome: DkimOutcome): void {
    this.#messages.set(outcome, (this.#messages.get(outcome) ?? 0) + 1);
  }

  get messages(): ReadonlyMap<DkimOutcome, number> {
    return this.#messages;
  }
}

export function exportDkim(series: Series, metrics: DkimMetrics): void {
  const what = 'Messages of our own by what became of their DKIM signature';
  series.counters('dkim_messages', what, ['result'], () =>
    [...metrics.messages].map(([result, count]) => [{ result }, count]));
  series.counters('dkim_reports', 'Reports while dkim has keys, signed or not', ['result'], () =>
    [[{ result: 'signed' }, metrics.reportsSigned], [{ result: 'unsigned' }, metrics.reportsUnsigned]]);
  const help = 'A message handed to the DKIM signer until it is signed';
  new ExportedHistogram(series.registry, 'twinpost_dkim_seconds', help, metrics.seconds);
}
