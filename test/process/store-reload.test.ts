/**
 * A store that reads its file again because its admin HTTP is asked to, as a gateway does: who may ask, what is refused,
 * and that status tells of it. Real processes.
 */
import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import type { StoreStatusAnswer } from '../../src/admin-api/store-answers.js';
import { tokensFile } from '../unit/platform/node/token-file.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { twinpost } from './twinpost.js';

const BOUND_MS = 20_000;
const [OPERATOR, READER] = ['a-token-that-may-operate', 'a-token-that-may-look-on'];
type Part = Record<string, unknown>;

function fileOf(cluster: Cluster, store: string): string {
  return join(cluster.folder, `${store}.yaml`);
}

function write(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

function edit(file: string, change: (store: Part) => void): void {
  const whole = JSON.parse(readFileSync(file, 'utf8')) as { readonly store: Part };
  change(whole.store);
  write(file, JSON.stringify(whole, undefined, 2));
}

function adminOf(cluster: Cluster, store: string): string {
  const { store: { admin } } = JSON.parse(readFileSync(fileOf(cluster, store), 'utf8')) as { readonly store: { readonly admin: { readonly listen: string } } };
  return admin.listen;
}

function louder(store: Part): void {
  store['log'] = { level: 'debug' };
}

describe('a store that is asked to read its file again', { timeout: 240_000 }, () => {
  test('hears whom a gateway would, refuses a bad file whole and shows that, until one is good', async (t) => {
    const tokens = tokensFile(`ann operate ${OPERATOR}`, `mon read ${READER}`);
    const cluster = await startCluster({ store: { admin: { tokens_file: tokens } } });
    t.after(() => cluster.stop());
    const [store] = cluster.stores;
    assert.ok(store !== undefined);
    const [file, admin] = [fileOf(cluster, 'store-a'), adminOf(cluster, 'store-a')];
    const api = `http://${admin}/api/v1`;
    const asked = async (token: string, headers: Readonly<Record<string, string>> = {}, body = '{"reason":"a test","who":"a liar"}'): Promise<Part> => {
      const answer = await fetch(`${api}/config/reload`, { method: 'POST', headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers }, body });
      return { code: answer.status, ...await answer.json() as Part };
    };
    const configuration = async (): Promise<NonNullable<StoreStatusAnswer['configuration']>> => {
      const answer = await fetch(`${api}/status`, { headers: { authorization: `Bearer ${READER}` } });
      const { configuration: told } = await answer.json() as StoreStatusAnswer;
      assert.ok(told !== undefined);
      return told;
    };
    const metric = async (name: string): Promise<number> =>
      Number(new RegExp(`^twinpost_store_${name} (\\S+)$`, 'm').exec(await (await fetch(`http://${admin}/metrics`)).text())?.[1]);

    const before = await configuration();
    edit(file, louder);
    assert.deepEqual([(await asked(READER))['code'], (await asked('a-token-of-nobody'))['code']], [403, 401]);
    assert.deepEqual(await asked(OPERATOR, { origin: 'https://evil.example' }), { code: 403, error: 'this port takes nothing from pages of other servers' });
    assert.equal((await asked(OPERATOR, { 'content-type': 'text/plain' }))['code'], 415);
    assert.equal((await asked(OPERATOR, {}, '{}'))['code'], 400, 'without a reason');
    assert.deepEqual(await configuration(), before);
    assert.doesNotMatch(store.log(), /"event":"reload"/);

    const diff = await fetch(`${api}/config/diff`, { headers: { authorization: `Bearer ${READER}` } });
    assert.deepEqual(await diff.json(), { store: 'store-a', changed: ['store.log.level'], warnings: [], refused: '' });
    const { code, changed, hash } = await asked(OPERATOR);
    assert.deepEqual([code, changed, hash], [200, ['store.log.level'], (await configuration()).hash]);
    assert.notEqual(hash, before.hash);
    await until('the log says who asked, and why', () => /"level":"info".*"event":"reload".*"reason":"a test","who":"ann"/.test(store.log()));

    const good = readFileSync(file, 'utf8');
    edit(file, (section) => { Object.assign(section, { lease: '1 hour', log: { level: 'error' }, gateways: [{ id: 'gateway-9', secret: 'another-secret-of-links' }] }); });
    const refused = await asked(OPERATOR);
    assert.equal(refused['code'], 409);
    assert.match(String(refused['error']), /^\S+store-a\.yaml:\d+: store\.lease: expected a time with its unit from .*, found "1 hour"; nothing was changed$/);
    const shown = await configuration();
    assert.deepEqual([shown.hash, /^\S+store-a\.yaml:\d+: store\.lease: expected a time/.test(shown.refused)], [hash, true], shown.refused);
    assert.ok(Math.abs((shown.refused_at ?? 0) - Date.now() / 1000) < 60);
    assert.equal(await metric('config_last_reload_successful'), 0);
    // All of it is as before: who is let in, by which secret, and how much is logged.
    const { gateway } = cluster;
    await gateway.kill();
    const linksBefore = store.log().split('"event":"link"').length;
    gateway.start();
    await cluster.gateways[0]?.inSync(1);
    assert.ok(store.log().split('"event":"link"').length > linksBefore, 'lines below the level of the refused file');
    const from = [...['--from', admin, '--only'], '--token-file', tokensFile(`mon read ${READER}`)];
    const status = await twinpost(['store', 'status', ...from]);
    assert.match(status.out, /^ {2}RELOAD {6}ERROR: refused .* ago: \S+store-a\.yaml:\d+: store\.lease: expected a time .*; the one before is in force, mend the file before the next start$/m);

    write(file, good);
    assert.deepEqual([(await asked(OPERATOR))['code'], (await configuration()).refused], [200, '']);
    assert.equal(await metric('config_last_reload_successful'), 1);
    assert.ok(Date.now() / 1000 - await metric('config_last_reload_success_timestamp_seconds') < 60);
    assert.doesNotMatch((await twinpost(['store', 'status', ...from])).out, /RELOAD/);
  });

  test('is asked by config reload with the gateways, from any of them, and alone', async (t) => {
    const cluster = await startCluster({ gateways: 2, group: true });
    t.after(() => cluster.stop());
    const ofGateway = `${HOST}:${String(cluster.adminPort)}`;
    const ofStore = adminOf(cluster, 'store-a');
    const reload = (from: string, ...more: readonly string[]): ReturnType<typeof twinpost> => twinpost(['config', 'reload', '--from', from, ...more]);
    const lines = (out: string): readonly string[] => out.trim().split('\n').map((line) => line.replace(/configuration [0-9a-f]{12}/, 'HASH'));
    edit(fileOf(cluster, 'store-a'), louder);
    const good = readFileSync(fileOf(cluster, 'store-b'), 'utf8');
    write(fileOf(cluster, 'store-b'), 'store: nothing');
    assert.deepEqual((await twinpost(['config', 'diff', '--from', ofGateway, '--json'])).out.split('\n').slice(2, 3).map((line) => JSON.parse(line) as unknown), [{ store: 'store-a', changed: ['store.log.level'], warnings: [], refused: '' }]);
    const half = await reload(ofStore);
    assert.equal(half.code, 1, half.error);
    assert.deepEqual(lines(half.out).slice(0, 3), ['gateway-1: HASH, nothing in the file has changed, its certificates are read anew', 'gateway-2: HASH, nothing in the file has changed, its certificates are read anew', 'store-a: HASH, in force: store.log.level']);
    assert.match(half.out, /\nREFUSED: store-b at \S+: it refused: \S+store-b\.yaml:1: store: expected .*; nothing was changed\n$/);
    const status = await twinpost(['status', '--from', ofGateway]);
    assert.equal(status.code, 1);
    assert.match(status.out, /^ERROR: the file of store store-b is refused: \S+store-b\.yaml:1: store: /);
    assert.match(status.out, /^ {2}RELOAD {6}ERROR: refused by store-b .* ago: \S+store-b\.yaml:1: store: expected /m);

    write(fileOf(cluster, 'store-b'), good);
    const alone = await reload(adminOf(cluster, 'store-b'), '--only');
    assert.deepEqual([alone.code, lines(alone.out)], [0, ['store-b: HASH, nothing in the file has changed, its certificates are read anew']], alone.error);
    await until('nothing is wrong', async () => !(await twinpost(['status', '--from', ofGateway])).out.includes('RELOAD'), BOUND_MS, cluster.gateway);
    assert.equal((await reload(ofGateway)).code, 0);
    await cluster.stores[1]?.kill();
    const three = await reload(ofGateway);
    assert.equal(three.code, 3, 'one has not heard');
    assert.match(three.out, /PARTIAL: store-b: no answer/);
  });
});
