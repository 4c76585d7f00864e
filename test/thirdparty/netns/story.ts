/**
 * One story of netns.test.ts, as a program inside the gateway's namespace: `story.js NAME MAKER`. Gateway,
 * sink and client share the namespace's loopback; the stores have their own namespaces. Faults are rules of
 * iptables, or a slow queue of tc, on the gateway's side of the paths. Exits with 0 when all held.
 */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { runSend } from '../../../src/load/run.js';
import type { SendReport } from '../../../src/load/options.js';
import { HOST, pause, startCluster, until, type Cluster } from '../../process/cluster.js';
import { twinpost } from '../../process/twinpost.js';
import { addressOf, command, commandWith, namespaceOf, PATH_NAMES, storeNode, type PathName } from './namespaces.js';

/** By a name that only a resolver could tell of. */
const NAMED_DOMAIN = 'named.example';
const SILENT_RESOLVER = '127.0.0.9';
/** A drain, far shorter than the lookup. */
const END_MS = 10_000;
const DOMAINS = ['a.example', 'b.example', 'c.example'];
const CONCURRENCY = 20;
const COUNT = 3000;
const RATE = 600;
/** Longer than any timeout of a link, far shorter than a lease. */
const FAULT_MS = 5000;
/** failover_timeout and 100 ms for the switch, and what a busy machine of two cores adds. */
const SWITCH_MS = 2000 + 100 + 900;

export const STORIES: Readonly<Record<string, (world: World) => Promise<void>>> = {
  'one path to one store is cut': (world) => withoutIsolation(world, (net) => net.drop(0, 'A')),
  'network A is gone': (world) => withoutIsolation(world, (net) => { for (const store of [0, 1]) net.drop(store, 'A'); }),
  'nothing comes back on one path': (world) => withoutIsolation(world, (net) => net.drop(0, 'A', 'INPUT')),
  'nothing gets through on one path': (world) => withoutIsolation(world, (net) => net.drop(0, 'A', 'OUTPUT')),
  'one path is reset': (world) => withoutIsolation(world, (net) => net.reset(0, 'A')),
  'both paths to one store are cut': async (world) => { await isolated(world, (net) => { for (const path of PATH_NAMES) net.drop(0, path); }); },
  'both paths to one store are reset': async (world) => {
    const isolatedMs = await isolated(world, (net) => { net.reset(0, ...PATH_NAMES); });
    assert.ok(isolatedMs < 1500, `both connections reset, yet isolated only after ${isolatedMs} ms`);
  },
  'no store can be reached': closedAndOpen,
  'one packet in twenty is lost': (world) => withoutLoss(world, (net) => { for (const store of [0, 1]) net.lose(store, 'A', 0.05); }),
  'one path is slow': (world) => withoutLoss(world, (net) => net.slow('A')),
  'no resolver answers': endsAtOnce,
};

/** Faults of the gateway's networks, all gone with heal(). */
class Net {
  #slowed: PathName[] = [];

  /** Loses everything between the gateway and a store on a path, or what goes one way. */
  drop(store: number, path: PathName, ...ways: ('INPUT' | 'OUTPUT')[]): void {
    for (const way of ways.length === 0 ? (['INPUT', 'OUTPUT'] as const) : ways) iptables(way, store, path, '-j', 'DROP');
  }

  /**
   * What comes from the store is answered by a reset to it, what goes there by one to us; resets themselves pass.
   * All paths in one commit: with the rules one by one, a path that has just taken over is connected before its
   * own rules come, and its greeting is lost between them without a word: that is silence, not a reset.
   */
  reset(store: number, ...paths: readonly PathName[]): void {
    const rules = paths.flatMap((path) => {
      const address = addressOf(storeNode(store), path);
      return [`INPUT -s ${address}`, `OUTPUT -d ${address}`].map((from) => `-A ${from} -p tcp --tcp-flags RST NONE -j REJECT --reject-with tcp-reset\n`);
    });
    commandWith(`*filter\n${rules.join('')}COMMIT\n`, 'iptables-restore', '--noflush');
  }

  lose(store: number, path: PathName, share: number): void {
    for (const way of ['INPUT', 'OUTPUT'] as const) iptables(way, store, path, '-m', 'statistic', '--mode', 'random', '--probability', String(share), '-j', 'DROP');
  }

