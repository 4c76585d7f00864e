/** Two gateways with one id, as when a configuration was copied to a second machine and its id forgotten. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';

import { REGISTER_VARIABLE } from '../../src/cli/config-file.js';
import { crc32 } from '../../src/platform/node/checksum.js';
import type { EventLog } from '../../src/platform/ports.js';
import { FileRegister } from '../../src/register/file/file-register.js';
import { runSend } from '../../src/load/run.js';
import { Daemon, HOST, startCluster, until, type Cluster } from './cluster.js';
import { ENTRY } from './entry.js';
import { freePorts } from './free-ports.js';

/** What bin/gateway-process.ts ends with: neither a crash nor a success. */
const FENCED_EXIT_CODE = 3;
const NO_LOG: EventLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const LEASE_MS = 4_000;
const SHORT = { store: { lease: `${String(LEASE_MS)}ms` }, gateway: { mirror: { lease: `${String(LEASE_MS)}ms`, failover_timeout: '200ms', heartbeat: '50ms' } } };

test('the older of two gateways with one id stops, says what to do, and ends with its own exit code', { timeout: 120_000 }, async () => {
  const cluster = await startCluster();
  try {
    const second = await startSecond(cluster, join(cluster.folder, 'second-machine'));
    try {
      while (cluster.gateway.isRunning) await new Promise((resolve) => { setTimeout(resolve, 25); });
      assert.equal(await cluster.gateway.stop(), FENCED_EXIT_CODE);
      const said = cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"fenced"'));
      assert.equal(said.length, 1, cluster.gateway.logTail());
      assert.match(said[0] ?? '', /with the id of this gateway owns its queues now; this one stops at once\. .*give one of the two another id/);
      assert.match(said[0] ?? '', /"gateway":"gateway-1"/);
      assert.equal(second.isRunning, true, 'the newer one serves on');
    } finally {
      await second.kill();
    }
  } finally {
    await cluster.stop();
  }
});

test('with its log in a file it says so on its terminal too', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-log-'));
  const file = join(folder, 'gateway.log');
  const cluster = await startCluster({ gateway: { log: { file } } });
  try {
    const second = await startSecond(cluster, join(cluster.folder, 'second-machine'));
    try {
      while (cluster.gateway.isRunning) await new Promise((resolve) => { setTimeout(resolve, 25); });
      assert.equal(await cluster.gateway.stop(), FENCED_EXIT_CODE);
      assert.match(cluster.gateway.log(), /^twinpost: gateway gateway-1 ends: another process with its id owns its queues now\. .*give one of the two another id.*\n$/m);
      assert.doesNotMatch(cluster.gateway.log(), /"event"/);
      assert.match(readFileSync(file, 'utf8'), /"event":"fenced"/);
    } finally {
      await second.kill();
    }
  } finally {
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a gateway whose register was lost begins anew above what the stores tell', { timeout: 120_000 }, async () => {
  const cluster = await startCluster(SHORT);
  try {
    for (let start = 0; start < 2; start++) {
      await cluster.gateway.kill();
      cluster.gateway.start();
      await cluster.gateway.ready();
    }
    await cluster.gateway.kill();
    for (const file of ['register', 'processes']) rmSync(join(cluster.folder, file));
    cluster.gateway.start();
    const { pid } = cluster.gateway;
    await cluster.gateway.ready();
    assert.equal(cluster.gateway.pid, pid);
    assert.match(cluster.gateway.log(), /it was lost or rolled back/);
    assert.ok((await cluster.status()).incarnation > 3);
    assert.equal((await runSend({ host: HOST, port: cluster.smtpPort, count: 20, connections: 2 })).accepted, 20);
    await cluster.sinkHas(20);
  } finally {
    await cluster.stop();
  }
});

test('one that can not begin anew says why in one line, as at a first start, and is no crash', { timeout: 240_000 }, async () => {
  const cluster = await startCluster(SHORT);
  const another = createServer();
  try {
    await cluster.gateway.kill();
    cluster.gateway.start();
    await cluster.gateway.ready();
    await cluster.gateway.kill();
    for (const file of ['register', 'processes']) rmSync(join(cluster.folder, file));
    for (const store of cluster.stores) store.freeze();
    const from = cluster.gateway.logBytes;
    cluster.gateway.start();
    await until('it is in the register', async () => (await cluster.status()).gateway !== '', 20_000, cluster.gateway);
    // Its port is closed before its stores answer.
    another.listen(cluster.smtpPort, HOST);
    await once(another, 'listening');
    for (const store of cluster.stores) store.thaw();
    await until('it ends', () => !cluster.gateway.isRunning, 30_000, cluster.gateway);
    const said = cluster.gateway.logSince(from);
    assert.match(said, /The gateway begins anew/);
    assert.equal(cluster.gateway.exitCode, 1, said);
    assert.match(said, new RegExp(`^twinpost: gateway: port .*${String(cluster.smtpPort)} is in use`, 'm'));
    assert.doesNotMatch(said, /"event":"crash"/);
  } finally {
    another.close();
    await cluster.stop();
  }
});

