/**
 * `npm run bench -- mx [--quick]`: what ten thousand destination domains cost beside ten, where the DNS says the way.
 * Each has a gateway with two stores of its own; all stay up and take turns with the same mail, which goes round the domains:
 *
 *     start, warm │ ten domains, 10,000 with ten hosts, 10,000 with hosts of their own │ the same, backwards │ …
 *
 *   ten             each with a host of its own
 *   shared hosts    ten hosts, as large providers are: many queues for the same connections
 *   hosts of their own   a connection each, which is kept: a gateway of this size has all of them open
 *
 * Hosts are on a few addresses of loopback, at one port; a name server on loopback answers MX and A. What counts is CPU
 * a message of gateway and stores, and the memory of the gateway; ratios are of turns of one round. `connections` are those
 * that were opened within the turn.
 */
import type { Answer } from 'dns-packet';

import { HOST, pause, startCluster, type Cluster } from '../test/process/cluster.js';
import { NameServer, type Script } from '../test/unit/platform/node/dns/name-server.js';
import { spread, table } from './format.js';
import { Meter, rounded } from './machine.js';
import type { BenchOptions } from './options.js';
import { runClient, startLoneSink, type LoneSink } from './processes.js';
import { cpuOf, isGateway, isStore, loadOptions } from './relay-run.js';
import { spreadOf } from './statistics.js';

const SHAPES = ['ten', 'shared hosts', 'hosts of their own'] as const;
type Shape = (typeof SHAPES)[number];

interface MxRow {
  readonly [key: string]: unknown;
  readonly shape: Shape;
  readonly domains: number;
  readonly round: number;
  readonly messagesPerSecond: number;
  /** Gateway and both stores. */
  readonly cpuMicrosPerMessage: number;
  readonly gatewayMicros: number;
  readonly gatewayMb: number;
  readonly connections: number;
}

const TEN = 10;
const MANY = 10_000;
const QUICK_MANY = 1000;
const ADDRESSES = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];
const TURN_MESSAGES = 10_000;
const QUICK_MESSAGES = 3000;
/** Before the first turn that counts all is opened and asked, slowly: a sink bears so many new connections at a time. */
const OPENED_PER_SECOND = 1000;
const ROUNDS = 3;
const DRAIN_MS = 120_000;
const POLL_MS = 50;

interface Side {
  readonly shape: Shape;
  readonly domains: readonly string[];
  readonly cluster: Cluster;
  readonly sinks: readonly LoneSink[];
}

type Undo = (() => Promise<void> | void)[];

export async function benchMx({ quick }: BenchOptions): Promise<{ rows: MxRow[] }> {
  const undo: Undo = [];
  const rows: MxRow[] = [];
  const messages = quick ? QUICK_MESSAGES : TURN_MESSAGES;
  try {
    const sinks = await startSinks(undo);
    const sides: Side[] = [];
    for (const shape of SHAPES) sides.push(await startSide(shape, quick ? QUICK_MANY : MANY, sinks, undo));
    for (const side of sides) {
      await take(side, messages, 0, OPENED_PER_SECOND);
      await take(side, messages, 0);
    }
    for (let round = 1; round <= (quick ? 1 : ROUNDS); round++) {
      // Who goes first changes, as what the one before left behind does.
      for (const side of round % 2 === 1 ? sides : [...sides].reverse()) rows.push(say(await take(side, messages, round)));
    }
  } finally {
    for (const each of undo.reverse()) await each();
  }
  console.log(`\n${tableOf(rows)}`);
  return { rows };
}

/** One at each address, for all sides. */
async function startSinks(undo: Undo): Promise<readonly LoneSink[]> {
  const sinks: LoneSink[] = [];
  for (const address of ADDRESSES) {
    const [first] = sinks;
    const sink = await startLoneSink(first === undefined ? {} : { listen: `${address}:${first.port}` });
    undo.push(() => sink.stop());
    sinks.push(sink);
  }
  return sinks;
}

async function startSide(shape: Shape, many: number, sinks: readonly LoneSink[], undo: Undo): Promise<Side> {
  const port = sinks[0]?.port ?? 0;
  const names = await NameServer.start({ after: (close) => void undo.push(close) }, zoneOf(shape));
  const cluster = await startCluster({
    sink: false,
    routes: [{ domain: '*', name: 'out', via: `mx:${port}` }],
    gateway: {
      memory: { limit: '2GiB' }, dns: { resolvers: [`${HOST}:${names.port}`] }, reports: 'discard',
      delivery: {
        // Kept, also while others take their turns.
        connection_idle: '300s', connection_lifetime: '1h', messages_per_connection: 1_000_000, connections: 2 * MANY,
        mx: { allow_private_addresses: true, mta_sts: false, connections_per_address: MANY },
      },
    },
    store: { memory: { limit: '2GiB' } },
  });
  undo.push(() => cluster.stop());
  const domains = Array.from({ length: shape === 'ten' ? TEN : many }, (_none, index) => `d${index}.example`);
  return { shape, domains, cluster, sinks };
}

