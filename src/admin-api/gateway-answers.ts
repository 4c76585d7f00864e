/**
 * What a gateway answers about itself: one shape an answer, and its type. gateway/admin builds them, cli
 * reads them.
 *
 * snake_case, times in whole seconds since 1970 as in `postqueue -j`, so that scripts written for Postfix
 * find queue_name, queue_id, arrival_time, message_size, sender, recipients[].address and delay_reason where
 * they look.
 */
import { z } from 'zod';
import { configurationAnswer, list, logAnswer, name, page, text } from './pages.js';
import { ORDER_VERBS, PHASES_IN_FORCE } from './queue-orders.js';
import { queueRuleAnswer } from './queue-rules.js';

/** A part of a whole. */
const share = z.number().min(0).max(1);

const pathState = z.enum(['RUN', 'READY', 'NG', 'CONNECTING']);

/** A store as a gateway sees it. */
const storeAnswer = z.object({
  store: name,
  host: name,
  /** Version of the protocol spoken with it; 0 before it answered. */
  protocol: z.int(),
  up: z.boolean(),
  drained: z.boolean(),
  drained_since: z.int().nullable(),
  paths: list(z.object({ path: name, state: pathState, since: z.int() })),
  partitions_sync: z.int(),
  partitions_resync: z.int(),
  partitions_ng: z.int(),
  lag_messages: z.int(),
  lag_bytes: z.int(),
  refill_messages: z.int(),
  refill_bytes: z.int(),
  credit_bytes: z.int(),
  lease_left_ms: z.int(),
  failovers: z.int(),
  /** Why mirrors there are not in sync, '' when all are. */
  cause: text,
  cause_since: z.int().nullable(),
});
export type StoreAnswer = z.output<typeof storeAnswer>;

/** A store that lives, as the register says, and that this gateway does not reach. */
const unreachedStoreAnswer = z.object({
  store: name,
  host: name,
  why: text,
  since: z.int(),
});
export type UnreachedStoreAnswer = z.output<typeof unreachedStoreAnswer>;

/** A partition that should be served by this gateway and is not. */
const waitingPartitionAnswer = z.object({
  partition: name,
  owner: name,
  /** "register", "lease", "stores", or "copies away", the one that asks for a person. */
  waits_for: name,
  /**
   * Of "copies away": where the copies are that count, or who has to say whether it has one. None: only a
   * process had it in memory.
   */
  copies: list(name),
  /** Of "copies away": the order makes it begin empty. Else it goes on by what the other stores know. */
  begins_empty: z.boolean(),
  /** Of "copies away" it ends with the order of `twinpost rescue`, unless a process that lives has it. */
  why: text,
  /** Of it in memory here: there may be no other copy. Releases before do not tell it. */
  messages: z.int().exactOptional(),
  since: z.int(),
});
export type WaitingPartitionAnswer = z.output<typeof waitingPartitionAnswer>;

/** Partitions of a gateway that no configuration serves any more. */
const orphansAnswer = z.object({
  gateway: name,
  /** By an operator's order; else nobody has answered for it for long. */
  retired: z.boolean(),
  partitions: z.int(),
  /** The first of them. */
  names: list(name),
  since: z.int(),
});
export type OrphansAnswer = z.output<typeof orphansAnswer>;

/** Partitions that another gateway held, as the register told before it went away. */
const lastHeldAnswer = z.object({
  gateway: name,
  /** It had a session. */
  lived: z.boolean(),
  partitions: z.int(),
  /** The first of them. */
  names: list(name),
});
export type LastHeldAnswer = z.output<typeof lastHeldAnswer>;

/** Partitions that have ended, but for copies that may be at these stores, which are away. */
const untoldEndsAnswer = z.object({
  stores: list(name),
  partitions: z.int(),
  /** The first of them. */
  names: list(name),
});
export type UntoldEndsAnswer = z.output<typeof untoldEndsAnswer>;

/** A configured route whose new mail is refused now. */
const refusedRouteAnswer = z.object({
  route: name,
  /** As the reason of a refusal has it in the mail log. */
  reason: name,
  since: z.int(),
});
export type RefusedRouteAnswer = z.output<typeof refusedRouteAnswer>;