test('so does one that a store took, which had been restarted and knew nothing, before another store told', { timeout: 120_000 }, async () => {
  const cluster = await startCluster(SHORT);
  try {
    await cluster.gateway.kill();
    cluster.gateway.start();
    await cluster.gateway.ready();
    const [knows, forgets] = cluster.stores;
    assert.ok(knows !== undefined && forgets !== undefined);
    await Promise.all([cluster.gateway.kill(), forgets.kill()]);
    for (const file of ['register', 'processes']) rmSync(join(cluster.folder, file));
    forgets.start();
    await forgets.ready();
    knows.freeze();
    cluster.gateway.start();
    const { pid } = cluster.gateway;
    await until('a store takes it', () => cluster.gateway.log().includes('path to the store is active'), 20_000, cluster.gateway);
    knows.thaw();
    await cluster.gateway.ready();
    assert.equal(cluster.gateway.pid, pid);
    assert.match(cluster.gateway.log(), /it was lost or rolled back/);
    assert.equal((await runSend({ host: HOST, port: cluster.smtpPort, count: 20, connections: 2 })).accepted, 20);
  } finally {
    await cluster.stop();
  }
});

test('one that took no mail, and finds at the stores that another has come and lives, is no crash', { timeout: 240_000 }, async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'twinpost-register-'));
  const openRegister = (): Promise<FileRegister> => FileRegister.open({ stateDir, isServed: true }, { crc32, log: NO_LOG });
  let register = await openRegister();
  process.env[REGISTER_VARIABLE] = stateDir;
  const cluster = await startCluster(SHORT);
  try {
    await cluster.gateway.kill();
    for (const store of cluster.stores) store.freeze();
    const from = cluster.gateway.logBytes;
    cluster.gateway.start();
    await until('it is in the register', async () => (await cluster.status()).gateway !== '', 20_000, cluster.gateway);
    cluster.gateway.freeze();
    for (const store of cluster.stores) store.thaw();
    const second = await startSecond(cluster, join(cluster.folder, 'second-machine'));
    try {
      await second.ready();
      // The register says nothing: it is the stores who tell.
      await register.close();
      cluster.gateway.thaw();
      await until('the stores tell', () => cluster.gateway.logSince(from).includes('The gateway begins anew'), 20_000, cluster.gateway);
      register = await openRegister();
      await until('it ends', () => !cluster.gateway.isRunning, 60_000, cluster.gateway);
      const said = cluster.gateway.logSince(from);
      assert.equal(cluster.gateway.exitCode, FENCED_EXIT_CODE, said);
      assert.equal(said.split('\n').filter((line) => line.includes('"event":"fenced"')).length, 1, said);
      assert.doesNotMatch(said, /"event":"crash"/);
      assert.match(said, /^twinpost: gateway gateway-1 ends: another process with its id/m);
      assert.equal(second.isRunning, true, 'the newer one serves on');
    } finally {
      await second.kill();
    }
  } finally {
    delete process.env[REGISTER_VARIABLE];
    await cluster.stop();
    await register.close();
    rmSync(stateDir, { recursive: true, force: true });
  }
});

test('on one state_dir the second is refused, whatever its id, and the first goes on', { timeout: 120_000 }, async () => {
  const cluster = await startCluster();
  try {
    const second = await startSecond(cluster, cluster.folder);
    while (second.isRunning) await new Promise((resolve) => { setTimeout(resolve, 25); });
    assert.equal(second.exitCode, 1);
    assert.match(second.log(), /state_dir .* is in use by process \d+ .*two gateways can't share one state_dir/);
    assert.equal((await runSend({ host: HOST, port: cluster.smtpPort, count: 20, connections: 2 })).accepted, 20);
  } finally {
    await cluster.stop();
  }
});

test('in a state_dir of its own the newer process has no proof, and waits for a lease', { timeout: 180_000 }, async () => {
  const cluster = await startCluster(SHORT);
  try {
    // The next hop stands still: the mail is there when the newer process starts.
    cluster.sink.freeze();
    assert.equal((await runSend({ host: HOST, port: cluster.smtpPort, count: 50, connections: 2 })).accepted, 50);
    const second = await startSecond(cluster, join(cluster.folder, 'second-machine'));
    const startedMs = performance.now();
    try {
      await until('the older process ends', () => !cluster.gateway.isRunning, 30_000, second);
      cluster.sink.thaw();
      await cluster.sinkHas(50);
      assert.ok(performance.now() - startedMs >= LEASE_MS);
      assert.equal((await cluster.sinkCounts()).messages, 50);
    } finally {
      await second.kill();
    }
  } finally {
    await cluster.stop();
  }
});

/** A second process under the configuration of the first, but for its ports and its folder. */
async function startSecond(cluster: Cluster, stateDir: string): Promise<Daemon> {
  const config = JSON.parse(readFileSync(join(cluster.folder, 'gateway.yaml'), 'utf8')) as { gateway: Record<string, unknown> };
  const [smtp, admin] = await freePorts(2);
  mkdirSync(stateDir, { recursive: true });
  const file = join(cluster.folder, 'second.yaml');
  const other = { ...config.gateway, smtp: { listen: [`${HOST}:${String(smtp)}`] }, admin: { listen: `${HOST}:${String(admin)}` }, state_dir: stateDir };
  writeFileSync(file, JSON.stringify({ gateway: other }));
  const second = new Daemon('second', [ENTRY, 'gateway', '--config', file], join(cluster.folder, 'second.log'), `http://${HOST}:${String(admin)}/readyz`);
  second.start();
  return second;
}
