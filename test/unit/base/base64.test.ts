/** Base64 without Buffer says what Buffer says, and takes nothing else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { base64Bytes, base64Text } from '../../../src/base/base64.js';

test('any bytes go both ways', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
    const text = base64Text(bytes);
    assert.equal(text, Buffer.from(bytes).toString('base64'));
    assert.deepEqual(base64Bytes(text), bytes);
  }));
});

test('what is not written so is none', () => {
  for (const text of ['a', 'ab', 'abc', 'ab=c', 'a===', '====', 'ab c', 'ab-_', 'abcd=', 'ab==cdef', 'aab=', 'aa=\n', 'ab==' ]) {
    const again = base64Bytes(text);
    assert.ok(again === undefined || base64Text(again) === text, text);
  }
  assert.equal(base64Bytes('ab=='), undefined, 'bits behind the last byte');
  assert.deepEqual(base64Bytes(''), new Uint8Array(0));
});
