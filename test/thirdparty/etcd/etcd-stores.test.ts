/**
 * Stores and gateways that find each other in a real etcd, as real processes: no list of stores at the
 * gateway, none of gateways at the stores, one secret for all.
 */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import type { StatusAnswer, TablePageAnswer } from '../../../src/admin-api/gateway-answers.js';
import type { GroupAnswer } from '../../../src/admin-api/pages.js';
import { runSend } from '../../../src/load/run.js';
import type { SinkCounts } from '../../../src/sink/options.js';
import { Daemon, HOST, pause, until } from '../../process/cluster.js';
import {
  choosePorts, gatewayConfig, sinkConfig, storeConfig, storeId,
} from '../../process/cluster-config.js';
import type { Ports, Section } from '../../process/cluster-config.js';
import { ENTRY } from '../../process/entry.js';
import { makeFolder, removeFolder } from '../../unit/register/real-world.js';
import { EtcdCluster } from './etcd-cluster.js';

/** Of one store id with a session of 5 s: it is waited for twice that. */
const REFUSED_MS = 60_000;
/** Machines of tests are busy: what is to come within a second may take long. */
const SLOW_MS = 60_000;
const MIRROR = { lease: '4s', failover_timeout: '200ms', heartbeat: '50ms', replace_after: '2s' };
const PARTITIONS = 16;

const folder = makeFolder();
const daemons: Daemon[] = [];
let etcd: EtcdCluster;
let ports: Ports;
let gateway: Daemon;
let sent = 0;

before(async () => {
  etcd = await EtcdCluster.start(1);
  await etcd.isReady();
  ports = await choosePorts({ stores: 4 });
  const sink = daemon('sink', 'sink', sinkConfig({}, ports, folder), ports.sinkAdmin);
  sink.start();
  await sink.ready();
  gateway = daemon('gateway', 'gateway', gatewayFile(), ports.gateways[0]?.admin ?? 0);
});

after(async () => {
  for (const each of daemons.reverse()) await each.stop();
  await etcd.stop();
  removeFolder(folder);
});

function daemon(name: string, verb: string, config: Section, admin: number): Daemon {
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, JSON.stringify(config));
  const args = [ENTRY, verb, '--config', file];
  const made = new Daemon(name, args, join(folder, `${name}.log`), `http://${HOST}:${String(admin)}/readyz`);
  daemons.push(made);
  return made;
}

function register(): Section {
  return { etcd: etcd.endpoints, cluster: 'mail' };
}

function gatewayFile(): Section {
  const state = join(folder, 'state');
  mkdirSync(state);
  const config = gatewayConfig({ gateway: { mirror: MIRROR } }, ports, state, 0);
  const { gateway: section } = config as { gateway: Section };
  const { stores: _stores, ...rest } = section;
  return { register: register(), gateway: rest };
}

/** `as`: under the id of another store. */
function store(index: number, as = index): Daemon {
  const config = storeConfig({ store: { lease: MIRROR.lease } }, ports, index);
  const { store: section } = config as { store: Section };
  const { gateways, ...rest } = section;
  const secret = (gateways as readonly { readonly secret: string }[])[0]?.secret;
  const name = `process-${String(index)}`;
  const file = { register: register(), store: { ...rest, id: storeId(as), secret } };
  return daemon(name, 'store', file, adminOf(index));
}

function adminOf(index: number): number {
  return ports.stores[index]?.[2] ?? 0;
}

async function ask<T>(port: number, path: string): Promise<T> {
  return (await (await fetch(`http://${HOST}:${String(port)}${path}`)).json()) as T;
}

/** Of the store, as the gateway sees it. */
async function isUp(index: number): Promise<boolean> {
  const { stores } = await status();
  return stores.some(({ store: id, up }) => id === storeId(index) && up);
}

function status(): Promise<StatusAnswer> {
  return ask(ports.gateways[0]?.admin ?? 0, '/api/v1/status');
}

/** Ids of the stores that hold a copy of some partition, every partition having two in step. */
async function holders(): Promise<ReadonlySet<string> | undefined> {
  const { rows } = await ask<TablePageAnswer>(ports.gateways[0]?.admin ?? 0, '/api/v1/table');
  const members = rows.filter(({ member, sync }) => member && sync === 'SYNC');
  return members.length === 2 * PARTITIONS ? new Set(members.map((row) => row.store)) : undefined;
}

