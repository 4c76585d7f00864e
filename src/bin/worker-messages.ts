/**
 * What the upper process and the workers of a gateway tell one another over node:cluster's channel, beside
 * that a worker runs. All are of one build, and nobody else has this channel.
 *
 *   worker ─ report ─► upper process ─► the other workers    what clients did (inbound/limits/rate-limits.ts)
 *                                                            and have open (inbound/limits/client-counts.ts)
 *   worker ─ report ─► upper process ─► the first worker     sessions with TLS (outbound/tls-reports);
 *                                                            and back, that it has them
 *   upper process ─ tickets ─► each worker                   keys of TLS sessions, base64
 *   both ways ─ reload                                       another configuration (worker-reloads.ts)
 */
import { randomBytes } from 'node:crypto';
import type { Order } from '../admin-api/orders.js';
import type { WorkerReport } from '../gateway/daemon/gateway-options.js';
import type { ReloadOutcome } from '../platform/reloads.js';

export interface ReportMessage {
  readonly report: WorkerReport;
}

export interface TicketMessage {
  readonly tickets: string;
}

/** `hash`: of the configuration that is ready; `why`: none is. */
export interface PreparedMessage {
  readonly kind: 'prepared';
  readonly number: number;
  readonly why: string;
  readonly hash: string;
}

export type ReloadMessage =
  | PreparedMessage
  | { readonly kind: 'asked'; readonly number: number; readonly order: Order }
  | { readonly kind: 'prepare'; readonly number: number }
  | { readonly kind: 'use' | 'drop'; readonly number: number }
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'reloaded'; readonly number: number; readonly outcome: ReloadOutcome };

/** Tells a worker its number, from 1. */
export const NUMBER_VARIABLE = 'TWINPOST_WORKER';
/** What Node wants of them. */
const TICKET_KEY_BYTES = 48;
/** A session is resumed for hours, not for days: who gets at the keys gets at what they protected. */
const TICKETS_ROTATED_MS = 6 * 3_600_000;

export function isReportMessage(message: unknown): message is ReportMessage {
  return typeof message === 'object' && message !== null && 'report' in message;
}

/** A worker runs, and by which configuration. */
export function isStartedMessage(message: unknown): message is { readonly started: string } {
  return typeof message === 'object' && message !== null && 'started' in message;
}

export function isTicketMessage(message: unknown): message is TicketMessage {
  return typeof message === 'object' && message !== null && 'tickets' in message;
}

export function isReloadMessage(message: unknown): message is ReloadMessage {
  return typeof message === 'object' && message !== null && 'kind' in message;
}

/** Keys now, and new ones every few hours for the life of the process. */
export function rotateTickets(use: (keys: Buffer) => void): void {
  const rotate = (): void => { use(randomBytes(TICKET_KEY_BYTES)); };
  rotate();
  setInterval(rotate, TICKETS_ROTATED_MS).unref();
}
