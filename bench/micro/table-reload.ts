/**
 * The table of recipients at its largest, replaced again and again under SMTP traffic.
 *
 *   node dist/bench/micro/table-reload.js [addresses] [workers] [replacements]      10,000,000, 2 and 10 unless told otherwise
 *
 * A whole Twinpost of real processes; clients send to addresses all over the table at a steady rate meanwhile. Prints the
 * replies by code, and the longest turn of the workers' event loops by their CPU time, before any replacement and during
 * them. Exit code 1 when a reply is no 250, or a turn is too long.
 */
import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { buildTable } from '../../src/cli/table/build.js';
import type { SendReport } from '../../src/load/options.js';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until } from '../../test/process/cluster.js';
import type { Cluster } from '../../test/process/cluster.js';
import { Probes } from '../probe-report.js';
import { sayVerdicts } from '../verdicts.js';
import { addressOf, DOMAINS, writeAddresses } from './recipient-addresses.js';

const CLIENTS = 20;
/** Messages a second of all clients. */
const RATE = 600;
const BEFORE_S = 20;
const BETWEEN_MS = 1000;
const BOUND_MS = 120_000;

/** Each client's recipient is another of the table: none whose next hop it names, for there is no such route here. */
function sendAll(port: number, count: number, signal: AbortSignal): Promise<readonly SendReport[]> {
  return Promise.all(Array.from({ length: CLIENTS }, (_none, i) => {
    const [localPart = '', domain = ''] = addressOf(10 * Math.floor(count / CLIENTS / 10) * i + 1 + i % 9).split('@');
    const rate = RATE / CLIENTS;
    return runSend({ host: HOST, port, count: 1_000_000, connections: 1, rate, localPart, domains: [domain], signal });
  }));
}

/** Once all of them take mail. */
async function workerPids(cluster: Cluster, workers: number): Promise<readonly number[]> {
  const pids: number[] = [];
  await until('all workers take mail', async () => {
    pids.length = 0;
    for (let i = 0; i < workers; i++) {
      const answer = await fetch(`http://${HOST}:${String(cluster.adminPort + i)}/api/v1/status`).catch(() => undefined);
      const status = (await answer?.json()) as { readonly pid: number; readonly ready: boolean } | undefined;
      if (status?.ready === true) pids.push(status.pid);
    }
    return pids.length === workers;
  }, BOUND_MS, cluster.gateway);
  return pids;
}

async function longestMs(probes: Probes, pids: readonly number[]): Promise<number> {
  return Math.max(...(await Promise.all(pids.map((pid) => probes.read(pid)))).map(({ maxMs }) => maxMs));
}

function inForce(cluster: Cluster): number {
  return cluster.gateway.log().split('the table of recipients was read anew').length - 1;
}

async function main(count: number, workers: number, replacements: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-table-'));
  const [text, file, next] = [join(folder, 'text'), join(folder, 'table'), join(folder, 'next')];
  const probes = new Probes();
  let cluster: Cluster | undefined;
  try {
    writeAddresses(text, count);
    buildTable(text, file, () => undefined);
    cluster = await startCluster({
      workers, nodeArguments: probes.nodeArguments, sinkSection: { verify: false },
      gateway: {
        memory: { limit: '1GiB' }, smtp: { relay_domains: Array.from({ length: DOMAINS }, (_none, i) => `d${String(i)}.example`), recipients: file },
      },
    });
    const running = cluster;
    const pids = await workerPids(running, workers);
    const over = new AbortController();
    const sending = sendAll(running.smtpPort, count, over.signal);
    await pause(2000);
    await longestMs(probes, pids);
    await pause(1000 * BEFORE_S);
    const beforeMs = await longestMs(probes, pids);
    for (let i = 0; i < replacements; i++) {
      const already = inForce(running);
      copyFileSync(file, next);
      renameSync(next, file);
      await until('all workers have the new table', () => inForce(running) >= already + workers, BOUND_MS, running.gateway);
      await pause(BETWEEN_MS);
    }
    const duringMs = await longestMs(probes, pids);
    over.abort();
    const sent = await sending;
    const replies: Record<string, number> = {};
    for (const each of sent) {
      for (const [code, times] of Object.entries(each.replies)) replies[code] = (replies[code] ?? 0) + times;
    }
    console.log(`${String(count)} addresses, ${String(workers)} workers, replaced ${String(replacements)} times; replies: ${JSON.stringify(replies)}`);
    console.log(`longest turn of a worker before: ${beforeMs.toFixed(1)} ms of CPU`);
    sayVerdicts([
      { what: 'longest turn of a worker while tables were replaced, CPU', value: duringMs, atMost: 20, unit: ' ms' },
      { what: 'replies but 250', value: Object.entries(replies).reduce((sum, [code, times]) => sum + (code === '250' ? 0 : times), 0), atMost: 0, unit: '' },
    ]);
  } finally {
    await cluster?.stop();
    probes.close();
    rmSync(folder, { recursive: true });
  }
}

const [count, workers, replacements] = process.argv.slice(2).map(Number);
await main(count ?? 10_000_000, workers ?? 2, replacements ?? 10);
