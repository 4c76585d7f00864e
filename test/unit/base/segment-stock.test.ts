/** What a burst leaves is there for the next one, within what its owner allows, and goes in the end. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KEPT_MS, stockBytesMax } from '../../../src/base/segment-stock.js';
import { Segments } from '../../../src/base/segments.js';

const SEGMENT_BYTES = 65_536;
/** Records of 1,000 bytes: 64 in a segment. */
const IN_SEGMENT = 64;
const ROOM_BYTES = 1_000 * SEGMENT_BYTES;

/** Fills so many segments and empties them; answers which memory that took. */
function burst(segments: Segments, count: number): Set<ArrayBufferLike> {
  const slots = Array.from({ length: count * IN_SEGMENT }, () => segments.allocate(1000));
  const buffers = new Set(slots.map((slot) => segments.segmentOf(slot).buffer));
  for (const slot of slots) segments.free(slot);
  return buffers;
}

function keeping(bytesMax: number): Segments {
  const segments = new Segments({ segmentBytes: SEGMENT_BYTES });
  segments.keepStock(0, bytesMax);
  return segments;
}

function keptBy(segments: Segments): number {
  return segments.stockBytes / SEGMENT_BYTES;
}

describe('the stock of segments', () => {
  test('serves the next burst out of what the last one needed', () => {
    const segments = keeping(ROOM_BYTES);
    const first = burst(segments, 100);
    for (let minute = 1; minute < 20; minute++) {
      segments.keepStock(minute * 60_000, ROOM_BYTES);
      for (const buffer of burst(segments, 100)) assert.ok(first.has(buffer), 'nothing is made anew');
    }
  });

  test('is no part of what is used, but told', () => {
    const segments = keeping(ROOM_BYTES);
    burst(segments, 100);
    assert.ok(segments.usedBytes <= 4 * SEGMENT_BYTES);
    assert.ok(keptBy(segments) >= 96 && keptBy(segments) <= 100);
    const slots = Array.from({ length: 50 * IN_SEGMENT }, () => segments.allocate(1000));
    assert.ok(segments.usedBytes >= 50 * SEGMENT_BYTES, 'what is taken out of it is used again');
    assert.ok(keptBy(segments) <= 54);
    for (const slot of slots) segments.free(slot);
  });

  test('holds no more than it may, and goes as soon as it may hold less', () => {
    const segments = keeping(10 * SEGMENT_BYTES + 1);
    burst(segments, 100);
    assert.equal(keptBy(segments), 10);
    segments.keepStock(1, 3 * SEGMENT_BYTES);
    assert.equal(keptBy(segments), 3);
    segments.keepStock(2, 0);
    burst(segments, 100);
    assert.equal(keptBy(segments), 0);
  });

  test('is empty where nobody said that it may hold anything', () => {
    const segments = new Segments({ segmentBytes: SEGMENT_BYTES });
    burst(segments, 100);
    assert.equal(segments.stockBytes, 0);
  });

  test('gives back what nobody has needed for its time, and only that', () => {
    const segments = keeping(ROOM_BYTES);
    burst(segments, 100);
    segments.keepStock(KEPT_MS, ROOM_BYTES);
    burst(segments, 40);
    segments.keepStock(2 * KEPT_MS - 1, ROOM_BYTES);
    assert.ok(keptBy(segments) >= 96, 'its time is not over');
    segments.keepStock(2 * KEPT_MS, ROOM_BYTES);
    assert.ok(keptBy(segments) >= 36 && keptBy(segments) <= 42, `${String(keptBy(segments))} are kept, 40 were needed`);
    segments.keepStock(3 * KEPT_MS, ROOM_BYTES);
    assert.equal(keptBy(segments), 0);
  });

  test('takes no block of a large record: another is seldom of its size', () => {
    const segments = keeping(ROOM_BYTES);
    segments.free(segments.allocate(SEGMENT_BYTES));
    assert.equal(segments.stockBytes, 0);
  });

  test('keeps what compaction empties', () => {
    const segments = keeping(ROOM_BYTES);
    const slots = Array.from({ length: 100 * IN_SEGMENT }, () => segments.allocate(1000));
    slots.forEach((slot, index) => { if (index % 10 !== 0) segments.free(slot); });
    while (segments.hasGaps && segments.compact(1_000_000) > 0);
    assert.ok(segments.usedBytes <= 25 * SEGMENT_BYTES, 'use stays near to what lives');
    assert.ok(keptBy(segments) >= 75);
  });

  test('may be an eighth of the limit, and half of it together with what is used', () => {
    assert.deepEqual([0, 300, 375, 400, 500, 900].map((used) => stockBytesMax(1000, used)), [125, 125, 125, 100, 0, 0]);
  });
});
