/**
 * Metrics of what leaves: outcomes by source and route, and what TLS mail was delivered by. Routes and
 * sources are configured, all other labels are words of this program. A recipient adds to numbers that are
 * there already.
 */
import type { Series } from './series.js';

export type Outcome = 'delivered' | 'deferred' | 'bounced' | 'expired';

/** By source; '' where the system chose, or no connection was had. */
export type OutcomesOfRoute = Map<string, Record<Outcome, number>>;

export class OutboundMetrics {
  /** Recipients delivered: without TLS, by TLS with a certificate that is not right, and with one that is. */
  readonly delivered = { clear: 0, tls: 0, verified: 0, sts: 0, dane: 0 };
  /** Connections given up since a host did not do what its TLSA records say, or they could not be had. */
  daneFailures = 0;
  /** Connections given up since a next hop took a content too slowly. */
  slowEnds = 0;
  readonly #outcomes = new Map<string, OutcomesOfRoute>();

  /** To be kept by who counts. */
  ofRoute(route: string): OutcomesOfRoute {
    const known = this.#outcomes.get(route) ?? new Map<string, Record<Outcome, number>>();
    this.#outcomes.set(route, known);
    return known;
  }

  get outcomes(): ReadonlyMap<string, OutcomesOfRoute> {
    return this.#outcomes;
  }
}

export function countOutcome(of: OutcomesOfRoute, source: string, outcome: Outcome): void {
  let counts = of.get(source);
  if (counts === undefined) {
    counts = { delivered: 0, deferred: 0, bounced: 0, expired: 0 };
    of.set(source, counts);
  }
  counts[outcome] += 1;
}

export function exportOutbound(series: Series, metrics: OutboundMetrics): void {
  const outcomesHelp = 'Outcomes of recipients, by our address (sources) and route';
  series.counters('outcomes', outcomesHelp, ['source', 'route', 'outcome'], () =>
    [...metrics.outcomes].flatMap(([route, bySource]) =>
      [...bySource].flatMap(([source, counts]) =>
        Object.entries(counts).map(([outcome, count]) => [{ source, route, outcome }, count] as const))));
  const tlsHelp = 'Recipients delivered by what TLS they went by; verified: as the route asks, or better';
  series.counters('delivered_tls', tlsHelp, ['how'], () =>
    Object.entries(metrics.delivered).map(([how, count]) => [{ how }, count]));
  series.counter('dane_failures',
    'Connections to hosts that did not do what their TLSA records say, or whose records could not be had',
    () => metrics.daneFailures);
  series.counter('next_hops_slow',
    'Connections given up as the next hop took a content slower than delivery.min_data_rate',
    () => metrics.slowEnds);
}
