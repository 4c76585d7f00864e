import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ToldClock } from '../../../src/base/told-clock.js';

test('a clock that was told goes on with our own time, and is not known before', () => {
  const clock = new ToldClock();
  assert.equal(clock.wallMs(5000), 0);
  clock.note(1_750_000_000_000, 1000.25);
  assert.equal(clock.wallMs(1000.25), 1_750_000_000_000);
  assert.equal(clock.wallMs(61_000.5), 1_750_000_060_000);
  clock.note(1_750_000_070_000, 70_000);
  assert.equal(clock.wallMs(70_001), 1_750_000_070_001, 'the last word counts');
});
