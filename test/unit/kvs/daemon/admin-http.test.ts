import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { recordOf, storing } from '../core/section-kit.js';
import { TOKEN, tokensFile } from '../../platform/node/token-file.js';
import { TestGateway, testStore } from './test-gateway.js';

test('admin HTTP tells health, metrics, status and partitions, to those with the token', async (t) => {
  const store = await testStore({ version: '9.8.7', configurationHash: '0123456789ab', admin: { listen: { host: '127.0.0.1', port: 0 }, tokensFile: tokensFile() } });
  t.after(() => store.stop());
  const gateway = await TestGateway.join(store);
  gateway.found(1, 1);
  gateway.change(1, storing(1, 'body', 'head'));
  gateway.found(2, 2);
  await gateway.acknowledged(gateway.tell(1, recordOf(3, { members: [{ storeId: 'store-a', bootId: store.store.bootId }] }), false));
  const base = `http://127.0.0.1:${String(store.adminPort)}`;
  const authorized = { headers: { authorization: `Bearer ${TOKEN}` } };

  assert.equal((await fetch(`${base}/healthz`)).status, 200);
  assert.equal((await fetch(`${base}/readyz`)).status, 200);
  for (const path of ['/api/v1/status', '/api/v1/partitions', '/%61pi/v1/status', '/api/v1/status?x=/metrics']) {
    assert.notEqual((await fetch(base + path)).status, 200, path);
  }
  for (const path of ['/api/v1/status', '/api/v1/partitions']) {
    assert.equal((await fetch(base + path)).status, 401, path);
    assert.equal((await fetch(base + path, { headers: { authorization: 'Bearer wrong' } })).status, 401);
  }
  const metrics = await (await fetch(`${base}/metrics`)).text();
  assert.match(metrics, /^twinpost_store_entries 1$/m);
  assert.match(metrics, /^twinpost_store_changes_total 1$/m);
  const status = await (await fetch(`${base}/api/v1/status`, authorized)).json() as Record<string, unknown>;
  assert.deepEqual([status['store_id'], status['version'], status['partitions'], status['messages'], status['ready']], ['store-a', '9.8.7', 2, 1, true]);
  const { hash, since } = status['configuration'] as { hash: string; since: number };
  assert.deepEqual([hash, Math.abs(since - Date.now() / 1000) < 60], ['0123456789ab', true]);
  const page = await (await fetch(`${base}/api/v1/partitions`, authorized)).json() as { rows: Record<string, unknown>[]; next_cursor: unknown };
  const { digest, ...first } = page.rows[0] ?? {};
  assert.match(String(digest), /^[0-9a-f]{16}$/);
  assert.deepEqual(first, {
    partition: 'g1/1', owner: 'g1', holder: 'g1', holder_incarnation: 1, epoch: 3, member: true, term: 1, complete: true, number: 1, messages: 1, bytes: 8,
  });
  assert.deepEqual(['partition', 'holder', 'epoch', 'member', 'number'].map((key) => page.rows[1]?.[key]), ['g1/2', null, 0, false, 0], 'nothing was told of it');
  const [one] = (await (await fetch(`${base}/api/v1/partitions?limit=1`, authorized)).json() as { rows: unknown[] }).rows;
  assert.deepEqual(one, page.rows[0]);
  const { next_cursor: cursor } = await (await fetch(`${base}/api/v1/partitions?limit=1`, authorized)).json() as { next_cursor: string };
  assert.deepEqual((await (await fetch(`${base}/api/v1/partitions?limit=1&cursor=${cursor}`, authorized)).json() as typeof page), { rows: [page.rows[1]], next_cursor: null });
  assert.equal(page.next_cursor, null);
});

test('admin HTTP without a token is deaf to other names for this machine', async (t) => {
  const store = await testStore({ admin: { listen: { host: '127.0.0.1', port: 0 } } });
  t.after(() => store.stop());
  const codeFor = (host: string, path: string): Promise<number | undefined> => new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port: store.adminPort, path, agent: false, headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
  });
  for (const path of ['/metrics', '/api/v1/status', '/api/v1/partitions']) {
    assert.equal(await codeFor('evil.example:9401', path), 403, path);
    for (const host of ['localhost:9401', '127.0.0.1', '[::1]:9401']) assert.equal(await codeFor(host, path), 200, host);
  }
});
