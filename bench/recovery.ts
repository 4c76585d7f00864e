/**
 * The paper's third experiment (section IV.D): how long a restarted gateway takes to have its queue back
 * from the stores, by messages in a block. One queue of 1 KB messages whose next hop never greets, so that
 * nothing leaves; the gateway is killed and started again with each block size. Measured from the start of
 * the process: until it takes mail (ready) and until it has every message again (recovered).
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { startSink } from '../src/sink/sink.js';
import { HOST, pause, startCluster, until, type Cluster } from '../test/process/cluster.js';
import { median, rounded, usageOf } from './machine.js';
import { startMuteServer, type MuteServer } from './mute-server.js';
import type { BenchOptions, PartRun } from './options.js';
import { PAPER_RECOVERY, PAPER_RECOVERY_MESSAGES } from './paper.js';
import { runClient } from './processes.js';
import type { Plot } from './svg-plot.js';

const BLOCKS = [1, 10, 100, 1000, 10_000];
/** Short recoveries are repeated: how long fresh memory takes to come varies by a factor of two on a virtual machine. */
const ROUNDS = 5;
const ROUNDS_FROM_BLOCK = 100;
const QUICK_MESSAGES = 50_000;
/** First deliveries are timed with blocks of this size, the default. */
const FIRST_BLOCK = 1000;
const BOUND_MS = 300_000;
const LOOK_MS = 5;
/** What its log says then. */
const READY_LINE = '"the SMTP port is open"';
const BACK_LINE = '"a partition is back"';

export interface RecoveryRow {
  readonly [key: string]: unknown;
  readonly block: number;
  readonly messages: number;
  readonly readySeconds: number;
  readonly recoveredSeconds: number;
  readonly gatewayCpuSeconds: number;
}

/** How soon a restarted gateway delivers out of a long queue; from the start of its process. */
export interface FirstDeliveryRow {
  readonly what: 'first delivery';
  readonly messages: number;
  readonly round: number;
  /** The program is loaded: it answers HTTP. */
  readonly loadedSeconds: number;
  readonly deliveredSeconds: number;
}

/** Part `recovery` of `bench all`. */
export async function partRecovery(options: BenchOptions): Promise<PartRun<RecoveryRow | FirstDeliveryRow>> {
  const first: FirstDeliveryRow[] = [];
  const { rows } = await benchRecovery(options, first);
  return { rows: [...rows, ...first] };
}

/** `first` takes the rows of first deliveries, which are measured only then. */
export async function benchRecovery(options: BenchOptions, first?: FirstDeliveryRow[]): Promise<{ rows: RecoveryRow[]; plot: Plot }> {
  const messages = options.quick ? QUICK_MESSAGES : PAPER_RECOVERY_MESSAGES;
  const mute = await startMuteServer();
  const cluster = await startCluster({
    gateway: {
      memory: { limit: '4GiB', next_hop: 1 },
      routes: [{ domain: '*', via: `smtp://127.0.0.1:${mute.port}`, length_limit: 2 * messages }],
    },
    store: { memory: { limit: '4GiB' } },
  });
  try {
    const sent = await runClient({ host: '127.0.0.1', port: cluster.smtpPort, count: messages, connections: 50, domains: ['held.example'], mix: [{ bytes: 1000, weight: 1 }], resend: true });
    if (sent.report.accepted !== messages) throw new Error(`only ${sent.report.accepted} of ${messages} were accepted: ${JSON.stringify(sent.report.samples)}`);
    const rows: RecoveryRow[] = [];
    for (const block of BLOCKS) {
      const rounds = options.quick || block < ROUNDS_FROM_BLOCK ? 1 : ROUNDS;
      for (let round = 1; round <= rounds; round++) {
        const row = await recover(cluster, block, messages);
        console.log(`blocks of ${String(block).padStart(5)}: ready after ${row.readySeconds} s, all ${messages} back after ${row.recoveredSeconds} s, gateway CPU ${row.gatewayCpuSeconds} s`);
        rows.push(row);
      }
    }
    if (first !== undefined) await firstDeliveries(cluster, mute, options, first);
    return { rows, plot: plotOf(rows, messages) };
  } finally {
    await cluster.stop();
    mute.close();
  }
}

