import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { wireOf } from '../../../../bench/peers/wire.js';

describe('a batch of stores and deletes', () => {
  test('is text for memcached', () => {
    const { batch, reply } = wireOf('memcached', 3, 2);
    assert.equal(batch.toString(), 'set k0 0 0 3\r\nxxx\r\ndelete k0\r\nset k1 0 0 3\r\nxxx\r\ndelete k1\r\n');
    assert.equal(reply.toString(), 'STORED\r\nDELETED\r\n');
  });

  test('is RESP with keys for redis', () => {
    const { batch, reply } = wireOf('redis SET+DEL', 3, 1);
    assert.equal(batch.toString(), '*3\r\n$3\r\nSET\r\n$2\r\nk0\r\n$3\r\nxxx\r\n*2\r\n$3\r\nDEL\r\n$2\r\nk0\r\n');
    assert.equal(reply.toString(), '+OK\r\n:1\r\n');
  });

  test('is RESP with one list, and the value comes back', () => {
    const { batch, reply } = wireOf('redis list', 3, 1);
    assert.equal(batch.toString(), '*3\r\n$5\r\nRPUSH\r\n$1\r\nq\r\n$3\r\nxxx\r\n*2\r\n$4\r\nLPOP\r\n$1\r\nq\r\n');
    assert.equal(reply.toString(), ':1\r\n$3\r\nxxx\r\n');
  });
});
