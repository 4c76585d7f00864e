/**
 * Members of the newest set that know the queue, and are none by their own account: is such a one on its way to be a member,
 * or did it come back empty? The stories with real parts: test/scenario/cut-off-owner.test.ts, ownership.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import type { Claimed } from '../../../src/protocol/messages/claimed.js';
import { CLAIM_TOKEN_LOW, ROLE_FILLING, ROLE_MEMBER, ROLE_NONE } from '../../../src/protocol/reasons.js';
import type { CensusRow } from '../../../src/recovery/census.js';
import { isOnItsWay, joinersOf } from '../../../src/recovery/census.js';
import { ClaimState } from '../../../src/recovery/claim-machine.js';
import { Claiming } from '../../../src/recovery/claiming.js';
import type { QueueJob, RecoveryStore } from '../../../src/recovery/queue-job.js';
import { SetHints } from '../../../src/recovery/set-hints.js';
import { StoreViews } from '../../../src/recovery/store-views.js';

const BOTH = ['a', 'b'];

function row(storeId: string, role: number, number: number, holder: string, epoch = 3, members: readonly string[] = BOTH, holderToken = 1): CensusRow {
  return { storeId, ownerId: 'gw-1', birth: 1, serial: 1, name: 'q', queueClass: 'mail', role, epoch, members, number, digestA: 0, digestB: 0, count: 0, bytes: 0, holder, holderToken };
}

/** Of those that know the queue, the ones that came back empty. */
function emptyOf(rows: readonly CensusRow[], others = 1): string[] {
  return joinersOf(rows, 3, BOTH).filter(([joiner, source]) => !isOnItsWay(joiner, source, others)).map(([joiner, source]) => `${joiner.storeId} beside ${source.storeId}`);
}

/** Gateway gw-1 takes the queue back from stores a and b, in a group of two if no other is named. */
class Story {
  readonly told: string[] = [];
  olderMayLive = false;
  readonly job: QueueJob;
  private readonly claiming: Claiming;
  private readonly views: StoreViews;

  constructor(group: readonly string[] = ['gw-1', 'gw-2']) {
    const packer = new MessagePacker();
    const log = { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (_event: string, text: string) => { this.told.push(text); } };
    this.views = new StoreViews('gw-1', packer, () => 0);
    for (const storeId of BOTH) {
      const store: RecoveryStore = { storeId, bootId: 'boot', isUp: true, version: 2, leaseMs: 1000, graceMs: 0, flush: () => undefined, request: () => 1 };
      this.views.add(store);
    }
    for (const view of this.views.all()) view.listed = true;
    this.claiming = new Claiming({ gatewayId: 'gw-1', token: 5, group }, {
      packer, log, views: this.views, hints: new SetHints([], log), nowMs: () => 0, random: () => 0, olderMayLive: () => this.olderMayLive, needFlush: () => undefined, onClaimed: () => undefined,
    });
    this.job = this.claiming.newJob(row('a', ROLE_MEMBER, 10, ''), 'key', 7);
  }

  /** A round of probes, answered so. */
  round(...answers: readonly CensusRow[]): this {
    this.claiming.judge(this.job, this.views.answering(), new Set(), 0);
    for (const { storeId, role, epoch, members, number } of answers) {
      const answer: Claimed = { handle: 7, result: CLAIM_TOKEN_LOW, token: 1, epoch, members, number, digestA: 0, digestB: 0, count: 0, bytes: 0, role, waitMs: 0, sameBoot: false };
      this.claiming.note(this.job, storeId, answer);
      this.job.machine.onAnswer(storeId, 'probe', answer);
    }
    return this;
  }
}

test('one that is filled by who holds the copy to be read is on its way; by another it is not, unless there is no other', () => {
  const source = row('a', ROLE_MEMBER, 10, 'gw-2');
  assert.deepEqual(emptyOf([source, row('b', ROLE_FILLING, 8, 'gw-2')]), []);
  assert.deepEqual(emptyOf([source, row('b', ROLE_FILLING, 8, 'gw-1')]), ['b beside a']);
  assert.deepEqual(emptyOf([source, row('b', ROLE_FILLING, 8, 'gw-1')], 0), []);
  assert.deepEqual(emptyOf([source, row('c', ROLE_FILLING, 8, 'gw-1')]), [], 'it is in no set');
});

