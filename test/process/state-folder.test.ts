/**
 * The folder in which a store leaves what it held, put back from a backup, copied, or given to the wrong store: real
 * processes, mail under way. What is refused is refused before anything is read; nothing that was taken is lost or comes
 * twice.
 */
import assert from 'node:assert/strict';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';

import type { StoreStatusAnswer } from '../../src/admin-api/store-answers.js';
import { runSend } from '../../src/load/run.js';
import { Daemon, HOST, pause, startCluster, until } from './cluster.js';
import { ENTRY } from './entry.js';
import type { Cluster } from './cluster.js';
import { freePorts } from './free-ports.js';

const LEASE_MS = 4_000;
const LEASE = `${String(LEASE_MS)}ms`;
const PARTITIONS = 4;
/** Past what the gateway gathers before it says what it has found. */
const TOLD_MS = 1_500;
const LACKS = 'lacks changes that it had acknowledged';

/** A cluster whose sink is down, so that what it takes stays queued; and what was sent to it. */
class Setup {
  readonly cluster: Cluster;
  readonly folder: string;
  readonly spillFile: string;
  readonly #logs: string[] = [];
  #sent = 0;

  constructor(cluster: Cluster) {
    this.cluster = cluster;
    this.folder = join(cluster.folder, 'stores');
    this.spillFile = join(this.folder, 'store-store-a.spill');
  }

  get storeA(): Daemon {
    return this.#store(0);
  }

  get storeB(): Daemon {
    return this.#store(1);
  }

  async send(count: number): Promise<void> {
    const log = join(this.cluster.folder, `sent-${String(this.#logs.length)}.log`);
    this.#logs.push(log);
    const sent = await runSend({ host: HOST, port: this.cluster.smtpPort, count, connections: 4, log });
    assert.equal(sent.accepted, count, this.cluster.gateway.logTail());
    this.#sent += count;
  }

  /** A clean stop of store-a and a start, with what it left in between kept in `backup`. */
  async backUp(backup: string): Promise<void> {
    assert.equal(await this.storeA.stop(), 0, this.storeA.logTail());
    cpSync(this.folder, backup, { recursive: true, preserveTimestamps: true });
    this.storeA.start();
    await this.storeA.ready();
    await this.cluster.inSync(PARTITIONS);
  }

  /** The gateway and the other store die; what store-a has is all that there is. Then everything is delivered, once. */
  async deliveredFromA(): Promise<void> {
    const { cluster } = this;
    await Promise.all([cluster.gateway.kill(), this.storeB.kill()]);
    cluster.gateway.start();
    await cluster.gateway.ready();
    await this.delivered();
  }

