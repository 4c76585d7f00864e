/**
 * The admin port, as who should not use it would: pages of other servers in an operator's browser, tokens that are none or
 * may too little, clients that connect and say nothing. At a gateway's own server on loopback, with TLS where it matters.
 */
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { Registry } from 'prom-client';
import type { Route } from '../../src/admin-api/route.js';
import { gatewayRoutes, groupRoutes } from '../../src/admin-api/routes.js';
import type { Order } from '../../src/admin-api/orders.js';
import { AdminClient } from '../../src/cli/admin-client.js';
import { startAdmin } from '../../src/gateway/admin/server.js';
import type { AdminPorts } from '../../src/gateway/admin/server.js';
import type { AdminOptions, RunningAdmin } from '../../src/platform/node/admin-server.js';
import { selfSigned } from '../dialog/self-signed.js';
import { until } from '../process/cluster.js';
import { STATUS } from '../unit/cli/sample-answers.js';
import { KeptLog } from '../unit/gateway/admin/kept-log.js';
import { tokensFile } from '../unit/platform/node/token-file.js';

const OWN = { host: '127.0.0.1', port: 0 };
const ORDER = { reason: 'new disk', who: 'mallory' };
const DRAIN = '/api/v1/stores/store-a/drain';
const SLOW = 1_000;
const tls = selfSigned();

interface Played {
  readonly admin: RunningAdmin;
  readonly log: KeptLog;
  readonly drains: Order[];
}

/** With what a drain, a look at status, and a read of content need. */
async function played(t: TestContext, options: Omit<AdminOptions, 'listen'> = {}): Promise<Played> {
  const [log, drains] = [new KeptLog(), new Array<Order>()];
  const stores = {
    drainState: () => ({ draining: true, mirrors: 0, stuck: 0, copiesMissing: 0, kept: true, registerAway: '' }),
    drain: (_store: string, order: Order) => { drains.push(order); },
    whenSettled: (_store: string, then: () => void) => { then(); },
  };
  const exports = { exportPage: () => ({ rows: new Uint8Array(0), payload: new Uint8Array(0), nextCursor: undefined }) };
  const others = { rescue: {}, orders: {}, rules: {}, rebalance: {}, retire: {}, reloads: {}, walks: {}, logSearch: {} };
  const ports = { ...others, view: { status: () => STATUS }, registry: new Registry(), stores, exports, log };
  const admin = await startAdmin({ ...options, listen: OWN }, ports as unknown as AdminPorts);
  t.after(() => admin.close());
  return { admin, log, drains };
}

/** As any client may: fetch() would not send another Host, or an Origin. */
function send(port: number, method: string, path: string, headers: Record<string, string>, body = ''): Promise<readonly [code: number, error: string]> {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, method, path, agent: false, headers: { host: `127.0.0.1:${String(port)}`, ...headers } }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => { text += chunk.toString(); });
      response.on('end', () => { resolve([response.statusCode ?? 0, text]); });
    });
    request.on('error', reject);
    request.end(body);
  });
}

const JSON_TYPE = { 'content-type': 'application/json' };

