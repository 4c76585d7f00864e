/**
 * Part `growth` of `bench all`: whether CPU a message rises with the number of queues and of connections.
 *
 * Queues: one route, a queue for each domain. Clusters with each number of them stay up and take turns, warm, so that
 * what disturbs the machine for longer meets all.
 *
 * Connections: each point is a cluster of its own. Of the run after its warm-up only what comes behind a mark at a
 * third of the messages counts, so that opening connections does not: over the mean of what was accepted and
 * delivered from there to the end. What a longer queue costs is measured by memory.ts.
 *
 * Connections are counted twice. `connections`: each sends its next message when the last one is answered, so that
 * more of them are more messages under way, and the load is as high as it gets. `connections at one rate`: what more
 * connections cost with the same mail on them; they take turns, so that none of them is left out.
 */
import type { Cluster } from '../test/process/cluster.js';
import { Meter, rounded } from './machine.js';
import type { BenchOptions, PartRun } from './options.js';
import { runClient, startTurns } from './processes.js';
import type { RelayOnce } from './relay-once.js';
import {
  cpuOf, isGateway, isStore, loadOptions, processesOf, startRelay, warm, type Load, type Relayed,
} from './relay-run.js';

export type GrowthBy = 'queues' | 'connections' | 'connections at one rate';

export interface GrowthRow {
  readonly by: GrowthBy;
  readonly count: number;
  readonly round: number;
  /** Gateway and both stores. */
  readonly cpuMicrosPerMessage: number;
  readonly gatewayMicros: number;
  readonly storesMicros: number;
  readonly messagesPerSecond: number;
}

const QUEUES = [10, 1000, 10_000];
const TURNS = 9;
const TURN_MESSAGES = 10_000;
/** Each queue has had so many before, on average. */
const WARM_EACH = 5;
const WARM_MESSAGES = 80_000;
const CONNECTIONS = [10, 100, 1000, 10_000];
const QUICK_QUEUES = [10, 1000];
const QUICK_CONNECTIONS = [10, 1000];
const RATED_CONNECTIONS = [10, 1000, 10_000];
/** Messages a second: about half of what a gateway carries with the fewest connections here, so that the most carry it too. */
export const GROWTH_RATE = 4000;
const RATED_MESSAGES = 20_000;
const ROUNDS = 2;
const MESSAGES = 45_000;
const QUICK_MESSAGES = 9000;
/** Each connection is to send so many messages at least. */
const MESSAGES_PER_CONNECTION = 9;
/** What counts begins here. */
const MARK = 1 / 3;
const SINK_BOUND_MS = 120_000;

export async function partGrowth(options: BenchOptions): Promise<PartRun<GrowthRow>> {
  const messages = options.quick ? QUICK_MESSAGES : MESSAGES;
  const rows: GrowthRow[] = [...await byQueues(options.quick)];
  for (let round = 1; round <= (options.quick ? 1 : ROUNDS); round++) {
    for (const count of options.quick ? QUICK_CONNECTIONS : CONNECTIONS) rows.push(say(await byConnections(count, messages, round)));
    for (const count of options.quick ? QUICK_CONNECTIONS : RATED_CONNECTIONS) rows.push(say(await atOneRate(count, options.quick ? QUICK_MESSAGES : RATED_MESSAGES, round)));
  }
  return { rows };
}

async function byQueues(quick: boolean): Promise<GrowthRow[]> {
  const relays = (quick ? QUICK_QUEUES : QUEUES).map((count) => {
    const warmMessages = quick ? TURN_MESSAGES : Math.max(WARM_MESSAGES, WARM_EACH * count);
    const once: RelayOnce = { messages: TURN_MESSAGES, warmMessages, inTurns: true, queues: count };
    return { count, turns: startTurns('relay-once.js', JSON.stringify(once)) };
  });
  const rows: GrowthRow[] = [];
  try {
    for (let round = 1; round <= (quick ? 1 : TURNS); round++) {
      for (const { count, turns } of relays) {
        rows.push(say(queuesRow(count, round, JSON.parse(await turns.next()) as Relayed)));
      }
      // Who goes first changes, as what the one before left behind does.
      relays.reverse();
    }
  } finally {
    await Promise.all(relays.map(({ turns }) => turns.stop()));
  }
  return rows;
}

