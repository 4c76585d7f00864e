/** Command lines, however they are cut. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LineReader, NEEDS_MORE, TOO_LONG } from '../../../../src/gateway/inbound/session/line-reader.js';

/** All lines of the text cut into pieces of these lengths, and what is left of the last. */
function linesOf(text: string, cuts: readonly number[]): string[] {
  const reader = new LineReader();
  const lines: string[] = [];
  const bytes = Buffer.from(text, 'latin1');
  for (let from = 0, index = 0; from < bytes.length; index++) {
    const to = Math.min(bytes.length, from + (cuts[index % cuts.length] ?? 1));
    // A copy of its own: what is kept must not lie in it.
    const chunk = Uint8Array.from(bytes.subarray(from, to));
    for (let at = 0; at < chunk.length;) {
      const next = reader.next(chunk, at, 100);
      assert.notEqual(next, TOO_LONG);
      if (next === NEEDS_MORE) break;
      lines.push(Buffer.from(reader.bytes.subarray(reader.from, reader.to)).toString('latin1'));
      at = next;
    }
    chunk.fill(0x7a);
    from = to;
  }
  return lines;
}

test('lines are the same however the text is cut; only CR LF ends one', () => {
  const piece = fc.constantFrom('\r\n', '\r', '\n', 'a', 'NOOP', '\r\r\n', '\n\r\n', '.');
  fc.assert(fc.property(
    fc.array(piece, { maxLength: 40, size: 'max' }), fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 }),
    (pieces, cuts) => {
      const text = pieces.join('').slice(0, 100);
      assert.deepEqual(linesOf(text, cuts), text.split('\r\n').slice(0, -1));
    },
  ));
});

test('a line longer than the limit is told as soon as that is certain', () => {
  for (const [text, result] of [['x'.repeat(5) + '\r\n', 7], ['x'.repeat(6) + '\r\n', TOO_LONG], ['x'.repeat(5) + '\r', NEEDS_MORE], ['x'.repeat(7), TOO_LONG]] as const) {
    assert.equal(new LineReader().next(Buffer.from(text), 0, 5), result, text);
  }
});

test('the beginning of a line can be forgotten', () => {
  const reader = new LineReader();
  assert.equal(reader.next(Buffer.from('RSE'), 0, 10), NEEDS_MORE);
  reader.reset();
  assert.equal(reader.next(Buffer.from('T\r\n'), 0, 10), 3);
  assert.equal(reader.to - reader.from, 1);
});
