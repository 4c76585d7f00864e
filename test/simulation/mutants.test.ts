/** The mutants of the simulation in CI: each fits the code, and some of them, other ones each day, are found. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MUTANTS, misfits, tryMutant } from './mutants.js';

/** All of them take minutes. */
const MUTANTS_A_RUN = 4;
const DAY_MS = 86_400_000;

describe('mutants of the simulation', () => {
  test('every mutant still fits the code', () => {
    assert.deepEqual(misfits(), []);
  });

  const today = Math.floor(Date.now() / DAY_MS);
  const found = MUTANTS.filter(({ heldBy }) => heldBy === undefined);
  for (let i = 0; i < Math.min(MUTANTS_A_RUN, found.length); i++) {
    const mutant = found[(today * MUTANTS_A_RUN + i) % found.length];
    if (mutant === undefined) continue;
    test(`the simulation finds the mutant "${mutant.name}"`, async () => {
      const verdict = await tryMutant(mutant);
      assert.ok(verdict.caught, verdict.text);
    });
  }
});
