/** What is known of names that come often, when far more different ones come than there is room for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrequentNames } from '../../../src/base/frequent-names.js';
import { Prng } from '../../../src/base/prng.js';

test('all are counted exactly while there is room', () => {
  const names = new FrequentNames(3);
  for (const name of ['a', 'b', 'a', 'c', 'a']) names.note(name);
  assert.deepEqual([...names.names()].map((name) => [name, names.countOf(name)]), [['a', 3], ['b', 1], ['c', 1]]);
  assert.equal(names.countOf('d'), 0);
});

test('whoever has a tenth is known among a million others, never with too much, nor with 1% of all too little', () => {
  const names = new FrequentNames(128);
  const random = new Prng(7);
  let often = 0;
  const all = 200_000;
  for (let i = 0; i < all; i++) {
    if (random.below(10) === 0) {
      often += 1;
      names.note('often');
    } else names.note(`other-${String(random.below(1_000_000))}`);
  }
  const count = names.countOf('often');
  assert.ok(count <= often && count >= often - all / 129, `${String(count)} of ${String(often)}`);
  assert.ok([...names.names()].length <= 128);
});
