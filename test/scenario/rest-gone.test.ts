/**
 * A queue that is being taken over when the last store that has it dies. Its gateway only stood still: what is here is a part,
 * what is there is all. Neither may give its part up for the other without an operator (src/recovery/pulls.ts, onRestGone).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { restart, servedAt, stateAt } from './one-owner.js';

const LETTERS = 400;
const WHO = { owner: 'gw-1', partition: 'p1', reason: 'the other one is ended', who: 'ann' };

function loadedGroup(): Group {
  const group = Group.started({ blockEntries: 7 });
  group.hops.script = () => 'defer';
  for (let i = 0; i < LETTERS; i++) group.submit('gw-1', ['q1'], 'alice@senders.example', 2000);
  group.run(1000);
  assert.equal(group.letters.count(COMMITTED), LETTERS);
  return group;
}

/** gw-1 stands still; gw-2 has read a part of its queue when the one mirror restarts, empty. */
function partlyTaken(): { readonly group: Group; readonly own: Partition; readonly lost: string } {
  const group = loadedGroup();
  const own = servedAt(group, 'gw-1');
  assert.ok(own !== undefined);
  const [a, b] = [group.store('a'), group.store('b')];
  b.kill();
  group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of one');
  group.freeze('gw-1');
  group.until(() => (servedAt(group, 'gw-2')?.length ?? 0) > 20, 'a part of it', 60_000);
  restart(a);
  b.start();
  group.until(() => stateAt(group, 'gw-2') === 'stranded', 'the named state');
  return { group, own, lost: a.id };
}

describe('the rest of a queue that is nowhere at the stores any more', () => {
  test('waits for an operator beside the gateway that has all of it in memory, and goes on there', () => {
    const { group, own, lost } = partlyTaken();
    group.thaw('gw-1');
    group.run(120_000);
    assert.deepEqual([stateAt(group, 'gw-1'), stateAt(group, 'gw-2'), servedAt(group, 'gw-1')?.length], ['no survivor', 'stranded', LETTERS]);
    const held = group.gateway('gw-2').core?.recovery.held().find(({ partition }) => partition === 'p1');
    assert.match(held?.why ?? '', /if gw-1 lives, it has all of it in memory.* twinpost rescue --force --partition p1 --owner gw-1 --missing store-a /);
    assert.deepEqual(group.gateway('gw-1').core?.recovery.force({ ...WHO, missing: lost }).map(({ outcome }) => outcome), ['taken']);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === LETTERS, 'all deliveries', 120_000);
    group.until(() => servedAt(group, 'gw-2') === undefined, 'the end of the part');
    assert.equal(servedAt(group, 'gw-1'), own);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('is given up where an operator says so: what is here goes on, and home when its gateway is started again', () => {
    const { group, lost } = partlyTaken();
    group.gateway('gw-1').kill();
    group.thaw('gw-1');
    const part = servedAt(group, 'gw-2')?.length ?? 0;
    group.run(30_000);
    assert.deepEqual([stateAt(group, 'gw-2'), servedAt(group, 'gw-2')?.length], ['stranded', part]);
    assert.deepEqual(group.gateway('gw-2').core?.recovery.force({ ...WHO, missing: lost }).map(({ outcome }) => outcome), ['taken']);
    group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'its mirrors', 60_000);
    group.gateway('gw-1').start();
    group.until(() => servedAt(group, 'gw-1')?.length === part && servedAt(group, 'gw-2') === undefined, 'the part at its owner', 60_000);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === part, 'its deliveries', 120_000);
    checkNoDuplicates(group.letters);
  });

  for (const isOneLeft of [true, false]) test(`waits at its owner, too, beside a rescuer that stands still with all of it; ${isOneLeft ? 'one mirror was left' : 'both mirrors restart'}`, () => {
    const group = loadedGroup();
    group.gateway('gw-1').kill();
    const [a, b] = [group.store('a'), group.store('b')];
    group.until(() => servedAt(group, 'gw-2')?.length === LETTERS && servedAt(group, 'gw-2')?.isRecovering === false, 'the rescuer has all of it', 60_000);
    const rescued = servedAt(group, 'gw-2');
    if (isOneLeft) {
      b.kill();
      group.until(() => rescued?.memberCount === 1 && rescued.setChangeNumber === 0, 'the set of one');
    }
    group.freeze('gw-2');
    group.run(group.leaseMs + 1000);
    group.gateway('gw-1').start();
    group.until(() => (servedAt(group, 'gw-1')?.length ?? 0) > 20, 'a part of it at its owner', 60_000);
    restart(a);
    if (isOneLeft) b.start();
    else restart(b);
    group.run(20_000);
    group.thaw('gw-2');
    group.run(120_000);
    assert.deepEqual([stateAt(group, 'gw-1'), stateAt(group, 'gw-2'), servedAt(group, 'gw-2')?.length], ['stranded', 'no survivor', LETTERS]);
    assert.match(group.gateway('gw-1').core?.recovery.held().find(({ partition }) => partition === 'p1')?.why ?? '', /if gw-2 lives/);
  });
});
