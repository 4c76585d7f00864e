/** Lines of the mail log for refusals: bounded by client, network and minute, and none is forgotten in the count. */
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
    for (let client = 0; client < 10_000; client++) damper.onRefusal(`10.${String(client >> 8)}.${String(client & 255)}.1`, 0);
    damper.tick(59_999);
    let lines = 0;
    for (let client = 0; client < 1000; client++) if (damper.onRefusal(`11.${String(client >> 8)}.${String(client & 255)}.1`, 0)) lines++;
    assert.equal(lines, 0, 'all of them had 10,000');
    damper.tick(60_000);
    assert.deepEqual(told, [' 800', ' 200']);
  });

  test('from many addresses of a network have 400 lines a minute together, those of other networks theirs', () => {
    const { damper, told } = kit();
    let lines = 0;
    for (let client = 0; client < 120; client++) {
      for (let count = 0; count < 825; count++) if (damper.onRefusal(`2001:db8:5:${client.toString(16)}::1`, count)) lines++;
    }
    assert.equal(lines, 400);
    assert.equal(damper.onRefusal('2001:db8:6::1', 0), true);
    damper.tick(61_000);
    assert.ok(told.some((each) => each.startsWith('2001:db8:5::/48 ')));
    assert.equal(told.reduce((sum, each) => sum + Number(each.split(' ')[1]), 0), 120 * 825 - 400);
    let ofIpv4 = 0;
    for (let count = 0; count < 2000; count++) if (damper.onRefusal(`192.0.2.${String(count % 250)}`, 61_000)) ofIpv4++;
    assert.equal(ofIpv4, 400);
  });

  test('from everywhere at once have 10,000 lines a minute', () => {
    const { damper, told } = kit();
    let lines = 0;
    for (let count = 0; count < 99_000; count++) if (damper.onRefusal(`10.${String(count % 250)}.${String(count % 50)}.1`, 0)) lines++;
    assert.equal(lines, 10_000);
    damper.tick(60_000);
    assert.equal(told.reduce((sum, each) => sum + Number(each.split(' ')[1]), 0), 89_000);
  });
});
