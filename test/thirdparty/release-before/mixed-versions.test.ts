/**
 * This release beside the one before (docs/PROTOCOL.md "Versions", docs/UPGRADE.md): a gateway of each with stores of
 * the other, through kills and restarts, and the upgrade procedure there and back under load. Nothing is lost or
 * altered, and nobody is refused for good.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { TestContext } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { HOST, startCluster, until, type Cluster, type Daemon, type GatewayHandle } from '../../process/cluster.js';
import { storeId, type ClusterOptions, type Section } from '../../process/cluster-config.js';
import { RELEASE_BEFORE, buildReleaseBefore, type OlderRelease } from './release-before.js';

const DOMAINS = ['a.example', 'b.example'];
const CONCURRENCY = 20;
const QUEUED = 1_500;
/** While mail of this gateway's queues has not all come back. Far below what an operator would notice. */
const BACK_MS = 20_000;
/** Mail goes on until the last process is back: these many at most. */
const COUNT_MAX = 60_000;
const RATE = 200;

let older: OlderRelease | undefined;

before(async () => { older = await buildReleaseBefore(); });
after(() => { older?.remove(); });

/** A cluster whose processes run the release before while they are named in `old`; stores of this one keep a file when they stop. */
async function mixedCluster(t: TestContext, old: ReadonlySet<string>, options: ClusterOptions = {}): Promise<Cluster> {
  const stateFolder = mkdtempSync(join(tmpdir(), 'twinpost-mixed-'));
  const running: { cluster?: Cluster } = {};
  t.after(async () => {
    // Stores write their file when they are stopped.
    await running.cluster?.stop();
    rmSync(stateFolder, { recursive: true, force: true });
  });
  running.cluster = await startCluster({
    domains: DOMAINS, store: { state_dir: stateFolder }, gateway: { delivery: { concurrency: CONCURRENCY } }, ...options,
    release: (name, config) => (older !== undefined && old.has(name) ? { entry: older.entry, section: inOldWords(config) } : undefined),
  });
  return running.cluster;
}

/** The keys that 0.1.0 knows; it does not pass over others. */
function inOldWords(config: Section): Section {
  const known = (section: unknown, ...keys: readonly string[]): Section =>
    Object.fromEntries(Object.entries(section as Section).filter(([key]) => keys.includes(key)));
  const { store, gateway } = config as { store?: Section; gateway?: Section };
  if (store !== undefined) {
    const gateways = (store['gateways'] as readonly Section[]).map((each) => known(each, 'id', 'secret'));
    return { store: { ...known(store, 'id', 'host', 'paths', 'memory', 'admin', 'insecure'), gateways } };
  }
  const stores = (gateway?.['stores'] as readonly Section[]).map((each) => known(each, 'id', 'host', 'paths'));
  return { gateway: { ...known(gateway, 'id', 'host', 'smtp', 'delivery', 'routes', 'memory', 'admin', 'secret', 'state_dir', 'insecure'), stores } };
}

/** Mail that stays in the queues, because the sink is away. */
async function queueMail(cluster: Cluster): Promise<string> {
  await cluster.sink.stop();
  const log = join(cluster.folder, 'send.log.jsonl');
  await runSend({ host: HOST, port: cluster.smtpPort, count: QUEUED, connections: 8, mix: [{ bytes: 1000, weight: 1 }], domains: DOMAINS, log });
  assert.equal((await cluster.status()).queued_messages, QUEUED);
  return log;
}

async function allBack(cluster: Cluster): Promise<void> {
  await cluster.gateway.ready();
  await until('all mail is back', async () => {
    const status = await cluster.status();
    return status.queues_recovering === 0 && status.queued_messages === QUEUED;
  }, BACK_MS, cluster.gateway);
}

async function deliversAll(cluster: Cluster, log: string): Promise<void> {
  cluster.sink.start();
  await cluster.sink.ready();
  await cluster.drained(BACK_MS);
  const report = await cluster.verify(log, CONCURRENCY - 1);
  const text = JSON.stringify(report, undefined, 1);
  for (const fault of ['lost', 'altered', 'resurrected', 'duplicated'] as const) assert.equal(report[fault].count, 0, `${fault}: ${text}`);
}

async function restart(daemon: Daemon): Promise<void> {
  assert.equal(await daemon.stop(), 0, `${daemon.name} ends by itself`);
  daemon.start();
  await daemon.ready();
}

