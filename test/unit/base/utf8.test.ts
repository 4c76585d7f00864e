/** UTF-8 without Buffer says what Buffer and TextDecoder say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { latin1Bytes, latin1Text, utf8Bytes, utf8Octets, utf8Text } from '../../../src/base/utf8.js';

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}

test('any bytes are text, or none, exactly as the strict decoder of the platform says', () => {
  const anyBytes = fc.oneof(
    fc.uint8Array({ maxLength: 12 }),
    fc.string({ unit: 'binary' }).map((text) => Uint8Array.from(Buffer.from(text))),
    fc.array(fc.constantFrom(0x41, 0x7f, 0x80, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0x9f, 0xa0, 0x8f, 0x90), { maxLength: 6 })
      .map((list) => Uint8Array.from(list)),
  );
  fc.assert(fc.property(anyBytes, (bytes) => { assert.equal(utf8Text(bytes, 0, bytes.length), decoded(bytes)); }), { numRuns: 3000 });
});

test('octets are those that the text will have', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => { assert.equal(utf8Octets(text), Buffer.byteLength(text)); }));
  assert.equal(utf8Octets('a\ud800b'), 5);
});

test('a text goes out as the platform writes it', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => { assert.deepEqual(utf8Bytes(text), Uint8Array.from(Buffer.from(text))); }));
  assert.deepEqual(utf8Bytes('a\ud800b'), Uint8Array.from(Buffer.from('a\ud800b')));
});

test('Latin-1 goes both ways, also through more than one piece', () => {
  const bytes = Uint8Array.from({ length: 20_000 }, (_none, at) => at % 256);
  assert.deepEqual(latin1Bytes(latin1Text(bytes, 0, bytes.length)), bytes);
  assert.equal(latin1Text(bytes, 65, 68), 'ABC');
});
