/**
 * `workers: 2`: two processes behind one SMTP port, each a gateway of its own. Both take mail; one that dies is
 * started again and delivers what it had; a port that is taken, a stop, and the death of the process above them
 * end as an operator expects.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';

const WORKERS = 2;
const COUNT = 2_000;
const BOUND_MS = 60_000;

interface WorkerStatus {
  readonly gateway: string;
  readonly pid: number;
  readonly ready: boolean;
  readonly received: number;
  readonly queued_messages: number;
  readonly partitions_recovering: number;
}

/** What each worker says of itself. */
async function statuses(cluster: Cluster): Promise<readonly WorkerStatus[]> {
  return Promise.all(Array.from({ length: WORKERS }, async (_none, index) => (await (await fetch(`http://${HOST}:${String(cluster.adminPort + index)}/api/v1/status`)).json()) as WorkerStatus));
}

function allReady(cluster: Cluster): Promise<void> {
  return until('both workers take mail', async () => (await statuses(cluster)).every((each) => each.ready), BOUND_MS, cluster.gateway);
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

test('two workers share one port; one that is killed comes back with its mail', { timeout: 360_000 }, async (t) => {
  const cluster = await startCluster({ workers: WORKERS, domains: ['x.example'], gateway: { memory: { limit: '1GiB' } } });
  t.after(() => cluster.stop());
  await allReady(cluster);
  const [one, two] = await statuses(cluster);
  assert.ok(one !== undefined && two !== undefined);
  assert.deepEqual([one.gateway, two.gateway], ['gateway-1-1', 'gateway-1-2']);
  cluster.sink.freeze();
  const sendLog = join(cluster.folder, 'send.log');
  const sent = await runSend({ host: HOST, port: cluster.smtpPort, count: COUNT, connections: 40, mix: [{ bytes: 1000, weight: 1 }], domains: ['x.example'], resend: true, log: sendLog });
  assert.equal(sent.accepted, COUNT);
  for (const each of await statuses(cluster)) assert.ok(each.received > COUNT / 10, `${each.gateway} took ${String(each.received)} of ${String(COUNT)}`);
  process.kill(two.pid, 'SIGKILL');
  await until('a new process is in its place', async () => (await statuses(cluster)).some((each) => each.gateway === two.gateway && each.pid !== two.pid), BOUND_MS, cluster.gateway);
  cluster.sink.thaw();
  await cluster.sinkHas(COUNT, BOUND_MS);
  await until('nothing is queued', async () => (await statuses(cluster)).every((each) => each.queued_messages === 0 && each.partitions_recovering === 0), BOUND_MS, cluster.gateway);
  const report = await cluster.verify(sendLog, COUNT);
  for (const fault of ['lost', 'altered', 'resurrected', 'unknown'] as const) assert.equal(report[fault].count, 0, `${fault}: ${JSON.stringify(report)}`);
  const now = await statuses(cluster);
  assert.equal(await cluster.gateway.stop(), 0, cluster.gateway.logTail());
  for (const each of now) assert.ok(isGone(each.pid), `${each.gateway} is still there`);
});

test('workers end with the process above them', { timeout: 240_000 }, async (t) => {
  const cluster = await startCluster({ workers: WORKERS });
  t.after(() => cluster.stop());
  await allReady(cluster);
  const pids = (await statuses(cluster)).map((each) => each.pid);
  await cluster.gateway.kill();
  await until('its workers are gone', () => pids.every(isGone), BOUND_MS, cluster.gateway);
  cluster.gateway.start();
  await allReady(cluster);
});

test('a taken port is said once, and ends the start', { timeout: 240_000 }, async (t) => {
  const cluster = await startCluster({ workers: WORKERS });
  t.after(() => cluster.stop());
  await allReady(cluster);
  await cluster.gateway.stop();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(cluster.smtpPort, HOST, resolve));
  t.after(() => server.close());
  cluster.gateway.start();
  await until('it ended', () => !cluster.gateway.isRunning, BOUND_MS, cluster.gateway);
  assert.equal(cluster.gateway.exitCode, 1);
  assert.equal(cluster.gateway.log().split('\n').filter((line) => line.includes('is in use')).length, 1, cluster.gateway.logTail());
});
