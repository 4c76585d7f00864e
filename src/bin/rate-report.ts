/** The message by which workers tell one another what their clients did (gateway/inbound/limits/rate-limits.ts). */
import type { RateReport } from '../gateway/inbound/limits/rate-limits.js';

export interface RateMessage {
  readonly rates: RateReport;
}

/** Workers are of one build, and nobody else has this channel. */
export function isRateReport(message: unknown): message is RateMessage {
  return typeof message === 'object' && message !== null && 'rates' in message;
}
