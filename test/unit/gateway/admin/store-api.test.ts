/** What an operator does with stores and mirrors, over the admin HTTP: paths, answers, refusals. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addStores } from '../../../../src/gateway/admin/store-api.js';
import type { Order } from '../../../../src/admin-api/orders.js';
import type { DrainState, StoreControl } from '../../../../src/gateway/admin/store-api.js';
import { playedApi } from './played-api.js';

const ORDER: Order = { reason: 'it differs', who: 'ann' };

class PlayedStores implements StoreControl {
  readonly done: string[] = [];
  readonly orders: Order[] = [];
  state: DrainState = { draining: false, mirrors: 7, stuck: 0, copiesMissing: 0, kept: true, registerAway: '' };
  /** Takes an answer that has to wait; without it none has to. */
  hold: ((go: () => void) => void) | undefined;
  /** Copies that are filled again. */
  filled: number | undefined = 1;

  drainState(storeId: string): DrainState | undefined {
    return storeId === 'store a' ? this.state : undefined;
  }

  drain(storeId: string, order: Order): void {
    this.orders.push(order);
    this.done.push(`drain ${storeId}`);
    this.state = { ...this.state, draining: true };
  }

  undrain(storeId: string, order: Order): void {
    this.orders.push(order);
    this.done.push(`undrain ${storeId}`);
    this.state = { ...this.state, draining: false };
  }

  whenSettled(_storeId: string, then: () => void): void {
    if (this.hold === undefined) then();
    else this.hold(then);
  }

  resync(partition: string, storeId: string, order: Order): number | undefined {
    this.orders.push(order);
    this.done.push(`resync ${partition} ${storeId}`);
    return this.filled;
  }
}

interface Asked {
  readonly stores: PlayedStores;
  ask(method: 'GET' | 'POST', path: string, body?: object): Promise<readonly [number, unknown]>;
}

function played(): Asked {
  const stores = new PlayedStores();
  const app = playedApi();
  addStores(app, stores);
  return {
    stores,
    ask: async (method, path, body) => {
      const answer = await app.inject({ method, url: `/api/v1${path}`, ...(body === undefined ? {} : { payload: body }) });
      return [answer.statusCode, answer.json()];
    },
  };
}

