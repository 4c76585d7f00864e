/** Work that comes in bursts: how much of it one turn of the loop does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { TurnShare } from '../../../../src/platform/node/turn-share.js';

function busy(ms: number): void {
  for (const sinceMs = performance.now(); performance.now() - sinceMs < ms;);
}

test('what is light is done at once, all of it', (t) => {
  // Others may have the processor meanwhile.
  t.mock.method(performance, 'now', () => 0);
  const share = new TurnShare();
  let done = 0;
  for (let count = 0; count < 100; count++) share.run(() => { done++; });
  assert.equal(done, 100);
});

test('what is heavy is done one a turn, in its order, with what it brings about', async () => {
  const share = new TurnShare();
  const done: string[] = [];
  const add = (name: string): void => {
    share.run(() => {
      busy(6);
      done.push(name);
      if (name === 'a') add('d');
    });
  };
  for (const name of ['a', 'b', 'c']) add(name);
  for (const expected of ['a', 'ad', 'adb', 'adbc', 'adbc']) {
    assert.equal(done.join(''), expected);
    await nextTurn();
  }
});

test('what has a result gives it, or fails, and holds nothing up', async () => {
  const share = new TurnShare();
  const fails = share.resultOf(() => { throw new Error('no'); });
  const given = share.resultOf(() => 1);
  await assert.rejects(fails, /^Error: no$/);
  assert.equal(await given, 1);
});

test('what throws stands in nobody’s way', () => {
  const share = new TurnShare();
  let isDone = false;
  assert.throws(() => { share.run(() => { throw new Error('odd'); }); }, /odd/);
  share.run(() => { isDone = true; });
  assert.equal(isDone, true);
});
