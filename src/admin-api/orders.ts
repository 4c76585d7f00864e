/**
 * What an operator orders of a gateway, and what comes of it: the bodies that cli posts and gateway/admin
 * reads, and the answers. The order itself is logged with who gave it and why.
 */
import { z } from 'zod';
import { list, name, text } from './pages.js';

/** Who wants it, and why. */
export interface Order {
  readonly reason: string;
  readonly who: string;
}

/** POST /api/v1/stores/ID/drain: all partitions move away from the store; `undo`: it is used again. */
export interface DrainOrder extends Order {
  readonly undo?: boolean;
}

/** GET and POST /api/v1/stores/ID/drain: what a gateway has at a store that is to be emptied. */
export const drainAnswer = z.object({
  store: name,
  draining: z.boolean(),
  /** Mirrors, and what is still to be dropped; 0: nothing of ours is there any more. */
  mirrors: z.int(),
  /** Of those, copies that have nowhere to go and are needed. */
  stuck: z.int(),
  /** Partitions that have fewer copies than configured. */
  copies_missing: z.int(),
  /** The order is on the gateway's disk; else a restart of the gateway forgets it. */
  kept: z.boolean(),
});
export type DrainAnswer = z.output<typeof drainAnswer>;

/** POST /api/v1/partitions/NAME/resync: the copy at this store is emptied and filled again. */
export interface ResyncOrder extends Order {
  readonly store: string;
}

export const resyncAnswer = z.object({ partition: name, store: name });
export type ResyncAnswer = z.output<typeof resyncAnswer>;

/**
 * POST /api/v1/rescue, the one order that may lose mail: partitions of which every copy is away go on without
 * these copies. Either stores are named, or the memory of the processes that held what no store has.
 */
export interface RescueOrder extends Order {
  /** Stores whose copies do not come back. */
  readonly give_up: readonly string[];
  /** Partitions that only a process had in memory, which does not come back. */
  readonly memory?: boolean;
}

export const rescueAnswer = z.object({
  /** Partitions that go on, empty. */
  partitions: list(name),
  /** Partitions that had ended, but for copies at these stores: they are waited for no more. */
  ended: list(name),
});
export type RescueAnswer = z.output<typeof rescueAnswer>;

/**
 * POST /api/v1/gateways/ID/retire: it takes no new mail any more, others deliver what it has; `undo`: it may.
 */
export interface RetireOrder extends Order {
  readonly undo?: boolean;
}

/** GET and POST /api/v1/gateways/ID/retire: how far that is, as the gateway that answers sees it. */
export const retireAnswer = z.object({
  /** The gateway that answers, and the one that it is about. */
  told_by: name,
  gateway: name,
  /** It knows that the gateway is retired. */
  retired: z.boolean(),
  /** Of that gateway, in the register: those that have not ended. */
  partitions: z.int(),
  /** Of its mail, here. */
  messages: z.int(),
  /** Of those partitions, held here and empty: kept only for copies that an operator gave up. */
  kept: z.int(),
  /** Where these copies are. */
  kept_for: list(name),
  /** Gateways with a session: who has to know of the order. */
  living: list(name),
});
export type RetireAnswer = z.output<typeof retireAnswer>;

/** POST /api/v1/config/reload: the file is read again, and in force when it is good. */
export const reloadAnswer = z.object({
  gateway: name,
  /** As in status. */
  hash: name,
  /** Keys that have changed. */
  changed: list(name),
});
export type ReloadAnswer = z.output<typeof reloadAnswer>;

/** GET /api/v1/config/diff: what a reload would do. */
export const configDiffAnswer = z.object({
  gateway: name,
  changed: list(name),
  /** Messages that wait and would go another way. */
  following: z.int(),
  /** Why it would be refused; '' if it would not. */
  refused: text,
});
export type ConfigDiffAnswer = z.output<typeof configDiffAnswer>;

/** POST /api/v1/rebalance: the copies of a gateway's partitions are spread evenly over its stores now. */
const copyMove = z.object({ partition: name, from: name, to: name, messages: z.int(), bytes: z.int() });

/** GET and POST /api/v1/rebalance */
export const rebalanceAnswer = z.object({
  gateway: name,
  /** Under way. */
  moving: list(copyMove),
  /** Still to be moved, in order. */
  planned: list(copyMove),
  /** Why nothing begins now although it should; '' when it may. */
  why: text,
});
export type RebalanceAnswer = z.output<typeof rebalanceAnswer>;
