import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { apart, plotSvg, type Panel } from '../../../bench/svg-plot.js';

function panel(values: readonly (number | undefined)[], logarithmic: boolean): Panel {
  return { title: 'a < b', xLabel: 'x', yLabel: 'y', categories: values.map((_value, index) => String(index)), series: [{ name: 's & t', values }], logarithmic };
}

/** The y coordinates of the points drawn. */
function heights(svg: string): number[] {
  return [...svg.matchAll(/<circle cx="[\d.]+" cy="([\d.]+)"/g)].map((match) => Number(match[1]));
}

describe('plotSvg', () => {
  test('draws larger values higher, on both kinds of axis', () => {
    for (const logarithmic of [false, true]) {
      const ys = heights(plotSvg({ title: 't', note: '', panels: [panel([3, 40, 500, 6000], logarithmic)] }));
      assert.equal(ys.length, 4);
      assert.deepEqual([...ys].sort((x, y) => y - x), ys);
      assert.ok(ys.every((y) => y >= 0 && y <= 300));
    }
  });

  test('puts ten times the value one decade higher', () => {
    const [low = 0, middle = 0, high = 0] = heights(plotSvg({ title: '', note: '', panels: [panel([1, 10, 100], true)] }));
    assert.ok(Math.abs((low - middle) - (middle - high)) < 0.2);
  });

  test('leaves out what was not measured and escapes texts', () => {
    const svg = plotSvg({ title: 't', note: '', panels: [panel([1, undefined, 2], false)] });
    assert.equal(heights(svg).length, 2);
    assert.match(svg, /a &lt; b/);
    assert.match(svg, /s &amp; t/);
    assert.doesNotMatch(svg, /NaN|undefined/);
  });
});

describe('figures of points', () => {
  test('stay where they are when there is room, and move apart about their middle when there is none', () => {
    assert.deepEqual(apart([10, 30, 50], 11), [10, 30, 50]);
    assert.deepEqual(apart([100, 102], 11), [95.5, 106.5]);
    assert.deepEqual(apart([10, 100, 101, 102, 300], 10), [10, 91, 101, 111, 300]);
    const crowded = apart([50, 51, 60, 61, 75], 11);
    assert.ok(crowded.every((place, nth) => nth === 0 || place - (crowded[nth - 1] ?? 0) >= 11 - 1e-9));
    assert.deepEqual(apart([], 11), []);
  });

  test('are all drawn, however near the points', () => {
    const near = { ...panel([100], false), series: [100, 100.4, 100.2].map((value, index) => ({ name: String(index), values: [value] })) };
    const places = [...plotSvg({ title: '', note: '', panels: [near] }).matchAll(/<text x="[\d.]+" y="([\d.-]+)" [^>]*paint-order/g)].map((match) => Number(match[1]));
    assert.equal(places.length, 3);
    assert.ok(places.every((place, nth) => nth === 0 || place - (places[nth - 1] ?? 0) >= 10.9));
  });
});

test('places points to scale when told where they are', () => {
  const svg = plotSvg({ title: '', note: '', panels: [{ ...panel([1, 2, 3], false), at: [0, 1, 5] }] });
  const [first = 0, second = 0, third = 0] = [...svg.matchAll(/<circle cx="([\d.]+)"/g)].map((match) => Number(match[1]));
  assert.ok(Math.abs((third - second) / (second - first) - 4) < 0.02);
});

test('draws bars in proportion, and breaks a long note into lines', () => {
  const note = Array.from({ length: 60 }, (_none, index) => `word${index}`).join(' ');
  const svg = plotSvg({ title: 't', note, panels: [{ title: 'p', xLabel: '', yLabel: '', categories: ['a', 'b'], bars: true, series: [{ name: 's', values: [50, 100] }] }] });
  const heights = [...svg.matchAll(/<rect x="[^"]+" y="[^"]+" width="[^"]+" height="([^"]+)" fill="#0b5fa5"/g)].map((match) => Number(match[1]));
  assert.equal(heights[0], (heights[1] ?? 0) / 2);
  const lines = [...svg.matchAll(/font-size="11">([^<]*)</g)].map((match) => match[1] ?? '');
  assert.ok(lines.length > 1);
  assert.equal(lines.join(' '), note);
});
