/**
 * What a sink can be asked to do and what it counts: plain data, filled by the command line, the bench and
 * tests. Behaviour is in sink/sink.ts.
 */
import type { VerifyReport } from './verify.js';

export interface SinkOptions {
  readonly host: string;
  /** 0 takes any free port; RunningSink.port says which. */
  readonly port: number;
  /** Speaks LMTP (RFC 2033): LHLO, and one reply a recipient after the final dot. */
  readonly lmtp?: boolean;
  /** PEM files of STARTTLS; without them it is not offered. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
  /** Waits so long before each reply to a final dot. Default 0. */
  readonly latencyMs?: number;
  /** Share (0 … 1) of messages answered 451 after the final dot. */
  readonly deferRate?: number;
  /** Share answered 550 after the final dot. */
  readonly rejectRate?: number;
  /** Share kept, after which the connection is cut without a reply (RFC 1047). */
  readonly cutAfterDot?: number;
  /** Seed of the three rates. Default 1. */
  readonly seed?: number;
  /** Keeps mail, byte for byte as received, as a Maildir in this folder. */
  readonly maildir?: string;
  /** Reads the marks of each message and keeps them for a report. */
  readonly verify?: boolean;
  /** Send log that the report compares with (load/send-log.ts); read when a report is asked for. */
  readonly sendLog?: string;
  /** How many messages may overtake one in a report: 0 = strict. Default 0. */
  readonly displacementMax?: number;
  /** Writes one line a message to this file (sink/arrivals.ts). Implies `verify`. */
  readonly arrivalLog?: string;
  /** Keeps the last messages (sink/inbox.ts) and a tally of marked ones (sink/tally.ts). */
  readonly inbox?: boolean;
  /** Address of GET /report, /counts, /inbox, /tally and /healthz; none by default. Port 0 takes any. */
  readonly admin?: { readonly host: string; readonly port: number };
  /** Bounds. */
  readonly messageBytesMax?: number;
  readonly connectionsMax?: number;
  /** Messages whose marks are kept; past it they are only counted and a report says so. */
  readonly recordsMax?: number;
}

export interface SinkCounts {
  messages: number;
  recipients: number;
  bytes: number;
  deferred: number;
  rejected: number;
  cut: number;
  /** Messages without marks, and reports (DSN). */
  unmarked: number;
  reports: number;
  /** Mail transactions that ended before their final dot. */
  unfinished: number;
  connections: number;
  connectionsOpen: number;
  /** Commands answered 5xx. */
  commandErrors: number;
}

export interface RunningSink {
  readonly port: number;
  /** 0 when there is no admin address. */
  readonly adminPort: number;
  readonly counts: Readonly<SinkCounts>;
  /** What is wrong so far, judged by the given send log, else that of the options, else by serials alone. */
  report(sendLog?: string): Promise<VerifyReport>;
  /** Stops listening, ends connections, flushes logs. */
  close(): Promise<void>;
}
