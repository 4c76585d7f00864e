/** The table of addresses, src/admin-api/routes.ts: what holds of all its rows. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { z } from 'zod';
import type { Route } from '../../../src/admin-api/route.js';
import { gatewayRoutes, groupRoutes, probeRoutes, storeRoutes } from '../../../src/admin-api/routes.js';

const TABLES: readonly Readonly<Record<string, Route>>[] = [{ ...probeRoutes, ...gatewayRoutes, ...groupRoutes }, { ...probeRoutes, ...storeRoutes }];
const ROWS = TABLES.flatMap((table) => Object.values(table));

describe('the table of addresses', () => {
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
