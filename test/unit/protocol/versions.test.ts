import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ROLE_FILLING, ROLE_MEMBER, ROLE_NONE, ROLE_SPILLED } from '../../../src/protocol/reasons.js';
import { PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST, allowsTakeover, chooseVersion, movesQueuesAway, toldRole } from '../../../src/protocol/versions.js';

describe('the version of a connection', () => {
  test('is the highest that both speak', () => {
    assert.deepEqual([PROTOCOL_VERSION_OLDEST, PROTOCOL_VERSION], [3, 3]);
    assert.equal(chooseVersion(3, 3), 3);
    assert.equal(chooseVersion(1, 7), 3, 'a later release that still speaks ours');
  });

  test('is none when the ranges do not meet', () => {
    assert.equal(chooseVersion(4, 7), 0);
    assert.equal(chooseVersion(1, 2), 0, 'rows of before entries paid for their notes');
    assert.equal(chooseVersion(0, 0), 0);
  });
});

describe('a peer of version 1', () => {
  test('is told only roles that it knows: a spilled copy of the set is a member, one that had left it is none', () => {
    for (const role of [ROLE_NONE, ROLE_MEMBER, ROLE_FILLING]) {
      for (const isNamed of [false, true]) assert.equal(toldRole(1, role, isNamed), role);
    }
    assert.equal(toldRole(1, ROLE_SPILLED, true), ROLE_MEMBER);
    assert.equal(toldRole(1, ROLE_SPILLED, false), ROLE_NONE);
    for (const isNamed of [false, true]) assert.equal(toldRole(2, ROLE_SPILLED, isNamed), ROLE_SPILLED);
  });

  test('moves nothing away from a stopping store, and has no rules for a takeover', () => {
    assert.deepEqual([movesQueuesAway(1), movesQueuesAway(2)], [false, true]);
    assert.deepEqual([allowsTakeover(1), allowsTakeover(2)], [false, true]);
  });
});
