/** The admin HTTP on a real port: probes, token, rows with the fields that scripts for Postfix know. */
import assert from 'node:assert/strict';
import http from 'node:http';
import { describe, test } from 'node:test';
import { Registry } from 'prom-client';
import { startAdmin } from '../../../../src/gateway/admin/server.js';
import type { RunningAdmin } from '../../../../src/gateway/admin/server.js';
import { KeptLog } from './kept-log.js';
import type { GatewayView, MessageView, QueueView, StatusView, TableRowView } from '../../../../src/gateway/admin/view.js';

const WALL_MS = 1_800_000_000_000;
const STATUS: StatusView = {
  gateway: 'gw-1', host: 'box-1', version: '9.8.7', incarnation: 7, pid: 42, startedWallMs: WALL_MS - 90_000, ready: true, notReadyReason: '', routes: 3, routesRefused: [{ route: 'strict.example', reason: 'recovering', sinceWallMs: WALL_MS - 2_500 }], outages: { nextHops: [{ relay: 'mx.example:25', sinceWallMs: WALL_MS - 2_000, waiting: 1579, why: 'ECONNREFUSED' }], nextHopCount: 7, hooks: [{ hook: 'rspamd', sinceWallMs: WALL_MS - 3_000, why: 'no answer' }] }, degradedSinceWallMs: WALL_MS - 5_000, degradedCause: 'store-a: reset', insecure: false,
  received: 3, delivered: 2, deferred: 1, bounced: 0, expired: 0, rejected: 4, reception: { handshakes: 7, handshakesFailed: 2, auths: 5, authsFailed: 1, lookups: 4, lookupsFailed: 3, staleFiles: ['users'] }, queues: 1, partitions: 1, partitionsRecovering: 0, partitionsWithoutMemory: 0, partitionsShort: 1, partitionsWaiting: 30,
  waitingFor: { register: 8, lease: 1, stores: 1, copiesAway: 20 },
  waiting: [
    { partition: 'gw-1/3', owner: 'gw-1', waitsFor: 'copies away', copies: ['store-z'], why: 'every copy is away', sinceWallMs: WALL_MS - 9_000 },
    { partition: 'gw-2/1', owner: 'gw-2', waitsFor: 'lease', copies: [], why: 'a lease runs', sinceWallMs: WALL_MS - 1_500 },
  ], registerAway: 'etcd-1: no answer', losses: 10, adopted: 12, adoptedTwice: 1, partitionsRescued: 2, orphanPartitions: 3, orphans: [{ gateway: 'gw-9', isRetired: true, partitions: 3, names: ['gw-9/0', 'gw-9/1', 'gw-9/2'], sinceWallMs: 5000 }], takeovers: 3, handedBack: 4, takenAway: 9, repairs: { tails: 5, tailBytes: 6, refills: 7, refillBytes: 8 }, queuedMessages: 1, queuedBytes: 100, memoryUsedBytes: 10, memoryKeptBytes: 0, memoryLimitBytes: 100,
  connectionsIn: 1, connectionsOut: 1, dotsInFlight: 0,
  stores: [{ id: 'store-a', host: 'box-2', protocol: 1, up: true, drained: true, drainedSinceWallMs: WALL_MS - 7_000, paths: [{ path: 'A', state: 'RUN', sinceWallMs: WALL_MS }], partitionsSync: 1, partitionsResync: 0, partitionsNg: 0, lagMessages: 0, lagBytes: 0, refillMessages: 6, refillBytes: 7, creditBytes: 5, leaseLeftMs: 8123.4, failovers: 1, cause: 'reset', causeSinceWallMs: WALL_MS - 3_000 }],
  endsUntold: [{ stores: ['store-x'], partitions: 9, names: ['gw-9/0'] }], storesUnreached: [{ id: 'store-c', host: 'box-4', why: 'no path to it stands', sinceWallMs: WALL_MS - 6_000 }],
};

function message(n: number): MessageView {
  return { queueId: `ID${String(n)}`, owner: 'gw-2', arrivalWallMs: WALL_MS + 999, messageBytes: 10, sender: '', recipients: [{ address: 'b@example.net', delayReason: 'busy' }, { address: 'c@example.net', delayReason: '' }], state: 'deferred', heldReason: '', attempts: 1, nextAttemptWallMs: undefined, expiryWallMs: WALL_MS };
}

const ROW: TableRowView = {
  partition: 'gw-1/1', owner: 'gw-1', store: 'store-a', networkA: 'RUN', networkS: '-', sync: 'RESYNC', progress: 0.33333, member: false, epoch: 2,
  transactions: 40, lastTransaction: 50, digest: '00ff', messages: 250, lagMessages: 10, lagBytes: 999, sinceWallMs: WALL_MS - 1_500, cause: 'reset',
};
const ROW_AS_JSON = {
  partition: 'gw-1/1', owner: 'gw-1', store: 'store-a', network_a: 'RUN', network_s: '-', sync: 'RESYNC', progress: 0.333, member: false, epoch: 2,
  transactions: 40, last_transaction: 50, digest: '00ff', messages: 250, lag_messages: 10, lag_bytes: 999, since: 1_799_999_998, cause: 'reset',
};
const QUEUE: QueueView = {
  name: 'a b/c', queueClass: 'mail', owner: 'gw-2', partition: 'gw-1/1', nextHop: 'smtp://mx:25', ordering: 'fifo', messages: 250, bytes: 2500, active: 0, deferred: 250, held: 0, inSync: 1, epoch: 2, lagMessages: 10, lagBytes: 999,
  refillShare: undefined, oldestArrivalWallMs: WALL_MS - 61_000, lastError: 'busy',
};

