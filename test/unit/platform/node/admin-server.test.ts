/** What an admin port serves, src/platform/node/admin-server.ts: rows of its table, of the shapes that stand there. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { Registry } from 'prom-client';
import type { Route } from '../../../../src/admin-api/route.js';
import { gatewayRoutes, groupRoutes, probeRoutes, storeRoutes } from '../../../../src/admin-api/routes.js';
import { startAdmin } from '../../../../src/gateway/admin/server.js';
import type { AdminPorts } from '../../../../src/gateway/admin/server.js';
import { AdminFiles } from '../../../../src/platform/node/admin-files.js';
import { adminApp, serve } from '../../../../src/platform/node/admin-server.js';
import { KeptLog } from '../../gateway/admin/kept-log.js';
import { playedApi } from '../../gateway/admin/played-api.js';
import { testStore } from '../../kvs/daemon/test-gateway.js';
import { tokensFile } from './token-file.js';

const OWN = { host: '127.0.0.1', port: 0 };
const UNLISTED: Route = { ...gatewayRoutes.cancelRule, path: '/api/v1/backdoor' };

/** Rows to which `url` has nothing, told by the code of an address that is none. */
async function unserved(url: string, table: Readonly<Record<string, Route>>): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const { method, path } of Object.values(table)) {
    const answer = await fetch(url + path.replace(/:\w+/g, 'x'), { method });
    if (answer.status === 404) missing.push(path);
  }
  return missing;
}

async function gatewayWithAll(t: TestContext): Promise<string> {
  const ports = { rescue: {}, stores: {}, orders: {}, rules: {}, rebalance: {}, retire: {}, reloads: {}, walks: {}, exports: {}, traces: {}, logSearch: {}, limitsOf: () => ({}), explain: () => ({}), view: {} };
  const admin = await startAdmin({ listen: OWN, tokensFile: tokensFile() }, { ...ports, registry: new Registry(), log: new KeptLog() } as unknown as AdminPorts);
  t.after(() => admin.close());
  return `http://127.0.0.1:${String(admin.port)}`;
}

describe('an admin port', () => {
  test('serves nothing that is not in its table', () => {
    const api = playedApi();
    assert.throws(() => { serve(api, UNLISTED, () => ({ rule: 'x' })); }, /\/api\/v1\/backdoor is a row of the table/);
    assert.throws(() => api.get('/api/v1/loose', () => 'x'), /\/api\/v1\/loose is a row of the table/);
    assert.throws(() => { serve(adminApp(storeRoutes, new AdminFiles({}, new KeptLog())), gatewayRoutes.status, () => { throw new Error('not asked'); }); }, /is a row/);
  });

  test('of a gateway serves all that its table names', async (t) => {
    const url = await gatewayWithAll(t);
    assert.deepEqual(await unserved(url, { ...probeRoutes, ...gatewayRoutes, ...groupRoutes }), []);
    assert.deepEqual(await unserved(url, { UNLISTED }), [UNLISTED.path]);
  });

  test('of a store serves all that its table names', async (t) => {
    const store = await testStore({ admin: { listen: OWN, tokensFile: tokensFile() } });
    t.after(() => store.stop());
    assert.deepEqual(await unserved(`http://127.0.0.1:${String(store.adminPort)}`, { ...probeRoutes, ...storeRoutes }), []);
  });

  test('hands on what the shapes of a row let through, with its defaults, and nothing else', async () => {
    const api = playedApi();
    const seen: unknown[] = [];
    serve(api, gatewayRoutes.messages, ({ params, query }) => {
      seen.push({ ...params }, query);
      return { rows: [], next_cursor: null };
    });
    serve(api, gatewayRoutes.orderDrain, ({ body }, reply) => {
      seen.push(body);
      return reply.code(409).send({ error: 'no' });
    });
    await api.inject('/api/v1/queues/a%20b/messages?limit=7&evil=1');
    await api.inject({ method: 'POST', url: '/api/v1/stores/s/drain', payload: { reason: ' disk ', who: 'ann', evil: 1 } });
    assert.deepEqual(seen, [{ name: 'a b' }, { limit: 7, cursor: '', class: 'mail' }, { reason: 'disk', who: 'ann' }]);
    for (const query of ['cursor=a&cursor=b', `cursor=${'x'.repeat(201)}`, 'class=a&class=b', 'limit=']) {
      assert.equal((await api.inject(`/api/v1/queues/x/messages?${query}`)).statusCode, 400, query);
    }
  });
});
