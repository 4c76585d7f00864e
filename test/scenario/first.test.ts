import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { checkAll } from './checks.js';
import { World } from './world.js';

test('first', () => {
  const world = World.started();
  world.submitMany(100, ['q1']);
  world.submitMany(100, ['q1', 'q2', 'q3']);
  world.run(50);
  world.assertSameContent();
  world.untilQuiet();
  assert.equal(world.letters.count(COMMITTED), 200);
  checkAll(world.letters, world.queueNames);
  world.assertSameContent();
});
