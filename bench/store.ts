/**
 * Part `store` of `bench all`: a store and a delete of one message at one server over one connection, by
 * size, at the same depth: our store with checksums on, memcached, redis with SET and DEL, redis with a
 * list. The servers take turns within each round; clients are of the same kind (kvs-client.ts,
 * peers/pipeline-client.ts), and their CPU is told, so that it shows who the bottleneck was.
 */
import { HOST } from '../test/process/cluster.js';
import type { KvsClientResult } from './kvs-client.js';
import { measure as measureOurs } from './kvs.js';
import { Meter, rounded } from './machine.js';
import type { BenchOptions, PartRun } from './options.js';
import { isInstalled } from './peers/installed.js';
import { startMemcached } from './peers/memcached.js';
import type { PipelineOptions } from './peers/pipeline-client.js';
import { startRedis } from './peers/redis.js';
import type { PeerServer } from './peers/server.js';
import type { PeerStore } from './peers/wire.js';
import { runScript } from './processes.js';

export type StoreKind = 'Twinpost' | PeerStore;

export interface StoreRow {
  readonly store: StoreKind;
  readonly messageKb: string;
  readonly round: number;
  readonly transactionsPerSecond: number;
  readonly serverCpuMicros: number;
  readonly clientCpuMicros: number;
  /** Share of one processor that the client used: near 1 it was the bottleneck. */
  readonly clientBusy: number;
}

export const STORE_SIZES_KB = ['0.4', '1', '4', '10', '20'];
const ROUNDS = 5;
const SECONDS = 1.5;
const QUICK_SECONDS = 0.7;
/** Our store's code is compiled while it runs: this is no part of the figure. */
const WARM_SECONDS = 3;
/** 256 transactions in flight: four writes of 64. */
const SHAPE = { batch: 64, window: 4 };

interface Peer {
  readonly store: PeerStore;
  readonly debianPackage: string;
  start(): Promise<PeerServer>;
}

const PEERS: readonly Peer[] = [
  { store: 'memcached', debianPackage: 'memcached', start: startMemcached },
  { store: 'redis SET+DEL', debianPackage: 'redis-server', start: startRedis },
  { store: 'redis list', debianPackage: 'redis-server', start: startRedis },
];

export async function partStore(options: BenchOptions): Promise<PartRun<StoreRow>> {
  const seconds = options.quick ? QUICK_SECONDS : SECONDS;
  const peers = PEERS.filter((peer) => isInstalled(peer.debianPackage));
  const missing = PEERS.filter((peer) => !peers.includes(peer)).map((peer) => peer.debianPackage);
  const rows: StoreRow[] = [];
  for (let round = 1; round <= (options.quick ? 1 : ROUNDS); round++) {
    for (const messageKb of STORE_SIZES_KB) {
      rows.push(say(await ours(messageKb, seconds, round)));
      for (const peer of peers) rows.push(say(await measurePeer(peer, messageKb, seconds, round)));
    }
  }
  return { rows, missing: [...new Set(missing)] };
}

function say(row: StoreRow): StoreRow {
  console.log(`${row.messageKb.padStart(4)} KB ${row.store.padEnd(14)} ${String(Math.round(row.transactionsPerSecond)).padStart(9)} transactions/s; CPU µs: server ${row.serverCpuMicros}, client ${row.clientCpuMicros} (${Math.round(100 * row.clientBusy)}% of a processor)`);
  return row;
}

async function ours(messageKb: string, seconds: number, round: number): Promise<StoreRow> {
  const { transactionsPerSecond, cost } = await measureOurs(messageKb, seconds, { ...SHAPE, warmSeconds: WARM_SECONDS });
  const of = (name: string): number => cost.find((each) => each.process === name)?.cpuMicrosPerMessage ?? 0;
  return rowOf('Twinpost', messageKb, round, transactionsPerSecond, of('store'), of('client'));
}

async function measurePeer(peer: Peer, messageKb: string, seconds: number, round: number): Promise<StoreRow> {
  const server = await peer.start();
  try {
    const options: PipelineOptions = { host: HOST, port: server.port, store: peer.store, messageBytes: Number(messageKb) * 1000, seconds, ...SHAPE };
    const meter = new Meter([['server', server.pid]]);
    const result = JSON.parse(await runScript('peers/pipeline-client.js', JSON.stringify(options))) as KvsClientResult;
    const cpuMicros = meter.cpuMicros() / Math.max(1, result.transactions);
    return rowOf(peer.store, messageKb, round, result.transactionsPerSecond, cpuMicros, result.clientCpuMicros);
  } finally {
    await server.stop();
  }
}

function rowOf(store: StoreKind, messageKb: string, round: number, perSecond: number, serverCpuMicros: number, clientCpuMicros: number): StoreRow {
  return {
    store, messageKb, round, transactionsPerSecond: rounded(perSecond),
    serverCpuMicros: rounded(serverCpuMicros, 3), clientCpuMicros: rounded(clientCpuMicros, 3), clientBusy: rounded((perSecond * clientCpuMicros) / 1e6, 2),
  };
}
