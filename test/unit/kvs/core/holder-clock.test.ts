/** The wall clock by which the holder of a partition reckons, as a store tells it to who takes over (docs/PROTOCOL.md "Handshake"). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MirroredPartition } from '../../../../src/kvs/core/mirrored-partition.js';
import type { Store } from '../../../../src/kvs/core/store.js';
import { ORIGIN, accountOf, change, found, newStore, storing } from './section-kit.js';

function toldBy(store: Store, copy: MirroredPartition, nowMs: number): number {
  const message = { handle: 1, partition: copy.partition, term: ORIGIN, how: 1, provenDead: 0, number: 0, digestA: 0, digestB: 0 };
  return store.fenced(accountOf(store, 'g2'), message, copy, nowMs).holderWallMs;
}

test('is that of the process that wrote to it last, going on, also when its next process is here', () => {
  const store = newStore();
  const owner = accountOf(store);
  owner.admit(10, new Uint8Array([1]), store.admission);
  const copy = found(store);
  assert.equal(toldBy(store, copy, 0), 0, 'nothing was told');
  owner.clock.note(1_000_000, 500);
  accountOf(store, 'g2').clock.note(5_000_000, 500);
  assert.equal(toldBy(store, copy, 1500), 1_001_000);
  owner.admit(11, new Uint8Array([2]), store.admission);
  owner.clock.note(9_000_000, 2000);
  assert.equal(toldBy(store, copy, 2500), 1_002_000, 'the process before wrote it');
  assert.equal(change(store, copy, storing(1, 'a')), 0);
  assert.equal(toldBy(store, copy, 3000), 9_001_000);
});

test('is not known of a copy out of a file', () => {
  const store = newStore();
  const copy = found(store);
  copy.clock = undefined;
  assert.equal(toldBy(store, copy, 3000), 0);
});
