/**
 * Part `memory` of `bench all`: what a queued message costs beyond its content and envelope, in gateway and
 * stores, and whether a long queue slows the gateway. One queue of 0.4 KB messages whose next hop never
 * greets is filled in steps; at each step memory is read and mail for other next hops is relayed. At the
 * end the gateway is killed and takes the whole queue back; then a gateway is filled and drained again and
 * again. Then one message in a hundred stays while the others come and go: whether what lies between is
 * given back.
 *
 *     fill ─► sample, relay beside it ─► fill more … ─► kill, recover
 *     (new cluster) fill, drain, sample …   (new cluster) 99 pass, 1 stays …
 */
import { HOST, pause, startCluster, until, type Cluster } from '../test/process/cluster.js';
import { rounded, usageOf } from './machine.js';
import { startMuteServer } from './mute-server.js';
import type { BenchOptions, PartRun } from './options.js';
import { Probes, type TurnReport } from './probe-report.js';
import { runClient } from './processes.js';
import { cpuOf, DOMAINS, isGateway, isStore, loadOptions, relayThrough, startRelay, warm } from './relay-run.js';
import { metricIn, storeMetric } from './store-metric.js';

/** The queue is so long. */
export interface FillRow {
  readonly what: 'fill';
  readonly queued: number;
  readonly gatewayBytes: number;
  readonly storeBytes: number;
  readonly heapUsedBytes: number;
  readonly heapTotalBytes: number;
  readonly storeHeapTotalBytes: number;
  /** Content and envelope of what is queued, as a store counts them. */
  readonly liveBytes: number;
  /** Of mail relayed beside it: gateway and both stores. */
  readonly cpuMicrosPerMessage: number;
  readonly relayedPerSecond: number;
  readonly turns: TurnReport;
}

export interface RecoverRow {
  readonly what: 'recover';
  readonly queued: number;
  readonly seconds: number;
  readonly turns: TurnReport;
}

export interface CycleRow {
  readonly what: 'cycle';
  readonly cycle: number;
  readonly messages: number;
  /** Drained. */
  readonly gatewayBytes: number;
  readonly storeBytes: number;
}

/** One message in a hundred stayed; both by their accounts, above what they were before. */
export interface StayRow {
  readonly what: 'stay';
  readonly messages: number;
  readonly stayed: number;
  /** What the store counts as content and envelopes of those that stayed. */
  readonly liveBytes: number;
  readonly gatewayUsedBytes: number;
  readonly storeUsedBytes: number;
}

export type MemoryRow = FillRow | RecoverRow | CycleRow | StayRow;

/** A long queue: how long, and in how many mirrors. */
interface Filling {
  readonly steps: readonly number[];
  readonly stores: number;
  readonly limit: string;
  readonly relayMessages: number;
  readonly warmMessages: number;
}

const STEPS = [0, 1_000_000, 3_000_000, 5_000_000];
const QUICK_STEPS = [0, 50_000, 200_000];
const HELD = 'held.example';
export const HELD_BYTES = 400;
const RELAY_MESSAGES = 40_000;
const QUICK_RELAY_MESSAGES = 10_000;
/** The first step is compared with the others: compilers must be done. */
const WARM_MESSAGES = 60_000;
const QUICK_WARM_MESSAGES = 15_000;
const CYCLES = 24;
const QUICK_CYCLES = 3;
const CYCLE_MESSAGES = 40_000;
const QUICK_CYCLE_MESSAGES = 15_000;
const LIMIT = '6GiB';
/** The longest queue has one mirror only: two, the gateway and the system beside them are more than such a machine has. */
const LONGEST_STEPS = [0, 2_000_000, 6_000_000, 10_000_000];
const LONGEST_LIMIT = '9GiB';
const STAY_MESSAGES = 1_000_000;
const QUICK_STAY_MESSAGES = 60_000;
const STAY_EVERY = 100;
const BOUND_MS = 240_000;
/** What was just freed or sent is on its way. */
const SETTLE_MS = 1000;

