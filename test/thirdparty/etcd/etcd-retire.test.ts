/**
 * `twinpost gateway retire` with real processes and a real etcd: of a gateway that lives and has mail, of one that is
 * dead and has mail; all of it is delivered by who is left, and the retired one starts again only after --undo.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { HOST, startCluster, until } from '../../process/cluster.js';
import { ENTRY } from '../../process/entry.js';
import { runProgram } from '../support.js';
import { EtcdCluster } from './etcd-cluster.js';

const COUNT = 600;
const BOUND_MS = 90_000;

let etcd: EtcdCluster;

before(async () => {
  etcd = await EtcdCluster.start(1);
  await etcd.isReady();
});

after(async () => {
  await etcd.stop();
});

test('mail of retired gateways, living and dead, is delivered by the others', { timeout: 600_000 }, async (t) => {
  const register = { etcd: etcd.endpoints, cluster: 'mail' };
  const cluster = await startCluster({
    gateways: 3, group: true, domains: ['x.example'],
    release: (name, section) => ({ entry: ENTRY, section: name === 'sink' ? section : { ...section, register } }),
  });
  t.after(() => cluster.stop());
  const [first, second, third] = cluster.gateways;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  cluster.sink.freeze();
  const logs: string[] = [];
  for (const { id, smtpPort } of cluster.gateways) {
    const log = join(cluster.folder, `${id}.send.log`);
    logs.push(log);
    const sent = await runSend({
      host: HOST, port: smtpPort, count: COUNT, connections: 10, mix: [{ bytes: 1000, weight: 1 }], domains: ['x.example'], resend: false, log,
    });
    assert.equal(sent.accepted, COUNT);
  }
  await second.gateway.kill();
  const run = (...args: readonly string[]): ReturnType<typeof runProgram> =>
    runProgram(process.execPath, [ENTRY, 'gateway', 'retire', ...args, '--from', `${HOST}:${String(first.adminPort)}`]);
  const unknown = await run('gateway-9', '--reason', 'typo');
  assert.equal(unknown.code, 1);
  assert.match(unknown.output, /knows no gateway 'gateway-9'; it knows gateway-1, gateway-2, gateway-3/);
  const startMs = performance.now();
  const both = Promise.all([run('gateway-2', '--reason', 'dead for good'), run('gateway-3', '--reason', 'host given back')]);
  await until('the living one takes nothing new', async () => (await fetch(`http://${HOST}:${String(third.adminPort)}/readyz`)).status === 503, BOUND_MS, third.gateway);
  cluster.sink.thaw();
  for (const { code, output } of await both) assert.equal(code, 0, output);
  t.diagnostic(`both retired after ${String(Math.round(performance.now() - startMs))} ms`);
  await cluster.sinkHas(3 * COUNT, BOUND_MS);
  await until('their records are gone', async () => {
    const left = await etcd.ctl('get', '--prefix', '--keys-only', '/twinpost/mail/partitions/');
    return !/gateway-2|gateway-3/.test(left);
  }, BOUND_MS, first.gateway);
  await third.gateway.stop();
  third.gateway.start();
  await until('it refuses to start', () => !third.gateway.isRunning, BOUND_MS, third.gateway);
  assert.match(third.gateway.log(), /gateway gateway-3 was retired by .* \(host given back\): .*--undo/);
  const undone = await run('gateway-3', '--undo', '--reason', 'host is back', '--only');
  assert.equal(undone.code, 0, undone.output);
  third.gateway.start();
  await until('it takes mail again', async () => (await fetch(`http://${HOST}:${String(third.adminPort)}/readyz`).catch(() => undefined))?.status === 200, BOUND_MS, third.gateway);
  for (const log of logs) {
    const report = await cluster.verify(log, 3 * COUNT);
    for (const fault of ['lost', 'altered'] as const) assert.equal(report[fault].count, 0, `${fault}: ${JSON.stringify(report)}`);
  }
});
