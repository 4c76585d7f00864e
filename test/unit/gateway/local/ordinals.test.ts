/** Ordinals for message ids: another one is in hand long before the first is used up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvariantError } from '../../../../src/base/invariant.js';
import { Ordinals } from '../../../../src/gateway/local/ordinals.js';
import { encodeOrdinal } from '../../../../src/register/records.js';
import { Hand } from '../../register/contract.js';
import { SimulatedWorld } from '../../register/simulated-world.js';

function ticked(world: SimulatedWorld, first: number, failed: string[]): Ordinals {
  const ordinals = new Ordinals(first, { register: world.client(), onFailed: (why) => { failed.push(why); } });
  const tick = (): void => {
    ordinals.tick(world.nowMs());
    world.scheduler.after(1_000, tick);
  };
  world.scheduler.soon(tick);
  return ordinals;
}

test('a process that is started again and again uses up one each; one that runs has the next in hand', async () => {
  const world = new SimulatedWorld();
  await new Hand(world).put('ordinal', encodeOrdinal({ next: 8 }));
  const ordinals = ticked(world, 7, []);
  world.run(3_600_000);
  assert.equal(ordinals.take(), 7);
  world.run(590_000);
  assert.match((await new Hand(world).get('ordinal'))?.value ?? '', /"next":8/, 'none is drawn yet');
  world.run(30_000);
  assert.equal(ordinals.take(), 8);
  world.register.goAway('refusing');
  world.run(3_600_000);
  assert.throws(() => ordinals.take(), InvariantError);
  world.register.comeBack();
  world.run(10_000);
  assert.equal(ordinals.take(), 9);
});

test('that none is left is said once', async () => {
  const world = new SimulatedWorld();
  await new Hand(world).put('ordinal', encodeOrdinal({ next: 2 ** 24 }));
  const failed: string[] = [];
  ticked(world, 7, failed).take();
  world.run(3_600_000);
  assert.equal(failed.length, 1);
  assert.match(failed[0] ?? '', /give the group another cluster name/);
});
