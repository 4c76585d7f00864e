/** What `twinpost status` shows, letter by letter; and what comparing a mirror with its gateway ends in. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HeldPartitionAnswer, StatusAnswer, TableRowAnswer } from '../../../src/admin-api/gateway-answers.js';
import type { StorePartitionAnswer, StoreStatusAnswer } from '../../../src/admin-api/store-answers.js';
import { fittingLines, statusLines, watchLine } from '../../../src/cli/status-text.js';
import { judgeMirror, verifyLines } from '../../../src/cli/store-verify.js';
import { forceCommands } from '../../../src/recovery/force.js';
import * as sample from './sample-answers.js';

const NOW_MS = 1_800_000_000_000;
const NOW = NOW_MS / 1000;

const ROW: TableRowAnswer = {
  partition: 'p1', owner: 'gw-1', birth: 7, serial: 1, store: 'NodeB', network_a: 'RUN', network_s: 'READY', sync: 'SYNC', progress: null, member: true, epoch: 2,
  transactions: 18_000, last_transaction: 18_000, digest: 'aa', messages: 40, lag_messages: 0, lag_bytes: 0, since: NOW - 3600, cause: 'queue created',
};
const HELD: HeldPartitionAnswer = { partition: 'p3', owner: 'gw-1', id: 'gw-1/7/3', state: 'waiting', messages: 1200, waits_for: ['NodeE'], why: 'a store is missing', since: NOW - 30 };
const STATUS: StatusAnswer = {
  ...sample.STATUS, routes: 40, routes_refused: [{ route: 'strict.example', reason: 'recovering', since: NOW - 30 }], degraded: true, degraded_since: NOW - 90, degraded_cause: 'NodeC: ECONNRESET', insecure: true,
  received: 20_000, delivered: 19_000, deferred: 3, bounced: 2, expired: 1, queues: 40, partitions: 16, partitions_held: 22,
  held: [HELD, { ...HELD, partition: 'p1', owner: 'gw-2', id: 'gw-2/3/1', messages: null, waits_for: [], why: 'its lease runs', since: NOW - 5 }],
  partitions_rescued: 3, queued_messages: 41, queued_bytes: 4096, memory_used_bytes: 2 ** 20,
  stores: [
    sample.STORE,
    { ...sample.STORE, store: 'NodeC', host: 'box-3', protocol: 0, up: false, paths: [{ path: 'A', state: 'NG', since: 0 }, { path: 'B', state: 'NG', since: 0 }], partitions_sync: 0, partitions_resync: 0, partitions_ng: 1, lag_messages: 900, lag_bytes: 0, lease_left_ms: 0, failovers: 0 },
  ],
};
const STORE_STATUS: StoreStatusAnswer = {
  role: 'store', store_id: 'NodeB', host: 'box-2', version: '0.2.0', pid: 9, boot_id: '00', uptime_seconds: 86_400, ready: true, stopping: false, insecure: false, ports: [9400], partitions: 80, messages: 12_345, changes: 0,
  memory: { used_bytes: 2 ** 21, live_bytes: 0, granted_bytes: 0, accept_bytes: 2 ** 29, limit_bytes: 2 ** 30 },
  gateways: [{ id: 'gw-1', incarnation: 7, active: true, granted_bytes: 0, connections: [] }, { id: 'gw-2', incarnation: 7, active: false, granted_bytes: 0, connections: [] }],
};
const ROWS: readonly TableRowAnswer[] = [
  ROW,
  { ...ROW, store: 'NodeC', network_a: 'NG', network_s: 'NG', sync: 'NG', member: false, transactions: null, lag_messages: 900, lag_bytes: 123_456, since: NOW - 90, cause: 'ECONNRESET \u001b[2J' },
  { ...ROW, partition: 'p2', serial: 2, store: 'NodeD', network_a: 'NG', network_s: 'RUN', sync: 'RESYNC', progress: 0.429, member: false, transactions: 3000, lag_messages: 5, lag_bytes: 2048, since: NOW - 2, cause: 'refill begins' },
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
    assert.equal(watchLine({ status: STATUS, rows: [], address: '' }, NOW_MS), '2027-01-15T08:00:00.000Z gw-1 ready degraded received=20000 delivered=19000 queued=41 lag=900 refused=1 down=NodeC drained=- held=22');
    assert.match(watchLine({ status: { ...STATUS, ready: false, not_ready_reason: 'recovering', degraded_since: null, stores: [] }, rows: [], address: '' }, NOW_MS), / not-ready\(recovering\) complete .* down=- drained=- held=22$/);
  });
});

const [first, ...rest] = STATUS.stores;
assert.ok(first !== undefined);
const withStore = (more: Partial<typeof first>): StatusAnswer => ({ ...STATUS, stores: [{ ...first, ...more }, ...rest] });
const shown = (status: StatusAnswer): string => statusLines({ gateways: [{ status, rows: [], address: 'http://box-1:8025' }], stores: [], missing: [], all: true }, NOW_MS, false).join('\n');

test('a store that speaks an older version of the protocol is shown with it', () => {
  assert.match(shown(withStore({ protocol: 1 })), /^NodeB +box-2 +up, protocol 1 +A RUN/m);
  assert.doesNotMatch(shown(STATUS), /protocol/);
});

test('a partition of another gateway is shown with its owner, for the partitions of a group have the same names', () => {
  const rows = [ROW, { ...ROW, owner: 'gw-2' }, { ...ROW, owner: 'gw-2', partition: 'p4', serial: 4 }];
  const lines = statusLines({ gateways: [{ status: STATUS, rows, address: 'http://box-1:8025' }], stores: [], missing: [], all: true }, NOW_MS, false);
  const from = lines.findIndex((line) => line.startsWith('Partition '));
  assert.deepEqual(lines.slice(from + 1, from + 4).map((line) => line.split(/ {2,}/, 1)[0]), ['p1', 'p1 of gw-2', 'p4 of gw-2']);
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
    assert.match(watchLine({ status: withStore({ drained: true }), rows: [], address: '' }, NOW_MS), / down=NodeC drained=NodeB held=22$/);
  });
});

describe('mail that is held', () => {
  const COMMAND = 'twinpost rescue --force --partition p3 --missing NodeB --reason TEXT';
  const QUEUE = { name: 'p3', ownerId: 'gw-1' };
  /** As it is to be typed. */
  const forceOf = (store: string): string => `twinpost rescue --force --partition p3 --owner gw-1 --missing ${store} --reason TEXT --from box-1:8025`;
  /** The lines of it, without their indentation. */
  const heldLines = (...held: readonly HeldPartitionAnswer[]): string[] => {
    const lines = shown({ ...STATUS, partitions_held: held.length, held }).split('\n');
    const from = lines.findIndex((line) => line.startsWith('  HELD'));
    return lines.slice(from, lines.findIndex((line) => line.startsWith('  INSECURE'))).map((line) => line.trim());
  };

  test('is shown with the stores it waits for, unless a command that names them is to be copied', () => {
    assert.equal(heldLines(HELD).at(-1), 'p3: waiting for 30s, 1,200 messages at the stores; a store is missing: NodeE');
    assert.equal(heldLines({ ...HELD, state: 'came back empty', waits_for: ['NodeB'], messages: 1, why: `NodeB came back empty: ${COMMAND}` }).at(-2), 'p3: came back empty for 30s, 1 message at the stores; NodeB came back empty:');
  });

  test('asks for stores to be started where one can not be reached, and for nothing where they all answer', () => {
    assert.deepEqual(heldLines(HELD, { ...HELD, waits_for: ['NodeC', 'NodeB'] }).slice(0, 2).map((line) => line.replace(/^HELD +/, 'HELD ')), ['HELD mail of 2 partitions waits; start NodeC, NodeE, or go on without, each partition by a command as:', forceOf('NodeE')]);
    assert.match(heldLines({ ...HELD, waits_for: ['NodeC', 'NodeB', 'NodeE'] })[0] ?? '', /; start NodeC, NodeE, or go on without:$/);
    for (const state of ['came back empty', 'held elsewhere', 'all gone', 'no survivor']) assert.match(heldLines({ ...HELD, state, waits_for: ['NodeB'], why: `that is so: ${COMMAND}` })[0] ?? '', /^HELD +mail of 1 partition waits$/);
    assert.match(heldLines({ ...HELD, waits_for: [], why: 'another process has it' })[0] ?? '', /waits$/);
    assert.match(heldLines({ ...HELD, state: 'stranded', waits_for: [''], why: 'only partly back' })[0] ?? '', /waits$/, 'a store without a name is none');
  });

  test('that no store has told of is not to be forced, for nothing of it is there', () => {
    assert.deepEqual(heldLines({ ...HELD, state: 'unknown', messages: null, why: 'NodeE was a member at epoch 4', since: null }).map((line) => line.replace(/ +/, ' ')), ['HELD mail of 1 partition waits; start NodeE', 'p3: unknown; NodeE was a member at epoch 4: NodeE']);
  });

  test('that no store takes has all stores in its reason, and nothing is to be forced', () => {
    assert.deepEqual(heldLines({ ...HELD, state: 'no store free', why: 'no store takes a copy: NodeE is silent; start NodeE' }).map((line) => line.replace(/ +/, ' ')), ['HELD mail of 1 partition waits; start NodeE', 'p3 (gw-1/7/3): no store free for 30s, 1,200 messages in memory; no store takes a copy: NodeE is silent; start NodeE']);
  });

  test('is shown without a time when it is not known since when', () => {
    assert.equal(heldLines({ ...HELD, since: null }).at(-1), 'p3: waiting, 1,200 messages at the stores; a store is missing: NodeE');
  });

  test('has each command in a line of its own, whole, that can be copied: with the gateway that it is for', () => {
    const empty = { ...HELD, state: 'came back empty', waits_for: ['NodeB'], why: `NodeB came back empty: ${forceCommands(QUEUE, ['NodeB'])}` };
    const silent = { ...HELD, state: 'members silent', waits_for: ['NodeC', 'NodeE'], why: `go on without: ${forceCommands(QUEUE, ['NodeC', 'NodeE'])}` };
    const of = (lines: readonly string[]): string[] => lines.filter((line) => /rescue --force|--from/.test(line));
    assert.deepEqual(of(heldLines(empty, empty)), [forceOf('NodeB'), forceOf('NodeB')]);
    assert.deepEqual(of(heldLines(silent)), [`${forceOf('NodeC')}; ${forceOf('NodeE')}`, `${forceOf('NodeC')}; ${forceOf('NodeE')}`], 'what to start, and the partition');
    assert.deepEqual(of(heldLines({ ...HELD, waits_for: [], why: 'another process has it' })), []);
    const other = statusLines({ gateways: [{ status: { ...STATUS, partitions_held: 1, held: [empty] }, rows: [], address: 'https://box-2:8025' }], stores: [], missing: [], all: true }, NOW_MS, false);
    assert.match(of(other)[0] ?? '', / --from https:\/\/box-2:8025$/, 'without it, http is meant');
  });

  test('in memory says so, and which partition it is: a restart would lose it', () => {
    for (const state of ['no survivor', 'members silent']) assert.match(heldLines({ ...HELD, state })[2] ?? '', new RegExp(`^p3 \\(gw-1/7/3\\): ${state} for 30s, 1,200 messages in memory; `));
    assert.match(heldLines({ ...HELD, state: 'stranded' })[2] ?? '', /: stranded for 30s, 1,200 messages; /, 'some here, some not');
  });

  test('tells two partitions of one name apart', () => {
    const names = heldLines(HELD, { ...HELD, id: 'gw-1/8/1' }, { ...HELD, partition: 'p4', id: 'gw-1/8/2' }).map((line) => line.split(':', 1)[0]);
    assert.deepEqual(names.slice(2), ['p3 (gw-1/7/3)', 'p3 (gw-1/8/1)', 'p4']);
    assert.match(heldLines({ ...HELD, owner: 'gw-2' }).at(-1) ?? '', /^p3 of gw-2: /);
  });

  test('has nothing in it that moves the cursor', () => {
    const hostile = '\u001b[2J';
    const lines = heldLines({ partition: hostile, owner: hostile, id: hostile, state: hostile, messages: 1, waits_for: [hostile], why: hostile, since: NOW });
    assert.equal(lines.length, 3);
    assert.ok(!lines.join('').includes('\u001b'));
  });
});

