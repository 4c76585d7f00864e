/**
 * What comes back to us about mail that went out: reports to return addresses, and feedback reports
 * (RFC 5965). Types, and who is told; on the path of a message this is beside its recipients:
 *
 *   RCPT ─► return-paths.ts: one of these? ─► the transaction ─► submitted ─► report-line.ts keeps a copy
 *        250 ─► node/report-thread.ts reads the copy ─► ReturnRecord: a line of the log, a count
 *
 * The mail itself goes on to `to` as any other, or ends here where that is ''.
 */
import type { ReturnToken } from '../../base/return-addresses.js';
import type { Feedback, StatusOfRecipient } from './report-content.js';

/** A recipient that is an address for what comes back. */
export type CameBack =
  | { readonly kind: 'returned'; readonly route: string; readonly token: ReturnToken; readonly to: string }
  | { readonly kind: 'feedback'; readonly to: string };

export interface FeedbackOptions {
  /** Feedback loops send there. */
  readonly address: string;
  /** '' nobody: when it is counted the mail has done its work. */
  readonly forwardTo: string;
}

/** Which message it was, where a return address in the report says so. */
export interface MadeHere {
  readonly route: string;
  readonly token: ReturnToken;
}

/** What came of one. `reportId`: of the mail that brought it. */
export interface ReturnRecord {
  /** `said`: of the recipient that it is about; undefined: it is no such report, or was not read. */
  returned(
    reportId: number, made: MadeHere, said: StatusOfRecipient | undefined, resultClass: ResultClass,
  ): void;
  feedback(reportId: number, feedback: Feedback | undefined, made: MadeHere | undefined): void;
  /** Why some were not read. */
  unread(reportId: number, why: UnreadCause): void;
}

/** By the status code (RFC 3463 2); unknown: no report that programs read; unread: nobody has read it. */
export type ResultClass = '2' | '4' | '5' | 'unknown' | 'unread';

/** busy: too many waited, or memory was short; failed: the thread ended on it; late: it took too long. */
export type UnreadCause = 'busy' | 'failed' | 'late';

/** For the session (gateway/inbound): keeps what is needed of a message until it is known to be committed. */
export interface ReturnReading {
  /** `chunks` are used again after the call. */
  keep(reportId: number, came: readonly CameBack[], chunks: readonly Uint8Array[]): KeptReport;
}

export interface KeptReport {
  /** Called once: whether the client has its 250. */
  settled(isCommitted: boolean): void;
}
