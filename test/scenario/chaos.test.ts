/**
 * Random runs of the scenario world: mail, defers, rejects, kills, cuts, holds and slow links in any mixture
 * that docs/GUARANTEES.md promises to survive. A seed that fails is repeated by `runChaos(SEED, …)`.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runChaos } from './chaos.js';

const DRAWS = 100;

describe('random faults', () => {
  test('nothing is lost, overtaken, repeated without a fault or brought back after a refusal', () => {
    for (let seed = 0; seed < 150; seed++) runChaos(seed, { draws: DRAWS, faults: true });
  });

  test('without faults every recipient is tried in order and reached once', () => {
    for (let seed = 1000; seed < 1020; seed++) runChaos(seed, { draws: DRAWS, faults: false });
  });

  test('the same seed gives the same run', () => {
    for (const seed of [3, 7, 12]) {
      const first = runChaos(seed, { draws: DRAWS, faults: true });
      const second = runChaos(seed, { draws: DRAWS, faults: true });
      assert.equal(first.traceHash, second.traceHash);
      assert.equal(first.world.scheduler.stepCount, second.world.scheduler.stepCount);
    }
    assert.notEqual(runChaos(3, { draws: DRAWS, faults: true }).traceHash, runChaos(4, { draws: DRAWS, faults: true }).traceHash);
  });
});
