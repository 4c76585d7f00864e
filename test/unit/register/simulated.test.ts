/** The contract on the simulated register without faults. What faults do: client-faults.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SimulatedLine } from '../../../src/register/simulated/simulated-line.js';
import { contract } from './contract.js';
import { SimulatedWorld } from './simulated-world.js';

contract('simulated', () => Promise.resolve(new SimulatedWorld()));

test('a watch that is closed before the register has heard of it is never there', async () => {
  const world = new SimulatedWorld();
  const { host } = world.register;
  let watches = 0;
  const watch = host.watch.bind(host);
  host.watch = (...args) => {
    watches += 1;
    return watch(...args);
  };
  const line = new SimulatedLine(world.register, world.time);
  let isUp = false;
  line.open({ onUp: () => { isUp = true; }, onDown: () => {} });
  await world.until(() => isUp, 'it is up');
  const handler = { onChanges: () => {}, onBroken: () => {} };
  line.watch(['a'], 0, handler).close();
  line.watch(['a'], 0, handler);
  world.run(2_000);
  assert.equal(watches, 1);
});
