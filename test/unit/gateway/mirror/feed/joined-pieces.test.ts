import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { JoinedPieces } from '../../../../../src/gateway/mirror/feed/joined-pieces.js';

function bytesOf(pieces: readonly Uint8Array[]): number[] {
  return pieces.flatMap((piece) => [...piece]);
}

describe('joined pieces', () => {
  test('are the same bytes in the same order, and neighbours of one slab are one', () => {
    const slabs = [0, 100].map((from) => Uint8Array.from({ length: 100 }, (_none, i) => from + i));
    const cut = fc.record({ slab: fc.nat(1), from: fc.nat(90), bytes: fc.integer({ min: 1, max: 9 }), goesOn: fc.boolean() });
    fc.assert(fc.property(fc.array(cut, { maxLength: 40, size: 'max' }), (cuts) => {
      const joined = new JoinedPieces();
      const pieces: Uint8Array[] = [];
      let runs = 0;
      for (const { slab, from, bytes, goesOn } of cuts) {
        const last = pieces.at(-1);
        const end = last === undefined ? 0 : last.byteOffset + last.length;
        const follows = last !== undefined && goesOn && end + bytes <= 100;
        const piece = follows ? new Uint8Array(last.buffer, end, bytes) : slabs[slab]?.subarray(from, from + bytes);
        assert.ok(piece !== undefined);
        if (last === undefined || piece.buffer !== last.buffer || piece.byteOffset !== end) runs += 1;
        pieces.push(piece);
        joined.add(piece);
      }
      const whole = joined.take();
      assert.deepEqual(bytesOf(whole), bytesOf(pieces));
      assert.equal(whole.length, runs);
      assert.deepEqual(joined.take(), [], 'given away');
    }));
  });

  test('one that follows none and is followed by none goes out as it is', () => {
    const slab = new Uint8Array(8);
    const pieces = [slab.subarray(0, 2), slab.subarray(4, 6), Uint8Array.of(9)];
    const joined = new JoinedPieces();
    for (const piece of pieces) joined.add(piece);
    for (const [i, piece] of joined.take().entries()) assert.equal(piece, pieces[i]);
  });

  test('the next ones after take() begin anew, though they follow in memory', () => {
    const slab = Uint8Array.from({ length: 8 }, (_none, i) => i);
    const joined = new JoinedPieces();
    joined.add(slab.subarray(0, 4));
    assert.deepEqual(bytesOf(joined.take()), [0, 1, 2, 3]);
    joined.add(slab.subarray(4, 8));
    assert.deepEqual(bytesOf(joined.take()), [4, 5, 6, 7]);
  });
});
