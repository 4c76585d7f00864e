import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FLAG_BODY_ABSENT, viewOf } from '../../../../src/protocol/change-rows.js';
import { ENTRY_ROW_BYTES, checkEntryRow, entryFlags, entryPosition } from '../../../../src/protocol/entry-rows.js';
import { packPositions } from '../../../../src/protocol/messages/fetch.js';
import { FENCE_FOUND } from '../../../../src/protocol/messages/fence.js';
import { REFUSAL_UNKNOWN } from '../../../../src/protocol/reasons.js';
import { ORIGIN, attached, change, deleting, fenceAs, newStore, found, positions, pullAll, recordOf, storing } from './section-kit.js';

describe('a store', () => {
  test('keeps a thousand partitions apart', () => {
    const store = newStore();
    const copies = Array.from({ length: 1_000 }, (_, i) => found(store, i + 1));
    for (let round = 0; round < 3; round += 1) {
      copies.forEach((copy, i) => { assert.equal(change(store, copy, storing(i, `of ${String(i)}`), storing(i, 'second')), 0); });
    }
    copies.forEach((copy, i) => { if (i % 2 === 0) change(store, copy, deleting(1, 5)); });
    copies.forEach((copy, i) => {
      const first = pullAll(store, copy)[0];
      assert.deepEqual([copy.count, first?.body], i % 2 === 0 ? [1, 'second'] : [6, `of ${String(i)}`]);
    });
  });

  test('gives its memory back when a copy drains', () => {
    const store = newStore({ segmentBytes: 64 * 1024 });
    const copy = found(store);
    for (let i = 0; i < 200; i += 1) change(store, copy, ...Array.from({ length: 100 }, () => storing(1, 'x'.repeat(500))));
    const full = store.segments.usedBytes;
    assert.ok(full > 10_000_000);
    for (let i = 0; i < 20; i += 1) change(store, copy, deleting(i * 1000 + 1, 1000));
    while (store.hasWork) store.work();
    assert.equal(store.segments.liveBytes, 0);
    assert.equal(store.entries.count, 0);
    assert.ok(store.segments.usedBytes < full / 20, `${String(store.segments.usedBytes)} bytes are still held`);
  });

  test('keeps what a burst needed for the next one, while less than half of its limit is used', () => {
    const limitBytes = 32 * 1024 * 1024;
    const store = newStore({ segmentBytes: 64 * 1024, memoryLimitBytes: limitBytes });
    const copy = found(store);
    let stored = 0;
    const fill = (messages: number): void => {
      for (let i = 0; i < messages / 100; i += 1) change(store, copy, ...Array.from({ length: 100 }, () => storing(1, 'x'.repeat(500))));
      stored += messages;
    };
    const empty = (): void => {
      while (copy.count > 0) change(store, copy, deleting(stored - copy.count + 1, Math.min(1_000, copy.count)));
      while (store.hasWork) store.work();
    };
    store.tick(0);
    fill(10_000);
    empty();
    const kept = store.segments.stockBytes;
    assert.ok(kept > limitBytes / 10 && kept <= limitBytes / 8, `${String(kept)} bytes are kept`);
    assert.ok(store.segments.usedBytes < 1_000_000, 'they are not in use');
    fill(30_000);
    store.tick(1);
    assert.ok(store.admission.usedBytes > limitBytes / 2);
    assert.equal(store.segments.stockBytes, 0);
    for (let i = 0; i < 7_000 / 1_000; i += 1) change(store, copy, deleting(stored - copy.count + 1, 1_000));
    assert.ok(store.admission.usedBytes + store.segments.stockBytes <= limitBytes);
    assert.equal(store.segments.stockBytes, 0, 'nor is anything kept before the next look');
  });

  test('closes the gaps that long-lived messages leave', () => {
    const store = newStore({ segmentBytes: 64 * 1024 });
    const copy = found(store);
    const many = 20_000;
    for (let i = 0; i < many / 100; i += 1) change(store, copy, ...Array.from({ length: 100 }, () => storing(1, 'x'.repeat(500))));
    for (let i = 0; i < many / 100; i += 1) change(store, copy, deleting(i * 100 + 1, 99));
    for (let i = 0; i < 1_000 && store.hasWork; i += 1) store.work();
    assert.equal(copy.count, many / 100);
    assert.ok(store.segments.usedBytes <= 1.25 * store.segments.liveBytes + 4.5 * 1024 * 1024);
    assert.ok(pullAll(store, copy).every((entry) => entry.body === 'x'.repeat(500)));
  });

  test('that is told that it is out drops the copy with all that it held', () => {
    const store = newStore();
    const copy = found(store);
    const other = found(store, 2);
    change(store, copy, storing(1, 'a'), storing(2, 'b'));
    change(store, other, storing(1, 'c'));
    assert.equal(store.tell({ partition: 'g1/1', record: recordOf(2, { members: [] }), isOut: true }), true);
    while (store.hasWork) store.work();
    assert.equal(store.entries.count, 1);
    assert.equal(store.partitions.find('g1/1'), undefined);
    assert.equal(store.check(attached(copy)), REFUSAL_UNKNOWN, 'no handle names it any more');
    const again = fenceAs(store, FENCE_FOUND, 'g1/1', ORIGIN, { number: 2 });
    assert.ok(typeof again === 'object' && again.number === 0, 'who knows of that record may found one');
  });
});

