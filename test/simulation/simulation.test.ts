/**
 * The simulation in CI: the canaries, which show that a run can be repeated and that its checks check, and seeds that
 * have found something. Other seeds are in fixed-and-fresh-seeds.test.ts, mutants in mutants.test.ts.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, DELIVERED } from '../../src/gateway/mail-types.js';
import { planOf } from './plan.js';
import { simulate } from './simulate.js';
import type { World } from './world.js';

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

  test('seeds that have found something hold', () => {
    for (const [what, seed, steps] of FOUND) assert.equal(simulate(seed, { steps }).failure, '', what);
  });
});
