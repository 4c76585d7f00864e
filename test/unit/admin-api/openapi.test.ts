/** The OpenAPI documents, src/admin-api/openapi.ts: those that the build wrote are current, whole, and served. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { openApiDocument } from '../../../src/admin-api/openapi.js';
import type { Route } from '../../../src/admin-api/route.js';
import { gatewayRoutes, groupRoutes, probeRoutes, storeRoutes } from '../../../src/admin-api/routes.js';
import { packageVersion } from '../../../src/bin/package-version.js';
import { serveDocument } from '../../../src/platform/node/openapi-files.js';
import { playedApi } from '../gateway/admin/played-api.js';

interface Operation {
  readonly operationId: string;
  readonly 'x-twinpost-role': string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: { readonly required: readonly string[] } } } };
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const TABLES: readonly (readonly [of: 'gateway' | 'store', table: Readonly<Record<string, Route>>])[] = [
  ['gateway', { ...probeRoutes, ...gatewayRoutes, ...groupRoutes }], ['store', { ...probeRoutes, ...storeRoutes }],
];

/** Beside the built program. */
function written(of: string): Document {
  return JSON.parse(readFileSync(new URL(`../../../openapi/${of}.json`, import.meta.url), 'utf8')) as Document;
}

describe('an OpenAPI document', () => {
  test('is that of the table, as the build wrote it', () => {
    for (const [of, table] of TABLES) {
      assert.deepEqual(written(of), JSON.parse(JSON.stringify(openApiDocument(`Twinpost: admin HTTP of a ${of}`, packageVersion(), table))));
    }
  });

  test('has each row with its role, and what is said of a request', () => {
    for (const [of, table] of TABLES) {
      const { paths } = written(of);
      const found = Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, told]) => `${told.operationId} ${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')} ${told['x-twinpost-role']}`));
      assert.deepEqual(found.sort(), Object.entries(table).map(([name, { method, path, role }]) => `${name} ${method} ${path} ${role}`).sort());
    }
    const { paths } = written('gateway');
    assert.deepEqual(paths['/api/v1/queues/{name}/messages']?.['get']?.parameters?.map((one) => [one.name, one.in, one.required]), [
      ['name', 'path', true], ['limit', 'query', false], ['cursor', 'query', false], ['class', 'query', false],
    ]);
    assert.deepEqual(paths['/api/v1/group/orders/{id}']?.['get']?.parameters?.map((one) => [one.name, one.in]), [['id', 'path']]);
    assert.equal(paths['/api/v1/group/orders/{id}/go']?.['post']?.['x-twinpost-role'], 'operate');
    assert.deepEqual(paths['/api/v1/partitions/{name}/resync']?.['post']?.requestBody?.content['application/json'].schema.required, ['store', 'reason']);
  });

  test('is served as it stands', async () => {
    const api = playedApi();
    serveDocument(api, gatewayRoutes.document, 'gateway');
    const answer = await api.inject('/api/v1/openapi.json');
    assert.deepEqual([answer.statusCode, answer.headers['content-type'], answer.json()], [200, 'application/json; charset=utf-8', written('gateway')]);
  });
});
