/** What `twinpost status` shows, letter by letter; and what comparing a mirror with its gateway ends in. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StatusAnswer, TableRowAnswer, WaitingPartitionAnswer } from '../../../src/admin-api/gateway-answers.js';
import type { StorePartitionAnswer, StoreStatusAnswer } from '../../../src/admin-api/store-answers.js';
import { fittingLines, statusLines, watchLine } from '../../../src/cli/status-text.js';
import { judgeMirror, verifyLines } from '../../../src/cli/store-verify.js';
import { AwayCause, awayText } from '../../../src/recovery/ownership/waiting.js';
import * as sample from './sample-answers.js';

const NOW_MS = 1_800_000_000_000;
const NOW = NOW_MS / 1000;

const ROW: TableRowAnswer = {
  partition: 'gw-1/1', owner: 'gw-1', store: 'NodeB', network_a: 'RUN', network_s: 'READY', sync: 'SYNC', progress: null, member: true, epoch: 2,
  transactions: 18_000, last_transaction: 18_000, digest: 'aa', messages: 40, lag_messages: 0, lag_bytes: 0, since: NOW - 3600, cause: 'queue created',
};
const LEASE: WaitingPartitionAnswer = { partition: 'gw-2/5', owner: 'gw-2', waits_for: 'lease', copies: [], begins_empty: false, why: 'its lease runs', since: NOW - 5 };
const AWAY: WaitingPartitionAnswer = {
  partition: 'gw-1/3', owner: 'gw-1', waits_for: 'copies away', copies: ['NodeD', 'NodeE'], begins_empty: true, since: NOW - 30,
  why: awayText({ cause: AwayCause.COPIES, stores: ['NodeD', 'NodeE'] }, { gatewayId: 'gw-2', incarnation: 7 }),
};
const STATUS: StatusAnswer = {
  ...sample.STATUS, routes: 40, routes_refused: [{ route: 'strict.example', reason: 'recovering', since: NOW - 30 }], degraded: true, degraded_since: NOW - 90, degraded_cause: 'NodeC: ECONNRESET', insecure: true,
  reception: { tls_handshakes: 1200, tls_failed: 4, auth: 0, auth_failed: 0, lookups: 30, lookups_failed: 0, blocklists_failing: ['zen.example'], stale_files: ['certificate', 'users'], certificates: [{ use: 'smtp', ends: NOW + 86_400 * 3 }, { use: 'links', ends: NOW + 86_400 * 300 }] }, outages: { next_hops: [{ relay: 'mx.example:25', since: NOW - 40, waiting: 1579, why: 'ECONNREFUSED', bytes: 2 ** 28, next_try: NOW + 25, code: '4.4.1' }], next_hops_down: 3, next_hops_denied: 0, mx: [{ relay: 'mx.stranger.example:25 and 2 more', since: NOW - 400, waiting: 4, why: 'ETIMEDOUT' }], mx_down: 12, mx_waiting: 0, hooks: [{ hook: 'rspamd', since: NOW - 9, why: 'no answer' }] }, sources: [{ address: '192.0.2.10', name: 'mail.example', why: '' }, { address: '2001:db8::10', name: 'mail.example', why: 'its PTR record says nothing' }], rules: [{ id: 'gw-1-7-1', verb: 'suspend', queue: 'out', who: 'ann', reason: 'their server is down', since: NOW - 600, until: NOW + 3600, local: true, queues: 3, messages: 1200 }, { id: 'gw-1-7-2', verb: 'refuse', queue: '*', who: 'bob', reason: 'moves \u001b[2J', since: NOW - 60, until: null, local: false, queues: 1, messages: 1 }], orders_left: 1, held_messages: 3, delayed_messages: 1, orders: [{ order: 'gw-1-7-3', verb: 'bounce', selector: '--domain shop.example', phase: 'grace', given: NOW - 15, who: 'ann', reason: 'gone \u001b[2J', matched: 1504, done: 0, grace_ends: NOW + 45, until: null }, { order: 'gw-2-7-1', verb: 'delete', selector: '--client 192.0.2.7', phase: 'left', given: NOW - 900, who: 'bob', reason: 'flood', matched: 0, done: 4, grace_ends: null, until: NOW + 3600 }], received: 20_000, delivered: 19_000, deferred: 3, bounced: 2, expired: 1, queues: 40, partitions: 16, partitions_waiting: 23,
  waiting_for: { register: 0, lease: 1, stores: 0, copies_away: 22 }, waiting: [LEASE, AWAY, { ...AWAY, partition: 'gw-1/4', since: NOW - 20 }],
  register_away: 'etcd-1: connection refused', losses: 1, adopted: 40, adopted_twice: 3,
  hurting: { counts: { deferred: 4, growing: 1, slow: 0 }, queues: [{ queue_name: 'late.example', queue_class: 'mail', partition: 'gw-1/1', problem: 'deferred', since: NOW - 70, messages: 900, deferred: 700, bytes: 2 ** 27, last_error: '451 4.7.1 later', next_try: NOW + 90 }, { queue_name: 'big.example', queue_class: 'mail', partition: 'gw-1/2', problem: 'growing', since: NOW - 5, messages: 800, deferred: 0, bytes: 10, last_error: '' }] },
  busiest: { seconds: 75, messages: 13_000, clients: [{ name: '192.0.2.7', messages: 11_000 }, { name: '192.0.2.8', messages: 1_300 }, { name: '192.0.2.9', messages: 9 }], senders: [{ name: '', messages: 6_000 }], users: [] },
  stores_unreached: [{ store: 'NodeF', host: 'box-6', why: 'no path to it stands', since: NOW - 12 }],
  partitions_rescued: 3, queued_messages: 41, queued_bytes: 4096, memory_used_bytes: 2 ** 20,
  stores: [
    sample.STORE,
    { ...sample.STORE, store: 'NodeC', host: 'box-3', protocol: 0, up: false, paths: [{ path: 'A', state: 'NG', since: 0 }, { path: 'B', state: 'NG', since: 0 }], partitions_sync: 0, partitions_resync: 0, partitions_ng: 1, lag_messages: 900, lag_bytes: 0, lease_left_ms: 0, failovers: 0 },
  ],
};
const STORE_STATUS: StoreStatusAnswer = { ...sample.STORE_STATUS, configuration: { hash: '0a1b2c3d4e5f', since: NOW - 86_400, read: NOW - 86_400, refused: '', refused_at: null } };
const ROWS: readonly TableRowAnswer[] = [
  ROW,
  { ...ROW, store: 'NodeC', network_a: 'NG', network_s: 'NG', sync: 'NG', member: false, transactions: null, lag_messages: 900, lag_bytes: 123_456, since: NOW - 90, cause: 'ECONNRESET \u001b[2J' },
  { ...ROW, partition: 'gw-2/2', owner: 'gw-2', store: 'NodeD', network_a: 'NG', network_s: 'RUN', sync: 'RESYNC', progress: 0.429, member: false, transactions: 3000, lag_messages: 5, lag_bytes: 2048, since: NOW - 2, cause: 'refill begins' },
];

describe('twinpost status', () => {
  test('shows the table of the paper, and all that an operator must know', () => {
    const lines = statusLines({
      gateways: [{ status: STATUS, rows: ROWS, address: 'http://box-1:8025' }],
      stores: [{ status: STORE_STATUS, address: 'http://box-2:9401' }],
      missing: [{ id: 'gw-2', kind: 'gateway', address: '127.0.0.1:8026', why: 'connection refused', how: 'silent' }, { id: 'gw-3', kind: 'gateway', address: '', why: 'nobody that answers knows its admin address', how: 'not asked' }],
      all: false,
    }, NOW_MS, false);
    assert.deepEqual(lines, GOLDEN.split('\n'));
  });

  test('colours words on a terminal only', () => {
    const picture = { gateways: [{ status: STATUS, rows: ROWS, address: 'http://box-1:8025' }], stores: [], missing: [], all: true };
    assert.ok(!statusLines(picture, NOW_MS, false).join('\n').includes('\u001b'));
    assert.ok(statusLines(picture, NOW_MS, true).join('\n').includes('\u001b[32mREADY'));
  });

  test('is a line a gateway in a pipe', () => {
    assert.equal(watchLine({ status: STATUS, rows: [], address: '' }, NOW_MS), '2027-01-15T08:00:00.000Z gw-1 ready degraded received=20000 delivered=19000 queued=41 lag=900 refused=1 down=NodeC drained=- register=away waiting=23 copies-away=22 orphans=0');
    assert.match(watchLine({ status: { ...STATUS, ready: false, not_ready_reason: 'recovering', degraded_since: null, register_away: '', stores: [] }, rows: [], address: '' }, NOW_MS), / not-ready\(recovering\) complete .* down=- drained=- register=up waiting=23 copies-away=22 orphans=0$/);
  });
});

const [first, ...rest] = STATUS.stores;
assert.ok(first !== undefined);
const withStore = (more: Partial<typeof first>): StatusAnswer => ({ ...STATUS, stores: [{ ...first, ...more }, ...rest] });
const shown = (status: StatusAnswer): string => statusLines({ gateways: [{ status, rows: [], address: 'http://box-1:8025' }], stores: [], missing: [], all: true }, NOW_MS, false).join('\n');

test('the configuration in force is named, why another one was refused, and which gateways have other routes', () => {
  const configuration = { hash: '0123456789ab', routes_hash: 'ba9876543210', since: NOW - 60, read: NOW - 5, refused: '', refused_at: null };
  const text = shown({ ...STATUS, configuration });
  assert.match(text, /^ {2}config {6}0123456789ab, routes ba9876543210, since 2027-01-15T07:59:00Z$/m);
  assert.doesNotMatch(text, /RELOAD|DIFFER/);
  assert.match(shown({ ...STATUS, configuration: { ...configuration, refused: 'f.yaml:3: bad', refused_at: NOW - 5 } }), /^ {2}RELOAD {6}ERROR: refused 5s ago: f\.yaml:3: bad; the one before is in force, /m);
  const { routes_hash: _routes, ...ofStore } = { ...configuration, refused: 'f.yaml:3: bad\n', refused_at: NOW - 5 };
  const withStores = statusLines({ gateways: [], stores: [{ status: { ...STORE_STATUS, configuration: ofStore }, address: '' }], missing: [], all: true }, NOW_MS, false).join('\n');
  assert.match(withStores, /^ERROR: .*\(and 1 more, below\)\n[^]*^ {2}RELOAD {6}ERROR: refused by NodeB 5s ago: f\.yaml:3: bad\\u000a; the one before is in force, mend the file before the next start$/m);
  const picture = (gateway: string, routes_hash: string) => ({ status: { ...STATUS, gateway, configuration: { ...configuration, routes_hash } }, rows: [], address: '' });
  const all = statusLines({ gateways: [picture('gw-1', 'aaaa'), picture('gw-2', 'bbbb'), picture('gw-3', 'aaaa')], stores: [], missing: [], all: true }, NOW_MS, false);
  assert.ok(all.some((line) => line.startsWith('ROUTES DIFFER: aaaa: gw-1, gw-3; bbbb: gw-2; ')), all.join('\n'));
});

test('mail that waits for lookups is shown, with what the system has been asked for', () => {
  const outages = { next_hops: [], next_hops_down: 0, next_hops_denied: 0, mx: [], mx_down: 0, mx_waiting: 0, hooks: [] };
  const text = shown({ ...STATUS, outages, lookups_held: '2 in line; the system has been looking up a.test for 8s' });
  assert.match(text, /^ {2}LOOKUPS {5}mail waits for those of next hops: 2 in line; the system has been looking up a\.test for 8s$/m);
});

test('of a release before, what it does not tell is not shown', () => {
  const { orders: _orders, held_messages: _held, delayed_messages: _delayed, ...before } = STATUS;
  const text = shown({ ...before, held_messages: 0, outages: { next_hops: [{ relay: 'mx:25', since: NOW - 40, waiting: 7, why: '421 4.3.2 later', code: '421', next_try: null }, { relay: 'my:25', since: NOW - 40, waiting: 7, why: 'ETIMEDOUT' }], next_hops_down: 2, next_hops_denied: 0, mx: [], mx_down: 0, mx_waiting: 0, hooks: [] } });
  assert.match(text, /^ {2}LEFT {8}1 order waits in the register for mail of gateways that did not answer: twinpost queue orders$/m);
  assert.match(text, /^ {2}NEXT HOP {4}mx:25 can't be reached for 40s, 7 to deliver, tried now: 421 4\.3\.2 later$/m);
  assert.match(text, /^ {2}NEXT HOP {4}my:25 can't be reached for 40s, 7 to deliver: ETIMEDOUT$/m);
  assert.doesNotMatch(text, /ORDER|HELD|DELAYED/);
});

test('of what is held, it is said how much has no route, and how to let go what is there', () => {
  const held = (unrouted: number): string => shown({ ...STATUS, unrouted_messages: unrouted });
  assert.match(held(0), /^ {2}HELD {8}3 of 41 messages wait for an operator: twinpost queue summary says in which queues; queue release lets it go$/m);
  assert.match(held(2), /^ {2}HELD {8}3 of 41 messages wait for an operator, 2 of them with no route: .*; queue release lets it go, but where no route leads out: there add one with the name of the queue, or queue rebind$/m);
});

test('orders of which each gateway tells say how far they are; of many the first stand there', () => {
  const order = { order: 'o', verb: 'rebind', selector: '--everything', phase: 'looking', given: NOW, who: 'ann', reason: 'r', matched: 1, done: 0, grace_ends: null, until: null } as const;
  const text = (phase: 'looking' | 'found' | 'acting', more: number): string => shown({ ...STATUS, orders: Array.from({ length: more }, () => ({ ...order, phase })) });
  assert.match(text('looking', 1), /r; 1 message matched so far, it still looks$/m);
  assert.match(text('found', 1), /r; 1 message matched, waits for whoever gave it$/m);
  assert.match(text('acting', 1), /r; 1 message matched, 0 done$/m);
  assert.match(text('acting', 11), /\n {16}and 3 more: twinpost queue orders\n/);
});

test('while the register is away, what it told last of other gateways is shown, and since when that is', () => {
  const last_held = [
    { gateway: 'gw-2', lived: true, partitions: 16, names: ['gw-2/0', 'gw-2/1'] }, { gateway: 'gw-3', lived: false, partitions: 1, names: ['gw-3/0'] },
  ];
  const text = shown({ ...STATUS, register_heard: NOW - 180, last_held });
  assert.match(text, /^ +as the register told 3min ago, gw-2 held 16 partitions: gw-2\/0, gw-2\/1 and 14 more$/m);
  assert.match(text, /^ +as the register told 3min ago, gw-3 held 1 partition, and had no session any more: gw-3\/0$/m);
});

test('a store that speaks an older version of the protocol is shown with it', () => {
  assert.match(shown(withStore({ protocol: 1 })), /^NodeB +box-2 +up, protocol 1 +A RUN/m);
  assert.doesNotMatch(shown(STATUS), /protocol/);
});

test('a source from which no mail leaves stands with the reason', () => {
  assert.match(shown(STATUS), /^ {2}SOURCE {6}2001:db8::10 \(mail\.example in EHLO\): no mail by MX leaves from it: its PTR record says nothing$/m);
  assert.doesNotMatch(shown(STATUS), /192\.0\.2\.10/);
});

test('a table of recipients that was written into says that mail is deferred, and not that the old one stays', () => {
  const { reception } = STATUS;
  assert.ok(reception !== undefined);
  const text = shown({ ...STATUS, reception: { ...reception, stale_files: ['recipients', 'users'], recipients_deferred_by: "'t': it is cut off" } });
  assert.match(text, /^ {2}RECIPIENTS {2}nobody can tell who is there, so mail is deferred: 't': it is cut off$/m);
  assert.match(text, /^ {2}STALE .* stays: users; the log says why$/m);
});

test('a certificate that is over is said to have expired', () => {
  const { reception } = STATUS;
  assert.ok(reception !== undefined);
  const text = shown({ ...STATUS, reception: { ...reception, certificates: [{ use: 'smtp', ends: NOW - 86_400 }] } });
  assert.match(text, /^ {2}CERTIFICATE for smtp expired 2027-01-14T08:00:00Z: renew it$/m);
});

test('lines that do not fit are counted in the last that does', () => {
  assert.deepEqual(fittingLines(['a', 'b', 'c'], 3), ['a', 'b', 'c']);
  assert.deepEqual(fittingLines(['a', 'b', 'c', 'd'], 3), ['a', 'b', '… 2 more lines']);
  assert.deepEqual(fittingLines(['a', 'b', 'c', ''], 3), ['a', 'b', 'c'], 'an empty one at the end is not missed');
  assert.deepEqual(fittingLines(['a', 'b'], 1), ['… 2 more lines']);
});

describe('a drained store', () => {

  test('is named with the time since then, if that is known', () => {
    assert.match(shown(withStore({ drained: true, drained_since: NOW - 7200 })), /^NodeB +box-2 +up, drained 2h ago +A RUN/m);
    assert.match(shown(withStore({ drained: true, up: false })), /^NodeB +box-2 +DOWN, drained +A RUN/m);
    assert.doesNotMatch(shown(STATUS), /drained/);
  });

  test('is named in the line for a pipe', () => {
    assert.match(watchLine({ status: withStore({ drained: true }), rows: [], address: '' }, NOW_MS), / down=NodeC drained=NodeB register=away /);
  });
});

test('partitions of a gateway that is no more stand with whose they were, for how long, and why', () => {
  const names = Array.from({ length: 8 }, (_, i) => `gw-9/${String(i)}`);
  const status = { ...sample.STATUS, orphan_partitions: 19, orphans: [
    { gateway: 'gw-9', retired: false, partitions: 16, names, since: NOW - 600 },
    { gateway: 'gw-8', retired: true, partitions: 3, names: ['gw-8/0', 'gw-8/1', 'gw-8/2'], since: NOW - 5 },
  ] };
  const lines = statusLines({ gateways: [{ status, rows: [], address: 'http://box-1:8025' }], stores: [], missing: [], all: true }, NOW_MS, false);
  assert.deepEqual(lines.filter((line) => line.includes('ORPHANS')), [
    `  ORPHANS     16 partitions of gw-9, which no configuration serves any more, for 10min: ${names.join(', ')} and 8 more; the group delivers what they have, then they end`,
    '  ORPHANS     3 partitions of gw-8, retired by an operator, for 5s: gw-8/0, gw-8/1, gw-8/2; the group delivers what they have, then they end',
  ]);
});

test('partitions that have ended but for a store that is away stand with the order that ends them without it', () => {
  const status = { ...sample.STATUS, ends_untold: [
    { stores: ['store-c'], partitions: 9, names: ['gw-9/0', 'gw-9/1'] }, { stores: ['store-c', 'store-d'], partitions: 1, names: ['gw-9/9'] },
  ] };
  const lines = statusLines({ gateways: [{ status, rows: [], address: 'http://box-1:8025' }], stores: [], missing: [], all: true }, NOW_MS, false);
  const at = lines.findIndex((line) => line.includes('ENDED'));
  assert.deepEqual(lines.slice(at, at + 4).map((line) => line.trim()), [
    'ENDED       9 partitions have ended, and store-c, which may have copies, is to be told: gw-9/0, gw-9/1 and 7 more; start what is away, or if it never comes back:',
    'twinpost rescue --give-up store-c --reason TEXT --from box-1:8025',
    'ENDED       1 partition has ended, and store-c, store-d, which may have copies, are to be told: gw-9/9; start what is away, or if it never comes back:',
    'twinpost rescue --give-up store-c --give-up store-d --reason TEXT --from box-1:8025',
  ]);
});

describe('a partition that is not served', () => {
  /** As it is to be typed. */
  const ORDER = 'twinpost rescue --give-up NodeD --give-up NodeE --reason TEXT --from box-1:8025';
  /** The lines of it, without their indentation. */
  const linesOf = (waiting: readonly WaitingPartitionAnswer[], more = 0, address = 'http://box-1:8025', isTty = false): string[] => {
    const status = { ...sample.STATUS, partitions_waiting: waiting.length + more, waiting };
    const lines = statusLines({ gateways: [{ status, rows: [], address }], stores: [], missing: [], all: true }, NOW_MS, isTty);
    const from = lines.findIndex((line) => line.includes('WAITING'));
    return from === -1 ? [] : lines.slice(from, lines.indexOf('', from)).map((line) => line.trim().replace(/^WAITING +/, ''));
  };

  test('is shown with what it waits for, why and since when', () => {
    assert.deepEqual(linesOf([LEASE]), ['1 partition is not served', 'gw-2/5: lease for 5s; its lease runs']);
    assert.deepEqual(linesOf([]), []);
    assert.equal(linesOf([LEASE], 7).at(-1), 'and 7 more');
  });

  test('stands in one line with all that wait for the same, for as long as the first of them', () => {
    const all = Array.from({ length: 10 }, (_, i) => ({ ...LEASE, partition: `gw-2/${String(i)}`, since: NOW - 5 - i }));
    assert.deepEqual(linesOf(all).slice(1), ['gw-2/0, gw-2/1, gw-2/2, gw-2/3, gw-2/4, gw-2/5, gw-2/6, gw-2/7 and 2 more: lease for 14s; its lease runs']);
    assert.equal(linesOf([LEASE, { ...LEASE, why: 'another lease runs' }]).length, 3);
  });

  test('whose copies are away comes first, with the one order below it, whole, for the gateway that it is asked of', () => {
    const lines = linesOf([LEASE, AWAY]);
    assert.match(lines[1] ?? '', /^gw-1\/3: COPIES AWAY for 30s; every copy .* \(NodeD, NodeE\)\. .* give these copies up:$/);
    assert.deepEqual([lines[2], lines[3]], [ORDER, 'gw-2/5: lease for 5s; its lease runs']);
    assert.match(linesOf([AWAY], 0, 'https://box-2:8025')[2] ?? '', / --from https:\/\/box-2:8025$/, 'without it, http is meant');
    const memory = linesOf([{ ...AWAY, copies: [], why: awayText({ cause: AwayCause.MEMORY, stores: [] }, { gatewayId: 'gw-2', incarnation: 7 }) }]);
    assert.equal(memory[2], 'twinpost rescue --give-up-memory --reason TEXT --from box-1:8025');
  });

  test('is red on a terminal only if it asks for a person', () => {
    const colours = (waiting: WaitingPartitionAnswer): boolean => linesOf([waiting], 0, 'http://x', true).join('').includes('\u001b[31m');
    assert.deepEqual([colours(AWAY), colours(LEASE)], [true, false]);
  });

  test('has nothing in it that moves the cursor', () => {
    const hostile = '\u001b[2J';
    const lines = linesOf([{ partition: hostile, owner: hostile, waits_for: hostile, copies: [hostile], begins_empty: true, why: `${hostile} twinpost rescue ${hostile}`, since: NOW }]);
    assert.equal(lines.length, 3);
    assert.ok(!lines.join('').includes('\u001b'));
  });
});

