/** A bench that misses a goal says so, and by its exit code too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { verdictsOn } from '../../../bench/verdicts.js';

const turn = { what: 'longest turn', atMost: 20, unit: ' ms' } as const;

test('a bench that meets its goals says so of each, and exits with 0', () => {
  const { lines, exitCode } = verdictsOn([{ ...turn, value: 20 }, { what: 'replies but 250', value: 0, atMost: 0, unit: '' }]);
  assert.deepEqual(lines, ['met      longest turn ≤ 20 ms: 20.0 ms', 'met      replies but 250 ≤ 0: 0.00']);
  assert.equal(exitCode, 0);
});

test('one goal that is missed, or was not measured, is marked, and the exit code is 1', () => {
  const missed = verdictsOn([{ ...turn, value: 19 }, { ...turn, value: 24.6 }]);
  assert.deepEqual(missed.lines, ['met      longest turn ≤ 20 ms: 19.0 ms', 'NOT MET  longest turn ≤ 20 ms: 24.6 ms: 23.0% too much']);
  assert.equal(missed.exitCode, 1);
  assert.deepEqual(verdictsOn([{ ...turn, value: NaN }]), { lines: ['NOT MET  longest turn ≤ 20 ms: not measured'], exitCode: 1 });
  assert.equal(verdictsOn([{ what: 'replies but 250', value: 1, atMost: 0, unit: '' }]).exitCode, 1);
});
