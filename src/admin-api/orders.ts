/**
 * What an operator orders of a gateway, and what comes of it: the bodies that cli posts and gateway/admin
 * reads, and the answers. The order itself is logged with who gave it and why.
 */
import { z } from 'zod';
import { list, name, text } from './pages.js';

/** More stores than a partition has copies, by far: one order is for a whole place that burnt. */
const STORES_MAX = 256;
/** Of what an operator says in an order: who wants it, and why. */
const ORDER_TEXT_CHARACTERS_MAX = 500;
const UNSAID = 'say who does this, and for what reason: it is logged';
const said = z.string(UNSAID).max(ORDER_TEXT_CHARACTERS_MAX).trim().min(1, UNSAID);

const NO_ID = 'expected the id of a store';
const storeId = z.string(NO_ID).max(ORDER_TEXT_CHARACTERS_MAX).trim().min(1, NO_ID);

/** In the body of whatever changes something. Where tokens are asked for, who it is is the token's name. */
const orderShape = { reason: said, who: said.exactOptional() };

/** Why, and who wants it. */
export interface Order {
  readonly reason: string;
  readonly who: string;
}

/** The body of an order: what it says itself, and by whom and why. */
export function ordered<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.object({ ...shape, ...orderShape });
}

/** POST /api/v1/stores/ID/drain: all partitions move away from the store; `undo`: it is used again. */
export const drainOrder = ordered({ undo: z.boolean('expected true or false').exactOptional() });
export type DrainOrder = Readonly<z.input<typeof drainOrder>>;

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
  /** Why the register does not answer, without which nothing moves; left out while it does. */
  register_away: text.exactOptional(),
});
export type DrainAnswer = z.output<typeof drainAnswer>;

/** POST /api/v1/partitions/NAME/resync: the copy at this store is emptied and filled again. */
export const resyncOrder = ordered({ store: z.string('name the store whose mirror is to be filled again') });
export type ResyncOrder = Readonly<z.input<typeof resyncOrder>>;

export const resyncAnswer = z.object({ partition: name, store: name });
export type ResyncAnswer = z.output<typeof resyncAnswer>;

/**
 * POST /api/v1/rescue, the one order that may lose mail: partitions of which every copy is away go on without
 * these copies. Either stores are named, or the memory of the processes that held what no store has.
 */
export const rescueOrder = ordered({
  /** Stores whose copies do not come back. */
  give_up: z.array(storeId, 'expected a list of stores')
    .max(STORES_MAX, `expected ${String(STORES_MAX)} stores at most`).readonly(),
  /** Partitions that only a process had in memory, which does not come back. */
  memory: z.boolean('expected true or false').exactOptional(),
});
export type RescueOrder = Readonly<z.input<typeof rescueOrder>>;

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
export const retireOrder = ordered({ undo: z.boolean('expected true or false').exactOptional() });
export type RetireOrder = Readonly<z.input<typeof retireOrder>>;

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
  /**
   * Why the register does not answer: `living`, `partitions` and `retired` are of before; '' when it does.
   * Releases before this one do not say it.
   */
  register_away: text.exactOptional(),
});
export type RetireAnswer = z.output<typeof retireAnswer>;

const warnedShape = {
  /** What `config check` would warn of, FILE:LINE in front. Releases before this one do not say it. */
  warnings: list(text).exactOptional(),
};
const reloadedShape = {
  /** As in status. */
  hash: name,
  /** Keys that have changed. */
  changed: list(name),
  ...warnedShape,
};
const comparedShape = {
  changed: list(name),
  ...warnedShape,
  /** Why it would be refused; '' if it would not. */
  refused: text,
};

/** POST /api/v1/config/reload: the file is read again, and in force when it is good. */
export const reloadAnswer = z.object({ gateway: name, ...reloadedShape });
export type ReloadAnswer = z.output<typeof reloadAnswer>;

export const storeReloadAnswer = z.object({ store: name, ...reloadedShape });
export type StoreReloadAnswer = z.output<typeof storeReloadAnswer>;

/** Whether a store goes by a secret of the file at this moment. */
const secretOfStore = z.object({
  store: name,
  /** Which of them, counted from 1; 0: none. */
  secret: z.int(),
  of: z.int(),
  /** Why nobody knows; '' when it is known. */
  why: text,
});

export type SecretOfStore = z.output<typeof secretOfStore>;

/** GET /api/v1/config/diff: what a reload would do. */
export const configDiffAnswer = z.object({
  gateway: name,
  /** Messages that would go another way. */
  following: z.int(),
  /** Releases before this one do not say it. */
  secrets: list(secretOfStore).exactOptional(),
  ...comparedShape,
});
export type ConfigDiffAnswer = z.output<typeof configDiffAnswer>;

export const storeConfigDiffAnswer = z.object({ store: name, ...comparedShape });
export type StoreConfigDiffAnswer = z.output<typeof storeConfigDiffAnswer>;

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
