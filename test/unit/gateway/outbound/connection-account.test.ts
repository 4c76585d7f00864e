/** Who may open one connection more, over all next hops. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { ConnectionAccount } from '../../../../src/gateway/outbound/connection-account.js';
import { toldTo } from './memory-source.js';

describe('the account of connections', () => {
  test('gives hosts by MX half of itself for those that are being set up, and all to hosts that the configuration names', () => {
    const account = new ConnectionAccount({ connectionsMax: 10, ofAddressMax: 10 }, toldTo([]));
    for (let i = 0; i < 5; i++) account.onAskedFor(true);
    assert.deepEqual([account.room(true), account.room(false)], [0, 5]);
    account.onSetUp(true);
    assert.deepEqual([account.room(true), account.room(false)], [1, 5], 'one is ready');
    account.onClosed();
    assert.deepEqual([account.room(true), account.room(false)], [1, 6]);
  });

  test('tells once that mail waits for one, and that it does not after ten seconds', () => {
    const told: string[] = [];
    const account = new ConnectionAccount({ connectionsMax: 4, ofAddressMax: 10 }, toldTo(told));
    account.tick(1000);
    for (let i = 0; i < 2; i++) account.onAskedFor(true);
    for (let nowMs = 2000; nowMs <= 60_000; nowMs += 250) {
      account.noteRefused();
      account.tick(nowMs);
    }
    assert.equal(account.whyFull, '2 to hosts by MX of 2 are being set up');
    assert.equal(account.isAnyWanted, false, 'no idle one is in the way');
    account.tick(69_700);
    assert.equal(told.length, 1);
    account.tick(70_000);
    assert.deepEqual([told.length, account.whyFull], [2, '']);
  });

  test('leaves hosts by MX their half although those to a host that the configuration names are never ready', () => {
    const account = new ConnectionAccount({ connectionsMax: 10, ofAddressMax: 10 }, toldTo([]));
    for (let i = 0; i < 8; i++) account.onAskedFor(false);
    assert.equal(account.room(true), 2);
    for (let i = 0; i < 2; i++) account.onAskedFor(true);
    account.tick(1000);
    account.noteRefused();
    account.tick(2000);
    assert.equal(account.whyFull, '10 of 10 are open');
    account.onSetUp(false);
    account.onClosed();
    assert.equal(account.room(true), 1);
  });

  test('counts those to an address, and says of idle ones there that somebody waits for them', () => {
    const account = new ConnectionAccount({ connectionsMax: 10, ofAddressMax: 2 }, toldTo([]));
    account.tick(5000);
    assert.deepEqual(['a', 'a', 'b'].map((address) => account.takeAddress(address)), [true, true, true]);
    assert.equal(account.isAnyWanted, false);
    assert.equal(account.takeAddress('a'), false);
    assert.deepEqual([account.isAnyWanted, account.isWanted('a'), account.isWanted('b')], [true, true, false]);
    account.giveAddress('a');
    assert.deepEqual([account.waitsForAddress('a'), account.takeAddress('a'), account.waitsForAddress('a')], [false, true, true]);
    account.tick(6000);
    assert.equal(account.isAnyWanted, false);
  });

  test('counts an address once, however it is written', () => {
    const account = new ConnectionAccount({ connectionsMax: 10, ofAddressMax: 2 }, toldTo([]));
    account.tick(5000);
    assert.deepEqual(['2001:db8::1', '2001:DB8:0::1', '2001:db8:0:0:0:0:0:1'].map((address) => account.takeAddress(address)), [true, true, false]);
    assert.deepEqual(['192.0.2.1', '::ffff:192.0.2.1', '::ffff:c000:201'].map((address) => account.takeAddress(address)), [true, true, false]);
    assert.deepEqual([account.isWanted('2001:db8::0:1'), account.isWanted('2001:db8::2')], [true, false]);
    account.giveAddress('2001:0db8::1');
    assert.deepEqual([account.waitsForAddress('2001:db8::1'), account.takeAddress('2001:db8:0::1'), account.takeAddress('2001:db8::1')], [false, true, false]);
  });
});
