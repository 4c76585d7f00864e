/** Why a mirror is not in sync, as operators read it: never nothing. What the table makes of it: test/scenario/management-table.test.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { causeOf, sinceMsOf } from '../../../../src/gateway/mirror/away-cause.js';
import { Decline, decline } from '../../../../src/gateway/mirror/declined.js';
import { Replica, SyncState } from '../../../../src/gateway/mirror/replica.js';

function made(isUp = true): Replica {
  const store = { storeId: 'store-c', bootId: 'boot', version: 2, isUp, canSend: true, credit: 0, unackedBytes: 0, leaseEndsMs: 0, leaseTerm: 1, request: () => 0, flush: () => undefined, askCredit: () => undefined };
  const replica = new Replica(store, 'q', () => undefined);
  replica.awaySinceMs = 50;
  return replica;
}

function declined(why: Decline, text = ''): string {
  const replica = made();
  decline(replica, why, text);
  return causeOf(replica);
}

describe('why a mirror is not in sync', () => {
  test('is told of one that is new, by what its store is and said', () => {
    assert.equal(causeOf(made(false)), 'new, and its store can not be reached');
    assert.equal(causeOf(made()), 'new, and waits to be filled');
    assert.deepEqual(Object.values(Decline).map((why) => declined(why, 'the text')), [
      'new, and another gateway holds the queue there', 'new, and its store has just started, and waits for a lease of before', 'new, and another process has taken the queue there',
      'new, and its store is full', 'new, and its store takes no more queues', 'new, and refused: the text',
    ]);
  });

  test('is, for a member of a queue that came back without it, why it was left out', () => {
    const replica = made(false);
    replica.awayCause = 'it could not be reached when the queue came back';
    assert.equal(causeOf(replica), 'it could not be reached when the queue came back');
  });

  test('is the cause of its last change of state, and counts from then; before, from when it was made', () => {
    const replica = made();
    assert.equal(sinceMsOf(replica), 50);
    replica.transition(SyncState.RESYNC, 'refill begins', 70);
    replica.transition(SyncState.NG, 'ECONNRESET', 80);
    decline(replica, Decline.FULL);
    assert.deepEqual([causeOf(replica), sinceMsOf(replica)], ['ECONNRESET', 80]);
  });
});