  async delivered(): Promise<void> {
    const { cluster } = this;
    cluster.sink.start();
    await cluster.sink.ready();
    await cluster.sinkHas(this.#sent);
    await cluster.drained();
    for (const log of this.#logs) {
      const report = await cluster.verify(log, 1_000);
      assert.deepEqual([report.ok, report.lost.count, report.duplicated.count], [true, 0, 0], JSON.stringify(report));
    }
    assert.equal((await cluster.sinkCounts()).messages, this.#sent);
  }

  #store(index: number): Daemon {
    return this.cluster.stores[index] ?? assert.fail();
  }
}

async function setup(t: TestContext): Promise<Setup> {
  const cluster = await startCluster({
    store: { lease: LEASE, state_dir: 'stores', stop_timeout: '0ms' },
    gateway: { mirror: { partitions: PARTITIONS, lease: LEASE, failover_timeout: '200ms', heartbeat: '50ms' } },
  });
  t.after(() => cluster.stop());
  await cluster.inSync(PARTITIONS);
  await cluster.sink.kill();
  return new Setup(cluster);
}

/** Another process under the id of a store, as on another machine: at its own addresses, with its own folder. */
async function another(t: TestContext, of: Setup, id: string, stateDir: string): Promise<{ readonly store: Daemon; boot(): Promise<string> }> {
  const [a = 0, b = 0, admin = 0] = await freePorts(3);
  const base = JSON.parse(readFileSync(join(of.cluster.folder, 'store-a.yaml'), 'utf8')) as { readonly store: object };
  const file = join(of.cluster.folder, `another-${id}-${String(admin)}.yaml`);
  writeFileSync(file, JSON.stringify({
    ...base,
    store: {
      ...base.store, id, state_dir: stateDir, admin: { listen: `${HOST}:${admin}` },
      paths: [{ name: 'A', address: `${HOST}:${a}` }, { name: 'B', address: `${HOST}:${b}` }],
    },
  }));
  const store = new Daemon(id, [ENTRY, 'store', '--config', file], `${file}.log`, `http://${HOST}:${admin}/readyz`);
  t.after(() => store.kill());
  return { store, boot: () => bootAt(admin) };
}

async function bootAt(admin: number): Promise<string> {
  return ((await (await fetch(`http://${HOST}:${String(admin)}/api/v1/status`)).json()) as StoreStatusAnswer).boot_id;
}

function adminOf({ folder }: Cluster, id: string): number {
  const { store } = JSON.parse(readFileSync(join(folder, `${id}.yaml`), 'utf8')) as { readonly store: { readonly admin: { readonly listen: string } } };
  return Number(store.admin.listen.split(':').at(-1));
}

async function isRefused(store: Daemon, said: RegExp): Promise<void> {
  const from = store.logBytes;
  store.start();
  await assert.rejects(store.ready(), /ended while it started/);
  const lines = store.logSince(from).split('\n').filter((line) => line.includes('state_dir') || line.includes('.spill'));
  assert.equal(lines.length, 1, store.logSince(from));
  assert.match(lines[0] ?? '', said);
}

const NOT_READ = /store store-a: \S+store-store-a\.spill of \S+Z is not read: it is a copy, or was put back from a backup, so that it may lack mail that came later\. It has \d+ messages in 4 partitions: gateway-1\/\d, .* rename it to store-store-a\.spill\.moved/;

describe('the folder of a store', { timeout: 900_000 }, () => {
  test('put back from a backup of an earlier stop is refused; without it the store is filled, and nothing is lost', async (t) => {
    const all = await setup(t);
    const { cluster, storeA, spillFile } = all;
    await all.send(50);
    const backup = join(cluster.folder, 'backup');
    await all.backUp(backup);
    await all.send(50);
    assert.equal(await storeA.stop(), 0, storeA.logTail());
    for (const name of readdirSync(all.folder)) if (name.startsWith('store-store-a')) rmSync(join(all.folder, name));
    cpSync(backup, all.folder, { recursive: true, preserveTimestamps: true, filter: (from) => !from.includes('store-store-b') });
    const before = readFileSync(spillFile);
    await isRefused(storeA, NOT_READ);
    assert.deepEqual(readFileSync(spillFile), before, 'it stays as it is');
    await all.send(10);
    rmSync(spillFile);
    storeA.start();
    await storeA.ready();
    await cluster.inSync(PARTITIONS);
    await all.deliveredFromA();
  });

  test('put back by a snapshot of its volume is found out by the gateway, which sends what it lacks', async (t) => {
    const all = await setup(t);
    const { cluster, storeA, spillFile } = all;
    await all.send(50);
    await all.backUp(join(cluster.folder, 'backup'));
    await all.send(50);
    assert.equal(await storeA.stop(), 0, storeA.logTail());
    // The very file of the stop before, with all that a file system knows of it: a snapshot has just that.
    renameSync(`${spillFile}.used`, spillFile);
    chmodSync(spillFile, 0o600);
    const from = cluster.gateway.logBytes;
    storeA.start();
    await storeA.ready();
    await cluster.inSync(PARTITIONS);
    const said = (): readonly string[] => cluster.gateway.logSince(from).split('\n').filter((line) => line.includes(LACKS));
    await until('the gateway says so', () => said().length > 0, 10_000, cluster.gateway);
    await pause(TOLD_MS);
    assert.equal(said().length, 1, 'once');
    assert.match(said()[0] ?? '', /"store":"store-a","changes":\d+,"partitions":"gateway-1\/\d/);
    await all.deliveredFromA();
  });

  test('copied to another machine is refused there while the store lives, and no less when it was copied without its file', async (t) => {
    const all = await setup(t);
    const { cluster, storeA } = all;
    await all.send(50);
    const copied = join(cluster.folder, 'copied');
    await all.backUp(copied);
    await all.send(20);
    const { store } = await another(t, all, 'store-a', copied);
    await isRefused(store, NOT_READ);
    assert.ok(existsSync(join(copied, 'store-store-a.spill')));
    // Without the file nothing tells; it is a new boot, empty, at addresses that no gateway asks.
    rmSync(join(copied, 'store-store-a.spill'));
    const bare = await another(t, all, 'store-a', copied);
    bare.store.start();
    await bare.store.ready();
    await all.send(20);
    assert.notEqual(await bare.boot(), await bootAt(adminOf(cluster, 'store-a')));
    assert.equal(await cluster.partitionsAt(0), PARTITIONS, 'the one that lives has them still');
    await bare.store.kill();
    assert.equal(storeA.isRunning, true);
    await all.deliveredFromA();
  });

  test('moved to another disk is gone on from when a person says so, as the same member', async (t) => {
    const all = await setup(t);
    const { cluster, storeA, spillFile } = all;
    await all.send(50);
    assert.equal(await storeA.stop(), 0, storeA.logTail());
    cpSync(spillFile, `${spillFile}.moved`);
    rmSync(spillFile);
    const from = cluster.gateway.logBytes;
    storeA.start();
    await storeA.ready();
    await cluster.inSync(PARTITIONS);
    assert.match(storeA.log(), /spill file loaded: this store goes on as the boot that wrote it/);
    assert.doesNotMatch(cluster.gateway.logSince(from), new RegExp(LACKS));
    await all.deliveredFromA();
  });

  test('on a disk that is there only after all stores have started: what began empty takes in all that it has', async (t) => {
    const all = await setup(t);
    const { cluster, folder } = all;
    await all.send(100);
    const disk = join(cluster.folder, 'disk');
    const isOf = (id: string) => (name: string): boolean => name.startsWith(`store-${id}`);
    assert.equal(await cluster.gateway.stop(), 0, cluster.gateway.logTail());
    for (const store of [all.storeA, all.storeB]) assert.equal(await store.stop(), 0, store.logTail());
    renameSync(folder, disk);
    mkdirSync(folder, { mode: 0o700 });
    for (const each of [all.storeA, all.storeB, cluster.gateway]) each.start();
    for (const each of [all.storeA, all.storeB, cluster.gateway]) await each.ready();
    assert.match(cluster.gateway.log(), /every copy of a partition is lost, or was given up: it begins empty\b[^\n]*disk/);
    await cluster.inSync(PARTITIONS);
    await all.send(50);
    for (const store of [all.storeA, all.storeB]) {
      assert.equal(await store.stop(), 0, store.logTail());
      for (const name of readdirSync(folder).filter(isOf(store.name))) rmSync(join(folder, name));
      for (const name of readdirSync(disk).filter(isOf(store.name))) renameSync(join(disk, name), join(folder, name));
      store.start();
      await store.ready();
      await cluster.inSync(PARTITIONS);
    }
    await all.delivered();
  });

  test('put under another id is refused with nothing read, and says what to do', async (t) => {
    const all = await setup(t);
    await all.send(50);
    assert.equal(await all.storeA.stop(), 0, all.storeA.logTail());
    const moved = join(all.cluster.folder, 'moved');
    mkdirSync(moved);
    renameSync(all.spillFile, join(moved, 'store-store-a.spill'));
    const { store } = await another(t, all, 'store-c', moved);
    await isRefused(store, /store store-c: its state_dir \S+moved has what store store-a held when it stopped \(store-store-a\.spill\), and nothing of store store-c; nothing was read\. If this is to be store store-a: give it that id\. Else name another state_dir/);
    assert.deepEqual(readdirSync(moved), ['store-store-a.spill']);
    renameSync(join(moved, 'store-store-a.spill'), all.spillFile);
    all.storeA.start();
    await all.storeA.ready();
    await all.cluster.inSync(PARTITIONS);
    await all.deliveredFromA();
  });

  test('of a store that lives is refused to a second process, at other addresses too', async (t) => {
    const all = await setup(t);
    await all.send(20);
    const { store } = await another(t, all, 'store-a', all.folder);
    store.start();
    await until('it gives up', () => store.exitCode !== undefined, 60_000, store);
    assert.match(store.log(), /store store-a: another process of it still has its files \(\S+store-store-a\.spill\.lock\): stop that one, or give this store another id or state_dir/);
    await all.send(20);
    await all.deliveredFromA();
  });
});
