/**
 * Part `peers` of `bench all`: the same mix from the same client to the same sink through other mail
 * servers, at 50 and at 300 connections in the first round and at the better number in the others. Their
 * CPU is that of all their processes. Who is not installed is named.
 */
import { pause } from '../test/process/cluster.js';
import { rounded } from './machine.js';
import type { BenchOptions, PartRun } from './options.js';
import { HARAKA_FORWARD, HARAKA_OUTBOUND } from './peers/haraka.js';
import { POSTFIX_DISK, POSTFIX_TMPFS } from './peers/postfix.js';
import type { PeerSetup, RelayPeer } from './peers/relay-peer.js';
import { runClient, startLoneSink, type LoneSink } from './processes.js';
import { loadOptions } from './relay-run.js';

export interface PeerRow {
  readonly peer: string;
  readonly connections: number;
  readonly round: number;
  readonly messages: number;
  readonly relayedPerSecond: number;
  readonly responseP50Ms: number;
  readonly responseP99Ms: number;
  /** All its processes. */
  readonly cpuMicrosPerMessage: number;
}

const SETUPS: readonly PeerSetup[] = [POSTFIX_DISK, POSTFIX_TMPFS, HARAKA_FORWARD, HARAKA_OUTBOUND];
const CONNECTIONS = [50, 300];
const ROUNDS = 3;
/** A round is to take about so long; how many messages that is, the warm-up tells. */
const SECONDS = 6;
const QUICK_SECONDS = 2;
const WARM_MESSAGES = 600;
const MESSAGES_MAX = 20_000;
const DRAIN_MS = 90_000;
const POLL_MS = 20;

export async function partPeers(options: BenchOptions): Promise<PartRun<PeerRow>> {
  const here = SETUPS.filter((setup) => setup.isInstalled());
  const rows: PeerRow[] = [];
  const seconds = options.quick ? QUICK_SECONDS : SECONDS;
  for (let round = 1; round <= (options.quick ? 1 : ROUNDS); round++) {
    for (const setup of here) {
      const best = bestOf(rows, setup.peer)?.connections;
      rows.push(...(await measure(setup, best === undefined ? CONNECTIONS : [best], round, seconds)));
    }
  }
  return { rows, missing: [...new Set(SETUPS.filter((setup) => !here.includes(setup)).map((setup) => setup.needs))] };
}

/** The row with the most throughput. */
export function bestOf(rows: readonly PeerRow[], peer: string): PeerRow | undefined {
  return rows.filter((row) => row.peer === peer).reduce<PeerRow | undefined>((best, row) => (best === undefined || row.relayedPerSecond > best.relayedPerSecond ? row : best), undefined);
}

async function measure(setup: PeerSetup, connections: readonly number[], round: number, seconds: number): Promise<PeerRow[]> {
  const sink = await startLoneSink();
  try {
    const peer = await setup.start(sink.port);
    try {
      const rows: PeerRow[] = [];
      let perSecond = (await relay(peer, sink, WARM_MESSAGES, CONNECTIONS[0] ?? 1)).relayedPerSecond;
      for (const each of connections) {
        const messages = Math.round(Math.min(MESSAGES_MAX, Math.max(WARM_MESSAGES, perSecond * seconds)));
        const row = { peer: setup.peer, connections: each, round, ...(await relay(peer, sink, messages, each)) };
        perSecond = row.relayedPerSecond;
        console.log(`${setup.peer.padEnd(26)} ${String(each).padStart(3)} connections ${String(Math.round(row.relayedPerSecond)).padStart(6)}/s relayed, response p50 ${row.responseP50Ms} p99 ${row.responseP99Ms} ms, CPU ${row.cpuMicrosPerMessage} µs a message`);
        rows.push(row);
      }
      return rows;
    } finally {
      await peer.stop();
    }
  } finally {
    await sink.stop();
  }
}

async function relay(peer: RelayPeer, sink: LoneSink, count: number, connections: number): Promise<Omit<PeerRow, 'peer' | 'connections' | 'round'>> {
  const before = await sink.messages();
  const cpuBefore = peer.usedMicros();
  const started = performance.now();
  const { report } = await runClient({ ...loadOptions(peer.port, { count, connections }), nextBehindDot: peer.nextBehindDot ?? true });
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
