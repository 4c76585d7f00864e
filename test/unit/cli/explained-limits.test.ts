/** What `twinpost explain` says of limits that gateways told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitLines } from '../../../src/cli/explained-limits.js';

test('a limit of a queue that a gateway has twice, as of a partition that it took over, is told once', () => {
  const down = { gateway: 'gw-1', limit: 'next hop', binds: true, text: 'mx:25 refuses' };
  const limits = [down, { ...down, gateway: 'gw-2' }, down, { ...down, binds: false, text: '3 of 50' }];
  assert.deepEqual(limitLines(limits), [
    'BINDS     gw-1  next hop: mx:25 refuses', 'BINDS     gw-2  next hop: mx:25 refuses', 'limit     gw-1  next hop: 3 of 50',
  ]);
});