  /** 4 Mbit/s and what waits longer than 400 ms is lost; a limit of packets where the kernel knows no tbf. */
  slow(path: PathName): void {
    try {
      command('tc', 'qdisc', 'add', 'dev', `path${path}`, 'root', 'tbf', 'rate', '4mbit', 'burst', '16kb', 'latency', '400ms');
      this.#slowed.push(path);
    } catch {
      for (const store of [0, 1]) {
        iptables('OUTPUT', store, path, '-m', 'limit', '--limit', '350/s', '--limit-burst', '20', '-j', 'ACCEPT');
        iptables('OUTPUT', store, path, '-j', 'DROP');
      }
    }
  }

  heal(): void {
    command('iptables', '-F');
    for (const path of this.#slowed.splice(0)) command('tc', 'qdisc', 'delete', 'dev', `path${path}`, 'root');
  }
}

function iptables(way: 'INPUT' | 'OUTPUT', store: number, path: PathName, ...rule: readonly string[]): void {
  command('iptables', '-A', way, way === 'INPUT' ? '-s' : '-d', addressOf(storeNode(store), path), ...rule);
}

interface World {
  readonly cluster: Cluster;
  readonly net: Net;
}

type Strike = (net: Net) => void;

/** Sends COUNT messages; after a quarter `strike` comes, and `during` decides when it is over. */
async function underLoad({ cluster, net }: World, strike: Strike, during: () => Promise<void>): Promise<SendReport> {
  const log = join(cluster.folder, 'send.log');
  const fault = async (): Promise<void> => {
    strike(net);
    try {
      await during();
    } finally {
      net.heal();
    }
  };
  let struck: Promise<void> | undefined;
  const sent = await runSend({
    host: HOST, port: cluster.smtpPort, count: COUNT, connections: 20, rate: RATE, domains: DOMAINS, resend: true, log,
    onProgress: ({ accepted }) => {
      if (accepted >= COUNT / 4) struck ??= fault();
    },
  });
  await struck;
  assert.equal(sent.accepted, COUNT, JSON.stringify(sent));
  await cluster.inSync(DOMAINS.length);
  await until('both paths of both stores stand', async () => (await cluster.table()).every((row) => /^(RUN|READY)$/.test(row.network_a) && /^(RUN|READY)$/.test(row.network_s)), 20_000, cluster.gateway);
  await cluster.drained();
  const report = await cluster.verify(log, CONCURRENCY - 1);
  // No process died: each message is there once. What a client sent again for want of a reply is explained.
  assert.ok(report.ok && report.arrived === COUNT, JSON.stringify(report, undefined, 1));
  return sent;
}

const forAWhile = (): Promise<void> => pause(FAULT_MS);

async function withoutLoss(world: World, strike: Strike): Promise<void> {
  await underLoad(world, strike, forAWhile);
}

/** The other path takes over: nobody is isolated or refused, and nobody waits longer than the switch takes. */
async function withoutIsolation(world: World, strike: Strike): Promise<void> {
  const { cluster } = world;
  const epochsOf = async (): Promise<readonly number[]> => (await cluster.table()).map((row) => row.epoch).sort();
  let before: readonly number[] = [];
  const sent = await underLoad(world, strike, async () => {
    before = await epochsOf();
    await forAWhile();
  });
  assert.doesNotMatch(cluster.gateway.log(), /is isolated|"to":"NG"|SMTP port is closed/);
  assert.deepEqual(await epochsOf(), before, 'no record has changed');
  assert.deepEqual(sent.replies, { 250: COUNT }, JSON.stringify(sent));
  assert.ok(sent.responseMs.max < SWITCH_MS, JSON.stringify(sent.responseMs));
}

/** The store is isolated, mail goes on with the other one, and the store counts again. Resolves with the time until then. */
async function isolated(world: World, strike: Strike): Promise<number> {
  const { cluster } = world;
  let isolatedMs = 0;
  const sent = await underLoad(world, strike, async () => {
    const startMs = performance.now();
    await until('store a is isolated', async () => (await cluster.status()).stores.some((store) => store.store === 'store-a' && !store.up && store.partitions_sync === 0), 10_000, cluster.gateway);
    isolatedMs = performance.now() - startMs;
    const before = await cluster.sinkCounts();
    await cluster.sinkHas(before.messages + RATE);
    await pause(FAULT_MS - Math.min(FAULT_MS, isolatedMs));
  });
  assert.deepEqual(sent.replies, { 250: COUNT }, JSON.stringify(sent));
  assert.doesNotMatch(cluster.gateway.log(), /SMTP port is closed/);
  return isolatedMs;
}

/** Without any mirror the port is closed; it opens by itself, and the partitions are founded or filled anew. */
async function closedAndOpen(world: World): Promise<void> {
  const { cluster } = world;
  const sent = await underLoad(world, (net) => { for (const store of [0, 1]) for (const path of PATH_NAMES) net.drop(store, path); }, async () => {
    await until('the port is closed', () => cluster.gateway.log().includes('SMTP port is closed'), 15_000, cluster.gateway);
    await pause(1000);
  });
  assert.match(cluster.gateway.log(), /SMTP port is open/);
  assert.equal(sent.replies[452], undefined, `without mirrors the answer is 451, never one for memory: ${JSON.stringify(sent)}`);
}

/**
 * The system looks up a next hop's name for half a minute: other mail flows, status says what is waited for, a
 * verb that asks for it tells the answer to who reads it by a pipe, and ends with its code, and a gateway that is
 * stopped ends all the same (bin/end-process.ts).
 */
async function endsAtOnce({ cluster }: World): Promise<void> {
  const file = join(cluster.folder, 'resolv.conf');
  writeFileSync(file, `nameserver ${SILENT_RESOLVER}\noptions timeout:30 attempts:1\n`);
  // Programs that `ip netns exec` runs have mounts of their own.
  command('mount', '--bind', file, '/etc/resolv.conf');
  const resolver = createSocket('udp4');
  resolver.bind(53, SILENT_RESOLVER);
  await once(resolver, 'listening');
  const asked = once(resolver, 'message');
  try {
    await runSend({ host: HOST, port: cluster.smtpPort, count: 1, connections: 1, domains: [NAMED_DOMAIN] });
    await asked;
    await runSend({ host: HOST, port: cluster.smtpPort, count: 10, connections: 1, domains: ['a.example'] });
    await cluster.sinkHas(10);
    const askedMs = performance.now();
    const { code, out } = await twinpost(['explain', NAMED_DOMAIN, '--config', join(cluster.folder, 'gateway.yaml')]);
    const toldMs = performance.now() - askedMs;
    assert.deepEqual([code, /^CAN'T TELL 4\.4\.3 hop\.silent\.test: no answer/m.test(out), toldMs < END_MS], [3, true, true], `${out}after ${toldMs} ms`);
    const startMs = performance.now();
    await cluster.gateway.stop();
    const stoppedMs = performance.now() - startMs;
    assert.ok(stoppedMs < END_MS, `it took ${stoppedMs} ms to end`);
    assert.match(cluster.gateway.log(), /has stopped/);
  } finally {
    resolver.close();
  }
}

async function main(name: string, maker: number): Promise<void> {
  const story = STORIES[name];
  if (story === undefined) throw new Error(`there is no story '${name}'`);
  const inNamespace = (node: string): readonly string[] => (node.startsWith('store-') ? ['ip', 'netns', 'exec', namespaceOf(maker, node === 'store-a' ? 'a' : 'b')] : []);
  const net = new Net();
  net.heal();
  const cluster = await startCluster({
    routes: [{ domain: NAMED_DOMAIN, via: 'smtp://hop.silent.test:2525' }], domains: DOMAINS, gateway: { delivery: { concurrency: CONCURRENCY } }, sinkArguments: ['--latency', '2ms'],
    storeHost: (store, path) => addressOf(storeNode(store), path === 'A' ? 'A' : 'B'), commandPrefix: inNamespace,
  });
  try {
    await story({ cluster, net });
  } catch (error) {
    process.stderr.write(`${cluster.gateway.logTail()}\n`);
    throw error;
  } finally {
    net.heal();
    await cluster.stop();
  }
}

const [, , name, maker] = process.argv;
if (name !== undefined) await main(name, Number(maker));
