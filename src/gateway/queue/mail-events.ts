/**
 * What happens to mail in the queues, told to the mail log and the metrics (observability implements it).
 * Plain arguments: nothing is built for a listener that is off.
 */
import type { SecuredFacts } from '../../platform/transport.js';
import type { ReportKind } from './reports/report-writer.js';
import type { MailQueue } from './mail-queue.js';
import type { Envelope, Outage, RecipientResult } from '../mail-types.js';

export type OutcomeEvent = 'delivered' | 'deferred' | 'bounced' | 'expired';

export interface MailEvents {
  /**
   * One recipient's attempt, or expiry, has ended so. `reversePath`: as the next hop was told it. `last`:
   * what was said before of one that expires, else ''. `tls`: of the connection; undefined in clear.
   * `source`: our address there, where it was chosen; else ''.
   */
  outcome(
    event: OutcomeEvent, queue: MailQueue, envelope: Envelope, recipient: number, result: RecipientResult,
    contentBytes: number, relay: string, attempt: number, setupMs: number, transmitMs: number,
    reversePath: string, last: string, tls: SecuredFacts | undefined, source: string,
  ): void;
  /** No attempt: one waits for a next hop that does not answer. Told once of each message. */
  waits(
    queue: MailQueue, envelope: Envelope, recipient: number, contentBytes: number, outage: Outage,
  ): void;
  /** A recipient ended without a report, and why none is due (G2). */
  ended(queue: MailQueue, envelope: Envelope, recipient: number, reason: string, text: string): void;
  /** The next hop of a queue could not be reached, from our address `source`; its mail waits, in order. */
  unreachable(queue: MailQueue, enhanced: string, text: string, source: string): void;
  /** A final dot was sent and no reply came: what is tried again may arrive twice. */
  dotUnanswered(queue: MailQueue, relay: string): void;
  /** A report was stored for the sender of `envelope`; `why`: what was said of the first that it is about. */
  reported(queue: MailQueue, envelope: Envelope, reportId: number, kind: ReportKind, why: string): void;
  /** A message was committed: time from its last byte to the commit. */
  committed(commitMs: number): void;
  /** A message was answered 4xx because it could not be committed in time, or not at all. */
  refused(withReply: boolean): void;
}
