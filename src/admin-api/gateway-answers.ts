/**
 * What a gateway answers about itself: one shape an answer, and its type. gateway/admin builds them, cli
 * reads them.
 *
 * snake_case, times in whole seconds since 1970 as in `postqueue -j`, so that scripts written for Postfix
 * find queue_name, queue_id, arrival_time, message_size, sender, recipients[].address and delay_reason where
 * they look.
 */
import { page } from './pages.js';
import { flag, integer, list, name, object, oneOf, orNull, share, text } from './shape.js';
import type { ShapeOf } from './shape.js';

const pathState = oneOf('RUN', 'READY', 'NG', 'CONNECTING');

/** A store as a gateway sees it. */
const storeAnswer = object({
  store: name,
  host: name,
  /** Version of the protocol spoken with it; 0 before it answered. */
  protocol: integer,
  up: flag,
  drained: flag,
  drained_since: orNull(integer),
  paths: list(object({ path: name, state: pathState, since: integer })),
  partitions_sync: integer,
  partitions_resync: integer,
  partitions_ng: integer,
  lag_messages: integer,
  lag_bytes: integer,
  refill_messages: integer,
  refill_bytes: integer,
  credit_bytes: integer,
  lease_left_ms: integer,
  failovers: integer,
  /** Why mirrors there are not in sync, '' when all are. */
  cause: text,
  cause_since: orNull(integer),
});
export type StoreAnswer = ShapeOf<typeof storeAnswer>;

/** A store that lives, as the register says, and that this gateway does not reach. */
const unreachedStoreAnswer = object({
  store: name,
  host: name,
  why: text,
  since: integer,
});
export type UnreachedStoreAnswer = ShapeOf<typeof unreachedStoreAnswer>;

/** A partition that should be served by this gateway and is not. */
const waitingPartitionAnswer = object({
  partition: name,
  owner: name,
  /** "register", "lease", "stores", or "copies away", the one that asks for a person. */
  waits_for: name,
  /** Of "copies away": where the copies are that count. None: only a process had it in memory. */
  copies: list(name),
  /** Of "copies away" it ends with the order of `twinpost rescue`. */
  why: text,
  since: integer,
});
export type WaitingPartitionAnswer = ShapeOf<typeof waitingPartitionAnswer>;

/** Partitions of a gateway that no configuration serves any more. */
const orphansAnswer = object({
  gateway: name,
  /** By an operator's order; else nobody has answered for it for long. */
  retired: flag,
  partitions: integer,
  /** The first of them. */
  names: list(name),
  since: integer,
});
export type OrphansAnswer = ShapeOf<typeof orphansAnswer>;

/** Partitions that have ended, but for copies that may be at these stores, which are away. */
const untoldEndsAnswer = object({
  stores: list(name),
  partitions: integer,
  /** The first of them. */
  names: list(name),
});
export type UntoldEndsAnswer = ShapeOf<typeof untoldEndsAnswer>;

/** A configured route whose new mail is refused now. */
const refusedRouteAnswer = object({
  route: name,
  /** As the reason of a refusal has it in the mail log. */
  reason: name,
  since: integer,
});
export type RefusedRouteAnswer = ShapeOf<typeof refusedRouteAnswer>;

/** TLS and AUTH of clients, and look-ups by HTTP. */
const receptionAnswer = object({
  tls_handshakes: integer,
  tls_failed: integer,
  auth: integer,
  auth_failed: integer,
  lookups: integer,
  lookups_failed: integer,
  /** "certificate", "recipients", "users": what is on disk can't be used, and the old one stays. */
  stale_files: list(name),
});

/** What mail depends on, outside the gateway, and does not answer. */
const outagesAnswer = object({
  /** Those for which most waits. */
  next_hops: list(object({ relay: name, since: integer, waiting: integer, why: text })),
  /** All of them. */
  next_hops_down: integer,
  hooks: list(object({ hook: name, since: integer, why: text })),
});

