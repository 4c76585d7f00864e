/**
 * A rescuer that is started anew with `rescue: off`: what it had taken over is held by a process that is gone, and by nobody's
 * order; its owner, or another rescuer, has it next.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LETTERS, loaded, partitionAt, untilHeldBy } from './pair.js';

/** The host of the process of gw-2 that takes nothing over. */
const OFF = 'gw-2-off';

for (const isOwnerBack of [true, false]) test(`a gateway that takes nothing over any more leaves what it rescued; ${isOwnerBack ? 'its owner has it' : 'another rescuer takes it'}`, () => {
  const gateways = ['gw-1', 'gw-2', 'gw-3'];
  const pair = loaded({ gateways, elsewhere: { [OFF]: 'gw-2' }, noRescue: [OFF] });
  const { group } = pair;
  group.gateway('gw-3').kill();
  group.gateway(OFF).kill();
  group.gateway('gw-1').kill();
  untilHeldBy(pair, 'gw-2');
  group.gateway('gw-2').kill();
  group.gateway(OFF).start();
  const next = isOwnerBack ? 'gw-1' : 'gw-3';
  group.gateway(next).start();
  untilHeldBy(pair, next);
  assert.equal(partitionAt(pair, next)?.length, LETTERS);
  assert.equal(partitionAt(pair, OFF), undefined);
  group.run(30_000);
  assert.equal(partitionAt(pair, OFF), undefined, 'nor later');
});
