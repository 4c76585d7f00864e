/** What a gateway's core is made of (core.ts): its plain options, and the outside world as it sees it. */
import type { TouchPages } from '../../base/segment-runs.js';
import type { LocalRulesFile } from '../orders/local-rules.js';
import type { Clock, Crc32, EventLog, Packer, ToAscii } from '../../platform/ports.js';
import type { ReadingOptions } from '../../recovery/readings.js';
import type { MirrorsOptions } from '../mirror/mirrors-options.js';
import type { AcceptanceOptions } from '../queue/acceptance.js';
import type { OwnPaths } from '../queue/handing-out.js';
import type { MailEvents } from '../queue/mail-events.js';
import type { MemoryOptions } from '../queue/memory-gauge.js';
import type { DelayReportOptions } from '../queue/reports/delay-reports.js';
import type { ReportInput, ReportSigner } from '../queue/reports/report-writer.js';
import type { FindReportWay, Router } from '../mail-types.js';
import type { OrphanOptions } from '../ownership/holdings.js';
import type { OwnershipRegister } from '../ownership/ownership-register.js';

export interface CoreOptions {
  readonly gatewayId: string;
  readonly incarnation: number;
  /** Partitions of this gateway. */
  readonly partitions: number;
  readonly queuesMax: number;
  readonly commitTimeoutMs: number;
  /** The most that retryDelayMs() says. */
  readonly longestRetryMs: number;
  readonly delayReports: DelayReportOptions;
  /** With a store missing at the start, the port opens after this all the same. */
  readonly firstWaitMs: number;
  /** At most: with a small memory limit segments are smaller. */
  readonly segmentBytes: number;
  readonly mirrors: MirrorsOptions;
  readonly acceptance: AcceptanceOptions;
  readonly memory: MemoryOptions;
  /**
   * Gateways that may take over one another's partitions, undefined: all that the register knows; and whether
   * this one does.
   */
  readonly group: readonly string[] | undefined;
  readonly rescue: boolean;
  readonly orphans: OrphanOptions;
  /** No store grants a longer lease. */
  readonly leaseMs: number;
  readonly reading: ReadingOptions;
}

/** Of the options what may change while it runs. */
export interface RenewedOptions extends Pick<CoreOptions, 'longestRetryMs' | 'acceptance' | 'delayReports'> {
  /** As `reading` has it. */
  readonly largestBytes: number;
}

/** What the core counts for the metrics. */
export interface CoreCounters {
  /** Changes of a partition's record that are settled. */
  epochs: number;
  /** Entries taken back from the stores. */
  recoveredMessages: number;
  /** Times that a message was held because each process that worked on it had crashed. */
  poisonMessages: number;
}

export interface CorePorts {
  readonly clock: Clock;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly toAscii: ToAscii;
  /** Undefined: no other thread can do it. */
  readonly touchPages?: TouchPages;
  readonly log: EventLog;
  readonly router: Router;
  readonly reportWay: FindReportWay;
  readonly ownPaths: OwnPaths;
  /** Undefined: reports leave unsigned. */
  readonly reportSigner?: ReportSigner | undefined;
  /** Undefined: rules of this gateway alone are forgotten by a restart. */
  readonly localRules?: LocalRulesFile | undefined;
  /** Who holds a partition. */
  readonly ownership: OwnershipRegister;
  /** The register's list of stores was read, if they are learned of there (ownership/known-stores.ts) */
  areStoresKnown(): boolean;
  random(): number;
  readonly events: MailEvents;
  readonly counters: CoreCounters;
  /** endOfTurn() is to be called when the event loop's turn ends. */
  requestEndOfTurn(): void;
  retryDelayMs(attempts: number): number;
  /** A number for message ids that no other process of the group was or will be given (message-ids.ts). */
  drawOrdinal(): number;
  /** Message bytes that other parts hold beside the queues: large contents being sent. */
  heldElsewhereBytes(): number;
  compose(input: ReportInput): { readonly content: Uint8Array; readonly flags: number };
}
