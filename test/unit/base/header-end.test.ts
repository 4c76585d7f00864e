/** Where the header of a message ends, src/base/header-end.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headerEnd } from '../../../src/base/header-end.js';

test('a header ends behind its last line, and where that is too far away behind the last that fits', () => {
  const end = (text: string, bytesMax = 100): number => headerEnd(Buffer.from(text, 'latin1'), bytesMax);
  assert.equal(end('A: b\r\n c\r\n\r\nbody\r\n'), 10);
  assert.equal(end('A: b\n\nbody'), 5);
  assert.equal(end('\r\nbody'), 0);
  assert.equal(end('A: b\r\nbody'), 6, 'a line that has no end is none of it');
  assert.equal(end('A: b\r\nC: d\r\n\r\n', 8), 6);
  assert.equal(end('no line at all', 5), 5);
});
