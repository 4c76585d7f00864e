/**
 * `npm run bench -- fault [--quick]`: what a client feels of a fault. Mail at a steady rate through a
 * gateway with two stores; after a while a fault strikes, and the time from final dot to 250 is noted for
 * every message, by when it was sent. Three faults, each with a goal over the time of the fault:
 *
 *   a store is killed               p99 ≤ 100 ms
 *   a path falls silent             no message waits longer than failover_timeout + 100 ms
 *   a mirror is filled again        p99 ≤ 100 ms, while 1 GB goes to a store that came back empty
 *
 * The client writes a send log (load/send-log.ts): the times come from there.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { monotonicMicros, readSendLog } from '../src/load/send-log.js';
import { pause, startCluster, until, type Cluster } from '../test/process/cluster.js';
import type { ClusterOptions } from '../test/process/cluster-config.js';
import { FaultProxy } from '../test/process/fault-proxy.js';
import { rounded } from './machine.js';
import type { BenchOptions } from './options.js';
import { runClient } from './processes.js';
import type { Panel, Plot } from './svg-plot.js';

const DOMAIN = 'a.example';
const HELD_DOMAIN = 'held.example';
const MIX = [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }];
const CONNECTIONS = 20;
/** About half of what one gateway takes on two cores beside its stores, sink and client. */
const RATE = 1000;
const BEFORE_MS = 5000;
const AFTER_MS = 10_000;
const FAILOVER_MS = 2000;
const GOAL_MS = 100;
/** Points of the plot. */
const SLOT_MS = 250;
const PIECE_SECONDS = 5;
/** What stands in the queue that is filled again. */
const RESYNC_BYTES = 1_000_000_000;
const RESYNC_QUICK_BYTES = 60_000_000;
const RESYNC_MESSAGE_BYTES = 100_000;
const RESYNC_BOUND_MS = 300_000;

/** A message: when its final dot left, from the start of the fault, and how long its 250 took. */
interface Sample {
  readonly atMs: number;
  readonly tookMs: number;
}

export interface FaultRow {
  readonly [key: string]: unknown;
  readonly fault: string;
  readonly goal: string;
  readonly isMet: boolean;
  readonly messages: number;
  readonly refused: number;
  /** From the fault until it was over, as the gateway saw it. */
  readonly faultSeconds: number;
  readonly beforeP99Ms: number;
  readonly duringP50Ms: number;
  readonly duringP99Ms: number;
  readonly duringMaxMs: number;
  /** Median and largest of each slot of the plot; the fault is at 0. */
  readonly slots: readonly { readonly second: number; readonly p50Ms: number | undefined; readonly maxMs: number | undefined }[];
}

interface Case {
  readonly fault: string;
  readonly goal: string;
  isMet(p99Ms: number, maxMs: number): boolean;
  readonly cluster: ClusterOptions;
  /** What has to be there before the load begins. */
  prepare?(cluster: Cluster): Promise<void>;
  /** Strikes; resolves when the fault is over. */
  strike(cluster: Cluster): Promise<void>;
}

export async function benchFault(options: BenchOptions): Promise<{ rows: FaultRow[]; plot: Plot }> {
  const rows: FaultRow[] = [];
  rows.push(say(await measure(storeKilled())));
  rows.push(say(await withSilentPath(measure)));
  rows.push(say(await withMuteServer((port) => measure(refilled(port, options.quick ? RESYNC_QUICK_BYTES : RESYNC_BYTES)))));
  return { rows, plot: plotOf(rows) };
}

function say(row: FaultRow): FaultRow {
  console.log(`${row.fault.padEnd(34)} during: p50 ${row.duringP50Ms} p99 ${row.duringP99Ms} max ${row.duringMaxMs} ms (before: p99 ${row.beforeP99Ms}), ${row.refused} refused, ${row.faultSeconds} s; goal ${row.goal}: ${row.isMet ? 'met' : 'NOT met'}`);
  return row;
}

function storeKilled(): Case {
  return {
    fault: 'a store is killed', goal: `p99 ≤ ${GOAL_MS} ms`, isMet: (p99Ms) => p99Ms <= GOAL_MS, cluster: {},
    strike: async (cluster) => {
      await cluster.stores[0]?.kill();
      await pause(AFTER_MS);
    },
  };
}

async function withSilentPath(run: (fault: Case) => Promise<FaultRow>): Promise<FaultRow> {
  const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: 0, recordsMax: 0 });
  try {
    return await run({
      fault: 'a path falls silent', goal: `max ≤ ${FAILOVER_MS + GOAL_MS} ms`, isMet: (_p99Ms, maxMs) => maxMs <= FAILOVER_MS + GOAL_MS,
      cluster: {
        mapStorePort: (port, store, path) => {
          if (store !== 0 || path !== 'A') return port;
          proxy.retarget(port);
          return proxy.port;
        },
      },
      strike: async () => {
        proxy.stall('up');
        proxy.stall('down');
        await pause(AFTER_MS);
        proxy.cut();
        proxy.resume();
      },
    });
  } finally {
    await proxy.close();
  }
}

