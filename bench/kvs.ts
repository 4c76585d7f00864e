/**
 * The paper's first experiment (section IV.B): transactions a second at one store, by message size. One
 * transaction is a store and a delete of one message; one client on one connection, one queue. Client and
 * store are processes of their own; checksums are on.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Daemon, HOST } from '../test/process/cluster.js';
import { ENTRY } from '../test/process/entry.js';
import { freePorts } from '../test/process/free-ports.js';
import type { KvsClientResult } from './kvs-client.js';
import { median, Meter, rounded } from './machine.js';
import type { BenchOptions, ProcessCost } from './options.js';
import { PAPER_KVS, PAPER_MEMCACHED } from './paper.js';
import { runScript } from './processes.js';
import type { Plot } from './svg-plot.js';

const SIZES_KB = ['0.4', '1', '2', '5', '10', '20'];
const SECRET = 'a secret that only this bench knows, 32 bytes or more';
/** Bytes of messages in one frame: about what a busy gateway sends in one turn. */
const FRAME_BYTES = 256 * 1024;
const FRAMES_UNACKNOWLEDGED = 8;

export interface KvsRow {
  readonly [key: string]: unknown;
  readonly messageKb: string;
  readonly transactionsPerSecond: number;
  readonly cost: readonly ProcessCost[];
}

export async function benchKvs(options: BenchOptions): Promise<{ rows: KvsRow[]; plot: Plot }> {
  const rounds = options.quick ? 1 : 5;
  const seconds = options.quick ? 2 : 5;
  const rows: KvsRow[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const size of SIZES_KB) {
      const row = await measure(size, seconds);
      console.log(`${size.padStart(4)} KB ${String(Math.round(row.transactionsPerSecond)).padStart(9)} transactions/s; CPU µs a transaction: ${row.cost.map((cost) => `${cost.process} ${cost.cpuMicrosPerMessage}`).join(', ')}`);
      rows.push(row);
    }
  }
  return { rows, plot: plotOf(rows) };
}

/** How a round differs from the usual: messages in a frame and frames unacknowledged; a first run that does not count. */
export interface KvsShape {
  readonly batch: number;
  readonly window: number;
  readonly warmSeconds: number;
}

/** One round. */
export async function measure(messageKb: string, seconds: number, shape?: KvsShape): Promise<KvsRow> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-bench-'));
  const [a = 0, b = 0, admin = 0] = await freePorts(3);
  const file = join(folder, 'store.yaml');
  const store = {
    id: 'bench-store', host: 'host-store', memory: { limit: '1GiB' }, admin: { listen: `${HOST}:${admin}` },
    paths: [{ name: 'A', address: `${HOST}:${a}` }, { name: 'B', address: `${HOST}:${b}` }],
    gateways: [{ id: 'bench-gateway', secret: SECRET }],
  };
  writeFileSync(file, JSON.stringify({ store }));
  const daemon = new Daemon('store', [ENTRY, 'store', '--config', file], join(folder, 'store.log'), `http://${HOST}:${admin}/readyz`);
  const killNow = (): void => daemon.killNow();
  process.once('exit', killNow);
  daemon.start();
  try {
    await daemon.ready();
    const messageBytes = Number(messageKb) * 1000;
    const batch = Math.max(1, Math.floor(FRAME_BYTES / messageBytes));
    const client = { host: HOST, port: a, gatewayId: 'bench-gateway', secret: SECRET, messageBytes, seconds, batch: shape?.batch ?? batch, window: shape?.window ?? FRAMES_UNACKNOWLEDGED };
    if (shape !== undefined) await runScript('kvs-process.js', JSON.stringify({ ...client, seconds: shape.warmSeconds }));
    const meter = new Meter([['store', daemon.pid]]);
    const result = JSON.parse(await runScript('kvs-process.js', JSON.stringify(client))) as KvsClientResult;
    const cpuMicros = meter.cpuMicros() / Math.max(1, result.transactions);
    const cost = meter.cost(result.transactions).map((each) => ({ ...each, cpuMicrosPerMessage: rounded(cpuMicros, 3) }));
    const own = { process: 'client', cpuMicrosPerMessage: rounded(result.clientCpuMicros, 3), memoryBytes: 0 };
    return { messageKb, transactionsPerSecond: rounded(result.transactionsPerSecond), cost: [own, ...cost] };
  } finally {
    await daemon.stop();
    process.removeListener('exit', killNow);
    rmSync(folder, { recursive: true, force: true });
  }
}

function plotOf(rows: readonly KvsRow[]): Plot {
  const own = SIZES_KB.map((size) => median(rows.filter((row) => row.messageKb === size).map((row) => row.transactionsPerSecond)));
  return {
    title: 'Store and delete at one store, one client, one connection',
    note: 'median of rounds; paper: machines of 2012, gigabit Ethernet, from 2 KB on limited by the network',
    panels: [
      {
        title: 'transactions by message size', xLabel: 'message size, KB', yLabel: 'transactions a second', categories: SIZES_KB, logarithmic: true,
        series: [
          { name: 'Twinpost store', values: own },
          { name: "paper's store", values: SIZES_KB.map((size) => PAPER_KVS[size]), dashed: true },
          { name: 'memcached, as the paper measured it', values: SIZES_KB.map((size) => PAPER_MEMCACHED[size]), dashed: true },
        ],
      },
    ],
  };
}
