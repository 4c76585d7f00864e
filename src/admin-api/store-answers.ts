/**
 * What a store answers about itself: one shape an answer, and its type. kvs/daemon builds them, cli reads
 * them.
 */
import { z } from 'zod';
import { configurationAnswer, list, logAnswer, name, page, text } from './pages.js';

/** GET /api/v1/status */
export const storeStatusAnswer = z.object({
  role: z.literal('store'),
  store_id: name,
  host: name,
  version: name,
  pid: z.int(),
  boot_id: name,
  uptime_seconds: z.int(),
  ready: z.boolean(),
  stopping: z.boolean(),
  insecure: z.boolean(),
  /** Its key stands in the register, so that all gateways find it; null: they know it by their files. */
  in_register: z.boolean().nullable(),
  /** Why the register does not answer; '' while it does. */
  register_away: text,
  ports: list(z.int()),
  partitions: z.int(),
  messages: z.int(),
  memory: z.object({
    used_bytes: z.int(), live_bytes: z.int(), granted_bytes: z.int(), accept_bytes: z.int(),
    limit_bytes: z.int(),
  }),
  gateways: list(z.object({
    id: name,
    incarnation: z.int(),
    active: z.boolean(),
    granted_bytes: z.int(),
    connections: list(z.object({ path: name, state: z.int() })),
  })),
  changes: z.int(),
  /** Of its part of the file; releases before do not tell it. */
  configuration: configurationAnswer.exactOptional(),
  /** Releases before do not tell it. */
  log: logAnswer.exactOptional(),
});
export type StoreStatusAnswer = z.output<typeof storeStatusAnswer>;

/** A copy of a partition as a store holds it. */
const storePartitionAnswer = z.object({
  /** GATEWAY/N. */
  partition: name,
  /** The gateway that it belongs to. */
  owner: name,
  /** Of the newest record that the store was told; null when it was told none. */
  holder: name.nullable(),
  holder_incarnation: z.int(),
  /** Epoch of that record, 0 without one. */
  epoch: z.int(),
  /** That record names this store, in this boot, as a member. */
  member: z.boolean(),
  /** The highest that fenced it. */
  term: z.int(),
  /** Not while it is filled. */
  complete: z.boolean(),
  number: z.int(),
  digest: name,
  messages: z.int(),
  bytes: z.int(),
});
export type StorePartitionAnswer = z.output<typeof storePartitionAnswer>;

/** GET /api/v1/partitions */
export const storePartitionPage = page(storePartitionAnswer);
export type StorePartitionPageAnswer = z.output<typeof storePartitionPage>;
