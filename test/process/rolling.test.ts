/**
 * The upgrade procedure of docs/UPGRADE.md: both stores and all gateways are restarted one after the other,
 * with SIGTERM, while mail comes in at both gateways. Nothing is lost, nothing repeated, nothing altered,
 * order is kept, and nobody is refused for good: what was answered 4xx or cut is taken when it is sent again.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, type Cluster, type Daemon, type GatewayHandle } from './cluster.js';

const DOMAINS = ['a.example', 'b.example', 'strict.example'];
const CONCURRENCY = 20;
/** Mail goes on until the last process is back: these many at most. */
const COUNT_MAX = 60_000;
const RATE = 400;

test('a rolling restart of both stores and both gateways under load loses and repeats nothing', { timeout: 480_000 }, async () => {
  const cluster = await startCluster({ gateways: 2, domains: DOMAINS, strictDomains: ['strict.example'], gateway: { delivery: { concurrency: CONCURRENCY } } });
  try {
    const done = new AbortController();
    const logs = cluster.gateways.map((each) => join(cluster.folder, `${each.id}.log.jsonl`));
    const senders = cluster.gateways.map((each, i) => runSend({
      host: HOST, port: each.smtpPort, count: COUNT_MAX, connections: 8, rate: RATE, mix: [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }],
      domains: DOMAINS, resend: true, log: logs[i] ?? '', signal: done.signal,
    }));
    await rollAll(cluster);
    done.abort();
    const results = await Promise.all(senders);
    for (const each of cluster.gateways) await each.drained(60_000);
    for (const [i, result] of results.entries()) {
      assert.ok(result.accepted > 500, `there was mail all the time: ${JSON.stringify(result)}`);
      const report = await cluster.verify(logs[i] ?? '', CONCURRENCY - 1);
      const text = JSON.stringify(report, undefined, 1);
      for (const fault of ['lost', 'altered', 'resurrected', 'outOfOrder', 'duplicated'] as const) assert.equal(report[fault].count, 0, `${fault}: ${text}`);
    }
  } finally {
    await cluster.stop();
  }
});

/** One after the other, as the procedure says: the next only when everything is in sync. */
async function rollAll(cluster: Cluster): Promise<void> {
  for (const store of cluster.stores) {
    await allInSync(cluster);
    await restart(store);
  }
  for (const each of cluster.gateways) {
    await allInSync(cluster);
    await restart(each.gateway);
  }
  await allInSync(cluster);
}

async function allInSync(cluster: Cluster): Promise<void> {
  for (const each of cluster.gateways) await inSync(each);
}

async function inSync(each: GatewayHandle): Promise<void> {
  await each.inSync(DOMAINS.length, 60_000);
}

async function restart(daemon: Daemon): Promise<void> {
  assert.equal(await daemon.stop(), 0, `${daemon.name} ends by itself`);
  daemon.start();
  await daemon.ready();
}
