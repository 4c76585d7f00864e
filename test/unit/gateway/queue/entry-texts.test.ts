import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { HoldWords } from '../../../../src/gateway/queue/entry-texts.js';
import { decodeEntryTexts, encodeEntryTexts } from '../../../../src/gateway/queue/entry-texts.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import { TEXT_BYTES_MAX } from '../../../../src/protocol/text-rows.js';

const packer = new MessagePacker();
const REPLY_BYTES_MAX = 200;
const HOLD: HoldWords = { sinceWallMs: 1_700_000_000_000, who: 'ann', reason: 'a look first' };
const said = fc.oneof(fc.string({ unit: 'binary', maxLength: 600 }), fc.constantFrom('', 'busy', 'x'.repeat(511), '\ud800'.repeat(300), '📮'.repeat(99)));

/** As UTF-8 brings it. */
function wellFormed(text: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(text));
}

/** What an operator said came as UTF-8. */
const typed = said.map(wellFormed);

function utf8(text: string): number {
  return new TextEncoder().encode(text).length;
}

describe('texts of an entry', () => {
  test('are never longer than a store takes, whatever was said of however many; what is kept is the start of it', () => {
    const holds = fc.option(fc.record({ sinceWallMs: fc.integer({ min: 1, max: 2 ** 41 }), who: typed, reason: typed }), { nil: undefined });
    const hosts = fc.constantFrom('', 'mx.example.com', `${'a'.repeat(90)}.example`);
    fc.assert(fc.property(fc.array(fc.tuple(fc.nat(9999), fc.record({ text: said, host: hosts })), { maxLength: 40 }), holds, (list, hold) => {
      const texts = new Map(list);
      const bytes = encodeEntryTexts(packer, { hold, replies: texts });
      assert.ok(bytes.length <= TEXT_BYTES_MAX, `${String(bytes.length)} bytes`);
      const read = decodeEntryTexts(packer, bytes);
      for (const [recipient, { text, host }] of read.replies) {
        const whole = texts.get(recipient);
        assert.equal(host, whole?.host.startsWith('aa') === true ? '' : whole?.host);
        assert.ok(utf8(text) <= REPLY_BYTES_MAX);
        assert.ok(wellFormed(whole?.text ?? '').startsWith(text), 'its start');
      }
      assert.equal(read.hold?.sinceWallMs, hold?.sinceWallMs);
      if (hold === undefined || read.hold === undefined) return;
      const { who, reason } = read.hold;
      assert.ok(utf8(who) <= 64 && utf8(reason) <= 192, 'a hold leaves half of it to replies');
      assert.ok(hold.who.startsWith(who) && hold.reason.startsWith(reason), 'no character is cut');
    }), { numRuns: 300 });
  });

  test('that are equal stand once: a hundred recipients have theirs', () => {
    const replies = new Map(Array.from({ length: 100 }, (_, i) => [i, { text: 'y'.repeat(60), host: i < 50 ? 'mx.example.com' : '' }]));
    assert.deepEqual(decodeEntryTexts(packer, encodeEntryTexts(packer, { hold: undefined, replies })).replies, replies);
  });

  test('tell of a hold beside replies, and take no bytes when there is nothing to say', () => {
    const replies = new Map([[0, { text: 'busy', host: 'mx.example.com' }]]);
    for (const hold of [HOLD, undefined]) assert.deepEqual(decodeEntryTexts(packer, encodeEntryTexts(packer, { hold, replies })), { hold, replies });
    assert.equal(encodeEntryTexts(packer, { hold: undefined, replies: new Map([[0, { text: '', host: '' }]]) }).length, 0);
  });

  test('of bytes that are none say nothing', () => {
    for (const bytes of [new Uint8Array(0), Uint8Array.of(0xc1), Uint8Array.of(0x91), new Uint8Array(512)]) {
      const { hold, replies } = decodeEntryTexts(packer, bytes);
      assert.deepEqual([hold, replies.size], [undefined, 0]);
    }
  });
});
