/** Orders for many messages over HTTP, src/gateway/admin/order-api.ts: what is too long for others fits where partitions are named. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addQueueOrders } from '../../../../src/gateway/admin/order-api.js';
import type { QueueOrderControl } from '../../../../src/gateway/admin/order-api.js';
import { playedApi } from './played-api.js';

test('the partitions of 500 gateways may be named as passed over', async () => {
  const told: number[] = [];
  const control: Partial<QueueOrderControl> = {
    leave: (_id, passed) => {
      told.push(passed.length);
      return undefined;
    },
  };
  const api = playedApi();
  addQueueOrders(api, control as QueueOrderControl);
  const posted = async (count: number): Promise<number> => {
    const passed = Array.from({ length: count }, (_, i) => `gateway-${String(i >> 4)}.mail.example/${String(i & 15)}`);
    const { statusCode } = await api.inject({ method: 'POST', url: '/api/v1/orders/gw-1-1-1/leave', payload: { passed, reason: 'a flood', who: 'ann' } });
    return statusCode;
  };
  assert.deepEqual([await posted(8_000), await posted(8_193)], [409, 400]);
  assert.deepEqual(told, [8_000]);
  await api.close();
});

test('an order over a route that this gateway does not have begins nothing', async () => {
  const control: Partial<QueueOrderControl> = {
    whyNoRoute: ({ route = '' }) => (route === 'out' ? '' : 'there is no such route'),
    begin: () => 'it begins',
  };
  const api = playedApi();
  addQueueOrders(api, control as QueueOrderControl);
  const posted = async (route: string): Promise<number> =>
    (await api.inject({ method: 'POST', url: '/api/v1/orders', payload: { verb: 'hold', selector: { route }, reason: 'a flood', who: 'ann' } })).statusCode;
  assert.deepEqual([await posted('typo'), await posted('out')], [404, 400]);
  await api.close();
});
