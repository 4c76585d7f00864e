/** Whom a verb asks: every one that asks a gateway or a store obeys the command line first, then the environment. */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { adminAddress } from '../../../src/cli/admin-address.js';
import { runCli } from '../../../src/cli/main.js';
import { tokensFile } from '../platform/node/token-file.js';
import { contextFor } from './played-context.js';

const folder = mkdtempSync(join(tmpdir(), 'twinpost-admin-'));
const asked: string[] = [];
const server = http.createServer((request, response) => {
  asked.push(`${request.method ?? ''} ${request.url ?? ''} ${request.headers.authorization ?? 'nobody'}`);
  const known = request.url === '/api/v1/group';
  response.writeHead(known ? 200 : 401, { 'content-type': 'application/json' });
  response.end(JSON.stringify(known ? { members: [{ id: 'store-a', kind: 'store', admin: null, away: false, self: true }, { id: 'gw-1', kind: 'gateway', admin: '10.0.0.1:8025', away: false, self: false }] } : { error: 'no' }));
});
await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
const address = `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
after(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const NONE = { 'token-file': undefined, 'ca-file': undefined };
const TOLD = tokensFile('told-of-this-test');
const MINE = tokensFile('# ann', 'ann read mine-of-this-test');
const REASON = ['--reason', 'a test'];
const VERBS: readonly (readonly string[])[] = [
  ['status', '--only'], ['queue', 'list', '--only'], ['queue', 'summary', '--only'], ['queue', 'hold', '--id', '0123456789A', ...REASON, '--only'], ['queue', 'release', '--id', '0123456789A', ...REASON, '--only'],
  ['queue', 'export', '--everything', join(folder, 'queue')], ['store', 'export', '--everything', join(folder, 'store')],
  ['store', 'status', '--only'], ['store', 'verify', '--only'], ['store', 'drain', 'store-a', ...REASON, '--only'], ['store', 'resync', 'store-a', '--partition', 'gw-1/3', ...REASON, '--only'],
  ['rescue', '--give-up', 'store-a', '--yes', ...REASON],
];

describe('the admin address of a verb', () => {
  test('is the one given, else TWINPOST_ADMIN, else on this machine; the token likewise', () => {
    const context = contextFor([], { TWINPOST_ADMIN: 'https://box:1/', TWINPOST_TOKEN_FILE: TOLD });
    assert.deepEqual(adminAddress({ from: 'other:2', 'token-file': MINE, 'ca-file': undefined }, context), { url: 'http://other:2', access: { token: 'mine-of-this-test', ca: undefined } });
    assert.deepEqual(adminAddress({ from: undefined, ...NONE }, context), { url: 'https://box:1', access: { token: 'told-of-this-test', ca: undefined } });
    assert.deepEqual(adminAddress({ from: undefined, ...NONE }, contextFor([])), { url: 'http://127.0.0.1:8025', access: { token: undefined, ca: undefined } });
    for (const wrong of [':::', 'ftp://box', '']) assert.throws(() => adminAddress({ from: wrong, ...NONE }, context), /is no admin address; an example: http:/);
  });

  test('needs a file with one token that nobody else may read, and a CA that is one', () => {
    const [loose, two] = [tokensFile('loose-of-this-test'), tokensFile('first-of-this-test', 'second-of-this-test')];
    chmodSync(loose, 0o644);
    const context = contextFor([]);
    assert.throws(() => adminAddress({ ...NONE, from: undefined, 'token-file': loose }, context), /everybody on this machine may read or write/);
    assert.throws(() => adminAddress({ ...NONE, from: undefined, 'token-file': two }, context), /has not one token/);
    assert.throws(() => adminAddress({ ...NONE, from: undefined, 'ca-file': two }, context), /is no certificate in PEM/);
  });

  for (const verb of VERBS) {
    test(`is obeyed by "${verb.slice(0, 2).join(' ')}", and its token`, async () => {
      asked.length = 0;
      await runCli(verb, contextFor([], { TWINPOST_ADMIN: address, TWINPOST_TOKEN_FILE: TOLD }));
      assert.ok(asked.length > 0, 'it is asked');
      for (const line of asked) assert.match(line, / Bearer told-of-this-test$/);
      asked.length = 0;
      await runCli([...verb, '--from', address, '--token-file', MINE], contextFor([], { TWINPOST_ADMIN: '127.0.0.1:1', TWINPOST_TOKEN_FILE: TOLD }));
      assert.ok(asked.length > 0, 'the command line goes first');
      for (const line of asked) assert.match(line, / Bearer mine-of-this-test$/);
    });
  }

  test('of another kind than the verb wants is refused by name, with those that would do', async () => {
    const printed: string[] = [];
    assert.equal(await runCli(['queue', 'export', '--everything', join(folder, 'other')], contextFor(printed, { TWINPOST_ADMIN: address })), 1);
    assert.deepEqual(printed, [`! twinpost: http://${address} is the store store-a; --from ADDRESS names a gateway: gw-1 at 10.0.0.1:8025`]);
  });
});
