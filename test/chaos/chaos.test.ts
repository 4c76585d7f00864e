/** A minute of chaos (chaos.ts) with one seed; others: `npm run chaos -- --minutes 1 --seed N`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runChaos } from './chaos.js';
import { FAULT_KINDS } from './options.js';

/** Below half of what two cores take, so that the runner's other work does not decide. */
const RATE = 600;
const SEED = 306_678;

test('a minute of random faults, two gateways, three stores', { timeout: 400_000 }, async () => {
  const report = await runChaos({ seed: SEED, seconds: 60, gateways: 2, stores: 3, kinds: FAULT_KINDS, everyMs: 5000, rate: RATE, rescue: true });
  const text = JSON.stringify({ ...report, acceptedEachSecond: undefined }, undefined, 1);
  assert.ok(report.verdict.ok && report.endedAlone.length === 0, text);
  assert.ok(Object.values(report.faults).reduce((sum, count) => sum + count, 0) >= 4, `too few faults struck\n${text}`);
});
