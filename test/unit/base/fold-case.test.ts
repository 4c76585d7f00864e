/** What is the same whatever its case: letters are, signs that look like them are not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldCase, upperKeyword } from '../../../src/base/fold-case.js';

test('letters of any script are folded, and nothing becomes ASCII that was not', () => {
  assert.equal(foldCase('K\u00c5\u03a9\u0416k'), 'k\u00e5\u03c9\u0436k');
  assert.equal(foldCase('A\u212aB\u212bC\u2126'), 'a\u212ab\u212bc\u2126');
  for (let point = 0x80; point <= 0x10ffff; point++) {
    if (point >= 0xd800 && point <= 0xdfff) continue;
    const folded = foldCase(String.fromCodePoint(point));
    assert.ok(!/^[\0-\x7f]+$/.test(folded), point.toString(16));
  }
});

test('no keyword is made of what is not ASCII', () => {
  assert.equal(upperKeyword('Success,failure'), 'SUCCESS,FAILURE');
  for (const odd of ['\u017fUCCEsS', 'SIZE\u0131', '\u212aEY']) assert.equal(upperKeyword(odd), odd);
});
