/**
 * What a store answers about itself: one shape an answer, and its type. kvs/daemon builds them, cli reads
 * them.
 */
import { page } from './pages.js';
import { flag, integer, list, name, object, oneOf, orNull, text } from './shape.js';
import type { ShapeOf } from './shape.js';

/** GET /api/v1/status */
export const storeStatusAnswer = object({
  role: oneOf('store'),
  store_id: name,
  host: name,
  version: name,
  pid: integer,
  boot_id: name,
  uptime_seconds: integer,
  ready: flag,
  stopping: flag,
  insecure: flag,
  /** Its key stands in the register, so that all gateways find it; null: they know it by their files. */
  in_register: orNull(flag),
  /** Why the register does not answer; '' while it does. */
  register_away: text,
  ports: list(integer),
  partitions: integer,
  messages: integer,
  memory: object({
    used_bytes: integer, live_bytes: integer, granted_bytes: integer, accept_bytes: integer,
    limit_bytes: integer,
  }),
  gateways: list(object({
    id: name,
    incarnation: integer,
    active: flag,
    granted_bytes: integer,
    connections: list(object({ path: name, state: integer })),
  })),
  changes: integer,
});
export type StoreStatusAnswer = ShapeOf<typeof storeStatusAnswer>;

/** A copy of a partition as a store holds it. */
const storePartitionAnswer = object({
  /** GATEWAY/N. */
  partition: name,
  /** The gateway that it belongs to. */
  owner: name,
  /** Of the newest record that the store was told; null when it was told none. */
  holder: orNull(name),
  holder_incarnation: integer,
  /** Epoch of that record, 0 without one. */
  epoch: integer,
  /** That record names this store, in this boot, as a member. */
  member: flag,
  /** The highest that fenced it. */
  term: integer,
  /** Not while it is filled. */
  complete: flag,
  number: integer,
  digest: name,
  messages: integer,
  bytes: integer,
});
export type StorePartitionAnswer = ShapeOf<typeof storePartitionAnswer>;

/** GET /api/v1/partitions */
export const storePartitionPage = page(storePartitionAnswer);
export type StorePartitionPageAnswer = ShapeOf<typeof storePartitionPage>;
