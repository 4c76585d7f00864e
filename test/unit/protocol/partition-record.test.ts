/** The line of a record: which records led to it, and which were made by a register that was put back since. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { endedBy } from '../../../src/gateway/ownership/given-up-rules.js';
import { LINE_MAX } from '../../../src/protocol/fields.js';
import type { PastTerm } from '../../../src/protocol/partition-record.js';
import { behindEnd, isOfLine, lineAfter, lineUpTo, lineWith, lineWithout, nobody } from '../../../src/protocol/partition-record.js';

const past = (number: number, epoch: number, nonce = 1): PastTerm => ({ term: { number, nonce }, epoch });
const { term } = past(90, 90);
const record = { epoch: 90, term, holder: nobody('gw-1/1'), members: [], gaveUp: [], left: [] };

const FULL = Array.from({ length: LINE_MAX }, (_, i) => past(2 * (30 - i), 2 * (30 - i) + 1));

describe('a line', () => {
  test('has the terms that it names, each up to its last epoch, and nothing from before', () => {
    const line = [past(30, 31), past(20, 22)];
    for (const told of [past(30, 31), past(20, 20), past(20, 22)]) assert.equal(isOfLine({ term, line }, told), true);
    assert.equal(isOfLine({ term, line }, past(20, 23)), false, 'later');
    assert.equal(isOfLine({ term, line }, past(20, 21, 2)), false, 'another one of that number');
    assert.equal(isOfLine({ term, line }, past(5, 6)), false, 'before it');
    assert.equal(isOfLine({ term, line: [] }, past(5, 6)), false);
    assert.equal(isOfLine({ term, line: [] }, { term, epoch: 95 }), true);
  });

  test('of more terms than it has room for begins where it began, and tells the oldest of them apart no more', () => {
    const line = lineAfter({ ...record, term: past(70, 70).term, epoch: 71, line: FULL });
    assert.equal(line.length, LINE_MAX);
    const [oldest, second] = [FULL[LINE_MAX - 1], FULL[LINE_MAX - 2]];
    assert.ok(oldest !== undefined && second !== undefined);
    for (const told of [oldest, second, past(oldest.term.number, oldest.epoch, 2)]) {
      assert.equal(isOfLine({ term, line }, told), true);
    }
    assert.equal(isOfLine({ term, line }, past(oldest.term.number - 1, oldest.epoch)), false, 'begun before');
    assert.equal(isOfLine({ term, line }, past(second.term.number, second.epoch + 1)), false, 'later');
    assert.equal(isOfLine({ term, line: lineAfter({ ...record, epoch: 81, line }) }, oldest), true, 'once more');
  });

  test('of more terms than it has room for forgets the oldest, where another may lie between it and the next', () => {
    const line = lineAfter({ ...record, epoch: 91, line: [...FULL.slice(0, -1), past(5, 6)] });
    assert.deepEqual(line, [{ term, epoch: 91 }, ...FULL.slice(0, -1)]);
    assert.equal(isOfLine({ term, line: lineAfter({ ...record, epoch: 92, line }) }, past(20, 21)), false, 'the next are one entry');
  });

  test('of a partition that begins above the clock has no gap before it', () => {
    const begun = { ...record, epoch: 500, term: past(500, 500).term, line: lineUpTo(past(500, 500).term, [past(30, 31), past(20, 22)]) };
    assert.deepEqual(begun.line, [past(30, 499), past(20, 22)]);
    assert.equal(isOfLine(begun, past(40, 41)), false, 'none of another history');
    assert.deepEqual(lineUpTo(past(500, 500).term, []), []);
    assert.deepEqual(lineUpTo(past(500, 500).term, [past(5, 22, 0)]), [past(5, 22, 0)], 'an entry of many would have others');
  });

  test('is in the order of its epochs, though its newest term has gone on behind an end', () => {
    const gone = { ...record, term: past(5, 6).term, epoch: 6, line: FULL };
    assert.deepEqual(lineAfter({ ...gone, line: FULL.slice(1) }), [...FULL.slice(1), past(5, 6)]);
    const line = lineAfter(gone);
    assert.deepEqual(line, [...FULL.slice(0, -1), past(5, 6)], 'the copies that count are of that');
    assert.deepEqual(lineAfter({ ...record, epoch: 91, line }), [{ term, epoch: 91 }, ...FULL.slice(0, -1)], 'then it is forgotten');
  });

  test('of what an end did not know goes on behind that: its terms are known, and its copies are still to be dropped', () => {
    const copy = (storeId: string) => ({ storeId, bootId: 'b1' });
    const undone = { epoch: 8, term: past(7, 8).term, holder: nobody('gw-1/1'), members: [copy('a')], gaveUp: [{ ...copy('b'), epoch: 6 }], left: [copy('c')], line: [past(5, 6)] };
    const end = { ...record, members: [copy('a'), copy('b'), copy('c'), copy('d')], line: [past(80, 89)] };
    const behind = behindEnd(undone, end);
    assert.deepEqual(behind.left, [copy('c'), copy('d')], 'not those that count, or are to be taken in');
    assert.deepEqual(behind.line, [{ term, epoch: 90 }, past(80, 89), past(5, 6)]);
    assert.deepEqual([behind.epoch, behind.term, behind.members, behind.gaveUp], [undone.epoch, undone.term, undone.members, undone.gaveUp]);
    // The register was put back, and it ended from there.
    assert.deepEqual(behindEnd(undone, { ...end, line: [past(5, 5)] }).line, [{ term, epoch: 90 }, past(5, 6)], 'the later end of a term');
    assert.deepEqual(behindEnd(undone, { ...end, line: FULL }).line, [{ term, epoch: 90 }, ...FULL].slice(0, LINE_MAX), 'what has no room is forgotten');
  });

  test('of an end of which a given-up store is to be told knows what its record knew', () => {
    const ended = endedBy({ partition: 'gw-1/1', epoch: 7, nonce: 5, line: [past(4, 6), past(1, 2)] });
    for (const told of [past(1, 1), past(4, 6), past(7, 7, 5)]) assert.equal(isOfLine(ended, told), true);
    for (const told of [past(3, 3), past(7, 8)]) assert.equal(isOfLine(ended, told), false);
  });

  test('knows nothing of a term in which a copy counted last that may have more', () => {
    const copy = { storeId: 'a', bootId: 'b1', epoch: 24 };
    assert.deepEqual(lineWithout([past(30, 31), past(20, 25), past(5, 6)], [copy]), [past(30, 31), past(5, 6)]);
    assert.deepEqual(lineWithout([past(30, 31), past(5, 27, 0)], [copy, { ...copy, epoch: 7 }]), [past(30, 31), past(25, 27, 0)], 'what began later');
    assert.deepEqual(lineWithout([past(5, 24, 0)], [copy]), []);
    const unfinished = [past(40, 41), past(24, 24), past(23, 23), past(20, 22), past(5, 6)];
    assert.deepEqual(lineWithout(unfinished, [copy]), [past(40, 41), past(5, 6)], 'nor of one by which it was told last, where those after it may have told nobody');
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

  test('older than all that a full line names is named: nobody asks for it again; what lies between is not known', () => {
    const undone = past(5, 8, 2);
    const line = lineWith(FULL, undone);
    assert.deepEqual(line, [...FULL.slice(0, -1), undone]);
    assert.deepEqual(lineWith(line, past(40, 40, 2)).slice(-2), FULL.slice(-3, -1), 'it is the first that is forgotten');
  });
});
