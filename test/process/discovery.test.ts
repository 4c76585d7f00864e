/** From any one address the command line finds all gateways and stores, and says who did not answer. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';

import { HOST, startCluster, until } from './cluster.js';
import type { Cluster } from './cluster.js';
import { ENTRY } from './entry.js';
import { SmtpTalk } from './smtp-talk.js';

const VERSION = (JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string }).version;

interface Run {
  readonly code: number | null;
  readonly lines: readonly string[];
  readonly error: string;
}

function twinpost(...args: readonly string[]): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [ENTRY, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let error = '';
    child.stdout.on('data', (bytes: Buffer) => { out += bytes.toString(); });
    child.stderr.on('data', (bytes: Buffer) => { error += bytes.toString(); });
    child.once('error', reject);
    child.once('close', (code) => { resolve({ code, lines: out.split('\n').filter((line) => line !== ''), error }); });
  });
}

type Row = Readonly<Record<string, unknown>>;

function rowsOf({ lines }: Run): readonly Row[] {
  return lines.map((line) => JSON.parse(line) as Row);
}

/** How many rows have each value of a field. */
function countBy(rows: readonly Row[], field: string): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const row of rows) counts[String(row[field])] = (counts[String(row[field])] ?? 0) + 1;
  return counts;
}

async function send(port: number, count: number): Promise<void> {
  const talk = await SmtpTalk.start(port);
  for (let i = 0; i < count; i++) {
    for (const line of ['MAIL FROM:<a@example.com>', 'RCPT TO:<b@example.net>', 'DATA']) await talk.say(line);
    assert.match(await talk.say('Subject: hello\r\n\r\nhello\r\n.'), /^250 /);
  }
  talk.close();
}

/** Of each gateway, by default; each has a copy at both stores. */
const PARTITIONS = 16;

