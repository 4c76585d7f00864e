/**
 * A gateway under load stands still for longer than its lease: its neighbour takes its queues over and delivers. When
 * it goes on it gives them up at once, takes mail again, and has them back; its neighbour has served all the time.
 * Judged at the sink and on the links: nothing lost, nothing repeated but what was in flight then, in order.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, pause, startCluster, until } from './cluster.js';
import { proxyNowMs } from './fault-proxy.js';
import { LinkJudge } from './link-judge.js';
import { judgeRun } from './witnesses.js';

/** Short, but by the rule: 3 × failover + 2 × heartbeat + 3 s. */
const LEASE_MS = 4_000;
const MIRROR = { lease: `${String(LEASE_MS)}ms`, failover_timeout: '200ms', heartbeat: '50ms' };
const FROZEN_MS = LEASE_MS + 4_000;
const DOMAINS = ['x.example', 'y.example'];
const CONCURRENCY = 10;
const RATE = 150;
const COUNT = 3000;
const BOUND_MS = 60_000;

test('a gateway that stands still past its lease under load gives its queues up, goes on, and has them back', { timeout: 300_000 }, async () => {
  const judge = await LinkJudge.start(2, 2);
  try {
    const cluster = await startCluster({
      gateways: 2, group: true, domains: DOMAINS, mapStorePort: judge.mapStorePort, arrivalLog: true, sinkArguments: ['--latency', '5ms'],
      store: { lease: MIRROR.lease }, gateway: { mirror: MIRROR, delivery: { concurrency: CONCURRENCY } },
    });
    try {
      await run(cluster, judge);
    } finally {
      await cluster.stop();
    }
  } finally {
    await judge.close();
  }
});

async function run(cluster: Awaited<ReturnType<typeof startCluster>>, judge: LinkJudge): Promise<void> {
  const [owner, neighbour] = cluster.gateways;
  assert.ok(owner !== undefined && neighbour !== undefined);
  let stalled: Promise<void> | undefined;
  const stall = async (): Promise<void> => {
    const fromMs = proxyNowMs();
    owner.gateway.freeze();
    const stoodMs = proxyNowMs();
    await pause(FROZEN_MS);
    owner.gateway.thaw();
    // What it sends after the thaw is not excused: only what was in flight when it began to stand still.
    judge.noteWindow({ cause: 'gateway stood still past its lease', gateway: owner.id, fromMs, untilMs: stoodMs });
  };
  const logs = cluster.gateways.map(({ id }) => join(cluster.folder, `send-${id}.log`));
  const sends = cluster.gateways.map(({ smtpPort }, index) => runSend({
    host: HOST, port: smtpPort, count: COUNT, connections: 10, rate: RATE, domains: DOMAINS, resend: true, nameEnvelopes: true, log: logs[index] ?? '',
    onProgress: ({ accepted }) => {
      if (index === 0 && accepted >= COUNT / 4) stalled ??= stall();
    },
  }));
  const sent = await Promise.all(sends);
  await stalled;
  for (const each of sent) assert.equal(each.accepted, COUNT, JSON.stringify(each));
  assert.deepEqual(sent[1]?.replies, { 250: COUNT }, 'nobody at the neighbour noticed');
  for (const each of cluster.gateways) await each.drained(BOUND_MS);
  for (const log of logs) await cluster.verify(log);
  // Whether the lease is read before each dot is dot-right.test.ts's question: too little is in flight here to tell. The
  // look and the write of a dot are one step of one thread (smtp-session-content.test.ts, transport.test.ts), and a stop may
  // fall into it: the more likely, the busier the machine. One dot at most is late so.
  const verdict = await judgeRun(judge, cluster, { arrivalLog: cluster.arrivalLog, sendLogs: logs, concurrency: CONCURRENCY, stoppedDots: 1 });
  assert.ok(verdict.ok, JSON.stringify(verdict, undefined, 1));

  assert.match(owner.gateway.log(), /a partition is another process's now/);
  assert.match(neighbour.gateway.log(), /a partition is handed back/);
  await until('each serves its own queues at both stores', async () => {
    const tables = await Promise.all(cluster.gateways.map((each) => each.table()));
    return tables.every((rows) => rows.length >= 2 && rows.every((row) => row.sync === 'SYNC'));
  }, BOUND_MS, owner.gateway);
  const more = await Promise.all(cluster.gateways.map(({ smtpPort }, index) => runSend({ host: HOST, port: smtpPort, count: 50, connections: 2, domains: DOMAINS, log: `${logs[index] ?? ''}.more` })));
  for (const each of more) assert.equal(each.accepted, 50, JSON.stringify(each));
}
