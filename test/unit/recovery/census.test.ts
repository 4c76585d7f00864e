import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ROLE_FILLING, ROLE_MEMBER, ROLE_NONE, ROLE_SPILLED } from '../../../src/protocol/reasons.js';
import type { CensusRow } from '../../../src/recovery/census.js';
import { isOfLastSet, judgeQueue, messagesTold, queueKey, sourcesOf } from '../../../src/recovery/census.js';

const ALL = ['a', 'b', 'c'];
const NONE: ReadonlySet<string> = new Set();

function row(storeId: string, epoch: number, members: readonly string[], number = 10, role: number = ROLE_MEMBER): CensusRow {
  return { storeId, ownerId: 'gw-1', birth: 1, serial: 1, name: 'q', queueClass: 'mail', role, epoch, members, number, digestA: 0, digestB: 0, count: 0, bytes: 0, holder: 'gw-1', holderToken: 1 };
}

describe('census', () => {
  test('a queue is taken when every member of the newest epoch can be asked', () => {
    const rows = [row('a', 3, ['a', 'b']), row('b', 3, ['a', 'b']), row('c', 2, ['a', 'c'], 99)];
    assert.deepEqual(judgeQueue(rows, new Set(ALL), NONE), { kind: 'take', epoch: 3, members: ['a', 'b'], without: [], outside: '' });
  });

  test('a member that has not answered is waited for by name', () => {
    assert.deepEqual(judgeQueue([row('a', 3, ['a', 'b'])], new Set(['a', 'c']), NONE), { kind: 'wait', missing: ['b'] });
  });

  test('a store that is no member is not waited for', () => {
    assert.equal(judgeQueue([row('a', 3, ['a'])], new Set(['a']), NONE).kind, 'take');
  });

  test('a member that an operator has given up is gone without, unless it answers', () => {
    const rows = [row('a', 3, ['a', 'b'])];
    assert.deepEqual(judgeQueue(rows, new Set(['a']), new Set(['b'])), { kind: 'take', epoch: 3, members: ['a'], without: ['b'], outside: '' });
    assert.deepEqual(judgeQueue(rows, new Set(ALL), new Set(['b'])), { kind: 'take', epoch: 3, members: ['a', 'b'], without: [], outside: '' });
  });

  test('what a store told before it fell silent does not count once the operator has given it up', () => {
    const rows = [row('a', 4, ['a']), row('b', 3, ['a', 'b'])];
    assert.deepEqual(judgeQueue(rows, new Set(['b', 'c']), new Set(['a'])), { kind: 'take', epoch: 3, members: ['b'], without: ['a'], outside: '' });
    assert.deepEqual(judgeQueue([row('a', 4, ['a'])], new Set(['b']), new Set(['a'])), { kind: 'nothing' });
  });

  test('a store that had left the newest set is read only when the operator has given up every member', () => {
    const left = (storeId: string, number: number): CensusRow => row(storeId, 4, ['a', 'b'], number, ROLE_SPILLED);
    const rows = [left('c', 12), left('d', 14), row('e', 3, ['a', 'e'], 99)];
    const answering = new Set(['a', 'b', 'c', 'd', 'e']);
    assert.deepEqual(judgeQueue(rows, answering, new Set(['a'])), { kind: 'take', epoch: 4, members: ['a', 'b'], without: [], outside: '' });
    assert.deepEqual(judgeQueue(rows, answering, new Set(['a', 'b'])), { kind: 'take', epoch: 4, members: ['a', 'b', 'd'], without: ['a', 'b'], outside: 'd' });
    assert.deepEqual(judgeQueue([...rows, row('b', 4, ['a', 'b'], 1)], answering, new Set(['a', 'b'])), { kind: 'take', epoch: 4, members: ['a', 'b'], without: [], outside: '' }, 'a member that has its copy after all');
    assert.deepEqual(judgeQueue(rows, new Set(['a', 'b', 'c', 'e']), new Set(['a', 'b'])), { kind: 'wait', missing: ['d'] });
  });

  test('has as many messages as the longest copy of the newest set tells', () => {
    const counted = (one: CensusRow, count: number): CensusRow => ({ ...one, count });
    const rows = [counted(row('a', 3, ['a', 'b'], 10), 4), counted(row('b', 3, ['a', 'b'], 12), 3), counted(row('c', 2, ['a', 'c'], 99), 9), counted(row('d', 4, ['d'], 99, ROLE_FILLING), 7)];
    assert.equal(messagesTold(rows), 3);
    assert.equal(messagesTold(rows.toReversed()), 3);
    assert.equal(messagesTold(rows.slice(3)), undefined, 'a copy that was being filled counts for nothing');
  });

  test('a copy that was being filled is no member, whatever epoch it shows', () => {
    const verdict = judgeQueue([row('a', 3, ['a', 'b']), row('b', 9, ['b'], 50, ROLE_FILLING)], new Set(ALL), NONE);
    assert.equal(verdict.kind === 'take' ? verdict.epoch : 0, 3);
    assert.deepEqual(judgeQueue([row('b', 9, ['b'], 50, ROLE_FILLING), row('c', 4, ['b'], 1, ROLE_NONE)], new Set(ALL), NONE), { kind: 'nothing' });
  });

  test('a newer epoch in a file that a store came back with is heeded', () => {
    const verdict = judgeQueue([row('a', 3, ['a', 'b']), row('b', 4, ['b'], 50, ROLE_SPILLED)], new Set(ALL), NONE);
    assert.deepEqual(verdict.kind === 'take' ? [verdict.epoch, verdict.members] : [], [4, ['b']]);
  });

  test('only members at the newest epoch are read, the longest first', () => {
    const rows = [row('a', 3, ALL, 10), row('b', 3, ALL, 12), row('c', 2, ALL, 99)];
    assert.deepEqual(sourcesOf(rows, 3, ALL).map((source) => source.storeId), ['b', 'a']);
    assert.notEqual(queueKey('gw', 1, 23), queueKey('gw', 12, 3));
    assert.notEqual(queueKey('gw-1', 1, 23), queueKey('gw-2', 1, 23));
  });

  test('copies out of files are read behind those in memory, and only those of members at the newest epoch', () => {
    const spilled = (storeId: string, number: number, epoch = 3): CensusRow => row(storeId, epoch, ['a', 'b'], number, ROLE_SPILLED);
    const read = (...rows: CensusRow[]): string[] => sourcesOf(rows, 3, ['a', 'b']).map((source) => source.storeId);
    assert.deepEqual(read(spilled('a', 9), spilled('b', 11)), ['b', 'a']);
    assert.deepEqual(read(row('a', 3, ['a', 'b']), spilled('b', 99)), ['a', 'b'], 'what is in memory comes first');
    assert.deepEqual(read(spilled('a', 9), spilled('b', 8, 2)), ['a'], 'one that stopped before the newest set hides nothing from the other');
    assert.deepEqual(read(spilled('a', 9), spilled('c', 12)), ['a'], 'c had left the set');
  });

  test('a copy is of the last set for sure when every member of the newest, or every store, has told', () => {
    const isLast = (first: CensusRow, others: readonly CensusRow[], allTold = false): boolean => isOfLastSet(first, new Map([first, ...others].map((one) => [one.storeId, one])), allTold);
    const copy = row('a', 2, ['a', 'b']);
    assert.equal(isLast(copy, [row('b', 2, ['a', 'b'])]), true);
    assert.equal(isLast(copy, [row('b', 3, ['b'])]), false, 'b shows a newer set');
    assert.equal(isLast(copy, []), false, 'b may know of a newer set');
    assert.equal(isLast(copy, [row('b', 0, [], 10, ROLE_FILLING)]), false, 'b may have lost a newer set');
    assert.equal(isLast(copy, [], true), true, 'no store knows of a newer set');
    assert.equal(isLast(copy, [row('b', 3, ['a', 'b'])], true), false, 'it has not heard of the newest');
    assert.equal(isLast(row('c', 2, ['a', 'b'], 10, ROLE_SPILLED), [copy, row('b', 2, ['a', 'b'])], true), false, 'c had left the set');
  });
});
