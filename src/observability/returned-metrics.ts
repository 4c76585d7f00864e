/**
 * Metrics of what comes back about mail that went out: reports by route and class, feedback by type, and what
 * was not read. Routes are configured, all other labels are words of this program.
 */
import type { Series } from './series.js';

type Counts = Map<string, number>;

export class ReturnedMetrics {
  /** By route, then class. */
  readonly returnedBy = new Map<string, Counts>();
  /** By route ('' of one that nothing made here shows to be true), then type. */
  readonly feedbackBy = new Map<string, Counts>();
  readonly unreadBy: Counts = new Map<string, number>();

  returned(route: string, resultClass: string): void {
    add(of(this.returnedBy, route), resultClass);
  }

  feedback(type: string, route: string): void {
    add(of(this.feedbackBy, route), type);
  }

  unread(why: string): void {
    add(this.unreadBy, why);
  }
}

export function exportReturned(series: Series, metrics: ReturnedMetrics): void {
  series.counters(
    'returned', 'Reports to return addresses (verp), by route and class of the status', ['route', 'class'],
    () => pairs(metrics.returnedBy, (route, word, count) => [{ route, class: word }, count] as const),
  );
  series.counters(
    'feedback', 'Feedback reports, by type; verified: of a message that went out here',
    ['type', 'verified', 'route'],
    () => pairs(metrics.feedbackBy, (route, type, count) =>
      [{ type, verified: route === '' ? 'no' : 'yes', route }, count] as const),
  );
  series.counters('returned_unread', 'Mail that came back and was not read, by cause', ['cause'], () =>
    [...metrics.unreadBy].map(([cause, count]) => [{ cause }, count] as const));
}

function pairs<T>(
  counts: ReadonlyMap<string, Counts>, sample: (outer: string, inner: string, count: number) => T,
): T[] {
  return [...counts].flatMap(([outer, words]) =>
    [...words].map(([inner, count]) => sample(outer, inner, count)));
}

function of(counts: Map<string, Counts>, key: string): Counts {
  const known = counts.get(key) ?? new Map<string, number>();
  counts.set(key, known);
  return known;
}

function add(counts: Counts, word: string): void {
  counts.set(word, (counts.get(word) ?? 0) + 1);
}
