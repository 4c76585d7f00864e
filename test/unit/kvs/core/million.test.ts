/**
 * A store at the size it is built for: a million messages in one copy, with bookkeeping outside the collected heap.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { annotating, change, deleting, newStore, found, storing } from './section-kit.js';
import type { TestChange } from './section-kit.js';

const MESSAGES = 1_000_000;
const A_SECTION = 1_000;
const BODY = 'b'.repeat(40);
const HEAD = 'h'.repeat(24);
/** What an entry of one recipient keeps for its note (gateway/queue/note.ts). */
const ROOM_OF_ONE = 24;

test('holds a million messages in one copy, finds any of them, and gives all memory back', () => {
  const store = newStore({ memoryLimitBytes: 1024 * 1024 * 1024, segmentBytes: 1024 * 1024, ringBytes: 0 });
  const copy = found(store);
  const heapBefore = process.memoryUsage().heapUsed;
  for (let first = 1; first <= MESSAGES; first += A_SECTION) {
    const batch: TestChange[] = [];
    for (let id = first; id < first + A_SECTION; id++) batch.push(storing(id, BODY, HEAD, 0, ROOM_OF_ONE));
    assert.equal(change(store, copy, ...batch), 0);
  }
  assert.equal(copy.number, MESSAGES);
  const { admission } = store;
  const overheadBytes = admission.usedBytes / MESSAGES - (BODY.length + HEAD.length);
  assert.ok(overheadBytes <= 130, `bookkeeping a message: ${String(overheadBytes)} bytes`);
  assert.ok(process.memoryUsage().heapUsed - heapBefore < 64 * 1024 * 1024, 'messages stay out of the collected heap');

  // One in the middle, without a scan: it and its neighbours answer as they should.
  assert.equal(change(store, copy, annotating(500_000, 'note'), deleting(500_001)), 0);
  const near = store.blocks.pull(copy, 499_998, Number.MAX_SAFE_INTEGER, 3, 1 << 20);
  assert.equal(near.nextPosition, 500_002);

  assert.equal(change(store, copy, deleting(1, 500_000)), 0);
  assert.equal(change(store, copy, deleting(500_002, MESSAGES - 500_001)), 0);
  for (let i = 0; i < 100_000 && store.hasWork; i++) store.work();
  assert.ok(admission.usedBytes < 16 * 1024 * 1024, `still used: ${String(admission.usedBytes)} bytes`);
});
