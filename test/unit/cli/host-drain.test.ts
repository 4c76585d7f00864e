/** `twinpost host drain` at played gateways and stores: what is asked and ordered, what is said, and the exit code. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import yargs from 'yargs';
import type { StatusAnswer } from '../../../src/admin-api/gateway-answers.js';
import type { DrainAnswer } from '../../../src/admin-api/orders.js';
import { hostCommand } from '../../../src/cli/host-drain.js';
import { contextFor } from './played-context.js';
import * as sample from './sample-answers.js';

const DRAINED: DrainAnswer = { store: 'store-1', draining: true, mirrors: 0, stuck: 0, copies_missing: 0, kept: true };
const STORES = [1, 2, 3].map((n) => ({ ...sample.STORE, store: `store-${String(n)}`, host: `host-${String(n)}` }));
/** Somebody that nobody listens for. */
const DEAF = '127.0.0.1:1';

interface Played {
  /** Of gw-1 at host-1, and of gw-2 at host-2. */
  readonly statuses?: readonly Partial<StatusAnswer>[];
  /** Of gw-2, when it is asked again. */
  readonly later?: Partial<StatusAnswer>;
  /** What gw-1 and gw-2 know of the register. */
  readonly members?: readonly (readonly { readonly endpoint: string; readonly why: string }[])[];
  /** False: gw-1 has no link to store-1. */
  readonly isKnown?: boolean;
  /** What gw-2 says of store-1; each answer once, the last one for ever. */
  readonly drains?: readonly Partial<DrainAnswer>[];
  /** Who holds partitions that store-1 counts in. */
  readonly holders?: readonly string[];
  readonly others?: readonly { readonly id: string; readonly kind: 'gateway' | 'store'; readonly admin?: null; readonly away?: true }[];
}

interface Said {
  readonly code: number;
  readonly said: readonly string[];
  /** POST of an order, as its path and body. */
  readonly ordered: readonly string[];
}

