/**
 * Both stores die one after the other, the second before the first has been filled again, while the gateway
 * lives: no mirror is left that has everything, yet the gateway has it. Once both are reachable again, with
 * empty memories, it founds the next epoch from its own (docs/PROTOCOL.md "Epochs") and goes on. Nothing is lost, nothing
 * repeated, and no 2xx was given before the mirrors in force had the message.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { readSendLog } from '../../src/load/send-log.js';
import { HOST, startCluster, until, type Cluster, type Daemon } from './cluster.js';
import { LinkJudge } from './link-judge.js';

const DOMAINS = ['a.example', 'b.example', 'c.example'];
const CONCURRENCY = 20;
const COUNT = 4000;
const RATE = 1500;

/** What happens to the stores when a share of the messages was accepted. */
type Blow = (first: Daemon, second: Daemon, cluster: Cluster) => Promise<void>;

async function survive(blow: Blow): Promise<void> {
  const judge = await LinkJudge.start(2);
  try {
    const cluster = await startCluster({
      domains: DOMAINS, gateway: { delivery: { concurrency: CONCURRENCY } }, sinkArguments: ['--latency', '20ms'], mapStorePort: judge.mapStorePort,
    });
    try {
      await sendThrough(cluster, judge, blow);
    } finally {
      await cluster.stop();
    }
  } finally {
    await judge.close();
  }
}

async function sendThrough(cluster: Cluster, judge: LinkJudge, blow: Blow): Promise<void> {
  const [first, second] = cluster.stores;
  assert.ok(first !== undefined && second !== undefined);
  const log = join(cluster.folder, 'send.log');
  let struck: Promise<void> | undefined;
  const sent = await runSend({
    host: HOST, port: cluster.smtpPort, count: COUNT, connections: 20, rate: RATE, domains: DOMAINS, resend: true, log,
    onProgress: ({ accepted }) => {
      if (accepted < COUNT / 3) return;
      struck ??= blow(first, second, cluster);
    },
  });
  await struck;
  assert.equal(sent.accepted, COUNT, JSON.stringify(sent));
  await cluster.inSync(DOMAINS.length);
  await cluster.drained();
  const report = await cluster.verify(log, CONCURRENCY - 1);
  assert.ok(report.ok && report.arrived === COUNT, JSON.stringify(report, undefined, 1));
  assert.deepEqual(judge.problems, []);
  assert.deepEqual(judge.earlyReplies(readSendLog(log)), { judged: COUNT, early: 0, examples: [] });
  assert.equal(cluster.gateway.isRunning, true);
}

describe('a gateway that lives loses nothing', () => {
  test('when the second store dies while the first one comes back', { timeout: 60_000 }, () => survive(async (first, second) => {
    await first.kill();
    first.start();
    await second.kill();
    second.start();
    await Promise.all([first.ready(), second.ready()]);
  }));

  test('when both stores are down for a while', { timeout: 60_000 }, () => survive(async (first, second, cluster) => {
    await first.kill();
    await second.kill();
    await until('the gateway says that no store is up', async () => (await cluster.status()).stores.every((store) => !store.up));
    first.start();
    second.start();
    await Promise.all([first.ready(), second.ready()]);
  }));
});
