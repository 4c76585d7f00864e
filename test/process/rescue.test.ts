/**
 * A gateway with a long queue is killed and stays dead: another of its group delivers the mail, the first of it
 * within the lease and 3 seconds, all of it once and in order. When the dead one is back it has its queue again.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, pause, startCluster } from './cluster.js';
import { muteServer } from './mute-server.js';

const COUNT = 20_000;
/** Short, but by the rule: 3 × failover + 2 × heartbeat + 3 s. */
const LEASE_MS = 4_000;
const MIRROR = { lease: `${String(LEASE_MS)}ms`, failover_timeout: '200ms', heartbeat: '50ms' };
const CONCURRENCY = 20;
const BOUND_MS = 60_000;

test('a killed gateway\'s mail is delivered by its neighbour within the lease and 3 s, and its queue goes home', { timeout: 360_000 }, async (t) => {
  const mute = await muteServer(t);
  const cluster = await startCluster({
    gateways: 2, group: true, domains: ['x.example'], mapSinkPort: (port, gateway) => (gateway === 0 ? mute : port),
    store: { lease: MIRROR.lease }, gateway: { mirror: MIRROR, delivery: { concurrency: CONCURRENCY }, memory: { next_hop: 1 } },
  });
  t.after(() => cluster.stop());
  const [dead, neighbour] = cluster.gateways;
  assert.ok(dead !== undefined && neighbour !== undefined);
  const sendLog = join(cluster.folder, 'send.jsonl');
  const sent = await runSend({ host: HOST, port: dead.smtpPort, count: COUNT, connections: 20, mix: [{ bytes: 1000, weight: 1 }], domains: ['x.example'], resend: true, log: sendLog });
  assert.equal(sent.accepted, COUNT);
  const killedMs = performance.now();
  await dead.gateway.kill();
  while ((await cluster.sinkCounts()).messages === 0) {
    assert.ok(performance.now() - killedMs < LEASE_MS + 3_000, `nothing delivered within the lease and 3 s\n${neighbour.gateway.logTail()}`);
    await pause(20);
  }
  t.diagnostic(`first rescued delivery ${String(Math.round(performance.now() - killedMs))} ms after the kill, with a lease of ${String(LEASE_MS)} ms`);
  await cluster.sinkHas(COUNT, BOUND_MS);
  await neighbour.drained(BOUND_MS);
  const report = await cluster.verify(sendLog, CONCURRENCY - 1);
  for (const fault of ['lost', 'altered', 'resurrected', 'outOfOrder', 'duplicated'] as const) assert.equal(report[fault].count, 0, `${fault}: ${JSON.stringify(report)}`);

  dead.gateway.start();
  await dead.gateway.ready();
  await dead.inSync(1, BOUND_MS);
  assert.ok(neighbour.gateway.log().includes('a partition is handed back'), neighbour.gateway.logTail());
  assert.equal((await dead.status()).queued_messages, 0, 'nothing of what was delivered comes back');
});
