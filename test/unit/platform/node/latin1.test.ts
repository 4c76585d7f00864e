import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latin1Text } from '../../../../src/platform/node/latin1.js';

test('each byte is one character, of a Buffer and of plain bytes, from where to where it was said', () => {
  const all = Uint8Array.from({ length: 300 }, (_, at) => at & 0xff);
  for (const bytes of [all.subarray(10), Buffer.from(all.buffer, 10)]) {
    const text = latin1Text(bytes, 3, 270);
    assert.equal(text.length, 267);
    for (let at = 0; at < text.length; at++) assert.equal(text.charCodeAt(at), (at + 13) & 0xff);
    assert.equal(latin1Text(bytes, 5, 5), '');
  }
});
