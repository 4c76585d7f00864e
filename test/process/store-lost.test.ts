/**
 * Both stores of a partition die while the gateway lives: no copy is left at a store, yet the gateway has all of it.
 * It goes on from its memory by itself (DESIGN, rules 7 and 8): the copies leave the record when their stores are seen
 * in new boots, or are replaced in one change by stores that were filled meanwhile. Nobody is asked.
 *
 * Nothing is lost, nothing repeated, and no 2xx was given before the members in force had the message.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { readSendLog } from '../../src/load/send-log.js';
import { HOST, startCluster, until, type Cluster, type Daemon } from './cluster.js';
import { healedWithout, healing, mailWhile, type Healing } from './heal-kit.js';
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
  await judge.readLogs(cluster);
  assert.deepEqual(judge.earlyReplies(readSendLog(log)), { judged: COUNT, early: 0, examples: [] });
  assert.equal(cluster.gateway.isRunning, true);
}

describe('a gateway that lives loses nothing', () => {
  test('when the second store dies while the first one comes back', { timeout: 120_000 }, () => survive(async (first, second) => {
    await first.kill();
    first.start();
    await second.kill();
    second.start();
    await Promise.all([first.ready(), second.ready()]);
  }));

  test('when both stores are down for a while', { timeout: 120_000 }, () => survive(async (first, second, cluster) => {
    await first.kill();
    await second.kill();
    await until('the gateway says that no store is up', async () => (await cluster.status()).stores.every((store) => !store.up));
    first.start();
    second.start();
    await Promise.all([first.ready(), second.ready()]);
  }));
});

/** What may be told to mail for queues that have no copy at a store, and for all while the port is closed. */
const PUT_OFF = ['421', '451', 'none'];
/** Until others are looked for in place of the silent; the lease, 10 s, is longer than that and the restart of a store. */
const REPLACE_AFTER = '1s';
const FOUR_STORES = 4;
const QUEUE = 'a.example';
/** Messages in all queues when the stores are killed. */
const QUEUED = 300;

/**
 * Kills both stores of the partition where QUEUE lives, at once, with mail that is in the memory of the gateway alone
 * from then on: the sink stands still from before on.
 */
async function killPair({ cluster }: Healing): Promise<readonly Daemon[]> {
  cluster.sink.freeze();
  await until('mail is queued', async () => (await cluster.status()).queued_messages >= QUEUED);
  const partition = await cluster.homeOf(QUEUE);
  const rows = (await cluster.table()).filter((row) => row.partition === partition);
  const dead = cluster.stores.filter((store) => rows.some((row) => row.store === store.name));
  assert.deepEqual([dead.length, rows.map((row) => row.sync)], [2, ['SYNC', 'SYNC']]);
  await Promise.all(dead.map((store) => store.kill()));
  return dead;
}

/** Two copies of everything again, and nobody was asked; then the sink goes on. */
async function healed({ cluster }: Healing, ...without: readonly Daemon[]): Promise<void> {
  await healedWithout(cluster, ...without.map(({ name }) => name));
  const { waiting, partitions_waiting: count, losses } = await cluster.status();
  assert.deepEqual({ waiting, count, losses }, { waiting: [], count: 0, losses: 0 });
  cluster.sink.thaw();
}

/** The same gateway before and after, and all mail judged. */
function lostOfFour(story: (all: Healing) => Promise<void>): Promise<void> {
  return healing(FOUR_STORES, { gateway: { mirror: { replace_after: REPLACE_AFTER } } }, async (all) => {
    const { gateway } = all.cluster;
    const { pid } = gateway;
    await mailWhile(all, () => story(all), { putOff: PUT_OFF });
    assert.deepEqual([gateway.isRunning, gateway.pid], [true, pid]);
    assert.doesNotMatch(gateway.log(), /copies away/);
  });
}

describe('a gateway whose partition lost both of its stores, of four', { timeout: 240_000 }, () => {
  test('goes on at the two others while both stay dead', () => lostOfFour(async (all) => {
    const dead = await killPair(all);
    await healed(all, ...dead);
  }));

  test('goes on when both are back and empty', () => lostOfFour(async (all) => {
    const dead = await killPair(all);
    for (const store of dead) store.start();
    await Promise.all(dead.map((store) => store.ready()));
    await healed(all);
  }));

  test('goes on when one is back and empty', () => lostOfFour(async (all) => {
    const [first, second] = await killPair(all);
    assert.ok(first !== undefined && second !== undefined);
    first.start();
    await first.ready();
    await healed(all, second);
  }));
});