describe('comparing a mirror with its gateway', () => {
  const COPY: StorePartitionAnswer = { partition: 'p1', owner: 'gw-1', birth: 7, serial: 1, holder: 'gw-1', role: 'member', epoch: 2, members: [], number: 18_000, digest: 'aa', messages: 40, bytes: 1 };

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
  queued      41 messages, 4KiB in 40 queues of 16 partitions; memory 1MiB of 1GiB
  REFUSED     new mail of 1 of 40 routes: strict.example (recovering for 30s)
  rescued     3 partitions of other gateways delivered here
  HELD        mail of 22 partitions waits; start NodeE, or go on without:
                  twinpost rescue --force --partition p3 --owner gw-1 --missing NodeE --reason TEXT --from box-1:8025
                p3: waiting for 30s, 1,200 messages at the stores; a store is missing: NodeE
                p1 of gw-2: waiting for 5s; its lease runs
                and 20 more
  INSECURE    store links outside loopback run without TLS (insecure: true)

Store  Host   State  Paths           Lease  Failovers  Sync  Resync  NG  Lag, changes
NodeB  box-2  up     A RUN, B READY  9.4 s          1    39       1   0      5 (2KiB)
NodeC  box-3  DOWN   A NG, B NG          -          0     0       0   1      900 (0B)

Partition  Store  Network A  Network S  Sync        Member  Epoch  Transactions    Lag, changes    Since  Cause
p1         NodeB  RUN        READY      SYNC        yes         2         18000               -       1h  queue created
           NodeC  NG         NG         NG          no          2             -  900 (120.6KiB)  1min30s  ECONNRESET \\u001b[2J
p2         NodeD  NG         RUN        RESYNC 42%  no          2          3000        5 (2KiB)       2s  refill begins
-- 2 of 16 partitions, those that need a look first; --all shows every one

Store  Host   Admin       Version  State  Up  Partitions  Entries        Memory  Gateways
NodeB  box-2  box-2:9401  0.2.0    ready  1d          80   12,345  2MiB of 1GiB  gw-1, gw-2 (away)

PARTIAL: gw-2: no answer from 127.0.0.1:8026: connection refused
PARTIAL: gw-3: not asked: nobody that answers knows its admin address`;
