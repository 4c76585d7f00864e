/**
 * The gateway as operators see it: plain rows that the admin HTTP, the metrics and the command line show.
 * gateway/core.ts implements GatewayView; every call reads what is there now, allocates its answer and is
 * bounded (messages() by `limit`). Nothing here is on the path of a message.
 */

import type {
  QueueFigures, ReceptionFigures, RefusedRouteFigures, StatusFigures, StoreFigures,
} from '../../observability/figures.js';

export interface PathView {
  /** "A" or "B". */
  readonly path: string;
  /** RUN carries requests, READY stands by, NG is down. */
  readonly state: 'RUN' | 'READY' | 'NG' | 'CONNECTING';
  readonly sinceWallMs: number;
}

export interface StoreView extends StoreFigures {
  readonly host: string;
  /** Version of the protocol that it speaks with this gateway, as settled last; 0 before. */
  readonly protocol: number;
  readonly paths: readonly PathView[];
  /** Undefined unless it is drained, and when it is not known. */
  readonly drainedSinceWallMs: number | undefined;
  /** Why mirrors there are not in sync, '' when all are. */
  readonly cause: string;
  /** Since when, of the mirror that is out of sync longest. */
  readonly causeSinceWallMs: number | undefined;
}

/** A partition that should be served here and is not. */
export interface WaitingPartitionView {
  readonly partition: string;
  readonly owner: string;
  /** "register", "lease", "stores", or "copies away", the one that asks for a person. */
  readonly waitsFor: string;
  /** Of "copies away": where the copies are that count. None: only a process had it in memory. */
  readonly copies: readonly string[];
  readonly why: string;
  readonly sinceWallMs: number;
}

/** Partitions of a gateway that no configuration serves any more. */
/** Partitions that have ended, and wait only for stores that are away. */
export interface UntoldEndsView {
  readonly stores: readonly string[];
  readonly partitions: number;
  /** The first of them. */
  readonly names: readonly string[];
}

export interface OrphansView {
  readonly gateway: string;
  /** By an operator's order. */
  readonly isRetired: boolean;
  readonly partitions: number;
  /** The first of them. */
  readonly names: readonly string[];
  readonly sinceWallMs: number;
}

/** A configured route whose new mail is refused now. */
export interface RefusedRouteView extends RefusedRouteFigures {
  readonly sinceWallMs: number;
}

/** A store that the register names and this gateway does not reach. */
export interface UnreachedStoreView {
  readonly id: string;
  readonly host: string;
  readonly why: string;
  readonly sinceWallMs: number;
}

export interface StatusView extends StatusFigures {
  readonly gateway: string;
  readonly host: string;
  /** Of the release that runs. */
  readonly version: string;
  readonly incarnation: number;
  readonly pid: number;
  readonly startedWallMs: number;
  /** Why not, '' when ready: "recovering", "2 of 3 routes can not commit new mail", "stopping", "memory". */
  readonly notReadyReason: string;
  /** Configured ones, and those of them that take no new mail. */
  readonly routes: number;
  readonly routesRefused: readonly RefusedRouteView[];
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
  readonly reception: ReceptionFigures;
  readonly queues: number;
  /** Not served here although they should be. */
  readonly partitionsWaiting: number;
  /** The first of those. */
  readonly waiting: readonly WaitingPartitionView[];
  readonly orphans: readonly OrphansView[];
  readonly endsUntold: readonly UntoldEndsView[];
  readonly queuedMessages: number;
  readonly queuedBytes: number;
  readonly stores: readonly StoreView[];
  readonly storesUnreached: readonly UnreachedStoreView[];
}

/** One row of the management table: a partition at a store (the paper's Table I). */
export interface TableRowView {
  readonly partition: string;
  readonly owner: string;
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
  /** Changes not acknowledged; while it is filled, messages still to be sent. */
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
  /** A gateway of which the register knows no process. */
  readonly away: boolean;
  readonly self: boolean;
}

export interface QueueView extends QueueFigures {
  readonly nextHop: string;
  readonly ordering: 'fifo' | 'strict';
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
