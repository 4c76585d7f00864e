/** A queue that is held by name for want of a store, and whose holder is back (src/recovery/rescue-watch.ts). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LETTERS, loaded, servedAt, stateAt } from './one-owner.js';

test('a rescuer that can not reach one member does not say that a queue waits which its owner serves again', () => {
  const { group, second } = loaded();
  group.run(5000);
  group.network.cut('gw-2', second.id);
  group.run(1000);
  group.gateway('gw-1').kill();
  group.until(() => stateAt(group, 'gw-2') === 'waiting', 'the named state at gw-2', 60_000);
  group.gateway('gw-1').start();
  group.until(() => servedAt(group, 'gw-1')?.inSyncCount === 2 && servedAt(group, 'gw-1')?.length === LETTERS, 'the queue at its owner', 60_000);
  group.until(() => stateAt(group, 'gw-2') === undefined, 'the end of that state');
  group.run(120_000);
  assert.equal(stateAt(group, 'gw-2'), undefined);
});
