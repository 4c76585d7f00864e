/**
 * The secret that gateways and stores prove to one another is changed while mail flows, by reloads alone; and a store
 * that reads its file again. Real processes; connections are cut in between, so that each handshake is done anew.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster, type Daemon } from './cluster.js';
import { LinkJudge } from './link-judge.js';
import { twinpost } from './twinpost.js';

const BOUND_MS = 20_000;
const [OLD, NEW] = ['the secret of the days before', 'the secret of the days to come'];
const NOT_TAKEN = /store is not taken|a gateway is not let in/;
type Part = Record<string, unknown>;
/** Of each path, with each store: its connection was made anew. */
const STANDS: Readonly<Record<string, readonly RegExp[]>> = Object.fromEntries(['A', 'B'].map((path) => [
  path, ['store-a', 'store-b'].map((store) => new RegExp(`"store":"${store}","path":"${path}".*path to the store (is active|stands by)`)),
]));

function write(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** By SIGHUP; what the log says of it. */
async function reload(daemon: Daemon): Promise<Part> {
  const from = daemon.logBytes;
  const told = (): readonly string[] => daemon.logSince(from).split('\n').filter((line) => line.includes('"event":"reload"'));
  daemon.signal('SIGHUP');
  await until('the file was read', () => told().length > 0, BOUND_MS, daemon);
  return JSON.parse(told()[0] ?? '') as Part;
}

/** Connections that a link has, of those that can be sent by at once. */
async function readyPaths({ gateways }: Cluster): Promise<number> {
  const each = await Promise.all(gateways.map(({ status }) => status()));
  return each.flatMap(({ stores }) => stores).flatMap(({ paths }) => paths).filter(({ state }) => state === 'RUN' || state === 'READY').length;
}

test('a secret is changed under load, process by process, and every handshake is taken', { timeout: 240_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-link-secrets-'));
  const file = join(folder, 'links.secret');
  write(file, OLD);
  const judge = await LinkJudge.start(2, 2);
  const cluster = await startCluster({
    gateways: 2, group: true, mapStorePort: judge.mapStorePort,
    gateway: { secret: undefined, secret_file: file },
    store: { gateways: ['gateway-1', 'gateway-2'].map((id) => ({ id, secret_file: file })) },
  });
  t.after(async () => {
    await cluster.stop();
    await judge.close();
    rmSync(folder, { recursive: true });
  });
  const [storeA, storeB] = cluster.stores;
  const [one, two] = cluster.gateways;
  assert.ok(storeA !== undefined && storeB !== undefined && one !== undefined && two !== undefined);
  await until('all connections stand', async () => await readyPaths(cluster) === 8, BOUND_MS, one.gateway);
  const changed = new AbortController();
  const logs = [one, two].map(({ id }) => join(folder, `${id}.log`));
  const sending = Promise.all([one, two].map(({ id, smtpPort }, index) => runSend({
    host: HOST, port: smtpPort, connections: 4, count: 1_000_000, rate: 400, domains: [`${id}.example`], log: logs[index] ?? '', signal: changed.signal,
  })));
  /** Path by path, so that mail goes on over the other one; each comes back by a handshake. */
  const shakeHands = async (): Promise<void> => {
    for (const path of ['A', 'B']) {
      const from = cluster.gateways.map(({ gateway }) => gateway.logBytes);
      for (const proxy of judge.proxies({ path })) proxy.cut();
      await until('all connections stand again', async () => {
        const stood = cluster.gateways.every(({ gateway }, i) => STANDS[path]?.every((stands) => stands.test(gateway.logSince(from[i] ?? 0))));
        return stood && await readyPaths(cluster) === 8;
      }, BOUND_MS, one.gateway);
    }
  };
  const order = [storeA, two.gateway, storeB, one.gateway];
  for (const [step, text] of [`${OLD}\n${NEW}\n`, `${NEW}\n${OLD}\n`, `${NEW}\n`].entries()) {
    write(file, text);
    for (const daemon of step === 1 ? order.toReversed() : order) {
      const told = await reload(daemon);
      assert.deepEqual([told['level'], (told['changed'] as string[]).length > 0], ['info', true], daemon.name);
      await shakeHands();
    }
  }
  changed.abort();
  for (const sent of await sending) {
    // A machine that is busy may say 451 while the paths are cut: nothing is refused for good.
    const codes = Object.keys(sent.replies).filter((code) => code !== '250' && code !== '451');
    assert.deepEqual([sent.accepted > 200, codes], [true, []], JSON.stringify(sent));
  }
  for (const daemon of order) assert.doesNotMatch(daemon.log(), NOT_TAKEN, daemon.name);
  for (const { drained } of cluster.gateways) await drained(60_000);
  for (const log of logs) {
    const report = await cluster.verify(log, 1_000_000);
    assert.deepEqual([report.lost.count, report.altered.count], [0, 0], JSON.stringify(report));
  }
  // And it is changed: the old one opens nothing any more.
  write(file, OLD);
  await reload(one.gateway);
  const from = one.gateway.logBytes;
  for (const proxy of judge.proxies({ gateway: 0, store: 0, path: 'B' })) proxy.cut();
  await until('the old one is refused', () => NOT_TAKEN.test(one.gateway.logSince(from)), BOUND_MS, one.gateway);
});

test('of a store that was forgotten, config diff and config reload say that it goes by the secret of before', { timeout: 120_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-link-secrets-'));
  const file = join(folder, 'links.secret');
  write(file, OLD);
  const cluster = await startCluster({
    gateway: { secret: undefined, secret_file: file }, store: { gateways: [{ id: 'gateway-1', secret_file: file }] },
  });
  t.after(async () => {
    await cluster.stop();
    rmSync(folder, { recursive: true });
  });
  const [storeA] = cluster.stores;
  assert.ok(storeA !== undefined);
  const paths = await readyPaths(cluster);
  const asked = ['--only', '--from', `${HOST}:${String(cluster.adminPort)}`];
  const diff = async (): Promise<readonly (number | string | null)[]> => {
    const { code, out } = await twinpost(['config', 'diff', ...asked]);
    return [code, ...out.split('\n').slice(1).filter((line) => line !== '')];
  };
  assert.deepEqual(await diff(), [0], 'nothing to tell');
  write(file, `${OLD}\n${NEW}\n`);
  await reload(cluster.gateway);
  assert.deepEqual(await diff(), [0, '  store-a goes by secret 1 of 2', '  store-b goes by secret 1 of 2']);
  write(file, `${NEW}\n${OLD}\n`);
  await reload(storeA);
  assert.deepEqual(await diff(), [0, '  store-a goes by secret 1 of 2', '  store-b goes by secret 2 of 2']);
  write(file, NEW);
  const denied = 'store-b goes by a secret that is not in the file of this gateway, or does not name this gateway in its own: it will not be taken when it connects anew';
  assert.deepEqual(await diff(), [1, `  ${denied}`]);
  const { code, out } = await twinpost(['config', 'reload', '--reason', 'the last step', ...asked]);
  assert.deepEqual([code, out.split('\n')[1]], [1, `gateway-1: ${denied}`]);
  assert.equal(await readyPaths(cluster), paths, 'what stands goes on');
  const { code: mended } = await twinpost(['config', 'reload', '--reason', 'all of them', ...asked.slice(1)]);
  assert.deepEqual([mended, await diff()], [0, [0]]);
  await cluster.stores[1]?.kill();
  const [notKnown, line] = await diff();
  assert.deepEqual([notKnown, String(line).split(':')[0]], [3, '  store-b does not show which secret it goes by']);
  const unseen = await twinpost(['config', 'reload', '--reason', 'one is away', ...asked]);
  assert.deepEqual([unseen.code, unseen.out.split('\n')[1]?.split(':').slice(0, 2).join(':')], [3, 'gateway-1: store-b does not show which secret it goes by']);
});

describe('a store that reads its file again', { timeout: 120_000 }, () => {
  test('follows whom it lets in and its log level, and refuses a bad file whole', async (t) => {
    const judge = await LinkJudge.start(2);
    const cluster = await startCluster({ mapStorePort: judge.mapStorePort });
    t.after(async () => {
      await cluster.stop();
      await judge.close();
    });
    const [store] = cluster.stores;
    assert.ok(store !== undefined);
    const file = join(cluster.folder, 'store-a.yaml');
    const good = readFileSync(file, 'utf8');
    const edited = (change: (section: Part) => void): string => {
      const whole = JSON.parse(good) as { readonly store: Part };
      change(whole.store);
      return JSON.stringify(whole, undefined, 2);
    };
    for (const [text, why] of [
      [`${good}\n  :::`, /store-a\.yaml:\d+: file: expected YAML/],
      [edited((section) => { section['gateways'] = [{ id: 'gateway-2', secret: 'short' }]; }), /store-a\.yaml:\d+: store\.gateways\[0\]\.secret: expected at least 16 characters/],
      [edited((section) => { Object.assign(section, { memory: { limit: '300MiB' }, host: 'another', log: { level: 'debug' } }); }), /store-a\.yaml:\d+: store\.host, store\.memory\.limit: expected what this process began with, found a change: that needs a restart/],
    ] as const) {
      write(file, text);
      const { level, why: told } = await reload(store);
      assert.equal(level, 'error');
      assert.match(String(told), why);
    }
    await until('both paths stand', async () => await readyPaths(cluster) === 4, BOUND_MS, cluster.gateway);
    const hash = await hashOf(cluster);
    write(file, edited((section) => { Object.assign(section, { gateways: [{ id: 'another', secret: 'a secret of somebody else' }], log: { level: 'debug' } }); }));
    const { level, changed, configuration } = await reload(store);
    assert.deepEqual([level, changed], ['info', ['store.gateways', 'store.log.level']]);
    assert.equal(await hashOf(cluster), configuration);
    assert.notEqual(configuration, hash);
    assert.equal(await readyPaths(cluster), 4, 'what stands goes on');
    for (const proxy of judge.proxies({ store: 0, path: 'B' })) proxy.cut();
    await until('it is not let in again', () => /"level":"warn".*a gateway is not let in/.test(store.log()), BOUND_MS, store);
    assert.equal(await readyPaths(cluster), 3);
    write(file, good);
    await reload(store);
    await until('it is', async () => await readyPaths(cluster) === 4, BOUND_MS, cluster.gateway);
  });
});

/** Of the first store, as the file says. */
async function hashOf(cluster: Cluster): Promise<string | undefined> {
  const { store } = JSON.parse(readFileSync(join(cluster.folder, 'store-a.yaml'), 'utf8')) as { readonly store: { readonly admin: { readonly listen: string } } };
  const answer = await fetch(`http://${store.admin.listen}/api/v1/status`);
  return ((await answer.json()) as { readonly configuration?: { readonly hash: string } }).configuration?.hash;
}
