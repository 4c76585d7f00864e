/** Lines out of bytes that come in any pieces, and what is too long to be one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LinesOfText } from '../../../../src/register/file/lines-of-text.js';

const BYTES_MAX = 5;

function read(...chunks: string[]): { readonly lines: string[]; readonly isGood: boolean } {
  const lines: string[] = [];
  const text = new LinesOfText(BYTES_MAX, (line) => {
    lines.push(line);
    return line !== 'stop';
  });
  const isGood = chunks.every((chunk) => text.push(Buffer.from(chunk)));
  return { lines, isGood };
}

test('lines come whole, however they are cut', () => {
  assert.deepEqual(read('ab', 'c\nd', 'e\n', '\nf'), { lines: ['abc', 'de', ''], isGood: true });
});

test('each line may have so many bytes, not all of them together', () => {
  assert.deepEqual(read('abcd', '\nabcd', '\nabcd\n'), { lines: ['abcd', 'abcd', 'abcd'], isGood: true });
});

test('a line that is too long ends it before its end has come, and so does a reader that has heard enough', () => {
  assert.deepEqual(read('abc', 'def'), { lines: [], isGood: false });
  assert.deepEqual(read('stop\nmore\n'), { lines: ['stop'], isGood: false });
});
