/**
 * Between the claims of a queue and its takeover: the longest member is asked what the others lack.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROLE_MEMBER } from '../../../src/protocol/reasons.js';
import { ClaimState } from '../../../src/recovery/claim-machine.js';
import { Story, row } from './claiming-story.js';

/** Both claims stand, and store b lacks something. */
function tailing(): Story {
  const story = new Story();
  const rows = [row('a', ROLE_MEMBER, 10, 'gw-1'), row('b', ROLE_MEMBER, 8, 'gw-1')] as const;
  for (const listed of rows) story.job.rows.set(listed.storeId, listed);
  story.round(...rows).grant('claim', rows[0]).grant('claim', rows[1]).grant('confirm', rows[0]);
  assert.equal(story.job.state, 'tailing');
  return story;
}

test('a member that restarts while the tail is awaited ends the round: its copy, and its claim, are gone', () => {
  for (const storeId of ['a', 'b']) {
    const { job } = tailing();
    job.onStoreRestarted(storeId);
    assert.deepEqual([job.state, job.machine.state], ['waiting', ClaimState.IDLE]);
  }
});

test('another store that restarts does not', () => {
  const { job } = tailing();
  job.onStoreRestarted('c');
  assert.equal(job.state, 'tailing');
});
