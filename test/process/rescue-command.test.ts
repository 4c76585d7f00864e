/**
 * `twinpost rescue` as a process of its own, without an SMTP port: started after a gateway was killed, it delivers what
 * lies at the stores, all of it once and in order, and gives the queues back when the gateway is there again. With
 * both stores silent as well, it says who is waited for; to give up the one that is dead does nothing, for the other has
 * all, and goes on when it answers. What it can't understand it refuses in one line.
 *
 * The mail waits at the stores because the sink stands still from the start: it never greets, so no final dot is sent
 * before the kill, and none may come twice.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { gatewayConfig, type Section } from './cluster-config.js';
import type { StatusAnswer } from '../../src/admin-api/gateway-answers.js';
import { Daemon, HOST, startCluster, until, type Cluster } from './cluster.js';
import { ENTRY } from './entry.js';
import { freePorts } from './free-ports.js';
import { SmtpTalk } from './smtp-talk.js';

const OWNER = 'gateway-1';
const RESCUE = 'rescue-1';
const GROUP = [OWNER, RESCUE];
const SECRET = 'a secret of the group, of which the rescue is one';
const FIFO = ['a.example', 'b.example'];
const STRICT = 'strict.example';
const CONCURRENCY = 20;
const COUNT = 1500;
const STRICT_COUNT = 300;
const BOUND_MS = 60_000;
/** Of a gateway, by default. */
const PARTITIONS = 16;
/**
 * Short, but by the rule: 3 × failover + 2 × heartbeat + 3 s. New partitions of the rescue itself do not come to ask for a
 * person before the end.
 */
const MIRROR = { lease: '4s', failover_timeout: '200ms', heartbeat: '50ms', replace_after: '2min' };

interface Told {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
}

function twinpost(...args: readonly string[]): Promise<Told> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [ENTRY, ...args], { stdio: ['ignore', 'pipe', 'pipe'], timeout: BOUND_MS, killSignal: 'SIGKILL' });
    let out = '';
    let error = '';
    child.stdout.on('data', (bytes: Buffer) => { out += bytes.toString(); });
    child.stderr.on('data', (bytes: Buffer) => { error += bytes.toString(); });
    child.once('error', reject);
    child.once('close', (code) => { resolve({ code, out, error }); });
  });
}

/** What is asked of the rescue: its own admin HTTP. */
interface Rescue {
  readonly daemon: Daemon;
  readonly admin: string;
  status(): Promise<StatusAnswer>;
}

/** A gateway, and stores that know a rescue beside it; the sink stands still. */
async function startLoaded(t: TestContext): Promise<{ readonly cluster: Cluster; readonly logs: readonly string[] }> {
  const cluster = await startCluster({
    domains: [...FIFO, STRICT], strictDomains: [STRICT],
    store: { lease: MIRROR.lease, gateways: GROUP.map((id) => ({ id, secret: SECRET })) },
    gateway: { group: GROUP, secret: SECRET, mirror: MIRROR, delivery: { concurrency: CONCURRENCY, retry: { first: '100ms', max: '1s' } } },
  });
  t.after(() => cluster.stop());
  cluster.sink.freeze();
  const logs = [await send(cluster, 'fifo', FIFO, COUNT), await send(cluster, 'strict', [STRICT], STRICT_COUNT)];
  assert.equal((await cluster.status()).queued_messages, COUNT + STRICT_COUNT);
  return { cluster, logs };
}

async function send(cluster: Cluster, run: string, domains: readonly string[], count: number): Promise<string> {
  const log = join(cluster.folder, `${run}.jsonl`);
  const sent = await runSend({ host: HOST, port: cluster.smtpPort, count, connections: 10, domains, run, resend: true, log });
  assert.equal(sent.accepted, count, JSON.stringify(sent));
  return log;
}

/** By the gateway's own file: another id, folder and admin port, and its SMTP port still in it. */
async function startRescue(t: TestContext, cluster: Cluster): Promise<Rescue> {
  const { gateway } = JSON.parse(readFileSync(join(cluster.folder, 'gateway.yaml'), 'utf8')) as { gateway: Section };
  const [port = 0] = await freePorts(1);
  const admin = `${HOST}:${String(port)}`;
  const folder = join(cluster.folder, RESCUE);
  mkdirSync(folder);
  const file = join(cluster.folder, 'rescue.yaml');
  writeFileSync(file, JSON.stringify({ gateway: { ...gateway, id: RESCUE, host: `host-${RESCUE}`, admin: { listen: admin } } }));
  const daemon = new Daemon(RESCUE, [ENTRY, 'rescue', '--config', file, '--state-dir', folder], join(cluster.folder, 'rescue.log'), `http://${admin}/readyz`, [], cluster.environment);
  const endNow = (): void => { daemon.killNow(); };
  process.once('exit', endNow);
  t.after(async () => {
    await daemon.kill();
    process.removeListener('exit', endNow);
  });
  daemon.start();
  const status = async (): Promise<StatusAnswer> => (await (await fetch(`http://${admin}/api/v1/status`)).json()) as StatusAnswer;
  // Without a store it is not ready, and answers all the same.
  await until('it answers', async () => (await status()).gateway === RESCUE, BOUND_MS, daemon);
  return { daemon, admin, status };
}