export async function partMemory(options: BenchOptions): Promise<PartRun<MemoryRow>> {
  const rows: MemoryRow[] = [];
  await fill(rows, { steps: options.quick ? QUICK_STEPS : STEPS, stores: 2, limit: LIMIT, ...loadsOf(options) });
  await cycles(options, rows);
  await stay(options, rows);
  return { rows };
}

/** `npm run bench -- longest`: ten million messages with one mirror. */
export async function partLongest(options: BenchOptions): Promise<PartRun<MemoryRow>> {
  const rows: MemoryRow[] = [];
  await fill(rows, { steps: options.quick ? QUICK_STEPS : LONGEST_STEPS, stores: 1, limit: LONGEST_LIMIT, ...loadsOf(options) });
  return { rows };
}

function loadsOf(options: BenchOptions): Pick<Filling, 'relayMessages' | 'warmMessages'> {
  return options.quick ? { relayMessages: QUICK_RELAY_MESSAGES, warmMessages: QUICK_WARM_MESSAGES } : { relayMessages: RELAY_MESSAGES, warmMessages: WARM_MESSAGES };
}

async function fill(rows: MemoryRow[], filling: Filling): Promise<void> {
  const probes = new Probes();
  const mute = await startMuteServer();
  try {
    const cluster = await startFillCluster(probes, mute.port, filling);
    try {
      await warm(cluster, { count: filling.warmMessages });
      for (const step of filling.steps) rows.push(say(await fillTo(cluster, probes, step, filling.relayMessages)));
      rows.push(say(await recover(cluster, probes)));
    } finally {
      await cluster.stop();
    }
  } finally {
    mute.close();
    probes.close();
  }
}

function startFillCluster(probes: Probes, mutePort: number, filling: Filling): Promise<Cluster> {
  const { limit, stores, steps } = filling;
  return startRelay({
    stores,
    gateway: { memory: { limit, next_hop: 1 }, mirror: { replicas: stores, min_replicas: 1 }, delivery: { messages_per_connection: 1_000_000, timeouts: { greeting: '1h' } } },
    store: { memory: { limit } },
    routes: [{ domain: HELD, via: `smtp://127.0.0.1:${mutePort}`, length_limit: 2 * (steps.at(-1) ?? 0) }],
    nodeArguments: probes.nodeArguments,
  });
}

async function send(cluster: Cluster, count: number, domain: string): Promise<void> {
  if (count === 0) return;
  const { report } = await runClient({ host: '127.0.0.1', port: cluster.smtpPort, count, connections: 50, domains: [domain], mix: [{ bytes: HELD_BYTES, weight: 1 }], resend: true });
  if (report.accepted !== count) throw new Error(`only ${report.accepted} of ${count} were accepted: ${JSON.stringify(report.samples)}`);
}

async function fillTo(cluster: Cluster, probes: Probes, queued: number, relayMessages: number): Promise<FillRow> {
  await send(cluster, queued - (await cluster.status()).queued_messages, HELD);
  await pause(SETTLE_MS);
  const [store] = cluster.stores;
  const storePid = store?.pid ?? 0;
  const heap = await probes.read(cluster.gateway.pid);
  const gatewayBytes = usageOf(cluster.gateway.pid).memoryBytes;
  const storeBytes = usageOf(storePid).memoryBytes;
  const liveBytes = await storeMetric(cluster, 0, 'memory_live_bytes');
  const relayed = await relayThrough(cluster, { count: relayMessages, domains: DOMAINS });
  const turns = await probes.read(cluster.gateway.pid);
  return {
    what: 'fill', queued, gatewayBytes, storeBytes, liveBytes,
    heapUsedBytes: heap.heapUsedBytes, heapTotalBytes: heap.heapTotalBytes, storeHeapTotalBytes: (await probes.read(storePid)).heapTotalBytes,
    cpuMicrosPerMessage: cpuOf(relayed.cost, (name) => isGateway(name) || isStore(name)), relayedPerSecond: relayed.relayedPerSecond, turns,
  };
}

