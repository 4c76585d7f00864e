/** The admin HTTP on a real port: probes, token, rows with the fields that scripts for Postfix know. */
import assert from 'node:assert/strict';
import http from 'node:http';
import { describe, test } from 'node:test';
import { Registry } from 'prom-client';
import { startAdmin } from '../../../../src/gateway/admin/server.js';
import type { RunningAdmin } from '../../../../src/gateway/admin/server.js';
import type { GatewayView, MessageView, StatusView } from '../../../../src/gateway/admin/view.js';

const WALL_MS = 1_800_000_000_000;
const STATUS: StatusView = {
  gateway: 'gw-1', host: 'box-1', incarnation: 7, pid: 42, startedWallMs: WALL_MS - 90_000, ready: true, notReadyReason: '', degradedSinceWallMs: WALL_MS - 5_000, insecure: false,
  received: 3, delivered: 2, deferred: 1, bounced: 0, expired: 0, rejected: 4, queues: 1, queuesRecovering: 0, queuesShort: 1, queuedMessages: 1, queuedBytes: 100, memoryUsedBytes: 10, memoryLimitBytes: 100,
  connectionsIn: 1, connectionsOut: 1, dotsInFlight: 0,
  stores: [{ id: 'store-a', host: 'box-2', up: true, paths: [{ path: 'A', state: 'RUN', sinceWallMs: WALL_MS }], queuesSync: 1, queuesResync: 0, queuesNg: 0, lagMessages: 0, lagBytes: 0, creditBytes: 5 }],
};

function message(n: number): MessageView {
  return { queueId: `ID${String(n)}`, arrivalWallMs: WALL_MS + 999, messageBytes: 10, sender: '', recipients: [{ address: 'b@example.net', delayReason: 'busy' }, { address: 'c@example.net', delayReason: '' }], state: 'deferred', attempts: 1, nextAttemptWallMs: undefined, expiryWallMs: WALL_MS };
}

/** A gateway with one queue of 250 messages. */
function view(status: StatusView = STATUS): GatewayView {
  return {
    status: () => status,
    table: () => [{ queue: 'a b/c', queueClass: 'mail', store: 'store-a', networkA: 'RUN', networkS: '-', sync: 'NG', epoch: 2, transactions: undefined }],
    queues: () => [{ name: 'a b/c', queueClass: 'mail', nextHop: 'smtp://mx:25', ordering: 'fifo', messages: 250, bytes: 2500, active: 0, deferred: 250, oldestArrivalWallMs: WALL_MS - 61_000, lastError: 'busy' }],
    messages: (queue, queueClass, cursor, limit) => {
      if (queue !== 'a b/c' || queueClass !== 'mail') return undefined;
      const from = Number(cursor);
      const to = Math.min(250, from + limit);
      return { messages: Array.from({ length: to - from }, (_, i) => message(from + i)), nextCursor: to === 250 ? undefined : String(to) };
    },
  };
}

async function withAdmin(options: { readonly token?: string; readonly view?: GatewayView }, run: (url: string, admin: RunningAdmin) => Promise<void>): Promise<void> {
  const admin = await startAdmin({ host: '127.0.0.1', port: 0, token: options.token }, { view: options.view ?? view(), registry: new Registry(), wallMs: () => WALL_MS });
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
    await withAdmin({ token: 'secret-token' }, async (url) => {
      assert.equal((await fetch(`${url}/healthz`)).status, 200);
      assert.equal((await fetch(`${url}/metrics`)).status, 200);
      assert.equal((await fetch(`${url}/readyz`)).status, 200);
      for (const path of ['status', 'table', 'queues', 'queues/x/messages']) {
        assert.equal((await get(`${url}/api/v1/${path}`)).code, 401);
        assert.equal((await get(`${url}/api/v1/${path}`, { authorization: 'Bearer secret-tokem' })).code, 401);
      }
      assert.equal((await get(`${url}/api/v1/status`, { authorization: 'Bearer secret-token' })).code, 200);
    });
  });

  test('says why no mail is taken', async () => {
    await withAdmin({ view: view({ ...STATUS, ready: false, notReadyReason: 'recovering' }) }, async (url) => {
      const response = await fetch(`${url}/readyz`);
      assert.equal(response.status, 503);
      assert.equal(await response.text(), 'recovering\n');
    });
  });

  test('shows status and management table', async () => {
    await withAdmin({}, async (url) => {
      const { json } = await get(`${url}/api/v1/status`);
      assert.deepEqual([json['gateway'], json['uptime_seconds'], json['ready'], json['degraded'], json['degraded_since']], ['gw-1', 90, true, true, 1_799_999_995]);
      const table = (await get(`${url}/api/v1/table`)).json;
      assert.deepEqual(table, { rows: [{ queue_name: 'a b/c', queue_class: 'mail', store: 'store-a', network_a: 'RUN', network_s: '-', sync: 'NG', epoch: 2, transactions: null }] });
      assert.equal(((await get(`${url}/api/v1/queues`)).json['queues'] as { oldest_age_seconds: number }[])[0]?.oldest_age_seconds, 61);
    });
  });

  test('lists messages page by page, with the fields of postqueue -j', async () => {
    await withAdmin({}, async (url) => {
      const base = `${url}/api/v1/queues/${encodeURIComponent('a b/c')}/messages`;
      const seen: unknown[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const { json }: { readonly json: Record<string, unknown> } = await get(`${base}?cursor=${cursor}`);
        const rows = json['messages'] as Record<string, unknown>[];
        assert.ok(rows.length <= 100);
        seen.push(...rows.map((row) => row['queue_id']));
        cursor = json['next_cursor'] as string | null;
        const { queue_name: queueName, arrival_time: arrivalTime, message_size: size, sender, recipients } = rows[0] ?? {};
        assert.deepEqual([queueName, arrivalTime, size, sender], ['a b/c', 1_800_000_000, 10, '']);
        assert.deepEqual(recipients, [{ address: 'b@example.net', delay_reason: 'busy' }, { address: 'c@example.net' }]);
      }
      assert.deepEqual(seen, Array.from({ length: 250 }, (_, i) => `ID${String(i)}`));
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
    const long: GatewayView = { ...view(), messages: (queue) => (queue === name ? { messages: [message(1)], nextCursor: undefined } : undefined) };
    await withAdmin({ view: long }, async (url) => {
      assert.equal((await get(`${url}/api/v1/queues/${name}/messages`)).code, 200);
    });
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