test('without the register, and without a partition that began empty, nothing is said of them', () => {
  assert.doesNotMatch(shown(sample.STATUS), /register|LOST|WAITING/);
});

describe('comparing a mirror with its gateway', () => {
  const COPY: StorePartitionAnswer = {
    partition: 'gw-1/1', owner: 'gw-1', holder: 'gw-1', holder_incarnation: 7, epoch: 2, member: true, term: 1, complete: true,
    number: 18_000, digest: 'aa', messages: 40, bytes: 1,
  };

  test('judges at one number only', () => {
    assert.equal(judgeMirror(ROW, COPY), 'same');
    assert.equal(judgeMirror(ROW, { ...COPY, number: 17_999, digest: 'zz' }), 'moving');
    assert.equal(judgeMirror({ ...ROW, digest: null }, COPY), 'moving');
    assert.equal(judgeMirror(ROW, { ...COPY, digest: 'ab' }), 'DIFFERS');
    assert.equal(judgeMirror(ROW, { ...COPY, messages: 41 }), 'DIFFERS');
    assert.equal(judgeMirror(ROW, undefined), 'MISSING');
  });

  test('does not complain of a mirror that is known to be behind', () => {
    assert.equal(judgeMirror({ ...ROW, sync: 'NG' }, undefined), 'NG');
    assert.equal(judgeMirror({ ...ROW, sync: 'RESYNC' }, { ...COPY, number: 5 }), 'filling');
  });

  test('counts what is wrong in its last line', () => {
    const wrong = { gateway: 'gw-1', row: ROW, copy: undefined, verdict: 'MISSING' } as const;
    const same = { gateway: 'gw-1', row: ROW, copy: COPY, verdict: 'same' } as const;
    assert.equal(verifyLines([wrong, same], [wrong], false).at(-1), '1 of 2 mirrors are the same as their gateway; 1 WRONG');
    assert.deepEqual(verifyLines([same], [], false), ['1 of 1 mirrors are the same as their gateway']);
  });
});

