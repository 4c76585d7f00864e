/**
 * configs/three-hosts as it stands there, under load at all three gateways: each host in turn is killed
 * whole (gateway, store and etcd member at the same instant), the one with etcd's leader first. All that was
 * accepted comes to the next hop within the lease and 15 s of the kill, nobody gives an order; the host comes
 * back, and all is whole again before the next one dies.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { monotonicMicros, readSendLog } from '../../../src/load/send-log.js';
import { TAKEN, verifyRun } from '../../../src/sink/verify.js';
import { Daemon, pause, until } from '../../process/cluster.js';
import { freePorts } from '../../process/free-ports.js';
import { readArrivals } from '../../process/witnesses.js';
import { makeFolder, removeFolder } from '../../unit/register/real-world.js';
import { mustRun } from '../support.js';
import {
  EXAMPLE_PARTITIONS, EXAMPLE_PORTS, ExampleHost, addressOf, areWhole, makeGroup, type Group,
} from './example-host.js';
import { ENTRY } from '../../process/entry.js';

/** Of the example: the defaults. */
const LEASE_MS = 10_000;
const CONCURRENCY = 20;
const DELIVERED_MS = LEASE_MS + 15_000;
const WHOLE_MS = 60_000;
/** Messages a second at each gateway. */
const RATE = 100;
/** So long the next hop stands still before a host dies, that there is something to be rescued. */
const PAUSED_MS = 2_000;
const STEADY_MS = 2_000;

const folder = makeFolder();
const hosts: ExampleHost[] = [];
const clients = new AbortController();
let sink: Daemon | undefined;

function killAll(): void {
  for (const host of hosts) host.killNow();
  sink?.killNow();
}
process.once('exit', killAll);
after(async () => {
  clients.abort();
  for (const host of hosts) await host.die();
  sink?.thaw();
  await sink?.kill();
  process.removeListener('exit', killAll);
  removeFolder(folder);
});

function since(ms: number): string {
  return `${((performance.now() - ms) / 1000).toFixed(1)} s`;
}

async function startSink(port: number, adminPort: number, arrivalLog: string): Promise<Daemon> {
  const [listen, admin] = [`127.0.0.1:${String(port)}`, `127.0.0.1:${String(adminPort)}`];
  const args = [ENTRY, 'sink', '--listen', listen, '--admin', admin, '--verify', '--arrival-log', arrivalLog];
  const daemon = new Daemon('sink', args, join(folder, 'sink.log'), `http://${admin}/healthz`);
  daemon.start();
  await daemon.ready();
  return daemon;
}

/** Which host has etcd's leader. */
async function leader(group: Group): Promise<ExampleHost> {
  const port = String(group.ports.get(2379));
  const at = ({ number }: ExampleHost): string => `https://${addressOf(number)}:${port}`;
  const pem = (name: string): string => join(group.tls, name);
  const output = await mustRun('etcdctl', [
    '--endpoints', hosts.map(at).join(','),
    '--cacert', pem('ca.crt'), '--cert', pem('etcd-1.crt'), '--key', pem('etcd-1.key'),
    'endpoint', 'status', '-w', 'json',
  ]);
  const members = JSON.parse(output.slice(output.indexOf('['))) as {
    readonly Endpoint: string;
    readonly Status: { readonly leader: number; readonly header: { readonly member_id: number } };
  }[];
  const led = members.find(({ Status: { leader: id, header } }) => id === header.member_id);
  return hosts.find((host) => at(host) === led?.Endpoint) ?? assert.fail(output);
}

/**
 * Resolves when the two others hold everything, have delivered what waited, and have what they rescued twice:
 * on the store of the rescuer's own host, too.
 */
function areRescued(dead: ExampleHost, living: readonly ExampleHost[]): Promise<void> {
  const what = 'the living hold all partitions, the rescued ones twice, and have delivered what waited';
  const deadId = `gw-${String(dead.number)}`;
  return until(what, async () => {
    const answers = await Promise.all(living.map((host) => host.status()));
    const held = answers.reduce((sum, { partitions }) => sum + partitions, 0);
    const isBehind = answers.some((each) => each.partitions_recovering > 0 || each.queued_messages > RATE);
    const rows = (await Promise.all(living.map((host) => host.table()))).flat();
    const rescued = rows.filter(({ owner, sync }) => owner === deadId && sync === 'SYNC');
    return held === hosts.length * EXAMPLE_PARTITIONS && rescued.length === 2 * EXAMPLE_PARTITIONS && !isBehind;
  }, DELIVERED_MS, living[0]?.gateway);
}

