/**
 * SIGKILL and SIGSTOP of each role at random moments under load, by a seed: one gateway, two stores, a fault
 * every 3 s, judged from outside (witnesses.ts): G1 to G4, G9. One seed that found something once, and one of its own
 * each run; the seed of a failure is in its name and text.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runChaos } from '../chaos/chaos.js';

/** A store and the next hop stand still side by side: attempts end before their dot for want of the right. */
const KNOWN = 792_547;
const FRESH = (Date.now() % 1_000_000) + 1;

for (const seed of [KNOWN, FRESH]) {
  test(`a process killed or stopped every 3 s, seed ${seed}${seed === FRESH ? ' (fresh)' : ''}`, { timeout: 400_000 }, async () => {
    const report = await runChaos({
      seed, seconds: 30, gateways: 1, stores: 2, everyMs: 3000, rate: 600, rescue: false,
      kinds: ['kill gateway', 'kill store', 'freeze gateway', 'freeze store', 'freeze next hop'],
    });
    const text = `seed ${seed}: ${JSON.stringify({ ...report, acceptedEachSecond: undefined }, undefined, 1)}`;
    assert.ok(report.verdict.ok && report.endedAlone.length === 0, text);
    assert.ok(Object.values(report.faults).reduce((sum, count) => sum + count, 0) >= 3, text);
  });
}
