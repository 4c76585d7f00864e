/**
 * Figures of a gateway, its queues, and the copies at its stores, that metrics (gateway-metrics.ts) and the
 * operators' view (gateway/admin/view.ts) show alike: named once, so that both mean the same.
 */

export interface QueueFigures {
  readonly name: string;
  readonly queueClass: string;
  /**
   * Where this part of it lives: a queue has mail in more than one partition after a detour, reports have in
   * many.
   */
  readonly partition: string;
  /** Whose that is: another gateway where this one serves the queue in its place. */
  readonly owner: string;
  readonly messages: number;
  readonly bytes: number;
  readonly active: number;
  readonly deferred: number;
  readonly held: number;
  /** Mirrors in sync. */
  readonly inSync: number;
  readonly epoch: number;
  /** Of the mirror farthest behind. */
  readonly lagMessages: number;
  readonly lagBytes: number;
  /** Of the refill that has farthest to go; undefined when none is under way. */
  readonly refillShare: number | undefined;
  /** Undefined when it is empty. */
  readonly oldestArrivalWallMs: number | undefined;
}

/** All entries of the gateway in one state. */
export interface StateFigures {
  readonly state: string;
  readonly messages: number;
  readonly bytes: number;
  /** 0 when there is none. */
  readonly oldestAgeSeconds: number;
}

/** Partitions that are not served, by what they wait for. */
export interface WaitingFigures {
  readonly register: number;
  readonly lease: number;
  readonly stores: number;
  /** The one that asks for a person. */
  readonly copiesAway: number;
}

export interface StoreFigures {
  readonly id: string;
  readonly up: boolean;
  /** An operator has had the copies moved away: none goes there. */
  readonly drained: boolean;
  /** Partitions with a copy there, by sync state. */
  readonly partitionsSync: number;
  readonly partitionsResync: number;
  readonly partitionsNg: number;
  /** What its mirrors have not acknowledged, or still are to get by a refill. */
  readonly lagMessages: number;
  readonly lagBytes: number;
  /** What refills under way still have to send. */
  readonly refillMessages: number;
  readonly refillBytes: number;
  readonly creditBytes: number;
  /** What is left of this gateway's lease there, by its own careful reckoning; 0 without one. */
  readonly leaseLeftMs: number;
  /** Times that another path took over. */
  readonly failovers: number;
}

/**
 * What it cost to bring mirrors level again, since the start: a tail should be a small part of the content.
 */
export interface RepairFigures {
  /** Times that a mirror got only what it lacked, out of the ring; and those bytes, rows included. */
  readonly tails: number;
  readonly tailBytes: number;
  /** Times that a mirror was emptied and filled; and those bytes. */
  readonly refills: number;
  readonly refillBytes: number;
}

/** TLS and AUTH of clients, and look-ups by HTTP, since the start (reception-metrics.ts). */
export interface ReceptionFigures {
  readonly handshakes: number;
  readonly handshakesFailed: number;
  readonly auths: number;
  readonly authsFailed: number;
  readonly lookups: number;
  readonly lookupsFailed: number;
  /** "certificate", "recipients", "users": what is on disk can't be used, and the old one stays. */
  readonly staleFiles: readonly string[];
}

/** A next hop to which no connection comes up. */
export interface NextHopDown {
  readonly relay: string;
  readonly sinceWallMs: number;
  /** Deliveries that could start now. */
  readonly waiting: number;
  /** Of the last attempt. */
  readonly why: string;
}

/** A hook whose last answer was none that can be used. */
export interface HookFailing {
  readonly hook: string;
  readonly sinceWallMs: number;
  readonly why: string;
}

/** What mail depends on, outside the gateway, and does not answer. */
export interface OutageFigures {
  /** Those for which most waits. */
  readonly nextHops: readonly NextHopDown[];
  /** All of them. */
  readonly nextHopCount: number;
  readonly hooks: readonly HookFailing[];
}

/** A configured route whose new mail is refused. */
export interface RefusedRouteFigures {
  readonly route: string;
  /** An Admission (gateway/queue/types.ts). */
  readonly reason: string;
}

export interface StatusFigures {
  /** Takes new mail: enough mirrors in sync, not stopping. */
  readonly ready: boolean;
  readonly routesRefused: readonly RefusedRouteFigures[];
  readonly outages: OutageFigures;
  /** Since when a partition has fewer copies in step than configured; undefined when none has. */
  readonly degradedSinceWallMs: number | undefined;
  /** Held here. */
  readonly partitions: number;
  /** Of this gateway's own: not whole here yet, so not all counted in what is queued. */
  readonly partitionsRecovering: number;
  /** Of which there is no memory even for an index of their entries: they go on when there is. */
  readonly partitionsWithoutMemory: number;
  /** With fewer copies in step than configured. */
  readonly partitionsShort: number;
  readonly waitingFor: WaitingFigures;
  /** Why the register does not answer; '' while it does. */
  readonly registerAway: string;
  /** Partitions of another gateway that this one delivers. */
  readonly partitionsRescued: number;
  /** That no configuration serves any more, whoever delivers what they have. */
  readonly orphanPartitions: number;
  /** Partitions of others taken over, and given back, since the start. */
  readonly takeovers: number;
  readonly handedBack: number;
  /** Partitions that another process had taken over while this one stood still or was cut off. */
  readonly takenAway: number;
  /** Partitions that began empty, because every copy was lost or given up. */
  readonly losses: number;
  /** Messages of copies that were given up and came back; and of these, those that may be delivered twice. */
  readonly adopted: number;
  readonly adoptedTwice: number;
  readonly repairs: RepairFigures;
  readonly memoryUsedBytes: number;
  /** Empty segments kept for the next burst, beside what is used. */
  readonly memoryKeptBytes: number;
  readonly memoryLimitBytes: number;
  readonly connectionsIn: number;
  readonly connectionsOut: number;
  /** Final dots sent whose reply is awaited: what could be repeated if we died now. */
  readonly dotsInFlight: number;
  readonly stores: readonly StoreFigures[];
  /** Named by the register, and not reached. */
  readonly storesUnreached: readonly unknown[];
}
