/**
 * The gateway as operators see it: plain rows that the admin HTTP, the metrics and the command line show.
 * gateway/core.ts implements GatewayView; every call reads what is there now, allocates its answer and is
 * bounded (messages() by `limit`). Nothing here is on the path of a message.
 */

import type { QueueFigures, StoreFigures } from '../../observability/queue-figures.js';
import type { RepairCounters } from '../mirror/repair-counters.js';

export interface PathView {
  /** "A" or "B". */
  readonly path: string;
  /** RUN carries requests, READY stands by, NG is down. */
  readonly state: 'RUN' | 'READY' | 'NG' | 'CONNECTING';
  readonly sinceWallMs: number;
}

export interface StoreView extends StoreFigures {
  readonly id: string;
  readonly host: string;
  /** Version of the protocol that it speaks with this gateway, as settled last; 0 before. */
  readonly protocol: number;
  readonly paths: readonly PathView[];
  /** What is left of this gateway's lease there, by its own careful reckoning; 0 without one. */
  readonly leaseLeftMs: number;
  /** Undefined unless it is drained, and when it is not known. */
  readonly drainedSinceWallMs: number | undefined;
  /** Why mirrors there are not in sync, '' when all are. */
  readonly cause: string;
  /** Since when, of the mirror that is out of sync longest. */
  readonly causeSinceWallMs: number | undefined;
}

/** A partition whose mail waits: for a store, another gateway or an operator. */
export interface HeldPartitionView {
  readonly partition: string;
  readonly owner: string;
  /** Owner, birth and serial: tells two partitions of one name apart. */
  readonly id: string;
  /** Its name, as docs/GUARANTEES.md "Recovery" has it: "no survivor", "came back empty", "waiting", … */
  readonly state: string;
  /** In memory here when it is served, else at the stores; undefined when nobody told. */
  readonly messages: number | undefined;
  /** Those that it waits for, or that can be given up. */
  readonly stores: readonly string[];
  readonly why: string;
  /** Undefined when that is not known. */
  readonly sinceWallMs: number | undefined;
}

/** A configured route whose new mail is refused now. */
export interface RefusedRouteView {
  readonly route: string;
  /** An Admission (queue/types.ts). */
  readonly reason: string;
  readonly sinceWallMs: number;
}

export interface StatusView {
  readonly gateway: string;
  readonly host: string;
  /** Of the release that runs. */
  readonly version: string;
  readonly incarnation: number;
  readonly pid: number;
  readonly startedWallMs: number;
  /** Takes new mail: enough mirrors in sync, not stopping. */
  readonly ready: boolean;
  /** Why not, '' when ready: "recovering", "2 of 3 routes can not commit new mail", "stopping", "memory". */
  readonly notReadyReason: string;
  /** Configured ones, and those of them that take no new mail. */
  readonly routes: number;
  readonly routesRefused: readonly RefusedRouteView[];
  /** Since when a partition has fewer in-sync mirrors than configured, or a record of the gateway itself none; undefined when none has. */
  readonly degradedSinceWallMs: number | undefined;
  /** Why, '' when not degraded. */
  readonly degradedCause: string;
  /** Store links outside loopback run without TLS because the configuration says so. */
  readonly insecure: boolean;
  readonly received: number;
  readonly delivered: number;
  readonly deferred: number;
  readonly bounced: number;
  readonly expired: number;
  readonly rejected: number;
  readonly queues: number;
  /** Served here, of whatever gateway. */
  readonly partitions: number;
  /** Of the partitions that the stores hold for this gateway: not whole here yet, so not all counted in what is queued. */
  readonly partitionsRecovering: number;
  /** With fewer copies in sync than configured. */
  readonly partitionsShort: number;
  /** Partitions whose mail waits for a store, another gateway or an operator. */
  readonly partitionsHeld: number;
  /** The first of those. */
  readonly heldPartitions: readonly HeldPartitionView[];
  /** Partitions of another gateway that this one delivers. */
  readonly partitionsRescued: number;
  /** Partitions of others taken over, and given back, since the start. */
  readonly takeovers: number;
  readonly handedBack: number;
  /** Partitions given up because another process had taken them over while this one stood still or was cut off. */
  readonly takenAway: number;
  /** What it cost to bring mirrors level again, since the start. */
  readonly repairs: RepairCounters;
  readonly queuedMessages: number;
  readonly queuedBytes: number;
  readonly memoryUsedBytes: number;
  /** Empty segments kept for the next burst, beside what is used. */
  readonly memoryKeptBytes: number;
  readonly memoryLimitBytes: number;
  readonly connectionsIn: number;
  readonly connectionsOut: number;
  readonly dotsInFlight: number;
  readonly stores: readonly StoreView[];
}