function zoneOf(shape: Shape): Script {
  return (question): { rcode: number } | { answers: readonly Answer[] } => {
    const [, type = '', host = '', number = ''] = /^(\S+) (mx|)\.?d?(\d+)\.example$/.exec(question) ?? [];
    const name = question.slice(question.indexOf(' ') + 1);
    const at = shape === 'shared hosts' ? Number(number) % TEN : Number(number);
    if (type === 'MX' && host === '') return { answers: [{ type: 'MX', name, ttl: 3600, data: { preference: 10, exchange: `mx.d${at}.example` } }] };
    const data = ADDRESSES[Number(number) % ADDRESSES.length] ?? HOST;
    if (type === 'A' && host !== '') return { answers: [{ type: 'A', name, ttl: 3600, data }] };
    return { rcode: 3 };
  };
}

async function take({ shape, domains, cluster, sinks }: Side, count: number, round: number, rate?: number): Promise<MxRow> {
  const sum = async (of: (sink: LoneSink) => Promise<number>): Promise<number> =>
    (await Promise.all(sinks.map(of))).reduce((all, each) => all + each, 0);
  const messages = (): Promise<number> => sum((sink) => sink.messages());
  const opened = (): Promise<number> => sum((sink) => sink.connections());
  const [before, openedBefore] = [await messages(), await opened()];
  const meter = new Meter([cluster.gateway, ...cluster.stores].map(({ name, pid }) => [name, pid] as const));
  const startMs = performance.now();
  const { report } = await runClient(loadOptions(cluster.smtpPort, { count, domains, ...(rate === undefined ? {} : { rate }) }));
  if (report.accepted !== count) throw new Error(`only ${report.accepted} of ${count} were accepted: ${JSON.stringify(report.samples)}`);
  while ((await messages()) < before + count) {
    if (performance.now() - startMs > DRAIN_MS) throw new Error(`${shape}: the sinks have ${(await messages()) - before} of ${count} messages; ${await fateOf(cluster)}`);
    await pause(POLL_MS);
  }
  const seconds = (performance.now() - startMs) / 1000;
  const cost = meter.cost(count);
  return {
    shape, domains: domains.length, round, messagesPerSecond: rounded(count / seconds),
    cpuMicrosPerMessage: cpuOf(cost, (name) => isGateway(name) || isStore(name)), gatewayMicros: cpuOf(cost, isGateway),
    gatewayMb: rounded((cost.find(({ process: name }) => isGateway(name))?.memoryBytes ?? 0) / 1e6),
    connections: (await opened()) - openedBefore,
  };
}

/** What a gateway knows of messages that did not come. */
async function fateOf(cluster: Cluster): Promise<string> {
  const { received, delivered, deferred, bounced, queued_messages: queued, hurting } = await cluster.status();
  return `its gateway: ${JSON.stringify({ received, delivered, deferred, bounced, queued, hurting: hurting.queues[0] })}`;
}

function say(row: MxRow): MxRow {
  console.log(`${row.round}  ${row.shape.padEnd(18)} ${String(row.domains).padStart(6)} domains  ${row.cpuMicrosPerMessage} µs CPU a message (gateway ${row.gatewayMicros}), ${Math.round(row.messagesPerSecond)}/s, gateway ${row.gatewayMb} MB, ${row.connections} connections opened`);
  return row;
}

function tableOf(rows: readonly MxRow[]): string {
  const of = (shape: Shape): MxRow[] => rows.filter((row) => row.shape === shape).sort((a, b) => a.round - b.round);
  const ten = of('ten');
  const lines = SHAPES.map((shape) => {
    const own = of(shape);
    const figures = (value: (row: MxRow) => number): string => spread(spreadOf(own.map(value)));
    const ratios = own.map((row, round) => row.cpuMicrosPerMessage / (ten[round]?.cpuMicrosPerMessage ?? NaN));
    return [
      `${(own[0]?.domains ?? 0).toLocaleString('en')}, ${shape === 'ten' ? 'hosts of their own' : shape}`, figures((row) => row.cpuMicrosPerMessage), figures((row) => row.gatewayMicros),
      shape === 'ten' ? '' : spread(spreadOf(ratios)), figures((row) => row.messagesPerSecond), figures((row) => row.gatewayMb), figures((row) => row.connections),
    ];
  });
  return table(['domains', 'CPU µs a message', 'gateway', 'by that of ten', 'messages/s', 'gateway MB', 'connections opened'], lines);
}
