/** A minute of chaos (chaos.ts) with a seed of its own each run; what failed is run again with `npm run chaos -- --minutes 1 --seed N`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runChaos } from './chaos.js';
import { FAULT_KINDS } from './options.js';

/** Below half of what two cores take, so that the runner's other work does not decide. */
const RATE = 600;

test('a minute of random faults, two gateways, three stores', { timeout: 800_000 }, async (context) => {
  const seed = (Date.now() % 1_000_000) + 1;
  context.diagnostic(`seed ${seed}`);
  const report = await runChaos({ seed, seconds: 60, gateways: 2, stores: 3, kinds: FAULT_KINDS, everyMs: 5000, rate: RATE, rescue: true });
  const text = `seed ${seed}: ${JSON.stringify({ ...report, acceptedEachSecond: undefined }, undefined, 1)}`;
  assert.ok(report.verdict.ok && report.endedAlone.length === 0, text);
  assert.ok(Object.values(report.faults).reduce((sum, count) => sum + count, 0) >= 4, `too few faults struck\n${text}`);
});
