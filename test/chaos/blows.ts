/**
 * The faults of a chaos run: each strikes, lasts, and is over when its promise resolves, everything healed
 * that can heal. What is drawn (victim, length) comes from the seed.
 *
 *   kill     SIGKILL, down for 0.5 to 4 s, started again. One that loses memory waits until every partition of
 *            every gateway is in sync: what survives is the death of any set that leaves one of holder and
 *            members alive (docs/GUARANTEES.md, G2), a gateway and a store at the same moment too.
 *   freeze   SIGSTOP for 1 to 15 s
 *   network  proxies on the links: see fault-proxy.ts
 *   full     a next hop that stands still, and large mail for it until the stores grant nothing more
 */
import type { Prng } from '../../src/base/prng.js';
import { runSend } from '../../src/load/run.js';
import { HOME_MS, HOST, pause, type Cluster, type Daemon } from '../process/cluster.js';
import { gatewayId } from '../process/cluster-config.js';
import { proxyNowMs, type FaultProxy } from '../process/fault-proxy.js';
import type { LinkJudge } from '../process/link-judge.js';
import type { FaultKind } from './options.js';

export const BULK_DOMAIN = 'bulk.example';
/** Past this a gateway that stands still may have been replaced. Its own view of the lease ends before the stores'. */
const LEASE_MS = 10_000;
const LEASE_MARGIN_MS = 500;
/** Dead for longer than the lease, so that another gateway takes over. */
const RESCUE_DOWN_MS = 16_000;
const RESCUE_SHARE = 0.4;
const SYNC_MS = 20_000;
const BULK_BYTES = 500_000;
const BULK_COUNT = 600;

export interface Field {
  readonly cluster: Cluster;
  readonly judge: LinkJudge;
  readonly prng: Prng;
  /** The next hop of BULK_DOMAIN. */
  readonly bulkSink: Daemon | undefined;
  /** Some gateways stay dead for longer than the lease. */
  readonly rescue: boolean;
  /** Processes that are down or standing still because of us: not to be struck again, nor started by others. */
  readonly busy: Set<Daemon>;
  readonly say: (what: string) => void;
}

/** Strikes once; resolves with false when there was nobody to strike. */
export async function strike(kind: FaultKind, field: Field): Promise<boolean> {
  switch (kind) {
    case 'kill gateway': return killGateway(field);
    case 'kill store': return killOne(field, pickIdle(field, field.cluster.stores));
    case 'kill gateway and store': return killPair(field);
    case 'freeze gateway': return freezeGateway(field);
    case 'freeze store': return freezeOne(field, pickIdle(field, field.cluster.stores), lengthMs(field, 1000, 15_000));
    case 'freeze next hop': return freezeNextHop(field);
    case 'full store': return fillStores(field);
    case 'path cut': return overLink(field, ['A'], 'cut', (proxy) => { proxy.stall('up'); proxy.stall('down'); }, (proxy) => { proxy.cut(); proxy.resume(); });
    case 'both paths cut': return overLink(field, ['A', 'B'], 'cut', (proxy) => { proxy.stall('up'); proxy.stall('down'); }, (proxy) => { proxy.cut(); proxy.resume(); });
    case 'one way cut': return overLink(field, ['A'], 'cut one way', (proxy) => { proxy.stall(field.prng.below(2) === 0 ? 'up' : 'down'); }, (proxy) => { proxy.resume(); });
    case 'path reset': return overLink(field, ['A'], 'reset', (proxy) => { proxy.refuse(true); proxy.cut(); }, (proxy) => { proxy.refuse(false); });
    case 'slow link': return overLink(field, ['A', 'B'], 'slow', (proxy) => { proxy.faults('up', { bytesPerSecond: 300_000, delayMs: 20 }); }, (proxy) => { proxy.faults('up', {}); });
  }
}

async function killGateway(field: Field): Promise<boolean> {
  const { cluster, judge, prng } = field;
  const index = prng.below(cluster.gateways.length);
  const victim = cluster.gateways[index]?.gateway;
  if (victim === undefined || field.busy.has(victim)) return false;
  return killOne(field, victim, () => { judge.noteGatewayKill(index); }, field.rescue && prng.next() < RESCUE_SHARE ? RESCUE_DOWN_MS : undefined);
}

/** Both at once; each comes back when its own time has come. */
async function killPair(field: Field): Promise<boolean> {
  const { cluster, judge, prng } = field;
  const index = prng.below(cluster.gateways.length);
  const gateway = cluster.gateways[index]?.gateway;
  const store = pickIdle(field, cluster.stores);
  if (gateway === undefined || store === undefined || !(await allInSync(field))) return false;
  const pair = [gateway, store];
  for (const each of pair) field.busy.add(each);
  judge.noteGatewayKill(index);
  await Promise.all(pair.map((each) => each.kill()));
  field.say(`${gateway.name} and ${store.name} killed at once`);
  await Promise.all(pair.map(async (each) => {
    await pause(lengthMs(field, 0, 4000));
    each.start();
    await each.ready(HOME_MS);
    field.busy.delete(each);
    field.say(`${each.name} is back`);
  }));
  return true;
}

