import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { REFUSAL_MISSING } from '../../../../src/protocol/reasons.js';
import { applyTo, change, deleting, fingerprint, newStore, nextSection, found, positions, storing } from './section-kit.js';
import type { MirroredPartition } from '../../../../src/kvs/core/mirrored-partition.js';
import type { Store } from '../../../../src/kvs/core/store.js';

const COUNT = 5_000;

function filled(): { store: Store; copy: MirroredPartition } {
  const store = newStore();
  const copy = found(store);
  for (let i = 0; i < COUNT / 500; i += 1) change(store, copy, ...Array.from({ length: 500 }, (_none, k) => storing(i * 500 + k, 'body')));
  return { store, copy };
}

describe('a DELETE of many entries', () => {
  test('takes them out at once and frees them in steps', () => {
    const { store, copy } = filled();
    const bytes = copy.bytes / COUNT;
    assert.equal(change(store, copy, deleting(100, 4_000)), 0);
    assert.deepEqual([copy.count, copy.bytes], [1_000, 1_000 * bytes]);
    const left = positions(store, copy);
    assert.deepEqual([left.length, left[98], left[99]], [1_000, 99, 4_100]);
    assert.ok(store.entries.count > 4_500, 'nothing is freed within the section');
    assert.equal(store.hasWork, true);
    for (const gone of [100, 2_000, 4_099]) assert.equal(store.entries.find(copy, gone), 0);
    assert.equal(change(store, copy, deleting(2_000)), REFUSAL_MISSING);
    while (store.hasWork) store.work();
    assert.equal(store.entries.count, 1_000);
    assert.equal(change(store, copy, deleting(1), storing(1, 'new'), deleting(5_000)), 0);
    assert.equal(positions(store, copy).length, 999);
  });

  test('of a few frees them at once', () => {
    const { store, copy } = filled();
    const { liveBytes } = store.segments;
    assert.equal(change(store, copy, deleting(100, 1_024), deleting(2_000, 2), deleting(2_002)), 0);
    assert.deepEqual([copy.count, store.entries.count, store.hasWork], [COUNT - 1_027, COUNT - 1_027, false]);
    assert.equal(store.segments.liveBytes, liveBytes - 1_027 * (liveBytes / COUNT));
    for (const gone of [100, 1_123, 2_000, 2_001, 2_002]) assert.equal(store.entries.find(copy, gone), 0);
    assert.ok(store.entries.find(copy, 1_124) !== 0 && store.entries.find(copy, 2_003) !== 0);
  });

  test('moves cursors in front of the gap, and may empty the copy', () => {
    const { store, copy } = filled();
    const block = store.blocks.pull(copy, 0, COUNT, 1_500, 1 << 20);
    assert.equal(block.nextPosition, 1_500);
    assert.equal(change(store, copy, deleting(11, 3_000)), 0);
    assert.equal(store.blocks.pull(copy, 1_500, COUNT, 1, 1 << 20).nextPosition, 3_011);
    assert.equal(change(store, copy, deleting(1, 2_000)), 0);
    assert.deepEqual([copy.first, copy.last, copy.count, copy.bytes], [0, 0, 0, 0]);
    assert.equal(change(store, copy, storing(1, 'x')), 0);
    assert.equal(copy.count, 1);
  });

  test('is taken back whole when its section is refused, and refused when there are fewer', () => {
    const { store, copy } = filled();
    const before = fingerprint(store, copy);
    for (const changes of [
      [deleting(1, COUNT + 1)], [deleting(1, COUNT), deleting(1)], [deleting(1_001, 2_000), deleting(1_000, 1_500), deleting(4_999), storing(1, 'x'), deleting(1_001)],
      [deleting(4_000, 1_001), storing(1, 'x'), deleting(77, 1)].reverse().concat(deleting(77)),
      [deleting(10, 5), storing(1, 'x'), deleting(9, 2), deleting(COUNT), deleting(COUNT + 4), deleting(12)],
    ]) {
      assert.equal(applyTo(store, copy, nextSection(copy, changes)), REFUSAL_MISSING);
      assert.equal(fingerprint(store, copy), before);
    }
    assert.equal(change(store, copy, deleting(1, COUNT)), 0);
  });
});
