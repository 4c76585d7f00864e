/** Which next hops and hooks the status names, when many are down. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outagesOf } from '../../../src/gateway/outages.js';
import type { NextHopState } from '../../../src/gateway/outbound/connection-pool.js';

function hop(relay: string, waiting: number, downSinceWallMs: number | undefined = 5999): NextHopState {
  return { relay, waiting, downSinceWallMs, connections: 0, idle: 0, failures: 1, retryInMs: 5, lastError: `${relay} refuses`, isByMx: false };
}

test('names the five next hops for which most waits, the longer down one first, and counts the others', () => {
  const up: NextHopState = { ...hop('up', 900), downSinceWallMs: undefined };
  const hops = [hop('a', 1), hop('b', 7), up, hop('c', 7, 1500), hop('d', 3), hop('e', 0), hop('f', 9), hop('g', 2)];
  const { next_hops: nextHops, next_hops_down: count, hooks } = outagesOf(hops, [{ hook: 'rspamd', since: 5, why: 'no answer' }]);
  assert.deepEqual(nextHops.map(({ relay }) => relay), ['f', 'c', 'b', 'd', 'g']);
  assert.deepEqual(nextHops[0], { relay: 'f', since: 5, waiting: 9, why: 'f refuses' });
  assert.deepEqual([count, hooks.length], [7, 1]);
  assert.deepEqual(outagesOf([up], []), { next_hops: [], next_hops_down: 0, mx: [], mx_down: 0, hooks: [] });
  const { next_hops_down: own, mx, mx_down: strange } = outagesOf([hop('a', 1), { ...hop('stranger', 3), isByMx: true }], []);
  assert.deepEqual([own, mx.map(({ relay }) => relay), strange], [1, ['stranger'], 1]);
});
