/** Bytes that a copy is behind: exact when it has all, never too small, at most a round trip too large. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FeedProgress } from '../../../../../src/gateway/mirror/feed/feed-progress.js';

describe('bytes that a mirror is behind', () => {
  test('are nothing once everything is acknowledged', () => {
    const progress = new FeedProgress();
    progress.acknowledged(5, 5, 500);
    assert.equal(progress.bytesBehind(500), 0);
    assert.equal(progress.bytesBehind(700), 200);
  });

  test('are never fewer than the truth, nor more than the truth and one round trip', () => {
    const progress = new FeedProgress();
    // Change n has n bytes; the store acknowledges `delay` seals later.
    const sumTo = (number: number): number => (number * (number + 1)) / 2;
    const delay = 7;
    for (let sealed = 1; sealed <= 1000; sealed++) {
      const acked = Math.max(0, sealed - delay);
      if (acked > 0) progress.acknowledged(acked, sealed, sumTo(sealed));
      const behind = progress.bytesBehind(sumTo(sealed));
      assert.ok(behind >= sumTo(sealed) - sumTo(acked), `too few at ${String(sealed)}`);
      assert.ok(behind <= sumTo(sealed) - sumTo(Math.max(0, acked - delay)), `too many at ${String(sealed)}`);
    }
  });

  test('grow while nothing is acknowledged', () => {
    const progress = new FeedProgress();
    progress.acknowledged(10, 10, 1000);
    assert.equal(progress.bytesBehind(5000), 4000);
  });
});

describe('the progress of a refill', () => {
  test('goes from none to all of what the queue held at its beginning', () => {
    const progress = new FeedProgress();
    assert.equal(progress.refillShare, undefined);
    progress.beginRefill(4, 400);
    assert.deepEqual([progress.refillShare, progress.messagesToRefill, progress.bytesToRefill], [0, 4, 400]);
    progress.refilled(1, 130);
    assert.deepEqual([progress.refillShare, progress.messagesToRefill, progress.bytesToRefill], [0.25, 3, 270]);
    progress.refilled(5, 900);
    assert.deepEqual([progress.refillShare, progress.messagesToRefill, progress.bytesToRefill], [1, 0, 0]);
    progress.endRefill();
    assert.deepEqual([progress.refillShare, progress.messagesToRefill], [undefined, 0]);
  });

  test('of an empty queue is over at once', () => {
    const progress = new FeedProgress();
    progress.beginRefill(0, 0);
    assert.equal(progress.refillShare, 1);
  });
});
