/** Which next hops and hooks the status names, when many are down. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outagesOf } from '../../../../src/gateway/daemon/outages.js';
import type { NextHopState } from '../../../../src/gateway/outbound/connection-pool.js';

function hop(relay: string, waiting: number, downSinceWallMs: number | undefined = 5999): NextHopState {
  return { relay, waiting, downSinceWallMs, bytes: 1000 * waiting, connections: 0, idle: 0, failures: 1, retryInMs: 1500, lastError: `${relay} refuses`, lastCode: '4.4.1', connecting: undefined, fullBy: undefined, isDenied: false, isByMx: false };
}

test('names the five next hops for which most waits, the longer down one first, and counts the others', () => {
  const up: NextHopState = { ...hop('up', 900), downSinceWallMs: undefined };
  const hops = [hop('a', 1), hop('b', 7), up, hop('c', 7, 1500), hop('d', 3), hop('e', 0), hop('f', 9), hop('g', 2)];
  const { next_hops: nextHops, next_hops_down: count, hooks } = outagesOf(hops, [{ hook: 'rspamd', since: 5, why: 'no answer' }], 60_000);
  assert.deepEqual(nextHops.map(({ relay }) => relay), ['f', 'c', 'b', 'd', 'g']);
  assert.deepEqual(nextHops[0], { relay: 'f', since: 5, waiting: 9, bytes: 9000, next_try: 62, code: '4.4.1', why: 'f refuses' });
  assert.deepEqual([count, hooks.length], [7, 1]);
  assert.deepEqual(outagesOf([up], [], 0), { next_hops: [], next_hops_down: 0, next_hops_denied: 0, mx: [], mx_down: 0, mx_waiting: 0, hooks: [] });
  const strangers = Array.from({ length: 9 }, (_, i) => ({ ...hop(`stranger${String(i)}`, 3), isByMx: true }));
  const { next_hops_down: own, mx, mx_down: strange, mx_waiting: waiting } = outagesOf([hop('a', 1), ...strangers], [], 0);
  assert.deepEqual([own, mx.length, strange, waiting], [1, 5, 9, 27]);
  assert.equal(outagesOf([{ ...hop('a', 1), isDenied: true }, hop('b', 1), { ...up, isDenied: true }], [], 0).next_hops_denied, 1);
  const connecting = { relay: 'a', forMs: 5, doing: '' };
  const tried = [{ ...hop('a', 1), connecting }, { ...hop('b', 1), retryInMs: 0 }];
  assert.deepEqual(outagesOf(tried, [], 60_000).next_hops.map(({ next_try: at }) => at), [null, null], 'at this moment');
});
