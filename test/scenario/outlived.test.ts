/**
 * What a gateway remembers longer than it is true: that nobody had a member before its last restart, when that one may be a
 * member again; the token of its queue at stores that have forgotten it (src/gateway/mirror/replica-set.ts, claim-again.ts).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import { ResyncPhase } from '../../src/gateway/mirror/replica.js';
import { ROLE_FILLING } from '../../src/protocol/reasons.js';
import { checkNoDuplicates } from './checks.js';
import type { Loaded } from './one-owner.js';
import { LETTERS, loaded, oneDeliversAtMost, queueAt, servedAt } from './one-owner.js';

/**
 * {first, second}; first is told to stop: third joins, and the change to {second, third} is open. Second falls silent before its
 * answer, third restarts empty, in time (lossWitnessed), and is filled. Second is back: the change counts, and third is let in
 * again by the next one. Second has that, its answer never comes: gw-1 is cut off from all. gw-2 takes {second, third} over.
 */
function letInAndTakenOver(): Loaded {
  const story = loaded();
  const { group, own, first, second, third } = story;
  first.leave(60_000, true, () => { first.kill(); });
  group.until(() => own.setChangeNumber !== 0 && own.memberCount === 3, 'the change that drops the first');
  group.network.holdAnswers('gw-1', second.id, true);
  third.kill();
  third.start();
  const replica = own.replicas.find(({ store }) => store.storeId === third.id);
  group.until(() => replica?.phase === ResyncPhase.CAUGHT_UP, 'the third, filled');
  assert.deepEqual([replica?.lossWitnessed, replica?.mayHoldCopy, replica?.member], [true, false, true]);
  group.network.holdAnswers('gw-1', second.id, false);
  group.until(() => replica?.phase === ResyncPhase.JOINING, 'the change that lets it in again');
  group.network.holdAnswers('gw-1', second.id, true);
  const epoch = own.newestEpoch;
  group.until(() => queueAt(second)?.epoch === epoch, 'that change, at the second');
  for (const store of group.stores) group.network.cut('gw-1', store.id);
  group.network.holdAnswers('gw-1', second.id, false);
  assert.deepEqual([queueAt(third)?.role, queueAt(second)?.members.length], [ROLE_FILLING, 2]);
  group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'the takeover', 120_000);
  return story;
}

for (const isSent of [false, true]) test(`a loss that was witnessed says nothing of a member that was let in again since${isSent ? '; by what arrives' : ''}`, () => {
  const { group, second } = letInAndTakenOver();
  // The rescuer goes on with the third alone; the second restarts, empty, and only the old owner reaches it.
  group.network.cut('gw-2', second.id);
  group.until(() => servedAt(group, 'gw-2')?.memberCount === 1 && servedAt(group, 'gw-2')?.setChangeNumber === 0, 'gw-2 at the third alone', 60_000);
  second.kill();
  second.start();
  group.network.heal('gw-1', second.id);
  if (isSent) {
    group.hops.script = () => 'accept';
    group.run(30_000);
    checkNoDuplicates(group.letters);
  } else oneDeliversAtMost(group, 30_000);
});

function hadItBack(): Loaded & { readonly mine: Partition } {
  const story = loaded();
  const { group, first, second } = story;
  for (const store of group.stores) group.network.cut('gw-1', store.id);
  group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'the first takeover', 60_000);
  for (const store of group.stores) group.network.heal('gw-1', store.id);
  group.until(() => servedAt(group, 'gw-1')?.inSyncCount === 2 && servedAt(group, 'gw-2') === undefined, 'the queue at home', 60_000);
  const mine = servedAt(group, 'gw-1');
  assert.ok(mine !== undefined);
  for (const store of [first, second]) {
    store.kill();
    store.start();
    group.until(() => mine.inSyncCount === 1, 'the loss');
    group.until(() => mine.inSyncCount === 2 && mine.setChangeNumber === 0, 'its mirror again', 60_000);
  }
  return { ...story, mine };
}

/**
 * gw-1 has had its queue back once: its token is above its incarnation. Both stores restart, one after the other, and are filled
 * by OPEN, which tells the incarnation. gw-2 takes the queue over by a token between the two, delivers all, and hands it back.
 */
for (const isMember of [true, false]) test(`an owner that is back does not go on from memory by a token from before ${isMember ? '' : '(what arrives)'}`, () => {
  const { group, mine } = hadItBack();
  group.run(2 * group.leaseMs);
  for (const store of group.stores) group.network.cut('gw-1', store.id);
  group.until(() => servedAt(group, 'gw-2')?.length === LETTERS, 'the second takeover', 60_000);
  if (!isMember) group.hops.script = () => 'accept';
  const letters = group.letters;
  if (!isMember) group.until(() => letters.delivered === LETTERS && servedAt(group, 'gw-2')?.length === 0, 'the deliveries', 60_000);
  group.run(200);
  for (const store of group.stores) group.network.heal('gw-1', store.id);
  group.run(30_000);
  checkNoDuplicates(group.letters);
  assert.notEqual(servedAt(group, 'gw-1'), mine, 'what it remembered is given up');
});

/** The same, but gw-2 lives: it is cut off from the second mirror, and goes on with the first. gw-1 reaches the second. */
test('nor beside the rescuer, which lives and has the queue at another store', () => {
  const { group, first, second, third } = hadItBack();
  group.hops.script = () => 'hang';
  group.run(5000);
  for (const store of [third, first, second]) group.network.cut('gw-1', store.id);
  group.network.cut('gw-2', third.id);
  group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'the second takeover', 60_000);
  group.run(1000);
  group.network.cut('gw-2', second.id);
  group.until(() => servedAt(group, 'gw-2')?.memberCount === 1 && servedAt(group, 'gw-2')?.setChangeNumber === 0, 'the set of the first', 60_000);
  group.network.heal('gw-1', second.id);
  oneDeliversAtMost(group, 30_000);
});
