/**
 * What the tests of healing share: a cluster of some stores with a judge on every link, mail at a rate through it
 * while something happens to a store, and the command line asked as an operator does.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';

import { runSend } from '../../src/load/run.js';
import { readSendLog } from '../../src/load/send-log.js';
import type { ClusterOptions } from './cluster-config.js';
import { HOST, startCluster, until, type Cluster, type Daemon } from './cluster.js';
import { ENTRY } from './entry.js';
import { LinkJudge } from './link-judge.js';

const CONCURRENCY = 20;
const RATE = 1200;

export const DOMAINS = ['a.example', 'b.example', 'c.example'];
export const COUNT = 4000;

export interface MailOptions {
  readonly run?: string;
  /** Replies by which mail may be put off meanwhile. */
  readonly putOff?: readonly string[];
}

export interface Healing {
  readonly cluster: Cluster;
  readonly judge: LinkJudge;
}

export async function healing(stores: number, options: ClusterOptions, story: (healing: Healing) => Promise<void>): Promise<void> {
  const judge = await LinkJudge.start(stores);
  try {
    const cluster = await startCluster({
      domains: DOMAINS, sinkArguments: ['--latency', '5ms'], stores, mapStorePort: judge.mapStorePort, ...options,
      gateway: { delivery: { concurrency: CONCURRENCY, retry: { first: '100ms', max: '1s' } }, ...options.gateway },
    });
    try {
      await story({ cluster, judge });
    } finally {
      await cluster.stop();
    }
  } finally {
    await judge.close();
  }
}

/**
 * Mail while `blow` happens, once a quarter was accepted. Nothing is lost, altered, out of order or answered before
 * its mirrors had it.
 */
export async function mailWhile({ cluster, judge }: Healing, blow: () => Promise<void>, { run = 'send', putOff = [] }: MailOptions = {}): Promise<void> {
  const log = join(cluster.folder, `${run}.log`);
  let struck: Promise<void> | undefined;
  const sent = await runSend({
    host: HOST, port: cluster.smtpPort, count: COUNT, connections: 20, rate: RATE, domains: DOMAINS, run, resend: true, log,
    onProgress: ({ accepted }) => {
      if (accepted >= COUNT / 4) struck ??= blow();
    },
  });
  await struck;
  assert.equal(sent.accepted, COUNT, JSON.stringify(sent));
  assert.deepEqual(Object.keys(sent.replies).filter((reply) => reply !== '250' && !putOff.includes(reply)), [], JSON.stringify(sent));
  await cluster.drained();
  const report = await cluster.verify(log, CONCURRENCY - 1);
  assert.ok(report.ok && report.arrived === COUNT, JSON.stringify(report, undefined, 1));
  assert.deepEqual(judge.problems, []);
  await judge.readLogs(cluster);
  assert.deepEqual(judge.earlyReplies(readSendLog(log)), { judged: COUNT, early: 0, examples: [] });
}

export function storeOf(cluster: Cluster, index: number): Daemon {
  const store = cluster.stores[index];
  assert.ok(store !== undefined);
  return store;
}

/** Every partition has two mirrors in sync, none of them at these stores. */
export function healedWithout(cluster: Cluster, ...stores: readonly string[]): Promise<void> {
  return until(`two mirrors each, none at ${stores.join(', ')}`, async () => {
    const rows = await cluster.table();
    const names = new Set(rows.map((row) => row.partition));
    return names.size >= DOMAINS.length && rows.length === 2 * names.size && rows.every((row) => row.sync === 'SYNC' && !stores.includes(row.store));
  }, 30_000, cluster.gateway);
}

export interface Told {
  readonly code: number | null;
  readonly out: string;
}

/** A verb of the command line, asked at the gateway. */
export function twinpost(cluster: Cluster, ...args: readonly string[]): Promise<Told> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [ENTRY, ...args, '--from', `http://${HOST}:${cluster.adminPort}`], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 });
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => { out += bytes.toString(); });
    child.once('error', reject);
    child.once('close', (code) => { resolve({ code, out }); });
  });
}
