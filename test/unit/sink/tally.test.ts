/** What of marked messages has come: the live count of a sink. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Tally } from '../../../src/sink/tally.js';
import { emptyMarks } from '../../../src/load/marks.js';

const marks = (id: number, run = 'a', actualHash = 7) => ({ ...emptyMarks(), run, id, hash: 7, actualHash });
const EMPTY = { arrived: 0, missing: 0, altered: 0, repeated: 0, unmarked: 0, complete: true };

describe('the tally of a sink', () => {
  test('counts what has come of each run, what has not, and what came again or altered', () => {
    const tally = new Tally();
    assert.deepEqual(tally.answer(3), { ...EMPTY, unmarked: 3 });
    for (const id of [1, 2, 5]) tally.add(marks(id));
    tally.add(marks(2, 'b'));
    assert.deepEqual(tally.answer(0), { ...EMPTY, arrived: 4, missing: 3 });
    for (const id of [4, 3, 3]) tally.add(marks(id));
    tally.add(marks(1, 'b', 8));
    assert.deepEqual(tally.answer(0), { ...EMPTY, arrived: 7, altered: 1, repeated: 1 });
  });

  test('finds one of many that is missing, and one that came twice', () => {
    const tally = new Tally();
    for (let id = 100_000; id > 0; id--) if (id !== 77_777) tally.add(marks(id));
    tally.add(marks(99_999));
    assert.deepEqual(tally.answer(0), { ...EMPTY, arrived: 99_999, missing: 1, repeated: 1 });
  });

  test('takes no more memory than it may, and says that it does not know all', () => {
    const tally = new Tally();
    tally.add(marks(9_999_999_999));
    tally.add(marks(0));
    assert.deepEqual(tally.answer(0), { ...EMPTY, complete: false });
  });
});
