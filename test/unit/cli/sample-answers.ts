/** Whole answers of an admin port, for tests that look at a few of their fields. */
import type { MessageAnswer, QueueAnswer, StatusAnswer, StoreAnswer } from '../../../src/admin-api/gateway-answers.js';
import type { StoreStatusAnswer } from '../../../src/admin-api/store-answers.js';
import { PROTOCOL_VERSION } from '../../../src/protocol/versions.js';

export const STATUS: StatusAnswer = {
  gateway: 'gw-1', host: 'box-1', version: '0.2.0', incarnation: 7, pid: 42, uptime_seconds: 7200,
  ready: true, not_ready_reason: '', routes: 1, routes_refused: [],
  replicas: 2, min_replicas: 1, lease_ms: 10_000, rescues: [],
  degraded: false, degraded_since: null, degraded_cause: '', insecure: false,
  received: 0, delivered: 0, deferred: 0, bounced: 0, expired: 0, rejected: 0,
  queues: 0, partitions: 0, partitions_recovering: 0, partitions_without_memory: 0, partitions_copies_missing: 0, partitions_uncopied: 0, partitions_on_own_host: 0, lost: [], awaited_back: { partitions: 0, holders: [], seconds: 0 }, partitions_waiting: 0,
  waiting_for: { register: 0, lease: 0, stores: 0, copies_away: 0 }, waiting: [], register_away: '', register_heard: 0, last_held: [], partitions_rescued: 0,
  orphan_partitions: 0, orphans: [], ends_untold: [],
  takeovers: 0, handed_back: 0, taken_away: 0, losses: 0, adopted: 0, adopted_twice: 0, tails: 0, tail_bytes: 0, refills: 0, refill_bytes: 0,
  queued_messages: 0, queued_bytes: 0, held_messages: 0,
  memory_used_bytes: 0, memory_limit_bytes: 2 ** 30, connections_in: 0, connections_out: 0, dots_in_flight: 0,
  stores: [], stores_unreached: [],
  hurting: { counts: { deferred: 0, growing: 0, slow: 0 }, queues: [] }, busiest: { seconds: 60, messages: 0, clients: [], senders: [], users: [] },
};

export const STORE: StoreAnswer = {
  store: 'NodeB', host: 'box-2', protocol: PROTOCOL_VERSION, up: true, drained: false, drained_since: null,
  paths: [{ path: 'A', state: 'RUN', since: 0 }, { path: 'B', state: 'READY', since: 0 }],
  partitions_sync: 39, partitions_resync: 1, partitions_ng: 0, lag_messages: 5, lag_bytes: 2048,
  refill_messages: 0, refill_bytes: 0, credit_bytes: 0, lease_left_ms: 9400, failovers: 1, cause: '', cause_since: null,
};

export const STORE_STATUS: StoreStatusAnswer = {
  role: 'store', store_id: 'NodeB', host: 'box-2', version: '0.2.0', pid: 9, boot_id: '00', uptime_seconds: 86_400, ready: true, stopping: false, insecure: false, in_register: false, register_away: 'etcd-1: connection refused', ports: [9400], partitions: 80, messages: 12_345, changes: 0,
  memory: { used_bytes: 2 ** 21, live_bytes: 0, granted_bytes: 0, accept_bytes: 2 ** 29, limit_bytes: 2 ** 30 },
  gateways: [{ id: 'gw-1', incarnation: 7, active: true, granted_bytes: 0, connections: [] }, { id: 'gw-2', incarnation: 7, active: false, granted_bytes: 0, connections: [] }],
};

export const QUEUE: QueueAnswer = {
  queue_name: 'late.example', queue_class: 'mail', owner: 'gw-1', partition: 'gw-1/1', next_hop: 'smtp://mx:25', order: 'fifo',
  messages: 1, bytes: 10, active: 0, deferred: 0, held: 0, copies_in_sync: 2, epoch: 1,
  lag_messages: 0, lag_bytes: 0, oldest_age_seconds: null, last_error: '', tls: '',
};

export const MESSAGE: MessageAnswer = {
  queue_name: 'late.example', queue_class: 'mail', owner: 'gw-1', queue_id: '0123456789A', arrival_time: 0,
  message_size: 10, sender: 'a@example.org', recipients: [{ address: 'b@late.example' }], state: 'queued',
  attempts: 0, next_attempt_time: null, expiry_time: 0,
};