/** Everything once; within `concurrency` in order, and exactly so where the route is strict. */
async function arrived(cluster: Cluster, logs: readonly string[], rescue: Rescue): Promise<void> {
  await until('all mail has arrived', async () => (await cluster.sinkCounts()).messages >= COUNT + STRICT_COUNT, BOUND_MS, rescue.daemon);
  await until('the rescue has nothing left', async () => (await rescue.status()).queued_messages === 0, BOUND_MS, rescue.daemon);
  for (const [index, log] of logs.entries()) await once(cluster, log, index === 0 ? CONCURRENCY - 1 : 0);
}

async function once(cluster: Cluster, log: string, displacementMax: number): Promise<void> {
  const report = await cluster.verify(log, displacementMax);
  const text = JSON.stringify(report, undefined, 1);
  for (const fault of ['lost', 'altered', 'resurrected', 'outOfOrder', 'duplicated'] as const) assert.equal(report[fault].count, 0, `${fault}: ${text}`);
  assert.equal(report.arrived, report.accepted, text);
}

async function takesNoMail(port: number): Promise<void> {
  await assert.rejects(SmtpTalk.start(port), { code: 'ECONNREFUSED' });
}

describe('twinpost rescue', { timeout: 360_000 }, () => {
  test('delivers the mail of a killed gateway, takes none, and gives the queues back to it', async (t) => {
    const { cluster, logs } = await startLoaded(t);
    await cluster.gateway.kill();
    cluster.sink.thaw();
    const rescue = await startRescue(t, cluster);
    assert.ok(rescue.daemon.log().includes(`rescue ${RESCUE} takes no mail and stands by for ${OWNER}; admin on ${rescue.admin}\n`), rescue.daemon.logTail());
    await until('the queues are taken over', async () => (await rescue.status()).partitions_rescued >= FIFO.length + 1, BOUND_MS, rescue.daemon);
    await takesNoMail(cluster.smtpPort);
    await arrived(cluster, logs, rescue);
    assert.equal((await cluster.sinkCounts()).messages, COUNT + STRICT_COUNT);

    cluster.gateway.start();
    await cluster.gateway.ready();
    const after = await send(cluster, 'after', [...FIFO, STRICT], 300);
    await until('every queue is handed back', async () => (await rescue.status()).partitions_rescued === 0, BOUND_MS, rescue.daemon);
    assert.ok(rescue.daemon.log().includes('a partition is handed back'), rescue.daemon.logTail());
    await cluster.drained(BOUND_MS);
    await cluster.inSync(FIFO.length + 1, BOUND_MS);
    await once(cluster, after, CONCURRENCY - 1);
    assert.equal(await rescue.daemon.stop(), 0, 'told to stop, it ends well');
    await once(cluster, await send(cluster, 'alone', FIFO, 100).then(async (log) => { await cluster.drained(BOUND_MS); return log; }), CONCURRENCY - 1);
  });

  test('--give-up of the store that died with the gateway loses nothing: the other has all, and goes on when it answers', async (t) => {
    const { cluster, logs } = await startLoaded(t);
    const [lost, silent] = cluster.stores;
    assert.ok(lost !== undefined && silent !== undefined);
    silent.freeze();
    await Promise.all([cluster.gateway.kill(), lost.kill()]);
    cluster.sink.thaw();
    const rescue = await startRescue(t, cluster);
    // Its own, which are new, wait for the stores to answer.
    await until('all partitions of the dead wait for both stores', async () => {
      return (await rescue.status()).waiting_for.copies_away === PARTITIONS;
    }, BOUND_MS, rescue.daemon);
    const order = ['rescue', '--from', rescue.admin, '--reason', 'disk burnt', '--yes', '--give-up'] as const;
    const unknown = await twinpost(...order, lost.name, '--give-up', silent.name, '--give-up', 'store-z');
    assert.deepEqual([unknown.code, unknown.out], [1, '']);
    const nothing = 'this gateway knows no store \'store-z\'.*nothing was done';
    assert.match(unknown.error, new RegExp(`^WARNING: .*\ntwinpost: .*${nothing}\\n$`, 's'));
    const told = await twinpost(...order, lost.name);
    assert.deepEqual([told.code, told.out], [3, '']);
    assert.match(told.error, new RegExp(`^\\d+ partitions? (has|have) another copy at ${silent.name}, .*: ${OWNER}/`));
    assert.equal((await cluster.sinkCounts()).messages, 0);
    silent.thaw();
    await arrived(cluster, logs, rescue);
    assert.equal((await rescue.status()).losses, 0);
    const again = await twinpost(...order, lost.name);
    assert.equal(again.code, 3, `nothing waits any more: ${again.out}${again.error}`);
  });

  test('--give-up of a dead store is given once: each gateway that waits for it goes on, whoever is asked', async (t) => {
    const cluster = await startCluster({ gateways: 2, group: true, store: { lease: MIRROR.lease }, gateway: { rescue: 'off', mirror: MIRROR } });
    t.after(() => cluster.stop());
    const [dead, empty] = cluster.stores;
    assert.ok(dead !== undefined && empty !== undefined);
    const gateways = cluster.gateways.map(({ gateway }) => gateway);
    await Promise.all([...gateways, dead, empty].map((one) => one.kill()));
    for (const one of [empty, ...gateways]) one.start();
    const all = async (holds: (status: StatusAnswer) => boolean): Promise<boolean> =>
      (await Promise.all(cluster.gateways.map((one) => one.status()))).every(holds);
    await until('all wait for the dead store', () => all(({ waiting_for: waits }) => waits.copies_away === PARTITIONS), BOUND_MS, gateways[0]);
    const told = await twinpost('rescue', '--from', `${HOST}:${String(cluster.adminPort)}`, '--reason', 'burnt', '--yes', '--give-up', dead.name);
    assert.equal(told.code, 0, told.error);
    assert.match(told.error, new RegExp(`^WARNING: gateway-1, gateway-2 give up the copies at ${dead.name}: `));
    for (const { id } of cluster.gateways) assert.match(told.out, new RegExp(`^${id}: ${String(PARTITIONS)} partitions will begin empty: ${id}/`, 'm'));
    await until('all is served', () => all(({ ready, partitions_waiting: waiting }) => ready && waiting === 0), BOUND_MS, gateways[0]);
  });

  test('refuses what it can not understand in one line', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-rescue-'));
    t.after(() => { rmSync(folder, { recursive: true, force: true }); });
    const written = (name: string, section: Section): string => {
      const file = join(folder, name);
      writeFileSync(file, JSON.stringify(section));
      return file;
    };
    const ports = { gateways: [{ smtp: 1, admin: 7 }], sink: 2, sinkAdmin: 1, stores: [[1, 2, 3], [4, 5, 6]] } as const;
    const alone = written('alone.yaml', gatewayConfig({}, ports, folder, 0));
    const register = { etcd: [`http://${HOST}:1`], cluster: 'test' };
    const off = written('off.yaml', { register, ...gatewayConfig({ gateway: { group: GROUP, rescue: 'off' } }, ports, folder, 0) });
    const cases: readonly (readonly [args: readonly string[], line: RegExp])[] = [
      [[], /^twinpost: rescue needs --config FILE; /],
      [['--config', join(folder, 'none.yaml')], /none\.yaml:1: file: expected a file that can be read, found ENOENT$/],
      [['--config', alone], /^twinpost: .*alone\.yaml: gateway\.group: expected the gateways to rescue, found none besides gateway-1$/],
      [['--config', off], /^twinpost: .*off\.yaml: gateway\.rescue: expected on, found off$/],
      [['--config', off, '--reason', 'burnt'], /^twinpost: rescue: --reason, --yes and --json belong to --give-up$/],
      [['--cofnig', off], /^twinpost: Unknown argument: cofnig\. Did you mean --config\? twinpost rescue --help shows what there is$/],
      [['--give-up', 'store-a'], /^twinpost: rescue: say the --reason, which is logged$/],
      [['--give-up', 'store-a', '--give-up-memory', '--reason', 'burnt'], /^twinpost: rescue: --give-up and --give-up-memory are two orders: /],
      [['--give-up', 'store-a', '--reason', 'burnt', '--from', `${HOST}:1`], /^twinpost: rescue: mail may be lost or delivered twice, so it asks first: /],
      [['--give-up', 'store-a', '--reason', 'burnt', '--yes', '--from', `${HOST}:1`], /^twinpost: no answer from http:\/\/127\.0\.0\.1:1: connection refused; /],
    ];
    for (const [args, line] of cases) {
      const { code, out, error } = await twinpost('rescue', ...args);
      const isUsage = /Unknown argument|belong to --give-up|say the --reason|two orders|asks first|needs --config/.test(error);
      assert.deepEqual([code, out], [isUsage ? 2 : 1, ''], error);
      assert.match(error.replace(/\n$/, ''), line);
      assert.equal(error.split('\n').length, 2, error);
    }
  });
});