function queuesRow(count: number, round: number, { cost, relayedPerSecond }: Relayed): GrowthRow {
  const [gatewayMicros, storesMicros] = [cpuOf(cost, isGateway), cpuOf(cost, isStore)];
  const cpuMicrosPerMessage = rounded(gatewayMicros + storesMicros, 2);
  return { by: 'queues', count, round, cpuMicrosPerMessage, gatewayMicros, storesMicros, messagesPerSecond: relayedPerSecond };
}

async function byConnections(count: number, messages: number, round: number): Promise<GrowthRow> {
  const domains = tenDomains();
  return { by: 'connections', count, round, ...(await measure(domains, { count: Math.max(messages, MESSAGES_PER_CONNECTION * count), connections: count, domains })) };
}

async function atOneRate(count: number, messages: number, round: number): Promise<GrowthRow> {
  const domains = tenDomains();
  return { by: 'connections at one rate', count, round, ...(await measure(domains, { count: messages, connections: count, rate: GROWTH_RATE, inTurn: true, domains })) };
}

function tenDomains(): string[] {
  return Array.from({ length: 10 }, (_none, index) => `q${index}.example`);
}

async function measure(domains: readonly string[], load: Load): Promise<Omit<GrowthRow, 'by' | 'count' | 'round'>> {
  const room = 2 * Math.max(1000, load.connections ?? 0);
  const cluster = await startRelay({
    domains, gateway: { smtp: { connections: room, connections_per_client: room }, memory: { limit: '2GiB' }, delivery: { messages_per_connection: 1_000_000 } },
  });
  try {
    await warm(cluster, { count: Math.round(load.count / 3), domains });
    return await fromMark(cluster, load);
  } finally {
    await cluster.stop();
  }
}

interface Mark {
  readonly meter: Meter;
  readonly accepted: number;
  readonly delivered: number;
  readonly ms: number;
}

async function fromMark(cluster: Cluster, load: Load): Promise<Omit<GrowthRow, 'by' | 'count' | 'round'>> {
  const before = (await cluster.sinkCounts()).messages;
  let mark: Promise<Mark> | undefined;
  const take = async (accepted: number): Promise<Mark> => {
    const meter = new Meter(processesOf(cluster).map((daemon) => [daemon.name, daemon.pid] as const));
    const ms = performance.now();
    return { meter, accepted, delivered: (await cluster.sinkCounts()).messages - before, ms };
  };
  const { report } = await runClient({ ...loadOptions(cluster.smtpPort, load), openFirst: true }, (accepted) => {
    if (accepted >= MARK * load.count) mark ??= take(accepted);
  });
  if (report.accepted !== load.count) throw new Error(`only ${report.accepted} of ${load.count} were accepted: ${JSON.stringify([report.samples, report.connectionErrors])}`);
  await cluster.sinkHas(before + load.count, SINK_BOUND_MS);
  const from = await mark;
  if (from === undefined) throw new Error('the run was too short to be measured');
  const messages = load.count - (from.accepted + from.delivered) / 2;
  const cost = from.meter.cost(messages);
  return {
    cpuMicrosPerMessage: cpuOf(cost, (name) => isGateway(name) || isStore(name)), gatewayMicros: cpuOf(cost, isGateway), storesMicros: cpuOf(cost, isStore),
    messagesPerSecond: rounded((messages / (performance.now() - from.ms)) * 1000),
  };
}

function say(row: GrowthRow): GrowthRow {
  console.log(`${String(row.count).padStart(6)} ${row.by.padEnd(23)} ${row.cpuMicrosPerMessage} µs CPU a message (gateway ${row.gatewayMicros}, stores ${row.storesMicros}), ${Math.round(row.messagesPerSecond)}/s`);
  return row;
}
