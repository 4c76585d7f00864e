/** The admin HTTP on a real port: probes, token, rows with the fields that scripts for Postfix know. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { Registry } from 'prom-client';
import { startAdmin } from '../../../../src/gateway/admin/server.js';
import { SessionWatch } from '../../../../src/gateway/look/session-watch.js';
import type { RunningAdmin } from '../../../../src/platform/node/admin-server.js';
import { TOKEN, tokensFile } from '../../platform/node/token-file.js';
import { KeptLog } from './kept-log.js';
import type { MessageAnswer, StatusAnswer } from '../../../../src/admin-api/gateway-answers.js';
import type { Page } from '../../../../src/admin-api/pages.js';
import { formatMessageId } from '../../../../src/base/text-id.js';
import type { GatewayView } from '../../../../src/gateway/admin/view.js';
import { MESSAGE, QUEUE, STATUS, STORE } from '../../cli/sample-answers.js';

function message(n: number): MessageAnswer {
  return { ...MESSAGE, queue_name: 'a b/c', queue_id: `ID${String(n)}` };
}

const ROW = {
  partition: 'gw-1/1', owner: 'gw-1', store: 'store-a', network_a: 'RUN', network_s: '-', sync: 'RESYNC', progress: 0.333, member: false, epoch: 2,
  transactions: 40, last_transaction: 50, digest: '00ff', messages: 250, lag_messages: 10, lag_bytes: 999, since: 1_799_999_998, cause: 'reset',
} as const;

/** A page of `total` things. */
function pageOf<T>(one: (n: number) => T, total: number, cursor: string, limit: number): Page<T> {
  const from = Number(cursor);
  const to = Math.min(total, from + limit);
  return { rows: Array.from({ length: to - from }, (_, i) => one(from + i)), next_cursor: to === total ? null : String(to) };
}

/** A gateway with one queue of 250 messages that is shown as 1,500 queues. */
function view(status: StatusAnswer = { ...STATUS, stores: [STORE] }): GatewayView {
  return {
    status: () => status,
    mirrors: (cursor, limit) => pageOf(() => ROW, 1500, cursor, limit),
    troubled: (most) => Array.from({ length: most }, () => ROW),
    queues: (cursor, limit) => pageOf(() => QUEUE, 1500, cursor, limit),
    group: () => [{ id: 'gw-1', kind: 'gateway', admin: '127.0.0.1:8025', away: false, self: true }, { id: 'store-a', kind: 'store', admin: null, away: true, self: false }],
    messages: (queue, queueClass, cursor, limit) =>
      (queue !== 'a b/c' || queueClass !== 'mail' ? undefined : pageOf(message, 250, cursor, limit)),
    message: (messageId) => ({ queue_id: formatMessageId(messageId), entries: [], incomplete: true }),
  };
}

async function withAdmin(options: { readonly tokensFile?: string; readonly view?: GatewayView }, run: (url: string, admin: RunningAdmin) => Promise<void>): Promise<void> {
  const admin = await startAdmin({ listen: { host: '127.0.0.1', port: 0 }, tokensFile: options.tokensFile }, { view: options.view ?? view(), registry: new Registry(), log: new KeptLog() });
  try {
    await run(`http://127.0.0.1:${String(admin.port)}`, admin);
  } finally {
    await admin.close();
  }
}

async function get(url: string, headers: Record<string, string> = {}): Promise<{ readonly code: number; readonly json: Record<string, unknown> }> {
  const response = await fetch(url, { headers });
  return { code: response.status, json: (await response.json()) as Record<string, unknown> };
}

