import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { slopeOf, spreadOf } from '../../../bench/statistics.js';

describe('figures of rounds', () => {
  test('have a middle and a range', () => {
    assert.deepEqual(spreadOf([3, 1, 2]), { median: 2, least: 1, most: 3 });
    assert.deepEqual(spreadOf([4, 1]), { median: 2.5, least: 1, most: 4 });
    assert.equal(spreadOf([]), undefined);
  });
});

describe('the slope of a series', () => {
  test('is that of the line the points lie on', () => {
    assert.equal(slopeOf([[0, 5], [1, 7], [2, 9], [5, 15]]), 2);
  });

  test('is the best one for points beside a line', () => {
    // Least squares through (0,0) (1,2) (2,1): 0.5.
    assert.equal(slopeOf([[0, 0], [1, 2], [2, 1]]), 0.5);
  });

  test('is level for one point, for none, and for points at one place', () => {
    assert.deepEqual([slopeOf([]), slopeOf([[1, 9]]), slopeOf([[1, 2], [1, 8]])], [0, 0, 0]);
  });
});