describe('a page of another server in an operator\'s browser', () => {
  test('drains nothing: no form, no text, no foreign or hidden origin', async (t) => {
    const { admin: { port }, drains } = await played(t);
    const body = JSON.stringify(ORDER);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/jsonx', 'text/plain; application/json', '']) {
      const [code] = await send(port, 'POST', DRAIN, type === '' ? {} : { 'content-type': type }, body);
      assert.equal(code, 415, type);
    }
    for (const origin of ['http://evil.example', 'null', `http://127.0.0.1:${String(port + 1)}`, `http://127.0.0.1:${String(port)}.evil.example`, '']) {
      for (const type of ['text/plain', 'application/json']) {
        const [code, error] = await send(port, 'POST', DRAIN, { 'content-type': type, origin }, body);
        assert.deepEqual([code, /takes nothing from pages of other servers/.test(error)], [403, true], origin);
      }
    }
    assert.equal((await send(port, 'POST', DRAIN, { ...JSON_TYPE, host: 'evil.example' }, body))[0], 403, 'by a name of its own');
    assert.equal((await send(port, 'OPTIONS', DRAIN, { origin: 'http://evil.example', 'access-control-request-method': 'POST' }))[0], 404, 'nothing is granted beforehand');
    assert.deepEqual(drains, []);
    assert.equal((await send(port, 'POST', DRAIN, { ...JSON_TYPE, origin: `http://127.0.0.1:${String(port)}` }, body))[0], 200);
    assert.equal((await send(port, 'POST', DRAIN, { 'content-type': 'application/json; charset=utf-8' }, body))[0], 200);
    assert.deepEqual(drains, [ORDER, ORDER]);
  });

  test('is heard at no address that takes something', async (t) => {
    const { admin: { port } } = await played(t);
    for (const { method, path } of Object.values<Route>({ ...gatewayRoutes, ...groupRoutes })) {
      if (method !== 'POST') continue;
      const address = path.replace(/:\w+/g, 'x');
      assert.equal((await send(port, 'POST', address, { ...JSON_TYPE, origin: 'http://evil.example' }, '{}'))[0], 403, path);
    }
  });

  test('a change without a reason, or who, or in broken JSON is none', async (t) => {
    const { admin: { port }, drains } = await played(t);
    for (const body of ['', '{}', '[]', 'null', '"x"', '{"who":"x"}', '{"reason":"x"}', '{"reason":" ","who":"x"}', '{"reason":', '{"__proto__":{"reason":"x","who":"y"}}', `{"reason":"${'x'.repeat(70_000)}"}`]) {
      const [code] = await send(port, 'POST', DRAIN, JSON_TYPE, body);
      assert.ok(code === 400 || code === 413, `${body.slice(0, 30)}: ${String(code)}`);
    }
    assert.deepEqual(drains, []);
  });
});

describe('a client with the wrong token', () => {
  test('gets 401 without one that is known, 403 for what it may not, and its name is who did it', async (t) => {
    const file = tokensFile('mon read monitoring-token-1', 'ann operate anns-own-token-22', 'legal content legals-own-token-3');
    const { admin: { port }, drains, log } = await played(t, { tokensFile: file });
    const codes = async (token: string | undefined, scheme = 'Bearer'): Promise<readonly number[]> => {
      const by: Record<string, string> = token === undefined ? {} : { authorization: `${scheme} ${token}` };
      return [
        (await send(port, 'GET', '/readyz', by))[0], (await send(port, 'GET', '/api/v1/status', by))[0],
        (await send(port, 'GET', '/api/v1/queues/out/export', by))[0], (await send(port, 'POST', DRAIN, { ...JSON_TYPE, ...by }, JSON.stringify(ORDER)))[0],
      ];
    };
    assert.deepEqual(await codes(undefined), [200, 401, 401, 401]);
    assert.deepEqual(await codes('monitoring-token-2'), [200, 401, 401, 401]);
    assert.deepEqual(await codes('monitoring-token-1', 'Basic'), [200, 401, 401, 401]);
    assert.deepEqual(await codes('monitoring-token-1'), [200, 200, 403, 403]);
    assert.deepEqual(await codes('legals-own-token-3'), [200, 200, 200, 403]);
    assert.deepEqual(await codes('anns-own-token-22', 'bearer'), [200, 200, 403, 200]);
    assert.deepEqual(drains, [{ reason: 'new disk', who: 'ann' }], 'not whom the body named');
    assert.deepEqual(log.lines.map(({ event, fields }) => [event, fields['who'], fields['queue']]), [['read', 'legal', 'out']]);
    assert.equal((await send(port, 'POST', DRAIN, { ...JSON_TYPE, authorization: 'Bearer anns-own-token-22' }, '{"reason":"x"}'))[0], 200, 'it need not say who it is');
    assert.equal((await send(port, 'GET', '/%61pi/v1/status', {}))[0], 401, 'however the address is spelled');
    // A token is not sent along by a browser; but a page is refused before its token is looked at twice.
    assert.equal((await send(port, 'POST', DRAIN, { ...JSON_TYPE, authorization: 'Bearer anns-own-token-22', origin: 'http://evil.example' }, JSON.stringify(ORDER)))[0], 403);
  });

  test('has none any more within a second of the file\'s change; a file that is wrong changes nothing', async (t) => {
    const file = tokensFile('ann read anns-own-token-22');
    const { admin: { port }, log } = await played(t, { tokensFile: file });
    const code = async (token: string): Promise<number> => (await send(port, 'GET', '/api/v1/status', { authorization: `Bearer ${token}` }))[0];
    assert.equal(await code('anns-own-token-22'), 200);
    writeFileSync(file, 'ann all anns-own-token-33\n');
    await until('the log tells it', () => log.lines.some(({ level, event }) => level === 'error' && event === 'auth'), 10_000);
    assert.equal(await code('anns-own-token-22'), 200);
    writeFileSync(file, 'bob read bobs-own-token-333\n');
    await until('it is read', async () => await code('bobs-own-token-333') === 200, 10_000);
    assert.equal(await code('anns-own-token-22'), 401);
  });
});

