/**
 * Both mirrors of a queue die while the gateway lives: no copy is left at a store, yet the gateway has all of it. By the
 * rule of founding (src/gateway/mirror/replica-set.ts) it goes on from its memory
 *
 *   by itself        once both stores told that they came back empty, heard of while its lease at their boots before ran:
 *                    at these two where there are no others, else at stores that were filled meanwhile
 *   by an operator   when one or both stay away: they may have a copy, and another process may have the queue by it. The
 *                    mail is held, and each store that is silent is given up by a command (`twinpost rescue --force`)
 *
 * Nothing is lost, nothing repeated, and no 2xx was given before the mirrors in force had the message.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { readSendLog } from '../../src/load/send-log.js';
import { HOST, startCluster, until, type Cluster, type Daemon } from './cluster.js';
import { healedWithout, healing, mailWhile, twinpost, type Healing } from './heal-kit.js';
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

/** What may be told to mail for queues that have no mirror, and for all while the port is closed. */
const PUT_OFF = ['421', '451', 'none'];
/** Until new mirrors are made up; the lease, 10 s, is longer than that and the restart of a store. */
const REPLACE_AFTER = '1s';
const FOUR_STORES = 4;
const QUEUE = 'a.example';
/** Messages in all queues when the stores are killed. */
const QUEUED = 300;

/** Both mirrors of the partition where QUEUE lives, and what is told of it and done there. */
class Pair {
  readonly all: Healing;
  readonly dead: readonly Daemon[];
  readonly partition: string;
  private readonly ids: readonly string[];

  private constructor(all: Healing, partition: string, dead: readonly Daemon[]) {
    this.all = all;
    this.partition = partition;
    this.dead = dead;
    this.ids = dead.map((store) => store.name);
  }

  /** Kills both at once, with mail that is in the memory of the gateway alone: the sink stands still from before on. */
  static async kill(all: Healing): Promise<Pair> {
    const { cluster } = all;
    cluster.sink.freeze();
    await until('mail is queued', async () => (await cluster.status()).queued_messages >= QUEUED);
    const partition = await cluster.homeOf(QUEUE);
    const rows = (await cluster.table()).filter((row) => row.partition === partition);
    const dead = cluster.stores.filter((store) => rows.some((row) => row.store === store.name));
    assert.deepEqual([dead.length, rows.map((row) => row.sync)], [2, ['SYNC', 'SYNC']]);
    await Promise.all(dead.map((store) => store.kill()));
    return new Pair(all, partition, dead);
  }

  /** Which of the others has all of the partition; it counts for nothing yet. Without a mirror in sync one is filled at a time. */
  async filledElsewhere(): Promise<string> {
    const { cluster } = this.all;
    let filled = '';
    await until('another store is filled', async () => {
      const row = (await cluster.table()).find((one) => one.partition === this.partition && one.sync === 'RESYNC' && one.progress === 1);
      filled = row?.store ?? '';
      return row !== undefined && row.transactions === row.last_transaction;
    }, 15_000, cluster.gateway);
    assert.ok(!this.ids.includes(filled), filled);
    return filled;
  }

  /** The partition is held, and these are the stores that its operator is told to give up. */
  async waitsFor(...stores: readonly Daemon[]): Promise<void> {
    const { cluster } = this.all;
    const names = stores.map((store) => store.name).sort();
    await until(`${this.partition} waits for ${names.join(', ')}`, async () => {
      const held = (await cluster.status()).held.find((one) => one.partition === this.partition);
      const told = [...(held?.why ?? '').matchAll(/twinpost rescue --force --partition \S+ --owner \S+ --missing (\S+) /g)].map(([, store]) => store);
      return told.length === names.length && told.sort().every((store, index) => store === names[index]);
    }, 15_000, cluster.gateway);
  }

  async giveUp(store: Daemon): Promise<{ readonly code: number | null; readonly out: string }> {
    return twinpost(this.all.cluster, 'rescue', '--force', '--owner', 'gateway-1', '--missing', store.name, '--reason', 'burnt', '--yes');
  }

  /** Two mirrors again, at none of these stores; then the sink goes on. */
  async healed(...without: readonly string[]): Promise<void> {
    const { cluster } = this.all;
    await healedWithout(cluster, ...without);
    assert.deepEqual((await cluster.status()).held, []);
    cluster.sink.thaw();
  }

  /** Why the set of the partition was founded, by the log. */
  founding(): string {
    const lines = this.all.cluster.gateway.log().split('\n').filter((line) => line.includes(`"partition":"${this.partition}"`));
    return /"cause":"(founded (at|by)[^"]*)"/.exec(lines.join('\n'))?.[1] ?? 'it was not founded';
  }
}

/** The same gateway before and after, and all mail judged. */
function lostOfFour(story: (all: Healing) => Promise<void>): Promise<void> {
  return healing(FOUR_STORES, { gateway: { mirror: { replace_after: REPLACE_AFTER } } }, async (all) => {
    const { gateway } = all.cluster;
    const { pid } = gateway;
    await mailWhile(all, () => story(all), { putOff: PUT_OFF });
    assert.deepEqual([gateway.isRunning, gateway.pid], [true, pid]);
  });
}

describe('a gateway whose queue lost both of its stores, of four', { timeout: 120_000 }, () => {
  test('founds it anew by itself, on another that was filled meanwhile, once both are back and empty', () => lostOfFour(async (all) => {
    const pair = await Pair.kill(all);
    const filled = await pair.filledElsewhere();
    for (const store of pair.dead) store.start();
    await Promise.all(pair.dead.map((store) => store.ready()));
    await pair.healed();
    assert.match(pair.founding(), new RegExp(`^founded by this gateway at ${filled}: no mirror in sync was left`));
  }));

  test('holds its mail while both stay dead, and goes on at the two others when an operator gave up one after the other', () => lostOfFour(async (all) => {
    const pair = await Pair.kill(all);
    const [first, second] = pair.dead;
    assert.ok(first !== undefined && second !== undefined);
    const filled = await pair.filledElsewhere();
    await pair.waitsFor(first, second);
    const half = await pair.giveUp(first);
    assert.equal(half.code, 1, half.out);
    assert.match(half.out, new RegExp(`^\\d partitions? not taken yet: .*${pair.partition}.*; also needed: the same with --missing ${second.name}, or start what is silent$`, 'm'));
    await pair.waitsFor(second);
    assert.equal(pair.founding(), 'it was not founded');
    const whole = await pair.giveUp(second);
    assert.equal(whole.code, 0, whole.out);
    assert.match(whole.out, new RegExp(`^\\d partitions? taken without ${second.name}: .*${pair.partition}`, 'm'));
    await pair.healed(first.name, second.name);
    assert.match(pair.founding(), new RegExp(`^founded at ${filled}, forced by an operator who gave up ${first.name}, ${second.name}`));
  }));

  test('needs an order only for the one that stays dead, when the other is back and empty', () => lostOfFour(async (all) => {
    const pair = await Pair.kill(all);
    const [first, second] = pair.dead;
    assert.ok(first !== undefined && second !== undefined);
    await pair.waitsFor(first, second);
    first.start();
    await first.ready();
    await pair.waitsFor(second);
    const told = await pair.giveUp(second);
    assert.equal(told.code, 0, told.out);
    await pair.healed(second.name);
    assert.match(pair.founding(), new RegExp(`, forced by an operator who gave up ${second.name}(;|$)`));
  }));
});