describe('discovery', () => {
  let cluster: Cluster;
  let storeAdmins: readonly string[];
  let gatewayAdmins: readonly string[];

  before(async () => {
    // Port 1 is nobody's: all mail stays.
    cluster = await startCluster({ gateways: 2, sink: false, routes: [{ domain: '*', via: `smtp://${HOST}:1` }] });
    gatewayAdmins = cluster.gateways.map((gateway) => `${HOST}:${gateway.adminPort}`);
    storeAdmins = cluster.stores.map(({ name }) => (JSON.parse(readFileSync(path.join(cluster.folder, `${name}.yaml`), 'utf8')) as { store: { admin: { listen: string } } }).store.admin.listen);
    const [first, second] = cluster.gateways;
    await send(first?.smtpPort ?? 0, 3);
    await send(second?.smtpPort ?? 0, 2);
  });
  after(() => cluster.stop());

  test('finds everyone from a store and from a gateway', async () => {
    for (const from of [...storeAdmins, ...gatewayAdmins]) {
      const status = await twinpost('status', '--json', '--from', from);
      assert.equal(status.code, 1, 'no next hop can be reached');
      assert.deepEqual(countBy(rowsOf(status), 'kind'), { worst: 1, gateway: 2, store: 2, mirror: 2 * 2 * PARTITIONS }, from);
      const processes = rowsOf(status).filter((row) => row['kind'] === 'gateway' || row['kind'] === 'store');
      assert.deepEqual(countBy(processes, 'version'), { [VERSION]: 4 });
    }
    const text = await twinpost('status', '--from', storeAdmins[0] ?? '');
    assert.ok(!text.lines.some((line) => line.startsWith('PARTIAL')), text.lines.join('\n'));
  });

  test('merges the queues and the messages of all gateways', async () => {
    const from = storeAdmins[1] ?? '';
    const queues = rowsOf(await twinpost('queue', 'summary', '--json', '--from', from));
    assert.deepEqual(queues.map((row) => [row['gateway'], row['messages']]), [['gateway-1', 3], ['gateway-2', 2]]);
    const messages = rowsOf(await twinpost('queue', 'list', '--json', '--from', from));
    assert.deepEqual(countBy(messages, 'gateway'), { 'gateway-1': 3, 'gateway-2': 2 });
    const limited = rowsOf(await twinpost('queue', 'list', '--json', '--limit', '4', '--from', from));
    assert.equal(limited.length, 4);
  });

  test('keeps to one address when told to', async () => {
    const messages = rowsOf(await twinpost('queue', 'list', '--json', '--only', '--from', gatewayAdmins[1] ?? ''));
    assert.deepEqual(countBy(messages, 'gateway'), { 'gateway-2': 2 });
    const none = await twinpost('queue', 'list', '--json', '--only', '--from', storeAdmins[0] ?? '');
    assert.deepEqual([none.code, none.error], [1, 'twinpost: nobody in this group can answer that\n']);
  });

  test('shows what each store holds, and that mirrors hold what their gateways do', async () => {
    const held = rowsOf(await twinpost('store', 'status', '--json', '--from', gatewayAdmins[0] ?? ''));
    const each = 2 * PARTITIONS;
    assert.deepEqual(countBy(held, 'store'), { 'store-a': each, 'store-b': each });
    assert.deepEqual(countBy(held, 'owner'), { 'gateway-1': each, 'gateway-2': each });
    assert.deepEqual(countBy(held, 'member'), { true: 2 * each });
    const one = rowsOf(await twinpost('store', 'status', 'store-b', '--json', '--from', gatewayAdmins[0] ?? ''));
    assert.deepEqual(countBy(one, 'store'), { 'store-b': each });
    const verified = await twinpost('store', 'verify', '--all', '--json', '--from', gatewayAdmins[0] ?? '');
    assert.equal(verified.code, 0, verified.lines.join('\n'));
    assert.deepEqual(countBy(rowsOf(verified), 'verdict'), { same: 2 * each });
  });

  test('marks what a gateway that is away leaves out, and exits with 3', async () => {
    await cluster.gateways[1]?.gateway.kill();
    const gone = { partial: true, member: 'gateway-2', kind: 'gateway', address: gatewayAdmins[1] };
    for (const from of [gatewayAdmins[0] ?? '', storeAdmins[0] ?? '']) {
      const listed = await twinpost('queue', 'list', '--json', '--from', from);
      assert.equal(listed.code, 3);
      assert.deepEqual(countBy(rowsOf(listed), 'gateway'), { 'gateway-1': 3, undefined: 1 });
      // Its session may have run out meanwhile.
      const { how: why, error, links: _links, ...lost } = rowsOf(listed).at(-1) as Record<string, unknown>;
      assert.deepEqual(lost, gone);
      assert.match(`${String(why)}: ${String(error)}`, /^(?:silent: |away: no session .*; )connection refused$/);
      const shown = await twinpost('queue', 'summary', '--from', from);
      // Once its session has run out, the register says that it has none.
      const how = `: no answer from ${gatewayAdmins[1] ?? ''}: connection refused|: no session at the register, no answer: dead, or cut off; .*`;
      assert.match(shown.lines.at(-1) ?? '', new RegExp(`^PARTIAL: gateway-2(${how})$`));
      assert.equal(shown.code, 3);
    }
  });

  test('says which mirror is isolated, since when and why', async () => {
    await cluster.stores[0]?.kill();
    await until('the mirror is isolated', async () => (await cluster.table()).some((row) => row.sync === 'NG'));
    const { lines, code } = await twinpost('status', '--from', gatewayAdmins[0] ?? '');
    const text = lines.join('\n');
    assert.equal(code, 3);
    assert.match(text, /mirrors {5}DEGRADED since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \([^)]+\): store-a: \S+/);
    assert.match(text, /^gateway-1\/0 +store-a +NG +NG +NG +no +\d+ +- .*\n +store-b +RUN +READY +SYNC +yes/m);
    assert.match(text, new RegExp(`^PARTIAL: store-a: no answer from ${storeAdmins[0] ?? ''}: connection refused$`, 'm'));
  });

  test('fails when nobody who could answer does', async () => {
    await cluster.gateways[0]?.gateway.kill();
    const { code, error, lines } = await twinpost('queue', 'summary', '--from', storeAdmins[1] ?? '');
    assert.equal(code, 1);
    assert.equal(error, 'twinpost: nobody answered\n');
    assert.equal(lines.filter((line) => line.startsWith('PARTIAL')).length, 2);
  });
});