/** One row of the management table: a partition at a store (the paper's Table I). */
export interface TableRowView {
  readonly partition: string;
  /** Identity of the partition at every store. */
  readonly owner: string;
  readonly birth: number;
  readonly serial: number;
  readonly store: string;
  readonly networkA: PathView['state'] | '-';
  readonly networkS: PathView['state'] | '-';
  readonly sync: 'SYNC' | 'RESYNC' | 'NG';
  /** Share of a refill that is sent, 0 to 1; undefined when none is under way. */
  readonly progress: number | undefined;
  /** Its acknowledgement is needed for a 250. */
  readonly member: boolean;
  readonly epoch: number;
  /** Transaction number acknowledged; undefined while NG. */
  readonly transactions: number | undefined;
  /** Number of the partition's last change. */
  readonly lastTransaction: number;
  /** Digest at that number; undefined while it can't be told. */
  readonly digest: string | undefined;
  readonly messages: number;
  /** Changes not acknowledged, sets of mirrors among them; while it is filled, messages still to be sent. */
  readonly lagMessages: number;
  readonly lagBytes: number;
  readonly sinceWallMs: number;
  /** Never '' unless it is in sync. */
  readonly cause: string;
}

export interface TablePage {
  readonly rows: readonly TableRowView[];
  /** Where the next page begins; undefined at the end. */
  readonly nextCursor: string | undefined;
}

/** A gateway or store that belongs together with this one. */
export interface MemberView {
  readonly id: string;
  readonly kind: 'gateway' | 'store';
  /** host:port of its admin HTTP; undefined when no configuration says it. */
  readonly admin: string | undefined;
  readonly self: boolean;
}

export interface QueueView extends QueueFigures {
  readonly name: string;
  readonly queueClass: string;
  /** Another gateway where this one serves the queue in its place. */
  readonly owner: string;
  /** Where it lives. */
  readonly partition: string;
  readonly nextHop: string;
  readonly ordering: 'fifo' | 'strict';
  /** Of the refill that has farthest to go; undefined when none is under way. */
  readonly refillShare: number | undefined;
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
  /** Of its queue. */
  readonly owner: string;
  readonly arrivalWallMs: number;
  readonly messageBytes: number;
  readonly sender: string;
  /** Those still to be delivered. */
  readonly recipients: readonly MessageRecipientView[];
  readonly state: 'incoming' | 'active' | 'queued' | 'deferred' | 'held' | 'ending';
  /** Why it is held; '' when it isn't. */
  readonly heldReason: string;
  readonly attempts: number;
  readonly nextAttemptWallMs: number | undefined;
  readonly expiryWallMs: number;
}

export interface MessagePage {
  readonly messages: readonly MessageView[];
  /** Where the next page begins; undefined at the end. Opaque to everyone but the core. */
  readonly nextCursor: string | undefined;
}

export interface QueuePage {
  readonly queues: readonly QueueView[];
  readonly nextCursor: string | undefined;
}

export interface GatewayView {
  status(): StatusView;
  /** The management table, whole partitions behind `cursor`, at most `limit` of them. */
  mirrors(cursor: string, limit: number): TablePage;
  /** Rows of the partitions that need a look first. */
  troubled(most: number): readonly TableRowView[];
  /** Behind `cursor`, at most `limit`. */
  queues(cursor: string, limit: number): QueuePage;
  /** All that belong together as far as this gateway's configuration says, itself first. */
  group(): readonly MemberView[];
  /** In queue order from `cursor` ('' = the head), at most `limit`; undefined when there is no such queue. */
  messages(queue: string, queueClass: string, cursor: string, limit: number): MessagePage | undefined;
}
