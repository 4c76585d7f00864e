/**
 * What a takeover says of a claim that it gives back: whether the queue was ever served by it (docs/PROTOCOL.md "Claims",
 * `unused`), and nothing of it to a store of version 1.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROLE_MEMBER } from '../../../src/protocol/reasons.js';
import { Story, row } from './claiming-story.js';

const ROWS = [row('a', ROLE_MEMBER, 10, 'gw-1'), row('b', ROLE_MEMBER, 10, 'gw-1')] as const;

/** Granted at store a, refused at store b. */
function splitClaims(story: Story): Story {
  for (const listed of ROWS) story.job.rows.set(listed.storeId, listed);
  return story.round(...ROWS).grant('claim', ROWS[0]).refuse(ROWS[1]);
}

test('a claim that came to nothing is released as unused', () => {
  assert.deepEqual(splitClaims(new Story()).released, [[7, 5, true]]);
});

test('a store of version 1 is told the handle and the token only', () => {
  assert.deepEqual(splitClaims(new Story(['gw-1'], 1)).released, [[7, 5]]);
});

test('one by which the queue was served before is not unused', () => {
  assert.deepEqual(splitClaims(new Story().served()).released, [[7, 5, false]]);
});

test('nor is one that is given up by what a list shows: the process before this one may have served the queue by it', () => {
  const story = new Story();
  story.claiming.giveUpAt(story.job, 'a', 5);
  assert.deepEqual(story.released, [[7, 5, false]]);
});
