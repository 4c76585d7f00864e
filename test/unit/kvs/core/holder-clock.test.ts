/** The wall clock by which the holder of a queue reckons, as a store tells it to who takes over (docs/PROTOCOL.md "Handshake"). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimedOf } from '../../../../src/kvs/core/claimed-of.js';
import { CLAIM_TOKEN_LOW } from '../../../../src/protocol/reasons.js';
import { accountOf, change, newStore, openQueue, storing } from './section-kit.js';

test('is that of the process that wrote to it last, going on, also when its next process is here', () => {
  const store = newStore();
  const owner = accountOf(store);
  const rescue = accountOf(store, 'g2');
  owner.admit(10, new Uint8Array([1]), store.admission);
  rescue.admit(10, new Uint8Array([1]), store.admission);
  const queue = openQueue(store, 1, 'g1', 1, ['g2']);
  const told = (nowMs: number): number => claimedOf(store, rescue, 1, queue, { result: CLAIM_TOKEN_LOW, waitMs: 0 }, nowMs).holderWallMs;
  assert.equal(told(0), 0, 'nothing was told');
  owner.clock.note(1_000_000, 500);
  rescue.clock.note(5_000_000, 500);
  assert.equal(told(1500), 1_001_000);
  owner.admit(11, new Uint8Array([2]), store.admission);
  owner.clock.note(9_000_000, 2000);
  assert.equal(told(2500), 1_002_000, 'the process before wrote it');
  assert.equal(change(store, queue, storing(1, 'a')), 0);
  assert.equal(told(3000), 9_001_000);
  assert.equal(claimedOf(store, rescue, 1, undefined, { result: 1, waitMs: 0 }, 3000).holderWallMs, 0);
});

test('is not known of a queue out of a file', () => {
  const store = newStore();
  const queue = openQueue(store, 1, 'g1', 1, ['g2']);
  queue.clock = undefined;
  assert.equal(claimedOf(store, accountOf(store, 'g2'), 1, queue, { result: CLAIM_TOKEN_LOW, waitMs: 0 }, 3000).holderWallMs, 0);
});