/** A page of `total` copies of one thing. */
function pageOf<T>(one: T, total: number, cursor: string, limit: number): { readonly page: readonly T[]; readonly nextCursor: string | undefined } {
  const from = Number(cursor);
  const to = Math.min(total, from + limit);
  return { page: Array.from({ length: to - from }, () => one), nextCursor: to === total ? undefined : String(to) };
}

/** A gateway with one queue of 250 messages that is shown as 1,500 queues. */
function view(status: StatusView = STATUS): GatewayView {
  return {
    status: () => status,
    mirrors: (cursor, limit) => {
      const { page, nextCursor } = pageOf(ROW, 1500, cursor, limit);
      return { rows: page, nextCursor };
    },
    troubled: (most) => Array.from({ length: most }, () => ROW),
    queues: (cursor, limit) => {
      const { page, nextCursor } = pageOf(QUEUE, 1500, cursor, limit);
      return { queues: page, nextCursor };
    },
    group: () => [{ id: 'gw-1', kind: 'gateway', admin: '127.0.0.1:8025', away: false, self: true }, { id: 'store-a', kind: 'store', admin: undefined, away: true, self: false }],
    messages: (queue, queueClass, cursor, limit) => {
      if (queue !== 'a b/c' || queueClass !== 'mail') return undefined;
      const from = Number(cursor);
      const to = Math.min(250, from + limit);
      return { messages: Array.from({ length: to - from }, (_, i) => message(from + i)), nextCursor: to === 250 ? undefined : String(to) };
    },
  };
}

async function withAdmin(options: { readonly token?: string; readonly view?: GatewayView }, run: (url: string, admin: RunningAdmin) => Promise<void>): Promise<void> {
  const admin = await startAdmin({ host: '127.0.0.1', port: 0, token: options.token }, { view: options.view ?? view(), registry: new Registry(), log: new KeptLog(), wallMs: () => WALL_MS });
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
      for (const path of ['status', 'mirrors', 'table', 'queues', 'group', 'queues/x/messages']) {
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
      assert.deepEqual([json['version'], json['gateway'], json['uptime_seconds'], json['ready'], json['degraded'], json['degraded_since']], ['9.8.7', 'gw-1', 90, true, true, 1_799_999_995]);
      assert.deepEqual([json['degraded_cause'], json['partitions_rescued'], json['register_away']], ['store-a: reset', 2, 'etcd-1: no answer']);
      assert.deepEqual(json['stores_unreached'], [{ store: 'store-c', host: 'box-4', why: 'no path to it stands', since: WALL_MS / 1000 - 6 }]);
      assert.deepEqual([json['partitions_waiting'], json['waiting_for'], json['waiting']], [30, { register: 8, lease: 1, stores: 1, copies_away: 20 }, [
        { partition: 'gw-1/3', owner: 'gw-1', waits_for: 'copies away', copies: ['store-z'], why: 'every copy is away', since: 1_799_999_991 },
        { partition: 'gw-2/1', owner: 'gw-2', waits_for: 'lease', copies: [], why: 'a lease runs', since: 1_799_999_998 },
      ]]);
      assert.deepEqual(json['outages'], { next_hops: [{ relay: 'mx.example:25', since: WALL_MS / 1000 - 2, waiting: 1579, why: 'ECONNREFUSED' }], next_hops_down: 7, hooks: [{ hook: 'rspamd', since: WALL_MS / 1000 - 3, why: 'no answer' }] });
      assert.deepEqual([json['routes'], json['routes_refused']], [3, [{ route: 'strict.example', reason: 'recovering', since: 1_799_999_997 }]]);
      assert.deepEqual([json['takeovers'], json['handed_back'], json['taken_away'], json['losses'], json['adopted'], json['adopted_twice']], [3, 4, 9, 10, 12, 1]);
      assert.deepEqual([json['tails'], json['tail_bytes'], json['refills'], json['refill_bytes']], [5, 6, 7, 8]);
      const store = (json['stores'] as Record<string, unknown>[])[0] ?? {};
      assert.deepEqual([store['refill_messages'], store['refill_bytes'], store['lease_left_ms'], store['failovers'], store['cause'], store['cause_since']], [6, 7, 8123, 1, 'reset', 1_799_999_997]);
      assert.deepEqual([store['protocol'], store['drained'], store['drained_since']], [1, true, 1_799_999_993]);
      const troubled = (await get(`${url}/api/v1/mirrors?troubled=1`)).json;
      assert.deepEqual(troubled, { rows: [ROW_AS_JSON], next_cursor: null });
      assert.equal(((await get(`${url}/api/v1/queues`)).json['rows'] as { oldest_age_seconds: number }[])[0]?.oldest_age_seconds, 61);
      assert.equal(((await get(`${url}/api/v1/queues`)).json['rows'] as { partition: string }[])[0]?.partition, 'gw-1/1');
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
        const { queue_name: queueName, owner, arrival_time: arrivalTime, message_size: size, sender, recipients } = rows[0] ?? {};
        assert.deepEqual([queueName, owner, arrivalTime, size, sender], ['a b/c', 'gw-2', 1_800_000_000, 10, '']);
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
