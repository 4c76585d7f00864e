/**
 * A story of docs/RUNBOOK.md (test/operator/story.ts), at configs/three-hosts as it stands there, with one strict
 * queue: hosts are rebooted under load at all three gateways, each after `host drain` has said yes. Nothing is lost,
 * altered or refused for good, and the order is exact, whether the processes of a host get time to end or none.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { readSendLog } from '../../../src/load/send-log.js';
import { verifyRun } from '../../../src/sink/verify.js';
import { Story, type Said } from '../../operator/story.js';
import { Daemon, pause, until } from '../../process/cluster.js';
import { freePorts } from '../../process/free-ports.js';
import { twinpost } from '../../process/twinpost.js';
import { readArrivals } from '../../process/witnesses.js';
import { makeFolder, removeFolder } from '../../unit/register/real-world.js';
import { EXAMPLE_PORTS, ExampleHost, addressOf, areWhole, makeGroup } from './example-host.js';
import { ENTRY } from '../../process/entry.js';

/** Of the story: yes is said within this. */
const YES_MS = 30_000;
const WHOLE_MS = 60_000;
/** What a machine takes to boot: the lease of its gateway (10 s) ends meanwhile. */
const BOOT_MS = 12_000;
const STEADY_MS = 2_000;
/** The next hop stands still, so that a host has mail when it goes. */
const STILL_MS = 1_000;
/** Messages a second at each gateway. */
const RATE = 50;

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
  await sink?.kill();
  process.removeListener('exit', killAll);
  removeFolder(folder);
});