async function listen(answer: (path: string, body: string) => object | undefined): Promise<{ address: string; close: () => void }> {
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (bytes: Buffer) => { body += bytes.toString(); });
    request.on('end', () => {
      const path = (request.url ?? '').replace('/api/v1/', '');
      const said = answer(path, request.method === 'POST' ? body : '');
      response.writeHead(said === undefined ? 404 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(said ?? { error: 'this gateway knows no store' }));
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { address: `127.0.0.1:${String((server.address() as AddressInfo).port)}`, close: () => { server.closeAllConnections(); server.close(); } };
}

async function run({ statuses = [], later, members: registers = [], isKnown = true, drains = [{}], holders = [], others = [] }: Played, ...more: readonly string[]): Promise<Said> {
  const ordered: string[] = [];
  const left = [...drains];
  const members: object[] = others.map((one) => ({ admin: DEAF, away: false, ...one }));
  let asked = 0;
  const gateway = (n: number) => (path: string, body: string): object | undefined => {
    const id = `gw-${String(n)}`;
    if (path === 'group') return { members: members.map((one) => ({ ...one, self: (one as { id: string }).id === id })) };
    if (path === 'register') return { members: registers[n - 1] ?? [] };
    if (path === 'status') {
      const rescues = n === 1 ? ['gw-2'] : ['gw-1'];
      return { ...sample.STATUS, gateway: id, host: `host-${String(n)}`, stores: STORES, rescues, ...statuses[n - 1], ...(n === 2 && asked++ > 0 ? later : {}) };
    }
    if (n === 1 && !isKnown) return undefined;
    if (body !== '') ordered.push(`${id} ${path} ${body.includes('"undo":true') ? 'undo' : 'drain'}`);
    if (n === 1) return DRAINED;
    const [drain = {}] = left;
    if (left.length > 1 && body === '') left.shift();
    return { ...DRAINED, ...drain };
  };
  const store = await listen((path) => (path.startsWith('group') ? { members: members.map((one) => ({ ...one, self: (one as { id: string }).id === 'store-1' })) } : {
    rows: holders.map((holder, i) => ({
      partition: `gw-9/${String(i)}`, owner: 'gw-9', holder, holder_incarnation: 1, epoch: 1, member: true, term: 1, complete: true, number: 1, digest: '', messages: 0, bytes: 0,
    })),
    next_cursor: null,
  }));
  const gateways = [await listen(gateway(1)), await listen(gateway(2))];
  gateways.forEach(({ address }, i) => members.push({ id: `gw-${String(i + 1)}`, kind: 'gateway', admin: address, away: false }));
  if (!others.some(({ kind }) => kind === 'store')) members.push({ id: 'store-1', kind: 'store', admin: store.address, away: false });
  const said: string[] = [];
  let code = -1;
  const cli = hostCommand(yargs([]), contextFor(said), (given) => { code = given; }).exitProcess(false).fail((_text, error) => { throw error; });
  try {
    await cli.parseAsync(['host', 'drain', 'host-1', '--reason', 'new kernel', '--from', gateways[1]?.address ?? '', ...more]);
  } finally {
    for (const one of [store, ...gateways]) one.close();
  }
  return { code, said, ordered };
}

const BOTH = ['gw-1 stores/store-1/drain drain', 'gw-2 stores/store-1/drain drain'];

describe('host drain', () => {
  test('says yes when every gateway has moved away what it has there, and tells how far it is only when it takes long', async () => {
    const moved = await run({ drains: [{ mirrors: 16 }, {}] });
    assert.deepEqual([moved.code, moved.said[0], [...moved.ordered].sort()], [0, 'yes: host-1 may be rebooted', BOTH]);
    assert.match(moved.said.at(-1) ?? '', /^ {2}when it is back: twinpost host drain host-1 --undo /);
    const slow = await run({ drains: [16, 16, 16, 16, 16, 15, 15, 0].map((mirrors) => ({ mirrors })) });
    assert.equal(slow.code, 0);
    assert.ok(slow.said[0]?.endsWith('copies still at store-1'), slow.said.join('\n'));
  });

  test('says no, and orders nothing, when something is missing', async () => {
    const { code, said, ordered } = await run({ statuses: [{}, { rescues: [] }] });
    assert.deepEqual([code, ordered], [1, []]);
    assert.match(said[0] ?? '', /^no: host-1 may not be rebooted: nobody delivers the mail of gw-1 meanwhile: /);
    assert.deepEqual(said.slice(1), ['  nothing was moved']);
  });

  test('says no when something has come to be missing meanwhile', async () => {
    const { code, said, ordered } = await run({ later: { ready: false, not_ready_reason: 'stopping' } });
    assert.deepEqual([code, ordered.length], [1, 2]);
    assert.match(said[0] ?? '', /no gateway at another host takes new mail \(gw-2: stopping\)$/);
  });

  test('believes of the register what gateways elsewhere reach of it', async () => {
    const members = (why: string) => ['127.0.0.1', '10.0.0.2', '10.0.0.3'].map((address, i) => ({ endpoint: `http://${address}:2379`, why: i === 2 ? why : '' }));
    assert.equal((await run({ members: [members('gone'), members('')] })).code, 0);
    const { code, said } = await run({ members: [members(''), members('gone')] });
    assert.deepEqual([code, said[0]], [1, 'no: host-1 may not be rebooted: the register would lose its majority: without http://127.0.0.1:2379 at host-1 1 of 3 members are left; no answer from http://10.0.0.3:2379: gone']);
  });

  test('asks nothing more of a gateway that does not know the store', async () => {
    const { code, ordered } = await run({ isKnown: false });
    assert.deepEqual([code, ordered], [0, BOTH.slice(1)]);
  });

  test('says no when copies can not leave, when time is up, and how to take it back', async () => {
    const stuck = await run({ drains: [{ mirrors: 2, stuck: 2 }] });
    assert.equal(stuck.code, 1);
    assert.match(stuck.said[0] ?? '', /^no: host-1 may not be rebooted: gw-2: 2 copies at store-1 CAN'T LEAVE: /);
    assert.match(stuck.said[1] ?? '', /--undo uses them again$/);
    const late = await run({ drains: [{ mirrors: 2 }] }, '--timeout', '1s');
    assert.deepEqual([late.code, late.said[0]], [1, 'no: host-1 may not be rebooted: gw-2: 2 copies still at store-1']);
  });

  test('says no while a gateway there has mail that no store elsewhere has, or a copy there counts for one that was not asked', async () => {
    const alone = await run({ statuses: [{ partitions_uncopied: 3 }] }, '--timeout', '1s');
    assert.deepEqual([alone.code, alone.said[0]], [1, 'no: host-1 may not be rebooted: gw-1 has mail in 3 partitions that no store at another host has whole']);
    const counts = await run({ holders: ['gw-9', 'gw-9'] }, '--timeout', '1s');
    assert.deepEqual([counts.code, counts.said[0]], [1, 'no: host-1 may not be rebooted: gw-9 counts on store-1 for 2 partitions']);
  });

  test('says yes to nobody when a gateway, or a store there that lives, did not answer', async () => {
    const silent = await run({ others: [{ id: 'gw-3', kind: 'gateway' }] });
    assert.deepEqual([silent.code, silent.said[0]], [3, 'not known: gw-3 did not answer; of those who did nobody needs host-1']);
    assert.match(silent.said.at(-1) ?? '', /^PARTIAL: gw-3: no answer from /);
    const store = await run({ others: [{ id: 'store-1', kind: 'store' }] });
    assert.equal(store.code, 3);
    const down = STORES.map((one) => ({ ...one, up: one.store !== 'store-1' }));
    const dead = await run({ others: [{ id: 'store-1', kind: 'store' }], statuses: [{ stores: down }, { stores: down }] });
    assert.equal(dead.code, 0, 'a dead store has nothing');
  });

  test('has stores used again by --undo, whoever of the group is away', async () => {
    const undone = await run({ drains: [{ draining: false }] }, '--undo');
    assert.deepEqual([undone.code, [...undone.ordered].sort()], [0, BOTH.map((line) => line.replace(/drain$/, 'undo'))]);
    assert.equal((await run({ others: [{ id: 'gw-3', kind: 'gateway' }] }, '--undo')).code, 3);
    assert.equal((await run({ drains: [{ draining: false, kept: false }] }, '--undo')).code, 1);
  });

  test('says that there is nothing to undo at a host without a store, and does not advise to', async () => {
    const statuses = [{ stores: STORES.slice(1) }, { stores: STORES.slice(1) }];
    const none = await run({ statuses }, '--undo', '--json');
    assert.deepEqual([none.code, none.ordered, none.said], [1, [], ['{"host":"host-1","undone":false,"stores":[]}', '! twinpost: nothing to undo: there is no store at host-1']]);
    const part = await run({ statuses, others: [{ id: 'gw-3', kind: 'gateway' }] }, '--undo');
    assert.deepEqual([part.code, part.said[0]], [3, '! twinpost: nothing to undo: there is no store at host-1 that those who answer know']);
    const moved = await run({ statuses });
    assert.deepEqual([moved.code, moved.said.filter((line) => line.includes('--undo'))], [0, []]);
  });

  test('answers a program in one object', async () => {
    const yes = JSON.parse((await run({}, '--json')).said.join('\n')) as Record<string, unknown>;
    assert.deepEqual([yes['host'], yes['may_reboot'], yes['reasons'], yes['stores']], ['host-1', true, [], ['store-1']]);
    const no = JSON.parse((await run({ statuses: [{}, { ready: false }] }, '--json')).said.join('\n')) as Record<string, unknown>;
    assert.deepEqual([no['may_reboot'], (no['reasons'] as string[]).length], [false, 1]);
  });

  test('does not know a host that nobody who answers is at, while somebody is missing', async () => {
    const asked = run({ statuses: [{ host: 'a', stores: [] }, { host: 'b', stores: [] }], others: [{ id: 'gw-3', kind: 'gateway' }] });
    await assert.rejects(asked, { exitCode: 3, message: "not known: nothing of those who answer is at a host 'host-1' (there are: a, b), and where these are nobody says: gw-3" });
  });

  test('does not ask where one is that never started', async () => {
    const asked = run({ statuses: [{ host: 'a', stores: [] }, { host: 'b', stores: [] }], others: [{ id: 'gw-3', kind: 'gateway', admin: null, away: true }] });
    await assert.rejects(asked, /nothing of this group is at a host 'host-1'; there are: a, b$/);
  });

  test('refuses a host that nobody is at, and to ask one address alone', async () => {
    await assert.rejects(run({ statuses: [{ host: 'a', stores: [] }, { host: 'b', stores: [] }] }), /^UsageError: nothing of this group is at a host 'host-1'; there are: a, b$|nothing of this group is at a host 'host-1'; there are: a, b$/);
    await assert.rejects(run({}, '--only'), /leave --only out/);
  });
});
