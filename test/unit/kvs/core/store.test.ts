import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { packPositions } from '../../../../src/protocol/messages/pull-bodies.js';
import { change, deleting, newStore, openQueue, positions, pullAll, storing } from './section-kit.js';

describe('a store', () => {
  test('keeps a thousand queues apart', () => {
    const store = newStore();
    const queues = Array.from({ length: 1_000 }, (_, i) => openQueue(store, i + 1));
    for (let round = 0; round < 3; round += 1) {
      queues.forEach((queue, i) => { assert.equal(change(store, queue, storing(i, `of ${String(i)}`), storing(i, 'second')), 0); });
    }
    queues.forEach((queue, i) => { if (i % 2 === 0) change(store, queue, deleting(1, 5)); });
    queues.forEach((queue, i) => {
      const first = pullAll(store, queue)[0];
      assert.deepEqual([queue.count, first?.body], i % 2 === 0 ? [1, 'second'] : [6, `of ${String(i)}`]);
    });
  });

  test('gives its memory back when a queue drains', () => {
    const store = newStore({ segmentBytes: 64 * 1024 });
    const queue = openQueue(store);
    for (let i = 0; i < 200; i += 1) change(store, queue, ...Array.from({ length: 100 }, () => storing(1, 'x'.repeat(500))));
    const full = store.segments.usedBytes;
    assert.ok(full > 10_000_000);
    for (let i = 0; i < 20; i += 1) change(store, queue, deleting(i * 1000 + 1, 1000));
    while (store.hasWork) store.work();
    assert.equal(store.segments.liveBytes, 0);
    assert.equal(store.entries.count, 0);
    assert.ok(store.segments.usedBytes < full / 20, `${String(store.segments.usedBytes)} bytes are still held`);
  });

  test('keeps what a burst needed for the next one, while less than half of its limit is used', () => {
    const limitBytes = 32 * 1024 * 1024;
    const store = newStore({ segmentBytes: 64 * 1024, memoryLimitBytes: limitBytes });
    const queue = openQueue(store);
    let stored = 0;
    const fill = (messages: number): void => {
      for (let i = 0; i < messages / 100; i += 1) change(store, queue, ...Array.from({ length: 100 }, () => storing(1, 'x'.repeat(500))));
      stored += messages;
    };
    const empty = (): void => {
      while (queue.count > 0) change(store, queue, deleting(stored - queue.count + 1, Math.min(1_000, queue.count)));
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
    for (let i = 0; i < 7_000 / 1_000; i += 1) change(store, queue, deleting(stored - queue.count + 1, 1_000));
    assert.ok(store.admission.usedBytes + store.segments.stockBytes <= limitBytes);
    assert.equal(store.segments.stockBytes, 0, 'nor is anything kept before the next look');
  });

  test('closes the gaps that long-lived messages leave', () => {
    const store = newStore({ segmentBytes: 64 * 1024 });
    const queue = openQueue(store);
    const many = 20_000;
    for (let i = 0; i < many / 100; i += 1) change(store, queue, ...Array.from({ length: 100 }, () => storing(1, 'x'.repeat(500))));
    for (let i = 0; i < many / 100; i += 1) change(store, queue, deleting(i * 100 + 1, 99));
    for (let i = 0; i < 1_000 && store.hasWork; i += 1) store.work();
    assert.equal(queue.count, many / 100);
    assert.ok(store.segments.usedBytes <= 1.25 * store.segments.liveBytes + 4.5 * 1024 * 1024);
    assert.ok(pullAll(store, queue).every((entry) => entry.body === 'x'.repeat(500)));
  });

  test('drops a queue with all that it held', () => {
    const store = newStore();
    const queue = openQueue(store);
    const other = openQueue(store, 2);
    change(store, queue, storing(1, 'a'), storing(2, 'b'));
    change(store, other, storing(1, 'c'));
    store.drop(queue);
    while (store.hasWork) store.work();
    assert.equal(store.entries.count, 1);
    assert.equal(store.queues.find('g1', 1, 1), undefined);
    assert.equal(openQueue(store).number, 0);
  });
});

describe('a pull', () => {
  test('goes on where the last block ended, though entries around it are deleted meanwhile', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, ...Array.from({ length: 20 }, (_, i) => storing(i, 'b')));
    const first = store.blocks.pull(queue, 0, 100, 5, 1e6, true);
    assert.deepEqual([first.nextPosition, first.end], [5, false]);
    change(store, queue, deleting(4, 3));
    const second = store.blocks.pull(queue, 5, 100, 3, 1e6, true);
    assert.equal(second.nextPosition, 9);
    change(store, queue, deleting(7, 5));
    assert.equal(store.blocks.pull(queue, 9, 100, 100, 1e6, true).nextPosition, 20);
    assert.equal(store.blocks.pull(queue, 8, 100, 1, 1e6, true).nextPosition, 12, 'also from a position that is gone');
    assert.deepEqual(positions(store, queue), [1, 2, 3, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
  });

  test('keeps to its bounds, but gives one entry at least', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'x'.repeat(1000)), storing(2, 'x'.repeat(1000)), storing(3, 'x'.repeat(1000)));
    assert.equal(store.blocks.pull(queue, 0, 100, 10, 10, true).nextPosition, 1);
    assert.equal(store.blocks.pull(queue, 0, 100, 10, 2100, true).nextPosition, 2);
    const until = store.blocks.pull(queue, 0, 2, 10, 1e6, true);
    assert.deepEqual([until.nextPosition, until.end], [2, true]);
  });

  test('without bodies brings envelopes; bodies come by position, missing ones left out', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'one', 'h1'), storing(2, 'two', 'h2'), storing(3, 'three', 'h3'), deleting(2));
    assert.deepEqual(pullAll(store, queue, 10, false).map((e) => [e.head, e.body]), [['h1', ''], ['h3', '']]);
    const block = store.blocks.bodies(queue, packPositions([3, 2, 1]));
    assert.equal(new TextDecoder().decode(block?.bodies), 'threeh3oneh1');
  });
});