describe('the admin HTTP of a gateway', () => {
  test('asks for the bearer token in the API and not in the probes', async () => {
    await withAdmin({ tokensFile: tokensFile() }, async (url) => {
      assert.equal((await fetch(`${url}/healthz`)).status, 200);
      assert.equal((await fetch(`${url}/metrics`)).status, 200);
      assert.equal((await fetch(`${url}/readyz`)).status, 200);
      for (const path of ['status', 'mirrors', 'table', 'queues', 'group', 'register', 'queues/x/messages']) {
        assert.equal((await get(`${url}/api/v1/${path}`)).code, 401);
        assert.equal((await get(`${url}/api/v1/${path}`, { authorization: `Bearer ${TOKEN.slice(0, -1)}x` })).code, 401);
      }
      assert.equal((await get(`${url}/api/v1/status`, { authorization: `Bearer ${TOKEN}` })).code, 200);
    });
  });

  test('says why no mail is taken', async () => {
    await withAdmin({ view: view({ ...STATUS, ready: false, not_ready_reason: 'recovering' }) }, async (url) => {
      const response = await fetch(`${url}/readyz`);
      assert.equal(response.status, 503);
      assert.equal(await response.text(), 'recovering\n');
    });
  });

  test('shows status and management table', async () => {
    await withAdmin({}, async (url) => {
      assert.deepEqual((await get(`${url}/api/v1/status`)).json, { ...STATUS, stores: [STORE] });
      assert.deepEqual((await get(`${url}/api/v1/mirrors?troubled=1`)).json, { rows: [ROW], next_cursor: null });
      assert.deepEqual((await get(`${url}/api/v1/queues?limit=1`)).json, { rows: [QUEUE], next_cursor: '1' });
    });
  });

  test('gives the management table and the queues in pages and never more', async () => {
    await withAdmin({}, async (url) => {
      for (const [path, first] of [['mirrors', 100], ['table', 1000], ['queues', 1000]] as const) {
        let seen = 0;
        let cursor: unknown = '';
        for (let page = 0; cursor !== null; page++) {
          const { json } = await get(`${url}/api/v1/${path}?cursor=${String(cursor)}`);
          const rows = json['rows'] as unknown[];
          if (page === 0) assert.equal(rows.length, first, path);
          seen += rows.length;
          cursor = json['next_cursor'];
        }
        assert.equal(seen, 1500, path);
        for (const limit of ['0', '1001', 'x', '1.5', '-1']) assert.equal((await get(`${url}/api/v1/${path}?limit=${limit}`)).code, 400, path);
      }
      for (const most of ['0', '1001', 'x']) assert.equal((await get(`${url}/api/v1/mirrors?troubled=${most}`)).code, 400);
    });
  });

  test('names those that belong together, with the address of their admin HTTP where it is known', async () => {
    await withAdmin({}, async (url) => {
      const { members } = (await get(`${url}/api/v1/group`)).json;
      assert.deepEqual(members, [{ id: 'gw-1', kind: 'gateway', admin: '127.0.0.1:8025', away: false, self: true }, { id: 'store-a', kind: 'store', admin: null, away: true, self: false }]);
    });
  });

  test('lists messages page by page, with the fields of postqueue -j', async () => {
    await withAdmin({}, async (url) => {
      const base = `${url}/api/v1/queues/${encodeURIComponent('a b/c')}/messages`;
      const seen: unknown[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const { json }: { readonly json: Record<string, unknown> } = await get(`${base}?cursor=${cursor}`);
        const rows = json['rows'] as Record<string, unknown>[];
        assert.ok(rows.length <= 100);
        seen.push(...rows.map((row) => row['queue_id']));
        cursor = json['next_cursor'] as string | null;
        assert.deepEqual(rows[0], message(seen.length - rows.length));
      }
      assert.deepEqual(seen, Array.from({ length: 250 }, (_, i) => `ID${String(i)}`));
    });
  });

  test('shows a message by its id, in small letters too, and refuses what is none', async () => {
    await withAdmin({}, async (url) => {
      assert.deepEqual((await get(`${url}/api/v1/messages/0123456789a`)).json, { queue_id: '0123456789A', entries: [], incomplete: true });
      assert.deepEqual(await get(`${url}/api/v1/messages/..%2fx`), { code: 400, json: { error: "'../x' is no queue id" } });
    });
  });

  test('refuses what it can not understand', async () => {
    await withAdmin({}, async (url) => {
      assert.equal((await get(`${url}/api/v1/queues/nothing/messages`)).code, 404);
      for (const limit of ['0', '1001', 'x', '1.5', '-1']) assert.equal((await get(`${url}/api/v1/queues/x/messages?limit=${limit}`)).code, 400);
      assert.equal((await get(`${url}/api/v2/status`)).code, 404);
    });
  });

  test('lists a queue named by the longest domain there is', async () => {
    const name = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`;
    const long: GatewayView = { ...view(), messages: (queue) => (queue === name ? { rows: [message(1)], next_cursor: null } : undefined) };
    await withAdmin({ view: long }, async (url) => {
      assert.equal((await get(`${url}/api/v1/queues/${name}/messages`)).code, 200);
    });
  });

  test('answers HEAD at its probes alone', async () => {
    await withAdmin({}, async (url) => {
      assert.equal((await fetch(`${url}/healthz`, { method: 'HEAD' })).status, 200);
      assert.equal((await fetch(`${url}/api/v1/status`, { method: 'HEAD' })).status, 404);
    });
  });

  test('lets nobody follow sessions but over a connection that is open', { timeout: 20_000 }, async (t) => {
    const clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };
    const traces = { clients: new SessionWatch(clock), servers: new SessionWatch(clock) };
    const admin = await startAdmin({ listen: { host: '127.0.0.1', port: 0 } }, { view: view(), registry: new Registry(), log: new KeptLog(), traces });
    t.after(() => admin.close());
    const isOn = (): boolean => traces.clients.isOn;
    const path = '/api/v1/trace/clients?network=0.0.0.0/0&seconds=3600';
    for (let i = 0; i < 9; i++) await fetch(`http://127.0.0.1:${String(admin.port)}${path}`, { method: 'HEAD' });
    assert.equal(isOn(), false);
    const socket = connect(admin.port, '127.0.0.1');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    await once(socket, 'data');
    assert.equal(isOn(), true);
    socket.destroy();
    while (isOn()) await new Promise(setImmediate);
  });

  test('without a token is deaf to other names for this machine', async () => {
    await withAdmin({}, async (_url, admin) => {
      const code = await new Promise((resolve, reject) => {
        http.get({ host: '127.0.0.1', port: admin.port, path: '/api/v1/status', headers: { host: 'evil.example:8025' } }, (response) => {
          response.resume();
          resolve(response.statusCode);
        }).on('error', reject);
      });
      assert.equal(code, 403);
    });
  });
});
