/**
 * One measured relay: a load client sends the paper's mix (section IV.C) through a gateway with two stores,
 * or straight to a sink, which is the yardstick `direct` of the machine at that moment. Client, gateway,
 * stores and sink are processes of their own; the throughput is messages by the time until the sink has the
 * last one; CPU is user and system time of each process over the messages.
 */
import { startCluster, type Cluster, type Daemon } from '../test/process/cluster.js';
import type { ClusterOptions } from '../test/process/cluster-config.js';
import { Meter, rounded } from './machine.js';
import type { ProcessCost } from './options.js';
import { runClient, startLoneSink, type ClientResult } from './processes.js';

export const MIX = [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }];
export const DOMAINS = Array.from({ length: 10 }, (_none, index) => `queue${index}.example`);
export const CONNECTIONS = 50;
const SINK_BOUND_MS = 120_000;
/** Of a load to a sink alone, once more before it: as compiled as the sink of a gateway is. */
const DIRECT_WARM_SHARE = 1 / 3;

/** A process beside those of the cluster, by the name that its cost gets. */
export type NamedProcess = readonly [name: string, pid: number];

/** What the client does. */
export interface Load {
  readonly count: number;
  readonly connections?: number;
  readonly messagesPerConnection?: number;
  /** Messages a second at most. */
  readonly rate?: number;
  /** One command at a time, though the server offers PIPELINING. */
  readonly pipelining?: false;
  /** Connections take turns (src/load/options.ts). */
  readonly inTurn?: boolean;
  readonly domains?: readonly string[];
  /** By STARTTLS, to a server whose certificate is by this authority. */
  readonly caFile?: string;
  /** A client that comes back goes on with its session. */
  readonly resumesTls?: boolean;
}

/** One measured round. */
export interface Relayed {
  readonly messages: number;
  readonly acceptedPerSecond: number;
  /** Until the sink has all. */
  readonly relayedPerSecond: number;
  readonly responseMeanMs: number;
  readonly responseP50Ms: number;
  readonly responseP99Ms: number;
  readonly cost: readonly ProcessCost[];
}

export const RELAY_GATEWAY = { memory: { limit: '2GiB' }, delivery: { messages_per_connection: 1_000_000 } };
export const RELAY_SINK = { verify: false };

/** A gateway with two stores and a sink, with the memory and connections that the benches need. */
export function startRelay(more: ClusterOptions = {}, start = startCluster): Promise<Cluster> {
  return start({
    gateway: RELAY_GATEWAY,
    store: { memory: { limit: '2GiB' } },
    sinkSection: RELAY_SINK,
    domains: DOMAINS,
    ...more,
  });
}

/** The client's options for a server at this port. */
export function loadOptions(port: number, load: Load): Parameters<typeof runClient>[0] {
  return {
    host: '127.0.0.1', port, count: load.count, connections: load.connections ?? CONNECTIONS, mix: MIX, domains: load.domains ?? DOMAINS, resend: true,
    ...(load.messagesPerConnection === undefined ? {} : { messagesPerConnection: load.messagesPerConnection }),
    ...(load.rate === undefined ? {} : { rate: load.rate }),
    ...(load.pipelining === undefined ? {} : { pipelining: load.pipelining }),
    ...(load.inTurn === undefined ? {} : { inTurn: load.inTurn }),
    ...(load.caFile === undefined ? {} : { tls: 'starttls', caFile: load.caFile, resumesTls: load.resumesTls ?? false }),
  };
}

/** The client straight to a sink. */
export async function relayDirect(load: Load): Promise<Relayed> {
  const sink = await startLoneSink();
  try {
    await runClient(loadOptions(sink.port, { ...load, count: Math.round(DIRECT_WARM_SHARE * load.count) }));
    const meter = new Meter([['sink', sink.daemon.pid]]);
    const client = await runClient(loadOptions(sink.port, load));
    return relayedOf(client, client.report.elapsedMs, meter.cost(load.count));
  } finally {
    await sink.stop();
  }
}

/** The first messages open connections and queues and warm the compilers. */
export async function warm(cluster: Cluster, load: Load): Promise<void> {
  const before = (await cluster.sinkCounts()).messages;
  await runClient(loadOptions(cluster.smtpPort, load));
  await cluster.sinkHas(before + load.count, SINK_BOUND_MS);
}

/** Through the gateway of a cluster that runs. `more`: processes that are to be measured, too. */
export async function relayThrough(cluster: Cluster, load: Load, more: readonly NamedProcess[] = []): Promise<Relayed> {
  const before = (await cluster.sinkCounts()).messages;
  const meter = new Meter([...processesOf(cluster).map((daemon) => [daemon.name, daemon.pid] as const), ...more]);
  const started = performance.now();
  const client = await runClient(loadOptions(cluster.smtpPort, load));
  const startUpMs = performance.now() - started - client.report.elapsedMs;
  if (client.report.accepted !== load.count) throw new Error(`only ${client.report.accepted} of ${load.count} were accepted: ${JSON.stringify(client.report.samples)}`);
  await cluster.sinkHas(before + load.count, SINK_BOUND_MS);
  return relayedOf(client, performance.now() - started - startUpMs, meter.cost(load.count));
}

export function processesOf(cluster: Cluster): Daemon[] {
  return [cluster.gateway, ...cluster.stores, cluster.sink];
}

export function relayedOf(client: ClientResult, elapsedMs: number, cost: readonly ProcessCost[]): Relayed {
  const report = client.report;
  const own = { process: 'client', cpuMicrosPerMessage: rounded(client.cpuMicros / report.count), memoryBytes: 0 };
  return {
    messages: report.count,
    acceptedPerSecond: rounded(report.acceptedPerSecond),
    relayedPerSecond: rounded((report.accepted / elapsedMs) * 1000),
    responseMeanMs: rounded(report.responseMs.mean, 3),
    responseP50Ms: rounded(report.responseMs.p50, 3),
    responseP99Ms: rounded(report.responseMs.p99, 3),
    cost: [own, ...cost],
  };
}

/** Sum over the processes whose names match. */
export function cpuOf(cost: readonly ProcessCost[], matches: (name: string) => boolean): number {
  return rounded(cost.filter((each) => matches(each.process)).reduce((sum, each) => sum + each.cpuMicrosPerMessage, 0), 2);
}

export function isGateway(name: string): boolean {
  return name.startsWith('gateway');
}

export function isStore(name: string): boolean {
  return name.startsWith('store');
}

/** One line for whoever watches. */
export function sayRelayed(what: string, relayed: Relayed): void {
  const cost = relayed.cost.map((each) => `${each.process} ${each.cpuMicrosPerMessage}`).join(', ');
  console.log(
    `${what.padEnd(28)} ${String(Math.round(relayed.relayedPerSecond)).padStart(7)}/s relayed, ${String(Math.round(relayed.acceptedPerSecond)).padStart(7)}/s accepted, ` +
      `response mean ${relayed.responseMeanMs} p50 ${relayed.responseP50Ms} p99 ${relayed.responseP99Ms} ms; CPU µs a message: ${cost}`,
  );
}
