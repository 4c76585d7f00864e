/**
 * Members of the newest set that know the queue, and are none by their own account: is such a one on its way to be a member,
 * or did it come back empty? The stories with real parts: test/scenario/cut-off-owner.test.ts, ownership.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROLE_FILLING, ROLE_MEMBER, ROLE_NONE } from '../../../src/protocol/reasons.js';
import type { CensusRow } from '../../../src/recovery/census.js';
import { isOnItsWay, joinersOf } from '../../../src/recovery/census.js';
import { ClaimState } from '../../../src/recovery/claim-machine.js';
import { BOTH, Story, row } from './claiming-story.js';

/** As a store of version 1 tells it. */
function ofVersion1(told: CensusRow, holder: string): CensusRow {
  return { ...told, holder, writer: undefined };
}

/** Of those that know the queue, the ones that came back empty. */
function emptyOf(...rows: readonly CensusRow[]): string[] {
  return joinersOf(rows, 3, BOTH).filter(([joiner, source]) => !isOnItsWay(joiner, source)).map(([joiner, source]) => `${joiner.storeId} beside ${source.storeId}`);
}

test('one that is filled by the process that named it is on its way; by another, of the same gateway too, it is not', () => {
  const source = row('a', ROLE_MEMBER, 10, 'gw-2');
  assert.deepEqual(emptyOf(source, row('b', ROLE_FILLING, 8, 'gw-2')), []);
  assert.deepEqual(emptyOf(source, row('b', ROLE_FILLING, 8, 'gw-1')), ['b beside a']);
  assert.deepEqual(emptyOf(source, row('b', ROLE_FILLING, 8, 'gw-2', 3, BOTH, 2)), ['b beside a']);
  assert.deepEqual(emptyOf(source, row('c', ROLE_FILLING, 8, 'gw-1')), [], 'it is in no set');
});

test('beside a copy that another process may have taken the queue over by, none is; nor where it is not known who fills it', () => {
  assert.deepEqual(emptyOf(row('a', ROLE_MEMBER, 10, ''), row('b', ROLE_FILLING, 8, 'gw-1')), ['b beside a']);
  assert.deepEqual(emptyOf(row('a', ROLE_MEMBER, 10, ''), row('b', ROLE_FILLING, 8, '')), ['b beside a']);
});

test('stores of version 1 tell who holds a copy only: that is to be the same', () => {
  const [source, joiner] = [row('a', ROLE_MEMBER, 10, 'gw-1'), row('b', ROLE_FILLING, 8, 'gw-1')];
  assert.deepEqual(emptyOf(ofVersion1(source, 'gw-1'), ofVersion1(joiner, 'gw-1')), []);
  assert.deepEqual(emptyOf(ofVersion1(source, 'gw-1'), joiner), []);
  assert.deepEqual(emptyOf(ofVersion1(source, 'gw-2'), ofVersion1(joiner, 'gw-1')), ['b beside a']);
  assert.deepEqual(emptyOf({ ...ofVersion1(source, 'gw-1'), holderToken: 0 }, ofVersion1(joiner, 'gw-1')), ['b beside a'], 'released: whoever had it');
});

test('one that was opened only is not on its way; one that had left the set, and gets a tail, is', () => {
  const source = row('a', ROLE_MEMBER, 10, 'gw-1');
  assert.deepEqual(emptyOf(source, row('b', ROLE_NONE, 0, 'gw-1', 0, [])), ['b beside a']);
  assert.deepEqual(emptyOf(source, row('b', ROLE_NONE, 9, 'gw-1', 2, ['a'])), []);
});

test('nothing is claimed beside one that came back empty: a claim would leave its trace', () => {
  const story = new Story();
  const rows = [row('a', ROLE_MEMBER, 10, 'gw-2'), row('b', ROLE_FILLING, 8, 'gw-1')];
  for (const listed of rows) story.job.rows.set(listed.storeId, listed);
  story.round(...rows);
  assert.equal(story.job.machine.state, ClaimState.IDLE);
  assert.equal(story.job.empty, 'b');
  assert.equal(story.told.length, 1);
  story.job.given.add('b');
  for (const listed of rows) story.job.rows.set(listed.storeId, listed);
  assert.equal(story.round(...rows).job.machine.state, ClaimState.CLAIMING, 'the operator goes on without it');
});

test('a claim by which this process served the queue itself leaves the writer of no account', () => {
  const rows = [row('a', ROLE_MEMBER, 10, 'gw-2'), row('b', ROLE_FILLING, 8, 'gw-2')];
  const story = new Story().served();
  for (const listed of rows) story.job.rows.set(listed.storeId, listed);
  assert.deepEqual([story.round(...rows).job.machine.state, story.job.empty], [ClaimState.IDLE, 'b']);
});

test('a gateway alone goes on past one that was opened only, as soon as its older process is proved to be gone: no other list comes', () => {
  const story = new Story(['gw-1']);
  const rows = [row('a', ROLE_MEMBER, 10, 'gw-1'), row('b', ROLE_NONE, 0, 'gw-1', 0, [])];
  for (const listed of rows) story.job.rows.set(listed.storeId, listed);
  story.olderMayLive = true;
  story.round(...rows);
  assert.deepEqual([story.job.machine.state, story.job.empty], [ClaimState.IDLE, 'b']);
  story.olderMayLive = false;
  assert.equal(story.round(...rows).job.machine.state, ClaimState.CLAIMING);
});
