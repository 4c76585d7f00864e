/** For which set an operator's word about a store counts, when no store had told of any (src/recovery/forcing.ts). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { ROLE_MEMBER } from '../../../src/protocol/reasons.js';
import { Claiming } from '../../../src/recovery/claiming.js';
import { forceQueues } from '../../../src/recovery/forcing.js';
import { Pulls } from '../../../src/recovery/pulls.js';
import type { QueueJobState, RecoveryStore } from '../../../src/recovery/queue-job.js';
import type { SetHint } from '../../../src/recovery/set-hints.js';
import { SetHints } from '../../../src/recovery/set-hints.js';
import { StoreViews } from '../../../src/recovery/store-views.js';

const NAME = { ownerId: 'gw-1', birth: 1, serial: 1, name: 'q', queueClass: 'mail' };
const KEY = 'gw-1/1/1';
const MEMBERS = ['store-a', 'store-b'];
const HINT: SetHint = { ...NAME, epoch: 3, members: MEMBERS };

/** gw-1 knows that it has a queue, of which no store has told; store-b is given up; then store-a tells of this epoch, with both. */
function toldAfterTheWord(epoch: number, hints: readonly SetHint[]): { readonly state: QueueJobState; readonly given: readonly string[] } {
  const packer = new MessagePacker();
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const views = new StoreViews('gw-1', packer);
  for (const storeId of MEMBERS) {
    const store: RecoveryStore = { storeId, bootId: 'boot', isUp: storeId === 'store-a', version: 2, leaseMs: 1000, graceMs: 0, flush: () => undefined, request: () => 1 };
    views.add(store);
  }
  for (const view of views.all()) view.listed = view.store.isUp;
  const kept = new SetHints(hints, log);
  const claiming = new Claiming({ gatewayId: 'gw-1', token: 5, group: ['gw-1'] }, {
    packer, log, views, hints: kept, nowMs: () => 0, random: () => 0, olderMayLive: () => false, needFlush: () => undefined, onClaimed: () => undefined,
  });
  claiming.news.isLate = true;
  const pulls = new Pulls({ blockEntries: 10, blockBytes: 1000 }, { packer, log, views, nowMs: () => 0, needFlush: () => undefined, mayPull: () => true, onBlock: () => true, copiesUpTo: () => [], onWhole: () => undefined });
  const job = claiming.newJob(NAME, KEY, 7);
  const judge = (): void => { claiming.judge(job, views.answering(), 0); };
  judge();
  assert.deepEqual([job.state, job.missing], ['waiting', ['store-b']]);
  const request = { partition: 'q', missing: 'store-b', reason: 'burnt', who: 'ann' };
  assert.equal(forceQueues(request, { log, views, hints: kept, pulls, lostSets: { force: () => [] }, nowMs: () => 0, jobs: () => [job], startJobs: () => undefined }).length, 1);
  job.rows.set('store-a', { ...NAME, storeId: 'store-a', role: ROLE_MEMBER, epoch, members: MEMBERS, number: 3, digestA: 1, digestB: 2, count: 3, bytes: 30, holder: '', holderToken: 0 });
  judge();
  return { state: job.state, given: [...job.given] };
}

describe('an operator goes on without a store, and no store has told of a set', () => {
  test('with a hint of the process before: for that set, and older ones', () => {
    for (const epoch of [1, HINT.epoch]) assert.deepEqual(toldAfterTheWord(epoch, [HINT]), { state: 'claiming', given: ['store-b'] });
  });

  test('with a hint, not for a newer one, of which he can not have known: it waits for its members', () => {
    assert.deepEqual(toldAfterTheWord(HINT.epoch + 1, [HINT]), { state: 'waiting', given: [] });
  });

  test('without a hint, for the first set that is told', () => {
    assert.deepEqual(toldAfterTheWord(1, []), { state: 'claiming', given: ['store-b'] });
  });
});
