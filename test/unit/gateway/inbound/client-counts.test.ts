import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ClientCounts, clientKey } from '../../../../src/gateway/inbound/limits/client-counts.js';

describe('counting clients', () => {
  test('an IPv6 /64 is one client, whatever the notation', () => {
    assert.equal(clientKey('2001:db8::1'), '2001:db8:0:0::/64');
    assert.equal(clientKey('2001:0DB8:0:0:ffff::2'), '2001:db8:0:0::/64');
    assert.equal(clientKey('2001:db8:0:1::1'), '2001:db8:0:1::/64');
    assert.equal(clientKey('::1'), '0:0:0:0::/64');
    assert.equal(clientKey('fe80::1%eth0'), 'fe80:0:0:0::/64');
    assert.equal(clientKey('192.0.2.1'), '192.0.2.1');
  });

  test('nothing is left of a client that has gone', () => {
    const counts = new ClientCounts();
    assert.deepEqual([counts.open('a', 0), counts.open('a', 0), counts.open('b', 0)], [1, 2, 1]);
    counts.close('a');
    counts.close('a');
    assert.equal(counts.open('a', 0), 1);
  });

  test('what other workers have open counts until they tell more, or tell nothing for a while', () => {
    const counts = new ClientCounts();
    counts.onReport('w2', [['a', 3], ['b', 1]], 0);
    counts.onReport('w3', [['a', 4]], 1000);
    assert.equal(counts.open('a', 1000), 8);
    counts.onReport('w2', [['a', 1]], 2000);
    assert.deepEqual([counts.open('a', 2000), counts.open('b', 2000)], [7, 1]);
    assert.deepEqual(counts.report(), [['a', 2], ['b', 1]], 'it tells what is open here');
    assert.equal(counts.open('a', 6500), 4, 'w3 has told nothing for 5 s');
    assert.equal(counts.open('a', 7000), 4, 'nor has w2');
  });

  test('a report has no more clients than a message may say: those with most', () => {
    const counts = new ClientCounts();
    for (let i = 0; i < 6000; i++) counts.open(`once ${String(i)}`, 0);
    for (let i = 0; i < 2; i++) counts.open('twice', 0);
    const report = counts.report();
    assert.equal(report.length, 5000);
    assert.deepEqual(report[0], ['twice', 2]);
  });
});