/** GET /api/v1/status */
export const statusAnswer = object({
  gateway: name,
  host: name,
  version: name,
  incarnation: integer,
  pid: integer,
  uptime_seconds: integer,
  ready: flag,
  /** '' when it is ready. */
  not_ready_reason: text,
  routes: integer,
  routes_refused: list(refusedRouteAnswer),
  degraded: flag,
  degraded_since: orNull(integer),
  degraded_cause: text,
  insecure: flag,
  received: integer,
  delivered: integer,
  deferred: integer,
  bounced: integer,
  expired: integer,
  rejected: integer,
  queues: integer,
  partitions: integer,
  partitions_recovering: integer,
  partitions_without_memory: integer,
  partitions_copies_missing: integer,
  partitions_waiting: integer,
  /** Of those, by what they wait for. */
  waiting_for: object({ register: integer, lease: integer, stores: integer, copies_away: integer }),
  /** The first of those. */
  waiting: list(waitingPartitionAnswer),
  /** Why the register does not answer; '' while it does. */
  register_away: text,
  partitions_rescued: integer,
  /** In the register, whoever delivers what they have. */
  orphan_partitions: integer,
  orphans: list(orphansAnswer),
  ends_untold: list(untoldEndsAnswer),
  takeovers: integer,
  handed_back: integer,
  taken_away: integer,
  /** Partitions that began empty, because every copy was lost or given up. */
  losses: integer,
  /** Messages of copies that were given up and came back; and of these, those that may be delivered twice. */
  adopted: integer,
  adopted_twice: integer,
  tails: integer,
  tail_bytes: integer,
  refills: integer,
  refill_bytes: integer,
  queued_messages: integer,
  queued_bytes: integer,
  memory_used_bytes: integer,
  memory_limit_bytes: integer,
  connections_in: integer,
  connections_out: integer,
  dots_in_flight: integer,
  stores: list(storeAnswer),
  /** Named by the register, and not reached from here. */
  stores_unreached: list(unreachedStoreAnswer),
}, {
  /** Of clients, since the start; releases before do not tell it. */
  reception: receptionAnswer,
  /** Releases before do not tell it. */
  outages: outagesAnswer,
});
export type StatusAnswer = ShapeOf<typeof statusAnswer>;

const networkState = oneOf('RUN', 'READY', 'NG', 'CONNECTING', '-');

/** One row of the management table: a partition at a store (the paper's Table I). */
const tableRowAnswer = object({
  /** GATEWAY/N. */
  partition: name,
  /** The gateway that it belongs to. */
  owner: name,
  store: name,
  network_a: networkState,
  network_s: networkState,
  sync: oneOf('SYNC', 'RESYNC', 'NG'),
  /** Of a refill that is under way. */
  progress: orNull(share),
  /** Its acknowledgement is needed for a 250. */
  member: flag,
  epoch: integer,
  transactions: orNull(integer),
  last_transaction: integer,
  digest: orNull(name),
  messages: integer,
  lag_messages: integer,
  lag_bytes: integer,
  since: integer,
  cause: text,
});
export type TableRowAnswer = ShapeOf<typeof tableRowAnswer>;

/** GET /api/v1/mirrors, GET /api/v1/table */
export const tablePage = page(tableRowAnswer);
export type TablePageAnswer = ShapeOf<typeof tablePage>;

const queueAnswer = object({
  queue_name: name,
  queue_class: name,
  /** Another gateway where this one serves the queue in its place. */
  owner: name,
  /** Where it lives; a queue that has moved stands here once for each partition that has mail of it. */
  partition: name,
  next_hop: name,
  order: oneOf('fifo', 'strict'),
  messages: integer,
  bytes: integer,
  active: integer,
  deferred: integer,
  held: integer,
  copies_in_sync: integer,
  epoch: integer,
  lag_messages: integer,
  lag_bytes: integer,
  oldest_age_seconds: orNull(integer),
  last_error: text,
});
export type QueueAnswer = ShapeOf<typeof queueAnswer>;

/** GET /api/v1/queues */
export const queuePage = page(queueAnswer);
export type QueuePageAnswer = ShapeOf<typeof queuePage>;

const messageAnswer = object(
  {
    queue_name: name,
    queue_class: name,
    owner: name,
    queue_id: name,
    arrival_time: integer,
    message_size: integer,
    sender: name,
    /** Those still to be delivered; why one is still here, after the first attempt. */
    recipients: list(object({ address: name }, { delay_reason: text })),
    state: oneOf('incoming', 'active', 'queued', 'deferred', 'held', 'ending'),
    attempts: integer,
    next_attempt_time: orNull(integer),
    expiry_time: integer,
  },
  { held_reason: text },
);
export type MessageAnswer = ShapeOf<typeof messageAnswer>;

/** GET /api/v1/queues/NAME/messages, in queue order */
export const messagePage = page(messageAnswer);
export type MessagePageAnswer = ShapeOf<typeof messagePage>;