/** A queue whose next hop never greets is filled first; then a store dies and comes back with nothing. */
function refilled(mutePort: number, bytes: number): Case {
  return {
    fault: `a mirror is filled with ${Math.round(bytes / 1e6)} MB`, goal: `p99 ≤ ${GOAL_MS} ms`, isMet: (p99Ms) => p99Ms <= GOAL_MS,
    cluster: {
      gateway: { memory: { limit: '3GiB', next_hop: 1 } }, store: { memory: { limit: '3GiB' } },
      routes: [{ domain: HELD_DOMAIN, via: `smtp://127.0.0.1:${mutePort}` }],
    },
    prepare: async (cluster) => {
      const count = Math.ceil(bytes / RESYNC_MESSAGE_BYTES);
      const sent = await runClient({ host: '127.0.0.1', port: cluster.smtpPort, count, connections: 10, domains: [HELD_DOMAIN], mix: [{ bytes: RESYNC_MESSAGE_BYTES, weight: 1 }], resend: true });
      if (sent.report.accepted !== count) throw new Error(`only ${sent.report.accepted} of ${count} were accepted: ${JSON.stringify(sent.report.samples)}`);
    },
    strike: async (cluster) => {
      const store = cluster.stores[0];
      if (store === undefined) return;
      await store.kill();
      store.start();
      await store.ready();
      await until('the store was isolated', async () => (await cluster.table()).some((row) => row.sync !== 'SYNC'), RESYNC_BOUND_MS, cluster.gateway);
      await cluster.inSync(2, RESYNC_BOUND_MS);
    },
  };
}

async function measure(fault: Case): Promise<FaultRow> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-fault-'));
  const cluster = await startCluster({ sinkSection: { verify: false }, ...fault.cluster, domains: [DOMAIN] });
  try {
    await fault.prepare?.(cluster);
    const target = { host: '127.0.0.1', port: cluster.smtpPort, connections: CONNECTIONS, mix: MIX, domains: [DOMAIN] };
    await runClient({ ...target, count: 5 * RATE, resend: true });
    const load = startLoad(target, folder);
    await pause(2 * BEFORE_MS);
    const atMicros = monotonicMicros();
    await fault.strike(cluster);
    const overMicros = monotonicMicros();
    await pause(BEFORE_MS);
    return rowOf(fault, await load.stop(), atMicros, overMicros);
  } finally {
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Steady load, client after client of some seconds each, until stopped: how long a fault takes is not known before. Resolves with their logs. */
function startLoad(target: Omit<Parameters<typeof runClient>[0], 'count'>, folder: string): { stop(): Promise<string[]> } {
  let isOver = false;
  const logs: string[] = [];
  const run = async (): Promise<void> => {
    while (!isOver) {
      const log = join(folder, `${logs.length}.log`);
      logs.push(log);
      await runClient({ ...target, count: PIECE_SECONDS * RATE, rate: RATE, resend: true, log });
    }
  };
  const running = run();
  return {
    stop: async () => {
      isOver = true;
      await running;
      return logs;
    },
  };
}

function rowOf(fault: Case, logs: readonly string[], atMicros: number, overMicros: number): FaultRow {
  const records = logs.flatMap((log) => readSendLog(log).records);
  const accepted = records.filter((record) => record.code >= 200 && record.code < 300);
  const samples: Sample[] = accepted.map((record) => ({ atMs: (record.dot - atMicros) / 1000, tookMs: (record.reply - record.dot) / 1000 }));
  const faultMs = (overMicros - atMicros) / 1000;
  const before = samples.filter((sample) => sample.atMs < 0 && sample.atMs > -BEFORE_MS).map((sample) => sample.tookMs);
  const during = samples.filter((sample) => sample.atMs + sample.tookMs >= 0 && sample.atMs <= faultMs).map((sample) => sample.tookMs);
  const p99Ms = quantile(during, 0.99);
  const maxMs = quantile(during, 1);
  return {
    fault: fault.fault, goal: fault.goal, isMet: fault.isMet(p99Ms, maxMs), messages: during.length, refused: records.length - accepted.length,
    faultSeconds: rounded(faultMs / 1000), beforeP99Ms: rounded(quantile(before, 0.99)),
    duringP50Ms: rounded(quantile(during, 0.5), 2), duringP99Ms: rounded(p99Ms), duringMaxMs: rounded(maxMs),
    slots: slotsOf(samples, faultMs),
  };
}

function slotsOf(samples: readonly Sample[], faultMs: number): FaultRow['slots'] {
  const slots: FaultRow['slots'][number][] = [];
  for (let fromMs = -BEFORE_MS; fromMs < faultMs + BEFORE_MS; fromMs += SLOT_MS) {
    const took = samples.filter((sample) => sample.atMs >= fromMs && sample.atMs < fromMs + SLOT_MS).map((sample) => sample.tookMs);
    const value = (share: number): number | undefined => (took.length === 0 ? undefined : rounded(quantile(took, share), 2));
    slots.push({ second: (fromMs + SLOT_MS / 2) / 1000, p50Ms: value(0.5), maxMs: value(1) });
  }
  return slots;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((x, y) => x - y);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

function withMuteServer<Result>(run: (port: number) => Promise<Result>): Promise<Result> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  return new Promise<Result>((resolve, reject) => {
    server.listen(0, '127.0.0.1', () => {
      run((server.address() as AddressInfo).port).then(resolve, reject).finally(() => {
        server.close();
        for (const socket of sockets) socket.destroy();
      });
    });
  });
}

function plotOf(rows: readonly FaultRow[]): Plot {
  return {
    title: `Response time over a fault, ${RATE.toLocaleString('en')} messages a second, two mirrors`,
    note: `from the final dot to its 250, by when the dot was sent; each point is ${SLOT_MS} ms; the fault is at 0 s`,
    panels: rows.map((row): Panel => ({
      title: `${row.fault}: p99 ${row.duringP99Ms} ms, max ${row.duringMaxMs} ms`, xLabel: 'seconds from the fault', yLabel: 'ms', logarithmic: true,
      categories: row.slots.map((slot) => String(slot.second)), sparse: true, mark: row.slots.findIndex((slot) => slot.second > 0),
      series: [
        { name: 'median', values: row.slots.map((slot) => slot.p50Ms) },
        { name: 'longest', values: row.slots.map((slot) => slot.maxMs) },
      ],
    })),
  };
}
