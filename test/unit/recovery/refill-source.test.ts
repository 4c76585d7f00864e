import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ENTRY_ROW_BYTES } from '../../../src/protocol/entry-rows.js';
import type { RefillEntries } from '../../../src/recovery/refill-source.js';
import { RefillSource } from '../../../src/recovery/refill-source.js';

/** A queue as an array; row n is the entry with position n. */
function entriesOf(positions: number[], bytes: number): RefillEntries {
  return {
    first: () => positions[0] ?? 0,
    following: (row) => positions[positions.indexOf(row) + 1] ?? 0,
    position: (row) => row,
    messageId: (row) => row * 10,
    flags: () => 0,
    bodyBytes: () => bytes,
    headBytes: () => 3,
    noteBytes: (row) => (row % 4 === 0 ? 2 : 0),
    room: () => 6,
    checksum: (row) => row,
    noteChecksum: (row) => row + 1,
    isHere: () => true,
    want: () => {},
    onSent: () => {},
    writePayload: (row, target, at) => { target.fill(row & 0xff, at, at + bytes + 3 + (row % 4 === 0 ? 2 : 0)); },
  };
}

function positionsIn(rows: Uint8Array): number[] {
  const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
  return Array.from({ length: rows.length / ENTRY_ROW_BYTES }, (_, i) => view.getFloat64(i * ENTRY_ROW_BYTES + 32, true));
}

describe('refill', () => {
  test('sends each entry that stands when its frame is built, once, in order, none behind the base', () => {
    const positions = fc.uniqueArray(fc.integer({ min: 1, max: 250 }), { maxLength: 60, size: 'max' });
    fc.assert(fc.property(positions, fc.array(fc.nat(100), { maxLength: 80, size: 'max' }), fc.integer({ min: 1, max: 400 }), (list, removals, frameBytes) => {
      const standing = [...list].sort((a, b) => a - b);
      const base = 200;
      const refill = new RefillSource({ baseNumber: base, frameBytes, entryCreditBytes: 0 }, entriesOf(standing, 20));
      const sent: number[] = [];
      const gone: number[] = [];
      let turn = 0;
      for (let going = !refill.isOver; going; going = !refill.isOver) {
        const victim = standing[(removals[turn] ?? 0) % Math.max(1, standing.length)];
        turn += 1;
        if (victim !== undefined && turn <= removals.length) {
          const cursor = refill.cursor;
          const following = standing[standing.indexOf(victim) + 1] ?? 0;
          standing.splice(standing.indexOf(victim), 1);
          refill.onUnlinked(victim, following);
          if (victim > cursor) gone.push(victim);
        }
        const frame = refill.nextFrame(Number.MAX_SAFE_INTEGER);
        if (frame === undefined) break;
        sent.push(...positionsIn(frame.rows));
        const over: boolean = refill.isOver;
        assert.equal(refill.cursor, over ? base : sent.at(-1));
      }
      const expected = list.filter((position) => position <= base && !gone.includes(position)).sort((a, b) => a - b);
      assert.deepEqual(sent, expected);
      assert.equal(refill.sentCount, sent.length);
      assert.equal(refill.cursor, base);
    }), { numRuns: 300 });
  });

  test('a frame holds at least one entry and otherwise its bound; payload follows the rows', () => {
    const refill = new RefillSource({ baseNumber: 100, frameBytes: 50, entryCreditBytes: 0 }, entriesOf([1, 2, 3, 4], 20));
    const frame = refill.nextFrame(Number.MAX_SAFE_INTEGER);
    assert.deepEqual(positionsIn(frame?.rows ?? new Uint8Array(0)), [1, 2]);
    assert.deepEqual([...(frame?.payload ?? [])], [...new Array<number>(23).fill(1), ...new Array<number>(23).fill(2)]);
    const large = new RefillSource({ baseNumber: 100, frameBytes: 50, entryCreditBytes: 0 }, entriesOf([1, 2], 5000));
    assert.deepEqual(positionsIn(large.nextFrame(Number.MAX_SAFE_INTEGER)?.rows ?? new Uint8Array(0)), [1]);
  });

  test('waits at an entry whose body is not here, asks for it and some behind it, and says what it sent', () => {
    const here = new Set([1, 2, 4]);
    const wanted: number[] = [];
    const sent: number[] = [];
    const entries = { ...entriesOf([1, 2, 3, 4, 5, 6, 7, 8, 9], 20), isHere: (row: number) => here.has(row), want: (row: number) => { wanted.push(row); }, onSent: (row: number) => { sent.push(row); } };
    const refill = new RefillSource({ baseNumber: 8, frameBytes: 20, entryCreditBytes: 0 }, entries);
    const next = (): number[] => positionsIn(refill.nextFrame(Number.MAX_SAFE_INTEGER)?.rows ?? new Uint8Array(0));
    assert.deepEqual([next(), next(), wanted], [[1], [2], []]);
    assert.equal(refill.nextFrame(Number.MAX_SAFE_INTEGER), undefined);
    assert.deepEqual([refill.isOver, refill.cursor, wanted, sent], [false, 2, [3, 5, 6], [1, 2]], 'four frames of bodies ahead');
    here.add(3);
    assert.deepEqual([next(), next(), sent], [[3], [4], [1, 2, 3, 4]]);
    refill.nextFrame(Number.MAX_SAFE_INTEGER);
    assert.deepEqual(wanted.slice(3), [5, 6, 7, 8], 'none behind the base');
    refill.onUnlinked(5, 6);
    for (const row of [6, 7, 8]) here.add(row);
    assert.deepEqual([next(), next(), next(), refill.isOver], [[6], [7], [8], true]);
  });

  test('an empty queue is over at once', () => {
    const refill = new RefillSource({ baseNumber: 7, frameBytes: 50, entryCreditBytes: 0 }, entriesOf([], 1));
    assert.equal(refill.isOver, true);
    assert.equal(refill.cursor, 7);
    assert.equal(refill.nextFrame(1000), undefined);
  });
});