describe('the drain of a store', () => {
  test('is begun by a POST, looked at by a GET, and ended by undo; each tells how far it is', async () => {
    const { stores, ask } = played();
    assert.deepEqual(await ask('GET', '/stores/store%20a/drain'), [200, { store: 'store a', draining: false, mirrors: 7, stuck: 0, copies_missing: 0, kept: true }]);
    assert.deepEqual(stores.done, [], 'to look changes nothing');
    assert.deepEqual(await ask('POST', '/stores/store%20a/drain', ORDER), [200, { store: 'store a', draining: true, mirrors: 7, stuck: 0, copies_missing: 0, kept: true }]);
    stores.state = { draining: true, mirrors: 2, stuck: 2, copiesMissing: 3, kept: true, registerAway: 'no etcd answers' };
    assert.deepEqual(await ask('GET', '/stores/store%20a/drain'), [200, { store: 'store a', draining: true, mirrors: 2, stuck: 2, copies_missing: 3, kept: true, register_away: 'no etcd answers' }]);
    assert.deepEqual(await ask('POST', '/stores/store%20a/drain', { undo: true, ...ORDER }), [200, { store: 'store a', draining: false, mirrors: 2, stuck: 2, copies_missing: 3, kept: true, register_away: 'no etcd answers' }]);
    assert.deepEqual(stores.done, ['drain store a', 'undrain store a']);
  });

  test('hands on who wants it and why, and is refused where that is not said', async () => {
    const { stores, ask } = played();
    for (const body of [{ reason: ' disk ', who: 'ann' }, { undo: true, reason: 'new disk', who: 'bob' }]) assert.equal((await ask('POST', '/stores/store%20a/drain', body))[0], 200);
    assert.deepEqual(stores.orders, [{ reason: 'disk', who: 'ann' }, { reason: 'new disk', who: 'bob' }]);
    for (const body of [{}, { who: 'ann' }, { reason: 'disk' }, { ...ORDER, reason: 5 }, { ...ORDER, reason: 'x'.repeat(501) }, { ...ORDER, who: ['ann'] }]) assert.equal((await ask('POST', '/stores/store%20a/drain', body))[0], 400);
    assert.equal(stores.done.length, 2);
  });

  test('is answered, begun or undone, when the order is settled, with whether the stores have acknowledged it', async () => {
    for (const [body, draining] of [[ORDER, true], [{ undo: true, ...ORDER }, false]] as const) {
      const { stores, ask } = played();
      const held = new Promise<() => void>((resolve) => { stores.hold = resolve; });
      stores.state = { ...stores.state, kept: false };
      let answer: readonly [number, unknown] | undefined;
      const asked = ask('POST', '/stores/store%20a/drain', body).then((told) => { answer = told; });
      const go = await held;
      assert.deepEqual((await ask('GET', '/stores/store%20a/drain'))[1], { store: 'store a', draining, mirrors: 7, stuck: 0, copies_missing: 0, kept: false }, 'to look waits for nothing');
      assert.equal(answer, undefined);
      stores.state = { ...stores.state, kept: true };
      go();
      await asked;
      assert.deepEqual(answer, [200, { store: 'store a', draining, mirrors: 7, stuck: 0, copies_missing: 0, kept: true }]);
    }
  });

  test('only undo: true ends it', async () => {
    const { stores, ask } = played();
    for (const [undo, code] of [[{ undo: false }, 200], [{ undo: 'true' }, 400], [{}, 200]] as const) assert.equal((await ask('POST', '/stores/store%20a/drain', { ...undo, ...ORDER }))[0], code);
    assert.deepEqual(stores.done, ['drain store a', 'drain store a']);
  });

  test('of a store that this gateway does not know is refused, and nothing is done', async () => {
    const { stores, ask } = played();
    const unknown = [404, { error: "this gateway knows no store 'store-z'" }];
    assert.deepEqual(await ask('GET', '/stores/store-z/drain'), unknown);
    assert.deepEqual(await ask('POST', '/stores/store-z/drain', ORDER), unknown);
    assert.deepEqual(await ask('POST', '/stores/store-z/drain', { undo: true, ...ORDER }), unknown);
    assert.deepEqual(stores.done, []);
  });
});

describe('the resync of a mirror', () => {
  test('names the store, and says that the copy is filled again, or why not', async () => {
    const { stores, ask } = played();
    const path = '/partitions/gw-1%2F3/resync';
    assert.deepEqual(await ask('POST', path, ORDER), [400, { error: 'store: name the store whose mirror is to be filled again' }]);
    for (const [order, at] of [[{}, 'reason: '], [{ reason: 'it differs' }, ''], [{ who: 'ann' }, 'reason: '], [{ reason: ' ', who: 'ann' }, 'reason: ']] as const) assert.deepEqual(await ask('POST', path, { store: 'store-a', ...order }), [400, { error: `${at}say who does this, and for what reason: it is logged` }]);
    assert.deepEqual(await ask('POST', path, { store: 'store-a', ...ORDER }), [200, { partition: 'gw-1/3', store: 'store-a' }]);
    stores.filled = 0;
    assert.equal((await ask('POST', path, { store: 'store-a', ...ORDER }))[0], 409);
    stores.filled = undefined;
    assert.equal((await ask('POST', path, { store: 'store-z', ...ORDER }))[0], 404);
    assert.deepEqual(stores.orders, [ORDER, ORDER, ORDER]);
    assert.deepEqual(stores.done, ['resync gw-1/3 store-a', 'resync gw-1/3 store-a', 'resync gw-1/3 store-z']);
  });
});
