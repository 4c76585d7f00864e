/** What `twinpost status` shows, letter by letter; and what comparing a mirror with its gateway ends in. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StatusAnswer, StoreQueueAnswer, TableRowAnswer } from '../../../src/cli/admin-client.js';
import { statusLines, watchLine } from '../../../src/cli/status-text.js';
import { judgeMirror, verifyLines } from '../../../src/cli/store-verify.js';
import { PROTOCOL_VERSION } from '../../../src/protocol/versions.js';

const NOW_MS = 1_800_000_000_000;
const NOW = NOW_MS / 1000;

const ROW: TableRowAnswer = {
  queue_name: 'hitachi.com', queue_class: 'mail', owner: 'gw-1', birth: 7, serial: 1, store: 'NodeB', network_a: 'RUN', network_s: 'READY', sync: 'SYNC', progress: null, member: true, epoch: 2,
  transactions: 18_000, last_transaction: 18_000, digest: 'aa', messages: 40, lag_messages: 0, lag_bytes: 0, since: NOW - 3600, cause: 'queue created',
};
const STATUS: StatusAnswer = {
  gateway: 'gw-1', host: 'box-1', version: '0.2.0', incarnation: 7, pid: 42, uptime_seconds: 7200, ready: true, not_ready_reason: '', degraded_since: NOW - 90, degraded_cause: 'NodeC: ECONNRESET', insecure: true,
  received: 20_000, delivered: 19_000, deferred: 3, bounced: 2, expired: 1, rejected: 0, queues: 40, queues_recovering: 0, queues_held: 22,
  held: [{ queue_name: 'late.example', owner: 'gw-1', waits_for: ['NodeE'], why: 'a store is missing', since: NOW - 30 }, { queue_name: 'theirs.example', owner: 'gw-2', waits_for: [], why: 'its lease runs', since: NOW - 5 }], queues_rescued: 3, queued_messages: 41, queued_bytes: 4096, control_records: 0, control_copies_in_sync: 0, memory_used_bytes: 2 ** 20, memory_limit_bytes: 2 ** 30,
  stores: [
    { store: 'NodeB', host: 'box-2', protocol: PROTOCOL_VERSION, up: true, drained: false, drained_since: null, paths: [{ path: 'A', state: 'RUN' }, { path: 'B', state: 'READY' }], queues_sync: 39, queues_resync: 1, queues_ng: 0, lag_messages: 5, lag_bytes: 2048, lease_left_ms: 9400, failovers: 1 },
    { store: 'NodeC', host: 'box-3', protocol: 0, up: false, drained: false, drained_since: null, paths: [{ path: 'A', state: 'NG' }, { path: 'B', state: 'NG' }], queues_sync: 0, queues_resync: 0, queues_ng: 1, lag_messages: 900, lag_bytes: 0, lease_left_ms: 0, failovers: 0 },
  ],
};
const ROWS: readonly TableRowAnswer[] = [
  ROW,
  { ...ROW, store: 'NodeC', network_a: 'NG', network_s: 'NG', sync: 'NG', member: false, transactions: null, lag_messages: 900, lag_bytes: 123_456, since: NOW - 90, cause: 'ECONNRESET \u001b[2J' },
  { ...ROW, queue_name: 'xxxxxx.com', queue_class: 'bounce', serial: 2, store: 'NodeD', network_a: 'NG', network_s: 'RUN', sync: 'RESYNC', progress: 0.429, member: false, transactions: 3000, lag_messages: 5, lag_bytes: 2048, since: NOW - 2, cause: 'refill begins' },
];

describe('twinpost status', () => {
  test('shows the table of the paper, and all that an operator must know', () => {
    const lines = statusLines({
      gateways: [{ status: STATUS, rows: ROWS }],
      stores: [{ status: { store_id: 'NodeB', host: 'box-2', version: '0.2.0', pid: 9, uptime_seconds: 86_400, ready: true, insecure: false, queues: 80, messages: 12_345, memory: { used_bytes: 2 ** 21, limit_bytes: 2 ** 30 }, gateways: [{ id: 'gw-1', active: true }, { id: 'gw-2', active: false }] }, address: 'http://box-2:9401' }],
      missing: [{ id: 'gw-2', kind: 'gateway', address: '127.0.0.1:8026', why: 'connection refused', refused: false }, { id: 'gw-3', kind: 'gateway', address: '', why: 'its admin address is in no configuration', refused: false }],
      all: false,
    }, NOW_MS, false);
    assert.deepEqual(lines, GOLDEN.split('\n'));
  });

  test('colours words on a terminal only', () => {
    const picture = { gateways: [{ status: STATUS, rows: ROWS }], stores: [], missing: [], all: true };
    assert.ok(!statusLines(picture, NOW_MS, false).join('\n').includes('\u001b'));
    assert.ok(statusLines(picture, NOW_MS, true).join('\n').includes('\u001b[32mREADY'));
  });

  test('is a line a gateway in a pipe', () => {
    assert.equal(watchLine({ status: STATUS, rows: [] }, NOW_MS), '2027-01-15T08:00:00.000Z gw-1 ready degraded received=20000 delivered=19000 queued=41 lag=900 down=NodeC drained=-');
    assert.match(watchLine({ status: { ...STATUS, ready: false, not_ready_reason: 'recovering', degraded_since: null, stores: [] }, rows: [] }, NOW_MS), / not-ready\(recovering\) complete .* down=- drained=-$/);
  });
});

const [first, ...rest] = STATUS.stores;
assert.ok(first !== undefined);
const withStore = (more: Partial<typeof first>): StatusAnswer => ({ ...STATUS, stores: [{ ...first, ...more }, ...rest] });
const shown = (status: StatusAnswer): string => statusLines({ gateways: [{ status, rows: [] }], stores: [], missing: [], all: true }, NOW_MS, false).join('\n');

test('a store that speaks an older version of the protocol is shown with it', () => {
  assert.match(shown(withStore({ protocol: 1 })), /^NodeB +box-2 +up, protocol 1 +A RUN/m);
  assert.doesNotMatch(shown(STATUS), /protocol/);
});

test('a gateway that does not say its release is shown without', () => {
  const { version, ...before } = STATUS;
  assert.equal(version, '0.2.0');
  assert.match(shown(before), /^gw-1 on box-1: pid 42, up 2h/m);
});

describe('a drained store', () => {

  test('is named with the time since then, if that is known', () => {
    assert.match(shown(withStore({ drained: true, drained_since: NOW - 7200 })), /^NodeB +box-2 +up, drained 2h ago +A RUN/m);
    assert.match(shown(withStore({ drained: true, up: false })), /^NodeB +box-2 +DOWN, drained +A RUN/m);
    assert.doesNotMatch(shown(STATUS), /drained/);
  });

  test('is named in the line for a pipe', () => {
    assert.match(watchLine({ status: withStore({ drained: true }), rows: [] }, NOW_MS), / down=NodeC drained=NodeB$/);
  });
});

describe('mail that is held', () => {
  test('is shown with the stores it waits for, unless a command that names them is to be copied', () => {
    const shown = (why: string): string => statusLines({ gateways: [{ status: { ...STATUS, held: [{ queue_name: 'q1', owner: 'gw-1', waits_for: ['NodeE'], why, since: NOW - 30 }] }, rows: [] }], stores: [], missing: [], all: true }, NOW_MS, false).join('\n');
    assert.match(shown('a store is missing'), /^ +q1 for 30s, a store is missing: NodeE$/m);
    assert.match(shown('NodeE came back empty: twinpost rescue --force --queue q1 --missing NodeE --reason TEXT'), /^ +q1 for 30s, NodeE came back empty: .* --reason TEXT$/m);
  });
});

describe('comparing a mirror with its gateway', () => {
  const COPY: StoreQueueAnswer = { queue_name: 'hitachi.com', class: 'mail', owner: 'gw-1', birth: 7, serial: 1, holder: 'gw-1', role: 'member', epoch: 2, number: 18_000, digest: 'aa', messages: 40, bytes: 1 };

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

const GOLDEN = `gw-1 on box-1: twinpost 0.2.0, pid 42, up 2h, incarnation 7
  mail        READY
  mirrors     DEGRADED since 2027-01-15T07:58:30Z (1min30s): NodeC: ECONNRESET
  received    20,000   delivered 19,000   deferred 3   bounced 2   expired 1   rejected 0
  queued      41 messages, 4KiB in 40 queues; memory 1MiB of 1GiB
  rescued     3 queues of other gateways delivered here
  HELD        mail of 22 queues waits; start the stores that are missing, or go on without them: twinpost rescue --force
                late.example for 30s, a store is missing: NodeE
                theirs.example of gw-2 for 5s, its lease runs
                and 20 more
  INSECURE    store links outside loopback run without TLS (insecure: true)

Store  Host   State  Paths           Lease  Failovers  Sync  Resync  NG       Lag
NodeB  box-2  up     A RUN, B READY  9.4 s          1    39       1   0  5 (2KiB)
NodeC  box-3  DOWN   A NG, B NG          -          0     0       0   1  900 (0B)

Queue                Store  Network A  Network S  Sync        Member  Epoch  Transactions             Lag    Since  Cause
hitachi.com          NodeB  RUN        READY      SYNC        yes         2         18000               -       1h  queue created
                     NodeC  NG         NG         NG          no          2             -  900 (120.6KiB)  1min30s  ECONNRESET \\u001b[2J
xxxxxx.com (bounce)  NodeD  NG         RUN        RESYNC 42%  no          2          3000        5 (2KiB)       2s  refill begins
-- 2 of 40 queues, those that need a look first; --all shows every one

Store  Host   Admin       Version  State  Up  Queues  Entries        Memory  Gateways
NodeB  box-2  box-2:9401  0.2.0    ready  1d      80   12,345  2MiB of 1GiB  gw-1, gw-2 (away)

PARTIAL: gw-2: no answer from 127.0.0.1:8026: connection refused
PARTIAL: gw-3: not asked: its admin address is in no configuration`;