async function send(count: number): Promise<void> {
  const smtp = ports.gateways[0]?.smtp ?? 0;
  const log = join(folder, `send-${String(sent)}.jsonl`);
  const { accepted } = await runSend({
    host: HOST, port: smtp, count, connections: 5, mix: [{ bytes: 1000, weight: 1 }],
    domains: ['x.example'], resend: true, log,
  });
  assert.equal(accepted, count);
  sent += count;
  const isThere = async (): Promise<boolean> => (await ask<SinkCounts>(ports.sinkAdmin, '/counts')).messages >= sent;
  await until(`the sink has ${String(sent)}`, isThere, SLOW_MS, gateway);
}

function addresses({ members }: GroupAnswer, of: 'gateway' | 'store'): readonly (readonly [string, string | null])[] {
  return members.filter(({ kind }) => kind === of).map(({ id, admin }) => [id, admin] as const).sort();
}

test('a gateway that knows no store waits, its port closed, and says so', async () => {
  gateway.start();
  await until('it answers', async () => (await status()).gateway === 'gateway-1');
  await until('the log says it', () => gateway.log().includes('the register names none that this gateway may use'));
  const { ready, not_ready_reason: why } = await status();
  assert.deepEqual([ready, why], [false, 'no store is known: the register names none']);
});

test('stores that are started are found: mail has two copies there, each side names the other', async () => {
  const [a, b] = [store(0), store(1)];
  a.start();
  b.start();
  await gateway.ready();
  await until('all have two copies', async () => (await holders())?.size === 2, SLOW_MS, gateway);
  await send(200);
  const told = await ask<GroupAnswer>(adminOf(0), '/api/v1/group');
  const admin = `${HOST}:${String(ports.gateways[0]?.admin ?? 0)}`;
  assert.deepEqual(addresses(told, 'gateway'), [['gateway-1', admin]]);
  const group = await ask<GroupAnswer>(ports.gateways[0]?.admin ?? 0, '/api/v1/group');
  const expected = [0, 1].map((i) => [storeId(i), `${HOST}:${String(adminOf(i))}`]);
  assert.deepEqual(addresses(group, 'store'), expected);
});

test('a third store, then one killed: its copies go to the third, the gateway goes on', async () => {
  const { pid } = gateway;
  const third = store(2);
  third.start();
  await until('it is linked', () => isUp(2), SLOW_MS, gateway);
  await daemons.find(({ name }) => name === 'process-0')?.kill();
  await until('all have two copies elsewhere', async () => {
    const at = await holders();
    return at?.has(storeId(1)) === true && at.has(storeId(2)) && !at.has(storeId(0));
  }, SLOW_MS, gateway);
  await send(200);
  assert.equal(gateway.pid, pid);
  assert.equal((await status()).losses, 0);
  const { stores } = await status();
  const killed = stores.find(({ store: id }) => id === storeId(0));
  assert.equal(killed?.up, false, 'one that was learned stays known');
});

test('it comes back at other addresses: the link follows', async () => {
  const elsewhere = store(3, 0);
  elsewhere.start();
  await until('it is up', () => isUp(0), SLOW_MS, gateway);
  assert.ok(gateway.log().includes('a store has other addresses: its link follows'));
  await send(50);
});

test('a second process of a store id is refused while the first lives', async () => {
  const second = store(0, 1);
  second.start();
  await until('it has ended', () => !second.isRunning, REFUSED_MS, second);
  assert.equal(second.exitCode, 3);
  const why = /a process of store store-b runs on host host-store-b at 127\.0\.0\.1:\d+ and .*: stop that one/;
  assert.match(second.log(), why);
  await send(50);
});

test('etcd stops for 10 s, so that every session and key is lost: nothing changes', async () => {
  const [node] = etcd.nodes;
  assert.ok(node !== undefined);
  const before = await status();
  const at = await holders();
  const endMs = performance.now() + 10_000;
  node.signal('SIGSTOP');
  while (performance.now() < endMs) {
    await send(20);
    await pause(250);
  }
  node.signal('SIGCONT');
  const isWhole = async (): Promise<boolean> => {
    const keys = await etcd.ctl('get', '--prefix', '/twinpost/mail/stores/', '--keys-only');
    return keys.trim().split(/\s+/).length === 3;
  };
  const lost = /the session of this process is lost/;
  await until('a session was lost', () => lost.test(daemons.map((each) => each.log()).join('')), SLOW_MS);
  for (let i = 0; i < 8; i++) {
    await send(20);
    await pause(250);
  }
  await until('all stores have keys again', isWhole, SLOW_MS);
  const now = await status();
  const links = ({ stores }: StatusAnswer): unknown => stores.map(({ store: id, up, failovers }) => [id, up, failovers]);
  assert.deepEqual(links(now), links(before));
  assert.deepEqual(await holders(), at);
  assert.deepEqual(now.stores_unreached, []);
});