test('beside a copy that was released, none is where a third gateway may have the queue: whoever had it, the owner is the holder', () => {
  const released = row('a', ROLE_MEMBER, 10, 'gw-1', 3, BOTH, 0);
  assert.deepEqual(emptyOf([released, row('b', ROLE_FILLING, 8, 'gw-1')], 2), ['b beside a']);
  assert.deepEqual(emptyOf([released, row('b', ROLE_FILLING, 8, 'gw-1')], 1), []);
  assert.deepEqual(emptyOf([released, row('b', ROLE_FILLING, 8, 'gw-1')], 0), []);
});

test('one that was opened only is not on its way; one that had left the set, and gets a tail, is', () => {
  const source = row('a', ROLE_MEMBER, 10, 'gw-1');
  assert.deepEqual(emptyOf([source, row('b', ROLE_NONE, 0, 'gw-1', 0, [])]), ['b beside a']);
  assert.deepEqual(emptyOf([source, row('b', ROLE_NONE, 0, 'gw-1', 0, [])], 0), ['b beside a']);
  assert.deepEqual(emptyOf([source, row('b', ROLE_NONE, 9, 'gw-1', 2, ['a'])]), []);
});

test('nothing is claimed beside one that came back empty: a claim would hide who held it', () => {
  const story = new Story();
  const rows = [row('a', ROLE_MEMBER, 10, 'gw-2'), row('b', ROLE_FILLING, 8, 'gw-1')];
  for (const listed of rows) story.job.noteListed(listed, false);
  story.round(...rows);
  assert.equal(story.job.machine.state, ClaimState.IDLE);
  assert.equal(story.job.empty, 'b');
  assert.equal(story.told.length, 1);
  story.job.given.add('b');
  for (const listed of rows) story.job.noteListed(listed, false);
  assert.equal(story.round(...rows).job.machine.state, ClaimState.CLAIMING, 'the operator goes on without it');
});

test('who holds a copy of a newer set than was listed is asked for, and nobody is told of an empty mirror before', () => {
  const story = new Story();
  story.job.noteListed(row('a', ROLE_MEMBER, 5, 'gw-1', 2, ['a']), false);
  story.job.noteListed(row('b', ROLE_FILLING, 8, 'gw-1', 0, []), false);
  const shown = [row('a', ROLE_MEMBER, 10, ''), row('b', ROLE_FILLING, 8, '', 0, [])];
  story.round(...shown);
  story.round(...shown);
  assert.deepEqual([story.job.machine.state, story.job.state, story.job.empty], [ClaimState.IDLE, 'waiting', '']);
  story.job.noteListed(row('a', ROLE_MEMBER, 10, 'gw-1'), false);
  assert.equal(story.round(...shown).job.machine.state, ClaimState.CLAIMING);
});

test('a gateway alone goes on past one that was opened only, as soon as its older process is proved to be gone: no other list comes', () => {
  const story = new Story(['gw-1']);
  const rows = [row('a', ROLE_MEMBER, 10, 'gw-1'), row('b', ROLE_NONE, 0, 'gw-1', 0, [])];
  for (const listed of rows) story.job.noteListed(listed, false);
  story.olderMayLive = true;
  story.round(...rows);
  assert.deepEqual([story.job.machine.state, story.job.empty], [ClaimState.IDLE, 'b']);
  story.olderMayLive = false;
  assert.equal(story.round(...rows).job.machine.state, ClaimState.CLAIMING);
});

test('a claim of this process does not hide who held a copy before, unless the copy is of another set since, or its store restarted', () => {
  const { job } = new Story();
  const holder = (): string | undefined => job.rowsUnclaimed().find(({ storeId }) => storeId === 'a')?.holder;
  job.noteListed(row('a', ROLE_MEMBER, 10, 'gw-2'), false);
  job.noteListed(row('a', ROLE_MEMBER, 10, 'gw-1'), true);
  assert.equal(holder(), 'gw-2');
  job.noteListed(row('a', ROLE_MEMBER, 11, 'gw-1', 4), true);
  assert.equal(holder(), 'gw-1');
  job.noteListed(row('a', ROLE_MEMBER, 10, 'gw-2'), false);
  job.forgetStore('a');
  job.noteListed(row('a', ROLE_MEMBER, 10, 'gw-1'), true);
  assert.equal(holder(), 'gw-1');
});