/** Of one client: nothing lost or altered, nothing too late, repeats no more than were in flight. */
function judge(log: string, arrivals: ReturnType<typeof readArrivals>, killsUs: readonly number[]): void {
  const sent = readSendLog(log);
  const report = verifyRun(sent, arrivals);
  const text = JSON.stringify(report);
  const { lost, altered, resurrected, unknown } = report;
  for (const fault of [lost, altered, resurrected, unknown]) assert.equal(fault.count, 0, text);
  assert.ok(report.duplicated.count <= CONCURRENCY * killsUs.length, text);
  const firstUs = new Map<number, number>();
  for (const { run, id, us, kind } of arrivals) {
    if (run === sent.run && kind === TAKEN && !firstUs.has(id)) firstUs.set(id, us);
  }
  for (const { id, reply, code } of sent.records) {
    if (code < 200 || code > 299) continue;
    const cameUs = firstUs.get(id) ?? 0;
    const fromUs = Math.max(reply, ...killsUs.filter((us) => us < cameUs));
    const lateMs = (cameUs - fromUs) / 1000;
    assert.ok(lateMs < DELIVERED_MS, `message ${String(id)} came ${String(lateMs)} ms late`);
  }
}

const BOUND = { timeout: 480_000 };
test('each of three hosts dies whole, under load: its mail is delivered by the others', BOUND, async (t) => {
  const [sinkPort = 0, sinkAdmin = 0, ...own] = await freePorts(2 + EXAMPLE_PORTS.length);
  const group = makeGroup(folder, new Map(EXAMPLE_PORTS.map((known, i) => [known, own[i] ?? 0])), sinkPort);
  const arrivalLog = join(folder, 'arrivals.log');
  const nextHop = await startSink(sinkPort, sinkAdmin, arrivalLog);
  sink = nextHop;
  for (const number of [1, 2, 3]) hosts.push(new ExampleHost(number, group));
  for (const file of hosts.flatMap(({ files }) => files)) {
    await mustRun(process.execPath, [ENTRY, 'config', 'check', '--quiet', file]);
  }
  for (const host of hosts) host.start();
  for (const host of hosts) await host.ready();
  await areWhole(hosts, WHOLE_MS);
  const logs = hosts.map(({ number }) => join(folder, `send-${String(number)}.log`));
  const sending = hosts.map((host, i) => runSend({
    host: addressOf(host.number), port: host.portOf(2525), count: 100_000, rate: RATE, connections: 10,
    resend: true, run: `to${String(host.number)}`, log: logs[i] ?? '', patienceMs: 200_000,
    signal: clients.signal,
  }));
  const killsUs: number[] = [];
  const led = await leader(group);
  for (const victim of [led, ...hosts.filter((host) => host !== led)]) {
    await pause(STEADY_MS);
    nextHop.freeze();
    await pause(PAUSED_MS);
    const waiting = (await victim.status()).queued_messages;
    const startMs = performance.now();
    killsUs.push(monotonicMicros());
    await victim.die();
    nextHop.thaw();
    await areRescued(victim, hosts.filter((host) => host !== victim));
    const rescued = since(startMs);
    victim.start();
    await victim.ready();
    await areWhole(hosts, WHOLE_MS);
    const name = `${victim.name}${victim === led ? ' with etcd\'s leader' : ''}`;
    const times = `delivered after ${rescued}, whole after ${since(startMs)}`;
    t.diagnostic(`${name}: ${String(waiting)} messages waited; ${times}`);
  }
  clients.abort();
  const reports = await Promise.all(sending);
  await until('nothing is queued', async () => {
    const answers = await Promise.all(hosts.map((host) => host.status()));
    return answers.every(({ queued_messages: queued }) => queued === 0);
  }, DELIVERED_MS);
  await nextHop.stop();
  const arrivals = readArrivals(arrivalLog);
  for (const log of logs) judge(log, arrivals, killsUs);
  const accepted = reports.reduce((sum, report) => sum + report.accepted, 0);
  t.diagnostic(`${String(accepted)} messages accepted, ${String(arrivals.length)} arrivals`);
});
