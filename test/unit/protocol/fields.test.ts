import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isHandle, isIdentifier, isWhole, plainText } from '../../../src/protocol/fields.js';

test('an identifier is 1 to 255 bytes of visible characters', () => {
  for (const good of ['a', 'store-a', 'example.com', 'büro.example', '例え.テスト', '📮', 'x'.repeat(255), 'é'.repeat(127), '例'.repeat(85), '📮'.repeat(63)]) {
    assert.ok(isIdentifier(good), good);
  }
  for (const bad of ['', ' ', 'a b', 'a\n', '\u0000', 'a\u007f', 'a\u0085', 'a\u00a0b', 'a\u200bb', 'a\u202eb', 'a\u2066b', '\ufeffa', 'a\ufffd', '\ud800', 'a\udc00', '\udc00\ud800', 'x'.repeat(256), 'é'.repeat(128), '例'.repeat(86), '📮'.repeat(64), 7, null, undefined, ['a']]) {
    assert.ok(!isIdentifier(bad), JSON.stringify(bad));
  }
});

test('numbers are whole, not negative, and below their bound', () => {
  for (const good of [0, 1, 2 ** 32, Number.MAX_SAFE_INTEGER]) assert.ok(isWhole(good));
  for (const bad of [-1, 0.5, NaN, Infinity, 2 ** 53, 1n, '1', null, true]) assert.ok(!isWhole(bad));
  assert.ok(isHandle(1) && isHandle(2 ** 31 - 1));
  assert.ok(!isHandle(0) && !isHandle(2 ** 31));
});

test('a text of ours goes out as visible ASCII within its limit, whatever got into it', () => {
  assert.equal(plainText('stands at 39'), 'stands at 39');
  assert.equal(plainText('bad \u001b[31m \ud800 é'), 'bad ?[31m ? ?');
  assert.equal(plainText('x'.repeat(5000)).length, 1024);
});
