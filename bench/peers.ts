/**
 * Part `peers` of `bench all`: the same mix from the same client to the same sink through other mail
 * servers, at 50 and at 300 connections in each round. Their CPU is that of all their processes. Who is not
 * installed is named.
 *
 * All are started at the beginning, take mail for ten seconds that do not count, and stay: what compiles while
 * it runs, as Haraka does, is as warm in the last round as ours. Whose turn it is not stands still.
 *
 *     start, 10 s of mail │ Postfix disk, tmpfs, Haraka forward, outbound   (each: 1 s, then 50, then 300)
 *     of each of them     │ Postfix disk, tmpfs, …                          round by round
 */
import { pause } from '../test/process/cluster.js';
import { median, rounded } from './machine.js';
import type { BenchOptions, PartRun } from './options.js';
import { HARAKA_FORWARD, HARAKA_OUTBOUND } from './peers/haraka.js';
import { POSTFIX_DISK, POSTFIX_TMPFS } from './peers/postfix.js';
import type { PeerSetup, RelayPeer } from './peers/relay-peer.js';
import { runClient, startLoneSink, type LoneSink } from './processes.js';
import { loadOptions, type Load } from './relay-run.js';

/** One load that went through. */
export interface PeerRelayed {
  readonly messages: number;
  readonly relayedPerSecond: number;
  readonly responseP50Ms: number;
  readonly responseP99Ms: number;
  /** All its processes. */
  readonly cpuMicrosPerMessage: number;
}

export interface PeerRow extends PeerRelayed {
  readonly peer: string;
  readonly connections: number;
  readonly round: number;
}

const SETUPS: readonly PeerSetup[] = [POSTFIX_DISK, POSTFIX_TMPFS, HARAKA_FORWARD, HARAKA_OUTBOUND];
const FEWEST = 50;
const CONNECTIONS = [FEWEST, 300];
const ROUNDS = 3;
/** A run is to take about so long; how many messages that is, the run before tells. */
const SECONDS = 5;
const QUICK_SECONDS = 2;
/** Mail that does not count: after the start, and at the beginning of each turn. */
const WARM_SECONDS = 10;
const QUICK_WARM_SECONDS = 2;
const TURN_WARM_SECONDS = 1;
const MESSAGES_MIN = 600;
const MESSAGES_MAX = 30_000;
const DRAIN_MS = 90_000;
const POLL_MS = 20;

export async function partPeers(options: BenchOptions): Promise<PartRun<PeerRow>> {
  const here = SETUPS.filter((setup) => setup.isInstalled());
  const rows: PeerRow[] = [];
  const sink = await startLoneSink();
  const running: Running[] = [];
  try {
    for (const setup of here) {
      const peer = await setup.start(sink.port);
      const each = { setup, peer, perSecond: 0 };
      running.push(each);
      each.perSecond = (await relayBy(peer, sink, { count: MESSAGES_MIN, connections: FEWEST })).relayedPerSecond;
      await warm(each, sink, options.quick ? QUICK_WARM_SECONDS : WARM_SECONDS);
    }
    for (let round = 1; round <= (options.quick ? 1 : ROUNDS); round++) {
      for (const each of running) rows.push(...(await takeTurn(each, sink, round, options.quick ? QUICK_SECONDS : SECONDS)));
    }
  } finally {
    for (const { peer } of running) await peer.stop();
    await sink.stop();
  }
  return { rows, missing: [...new Set(SETUPS.filter((setup) => !here.includes(setup)).map((setup) => setup.needs))] };
}

/** The number of connections with the most throughput, by the median of its rounds. */
export function bestConnections(rows: readonly PeerRow[], peer: string): number | undefined {
  const own = rows.filter((row) => row.peer === peer);
  const perSecond = (connections: number): number => median(own.filter((row) => row.connections === connections).map((row) => row.relayedPerSecond));
  return [...new Set(own.map((row) => row.connections))].sort((x, y) => perSecond(y) - perSecond(x))[0];
}

/** A peer that was started. */
interface Running {
  readonly setup: PeerSetup;
  readonly peer: RelayPeer;
  /** As its last run had it. */
  perSecond: number;
}

async function warm(running: Running, sink: LoneSink, seconds: number): Promise<void> {
  running.perSecond = (await relayBy(running.peer, sink, { count: messagesIn(running, seconds), connections: FEWEST })).relayedPerSecond;
}

function messagesIn(running: Running, seconds: number): number {
  return Math.round(Math.min(MESSAGES_MAX, Math.max(MESSAGES_MIN, running.perSecond * seconds)));
}

async function takeTurn(running: Running, sink: LoneSink, round: number, seconds: number): Promise<PeerRow[]> {
  const { peer } = running.setup;
  const rows: PeerRow[] = [];
  await warm(running, sink, TURN_WARM_SECONDS);
  for (const connections of CONNECTIONS) {
    const row = { peer, connections, round, ...(await relayBy(running.peer, sink, { count: messagesIn(running, seconds), connections })) };
    running.perSecond = row.relayedPerSecond;
    console.log(`${peer.padEnd(26)} ${String(connections).padStart(3)} connections ${String(Math.round(row.relayedPerSecond)).padStart(6)}/s relayed, response p50 ${row.responseP50Ms} p99 ${row.responseP99Ms} ms, CPU ${row.cpuMicrosPerMessage} µs a message`);
    rows.push(row);
  }
  return rows;
}

/** One load from the client through the peer to the sink. */
export async function relayBy(peer: RelayPeer, sink: LoneSink, load: Load): Promise<PeerRelayed> {
  const { count } = load;
  const before = await sink.messages();
  const cpuBefore = peer.usedMicros();
  const started = performance.now();
  const { report } = await runClient({ ...loadOptions(peer.port, load), nextBehindDot: peer.nextBehindDot ?? true });
  const startUpMs = performance.now() - started - report.elapsedMs;
  if (report.accepted !== count) throw new Error(`only ${report.accepted} of ${count} were accepted: ${JSON.stringify([report.samples, report.connectionErrors])}`);
  while ((await sink.messages()) < before + count) {
    if (performance.now() - started > DRAIN_MS) throw new Error(`the sink has ${(await sink.messages()) - before} of ${count} messages`);
    await pause(POLL_MS);
  }
  return {
    messages: count,
    relayedPerSecond: rounded((count / (performance.now() - started - startUpMs)) * 1000),
    responseP50Ms: rounded(report.responseMs.p50, 2), responseP99Ms: rounded(report.responseMs.p99, 2),
    cpuMicrosPerMessage: rounded((peer.usedMicros() - cpuBefore) / count),
  };
}
