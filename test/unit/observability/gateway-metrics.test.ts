/** The text that a scraper gets. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FixedHistogram } from '../../../src/observability/fixed-histogram.js';
import { GatewayMetrics, exportGatewayMetrics } from '../../../src/observability/gateway-metrics.js';
import type { GaugeSource } from '../../../src/observability/gateway-metrics.js';
import type { QueueAnswer, StatusAnswer } from '../../../src/admin-api/gateway-answers.js';
import { QUEUE, STATUS, STORE } from '../cli/sample-answers.js';

function source(queues: readonly QueueAnswer[]): GaugeSource {
  const store = {
    ...STORE, store: 'store-a', up: true, drained: true, partitions_sync: 3, partitions_resync: 1, partitions_ng: 0, lag_messages: 7,
    lag_bytes: 900, refill_messages: 11, refill_bytes: 1100, credit_bytes: 5000, lease_left_ms: 9500, failovers: 2,
  };
  const unreached = { store: 'store-x', host: 'box-9', why: 'no answer', since: 0 };
  const status: StatusAnswer = {
    ...STATUS, hurting: { counts: { refused: 2, deferred: 4, growing: 0, slow: 0 }, queues: [] }, busiest: { seconds: 60, messages: 8, clients: [{ name: '192.0.2.7', messages: 2 }], senders: [], users: [] }, ready: true, routes_refused: [{ route: 'strict.example', reason: 'recovering', since: 0 }],
    orders: [{ order: 'o-1', verb: 'bounce', selector: '--everything', phase: 'grace', given: 0, who: 'ann', reason: 'r', matched: 1504, done: 0, grace_ends: 5, until: null }, { order: 'o-2', verb: 'delete', selector: '--everything', phase: 'acting', given: 0, who: 'ann', reason: 'r', matched: 40, done: 7, grace_ends: null, until: null }],
    outages: { next_hops: [{ relay: 'mx.example:25', since: 11, waiting: 1579, why: 'x', bytes: 25, next_try: 99, code: '421' }], next_hops_down: 27, next_hops_denied: 29, mx: [], mx_down: 28, mx_waiting: 0, hooks: [{ hook: 'rspamd', since: 0, why: 'no answer' }] },
    register_away: 'no answer', dns_away: 'no answer', lookups_held: '1 in line', stores_unreached: [unreached, { ...unreached, store: 'store-y' }], partitions: 20, partitions_copies_missing: 2, partitions_on_own_host: 3,
    waiting_for: { register: 21, lease: 22, stores: 0, copies_away: 4 }, losses: 23, adopted: 25, adopted_twice: 26,
    partitions_recovering: 5, partitions_without_memory: 25, partitions_rescued: 6, orphan_partitions: 24, takeovers: 12, handed_back: 13, taken_away: 18,
    tails: 14, tail_bytes: 15, refills: 16, refill_bytes: 17,
    log: { lost_lines: 4, lost_at: 5, failing: 'ENOSPC' },
    memory_used_bytes: 10, memory_kept_bytes: 19, memory_limit_bytes: 100,
    connections_in: 2, connections_out: 3, dots_in_flight: 1, stores: [store],
  };
  return {
    status: () => status,
    queues: () => queues,
    states: () => [{ state: 'deferred', messages: 8, bytes: 80, oldestAgeSeconds: 320 }],
  };
}

function queue(name: string, messages: number): QueueAnswer {
  return {
    ...QUEUE, queue_name: name, messages, bytes: messages * 10, copies_in_sync: 2, epoch: messages, lag_messages: messages, lag_bytes: 3,
    refill_share: messages / 100, oldest_age_seconds: messages,
  };
}

async function scrape(metrics: GatewayMetrics, queues: readonly QueueAnswer[]): Promise<string> {
  const exported = exportGatewayMetrics(metrics, source(queues));
  try {
    return await exported.registry.metrics();
  } finally {
    exported.close();
  }
}

describe('the metrics of a gateway', () => {
  test('are read from plain numbers when asked for, each time anew', async () => {
    const metrics = new GatewayMetrics();
    const exported = exportGatewayMetrics(metrics, source([]));
    metrics.received += 5;
    assert.match(await exported.registry.metrics(), /^twinpost_received_total 5$/m);
    metrics.received += 2;
    metrics.rejected('relay');
    metrics.rejected('relay');
    metrics.dns.asked('127.0.0.1:53', 'silent');
    const text = await exported.registry.metrics();
    assert.match(text, /^twinpost_received_total 7$/m);
    assert.match(text, /^twinpost_partitions_copies_missing 2$/m);
    assert.match(text, /^twinpost_partitions_on_own_host 3$/m);
    assert.match(text, /^twinpost_log_lines_lost_total 4$/m);
    assert.match(text, /^twinpost_log_failing 1$/m);
    assert.match(text, /^twinpost_rejected_total\{reason="relay"\} 2$/m);
    assert.match(text, /^twinpost_mirror_partitions\{store="store-a",state="resync"\} 1$/m);
    for (const line of [
      'twinpost_queues_hurting{problem="refused"} 2', 'twinpost_queues_hurting{problem="deferred"} 4', 'twinpost_queues_hurting{problem="growing"} 0', 'twinpost_busiest_share{party="client"} 0.25', 'twinpost_busiest_share{party="user"} 0', 'twinpost_next_hop_down_since_timestamp_seconds{relay="mx.example:25"} 11', 'twinpost_next_hop_waiting_messages{relay="mx.example:25"} 1579', 'twinpost_next_hop_next_try_timestamp_seconds{relay="mx.example:25"} 99', 'twinpost_next_hop_memory_share{relay="mx.example:25"} 0.25',
      'twinpost_orders_in_force{verb="bounce",phase="grace"} 1', 'twinpost_orders_in_force{verb="delete",phase="grace"} 0', 'twinpost_orders_in_force{verb="delete",phase="acting"} 1', 'twinpost_orders_matched_messages{verb="delete"} 40', 'twinpost_orders_done_messages{verb="delete"} 7', 'twinpost_orders_in_grace_messages{verb="bounce"} 1504', 'twinpost_orders_in_grace_messages{verb="delete"} 0',
      'twinpost_next_hops_down 27', 'twinpost_next_hops_denied 29', 'twinpost_mx_down 28', 'twinpost_hook_failing{hook="rspamd"} 1', 'twinpost_register_up 0', 'twinpost_dns_up 0', 'twinpost_lookups_held 1', 'twinpost_dns_questions_total{resolver="127.0.0.1:53",result="silent"} 1', 'twinpost_dns_questions_total{resolver="127.0.0.1:53",result="answer"} 0', 'twinpost_stores_unreached 2', 'twinpost_partitions 20', 'twinpost_partitions_waiting{for="register"} 21', 'twinpost_partitions_waiting{for="lease"} 22',
      'twinpost_partitions_waiting{for="stores"} 0', 'twinpost_partitions_waiting{for="copies_away"} 4', 'twinpost_losses_total 23', 'twinpost_adopted_total 25', 'twinpost_adopted_twice_total 26', 'twinpost_partitions_recovering 5', 'twinpost_partitions_rescued 6', 'twinpost_orphan_partitions 24', 'twinpost_takeovers_total 12', 'twinpost_handed_back_total 13', 'twinpost_taken_away_total 18', 'twinpost_tails_total 14', 'twinpost_tail_bytes_total 15', 'twinpost_refills_total 16', 'twinpost_refill_bytes_total 17', 'twinpost_failovers_total{store="store-a"} 2', 'twinpost_store_drained{store="store-a"} 1', 'twinpost_lease_left_seconds{store="store-a"} 9.5',
      'twinpost_resync_messages_left{store="store-a"} 11', 'twinpost_resync_bytes_left{store="store-a"} 1100', 'twinpost_state_messages{state="deferred"} 8', 'twinpost_state_bytes{state="deferred"} 80',
      'twinpost_state_oldest_age_seconds{state="deferred"} 320',
    ]) assert.ok(text.split('\n').includes(line), line);
    assert.match(text, /^twinpost_event_loop_delay_seconds\{quantile="0.99"\} /m);
    exported.close();
  });

  test('show the longest queues by name and the others as one', async () => {
    const queues = Array.from({ length: 60 }, (_, i) => queue(`q${String(i)}`, i + 1));
    const text = await scrape(new GatewayMetrics(), queues);
    assert.equal(text.match(/^twinpost_queue_messages\{/gm)?.length, 31);
    assert.match(text, /^twinpost_queue_messages\{queue="q59",class="mail",partition="gw-1\/1",owner="gw-1"\} 60$/m);
    assert.match(text, /^twinpost_queue_messages\{queue="other",class="other",partition="other",owner="other"\} 465$/m);
    assert.match(text, /^twinpost_queue_oldest_age_seconds\{queue="other",class="other",partition="other",owner="other"\} 30$/m);
    assert.match(text, /^twinpost_queue_epoch\{queue="other",class="other",partition="other",owner="other"\} 30$/m);
    assert.match(text, /^twinpost_queue_resync_progress\{queue="other",class="other",partition="other",owner="other"\} 0.01$/m);
    assert.match(text, /^twinpost_queues 60$/m);
  });

  test('show each part of a queue that has mail in more than one partition', async () => {
    const text = await scrape(new GatewayMetrics(), [queue('q1', 3), { ...queue('q1', 4), partition: 'gw-1/2' }, { ...queue('q1', 5), partition: 'gw-2/1', owner: 'gw-2' }]);
    assert.deepEqual(text.match(/^twinpost_queue_messages\{.*$/gm), [
      'twinpost_queue_messages{queue="q1",class="mail",partition="gw-2/1",owner="gw-2"} 5', 'twinpost_queue_messages{queue="q1",class="mail",partition="gw-1/2",owner="gw-1"} 4', 'twinpost_queue_messages{queue="q1",class="mail",partition="gw-1/1",owner="gw-1"} 3',
    ]);
  });

  test('show a queue that lacks copies by name, however short it is', async () => {
    const queues = [...Array.from({ length: 60 }, (_, i) => queue(`q${String(i)}`, i + 1)), { ...queue('lonely', 0), copies_in_sync: 1 }];
    const text = await scrape(new GatewayMetrics(), queues);
    assert.match(text, /^twinpost_queue_copies_in_sync\{queue="lonely",class="mail",partition="gw-1\/1",owner="gw-1"\} 1$/m);
  });

  test('tell of TLS, AUTH, look-ups and files that could not be read anew', async () => {
    const metrics = new GatewayMetrics();
    const { reception } = metrics;
    reception.handshake('ok');
    reception.handshake('ok');
    reception.handshake('certificate');
    reception.auth('PLAIN', 'ok');
    reception.auth('PLAIN', 'failed');
    reception.userLookups.asked = 3;
    reception.userLookups.ended(true, 20);
    reception.userLookups.ended(false, 5000);
    reception.recipientLookups.asked = 1;
    reception.followed('users', false);
    reception.blocklists.answered('zen.example', 'listed');
    reception.followed('certificate', true);
    const lines = (await scrape(metrics, [])).split('\n');
    for (const line of [
      'tls_handshakes_total{result="ok"} 2', 'tls_handshakes_total{result="certificate"} 1', 'auth_total{mechanism="PLAIN",result="ok"} 1', 'auth_total{mechanism="PLAIN",result="failed"} 1',
      'user_lookups_total{what="asked"} 3', 'user_lookups_total{what="answered"} 1', 'user_lookups_total{what="failed"} 1', 'user_lookup_seconds_count 2', 'user_lookup_seconds_bucket{le="0.025"} 1',
      'recipient_lookups_total{what="asked"} 1', 'blocklist_answers_total{list="zen.example",answer="listed"} 1', 'recipient_lookup_seconds_count 0', 'stale_files{file="users"} 0', 'stale_files{file="certificate"} 1',
    ]) assert.ok(lines.includes(`twinpost_${line}`), line);
    assert.deepEqual(reception.answer(), { tls_handshakes: 3, tls_failed: 1, auth: 2, auth_failed: 1, lookups: 4, lookups_failed: 1, blocklists_failing: [], stale_files: ['certificate'], certificates: [] });
    reception.recipientsDeferredBy = 'it is cut off';
    assert.equal(reception.answer().recipients_deferred_by, 'it is cut off');
  });

  test('keep the number of reasons bounded', () => {
    const metrics = new GatewayMetrics();
    for (let i = 0; i < 1000; i++) metrics.rejected(`r${String(i)}`);
    assert.ok(metrics.rejectedByReason.size <= 65);
    assert.equal(metrics.rejectedTotal, 1000);
  });

  test('write a histogram as buckets that add up', async () => {
    const metrics = new GatewayMetrics();
    for (const value of [0.0005, 0.001, 0.002, 3, 1000]) metrics.acceptSeconds.observe(value);
    const text = await scrape(metrics, []);
    assert.match(text, /^# TYPE twinpost_accept_seconds histogram$/m);
    assert.match(text, /^twinpost_accept_seconds_bucket\{le="0.001"\} 2$/m);
    assert.match(text, /^twinpost_accept_seconds_bucket\{le="0.0025"\} 3$/m);
    assert.match(text, /^twinpost_accept_seconds_bucket\{le="5"\} 4$/m);
    assert.match(text, /^twinpost_accept_seconds_bucket\{le="\+Inf"\} 5$/m);
    assert.match(text, /^twinpost_accept_seconds_count 5$/m);
    assert.match(text, /^twinpost_accept_seconds_sum 1003\.0035$/m);
  });
});

test('a fixed histogram counts a value equal to a bound below it', () => {
  const histogram = new FixedHistogram([1, 2]);
  for (const value of [1, 2, 2.1]) histogram.observe(value);
  assert.deepEqual(histogram.values('h').map((value) => value.value), [1, 2, 3, 5.1, 3]);
});