describe('a port with TLS', { skip: tls === undefined ? 'openssl is missing' : false }, () => {
  test('is known by its CA alone, hears nothing in clear, and shows a new certificate without a restart', async (t) => {
    const [first, second] = [selfSigned('one.test'), selfSigned('two.test')];
    assert.ok(first !== undefined && second !== undefined);
    const { certFile, keyFile } = first;
    const { admin: { port }, log } = await played(t, { tls: { certFile, keyFile } });
    const caOf = (files: { readonly certFile: string }): string => readFileSync(files.certFile, 'utf8');
    const before = caOf(first);
    const url = `https://127.0.0.1:${String(port)}`;
    const status = (ca: string | undefined): Promise<unknown> => new AdminClient(url, { token: undefined, ca }).status();
    assert.deepEqual(await status(before), STATUS);
    await assert.rejects(status(undefined), /SELF_SIGNED/);
    await assert.rejects(status(caOf(second)), /no answer/);
    await assert.rejects(send(port, 'GET', '/api/v1/status', {}), /ECONNRESET|socket hang up/);
    writeFileSync(keyFile, 'no key');
    await until('the log tells it', () => log.lines.some(({ level, event }) => level === 'error' && event === 'tls'), 10_000);
    assert.deepEqual(await status(before), STATUS, 'the old one stays');
    copyFileSync(second.keyFile, keyFile);
    copyFileSync(second.certFile, certFile);
    await until('it shows the new one', async () => status(caOf(second)).then(() => true, () => false), 10_000);
    await assert.rejects(status(before));
  });
});

describe('probes on a port of their own', () => {
  test('answer while a thousand slow connections are at the admin port, and a thousand at theirs', { timeout: 120_000 }, async (t) => {
    const { admin } = await played(t, { probes: OWN });
    const sockets: net.Socket[] = [];
    t.after(() => { for (const socket of sockets) socket.destroy(); });
    const besiege = async (port: number): Promise<void> => {
      for (let i = 0; i < SLOW; i++) {
        const socket = net.connect({ host: '127.0.0.1', port });
        socket.on('error', () => undefined);
        socket.once('connect', () => { socket.write('GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: '); });
        sockets.push(socket);
      }
      await until('all are there or refused', () => sockets.every(({ connecting }) => !connecting), 20_000);
    };
    const probe = async (): Promise<number> => {
      const beganMs = performance.now();
      const [code] = await send(admin.probesPort, 'GET', '/readyz', {});
      const tookMs = performance.now() - beganMs;
      // Long before those that are slow are given up.
      assert.ok(tookMs < 5_000, `${String(tookMs)} ms`);
      return code;
    };
    await besiege(admin.port);
    await assert.rejects(send(admin.port, 'GET', '/readyz', {}), 'the admin port is full');
    for (let i = 0; i < 10; i++) assert.equal(await probe(), 200);
    await besiege(admin.probesPort);
    for (let i = 0; i < 10; i++) assert.equal(await probe(), 200);
    assert.equal((await send(admin.probesPort, 'GET', '/metrics', {}))[0], 200);
    assert.equal((await send(admin.probesPort, 'GET', '/api/v1/status', {}))[0], 404, 'nothing else is there');
  });
});
