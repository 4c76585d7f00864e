import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST, chooseVersion, versionsSpoken } from '../../../src/protocol/versions.js';

describe('the version of a connection', () => {
  test('is the highest that both speak', () => {
    assert.deepEqual([PROTOCOL_VERSION_OLDEST, PROTOCOL_VERSION], [3, 3]);
    assert.equal(chooseVersion(3, 3), 3);
    assert.equal(chooseVersion(1, 3), 3);
    assert.equal(chooseVersion(3, 7), 3, 'a later release that still speaks ours');
  });

  test('is none when the ranges do not meet: nothing before this one was released', () => {
    assert.equal(chooseVersion(4, 7), 0);
    assert.equal(chooseVersion(1, 2), 0);
    assert.equal(chooseVersion(0, 0), 0);
  });

  test('is told to people as one while there is one', () => {
    assert.equal(versionsSpoken(), 'version 3');
  });
});
