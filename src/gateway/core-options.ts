/** What a gateway's core is made of (core.ts): its plain options, and the outside world as it sees it. */
import type { TouchPages } from '../base/segment-runs.js';
import type { Clock, Crc32, EventLog, Packer } from '../platform/ports.js';
import type { PullOptions } from '../recovery/pulls.js';
import type { SetHint } from '../recovery/set-hints.js';
import type { MirrorsOptions } from './mirror/mirrors-options.js';
import type { AcceptanceOptions } from './queue/acceptance.js';
import type { MailEvents } from './queue/mail-events.js';
import type { MemoryOptions } from './queue/memory-gauge.js';
import type { ReportInput } from './queue/report-job.js';
import type { Router } from './queue/types.js';

export interface CoreOptions {
  readonly gatewayId: string;
  readonly incarnation: number;
  /** Partitions of this gateway. */
  readonly partitions: number;
  readonly queuesMax: number;
  readonly commitTimeoutMs: number;
  /** The most that retryDelayMs() says. */
  readonly longestRetryMs: number;
  /** With a store missing at the start, the port opens after this all the same. */
  readonly firstListMs: number;
  readonly segmentBytes: number;
  readonly mirrors: Omit<MirrorsOptions, 'token'>;
  readonly acceptance: AcceptanceOptions;
  readonly memory: MemoryOptions;
  /**
   * `rescue`: takes over the queues of the others in the group when they stay silent. `olderMayLive`: nothing proves
   * that the process of this id before us is gone. `hints`: sets of mirrors as the process before us knew them.
   */
  readonly recovery: PullOptions & { readonly rescue?: boolean; readonly olderMayLive?: () => boolean; readonly hints?: readonly SetHint[] };
}

/** What the core counts for the metrics. */
export interface CoreCounters {
  /** Changes of a set of mirrors that every survivor has. */
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
  /** Undefined: no other thread can do it. */
  readonly touchPages?: TouchPages;
  readonly log: EventLog;
  readonly router: Router;
  readonly events: MailEvents;
  readonly counters: CoreCounters;
  /** endOfTurn() is to be called when the event loop's turn ends. */
  requestEndOfTurn(): void;
  retryDelayMs(attempts: number): number;
  /** A number for message ids that no other process of the group was given before or will be (message-ids.ts). */
  drawOrdinal(): number;
  /** Message bytes that other parts hold beside the queues: large contents being sent. */
  heldElsewhereBytes(): number;
  compose(input: ReportInput): { readonly content: Uint8Array; readonly flags: number };
}