/** TLS and AUTH of clients, look-ups by HTTP, and DNS blocklists. */
const receptionAnswer = z.object({
  tls_handshakes: z.int(),
  tls_failed: z.int(),
  auth: z.int(),
  auth_failed: z.int(),
  lookups: z.int(),
  lookups_failed: z.int(),
  /** Whose last answers said nothing: clients are taken as if they were not on them. */
  blocklists_failing: list(name),
  /** "certificate", "recipients", "users": what is on disk can't be used, and the old one stays. */
  stale_files: list(name),
  /** Why mail for recipients of a table is deferred: it was written into. Left out where it is not. */
  recipients_deferred_by: text.exactOptional(),
  /** "smtp" or "links", and when it ends. */
  certificates: list(z.object({ use: name, ends: z.int() })),
});
export type ReceptionAnswer = z.output<typeof receptionAnswer>;

/** One to which no connection comes up. */
const hopOutage = z.object({
  relay: name,
  since: z.int(),
  waiting: z.int(),
  why: text,
  /** Of all that is in its queues; releases before do not tell it, nor the next. */
  bytes: z.int().exactOptional(),
  /** Null: now, or as soon as there is mail. */
  next_try: z.int().nullable().exactOptional(),
  /** Of the last reply, or a status where there was none. */
  code: name.exactOptional(),
});
export type HopOutageAnswer = Readonly<z.output<typeof hopOutage>>;

/** An address of ours that mail leaves from. */
const sourceAnswer = z.object({
  address: name,
  /** In EHLO. */
  name,
  /** Why no mail leaves from it, of IPv6 none by MX; '' if it does. */
  why: text,
});
export type SourceAnswer = z.output<typeof sourceAnswer>;

/** What mail depends on, outside the gateway, and does not answer. */
const outagesAnswer = z.object({
  /** Of the configuration's: those for which most waits. */
  next_hops: list(hopOutage),
  /** All of them. */
  next_hops_down: z.int(),
  /** Of those, so many answer and refuse our user and password. */
  next_hops_denied: z.int(),
  /** By MX: of strangers some are always away. */
  mx: list(hopOutage),
  mx_down: z.int(),
  /** For all of those. */
  mx_waiting: z.int(),
  hooks: list(z.object({ hook: name, since: z.int(), why: text })),
});
export type OutagesAnswer = z.output<typeof outagesAnswer>;

/** Why mail of a queue does not get on although its next hop answers (gateway/queue/hurting-queues.ts). */
export const QUEUE_PROBLEMS = ['refused', 'deferred', 'growing', 'slow'] as const;
export type QueueProblem = (typeof QUEUE_PROBLEMS)[number];

const hurtingQueueAnswer = z.object({
  queue_name: name,
  queue_class: name,
  partition: name,
  problem: z.enum(QUEUE_PROBLEMS),
  since: z.int(),
  messages: z.int(),
  deferred: z.int(),
  bytes: z.int(),
  last_error: text,
  /** Of the first of its messages that was put off; null: there is none. Releases before do not tell it. */
  next_try: z.int().nullable().exactOptional(),
  /** Of one that is refused: recipients tried in the last minutes, and those of them refused for good. */
  tried: z.int().exactOptional(),
  refused: z.int().exactOptional(),
});
export type HurtingQueueAnswer = Readonly<z.output<typeof hurtingQueueAnswer>>;

const hurtingAnswer = z.object({
  /** Releases before do not tell of those that are refused. */
  counts: z.object({
    refused: z.int().exactOptional(), deferred: z.int(), growing: z.int(), slow: z.int(),
  }),
  /** Those with most messages and recipients refused. */
  queues: list(hurtingQueueAnswer),
});
export type HurtingAnswer = z.output<typeof hurtingAnswer>;

const submitters = list(z.object({ name, messages: z.int() }));

/** Who submitted most of what was accepted in the last so many seconds; no count is too high. */
const busiestAnswer = z.object({
  seconds: z.int(),
  messages: z.int(),
  clients: submitters,
  /** Reverse-paths, in one of their spellings (MailTransaction.senderKey). */
  senders: submitters,
  users: submitters,
});
export type BusiestAnswer = z.output<typeof busiestAnswer>;

/** An order of an operator over many messages that is not over: all of it is in queue-orders.ts. */
const orderInForce = z.object({
  order: name,
  verb: z.enum(ORDER_VERBS),
  /** In the words of the command line. */
  selector: text,
  phase: z.enum(PHASES_IN_FORCE),
  given: z.int(),
  who: text,
  reason: text,
  /** Messages here; of one that is left in the register it is not known. */
  matched: z.int(),
  /** Of those, what it was done to. */
  done: z.int(),
  /** In its grace: when that ends. */
  grace_ends: z.int().nullable(),
  /** Of one that is left: from then on nobody obeys it. */
  until: z.int().nullable(),
});
export type OrderInForceAnswer = Readonly<z.output<typeof orderInForce>>;

