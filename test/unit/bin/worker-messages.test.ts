/** What is said between the processes of a gateway. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { rotateTickets } from '../../../src/bin/worker-messages.js';

test('keys of TLS sessions are there at once, and others every six hours', () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    const keys: string[] = [];
    rotateTickets((key) => {
      assert.equal(key.length, 48);
      keys.push(key.toString('hex'));
    });
    assert.equal(keys.length, 1);
    for (let hours = 0; hours < 12; hours++) mock.timers.tick(3_600_000);
    assert.equal(new Set(keys).size, 3);
  } finally {
    mock.timers.reset();
  }
});
