/**
 * What an operator waits for at a gateway with many queued messages, while clients go on: listing, counting, removal by
 * a selector, flush; and what clients feel of each. One gateway, two stores. All that is queued waits in suspended
 * queues; beside it a client sends at a fixed rate to another one, which delivers.
 *
 *   fill │ rate alone │ list │ count │ remove a tenth │ resume and flush the rest │
 *
 * Each act has its time, with the start of its command, and the longest and p99 of the 250 beside it, by a client's own
 * run of LOAD_SECONDS that began before it: of an act that takes longer, in its first part. Memory is what the gateway
 * says when both are over, and resident.
 */
import { HOST, pause, startCluster, type Cluster } from '../test/process/cluster.js';
import { twinpost } from '../test/process/twinpost.js';
import { table } from './format.js';
import { rounded, usageOf } from './machine.js';
import type { BenchOptions } from './options.js';
import { runClient } from './processes.js';

interface QueuesRow {
  readonly [key: string]: unknown;
  readonly act: 'alone' | 'list' | 'count' | 'remove' | 'flush';
  readonly messages: number;
  readonly seconds: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly usedBytes: number;
  readonly residentBytes: number;
}

const MESSAGES = 100_000;
const QUICK_MESSAGES = 5_000;
const QUEUES = Array.from({ length: 10 }, (_none, index) => `held${String(index)}.example`);
const LIVE = 'live.example';
const SENDER = 'robot@client.example';
/** Far below what the gateway takes: what is measured is what operators do to it. */
const RATE = 200;
const LOAD_SECONDS = 10;
const POLL_MS = 20;
const DRAIN_MS = 600_000;

export async function benchQueues({ quick }: BenchOptions, wanted: number | undefined): Promise<{ rows: QueuesRow[] }> {
  const messages = wanted ?? (quick ? QUICK_MESSAGES : MESSAGES);
  // A queued message of 1 KB takes some 1.3 KB; the rest is room.
  const memory = { limit: `${String(Math.max(1, Math.ceil(messages / 250_000)))}GiB` };
  const cluster = await startCluster({ domains: [...QUEUES, LIVE], gateway: { memory }, store: { memory }, sinkSection: { verify: false } });
  try {
    return { rows: await acts(cluster, messages) };
  } finally {
    await cluster.stop();
  }
}

async function acts(cluster: Cluster, messages: number): Promise<QueuesRow[]> {
  const of = (...args: readonly string[]): Promise<string> => typed(cluster, args);
  await of('queue', 'suspend', 'held*', '--reason', 'a bench');
  await fill(cluster, messages - messages / 10, 'shop@client.example');
  await fill(cluster, messages / 10, SENDER);
  const rows: QueuesRow[] = [];
  const take = async (act: QueuesRow['act'], count: number, does: () => Promise<unknown>): Promise<void> => {
    rows.push(say(await beside(cluster, act, count, does)));
  };
  // A command that finds nothing to tell: what starting one takes.
  await take('alone', messages, () => of('queue', 'orders'));
  await take('list', messages / QUEUES.length, () => of('queue', 'list', QUEUES[0] ?? '', '--limit', String(messages), '--json'));
  await take('count', messages, () => of('queue', 'ages', '--everything'));
  await take('remove', messages / 10, () => of('queue', 'delete', '--sender', SENDER, '--expect', String(messages / 10), '--now', '--reason', 'a bench'));
  const left = messages - messages / 10;
  await of('queue', 'resume', 'held*', '--reason', 'a bench').catch(() => '');
  await take('flush', left, async () => {
    await of('queue', 'flush', '--everything', '--reason', 'a bench').catch(() => '');
    await until(async () => (await cluster.status()).queued_messages < RATE);
  });
  console.log(`\n${table(['act', 'messages', 's', 'p99 of the 250, ms', 'longest, ms', 'memory used, MB', 'resident, MB'], rows.map((row) =>
    [row.act, String(row.messages), row.seconds.toFixed(2), String(row.p99Ms), String(row.maxMs), megabytes(row.usedBytes), megabytes(row.residentBytes)]))}`);
  return rows;
}

async function fill({ smtpPort }: Cluster, count: number, from: string): Promise<void> {
  const { report } = await runClient({ host: HOST, port: smtpPort, count, connections: 20, from, domains: QUEUES });
  if (report.accepted !== count) throw new Error(`only ${String(report.accepted)} of ${String(count)} were accepted: ${JSON.stringify(report.samples)}`);
}

/** The act begins when the client is at its rate. */
async function beside(cluster: Cluster, act: QueuesRow['act'], messages: number, does: () => Promise<unknown>): Promise<QueuesRow> {
  const started = { is: false };
  const client = runClient({ host: HOST, port: cluster.smtpPort, count: RATE * LOAD_SECONDS, rate: RATE, connections: 5, inTurn: true, domains: [LIVE] }, () => { started.is = true; });
  await until(() => Promise.resolve(started.is));
  const beganMs = performance.now();
  await does();
  const seconds = (performance.now() - beganMs) / 1000;
  const { report: { responseMs: { p99, max } } } = await client;
  const { memory_used_bytes: usedBytes } = await cluster.status();
  return { act, messages, seconds: rounded(seconds, 3), p99Ms: rounded(p99), maxMs: rounded(max), usedBytes, residentBytes: usageOf(cluster.gateway.pid).memoryBytes };
}

async function typed({ adminPort }: Cluster, args: readonly string[]): Promise<string> {
  const { code, out, error } = await twinpost([...args, '--from', `${HOST}:${String(adminPort)}`]);
  if (code !== 0) throw new Error(`twinpost ${args.join(' ')} ended with code ${String(code)}: ${error}`);
  return out;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + DRAIN_MS;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error('the gateway takes too long');
    await pause(POLL_MS);
  }
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}

function say(row: QueuesRow): QueuesRow {
  console.log(`${row.act.padEnd(7)} ${String(row.messages)} messages in ${row.seconds.toFixed(2)} s; the 250 beside it: p99 ${String(row.p99Ms)} ms, longest ${String(row.maxMs)} ms`);
  return row;
}
