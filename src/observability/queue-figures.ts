/**
 * Figures of a queue, of the mirrors at a store, and of what waits, that metrics (queue-metrics.ts) and the operators' view
 * (gateway/admin/view.ts) show alike: named once, so that both mean the same.
 */

export interface QueueFigures {
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
  /** Times that another path took over. */
  readonly failovers: number;
}
