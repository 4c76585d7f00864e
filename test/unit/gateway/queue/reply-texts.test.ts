import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { packReplyTexts, readReplyTexts } from '../../../../src/gateway/queue/reply-texts.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import { TEXT_BYTES_MAX } from '../../../../src/protocol/text-rows.js';

const packer = new MessagePacker();
const ONE_TEXT_BYTES_MAX = 200;

/** As UTF-8 brings it. */
function wellFormed(text: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(text));
}

describe('texts of replies', () => {
  test('are never longer than a store takes, whatever was said to however many; what is kept is the start of it', () => {
    const said = fc.oneof(fc.string({ unit: 'binary', maxLength: 600 }), fc.constantFrom('', 'busy', 'x'.repeat(511), '\ud800'.repeat(300), '📮'.repeat(99)));
    fc.assert(fc.property(fc.array(fc.tuple(fc.nat(9999), said), { maxLength: 40 }), (list) => {
      const texts = new Map(list);
      const bytes = packReplyTexts(packer, texts);
      assert.ok(bytes.length <= TEXT_BYTES_MAX, `${String(bytes.length)} bytes`);
      for (const [recipient, text] of readReplyTexts(packer, bytes)) {
        assert.ok(new TextEncoder().encode(text).length <= ONE_TEXT_BYTES_MAX);
        assert.ok(wellFormed(texts.get(recipient) ?? '').startsWith(text), 'its start');
      }
    }), { numRuns: 300 });
  });

  test('that are equal stand once: a hundred recipients have theirs', () => {
    const texts = new Map(Array.from({ length: 100 }, (_, i) => [i, 'y'.repeat(190)]));
    assert.deepEqual(readReplyTexts(packer, packReplyTexts(packer, texts)), texts);
  });

  test('of bytes that are none say nothing', () => {
    for (const bytes of [undefined, new Uint8Array(0), Uint8Array.of(0xc1), Uint8Array.of(0x91), new Uint8Array(512)]) {
      assert.equal(readReplyTexts(packer, bytes).size, 0);
    }
  });
});
