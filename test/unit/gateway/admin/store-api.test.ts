/** What an operator does with stores and mirrors, over the admin HTTP: paths, answers, refusals. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fastify } from 'fastify';
import { addStores } from '../../../../src/gateway/admin/store-api.js';
import type { DrainState, StoreControl } from '../../../../src/gateway/admin/store-api.js';

class PlayedStores implements StoreControl {
  readonly done: string[] = [];
  state: DrainState = { draining: false, mirrors: 7, stuck: 0, copiesMissing: 0 };
  /** Mirrors that are filled again. */
  filled: number | undefined = 1;

  drainState(storeId: string): DrainState | undefined {
    return storeId === 'store a' ? this.state : undefined;
  }

  drain(storeId: string): void {
    this.done.push(`drain ${storeId}`);
    this.state = { ...this.state, draining: true };
  }

  undrain(storeId: string): void {
    this.done.push(`undrain ${storeId}`);
    this.state = { ...this.state, draining: false };
  }

  resync(queue: string, storeId: string): number | undefined {
    this.done.push(`resync ${queue} ${storeId}`);
    return this.filled;
  }
}

interface Asked {
  readonly stores: PlayedStores;
  ask(method: 'GET' | 'POST', path: string, body?: object): Promise<readonly [number, unknown]>;
}

function played(): Asked {
  const stores = new PlayedStores();
  const app = fastify({ logger: false });
  addStores(app, stores);
  return {
    stores,
    ask: async (method, url, body) => {
      const answer = await app.inject({ method, url, ...(body === undefined ? {} : { payload: body }) });
      return [answer.statusCode, answer.json()];
    },
  };
}

describe('the drain of a store', () => {
  test('is begun by a POST without a body, looked at by a GET, and ended by undo; each tells how far it is', async () => {
    const { stores, ask } = played();
    assert.deepEqual(await ask('GET', '/stores/store%20a/drain'), [200, { store: 'store a', draining: false, mirrors: 7, stuck: 0, copies_missing: 0 }]);
    assert.deepEqual(stores.done, [], 'to look changes nothing');
    assert.deepEqual(await ask('POST', '/stores/store%20a/drain'), [200, { store: 'store a', draining: true, mirrors: 7, stuck: 0, copies_missing: 0 }]);
    stores.state = { draining: true, mirrors: 2, stuck: 2, copiesMissing: 3 };
    assert.deepEqual(await ask('GET', '/stores/store%20a/drain'), [200, { store: 'store a', draining: true, mirrors: 2, stuck: 2, copies_missing: 3 }]);
    assert.deepEqual(await ask('POST', '/stores/store%20a/drain', { undo: true }), [200, { store: 'store a', draining: false, mirrors: 2, stuck: 2, copies_missing: 3 }]);
    assert.deepEqual(stores.done, ['drain store a', 'undrain store a']);
  });

  test('only undo: true ends it', async () => {
    const { stores, ask } = played();
    for (const body of [{ undo: false }, { undo: 'true' }, {}]) assert.equal((await ask('POST', '/stores/store%20a/drain', body))[0], 200);
    assert.deepEqual(stores.done, ['drain store a', 'drain store a', 'drain store a']);
  });

  test('of a store that this gateway does not know is refused, and nothing is done', async () => {
    const { stores, ask } = played();
    const unknown = [404, { error: "this gateway knows no store 'store-z'" }];
    assert.deepEqual(await ask('GET', '/stores/store-z/drain'), unknown);
    assert.deepEqual(await ask('POST', '/stores/store-z/drain'), unknown);
    assert.deepEqual(await ask('POST', '/stores/store-z/drain', { undo: true }), unknown);
    assert.deepEqual(stores.done, []);
  });
});

describe('the resync of a mirror', () => {
  test('names the store, and says how many mirrors are filled again, or why none is', async () => {
    const { stores, ask } = played();
    const path = '/queues/a%20b/resync';
    assert.deepEqual(await ask('POST', path, {}), [400, { error: 'name the store whose mirror is to be filled again' }]);
    assert.deepEqual(await ask('POST', path, { store: 'store-a' }), [200, { queue: 'a b', store: 'store-a', queues: 1 }]);
    stores.filled = 0;
    assert.equal((await ask('POST', path, { store: 'store-a' }))[0], 409);
    stores.filled = undefined;
    assert.equal((await ask('POST', path, { store: 'store-z' }))[0], 404);
    assert.deepEqual(stores.done, ['resync a b store-a', 'resync a b store-a', 'resync a b store-z']);
  });
});