test('an operator reboots hosts one after the other: each when host drain has said yes', { timeout: 600_000 }, async (t) => {
  const [sinkPort = 0, sinkAdmin = 0, ...own] = await freePorts(2 + EXAMPLE_PORTS.length);
  const group = { ...makeGroup(folder, new Map(EXAMPLE_PORTS.map((known, i) => [known, own[i] ?? 0])), sinkPort), order: 'strict' as const };
  const arrivalLog = join(folder, 'arrivals.log');
  const nextHop = new Daemon('sink', [
    ENTRY, 'sink', '--listen', `127.0.0.1:${String(sinkPort)}`, '--admin', `127.0.0.1:${String(sinkAdmin)}`, '--verify', '--arrival-log', arrivalLog,
  ], join(folder, 'sink.log'), `http://127.0.0.1:${String(sinkAdmin)}/healthz`);
  sink = nextHop;
  nextHop.start();
  await nextHop.ready();
  for (const number of [1, 2, 3]) hosts.push(new ExampleHost(number, group));
  const [first, second, third] = hosts;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  for (const host of hosts) host.start();
  for (const host of hosts) await host.ready();
  await areWhole(hosts, WHOLE_MS);
  const logs = hosts.map(({ name }) => join(folder, `send-${name}.log`));
  const sending = hosts.map((host, i) => runSend({
    host: addressOf(host.number), port: host.portOf(2525), count: 100_000, rate: RATE, connections: 5, resend: true,
    run: `to${String(host.number)}`, log: logs[i] ?? '', patienceMs: 200_000, signal: clients.signal,
  }));
  const standStill = async (): Promise<void> => {
    await pause(STEADY_MS);
    nextHop.freeze();
    await pause(STILL_MS);
  };

  const adminPort = first.portOf(8025);
  const asked = ['--from', `https://127.0.0.1:${String(adminPort)}`, '--token-file', group.tokens, '--ca-file', join(group.tls, 'ca.crt')];
  const story = new Story('reboot', { sinkPort, adminPort, gateways: [], asked });
  const drain = async (host: string, ...more: readonly string[]): Promise<Said> =>
    twinpost(['host', 'drain', host, '--reason', 'new kernel', ...more, ...asked]);
  const isYes = ({ code, out, error }: Said, host: string, beganMs: number): void => {
    const tookMs = performance.now() - beganMs;
    assert.deepEqual([code, new RegExp(`^yes: ${host} may be rebooted$`, 'm').test(out)], [0, true], out + error);
    assert.ok(tookMs <= YES_MS, `yes after ${String(tookMs)} ms`);
    t.diagnostic(`${host}: yes after ${tookMs.toFixed(0)} ms`);
  };

  story.tell('Three hosts, each with a gateway, a store and a member of etcd (`configs/three-hosts`). host-1 is to get a new kernel. May it be rebooted?');
  await standStill();
  let beganMs = performance.now();
  isYes(await story.type(['host', 'drain', 'host-1', '--reason', 'new kernel']), 'host-1', beganMs);
  assert.ok((await second.table()).every(({ store }) => store !== 'store-1'), 'nothing of another host is there any more');
  const waiting = (await first.status()).queued_messages;
  const down = first.shutDown();
  nextHop.thaw();
  assert.deepEqual(await down, [0, 0], 'it ends in order');
  await pause(BOOT_MS);
  first.start();
  await first.ready();
  story.tell('It is back, and host-2 is to follow. Copies have not come back to host-1 yet: it is still drained.');
  const refused = await story.type(['host', 'drain', 'host-2', '--reason', 'new kernel']);
  assert.equal(refused.code, 1);
  assert.match(refused.out, /^no: host-2 may not be rebooted: gw-3 would have no host for its copies, and needs 1: store-1 is drained$/m);
  story.tell('So first it is used again; `twinpost status` says when all mail has its copies.');
  const undone = await story.type(['host', 'drain', 'host-1', '--undo', '--reason', 'it has its kernel']);
  assert.equal(undone.code, 0, undone.out + undone.error);
  story.end();

  // At once: what gw-3 has at host-2 alone goes to host-1 first.
  await standStill();
  beganMs = performance.now();
  isYes(await drain('host-2', '--json').then((said) => {
    const verdict = JSON.parse(said.out) as { may_reboot: boolean; gateways: { gateway: string }[]; stores: string[] };
    assert.deepEqual([verdict.may_reboot, verdict.gateways.map(({ gateway }) => gateway), verdict.stores], [true, ['gw-2'], ['store-2']]);
    return { ...said, out: 'yes: host-2 may be rebooted' };
  }), 'host-2', beganMs);
  await second.die();
  nextHop.thaw();
  await pause(BOOT_MS);
  second.start();
  await second.ready();
  assert.equal((await drain('host-2', '--undo')).code, 0);
  await areWhole(hosts, WHOLE_MS);

  const unknown = await drain('host-9');
  assert.equal(unknown.code, 2);
  assert.match(unknown.error, /at a host 'host-9'; there are: host-1, host-2, host-3$/m);
  await third.killEtcd();
  const alone = await drain('host-1');
  assert.ok(waiting > RATE / 2, `${String(waiting)} messages waited at host-1`);
  assert.equal(alone.code, 1, alone.out + alone.error);
  assert.match(alone.out, /the register would lose its majority: without https:\/\/127\.0\.0\.1:\d+ at host-1 1 of 3 members are left; no answer from https:\/\/127\.0\.0\.3:/);
  assert.ok((await second.status()).stores.every(({ drained }) => !drained), 'nothing was moved');

  clients.abort();
  const reports = await Promise.all(sending);
  await until('nothing is queued', async () => (await Promise.all(hosts.map((host) => host.status()))).every(({ queued_messages: queued }) => queued === 0), YES_MS);
  await nextHop.stop();
  const arrivals = readArrivals(arrivalLog);
  for (const [i, log] of logs.entries()) {
    const report = reports[i];
    assert.ok(report !== undefined && report.accepted > 500 && report.refused === 0, JSON.stringify(report));
    const verdict = verifyRun(readSendLog(log), arrivals, { displacementMax: 0 });
    const text = JSON.stringify(verdict, undefined, 1);
    for (const fault of ['lost', 'altered', 'resurrected', 'outOfOrder'] as const) assert.equal(verdict[fault].count, 0, `${fault}: ${text}`);
    // One that was in flight when host-2 was killed.
    assert.ok(verdict.duplicated.count <= 1, text);
    t.diagnostic(`${String(report.accepted)} accepted, ${String(verdict.duplicated.count)} twice; replies ${JSON.stringify(report.replies)}`);
  }
});
