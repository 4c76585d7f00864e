/** The first line of `twinpost status`: each thing that may be wrong alone, and what is worse than what. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StatusAnswer } from '../../../src/admin-api/gateway-answers.js';
import { worstLine, worstOf } from '../../../src/cli/status-worst.js';
import type { Picture } from '../../../src/cli/status-text.js';
import * as sample from './sample-answers.js';

const NOW_MS = 1_800_000_000_000;
const NOW = NOW_MS / 1000;
const OUTAGES = { next_hops: [], next_hops_down: 0, next_hops_denied: 0, mx: [], mx_down: 0, mx_waiting: 0, hooks: [] };
const HOP = { relay: 'mx.example:25', since: NOW - 40, waiting: 1, why: 'ECONNREFUSED' };
const HURT = { queue_name: 'q', queue_class: 'mail', partition: 'gw-1/1', problem: 'deferred', since: NOW, messages: 900, deferred: 700, bytes: 1, last_error: '451 4.7.1 later' } as const;
const COUNTS = { deferred: 1, growing: 0, slow: 0 };
const RULE = { id: 'gw-1-7-1', verb: 'suspend', queue: 'out', who: 'ann', reason: 'r', since: NOW, until: null, local: false, queues: 1, messages: 12 } as const;
const ORDER = { order: 'gw-1-7-1', verb: 'bounce', selector: '--domain x.example', given: NOW, who: 'ann', reason: 'r', matched: 1504, done: 0, grace_ends: NOW, until: null } as const;
const CONFIGURATION = { hash: 'a', routes_hash: 'b', since: NOW, read: NOW, refused: '', refused_at: null };
const RECEPTION = { tls_handshakes: 0, tls_failed: 0, auth: 0, auth_failed: 0, lookups: 0, lookups_failed: 0, blocklists_failing: [], stale_files: [], certificates: [] };

const SILENT = { id: 'gw-3', kind: 'gateway', address: '127.0.0.1:1', why: 'connection refused\u001b[2J', how: 'silent' } as const;

const LOSS = { partition: 'gw-1/0', at: NOW, who: '', reason: '' };
const pictureOf = (...statuses: readonly StatusAnswer[]): Picture =>
  ({ gateways: statuses.map((status) => ({ status, rows: [], address: '' })), stores: [], missing: [], all: true });
const line = (picture: Picture): string => worstLine(worstOf(picture, NOW_MS), false);
const lineOf = (change: Partial<StatusAnswer>): string => line(pictureOf({ ...sample.STATUS, ...change }));

describe('the first line of the status', () => {
  const each: readonly (readonly [Partial<StatusAnswer>, string])[] = [
    [{}, 'ALL WELL'],
    [{ partitions_waiting: 2, waiting_for: { register: 0, lease: 0, stores: 0, copies_away: 2 } }, 'ERROR gw-1: 2 partitions can not be served: all copies that count are away'],
    [{ losses: 1 }, 'ERROR gw-1: 1 partition began empty since the start: every copy was lost or given up'],
    [{ losses: 1, lost: [{ ...LOSS, at: NOW - 3700 }, { ...LOSS, at: NOW - 3500 }] }, 'ERROR gw-1: 1 partition began empty since the start: every copy was lost or given up'],
    [{ losses: 2, lost: [{ ...LOSS, at: NOW - 3700 }] }, 'WARNING gw-1: 2 partitions began empty since the start: every copy was lost or given up'],
    [{ losses: 2, lost: [{ ...LOSS, at: NOW - 3700 }], register_away: 'x' }, 'WARNING gw-1: the register is away: x (and 1 more, below)'],
    [{ degraded: true, degraded_cause: 'NodeC: away' }, 'WARNING gw-1: mail is on fewer machines than configured: NodeC: away'],
    [{ ready: false, not_ready_reason: 'recovering' }, 'ERROR gw-1: takes no mail: recovering'],
    [{ routes_refused: [{ route: 'strict', reason: 'recovering', since: NOW }] }, 'ERROR gw-1: new mail of route strict is refused: recovering'],
    [{ log: { lost_lines: 0, lost_at: null, failing: 'ENOSPC' } }, "ERROR gw-1: the log can't be written: ENOSPC; 0 lines lost"],
    [{ log: { lost_lines: 5, lost_at: NOW - 3500, failing: '' } }, 'WARNING gw-1: 5 lines of the log lost since the start'],
    [{ log: { lost_lines: 5, lost_at: NOW - 3700, failing: '' } }, 'ALL WELL'],
    [{ register_away: 'etcd-1: no answer' }, 'WARNING gw-1: the register is away: etcd-1: no answer'],
    [{ memory_used_bytes: 82, memory_limit_bytes: 100 }, 'WARNING gw-1: memory is 82% full: 82B of 100B'],
    [{ memory_used_bytes: 79, memory_limit_bytes: 100 }, 'ALL WELL'],
    [{ reception: { ...RECEPTION, blocklists_failing: ['zen.example'] } }, 'WARNING gw-1: the DNS blocklist zen.example gives no answer of use'],
    [{ reception: { ...RECEPTION, stale_files: ['users'] } }, "ERROR gw-1: the users on disk can't be used; what was read before stays"],
    [{ reception: { ...RECEPTION, stale_files: ['recipients'], recipients_deferred_by: "'t': it is cut off" } }, "ERROR gw-1: mail for recipients is deferred: 't': it is cut off"],
    [{ outages: { ...OUTAGES, next_hops: [{ ...HOP, waiting: 0 }], next_hops_down: 1 } }, "WARNING gw-1: next hop mx.example:25 can't be reached, 0 messages wait: ECONNREFUSED"],
    [{ outages: { ...OUTAGES, next_hops: [{ ...HOP, waiting: 0 }], next_hops_down: 9 } }, "WARNING gw-1: next hop mx.example:25 can't be reached, 0 messages wait: ECONNREFUSED (and 8 more, below)"],
    [{ outages: { ...OUTAGES, next_hops: [HOP], next_hops_down: 1 } }, "ERROR gw-1: next hop mx.example:25 can't be reached, 1 message waits: ECONNREFUSED"],
    [{ outages: { ...OUTAGES, mx: [{ ...HOP, waiting: 40 }], mx_down: 1 } }, "WARNING gw-1: mx.example:25 can't be reached, 40 to deliver: ECONNREFUSED"],
    [{ outages: { ...OUTAGES, mx: [{ ...HOP, waiting: 4 }], mx_down: 1 }, hurting: { counts: COUNTS, queues: [{ ...HURT, messages: 19 }] } }, 'ALL WELL'],
    [{ outages: { ...OUTAGES, mx: [{ ...HOP, waiting: 19 }], mx_down: 1000, mx_waiting: 19_000 } }, "WARNING gw-1: 1,000 destinations by MX can't be reached, 19,000 to deliver"],
    [{ outages: { ...OUTAGES, mx: [{ ...HOP, waiting: 190 }], mx_down: 11, mx_waiting: 250 } }, "WARNING gw-1: mx.example:25 can't be reached, 190 to deliver: ECONNREFUSED"],
    [{ outages: { ...OUTAGES, mx: [{ ...HOP, waiting: 19 }], mx_down: 11, mx_waiting: 199 } }, 'ALL WELL'],
    [{ lookups_held: '2 in line; the system has been looking up a.test for 8s' }, 'ERROR gw-1: mail waits for the lookup of next hops: 2 in line; the system has been looking up a.test for 8s'],
    [{ connections_full: '40 of 40 are open' }, 'ERROR gw-1: mail waits as connections to next hops are used up: 40 of 40 are open (delivery.connections)'],
    [{ dns_away: '127.0.0.1:53: SERVFAIL', outages: { ...OUTAGES, next_hops: [HOP], next_hops_down: 1 } }, 'ERROR gw-1: no resolver of DNS answers: 127.0.0.1:53: SERVFAIL (and 1 more, below)'],
    [{ outages: { ...OUTAGES, hooks: [{ hook: 'rspamd', since: NOW, why: 'no answer' }] } }, 'ERROR gw-1: hook rspamd fails: no answer'],
    [{ hurting: { counts: COUNTS, queues: [HURT] } }, 'WARNING gw-1: queue q: its next hop puts mail off, 700 of 900 messages deferred; last: 451 4.7.1 later'],
    [{ hurting: { counts: COUNTS, queues: [{ ...HURT, problem: 'refused', messages: 0, tried: 1040, refused: 1000, last_error: '550 5.7.1 go away' }] } }, 'WARNING gw-1: queue q: its next hop refuses mail for good, 1,000 of 1,040 recipients in the last minutes; last: 550 5.7.1 go away'],
    [{ hurting: { counts: COUNTS, queues: [{ ...HURT, deferred: 0, messages: 21 }] } }, 'WARNING gw-1: queue q: its next hop puts its first message off, 20 messages behind it; last: 451 4.7.1 later'],
    [{ routes_refused: [{ route: 'q', reason: 'operator', since: NOW }] }, 'WARNING gw-1: new mail of route q is refused by an operator'],
    [{ routes_refused: [{ route: 'q', reason: 'operator', since: NOW }], outages: { ...OUTAGES, next_hops: [{ ...HOP, waiting: 1505 }], next_hops_down: 1 } }, "ERROR gw-1: next hop mx.example:25 can't be reached, 1,505 messages wait: ECONNREFUSED (and 1 more, below)"],
    [{ hurting: { counts: COUNTS, queues: [{ ...HURT, problem: 'growing', last_error: '' }] } }, 'WARNING gw-1: queue q grows, 900 messages'],
    [{ hurting: { counts: COUNTS, queues: [{ ...HURT, problem: 'slow' }] } }, 'WARNING gw-1: queue q is slow, 900 messages in it; last: 451 4.7.1 later'],
    [{ rules: [RULE] }, 'WARNING gw-1: queue out is suspended by an operator, 12 messages in it'],
    [{ rules: [{ ...RULE, messages: 0 }, { ...RULE, verb: 'refuse' }] }, 'ALL WELL'],
    ...(['hold', 'delay', 'bounce', 'delete'] as const).map((verb) =>
      [{ rules: [{ ...RULE, verb, queue: '--domain x.example', messages: 0 }] }, `WARNING gw-1: an order to ${verb} mail that comes stands: --domain x.example, by ann, 0 messages caught since the gateway started`] as const),
    ...['--client 192.0.2.7', '--sender <> --client 192.0.2.7'].map((queue) =>
      [{ rules: [{ ...RULE, verb: 'refuse' as const, queue }] }, `WARNING gw-1: new mail of ${queue} is refused by an operator`] as const),
    [{ reception: { ...RECEPTION, certificates: [{ use: 'links', ends: NOW + 13 * 86_400 + 5 }] } }, 'WARNING gw-1: the certificate for links ends in 13 days'],
    [{ reception: { ...RECEPTION, certificates: [{ use: 'links', ends: NOW + 15 * 86_400 }] } }, 'ALL WELL'],
    [{ reception: { ...RECEPTION, certificates: [{ use: 'links', ends: NOW + 3600 }] } }, 'WARNING gw-1: the certificate for links ends in 0 days'],
    [{ reception: { ...RECEPTION, certificates: [{ use: 'smtp', ends: NOW - 20 * 86_400 }] } }, 'ERROR gw-1: the certificate for smtp expired 20 days ago: renew it'],
    [{ reception: { ...RECEPTION, certificates: [{ use: 'smtp', ends: NOW }] } }, 'ERROR gw-1: the certificate for smtp expired 0 days ago: renew it'],
    [{ partitions_waiting: 3, waiting_for: { register: 0, lease: 0, stores: 3, copies_away: 0 }, waiting: [{ partition: 'gw-1/1', owner: 'gw-1', waits_for: 'stores', copies: [], begins_empty: false, why: '', since: NOW }] }, 'ERROR gw-1: 3 partitions not served yet, one for: stores'],
    [{ configuration: { ...CONFIGURATION, refused: 'gw.yaml:3: x' } }, 'ERROR gw-1: the file of its configuration is refused: gw.yaml:3: x'],
    [{ configuration: CONFIGURATION }, 'ALL WELL'],
    [{ held_messages: 2 }, 'WARNING gw-1: 2 messages held: twinpost queue summary says in which queues'],
    [{ held_messages: 2, unrouted_messages: 1 }, 'WARNING gw-1: 2 messages held, 1 of them with no route: twinpost queue summary says in which queues'],
    [{ orders: [{ ...ORDER, phase: 'grace' }] }, 'WARNING gw-1: bounce --domain x.example of ann is done to 1,504 messages when its grace is over'],
    [{ orders: [{ ...ORDER, phase: 'acting' }] }, 'WARNING gw-1: bounce --domain x.example of ann is done to 1,504 messages at this moment'],
    [{ orders: [{ ...ORDER, phase: 'looking' }, { ...ORDER, verb: 'flush', phase: 'acting' }] }, 'ALL WELL'],
    [{ orders_left: 1 }, 'WARNING gw-1: 1 order in the register for mail that is not here: twinpost queue orders'],
    [{ ends_untold: [{ stores: ['a', 'b'], partitions: 2, names: [] }] }, 'WARNING gw-1: of 2 partitions that ended a, b must still be told'],
    [{ stores_unreached: [{ store: 'NodeF', host: 'h', why: 'no path', since: NOW }] }, 'WARNING gw-1: store NodeF is not reached: no path'],
    [{ sources: [{ address: '192.0.2.1', name: 'a', why: '' }, { address: '192.0.2.2', name: 'a', why: 'no PTR' }] }, 'WARNING gw-1: no mail leaves from 192.0.2.2: no PTR'],
    [{ partitions_without_memory: 3 }, 'WARNING gw-1: no memory to read 3 partitions'],
    [{ orphan_partitions: 1 }, 'WARNING gw-1: 1 partition of a gateway that is gone'],
    [{ insecure: true }, 'WARNING gw-1: store links outside loopback run without TLS'],
  ];
  for (const [change, wanted] of each) test(wanted, () => { assert.equal(lineOf(change), wanted); });

  test('is the error, whoever has it, and says how many more there are', () => {
    const mild = { ...sample.STATUS, degraded: true, degraded_cause: 'x', register_away: 'y' };
    const bad = { ...sample.STATUS, gateway: 'gw-2', outages: { ...OUTAGES, next_hops: [HOP], next_hops_down: 41 } };
    assert.equal(line(pictureOf(mild, bad)), "ERROR gw-2: next hop mx.example:25 can't be reached, 1 message waits: ECONNREFUSED (and 42 more, below)");
  });

  test('is of errors the one that costs most', () => {
    const hook = { ...sample.STATUS, losses: 1, outages: { ...OUTAGES, hooks: [{ hook: 'rspamd', since: NOW, why: 'x' }] } };
    const still = { ...sample.STATUS, gateway: 'gw-2', partitions_waiting: 9, waiting_for: { register: 0, lease: 0, stores: 0, copies_away: 9 } };
    assert.match(line(pictureOf(hook, still)), /^ERROR gw-2: 9 partitions can not be served: .*\(and 2 more, below\)$/);
    assert.match(line({ ...pictureOf(hook), missing: [SILENT] }), /^ERROR: PARTIAL: gw-3: no answer/);
    assert.equal(line(pictureOf()), 'ERROR: no gateway answers');
    const store = { status: { ...sample.STORE_STATUS, configuration: { ...CONFIGURATION, refused: 'store.yaml:3: x' } }, address: '' };
    assert.equal(line({ ...pictureOf(sample.STATUS), stores: [store] }), 'ERROR: the file of store NodeB is refused: store.yaml:3: x');
    const other = { ...sample.STATUS, gateway: 'gw-2', configuration: { ...CONFIGURATION, routes_hash: 'c' } };
    assert.equal(line(pictureOf({ ...sample.STATUS, configuration: CONFIGURATION }, other)), 'WARNING: gateways have different routes');
  });

  test('tells of who did not answer, and moves no cursor', () => {
    assert.match(line({ ...pictureOf(sample.STATUS), missing: [SILENT] }), /^ERROR: PARTIAL: .*gw-3.*connection refused\\u001b\[2J/);
    const refuses = { ...SILENT, how: 'refused', why: 'it refused: the gateway waits for its register, with its port for mail closed' } as const;
    assert.match(line({ ...pictureOf(sample.STATUS), missing: [{ ...refuses, code: 503 }] }), /^ERROR: PARTIAL: gw-3 .* with its port for mail closed/);
    assert.match(line({ ...pictureOf(sample.STATUS), missing: [{ ...refuses, code: 401 }] }), /^WARNING: PARTIAL: gw-3 /);
    const store = { status: { role: 'store', store_id: 'NodeB', host: 'b', version: '', pid: 1, boot_id: '0', uptime_seconds: 1, ready: false, stopping: false, insecure: false, in_register: true, ports: [], partitions: 0, messages: 0, changes: 0, memory: { used_bytes: 0, live_bytes: 0, granted_bytes: 0, accept_bytes: 0, limit_bytes: 1 }, gateways: [], register_away: '' }, address: '' } as const;
    assert.equal(line({ ...pictureOf(sample.STATUS), stores: [store] }), 'WARNING: store NodeB is not ready');
    const long = lineOf({ degraded: true, degraded_cause: 'x'.repeat(3000) });
    assert.ok(long.length < 400, long);
  });
});
