/**
 * The gateway as operators see it: plain rows that the admin HTTP, the metrics and the command line show.
 * gateway/core.ts implements GatewayView; every call reads what is there now, allocates its answer and is
 * bounded (messages() by `limit`). Nothing here is on the path of a message.
 */

export interface PathView {
  /** "A" or "B". */
  readonly path: string;
  /** RUN carries requests, READY stands by, NG is down. */
  readonly state: 'RUN' | 'READY' | 'NG' | 'CONNECTING';
  readonly sinceWallMs: number;
}

export interface StoreView {
  readonly id: string;
  readonly host: string;
  readonly up: boolean;
  readonly paths: readonly PathView[];
  readonly queuesSync: number;
  readonly queuesResync: number;
  readonly queuesNg: number;
  readonly lagMessages: number;
  readonly lagBytes: number;
  readonly creditBytes: number;
}

export interface StatusView {
  readonly gateway: string;
  readonly host: string;
  readonly incarnation: number;
  readonly pid: number;
  readonly startedWallMs: number;
  /** Takes new mail: enough mirrors in sync, not stopping. */
  readonly ready: boolean;
  /** Why not, '' when ready: "recovering", "too few mirrors in sync", "stopping", "memory". */
  readonly notReadyReason: string;
  /** Since when a queue has fewer in-sync mirrors than configured; undefined when none has. */
  readonly degradedSinceWallMs: number | undefined;
  /** Store links outside loopback run without TLS because the configuration says so. */
  readonly insecure: boolean;
  readonly received: number;
  readonly delivered: number;
  readonly deferred: number;
  readonly bounced: number;
  readonly expired: number;
  readonly rejected: number;
  readonly queues: number;
  /** Of the queues that the stores hold for this gateway: not whole here yet, so not all counted in what is queued. */
  readonly queuesRecovering: number;
  /** With fewer copies in sync than configured. */
  readonly queuesShort: number;
  readonly queuedMessages: number;
  readonly queuedBytes: number;
  readonly memoryUsedBytes: number;
  readonly memoryLimitBytes: number;
  readonly connectionsIn: number;
  readonly connectionsOut: number;
  readonly dotsInFlight: number;
  readonly stores: readonly StoreView[];
}

/** One row of the management table: a queue at a store (the paper's Table I). */
export interface TableRowView {
  readonly queue: string;
  readonly queueClass: string;
  readonly store: string;
  readonly networkA: PathView['state'] | '-';
  readonly networkS: PathView['state'] | '-';
  readonly sync: 'SYNC' | 'RESYNC' | 'NG';
  readonly epoch: number;
  /** Transaction number acknowledged; undefined while NG. */
  readonly transactions: number | undefined;
}

export interface QueueView {
  readonly name: string;
  readonly queueClass: string;
  readonly nextHop: string;
  readonly ordering: 'fifo' | 'strict';
  readonly messages: number;
  readonly bytes: number;
  readonly active: number;
  readonly deferred: number;
  readonly oldestArrivalWallMs: number | undefined;
  readonly lastError: string;
}

export interface MessageRecipientView {
  readonly address: string;
  /** Why it is still here; '' before the first attempt. */
  readonly delayReason: string;
}

export interface MessageView {
  readonly queueId: string;
  readonly arrivalWallMs: number;
  readonly messageBytes: number;
  readonly sender: string;
  /** Those still to be delivered. */
  readonly recipients: readonly MessageRecipientView[];
  readonly state: 'incoming' | 'active' | 'queued' | 'deferred' | 'held' | 'ending';
  readonly attempts: number;
  readonly nextAttemptWallMs: number | undefined;
  readonly expiryWallMs: number;
}

export interface MessagePage {
  readonly messages: readonly MessageView[];
  /** Where the next page begins; undefined at the end. Opaque to everyone but the core. */
  readonly nextCursor: string | undefined;
}

export interface GatewayView {
  status(): StatusView;
  table(): readonly TableRowView[];
  queues(): readonly QueueView[];
  /** In queue order from `cursor` ('' = the head), at most `limit`; undefined when there is no such queue. */
  messages(queue: string, queueClass: string, cursor: string, limit: number): MessagePage | undefined;
}
