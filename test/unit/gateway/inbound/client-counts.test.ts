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
    assert.deepEqual([counts.open('a'), counts.open('a'), counts.open('b')], [1, 2, 1]);
    counts.close('a');
    counts.close('a');
    assert.equal(counts.open('a'), 1);
  });
});