/** The next hop is a sink now, at the port of the mute one; it takes away little, since the gateway is killed again at once. */
async function firstDeliveries(cluster: Cluster, mute: MuteServer, options: BenchOptions, rows: FirstDeliveryRow[]): Promise<void> {
  await cluster.gateway.kill();
  mute.close();
  setBlock(cluster, FIRST_BLOCK);
  for (let round = 1; round <= (options.quick ? 1 : ROUNDS); round++) {
    const sink = await startSink({ host: HOST, port: mute.port });
    try {
      const started = performance.now();
      cluster.gateway.start();
      await until('the gateway answers', () => answers(cluster.adminPort), BOUND_MS, cluster.gateway);
      const loadedMs = performance.now() - started;
      // Looked at within this process: it costs the gateway nothing.
      while (sink.counts.messages === 0 && performance.now() - started < BOUND_MS) await pause(1);
      const row: FirstDeliveryRow = { what: 'first delivery', messages: options.quick ? QUICK_MESSAGES : PAPER_RECOVERY_MESSAGES, round, loadedSeconds: rounded(loadedMs / 1000, 3), deliveredSeconds: rounded((performance.now() - started) / 1000, 3) };
      await cluster.gateway.kill();
      console.log(`first delivery ${row.deliveredSeconds} s after the start of the process, whose program was loaded after ${row.loadedSeconds} s`);
      rows.push(row);
    } finally {
      await sink.close();
    }
  }
}

function setBlock(cluster: Cluster, block: number): void {
  const file = join(cluster.folder, 'gateway.yaml');
  const config = JSON.parse(readFileSync(file, 'utf8')) as { gateway: Record<string, unknown> };
  config.gateway['mirror'] = { block };
  writeFileSync(file, JSON.stringify(config));
}

/** By the lines of the log, which are there anyway: to look costs the gateway nothing, so it can be often. */
async function recover(cluster: Cluster, block: number, messages: number): Promise<RecoveryRow> {
  await cluster.gateway.kill();
  setBlock(cluster, block);
  const { gateway } = cluster;
  const before = gateway.logBytes;
  const started = performance.now();
  gateway.start();
  let readyMs = 0;
  while (performance.now() - started < BOUND_MS) {
    await pause(LOOK_MS);
    const lines = gateway.logSince(before);
    const nowMs = performance.now() - started;
    if (readyMs === 0 && lines.includes(READY_LINE)) readyMs = nowMs;
    if (readyMs > 0 && messagesBack(lines) === messages) {
      return {
        block, messages,
        readySeconds: rounded(readyMs / 1000, 2),
        recoveredSeconds: rounded(nowMs / 1000, 2),
        gatewayCpuSeconds: rounded(usageOf(gateway.pid).cpuMicros / 1e6, 2),
      };
    }
  }
  throw new Error(`not recovered after ${BOUND_MS / 1000} s with blocks of ${block}\n${gateway.logTail()}`);
}

/** In the partitions that are back. */
function messagesBack(lines: string): number {
  const whole = lines.split('\n').filter((line) => line.includes(BACK_LINE));
  return whole.reduce((sum, line) => sum + Number(/"messages":(\d+)/.exec(line)?.[1] ?? 0), 0);
}

async function answers(adminPort: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${adminPort}/healthz`)).ok;
  } catch {
    return false;
  }
}

function plotOf(rows: readonly RecoveryRow[], messages: number): Plot {
  const ofBlock = (block: number, value: (row: RecoveryRow) => number): number => median(rows.filter((row) => row.block === block).map(value));
  return {
    title: `Recovery of ${messages.toLocaleString('en')} messages of 1 KB`,
    note: `median of rounds; paper: ${PAPER_RECOVERY_MESSAGES.toLocaleString('en')} messages over gigabit Ethernet; ours from the start of the process`,
    panels: [
      {
        title: 'time until every message is back', xLabel: 'messages in a block', yLabel: 'seconds', categories: BLOCKS.map(String), logarithmic: true,
        series: [
          { name: 'Twinpost', values: BLOCKS.map((block) => ofBlock(block, (row) => row.recoveredSeconds)) },
          { name: 'Twinpost, takes mail again', values: BLOCKS.map((block) => ofBlock(block, (row) => row.readySeconds)) },
          { name: 'paper', values: BLOCKS.map((block) => PAPER_RECOVERY[String(block)]), dashed: true },
        ],
      },
    ],
  };
}
