/**
 * The paper's second experiment (section IV.C): relay of 70% 1 KB and 30% 10 KB messages through a gateway
 * with two stores. Each round first runs `direct`, the client straight to a sink, as the yardstick of the
 * machine at that moment. Client, gateway, stores and sink are processes of their own; the figure of a
 * round is messages by the time until the sink has the last one.
 */
import { startCluster } from '../test/process/cluster.js';
import { median, Meter, rounded } from './machine.js';
import type { BenchOptions, ProcessCost } from './options.js';
import { PAPER_CONVENTIONAL, PAPER_GATEWAY } from './paper.js';
import { runClient, startLoneSink } from './processes.js';
import type { Plot } from './svg-plot.js';

const MIX = [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }];
const DOMAINS = Array.from({ length: 10 }, (_none, index) => `queue${index}.example`);
const CONNECTIONS = 50;

export interface GatewayRow {
  readonly [key: string]: unknown;
  readonly kind: 'direct' | 'gateway';
  readonly messages: number;
  readonly acceptedPerSecond: number;
  /** Until the sink has all. */
  readonly relayedPerSecond: number;
  readonly responseMeanMs: number;
  readonly responseP50Ms: number;
  readonly responseP99Ms: number;
  readonly cost: readonly ProcessCost[];
}

export async function benchGateway(options: BenchOptions): Promise<{ rows: GatewayRow[]; plot: Plot }> {
  const rounds = options.quick ? 1 : 5;
  const rows: GatewayRow[] = [];
  for (let round = 1; round <= rounds; round++) {
    rows.push(say(await runDirect(options.quick ? 40_000 : 200_000)));
    rows.push(say(await runGateway(options.quick ? 20_000 : 100_000)));
  }
  return { rows, plot: plotOf(rows) };
}

function say(row: GatewayRow): GatewayRow {
  const cost = row.cost.map((each) => `${each.process} ${each.cpuMicrosPerMessage}`).join(', ');
  console.log(
    `${row.kind.padEnd(8)} ${String(Math.round(row.relayedPerSecond)).padStart(7)}/s relayed, ${String(Math.round(row.acceptedPerSecond)).padStart(7)}/s accepted, ` +
      `response mean ${row.responseMeanMs} p50 ${row.responseP50Ms} p99 ${row.responseP99Ms} ms; CPU µs a message: ${cost}`,
  );
  return row;
}

/** The client straight to a sink. */
export async function runDirect(messages: number): Promise<GatewayRow> {
  const sink = await startLoneSink();
  try {
    const meter = new Meter([['sink', sink.daemon.pid]]);
    const client = await runClient({ host: '127.0.0.1', port: sink.port, count: messages, connections: CONNECTIONS, mix: MIX, domains: DOMAINS });
    return rowOf('direct', client, client.report.elapsedMs, meter.cost(messages));
  } finally {
    await sink.stop();
  }
}

async function runGateway(messages: number): Promise<GatewayRow> {
  const cluster = await startCluster({
    gateway: { memory: { limit: '2GiB' }, delivery: { messages_per_connection: 1_000_000 } },
    store: { memory: { limit: '2GiB' } },
    sinkSection: { verify: false },
    domains: DOMAINS,
  });
  try {
    const options = { host: '127.0.0.1', port: cluster.smtpPort, connections: CONNECTIONS, mix: MIX, domains: DOMAINS, resend: true };
    // The first messages open connections and queues and warm the compilers.
    const warm = Math.round(messages / 10);
    await runClient({ ...options, count: warm });
    await cluster.sinkHas(warm, 60_000);
    const processes = [cluster.gateway, ...cluster.stores, cluster.sink].map((daemon) => [daemon.name, daemon.pid] as const);
    const meter = new Meter(processes);
    const started = performance.now();
    const client = await runClient({ ...options, count: messages });
    const startUpMs = performance.now() - started - client.report.elapsedMs;
    await cluster.sinkHas(warm + messages, 120_000);
    return rowOf('gateway', client, performance.now() - started - startUpMs, meter.cost(messages));
  } finally {
    await cluster.stop();
  }
}

function rowOf(kind: GatewayRow['kind'], client: Awaited<ReturnType<typeof runClient>>, elapsedMs: number, cost: readonly ProcessCost[]): GatewayRow {
  const report = client.report;
  const own = { process: 'client', cpuMicrosPerMessage: rounded(client.cpuMicros / report.count), memoryBytes: 0 };
  return {
    kind,
    messages: report.count,
    acceptedPerSecond: rounded(report.acceptedPerSecond),
    relayedPerSecond: rounded((report.accepted / elapsedMs) * 1000),
    responseMeanMs: rounded(report.responseMs.mean, 3),
    responseP50Ms: rounded(report.responseMs.p50, 3),
    responseP99Ms: rounded(report.responseMs.p99, 3),
    cost: [own, ...cost],
  };
}

function plotOf(rows: readonly GatewayRow[]): Plot {
  const of = (kind: GatewayRow['kind'], value: (row: GatewayRow) => number): number => median(rows.filter((row) => row.kind === kind).map(value));
  const direct = of('direct', (row) => row.relayedPerSecond);
  const categories = ['conventional (paper)', 'paper', 'Twinpost', 'direct'];
  return {
    title: 'Relay of 70% 1 KB and 30% 10 KB messages, two mirrors',
    note: 'median of rounds; direct: the client straight to the sink, the yardstick of this machine',
    panels: [
      {
        title: 'throughput', xLabel: '', yLabel: 'messages a second', categories, bars: true,
        series: [{ name: 'messages a second', values: [PAPER_CONVENTIONAL.messagesPerSecond, PAPER_GATEWAY.messagesPerSecond, of('gateway', (row) => row.relayedPerSecond), direct] }],
      },
      {
        title: `response time at full load, ${CONNECTIONS} connections`, xLabel: '', yLabel: 'ms from the final dot to its reply', categories, bars: true,
        series: [
          { name: 'mean', values: [PAPER_CONVENTIONAL.responseMs, PAPER_GATEWAY.responseMs, of('gateway', (row) => row.responseMeanMs), of('direct', (row) => row.responseMeanMs)] },
          { name: 'p99', values: [undefined, undefined, of('gateway', (row) => row.responseP99Ms), of('direct', (row) => row.responseP99Ms)] },
        ],
      },
    ],
  };
}
