/** Tag lists of DKIM, and bodies that are taken as they are, in whatever pieces they come. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SimpleBody } from '../../../../src/gateway/dkim/simple-body.js';
import { readTags, withoutBlanks } from '../../../../src/gateway/dkim/tag-list.js';

test('a tag list is what RFC 6376 3.2 says, or none', () => {
  assert.deepEqual([...readTags(' v=1;\r\n\ta = rsa-sha256 ; b=a b\r\n c=; ') ?? []], [['v', '1'], ['a', 'rsa-sha256'], ['b', 'a b\r\n c=']]);
  assert.deepEqual([...readTags('') ?? []], []);
  assert.deepEqual([...readTags('V=1;v=2;_=') ?? ['none']], ['none']);
  assert.deepEqual([...readTags('V=1;v=2') ?? []], [['V', '1'], ['v', '2']]);
  for (const text of ['v=1;v=1', 'v', 'v=1;;a=b', '=x', 'a b=c', '1=x', 'v=1; x']) assert.equal(readTags(text), undefined, text);
  assert.equal(withoutBlanks(' a\r\n b\tc '), 'abc');
  assert.equal(withoutBlanks(undefined), '');
});

test('a long run of blanks takes no longer than other text', () => {
  const startMs = performance.now();
  for (const text of [`v=x${' '.repeat(64_000)}y`, `v=${' \r\n\t'.repeat(16_000)}y`, `${' '.repeat(64_000)}v${'\t'.repeat(64_000)}=`, `${'v'.repeat(64_000)} y`, `v=1${'; '.repeat(32_000)}`]) readTags(text);
  assert.ok(performance.now() - startMs < 500, `${String(performance.now() - startMs)} ms`);
});

test('a simple body loses empty lines at its end alone, wherever its pieces are cut', () => {
  for (const [body, expected] of [
    ['', '\r\n'], ['\r\n', '\r\n'], ['\r\n\r\n', '\r\n'], ['a', 'a\r\n'], ['a\r\n', 'a\r\n'], ['a\r\n\r\n\r\n', 'a\r\n'], ['\r\n\r\na\r\n\r\nb', '\r\n\r\na\r\n\r\nb\r\n'], [' \r\n', ' \r\n'],
  ] as const) {
    for (let cut = 0; cut <= body.length; cut++) {
      for (let second = cut; second <= body.length; second++) {
        assert.equal(simple([body.slice(0, cut), body.slice(cut, second), body.slice(second)]), expected, JSON.stringify([body, cut, second]));
      }
    }
  }
  const many = '\r\n'.repeat(5000);
  assert.equal(simple([many, many, 'x', many]), `${many}${many}x\r\n`);
});

function simple(pieces: readonly string[]): string {
  let text = '';
  const body = new SimpleBody((octets) => { text += Buffer.from(octets).toString('latin1'); });
  for (const piece of pieces) body.update(Buffer.from(`<${piece}>`, 'latin1'), 1, piece.length + 1);
  body.end();
  return text;
}
