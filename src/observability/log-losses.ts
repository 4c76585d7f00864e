/** What became of the lines of the log (platform/node/log-destination.ts), for status and metrics. */
import type { LogAnswer } from '../admin-api/pages.js';
import type { LogLosses } from '../platform/ports.js';
import type { Series } from './series.js';

export function logAnswerOf({ lost, lostWallMs, failing }: LogLosses): LogAnswer {
  const lost_at = lostWallMs === undefined ? null : Math.floor(lostWallMs / 1000);
  return { lost_lines: lost, lost_at, failing };
}

/** `losses`: undefined when there is no log. */
export function exportLogLosses(series: Series, losses: () => LogAnswer | undefined): void {
  const help = 'Lines of the log that were lost: too many waited to be written, or nobody reads';
  series.counter('log_lines_lost', help, () => losses()?.lost_lines ?? 0);
  const failing = '1 while the log can not be written, as on a full disk';
  series.gauge('log_failing', failing, () => ((losses()?.failing ?? '') === '' ? 0 : 1));
}
