/**
 * The simulation in CI: seeds that are always the same, seeds that never were before, and the canaries, which show
 * that a run can be repeated and that its checks check. `npm run simulate` runs more; mutants are in mutants.ts.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { COMMITTED, DELIVERED } from '../../src/gateway/mail-types.js';
import { MUTANTS, misfits, tryMutant } from './mutants.js';
import { planOf } from './plan.js';
import { simulate } from './simulate.js';
import type { World } from './world.js';

const FIXED_SEEDS = 300;
const FRESH_SEEDS = 100;
/** Seeds that break a promise without what was mended for them: what that was, seed, steps. */
const FOUND: readonly (readonly [string, number, number])[] = [
  ['a partition that begins anew is forgotten while its record is on its way', 350_006_550, 80],
  ['a retirement that is taken back between two looks is no port that stays closed', 620_000_095, 80],
  ['the copy that is left lacks what only the lost one had', 620_003_009, 80],
  ['what becomes of deliveries while a store is silent has room within the limit', 2_611_264_500, 80],
  ['who was taken over, and finds that the register has forgotten it, gives way', 2_611_505_120, 80],
  ['what was asked for of the stores has room when it comes', 3_100_007_587, 80],
  ['reports leave the room that changes of deliveries need', 2_611_263_581, 80],
  ['what is read of a store is not asked of a later boot of it', 910_125, 80],
  ['a record that is put back to what the watch told last is news to who changed it since', 909_898, 80],
];
const STEPS = 80;
const BOUND_MS = 600_000;
/** Of the mutants this many a run, by date: all of them take minutes. */
const MUTANTS_A_RUN = 4;
const DAY_MS = 86_400_000;

function run(args: readonly string[]): { readonly code: number | null; readonly output: string } {
  const child = spawnSync(process.execPath, [fileURLToPath(new URL('main.js', import.meta.url)), ...args], { encoding: 'utf8', timeout: BOUND_MS });
  return { code: child.status, output: `${child.stdout}${child.stderr}` };
}

/** A gateway ends a message that it never handed over: what no check may miss. */
function swallowOne(world: World): boolean {
  for (const { core } of world.gateways) {
    for (const queue of core?.registry.queues() ?? []) {
      if (core === undefined || queue.name === 'senders' || queue.readyCount === 0) continue;
      const delivery = core.take(queue);
      if (delivery === undefined) continue;
      core.settle(delivery, { results: delivery.pending.map(() => ({ status: DELIVERED, code: 250, enhanced: '2.0.0', text: 'swallowed' })), relay: '', setupMs: 0, transmitMs: 0, dotUnanswered: false });
      const letter = world.ledger.letters.get(delivery.envelope.messageId);
      if (letter?.outcome === COMMITTED && letter.copyIn(queue.name)?.dots.size === 0) return true;
    }
  }
  return false;
}

describe('simulation', () => {
  test('the same seed gives the same run, another seed another one', () => {
    for (const seed of [2, 5, 11]) {
      const first = simulate(seed, { steps: STEPS });
      const second = simulate(seed, { steps: STEPS });
      assert.equal(first.traceHash, second.traceHash);
      assert.equal(first.stepCount, second.stepCount);
      assert.equal(first.accepted, second.accepted);
    }
    assert.notEqual(simulate(2, { steps: STEPS }).traceHash, simulate(3, { steps: STEPS }).traceHash);
  });

  test('a message that a gateway swallows is missed', () => {
    let swallowed = 0;
    for (let seed = 1; swallowed < 5 && seed <= 400; seed++) {
      // Where processes die the deletion of the swallowed message may die with them: then it is delivered after all.
      if (!planOf(seed, STEPS).isHarmless) continue;
      let atStep = 0;
      const result = simulate(seed, { steps: STEPS, sabotage: (world, step) => { if (atStep === 0 && step > 10 && swallowOne(world)) atStep = step; } });
      if (atStep === 0) continue;
      swallowed += 1;
      assert.match(result.failure, /^G[23]: /, `seed ${String(seed)}`);
    }
    assert.equal(swallowed, 5);
  });

  test('the fixed seeds hold, and every kind of fault fires', () => {
    const { code, output } = run(['--seed', '1', '--seeds', String(FIXED_SEEDS), '--steps', String(STEPS), '--keep-going']);
    assert.equal(code, 0, output);
  });

  test('seeds that have found something hold', () => {
    for (const [what, seed, steps] of FOUND) assert.equal(simulate(seed, { steps }).failure, '', what);
  });

  test('no promise is broken by fresh seeds', (context) => {
    const first = Math.floor(Date.now() / 1000) * 1000;
    context.diagnostic(`fresh seeds from ${String(first)} on`);
    const { code, output } = run(['--seed', String(first), '--seeds', String(FRESH_SEEDS), '--steps', String(STEPS), '--keep-going']);
    assert.equal(code, 0, output);
  });

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
