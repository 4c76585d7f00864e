/**
 * Figures of a queue, and of the mirrors at a store, that metrics (queue-metrics.ts) and the operators' view
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

export interface StoreFigures {
  readonly up: boolean;
  /** An operator has had the partitions moved away: no mirror goes there. */
  readonly drained: boolean;
  /** Partitions mirrored there, by sync state. */
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