describe('a pull', () => {
  test('goes on where the last block ended, though entries around it are deleted meanwhile', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, ...Array.from({ length: 20 }, (_, i) => storing(i, 'b')));
    const first = store.blocks.pull(copy, 0, 100, 5, 1e6);
    assert.deepEqual([first.nextPosition, first.end], [5, false]);
    change(store, copy, deleting(4, 3));
    const second = store.blocks.pull(copy, 5, 100, 3, 1e6);
    assert.equal(second.nextPosition, 9);
    change(store, copy, deleting(7, 5));
    assert.equal(store.blocks.pull(copy, 9, 100, 100, 1e6).nextPosition, 20);
    assert.equal(store.blocks.pull(copy, 8, 100, 1, 1e6).nextPosition, 12, 'also from a position that is gone');
    assert.deepEqual(positions(store, copy), [1, 2, 3, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
  });

  test('keeps to its bounds, but gives one entry at least', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'x'.repeat(1000)), storing(2, 'x'.repeat(1000)), storing(3, 'x'.repeat(1000)));
    assert.equal(store.blocks.pull(copy, 0, 100, 10, 10).nextPosition, 1);
    assert.equal(store.blocks.pull(copy, 0, 100, 10, 2100).nextPosition, 2);
    const until = store.blocks.pull(copy, 0, 2, 10, 1e6);
    assert.deepEqual([until.nextPosition, until.end], [2, true]);
  });

  test('without bodies has heads and notes alone, of shared entries too', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'first'), storing(2, 'second'));
    const whole = store.blocks.pull(copy, 0, 100, 10, 1e6);
    const heads = store.blocks.pull(copy, 0, 100, 10, 1e6, new Uint8Array(0), false);
    assert.equal(heads.bodies.length, whole.bodies.length - 'first'.length - 'second'.length);
    const view = viewOf(heads.rows);
    for (let at = 0; at < heads.rows.length; at += ENTRY_ROW_BYTES) {
      assert.equal(entryFlags(view, at), FLAG_BODY_ABSENT);
      assert.equal(checkEntryRow(view, at), '');
    }
  });
});

describe('a fetch', () => {
  test('has the entries at these positions, whole, and no row for one that is not there', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, ...Array.from({ length: 6 }, (_, i) => storing(i, `body ${String(i)}`)));
    change(store, copy, deleting(3, 1));
    const block = store.blocks.fetch(copy, packPositions([2, 3, 5]));
    const view = viewOf(block.rows);
    assert.deepEqual([entryPosition(view, 0), entryPosition(view, ENTRY_ROW_BYTES)], [2, 5]);
    assert.equal(block.rows.length, 2 * ENTRY_ROW_BYTES);
    assert.equal(block.nextPosition, 5);
    assert.match(new TextDecoder().decode(block.bodies), /^body 1.*body 4/);
    assert.equal(store.blocks.pull(copy, 0, 100, 2, 1e6).nextPosition, 2, 'pulls go on where they were');
  });

  test('answers for as many as one frame takes, and for one at least', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'x'.repeat(9_000_000)), storing(2, 'x'.repeat(9_000_000)));
    const block = store.blocks.fetch(copy, packPositions([1, 2]));
    assert.deepEqual([block.rows.length, block.nextPosition], [ENTRY_ROW_BYTES, 1]);
  });
});
