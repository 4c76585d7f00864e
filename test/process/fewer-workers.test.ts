/**
 * `workers: 2` becomes `workers: 1`: the two ids that are no more left mail at the stores. The one gateway that is
 * started with their folder and register delivers it, and nothing is left of them.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until } from './cluster.js';
import { ENTRY } from './entry.js';

const COUNT = 1_000;
const BOUND_MS = 60_000;
const SECRET = 'a secret that only this test knows, 32 bytes or more';

interface Status {
  readonly ready: boolean;
  readonly queued_messages: number;
  readonly orphan_partitions: number;
}

test('all mail of workers that are no more is delivered by the one that is left', { timeout: 360_000 }, async (t) => {
  let workers = 2;
  const cluster = await startCluster({
    workers, domains: ['x.example'],
    store: { gateways: ['gateway-1', 'gateway-1-1', 'gateway-1-2'].map((id) => ({ id, secret: SECRET })) },
    release: (name, config) => {
      if (name !== 'gateway') return { entry: ENTRY, section: config };
      const gateway = config['gateway'] as Readonly<Record<string, unknown>>;
      return { entry: ENTRY, section: { gateway: { ...gateway, workers } } };
    },
  });
  t.after(() => cluster.stop());
  const status = async (worker: number): Promise<Status> =>
    (await (await fetch(`http://${HOST}:${String(cluster.adminPort + worker)}/api/v1/status`)).json()) as Status;
  await until('both workers take mail', async () => (await status(0)).ready && (await status(1)).ready, BOUND_MS, cluster.gateway);
  cluster.sink.freeze();
  const sendLog = join(cluster.folder, 'send.log');
  const mix = [{ bytes: 1000, weight: 1 }];
  const sent = await runSend({
    host: HOST, port: cluster.smtpPort, count: COUNT, connections: 20, mix, domains: ['x.example'], resend: true, log: sendLog,
  });
  assert.equal(sent.accepted, COUNT);
  await cluster.gateway.kill();
  cluster.sink.thaw();
  workers = 1;
  const startMs = performance.now();
  cluster.gateway.start();
  await cluster.sinkHas(COUNT, BOUND_MS);
  t.diagnostic(`all delivered ${String(Math.round(performance.now() - startMs))} ms after the start`);
  await until('nothing is left', async () => {
    const now = await status(0);
    return now.ready && now.queued_messages === 0 && now.orphan_partitions === 0;
  }, BOUND_MS, cluster.gateway);
  const report = await cluster.verify(sendLog, COUNT);
  for (const fault of ['lost', 'altered', 'resurrected', 'unknown'] as const) {
    assert.equal(report[fault].count, 0, `${fault}: ${JSON.stringify(report)}`);
  }
  await until('their records are gone', () => {
    const text = readFileSync(join(cluster.folder, 'register'), 'utf8');
    return !text.includes('partitions/gateway-1-');
  }, BOUND_MS, cluster.gateway);
});
