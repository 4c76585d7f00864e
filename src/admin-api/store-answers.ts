/** What a store answers about itself: one shape an answer, and its type. kvs/daemon builds them, cli reads them. */
import { page } from './pages.js';
import { flag, integer, list, name, object, oneOf } from './shape.js';
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
  ports: list(integer),
  partitions: integer,
  messages: integer,
  memory: object({ used_bytes: integer, live_bytes: integer, granted_bytes: integer, accept_bytes: integer, limit_bytes: integer }),
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

/** A partition as a store holds it. */
const storePartitionAnswer = object({
  partition: name,
  owner: name,
  birth: integer,
  serial: integer,
  holder: name,
  role: oneOf('none', 'member', 'filling', 'spilled'),
  epoch: integer,
  members: list(name),
  number: integer,
  digest: name,
  messages: integer,
  bytes: integer,
});
export type StorePartitionAnswer = ShapeOf<typeof storePartitionAnswer>;

/** GET /api/v1/partitions */
export const storePartitionPage = page(storePartitionAnswer);
export type StorePartitionPageAnswer = ShapeOf<typeof storePartitionPage>;
