/** Quotes that a local part needs stay; the others are no part of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutNeedlessQuotes } from '../../../src/base/needless-quotes.js';

test('an address has no quotes that it does not need', () => {
  for (const [written, plain] of [
    ['"anna"@example.com', 'anna@example.com'], ['"an\\na.b"@example.com', 'anna.b@example.com'], ['"b\u00e4r"@x', 'b\u00e4r@x'],
    ['anna@example.com', 'anna@example.com'], ['', ''], ['"', '"'], ['"@', '"@'],
  ] as const) assert.equal(withoutNeedlessQuotes(written), plain);
  for (const needed of ['""@x', '"a b"@x', '"a@b"@x', '"a..b"@x', '".a"@x', '"a\\"b"@x', '"a\\\\b"@x', '"a."@x', '"<a>"@x']) {
    assert.equal(withoutNeedlessQuotes(needed), needed);
  }
});
