/**
 * SIGKILL and SIGSTOP of each role at random moments under load, by a seed: one gateway, two stores, a fault
 * every 3 s, judged from outside (witnesses.ts): G1, G2, G4, G9. The seed of a failure is in its text.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runChaos } from '../chaos/chaos.js';

for (const seed of [7, 748_498]) {
  test(`a process killed or stopped every 3 s, seed ${seed}`, { timeout: 200_000 }, async () => {
    const report = await runChaos({
      seed, seconds: 30, gateways: 1, stores: 2, everyMs: 3000, rate: 600, rescue: false,
      kinds: ['kill gateway', 'kill store', 'freeze gateway', 'freeze store', 'freeze next hop'],
    });
    const text = JSON.stringify({ ...report, acceptedEachSecond: undefined }, undefined, 1);
    assert.ok(report.verdict.ok && report.endedAlone.length === 0, text);
    assert.ok(Object.values(report.faults).reduce((sum, count) => sum + count, 0) >= 3, text);
  });
}
