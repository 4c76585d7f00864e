/** The table of addresses, src/admin-api/routes.ts: what holds of all its rows. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { z } from 'zod';
import type { Route } from '../../../src/admin-api/route.js';
import { gatewayRoutes, groupRoutes, probeRoutes, storeRoutes } from '../../../src/admin-api/routes.js';

const TABLES: readonly Readonly<Record<string, Route>>[] = [{ ...probeRoutes, ...gatewayRoutes, ...groupRoutes }, { ...probeRoutes, ...storeRoutes }];
const ROWS = TABLES.flatMap((table) => Object.values(table));

/** Who may do what: a row that is another's here is another's promise to whoever has made tokens. `/api/v1/` is left out. */
const ROLES = {
  probes: {
    probe: [
      'GET /healthz', 'GET /readyz', 'GET /metrics',
    ],
  },
  gateway: {
    read: [
      'GET group', 'GET openapi.json', 'GET status', 'GET mirrors', 'GET table', 'GET queues', 'GET queues/:name/messages', 'GET messages/:id',
      'GET register', 'POST ages', 'POST find', 'POST logged', 'GET limits', 'GET explain', 'GET trace/clients', 'GET trace/servers', 'GET orders',
      'GET orders/:id', 'GET rules', 'GET stores/:id/drain', 'GET rebalance', 'GET gateways/:id/retire', 'GET config/diff',
    ],
    content: [
      'GET queues/:name/export', 'GET messages/:id/export',
    ],
    operate: [
      'POST orders', 'POST orders/:id/go', 'POST orders/:id/cancel', 'POST orders/:id/leave', 'POST orders/:id/withdraw', 'POST rules',
      'POST rules/:id/cancel', 'POST stores/:id/drain', 'POST partitions/:name/resync', 'POST rescue', 'POST rebalance', 'POST gateways/:id/retire',
      'POST config/reload',
    ],
  },
  store: {
    read: [
      'GET group', 'GET openapi.json', 'GET status', 'GET partitions', 'GET config/diff',
    ],
    content: [
      'GET export',
    ],
    operate: [
      'POST config/reload',
    ],
  },
} as const;

function rolesOf(table: Readonly<Record<string, Route>>): Readonly<Record<string, readonly string[]>> {
  const roles: Record<string, string[]> = {};
  for (const { role, method, path } of Object.values(table)) (roles[role] ??= []).push(`${method} ${path.replace('/api/v1/', '')}`);
  return roles;
}

describe('the table of addresses', () => {
  test('gives each row to the role that it has been of', () => {
    assert.deepEqual({ probes: rolesOf(probeRoutes), gateway: rolesOf(gatewayRoutes), store: rolesOf(storeRoutes) }, ROLES);
  });

  test('has each address of a process once', () => {
    for (const table of TABLES) {
      const keys = Object.values(table).map(({ method, path }) => `${method} ${path}`);
      assert.equal(new Set(keys).size, keys.length);
    }
  });

  test('wants a reason for whatever changes something, and nothing is changed by looking', () => {
    for (const { method, role, path, body } of ROWS) {
      assert.ok(role !== 'operate' || method === 'POST', path);
      if (role !== 'operate') continue;
      const issues = body?.safeParse({ who: 'ann' }).error?.issues ?? [];
      assert.ok(issues.some((issue) => issue.path.join() === 'reason'), path);
    }
  });

  test('asks for no token where health is probed, and there alone', () => {
    for (const { role, path } of ROWS) assert.equal(role === 'probe', !path.startsWith('/api/v1/'), path);
  });

  test('has an address of the group for each row that says so, with what that row wants, and none that asks on', () => {
    const asked = Object.values<Route>(gatewayRoutes).filter(({ group }) => group !== undefined);
    assert.deepEqual(Object.values(groupRoutes).map(({ method, role, path, body }) => ({ method, role, path: path.replace('/api/v1/group/', '/api/v1/'), body })),
      asked.map(({ method, role, path, body }) => ({ method, role, path, body })));
    for (const { path, each } of Object.values(groupRoutes)) {
      assert.match(path, /^\/api\/v1\/group\/./);
      assert.doesNotMatch(each.path, /^\/api\/v1\/group/);
    }
  });

  test('takes bodies with POST alone', () => {
    for (const { method, path, body } of ROWS) assert.equal((body as z.ZodType | undefined) !== undefined, method === 'POST', path);
  });
});
