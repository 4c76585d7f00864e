import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConnectionState, isValidTransition } from '../../../../src/kvs/core/store-connection.js';

test('a store connection moves only along the arrows of its diagram', () => {
  const states = Object.entries(ConnectionState);
  const allowed = states.flatMap(([from, a]) => states.filter(([, b]) => isValidTransition(a, b)).map(([to]) => `${from}>${to}`));
  assert.deepEqual(allowed, [
    'AWAIT_HELLO>AWAIT_PROOF', 'AWAIT_HELLO>CLOSED',
    'AWAIT_PROOF>STANDBY', 'AWAIT_PROOF>ACTIVE', 'AWAIT_PROOF>CLOSED',
    'STANDBY>CLOSED',
    'ACTIVE>STANDBY', 'ACTIVE>CLOSED',
  ]);
});