describe(`a gateway of release ${RELEASE_BEFORE.name} at stores of this one`, () => {
  for (const stopped of [[0], [0, 1]]) {
    test(`has its mail back when ${stopped.map(storeId).join(' and ')} came back with a file while it was dead`, { timeout: 80_000 }, async (t) => {
      const cluster = await mixedCluster(t, new Set(['gateway']));
      const log = await queueMail(cluster);
      await cluster.gateway.kill();
      for (const [index, store] of cluster.stores.entries()) if (stopped.includes(index)) await restart(store);
      cluster.gateway.start();
      await allBack(cluster);
      await deliversAll(cluster, log);
    });
  }

  test('fills a store anew that came back with a file, and loses nothing when the other one dies then', { timeout: 80_000 }, async (t) => {
    const cluster = await mixedCluster(t, new Set(['gateway']));
    const [first, second] = cluster.stores;
    const log = await queueMail(cluster);
    assert.ok(first !== undefined && second !== undefined);
    await restart(first);
    await cluster.inSync(DOMAINS.length, BACK_MS);
    await second.kill();
    await cluster.gateway.kill();
    second.start();
    cluster.gateway.start();
    await allBack(cluster);
    await deliversAll(cluster, log);
  });
});

test(`a gateway of this release recovers from stores of release ${RELEASE_BEFORE.name}, one of which lost its memory`, { timeout: 80_000 }, async (t) => {
  const cluster = await mixedCluster(t, new Set(['store-a', 'store-b']));
  const log = await queueMail(cluster);
  await cluster.gateway.kill();
  cluster.gateway.start();
  await allBack(cluster);
  await cluster.inSync(DOMAINS.length, BACK_MS);
  const [first] = cluster.stores;
  assert.ok(first !== undefined);
  await first.kill();
  first.start();
  await cluster.inSync(DOMAINS.length, BACK_MS);
  await cluster.gateway.kill();
  cluster.gateway.start();
  await allBack(cluster);
  assert.deepEqual((await cluster.status()).stores.map(({ protocol }) => protocol), [RELEASE_BEFORE.protocol, RELEASE_BEFORE.protocol]);
  await deliversAll(cluster, log);
});

const STORES = ['store-a', 'store-b'];
const GATEWAYS = ['gateway', 'gateway-2'];

test('two gateways and two stores go to this release and back under load, in both orders, and lose nothing', { timeout: 200_000 }, async (t) => {
  const old = new Set([...STORES, ...GATEWAYS]);
  const cluster = await mixedCluster(t, old, { gateways: 2, group: true });
  const done = new AbortController();
  const logs = cluster.gateways.map((each) => join(cluster.folder, `${each.id}.log.jsonl`));
  const senders = cluster.gateways.map((each, i) => runSend({
    host: HOST, port: each.smtpPort, count: COUNT_MAX, connections: 4, rate: RATE, mix: [{ bytes: 1000, weight: 1 }],
    domains: DOMAINS, resend: true, log: logs[i] ?? '', signal: done.signal,
  }));
  try {
    for (const name of [...STORES, ...GATEWAYS]) await change(cluster, name, () => old.delete(name));
    for (const name of [...GATEWAYS, ...STORES]) await change(cluster, name, () => old.add(name));
    for (const name of [...GATEWAYS, ...STORES]) await change(cluster, name, () => old.delete(name));
    for (const each of cluster.gateways) await each.inSync(DOMAINS.length, BACK_MS);
  } finally {
    done.abort();
  }
  const results = await Promise.all(senders);
  for (const each of cluster.gateways) await each.drained(BACK_MS);
  for (const [i, result] of results.entries()) {
    assert.ok(result.accepted > 500, `there was mail all the time: ${JSON.stringify(result)}`);
    const report = await cluster.verify(logs[i] ?? '', CONCURRENCY - 1);
    const text = JSON.stringify(report, undefined, 1);
    for (const fault of ['lost', 'altered', 'resurrected', 'outOfOrder', 'duplicated'] as const) assert.equal(report[fault].count, 0, `${fault}: ${text}`);
  }
});

/** As docs/UPGRADE.md has it: only when everything is in sync, and nothing is on its way back. */
async function change(cluster: Cluster, name: string, changeRelease: () => void): Promise<void> {
  for (const each of cluster.gateways) await isWhole(each);
  const daemon = [...cluster.stores, ...cluster.gateways.map(({ gateway }) => gateway)].find((each) => each.name === name);
  assert.ok(daemon !== undefined);
  assert.equal(await daemon.stop(), 0, `${name} ends by itself`);
  changeRelease();
  daemon.start();
  await daemon.ready();
}

async function isWhole(each: GatewayHandle): Promise<void> {
  await each.inSync(DOMAINS.length, BACK_MS);
  await until(`nothing comes back at ${each.id}`, async () => (await each.status()).queues_recovering === 0, BACK_MS, each.gateway);
}
