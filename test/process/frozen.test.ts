/**
 * A process that stands still for 3 s under load (SIGSTOP: a blocked event loop, a busy machine) is neither
 * dead nor replaced: while its lease lasts there is no failover, no NG, no FENCED (docs/GUARANTEES.md,
 * "Links"). When it goes on, everything goes on; nothing is lost or comes twice.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, pause, startCluster, type Cluster, type Daemon } from './cluster.js';
import { LinkJudge } from './link-judge.js';
import { judgeRun } from './witnesses.js';

const DOMAINS = ['a.example', 'b.example', 'c.example'];
const CONCURRENCY = 20;
const COUNT = 6000;
const RATE = 800;
const FROZEN_MS = 3000;
/** The states that a 3 s stall must not leave: seen by the table before and after, and never left in the log. */
const TROUBLE = /"to":"NG"|is isolated|FENCED|fenced|path to the store is lost|the SMTP port is closed/;

async function stallsUnderLoad(victim: (cluster: Cluster) => Daemon): Promise<void> {
  const judge = await LinkJudge.start(2);
  try {
    const cluster = await startCluster({ domains: DOMAINS, gateway: { delivery: { concurrency: CONCURRENCY } }, mapStorePort: judge.mapStorePort, arrivalLog: true, sinkArguments: ['--latency', '2ms'] });
    try {
      await run(cluster, judge, victim(cluster));
    } finally {
      await cluster.stop();
    }
  } finally {
    await judge.close();
  }
}

async function run(cluster: Cluster, judge: LinkJudge, victim: Daemon): Promise<void> {
  const log = join(cluster.folder, 'send.log');
  const epochsOf = async (): Promise<readonly number[]> => (await cluster.table()).map((row) => row.epoch).sort();
  let before: readonly number[] = [];
  let stalled: Promise<void> | undefined;
  const stall = async (): Promise<void> => {
    before = await epochsOf();
    victim.freeze();
    await pause(FROZEN_MS);
    victim.thaw();
  };
  const sent = await runSend({
    host: HOST, port: cluster.smtpPort, count: COUNT, connections: 20, rate: RATE, domains: DOMAINS, resend: true, nameEnvelopes: true, log,
    onProgress: ({ accepted }) => {
      if (accepted >= COUNT / 4) stalled ??= stall();
    },
  });
  await stalled;
  assert.equal(sent.accepted, COUNT, JSON.stringify(sent));
  // Nobody was refused or left without an answer.
  assert.deepEqual(sent.replies, { 250: COUNT }, JSON.stringify(sent));
  await cluster.drained();
  await cluster.verify(log);
  const verdict = await judgeRun(judge, cluster, { arrivalLog: cluster.arrivalLog, sendLogs: [log], concurrency: CONCURRENCY });
  assert.ok(verdict.ok && verdict.repeated === 0 && verdict.arrived === COUNT, JSON.stringify(verdict, undefined, 1));
  const trouble = cluster.gateway.log().split('\n').filter((line) => TROUBLE.test(line));
  assert.deepEqual(trouble, []);
  const epochs = await epochsOf();
  assert.ok(epochs.length >= 2 * DOMAINS.length);
  assert.deepEqual(epochs, before, 'no record has changed');
}

describe('a process that stands still for 3 s under load is not taken for dead', { timeout: 240_000 }, () => {
  test('the gateway', { timeout: 120_000 }, () => stallsUnderLoad((cluster) => cluster.gateway));

  for (const [index, name] of ['first', 'second'].entries()) {
    test(`the ${name} store`, { timeout: 120_000 }, () => stallsUnderLoad((cluster) => {
      const store = cluster.stores[index];
      assert.ok(store !== undefined);
      return store;
    }));
  }
});