/** `routes_hash`: of the routes alone. */
const gatewayConfigurationAnswer = configurationAnswer.extend({ routes_hash: name });
export type GatewayConfigurationAnswer = z.output<typeof gatewayConfigurationAnswer>;

/** A partition that began empty. */
const lossAnswer = z.object({
  partition: name,
  at: z.int(),
  /** Who ordered that; '' when nobody did. */
  who: text,
  reason: text,
});
export type LossAnswer = z.output<typeof lossAnswer>;

/** GET /api/v1/status */
export const statusAnswer = z.object({
  gateway: name,
  host: name,
  version: name,
  incarnation: z.int(),
  pid: z.int(),
  uptime_seconds: z.int(),
  ready: z.boolean(),
  /** '' when it is ready. */
  not_ready_reason: text,
  routes: z.int(),
  routes_refused: list(refusedRouteAnswer),
  /** Copies of its mail that it wants, and without which it takes none. */
  replicas: z.int(),
  min_replicas: z.int(),
  /** So long after its end nobody else delivers its mail. */
  lease_ms: z.int(),
  /** Gateways whose mail it delivers while they are away. */
  rescues: list(name),
  degraded: z.boolean(),
  degraded_since: z.int().nullable(),
  degraded_cause: text,
  insecure: z.boolean(),
  received: z.int(),
  delivered: z.int(),
  deferred: z.int(),
  bounced: z.int(),
  expired: z.int(),
  rejected: z.int(),
  queues: z.int(),
  partitions: z.int(),
  partitions_recovering: z.int(),
  /** Of those, what other gateways hold after a rescue: they begin to hand it back in so many seconds. */
  awaited_back: z.object({ partitions: z.int(), holders: list(name), seconds: z.int() }),
  partitions_without_memory: z.int(),
  partitions_copies_missing: z.int(),
  /** With mail that only this process has all of: no store that is to stay does. */
  partitions_uncopied: z.int(),
  /** With a copy on the host of this gateway, which is lost with it. */
  partitions_on_own_host: z.int(),
  partitions_waiting: z.int(),
  /** Of those, by what they wait for. */
  waiting_for: z.object({ register: z.int(), lease: z.int(), stores: z.int(), copies_away: z.int() }),
  /** The first of those. */
  waiting: list(waitingPartitionAnswer),
  /** Why the register does not answer; '' while it does. */
  register_away: text,
  /** While it does not: what it told last, and when that was. */
  register_heard: z.int(),
  last_held: list(lastHeldAnswer),
  partitions_rescued: z.int(),
  /** In the register, whoever delivers what they have. */
  orphan_partitions: z.int(),
  orphans: list(orphansAnswer),
  ends_untold: list(untoldEndsAnswer),
  takeovers: z.int(),
  handed_back: z.int(),
  taken_away: z.int(),
  /** Partitions that began empty, because every copy was lost or given up. */
  losses: z.int(),
  /** The last of those, in their order. */
  lost: list(lossAnswer),
  /** Messages of copies that were given up and came back; and of these, those that may be delivered twice. */
  adopted: z.int(),
  adopted_twice: z.int(),
  tails: z.int(),
  tail_bytes: z.int(),
  refills: z.int(),
  refill_bytes: z.int(),
  queued_messages: z.int(),
  queued_bytes: z.int(),
  /** Of those, what waits for an operator. */
  held_messages: z.int(),
  /** Of those, what stands in queues that no route leads out of; releases before do not tell it. */
  unrouted_messages: z.int().exactOptional(),
  /** What waits for the time that an operator has set; releases before do not tell it. */
  delayed_messages: z.int().exactOptional(),
  memory_used_bytes: z.int(),
  memory_limit_bytes: z.int(),
  /** Empty segments kept for the next burst, beside what is used; releases before do not tell it. */
  memory_kept_bytes: z.int().exactOptional(),
  connections_in: z.int(),
  connections_out: z.int(),
  dots_in_flight: z.int(),
  stores: list(storeAnswer),
  /** Named by the register, and not reached from here. */
  stores_unreached: list(unreachedStoreAnswer),
  /** Of clients, since the start; releases before do not tell it. */
  reception: receptionAnswer.exactOptional(),
  /** Releases before do not tell it. */
  outages: outagesAnswer.exactOptional(),
  /** Why no resolver of DNS answers; '' while one does. */
  dns_away: text.exactOptional(),
  /** Why mail waits for the lookup of next hops by name; '' while it does not. */
  lookups_held: text.exactOptional(),
  /** Why mail waits for a connection, whoever its next hop; '' while they are to be had. */
  connections_full: text.exactOptional(),
  sources: list(sourceAnswer).exactOptional(),
  hurting: hurtingAnswer,
  busiest: busiestAnswer,
  /** Standing rules of operators that are obeyed here. */
  rules: list(queueRuleAnswer).exactOptional(),
  /** Orders that wait in the register for mail. */
  orders_left: z.int().exactOptional(),
  /** All that are not over, but for dry runs; releases before do not tell them. */
  orders: list(orderInForce).exactOptional(),
  configuration: gatewayConfigurationAnswer.exactOptional(),
  /** Releases before do not tell it. */
  log: logAnswer.exactOptional(),
});
export type StatusAnswer = z.output<typeof statusAnswer>;