async function recover(cluster: Cluster, probes: Probes): Promise<RecoverRow> {
  const queued = (await cluster.status()).queued_messages;
  await cluster.gateway.kill();
  const started = performance.now();
  cluster.gateway.start();
  // Turns that load the program are none of the recovery's.
  await until('the gateway answers', () => cluster.status().then(() => true), BOUND_MS, cluster.gateway);
  await probes.read(cluster.gateway.pid);
  await until('the queue is back', async () => (await cluster.status()).queued_messages >= queued, BOUND_MS, cluster.gateway);
  const seconds = rounded((performance.now() - started) / 1000, 2);
  return { what: 'recover', queued, seconds, turns: await probes.read(cluster.gateway.pid) };
}

/** Filled while the sink stands still, drained when it goes on. */
async function cycles(options: BenchOptions, rows: MemoryRow[]): Promise<void> {
  const messages = options.quick ? QUICK_CYCLE_MESSAGES : CYCLE_MESSAGES;
  const cluster = await startCluster({
    domains: DOMAINS, sinkSection: { verify: false },
    gateway: { memory: { limit: '2GiB', next_hop: 1 }, delivery: { messages_per_connection: 1_000_000 } }, store: { memory: { limit: '2GiB' } },
  });
  try {
    for (let cycle = 1; cycle <= (options.quick ? QUICK_CYCLES : CYCLES); cycle++) {
      cluster.sink.freeze();
      await send(cluster, messages, DOMAINS[0] ?? '');
      cluster.sink.thaw();
      await cluster.drained(BOUND_MS);
      await pause(SETTLE_MS);
      rows.push(say({ what: 'cycle', cycle, messages, gatewayBytes: usageOf(cluster.gateway.pid).memoryBytes, storeBytes: usageOf(cluster.stores[0]?.pid ?? 0).memoryBytes }));
    }
  } finally {
    cluster.sink.thaw();
    await cluster.stop();
  }
}

/** What is between the messages that stay is given back: they lie where there were a hundred times as many. */
async function stay(options: BenchOptions, rows: MemoryRow[]): Promise<void> {
  const messages = options.quick ? QUICK_STAY_MESSAGES : STAY_MESSAGES;
  const mute = await startMuteServer();
  const cluster = await startRelay({
    gateway: { memory: { limit: '2GiB', next_hop: 1 }, delivery: { messages_per_connection: 1_000_000, timeouts: { greeting: '1h' } } },
    routes: [{ domain: HELD, via: `smtp://127.0.0.1:${mute.port}` }],
  });
  try {
    await warm(cluster, { count: options.quick ? QUICK_WARM_MESSAGES : WARM_MESSAGES });
    await pause(SETTLE_MS);
    const before = await accountsOf(cluster);
    const domains = Array.from({ length: STAY_EVERY }, (_none, index) => (index === 0 ? HELD : (DOMAINS[index % DOMAINS.length] ?? '')));
    const arrived = (await cluster.sinkCounts()).messages;
    const { report } = await runClient(loadOptions(cluster.smtpPort, { count: messages, domains }));
    if (report.accepted !== messages) throw new Error(`only ${report.accepted} of ${messages} were accepted: ${JSON.stringify(report.samples)}`);
    const stayed = Math.ceil(messages / STAY_EVERY);
    await cluster.sinkHas(arrived + messages - stayed, BOUND_MS);
    await pause(SETTLE_MS);
    const after = await accountsOf(cluster);
    rows.push(say({
      what: 'stay', messages, stayed, liveBytes: after.liveBytes - before.liveBytes,
      gatewayUsedBytes: after.gatewayBytes - before.gatewayBytes, storeUsedBytes: after.storeBytes - before.storeBytes,
    }));
  } finally {
    await cluster.stop();
    mute.close();
  }
}

async function accountsOf(cluster: Cluster): Promise<{ readonly liveBytes: number; readonly gatewayBytes: number; readonly storeBytes: number }> {
  return {
    liveBytes: await storeMetric(cluster, 0, 'memory_live_bytes'), storeBytes: await storeMetric(cluster, 0, 'memory_used_bytes'),
    gatewayBytes: metricIn(await (await fetch(`http://${HOST}:${cluster.adminPort}/metrics`)).text(), 'twinpost_memory_used_bytes'),
  };
}

function say<Row extends MemoryRow>(row: Row): Row {
  console.log(JSON.stringify(row));
  return row;
}
