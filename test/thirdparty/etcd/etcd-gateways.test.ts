/**
 * A gateway that joins others which run, with a real etcd and real processes: its file names the register, and
 * nobody's file names it, nor a group. It is rescued by them and rescues them; no other process is restarted.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import type { StatusAnswer } from '../../../src/admin-api/gateway-answers.js';
import { runSend } from '../../../src/load/run.js';
import { Daemon, HOST, startCluster, until } from '../../process/cluster.js';
import type { Cluster } from '../../process/cluster.js';
import type { Section } from '../../process/cluster-config.js';
import { ENTRY } from '../../process/entry.js';
import { freePorts } from '../../process/free-ports.js';
import { runProgram } from '../support.js';
import { EtcdCluster } from './etcd-cluster.js';

const COUNT = 200;
const BOUND_MS = 90_000;
const MIRROR = { lease: '4s', failover_timeout: '200ms', heartbeat: '50ms' };

interface Gateway {
  readonly id: string;
  readonly gateway: Daemon;
  readonly smtpPort: number;
  readonly adminPort: number;
}

let etcd: EtcdCluster;
let cluster: Cluster;
const logs: string[] = [];

before(async () => {
  etcd = await EtcdCluster.start(1);
  await etcd.isReady();
  cluster = await startCluster({
    gateways: 2, stores: 3, domains: ['x.example'], store: { lease: MIRROR.lease }, gateway: { mirror: MIRROR },
    release: (name, section) => ({ entry: ENTRY, section: name === 'sink' ? section : found(section) }),
  });
});

after(async () => {
  await cluster.stop();
  await etcd.stop();
});

/** The section of a gateway or store with nothing in it about the others but the register and a secret. */
function found(section: Section): Section {
  const register = { etcd: etcd.endpoints, cluster: 'mail' };
  const { gateway, store } = section as { readonly gateway?: Section; readonly store?: Section };
  if (gateway !== undefined) {
    const { stores: _stores, group: _group, ...rest } = gateway;
    return { register, gateway: rest };
  }
  const { gateways, ...rest } = store ?? {};
  const [first] = gateways as readonly { readonly secret: string }[];
  return { register, store: { ...rest, secret: first?.secret } };
}

/** As the others, but for its own id, host, ports and folder. */
async function newcomer(): Promise<Gateway> {
  const [smtpPort = 0, adminPort = 0] = await freePorts(2);
  const { gateway, ...rest } = JSON.parse(readFileSync(join(cluster.folder, 'gateway.yaml'), 'utf8')) as { readonly gateway: Section };
  const smtp = gateway['smtp'] as Section;
  const state = join(cluster.folder, 'gateway-3.state');
  mkdirSync(state);
  const own = {
    ...gateway, id: 'gateway-3', host: 'host-gateway-3', state_dir: state, smtp: { ...smtp, listen: [`${HOST}:${String(smtpPort)}`] }, admin: { listen: `${HOST}:${String(adminPort)}` },
  };
  const file = join(cluster.folder, 'gateway-3.yaml');
  writeFileSync(file, JSON.stringify({ ...rest, gateway: own }));
  const daemon = new Daemon('gateway-3', [ENTRY, 'gateway', '--config', file], join(cluster.folder, 'gateway-3.log'), `http://${HOST}:${String(adminPort)}/readyz`);
  return { id: 'gateway-3', gateway: daemon, smtpPort, adminPort };
}

async function send({ id, smtpPort }: Gateway): Promise<void> {
  const log = join(cluster.folder, `${id}.${String(logs.length)}.send.log`);
  const { accepted } = await runSend({
    host: HOST, port: smtpPort, count: COUNT, connections: 5, mix: [{ bytes: 1000, weight: 1 }], domains: ['x.example'], resend: false, log,
  });
  assert.equal(accepted, COUNT);
  logs.push(log);
}

async function rescues({ adminPort }: Gateway): Promise<readonly string[]> {
  const response = await fetch(`http://${HOST}:${String(adminPort)}/api/v1/status`);
  return [...((await response.json()) as StatusAnswer).rescues].sort();
}

/** Who holds the partitions of a gateway, by the register. */
async function holders(id: string): Promise<ReadonlySet<string>> {
  const text = await etcd.ctl('get', '--prefix', `/twinpost/mail/partitions/${id}/`);
  return new Set([...text.matchAll(/"holder":\{"gatewayId":"([^"]+)"/g)].map(([, holder]) => holder ?? ''));
}

test('a gateway that is started later is of the group at once: who dies is delivered for', { timeout: 600_000 }, async (t) => {
  const [first, second] = cluster.gateways;
  assert.ok(first !== undefined && second !== undefined);
  const third = await newcomer();
  t.after(() => third.gateway.stop());
  assert.deepEqual(await rescues(first), ['gateway-2']);
  cluster.sink.freeze();
  for (const each of [first, second]) await send(each);
  third.gateway.start();
  await third.gateway.ready();
  await send(third);
  const pids = [first, second].map(({ gateway }) => gateway.pid);
  assert.deepEqual([await rescues(first), await rescues(second), await rescues(third)], [['gateway-2', 'gateway-3'], ['gateway-1', 'gateway-3'], ['gateway-1', 'gateway-2']]);

  await third.gateway.kill();
  const isTaken = async (): Promise<boolean> => !(await holders('gateway-3')).has('gateway-3');
  await until('those that were there before have what it had', isTaken, BOUND_MS, first.gateway);
  assert.deepEqual([first, second].map(({ gateway }) => gateway.pid), pids);
  cluster.sink.thaw();
  await cluster.sinkHas(3 * COUNT, BOUND_MS);
  const missed = await runProgram(process.execPath, [ENTRY, 'queue', 'summary', '--from', `${HOST}:${String(first.adminPort)}`]);
  assert.equal(missed.code, 3);
  assert.match(missed.output, /PARTIAL: gateway-3: /, 'it stays known');

  third.gateway.start();
  await third.gateway.ready();
  await until('it has back what is its own', async () => (await holders('gateway-3')).size === 1 && (await holders('gateway-3')).has('gateway-3'), BOUND_MS, third.gateway);
  cluster.sink.freeze();
  for (const each of [first, second]) await send(each);
  await first.gateway.kill();
  // Who of them stands still for a moment on a busy machine leaves all of it to the other.
  await until('the others have what the first had', async () => {
    const at = await holders('gateway-1');
    return at.size > 0 && [...at].every((id) => id === 'gateway-2' || id === 'gateway-3');
  }, BOUND_MS, third.gateway);
  await second.gateway.kill();
  await until('the newcomer has all', async () => {
    const at = new Set([...await holders('gateway-1'), ...await holders('gateway-2')]);
    return at.size === 1 && at.has('gateway-3');
  }, BOUND_MS, third.gateway);
  cluster.sink.thaw();
  await cluster.sinkHas(5 * COUNT, BOUND_MS);
  for (const log of logs) {
    const report = await cluster.verify(log, 5 * COUNT);
    for (const fault of ['lost', 'altered'] as const) assert.equal(report[fault].count, 0, `${fault}: ${JSON.stringify(report)}`);
  }
});
