import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Round } from '../../../src/base/round.js';

describe('a round', () => {
  test('takes all of a short list each time, whatever came and went', () => {
    const round = new Round<string>({ partMax: 3 });
    assert.deepEqual(round.next([]), []);
    assert.deepEqual(round.next(['a', 'b']), ['a', 'b']);
    assert.deepEqual(round.next(['a', undefined, 'c', 'd']), ['a', 'c', 'd']);
    assert.deepEqual(round.next(['c', 'd', 'e']), ['c', 'd', 'e']);
  });

  test('meets everything in a long list once a round, holes not counted', () => {
    const round = new Round<number>({ partMax: 4 });
    const list = Array.from({ length: 20 }, (_none, i) => (i % 3 === 0 ? undefined : i));
    const met: number[] = [];
    for (let part = 0; part < 4; part++) {
      const next = round.next(list);
      assert.ok(next.length <= 4);
      met.push(...next);
    }
    assert.deepEqual(met, list.filter((one) => one !== undefined));
    assert.deepEqual(round.next(list), met.slice(0, 4), 'and begins again');
  });

  test('goes on where it was when the list has become shorter or longer', () => {
    const round = new Round<number>({ partMax: 3 });
    const list = [1, 2, 3, 4, 5];
    assert.deepEqual(round.next(list), [1, 2, 3]);
    list.push(6, 7);
    assert.deepEqual(round.next(list), [4, 5, 6]);
    list.length = 2;
    assert.deepEqual([...round.next(list)], [], 'what was to come is gone');
    assert.deepEqual(round.next(list), [1, 2]);
  });
});
