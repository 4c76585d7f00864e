/** What was learned last: its bounds in number and in characters. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Newest } from '../../../src/base/newest.js';

const there = (newest: Newest<number>, keys: string): string => [...keys].filter((key) => newest.get(key) !== undefined).join('');

describe('the newest', () => {
  test('stay when there are too many; what is set again is new', () => {
    const newest = new Newest<number>(3);
    for (const [at, key] of [...'abcad'].entries()) newest.set(key, at);
    assert.equal(there(newest, 'abcd'), 'acd');
    assert.equal(newest.get('a'), 3);
    newest.delete('a');
    newest.set('e', 5);
    assert.equal(there(newest, 'acde'), 'cde');
  });

  test('hold no more characters than they may, keys counted; one that is larger is not kept', () => {
    const newest = new Newest<number>(100, 20);
    newest.set('a', 1, 9);
    newest.set('b', 2, 9);
    assert.equal(there(newest, 'ab'), 'ab');
    newest.set('c', 3, 0);
    assert.equal(there(newest, 'abc'), 'bc');
    newest.set('b', 4, 3);
    newest.set('d', 5, 15);
    assert.equal(there(newest, 'bcd'), 'bd');
    newest.set('e', 6, 20);
    assert.equal(there(newest, 'bde'), '');
    newest.set('f', 7, 19);
    assert.equal(there(newest, 'f'), 'f');
  });
});
