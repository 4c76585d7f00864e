/**
 * A rescuer that is started anew with `rescue: off`: the claims of its process before stand at every member, and its lease runs
 * (src/recovery/rescue-watch.ts, leaveOthers).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LETTERS, loaded, queueAt, servedAt } from './one-owner.js';

/** The host of the process of gw-2 that takes nothing over. */
const OFF = 'gw-2-off';

for (const isOwnerBack of [true, false]) test(`a gateway that takes nothing over any more gives its claims of before back; ${isOwnerBack ? 'its owner has the queue' : 'another rescuer takes it'}`, () => {
  const { group } = loaded({ gateways: ['gw-1', 'gw-2', 'gw-3'], elsewhere: { [OFF]: 'gw-2' }, noRescue: [OFF] });
  group.gateway('gw-1').kill();
  group.until(() => servedAt(group, 'gw-2')?.length === LETTERS && servedAt(group, 'gw-2')?.isRecovering === false, 'the takeover', 60_000);
  group.gateway('gw-2').kill();
  group.gateway(OFF).start();
  const next = isOwnerBack ? 'gw-1' : 'gw-3';
  group.gateway(next).start();
  group.until(() => servedAt(group, next)?.length === LETTERS, 'the queue at the next one', 60_000);
  assert.equal(servedAt(group, OFF), undefined);
});

test('but not before an older process of it, which may live, has had its time: who is given a queue back does not wait for its lease', () => {
  const { group, first } = loaded({ gateways: ['gw-1', 'gw-2', 'gw-3'], elsewhere: { [OFF]: 'gw-2' }, noRescue: [OFF], unproven: ['gw-2'] });
  group.gateway('gw-1').kill();
  group.until(() => servedAt(group, 'gw-2')?.length === LETTERS && servedAt(group, 'gw-2')?.isRecovering === false, 'the takeover', 60_000);
  for (const store of group.stores) group.network.cut('gw-2', store.id);
  group.gateway(OFF).start();
  group.run(group.leaseMs);
  assert.equal(queueAt(first)?.holder, 'gw-2');
  group.gateway('gw-1').start();
  group.until(() => servedAt(group, 'gw-1')?.length === LETTERS, 'the queue at its owner', 60_000);
});
