import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ROLE_FILLING, ROLE_MEMBER, ROLE_NONE } from '../../../src/protocol/reasons.js';
import type { CensusRow } from '../../../src/recovery/census.js';
import { judgeQueue, queueKey, sourcesOf } from '../../../src/recovery/census.js';

const ALL = ['a', 'b', 'c'];

function row(storeId: string, epoch: number, members: readonly string[], number = 10, role: number = ROLE_MEMBER): CensusRow {
  return { storeId, birth: 1, serial: 1, name: 'q', queueClass: 'mail', role, epoch, members, number, digestA: 0, digestB: 0, count: 0 };
}

describe('census', () => {
  test('a queue is taken when every member of the newest epoch has answered', () => {
    const rows = [row('a', 3, ['a', 'b']), row('b', 3, ['a', 'b']), row('c', 2, ['a', 'c'], 99)];
    const verdict = judgeQueue(rows, new Set(ALL), ALL);
    assert.deepEqual(verdict.kind === 'take' ? [verdict.epoch, verdict.holders.map((holder) => holder.storeId), verdict.emptyMembers] : [], [3, ['a', 'b'], []]);
  });

  test('a member that has not answered is waited for by name', () => {
    assert.deepEqual(judgeQueue([row('a', 3, ['a', 'b'])], new Set(['a', 'c']), ALL), { kind: 'wait', missing: ['b'], why: 'unreachable' });
  });

  test('a store that is no member is not waited for', () => {
    assert.equal(judgeQueue([row('a', 3, ['a'])], new Set(['a']), ALL).kind, 'take');
  });

  test('with a member that came back empty every store of the group must answer', () => {
    assert.deepEqual(judgeQueue([row('a', 3, ['a', 'b'])], new Set(['a', 'b']), ALL), { kind: 'wait', missing: ['c'], why: 'came back empty' });
    const verdict = judgeQueue([row('a', 3, ['a', 'b'])], new Set(ALL), ALL);
    assert.deepEqual(verdict.kind === 'take' ? verdict.emptyMembers : [], ['b']);
  });

  test('a copy that was being filled is no member, whatever epoch it shows', () => {
    const verdict = judgeQueue([row('a', 3, ['a', 'b']), row('b', 9, ['b'], 50, ROLE_FILLING)], new Set(ALL), ALL);
    assert.deepEqual(verdict.kind === 'take' ? [verdict.epoch, verdict.emptyMembers] : [], [3, ['b']]);
    assert.deepEqual(judgeQueue([row('b', 9, ['b'], 50, ROLE_FILLING), row('c', 4, ['b'], 1, ROLE_NONE)], new Set(ALL), ALL), { kind: 'nothing' });
  });

  test('only members at the newest epoch are read, the longest first', () => {
    const rows = [row('a', 3, ['a', 'b', 'c'], 10), row('b', 3, ['a', 'b', 'c'], 12), row('c', 2, ['a', 'b', 'c'], 99)];
    assert.deepEqual(sourcesOf(rows, 3).map((source) => source.storeId), ['b', 'a']);
    assert.notEqual(queueKey(1, 23), queueKey(12, 3));
  });
});