async function killOne(field: Field, victim: Daemon | undefined, note: () => void = () => undefined, longMs?: number): Promise<boolean> {
  if (victim === undefined || !(await allInSync(field))) return false;
  const downMs = longMs ?? lengthMs(field, 500, 4000);
  field.busy.add(victim);
  note();
  await victim.kill();
  field.say(`${victim.name} killed, for ${(downMs / 1000).toFixed(1)} s`);
  await pause(downMs);
  victim.start();
  await victim.ready(HOME_MS);
  field.busy.delete(victim);
  field.say(`${victim.name} is back`);
  return true;
}

async function freezeGateway(field: Field): Promise<boolean> {
  const { cluster, judge, prng } = field;
  const index = prng.below(cluster.gateways.length);
  const victim = cluster.gateways[index]?.gateway;
  if (victim === undefined || field.busy.has(victim)) return false;
  const frozenMs = lengthMs(field, 1000, 15_000);
  const fromMs = proxyNowMs();
  const struck = await freezeOne(field, victim, frozenMs);
  if (frozenMs > LEASE_MS - LEASE_MARGIN_MS) judge.noteWindow({ cause: 'gateway stood still past its lease', gateway: gatewayId(index), fromMs, untilMs: proxyNowMs() });
  return struck;
}

async function freezeNextHop(field: Field): Promise<boolean> {
  const fromMs = proxyNowMs();
  const struck = await freezeOne(field, pickIdle(field, [field.cluster.sink]), lengthMs(field, 1000, 5000));
  if (struck) field.judge.noteSinkStood(fromMs, proxyNowMs());
  return struck;
}

async function freezeOne(field: Field, victim: Daemon | undefined, frozenMs: number): Promise<boolean> {
  if (victim === undefined) return false;
  field.busy.add(victim);
  victim.freeze();
  field.say(`${victim.name} stands still for ${(frozenMs / 1000).toFixed(1)} s`);
  await pause(frozenMs);
  victim.thaw();
  field.busy.delete(victim);
  field.say(`${victim.name} goes on`);
  return true;
}

/** A fault on paths between one gateway and one store. */
async function overLink(field: Field, paths: readonly string[], what: string, begin: (proxy: FaultProxy) => void, end: (proxy: FaultProxy) => void): Promise<boolean> {
  const { cluster, judge, prng } = field;
  const gateway = prng.below(cluster.gateways.length);
  const store = prng.below(cluster.stores.length);
  const proxies = paths.flatMap((path) => judge.proxies({ gateway, store, path }));
  const ms = lengthMs(field, 1000, 8000);
  for (const proxy of proxies) begin(proxy);
  const link = `${gatewayId(gateway)} to ${cluster.stores[store]?.name ?? ''}, path ${paths.join(' and ')}`;
  field.say(`${link}: ${what} for ${(ms / 1000).toFixed(1)} s`);
  await pause(ms);
  for (const proxy of proxies) end(proxy);
  field.say(`${link}: healed`);
  return true;
}

async function fillStores(field: Field): Promise<boolean> {
  const { bulkSink, cluster, prng } = field;
  const gateway = cluster.gateways[prng.below(cluster.gateways.length)];
  if (bulkSink === undefined || gateway === undefined || field.busy.has(bulkSink)) return false;
  field.busy.add(bulkSink);
  bulkSink.freeze();
  field.say(`large mail through ${gateway.id} until the stores are full`);
  const sent = await runSend({ host: HOST, port: gateway.smtpPort, count: BULK_COUNT, connections: 4, mix: [{ bytes: BULK_BYTES, weight: 1 }], domains: [BULK_DOMAIN], patienceMs: 3000 });
  field.say(`full: ${sent.accepted} messages of ${BULK_BYTES} bytes taken, then ${sent.replies['452'] ?? 0} × 452; the next hop goes on`);
  bulkSink.thaw();
  field.busy.delete(bulkSink);
  return true;
}

/** Whether every gateway says so, within a bound. */
async function allInSync(field: Field): Promise<boolean> {
  if (field.busy.size > 0) return false;
  try {
    for (const gateway of field.cluster.gateways) await gateway.inSync(1, SYNC_MS);
    return field.busy.size === 0;
  } catch {
    return false;
  }
}

function pickIdle(field: Field, among: readonly Daemon[]): Daemon | undefined {
  const idle = among.filter((each) => !field.busy.has(each));
  return idle.length === 0 ? undefined : field.prng.pick(idle);
}

function lengthMs(field: Field, least: number, most: number): number {
  return least + field.prng.below(most - least);
}
