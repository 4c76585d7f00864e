/**
 * Two promises about a gateway that dies with a long queue. One queue of 1 KB messages whose next hop never greets
 * the first gateway, so that nothing leaves it:
 *
 *   restart   killed while mail comes in at full load, started again: bytes that its mirrors are sent anew, as a
 *             share of the content queued (the tail that one mirror lacked; a refill would be all of it)
 *   rescue    killed and left dead: time until its neighbour has delivered the first message; at most lease + 3 s
 */
import { HOST, pause, startCluster, type Cluster } from '../test/process/cluster.js';
import { rounded } from './machine.js';
import { startMuteServer } from './mute-server.js';
import type { BenchOptions } from './options.js';
import { runClient } from './processes.js';

const MESSAGES = 500_000;
const QUICK_MESSAGES = 50_000;
const MESSAGE_BYTES = 1000;
const LEASE_MS = 10_000;
/** Mail goes on for so long before the kill. */
const LOAD_MS = 1_000;
const BOUND_MS = 300_000;
const POLL_MS = 50;

interface RescueRow {
  readonly [key: string]: unknown;
  readonly messages: number;
  readonly leaseSeconds: number;
  readonly resentBytes: number;
  readonly resentPercent: number;
  readonly firstRescuedSeconds: number;
}

export async function benchRescue(options: BenchOptions): Promise<{ rows: RescueRow[] }> {
  const messages = options.quick ? QUICK_MESSAGES : MESSAGES;
  const mute = await startMuteServer();
  const cluster = await startCluster({
    gateways: 2, group: true, domains: ['x.example'], mapSinkPort: (port, gateway) => (gateway === 0 ? mute.port : port),
    store: { memory: { limit: '4GiB' } }, gateway: { memory: { limit: '4GiB', next_hop: 1 } },
  });
  try {
    const count = { host: HOST, port: cluster.smtpPort, connections: 50, domains: ['x.example'], mix: [{ bytes: MESSAGE_BYTES, weight: 1 }] };
    const sent = await runClient({ ...count, count: messages, resend: true });
    if (sent.report.accepted !== messages) throw new Error(`only ${sent.report.accepted} of ${messages} were accepted`);
    const resentBytes = await restartUnderLoad(cluster, runClient({ ...count, count: messages }));
    const firstRescuedSeconds = await rescued(cluster);
    const row: RescueRow = { messages, leaseSeconds: LEASE_MS / 1000, resentBytes, resentPercent: rounded((100 * resentBytes) / (messages * MESSAGE_BYTES), 3), firstRescuedSeconds };
    console.log(JSON.stringify(row));
    return { rows: [row] };
  } finally {
    await cluster.stop();
    mute.close();
  }
}

/** Bytes of changes and refills that the mirrors get again. */
async function restartUnderLoad(cluster: Cluster, load: Promise<unknown>): Promise<number> {
  await pause(LOAD_MS);
  const before = cluster.gateway.log().length;
  await cluster.gateway.kill();
  cluster.gateway.start();
  // What the client got no answer to is of no account here.
  await load.catch(() => undefined);
  await cluster.gateway.ready();
  await cluster.inSync(1, BOUND_MS);
  let bytes = 0;
  for (const line of cluster.gateway.log().slice(before).split('\n')) {
    if (line.includes('"cause":"refill begins"')) throw new Error(`a mirror was filled anew: ${line}`);
    const tail = /"tail_bytes":(\d+)/.exec(line);
    bytes += Number(tail?.[1] ?? 0);
  }
  return bytes;
}

async function rescued(cluster: Cluster): Promise<number> {
  const before = (await cluster.sinkCounts()).messages;
  const killed = performance.now();
  await cluster.gateway.kill();
  while ((await cluster.sinkCounts()).messages === before) {
    if (performance.now() - killed > BOUND_MS) throw new Error(`nothing was rescued\n${cluster.gateways[1]?.gateway.logTail() ?? ''}`);
    await pause(POLL_MS);
  }
  return rounded((performance.now() - killed) / 1000, 2);
}
