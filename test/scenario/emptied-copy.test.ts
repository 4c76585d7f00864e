/**
 * A claim of another process at a copy that came back empty says nothing about what is remembered of it, which may be all that
 * is left (src/gateway/mirror/replica-set.ts, isFencedOff).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { ROLE_FILLING } from '../../src/protocol/reasons.js';
import { LETTERS, loaded, queueAt, restart, servedAt, stateAt } from './one-owner.js';
import { onlyQueue } from './inspect.js';

const LATER = 3;

/** The one member of its set restarted, and is being filled by gw-1. gw-2's claim at that copy, and at one that had left, comes to nothing. */
test('an owner keeps the only memory of its queue beside a claim that came to nothing', () => {
  const { group, own, first, second, third } = loaded();
  third.kill();
  // The set is {second}; first still shows {first, second}.
  group.network.cut('gw-1', first.id);
  group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of the second');
  for (let i = 0; i < LATER; i++) group.submit('gw-1', ['q1']);
  group.run(500);
  assert.equal(group.letters.count(COMMITTED), LETTERS + LATER, 'all answered 250');
  // It restarts, and gw-1 hears of that later than its lease.
  group.network.holdAnswers('gw-1', second.id, true);
  group.run(2 * group.leaseMs);
  restart(second);
  group.network.holdAnswers('gw-1', second.id, false);
  group.until(() => (queueAt(second)?.count ?? 0) === LETTERS + LATER, 'the refill of the second');
  group.run(group.leaseMs);
  assert.equal(stateAt(group, 'gw-1'), 'no survivor');
  // For a while gw-1 reaches nobody: gw-2 looks, claims, finds that second came back empty, releases.
  const token = queueAt(second)?.highestToken ?? 0;
  group.network.cut('gw-1', second.id);
  group.until(() => (queueAt(second)?.highestToken ?? 0) > token, 'a claim of gw-2', 60_000);
  group.run(1000);
  assert.equal(servedAt(group, 'gw-2'), undefined);
  for (const store of group.stores) group.network.heal('gw-1', store.id);
  group.run(20_000);
  third.start();
  group.run(60_000);
  assert.deepEqual([servedAt(group, 'gw-1'), stateAt(group, 'gw-1'), onlyQueue(own).length], [own, 'no survivor', LETTERS + LATER]);
});

/** The rescuer is right, the owner that was cut off is not; it has begun to fill the store that came back empty. */
test('a rescuer keeps what it remembers beside an owner that fills that store from an older memory', () => {
  const { group, first, second, third } = loaded();
  third.kill();
  for (const store of group.stores) group.network.cut('gw-1', store.id);
  group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'the takeover', 60_000);
  const rescued = servedAt(group, 'gw-2');
  assert.ok(rescued !== undefined);
  // The second restarts, is filled by gw-2, and is alone from there on.
  restart(second);
  group.until(() => rescued.epoch >= 3 && rescued.inSyncCount === 2, 'both again', 60_000);
  group.network.cut('gw-2', first.id);
  group.until(() => rescued.memberCount === 1 && rescued.setChangeNumber === 0, 'the set of the second');
  // It restarts once more, unheard, and the owner is there first.
  group.network.holdAnswers('gw-2', second.id, true);
  group.run(2 * group.leaseMs);
  group.network.cut('gw-2', second.id);
  group.network.holdAnswers('gw-2', second.id, false);
  restart(second);
  group.network.heal('gw-1', second.id);
  group.until(() => queueAt(second)?.role === ROLE_FILLING && queueAt(second)?.holder === 'gw-1', 'the refill by the owner', 60_000);
  // It hears of the newer set, and gives its own up, as it should; then gw-2 is back.
  group.network.heal('gw-1', first.id);
  group.until(() => servedAt(group, 'gw-1') === undefined, 'the end of the older memory', 60_000);
  group.network.heal('gw-2', first.id);
  group.run(3000);
  group.network.heal('gw-2', second.id);
  group.run(30_000);
  third.start();
  group.run(60_000);
  assert.deepEqual([servedAt(group, 'gw-2'), stateAt(group, 'gw-2'), onlyQueue(rescued).length], [rescued, 'no survivor', LETTERS]);
});
