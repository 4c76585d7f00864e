/** Lines of the mail log for refusals: bounded by client and minute, and none is forgotten in the count. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RejectionDamper } from '../../../../src/gateway/inbound/limits/rejection-damper.js';

function kit(): { readonly damper: RejectionDamper; readonly told: string[] } {
  const told: string[] = [];
  return { damper: new RejectionDamper((client, count) => { told.push(`${client} ${String(count)}`); }), told };
}

describe('refusals of a client', () => {
  test('have 200 lines a minute, the others are told as a count when it is over', () => {
    const { damper, told } = kit();
    let lines = 0;
    for (let count = 0; count < 99_000; count++) if (damper.onRefusal('192.0.2.7', count / 2000)) lines++;
    assert.equal(lines, 200);
    assert.equal(damper.onRefusal('192.0.2.8', 0), true);
    damper.tick(59_999);
    assert.deepEqual(told, []);
    damper.tick(60_000);
    assert.deepEqual(told, ['192.0.2.7 98800']);
    assert.equal(damper.onRefusal('192.0.2.7', 60_000), true);
  });

  test('of more clients than there are entries are counted together', () => {
    const { damper, told } = kit();
    for (let client = 0; client < 10_000; client++) damper.onRefusal(`c${String(client)}`, 0);
    let lines = 0;
    for (let client = 0; client < 1000; client++) if (damper.onRefusal(`d${String(client)}`, 0)) lines++;
    assert.equal(lines, 200);
    damper.tick(60_000);
    assert.deepEqual(told, [' 800']);
  });
});
