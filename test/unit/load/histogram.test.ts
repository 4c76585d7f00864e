import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Histogram } from '../../../src/load/histogram.js';

describe('Histogram', () => {
  test('gives quantiles within a sixty-fourth', () => {
    const histogram = new Histogram();
    for (let value = 1; value <= 100_000; value++) histogram.record(value);
    for (const share of [0.01, 0.5, 0.9, 0.99, 1]) {
      const exact = share * 100_000;
      assert.ok(Math.abs(histogram.quantile(share) - exact) <= exact / 64, `${share}: ${histogram.quantile(share)}`);
    }
    assert.equal(histogram.mean, 50_000.5);
    assert.equal(histogram.max, 100_000);
  });

  test('is exact for small values and bounded for absurd ones', () => {
    const histogram = new Histogram();
    histogram.record(-5);
    histogram.record(7);
    histogram.record(63);
    assert.equal(histogram.quantile(0.5), 7);
    assert.equal(histogram.quantile(1), 63);
    histogram.record(1e15);
    assert.equal(histogram.max, 0x7fffffff);
    assert.equal(new Histogram().quantile(0.5), 0);
  });
});