const GOLDEN = `ERROR gw-1: 22 partitions can not be served: all copies that count are away (and 24 more, below)

gw-1 on box-1: twinpost 0.2.0, pid 42, up 2h, incarnation 7
  mail        READY
  mirrors     DEGRADED since 2027-01-15T07:58:30Z (1min30s): NodeC: ECONNRESET
  received    20,000   delivered 19,000   deferred 3   bounced 2   expired 1   rejected 0
  queued      41 messages, 4KiB in 40 queues of 16 partitions; memory 1MiB of 1GiB
  reception   TLS 1,200, 4 failed   look-ups 30
  BLOCKLIST   no answer of use, clients are taken as if they were not on it: zen.example; the log says why
  STALE       what is on disk can't be used, and what was read before stays: certificate, users; the log says why
  busiest     client 192.0.2.7 85%, 192.0.2.8 10%   sender <> 46%   of 13,000 messages accepted in 1min15s
  CERTIFICATE for smtp ends 2027-01-18T08:00:00Z: renew it
  NEXT HOP    mx.example:25 can't be reached for 40s, 1,579 to deliver, 25% of the memory, next try in 25s: 4.4.1 ECONNREFUSED
                and 2 more next hops
  MX          mx.stranger.example:25 and 2 more can't be reached for 6min40s, 4 to deliver: ETIMEDOUT
                and 11 more by MX: twinpost queue summary says what waits, and why
  HOOK        rspamd fails for 9s: no answer
  DEFERRED    queue late.example: its next hop puts mail off, 700 of 900 messages deferred; last: 451 4.7.1 later; for 1min10s, 13% of the memory, next try in 1min30s
  GROWING     queue big.example grows, 800 messages; for 5s
                and 3 more queues
  SOURCE      2001:db8::10 (mail.example in EHLO): no mail by MX leaves from it: its PTR record says nothing
  SUSPENDED   out since 2027-01-15T07:50:00Z (10min), until 2027-01-15T09:00:00Z by ann: their server is down; 1,200 messages wait; not in the register yet
  REFUSING    * since 2027-01-15T07:59:00Z (1min) by bob: moves \\u001b[2J; new mail gets 452
  HELD        3 of 41 messages wait for an operator: twinpost queue summary says in which queues; queue release lets it go, but where no route leads out: there add one with the name of the queue, or queue rebind
  DELAYED     1 of 41 messages waits for the time that an operator has set: queue release lets it go before
  ORDER       bounce --domain shop.example (gw-1-7-3) since 2027-01-15T07:59:45Z (15s) by ann: gone \\u001b[2J; 1,504 messages matched, 0 ended; its grace ends 2027-01-15T08:00:45Z, in 45s: twinpost queue orders --cancel gw-1-7-3 takes it back
  ORDER       delete --client 192.0.2.7 (gw-2-7-1) since 2027-01-15T07:45:00Z (15min) by bob: flood; left in the register for mail of gateways that did not answer, 4 ended here, until 2027-01-15T09:00:00Z
  register    AWAY: etcd-1: connection refused; mail of partitions held here is taken and delivered as long as all of its copies answer; until the register is back nobody takes a partition over, no copy is left out or added, and what starts waits for it
  REFUSED     new mail of 1 of 40 routes: strict.example (recovering for 30s)
  rescued     3 partitions of other gateways delivered here
  WAITING     23 partitions are not served
                gw-1/3, gw-1/4: COPIES AWAY for 30s; every copy that counts is at stores that do not answer this gateway (NodeD, NodeE). It goes on by itself when one of them answers with what it had. If none ever will, give these copies up:
                  twinpost rescue --give-up NodeD --give-up NodeE --reason TEXT --from box-1:8025
                gw-2/5: lease for 5s; its lease runs
                and 20 more
  LOST        1 partition began empty, because every copy was lost or given up
  came back   40 messages of copies that had been given up; 3 of them may be delivered twice
  INSECURE    store links outside loopback run without TLS (insecure: true)
  UNREACHED   NodeF on box-6: named by the register, not reached since 2027-01-15T07:59:48Z (12s): no path to it stands

Store  Host   State  Paths           Lease  Failovers  Sync  Resync  NG  Lag, changes
NodeB  box-2  up     A RUN, B READY  9.4 s          1    39       1   0      5 (2KiB)
NodeC  box-3  DOWN   A NG, B NG          -          0     0       0   1      900 (0B)

Partition  Store  Network A  Network S  Sync        Member  Epoch  Transactions    Lag, changes    Since  Cause
gw-1/1     NodeB  RUN        READY      SYNC        yes         2         18000               -       1h  queue created
           NodeC  NG         NG         NG          no          2             -  900 (120.6KiB)  1min30s  ECONNRESET \\u001b[2J
gw-2/2     NodeD  NG         RUN        RESYNC 42%  no          2          3000        5 (2KiB)       2s  refill begins
-- 2 of 16 partitions, those that need a look first; --all shows every one

Store  Host   Admin       Version  State  Up  Config                                   Partitions  Entries        Memory  Gateways
NodeB  box-2  box-2:9401  0.2.0    ready  1d  0a1b2c3d4e5f since 2027-01-14T08:00:00Z          80   12,345  2MiB of 1GiB  gw-1, gw-2 (away)  NOT IN THE REGISTER

PARTIAL: gw-2: no answer from 127.0.0.1:8026: connection refused
PARTIAL: gw-3: not asked: nobody that answers knows its admin address`;

