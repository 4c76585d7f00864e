/**
 * Two promises about a gateway that dies with a long queue. One queue of 1 KB messages whose next hop never greets
 * the first gateway, so that nothing leaves it:
 *
 *   restart   killed while mail comes in at full load and one mirror lags, started again: bytes that its mirrors are
 *             sent anew, as a share of the content queued (the tail that one lacked; a refill would be all of it)
 *   rescue    killed and left dead: time until its neighbour has delivered the first message; at most lease + 3 s
 *
 * A proxy stands before the second store: what is on its way there when the gateway dies never arrives.
 */
import { HOST, pause, startCluster, until, type Cluster } from '../test/process/cluster.js';
import { FaultProxy } from '../test/process/fault-proxy.js';
import { rounded } from './machine.js';
import { startMuteServer } from './mute-server.js';
import type { BenchOptions } from './options.js';
import { runClient } from './processes.js';

const MESSAGES = 500_000;
const QUICK_MESSAGES = 50_000;
const MESSAGE_BYTES = 1000;
const LEASE_MS = 10_000;
const DOMAIN = 'x.example';
/** Of the messages queued, so many have come at full load before the kill. */
const LOAD_SHARE = 0.05;
/** How long the second mirror hears nothing before the kill. */
const STALL_MS = 100;
const BOUND_MS = 300_000;

interface RescueRow {
  readonly [key: string]: unknown;
  readonly messages: number;
  readonly leaseSeconds: number;
  /** Changes that the second mirror lacked. */
  readonly apart: number;
  readonly resentBytes: number;
  readonly resentPercent: number;
  readonly firstRescuedSeconds: number;
}

export async function benchRescue(options: BenchOptions): Promise<{ rows: RescueRow[] }> {
  const messages = options.quick ? QUICK_MESSAGES : MESSAGES;
  const mute = await startMuteServer();
  const proxies = await Promise.all([0, 1].map(() => FaultProxy.start({ targetHost: HOST, targetPort: 0, recordsMax: 0 })));
  const cluster = await startCluster({
    gateways: 2, group: true, domains: [DOMAIN], mapSinkPort: (port, gateway) => (gateway === 0 ? mute.port : port),
    store: { memory: { limit: '4GiB' } }, gateway: { memory: { limit: '4GiB', next_hop: 1 } },
    mapStorePort: (port, store, path) => {
      const proxy = store === 1 ? proxies[path === 'A' ? 0 : 1] : undefined;
      proxy?.retarget(port);
      return proxy?.port ?? port;
    },
  });
  try {
    const count = { host: HOST, port: cluster.smtpPort, connections: 50, domains: [DOMAIN], mix: [{ bytes: MESSAGE_BYTES, weight: 1 }] };
    const sent = await runClient({ ...count, count: messages, resend: true });
    if (sent.report.accepted !== messages) throw new Error(`only ${sent.report.accepted} of ${messages} were accepted`);
    const { apart, resentBytes } = await restartUnderLoad(cluster, proxies, messages * (1 + LOAD_SHARE), runClient({ ...count, count: messages }));
    const firstRescuedSeconds = await rescued(cluster);
    const row: RescueRow = { messages, leaseSeconds: LEASE_MS / 1000, apart, resentBytes, resentPercent: rounded((100 * resentBytes) / (messages * MESSAGE_BYTES), 3), firstRescuedSeconds };
    console.log(JSON.stringify(row));
    return { rows: [row] };
  } finally {
    await cluster.stop();
    for (const proxy of proxies) await proxy.close();
    mute.close();
  }
}

/** Bytes of changes that the mirrors get again; none of them may be filled anew. */
async function restartUnderLoad(cluster: Cluster, proxies: readonly FaultProxy[], killAt: number, load: Promise<unknown>): Promise<{ readonly apart: number; readonly resentBytes: number }> {
  await until('mail comes in at full load', async () => (await cluster.status()).queued_messages >= killAt, BOUND_MS, cluster.gateway);
  const home = await cluster.homeOf(DOMAIN);
  for (const proxy of proxies) proxy.stall('up');
  await pause(STALL_MS);
  await cluster.gateway.kill();
  // What was held back never arrives: the mirrors stay apart.
  for (const proxy of proxies) {
    proxy.cut();
    proxy.resume();
  }
  const [first = 0, second = 0] = await Promise.all([0, 1].map(async (store) => (await cluster.numbersAt(store, [home]))[0]));
  cluster.gateway.start();
  // What the client got no answer to is of no account here.
  await load.catch(() => undefined);
  await cluster.gateway.ready();
  await cluster.inSync(1, BOUND_MS);
  const { tail_bytes: tailBytes, refill_bytes: refillBytes } = await cluster.status();
  if (refillBytes > 0) throw new Error(`a mirror was filled anew with ${refillBytes} bytes\n${cluster.gateway.logTail()}`);
  return { apart: first - second, resentBytes: tailBytes };
}

async function rescued(cluster: Cluster): Promise<number> {
  const before = (await cluster.sinkCounts()).messages;
  const killed = performance.now();
  await cluster.gateway.kill();
  await until('a rescued delivery', async () => (await cluster.sinkCounts()).messages > before, BOUND_MS, cluster.gateways[1]?.gateway);
  return rounded((performance.now() - killed) / 1000, 2);
}
