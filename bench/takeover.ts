/**
 * What a dead domain costs the others at a takeover: a thousand queues with mail, half of all of it, and the older half,
 * for one domain whose next hop never greets; in the usual 16 partitions, and in one, as the worst case. Their gateway
 * is killed and left dead; its neighbour takes over. Measured from the kill: when each other queue has its first message
 * delivered, and how much memory that takes.
 */
import { HOST, startCluster, until } from '../test/process/cluster.js';
import { rounded, usageOf } from './machine.js';
import { startMuteServer } from './mute-server.js';
import type { BenchOptions } from './options.js';
import { runClient } from './processes.js';

const QUEUES = 1000;
const PARTITIONS = [16, 1];
const MESSAGES = 500_000;
const QUICK_MESSAGES = 50_000;
const MESSAGE_BYTES = 1000;
const QUICK_MESSAGE_BYTES = 10_000;
const LEASE_SECONDS = 10;
const DEAD = 'dead.example';
const BOUND_MS = 300_000;
const QUICK_BOUND_MS = 60_000;
const DELIVERED = /"time":"([^"]+)","event":"delivered".*?"to":"[^"@]*@([^"]+)"/;

interface TakeoverCase {
  readonly messages: number;
  readonly messageBytes: number;
  /** Memory of the gateway that takes over. */
  readonly limit: string;
  readonly partitions: number;
}

interface TakeoverRow extends TakeoverCase {
  readonly [key: string]: unknown;
  /** Of the queues of the other domains, the first delivery, from the kill on. */
  readonly medianSeconds: number;
  readonly p99Seconds: number;
  readonly leaseSeconds: number;
  /** Queues with no delivery within the bound. */
  readonly without: number;
  readonly usedBytes: number;
  readonly residentBytes: number;
}

export async function benchTakeover(options: BenchOptions): Promise<{ rows: TakeoverRow[] }> {
  const messages = options.quick ? QUICK_MESSAGES : MESSAGES;
  const messageBytes = options.quick ? QUICK_MESSAGE_BYTES : MESSAGE_BYTES;
  const boundMs = options.quick ? QUICK_BOUND_MS : BOUND_MS;
  const rows: TakeoverRow[] = [];
  // Room for all of it, and for a quarter.
  for (const limit of options.quick ? ['2GiB', '128MiB'] : ['4GiB', '512MiB']) {
    for (const partitions of PARTITIONS) {
      const row = await takenOver({ messages, messageBytes, limit, partitions }, boundMs);
      console.log(JSON.stringify(row));
      rows.push(row);
    }
  }
  return { rows };
}

async function takenOver(what: TakeoverCase, boundMs: number): Promise<TakeoverRow> {
  const { messages, messageBytes, limit, partitions } = what;
  const mute = await startMuteServer();
  const domains = Array.from({ length: QUEUES }, (_, i) => `n${String(i)}.example`);
  const cluster = await startCluster({
    gateways: 2, group: true, domains, mapSinkPort: (port, gateway) => (gateway === 0 ? mute.port : port),
    routes: [{ domain: DEAD, via: `smtp://${HOST}:${String(mute.port)}` }],
    store: { memory: { limit: '4GiB' } }, gateway: { mirror: { partitions }, memory: { limit: '4GiB', next_hop: 1 } },
    gatewayOf: (gateway) => (gateway === 1 ? { memory: { limit, next_hop: 1 } } : {}),
  });
  try {
    const client = { host: HOST, port: cluster.smtpPort, connections: 50, mix: [{ bytes: messageBytes, weight: 1 }], resend: true };
    for (const to of [[DEAD], domains]) {
      const { report: { accepted } } = await runClient({ ...client, count: messages / 2, domains: to });
      if (accepted !== messages / 2) throw new Error(`only ${String(accepted)} of ${String(messages / 2)} were accepted`);
    }
    const neighbour = cluster.gateways[1];
    if (neighbour === undefined) throw new Error('there are two gateways');
    const killedMs = Date.now();
    await cluster.gateway.kill();
    let residentBytes = 0;
    let first = new Map<string, number>();
    await until('a delivery from each queue', async () => {
      residentBytes = Math.max(residentBytes, usageOf(neighbour.gateway.pid).memoryBytes);
      first = firstDeliveries(neighbour.gateway.log());
      return Promise.resolve(first.size === QUEUES);
    }, boundMs, neighbour.gateway).catch(() => undefined);
    const seconds = [...first.values()].map((ms) => (ms - killedMs) / 1000).sort((a, b) => a - b);
    const at = (share: number): number => rounded(seconds[Math.min(seconds.length - 1, Math.floor(share * seconds.length))] ?? Infinity, 2);
    const { memory_used_bytes: usedBytes } = await neighbour.status();
    return {
      ...what, medianSeconds: at(0.5), p99Seconds: at(0.99), leaseSeconds: LEASE_SECONDS,
      without: QUEUES - first.size, usedBytes, residentBytes,
    };
  } finally {
    await cluster.stop();
    mute.close();
  }
}

function firstDeliveries(log: string): Map<string, number> {
  const first = new Map<string, number>();
  for (const line of log.split('\n')) {
    const [, time = '', domain = ''] = DELIVERED.exec(line) ?? [];
    if (domain !== '' && !first.has(domain)) first.set(domain, Date.parse(time));
  }
  return first;
}