test('what has just begun is told without a number', () => {
  const outages = { next_hops: [{ relay: 'mx.example:25', since: NOW, waiting: 3, why: 'ECONNREFUSED' }], next_hops_down: 1, next_hops_denied: 0, mx: [], mx_down: 0, mx_waiting: 0, hooks: [] };
  assert.match(shown({ ...STATUS, outages }), /mx\.example:25 can't be reached for less than 1s, 3 to deliver/);
});

test('partitions that a rescuer still holds, and copies on the machine of their gateway, stand with what comes of it', () => {
  const text = shown({ ...STATUS, partitions_recovering: 16, awaited_back: { partitions: 15, holders: ['gw-2', 'gw-3'], seconds: 7 }, partitions_on_own_host: 1 });
  assert.match(text, /^ {2}queued .*, 1 partition still coming back from the stores; /m);
  assert.match(text, /^ {2}rescued {5}15 partitions held by gw-2, gw-3, handed back in 7 s$/m);
  assert.match(text, /^ {2}OWN HOST {4}1 partition has a copy at a store on the host of this gateway, lost with it: /m);
});

test('partitions that began empty stand with their names, when it was, and by whose order', () => {
  const lost = Array.from({ length: 10 }, (_, i) => ({ partition: `gw-3/${String(i)}`, at: NOW - 7200, who: 'ann', reason: 'fire \u001b[2J' }));
  const text = shown({ ...STATUS, losses: 11, lost: [...lost, { partition: 'gw-1/9', at: NOW - 30, who: '', reason: '' }] });
  assert.match(text, new RegExp(`^  LOST        11 partitions began empty, because every copy was lost or given up\n {16}${lost.slice(0, 8).map(({ partition }) => partition).join(', ')} and 2 more: `
    + '2027-01-15T06:00:00Z, 2h ago, by order of ann: fire \\\\u001b\\[2J\n {16}gw-1/9: 2027-01-15T07:59:30Z, 30s ago, nobody ordered it: ', 'm'));
});

test('a gateway that has a queue twice, as of a partition that it took over, says of which partition each line is', () => {
  const queues = ['gw-1/1', 'gw-2/1'].map((partition) => ({ queue_name: 'defer', queue_class: 'mail', partition, problem: 'deferred' as const, since: NOW, messages: 50, deferred: 50, bytes: 1, last_error: '' }));
  const hurtingOf = (shown: typeof queues): readonly string[] => {
    const status = { ...sample.STATUS, hurting: { counts: { deferred: shown.length, growing: 0, slow: 0 }, queues: shown } };
    const lines = statusLines({ gateways: [{ status, rows: [], address: 'http://127.0.0.1:1' }], stores: [], missing: [], all: false }, NOW_MS, false);
    return lines.filter((line) => line.startsWith('  DEFERRED')).map((line) => line.slice(14, line.indexOf(':')));
  };
  assert.deepEqual([hurtingOf(queues), hurtingOf(queues.slice(1))], [['queue defer of gw-1/1', 'queue defer of gw-2/1'], ['queue defer']]);
});
