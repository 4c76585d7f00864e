import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { memoryOf, quartersOf, steadyOf, type Sample } from '../../../bench/endurance.js';
import { figure, spread, table } from '../../../bench/format.js';
import { verdict } from '../../../bench/guard.js';
import { withReport } from '../../../bench/publish.js';
import { plotsOf } from '../../../bench/report-plots.js';
import { reportOf } from '../../../bench/report.js';
import { metricIn } from '../../../bench/store-metric.js';
import { plotSvg } from '../../../bench/svg-plot.js';
import { RESULTS } from './results-kit.js';

describe('the report', () => {
  const report = reportOf(RESULTS, 'bench/');

  test('names machine, commit, Node, and who is missing', () => {
    assert.match(report, /2 × Test, 8 GiB, Linux 6, Node v20\.20\.2, commit abcdef012345, 2026-01-02 03:04 UTC/);
    assert.match(report, /relay 7 s \(0\.4\)/);
    assert.match(report, /Not installed, so not measured: postfix \(as root\)\./);
  });

  test('has a verdict for each goal', () => {
    assert.match(report, /\| relay \| ≥ 0\.33 × direct on 50 kept connections \| met \| 0\.40 \|/);
    assert.match(report, /\| store \| both stores ≤ 10 µs of CPU a relayed message \| \*\*not met\*\* \| 11\.0 µs: 10\.0% too much \|/);
    assert.match(report, /\| endurance \| [^|]+ \| - \| not measured \|/);
  });

  test('has a section for each part that ran, and none for others', () => {
    for (const title of ['Relay', 'Other mail servers', 'Store', 'Memory', 'Growth']) assert.ok(report.includes(`### ${title}\n`), title);
    assert.ok(!report.includes('### Recovery'));
    assert.ok(!report.includes('### Endurance'));
  });

  test('has tables with as many cells in each line', () => {
    for (const block of report.split('\n\n')) {
      const lines = block.split('\n').filter((line) => line.startsWith('|'));
      assert.equal(new Set(lines.map((line) => line.split('|').length)).size <= 1, true, block);
    }
  });

  test('shows the plots that there are', () => {
    assert.ok(report.includes('(bench/report-relay.svg)'));
    for (const [name, plot] of plotsOf(RESULTS)) assert.match(plotSvg(plot), /<svg[\s\S]*<\/svg>/, name);
  });

  test('of nothing says so', () => {
    assert.match(reportOf({}), /Nothing was measured/);
  });
});

describe('numbers in tables', () => {
  test('have three digits that mean something', () => {
    assert.deepEqual([figure(13_245.4), figure(95.23), figure(0.334), figure(-12.34)], ['13,245', '95.2', '0.33', '-12.3']);
  });

  test('show a range only when rounds differ', () => {
    assert.equal(spread({ median: 5, least: 5, most: 5 }), '5.00');
    assert.equal(spread({ median: 500, least: 400, most: 600 }), '500 (400-600)');
    assert.equal(spread(undefined), '');
  });

  test('keep bars out of cells', () => {
    assert.equal(table(['a'], [['x|y']]), '| a |\n|---|\n| x\\|y |\n');
  });
});

test('a page gets the report between its marks and keeps the rest', () => {
  const page = 'before\n<!-- report: begin -->\nold\n<!-- report: end -->\nafter\n';
  const once = withReport(page, 'new');
  assert.equal(once, 'before\n<!-- report: begin -->\n\nnew\n<!-- report: end -->\nafter\n');
  assert.equal(withReport(once, 'new'), once);
  assert.throws(() => withReport('no marks', 'new'), /no <!-- report: begin -->/);
});

test('the guard warns above 15% and not before', () => {
  assert.match(verdict('abc', [100, 90, 110], [114, 115, 80]), /^guard: CPU .* 100 µs at abc, 114 µs now; median of the rounds' ratios \+14\.0%$/);
  assert.match(verdict('abc', [100, 90, 110], [116, 117, 118]), /^guard: WARNING: .*\+16\.0%$/);
  assert.match(verdict('abc', [100], [50]), /^guard: CPU .*-50\.0%$/);
});

test('the guard compares round by round, so that a machine that changes its speed meets both', () => {
  assert.match(verdict('abc', [100, 200, 150, 100, 190], [101, 202, 151, 300, 191]), /\+1\.0%$/);
});

test('a quarter of an endurance run is what lies between its faults, all messages alike', () => {
  const sample = (second: number, quiet?: Sample['quiet']): Sample => ({ second, acceptedPerSecond: 1, memoryMb: {}, quiet });
  const busy = { messages: 100, cpuMicros: 7000, sinkMicros: 1000, p50Ms: 1, p99Ms: 5 };
  const idle = { messages: 300, cpuMicros: 25_000, sinkMicros: 3400, p50Ms: 3 };
  const quarters = quartersOf([sample(1, busy), sample(2), sample(3, idle), sample(4, busy), sample(5), sample(6), sample(7, idle), sample(8, { ...idle, messages: 0 })]);
  assert.equal(quarters.length, 4);
  assert.deepEqual(quarters[0], { cpuMicrosPerMessage: 70, sinkMicrosPerMessage: 10, responseP50Ms: 1, responseP99Ms: 5 });
  assert.deepEqual(quarters[1], { cpuMicrosPerMessage: 80, sinkMicrosPerMessage: 11, responseP50Ms: 2, responseP99Ms: 5 });
  assert.deepEqual(quarters[2], { cpuMicrosPerMessage: null, sinkMicrosPerMessage: null, responseP50Ms: null, responseP99Ms: null });
  assert.equal(quarters[3]?.cpuMicrosPerMessage, 166.67);
});

test('a metric is found by its whole name', () => {
  const text = '# HELP x_live\nx_live_bytes 7\nx_live 12345\nx_live{a="b"} 9\n';
  assert.equal(metricIn(text, 'x_live'), 12_345);
  assert.ok(Number.isNaN(metricIn(text, 'x')));
});

test('memory over time is a slope a minute, unless the process was another in between', () => {
  const samples = [0, 60, 120].map((second, index) => ({ second, acceptedPerSecond: 1, memoryMb: index === 1 ? {} : { gateway: 100 + index } }));
  assert.deepEqual(memoryOf('gateway', samples, true), { process: 'gateway', slopeMbPerMinute: 1, lastMb: 102 });
  assert.equal(memoryOf('gateway', samples, false).slopeMbPerMinute, undefined);
  const counted = samples.map((sample) => ({ ...sample, countedMb: { gateway: 50 } }));
  assert.deepEqual(memoryOf('gateway', counted, true), { process: 'gateway', slopeMbPerMinute: 1, lastMb: 102, countedSlopeMbPerMinute: 0, countedLastMb: 50 });
  assert.deepEqual(steadyOf(samples).map(({ second }) => second), [120], 'the second half is judged');
});
