/** The line of a record: which records led to it, and which were made by a register that was put back since. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LINE_MAX } from '../../../src/protocol/fields.js';
import type { PastTerm } from '../../../src/protocol/partition-record.js';
import { isOfLine, lineWith } from '../../../src/protocol/partition-record.js';

const past = (number: number, epoch: number, nonce = 1): PastTerm => ({ term: { number, nonce }, epoch });
const { term } = past(90, 90);

describe('a line', () => {
  test('has nothing of a partition that ended, and was begun anew by numbers that it has', () => {
    const line = [past(4, 4), past(1, 3)];
    for (const epoch of [1, 3]) assert.equal(isOfLine({ term: past(5, 5).term, line }, past(1, epoch, 2)), false);
    assert.equal(isOfLine({ term: past(5, 5).term, line: [past(4, 4)] }, past(1, 3, 2)), true, 'older than it reaches back');
  });
});

describe('a line with a term that was undone', () => {
  test('has it up to the epoch that is known to be here', () => {
    const line = lineWith([past(7, 9), past(3, 6)], past(5, 8, 2));
    assert.deepEqual(line, [past(7, 9), past(5, 8, 2), past(3, 6)]);
    for (const epoch of [7, 8]) assert.equal(isOfLine({ term, line }, past(5, epoch, 2)), true);
    assert.equal(isOfLine({ term, line }, past(5, 9, 2)), false, 'later');
    assert.equal(isOfLine({ term, line }, past(5, 8, 3)), false, 'another one of that number');
  });

  test('reaches back as far as before: to the beginning, if it was empty', () => {
    const line = lineWith([], past(5, 8));
    assert.equal(isOfLine({ term, line }, past(5, 8)), true);
    assert.equal(isOfLine({ term, line }, past(1, 1, 2)), false);
  });

  test('names it once, and stays within what a record has room for', () => {
    assert.deepEqual(lineWith(lineWith([past(3, 6)], past(5, 7)), past(5, 8)), [past(5, 8), past(3, 6)]);
    const full = Array.from({ length: LINE_MAX }, (_, i) => past(20 - i, 20 - i));
    const line = lineWith(full, past(14, 15, 2));
    assert.equal(line.length, LINE_MAX);
    assert.equal(isOfLine({ term, line }, past(14, 15, 2)), true);
  });
});