/** GET /api/v1/register: the endpoints of etcd, each asked now; none where a file is the register. */
export const registerAnswer = z.object({
  /** '' when it answers. */
  members: list(z.object({ endpoint: name, why: text })),
});
export type RegisterAnswer = z.output<typeof registerAnswer>;

const networkState = z.enum(['RUN', 'READY', 'NG', 'CONNECTING', '-']);

/** One row of the management table: a partition at a store (the paper's Table I). */
const tableRowAnswer = z.object({
  /** GATEWAY/N. */
  partition: name,
  /** The gateway that it belongs to. */
  owner: name,
  store: name,
  network_a: networkState,
  network_s: networkState,
  sync: z.enum(['SYNC', 'RESYNC', 'NG']),
  /** Of a refill that is under way. */
  progress: share.nullable(),
  /** Its acknowledgement is needed for a 250. */
  member: z.boolean(),
  epoch: z.int(),
  transactions: z.int().nullable(),
  last_transaction: z.int(),
  digest: name.nullable(),
  messages: z.int(),
  lag_messages: z.int(),
  lag_bytes: z.int(),
  since: z.int(),
  cause: text,
});
export type TableRowAnswer = z.output<typeof tableRowAnswer>;

/** GET /api/v1/mirrors, GET /api/v1/table */
export const tablePage = page(tableRowAnswer);
export type TablePageAnswer = z.output<typeof tablePage>;

const queueAnswer = z.object({
  queue_name: name,
  queue_class: name,
  /** Another gateway where this one serves the queue in its place. */
  owner: name,
  /** Where it lives; a queue that has moved stands here once for each partition that has mail of it. */
  partition: name,
  next_hop: name,
  /** What its last connection there had of TLS: version, cipher, and whose it is; "none"; '' none yet. */
  tls: text,
  order: z.enum(['fifo', 'strict']),
  messages: z.int(),
  bytes: z.int(),
  active: z.int(),
  deferred: z.int(),
  held: z.int(),
  copies_in_sync: z.int(),
  epoch: z.int(),
  lag_messages: z.int(),
  lag_bytes: z.int(),
  /** Of the refill of its partition that has farthest to go; left out when none is under way. */
  refill_share: share.exactOptional(),
  oldest_age_seconds: z.int().nullable(),
  last_error: text,
  /** A rule of an operator lets nothing start from it; left out when there is none. */
  suspended: z.boolean().exactOptional(),
  /** No connection comes up to where its mail goes, or there is no way; left out while there is. */
  down: z.boolean().exactOptional(),
});
export type QueueAnswer = z.output<typeof queueAnswer>;

/** GET /api/v1/queues */
export const queuePage = page(queueAnswer);
export type QueuePageAnswer = z.output<typeof queuePage>;

export const messageAnswer = z.object({
  queue_name: name,
  queue_class: name,
  owner: name,
  queue_id: name,
  arrival_time: z.int(),
  message_size: z.int(),
  sender: name,
  /** Those still to be delivered, or to be reported; why one is still here, after the first attempt. */
  recipients: list(z.object({
    address: name,
    /** What it was before an alias changed it. */
    given: name.exactOptional(),
    /** He has failed, and his report is owed. */
    state: z.literal('ending').exactOptional(),
    delay_reason: text.exactOptional(),
  })),
  state: z.enum(['incoming', 'active', 'queued', 'deferred', 'held', 'ending']),
  attempts: z.int(),
  next_attempt_time: z.int().nullable(),
  expiry_time: z.int(),
  held_reason: text.exactOptional(),
  /** An operator delays it. */
  delayed_until: z.int().exactOptional(),
  delayed_reason: text.exactOptional(),
});
export type MessageAnswer = z.output<typeof messageAnswer>;

/** GET /api/v1/queues/NAME/messages, in queue order */
export const messagePage = page(messageAnswer);
export type MessagePageAnswer = z.output<typeof messagePage>;
