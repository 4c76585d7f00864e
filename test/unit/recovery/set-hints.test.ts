/** Sets that an operator forced, as stores told of them: remembered beyond the job of their queue, for what they say against older copies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROLE_FILLING, ROLE_MEMBER } from '../../../src/protocol/reasons.js';
import type { CensusRow } from '../../../src/recovery/census.js';
import { judgeQueue } from '../../../src/recovery/census.js';
import type { SetHint } from '../../../src/recovery/set-hints.js';
import { SetHints } from '../../../src/recovery/set-hints.js';

const FORCED = 2 ** 41;
const ALL = new Set(['a', 'b', 'c']);
const NONE = new Set<string>();
const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

function row(storeId: string, epoch: number, members: readonly string[], role: number = ROLE_MEMBER): CensusRow {
  return { storeId, ownerId: 'gw-1', birth: 1, serial: 1, name: 'q', queueClass: 'mail', role, epoch, members, number: 1, digestA: 0, digestB: 0, count: 0, bytes: 0, holder: 'gw-1', holderToken: 1 };
}

function hintsOf(...hints: readonly SetHint[]): SetHints {
  return new SetHints(hints, log);
}

test('a set that was forced is remembered, the newest of them; any other is not', () => {
  const hints = hintsOf();
  hints.note('key', row('a', 7, ['a']));
  hints.note('key', row('a', FORCED, ['a'], ROLE_FILLING));
  assert.equal(hints.get('key'), undefined);
  hints.note('key', row('a', FORCED + 1, ['a', 'c']));
  hints.note('key', row('c', FORCED, ['c']));
  assert.deepEqual(hints.get('key'), { epoch: FORCED + 1, members: ['a', 'c'], wasTold: true });
  hints.drop('key');
  assert.equal(hints.get('key'), undefined, 'it is served here');
});

test('it does not hide a newer set of the local file, nor is it hidden by an older one', () => {
  const hint: SetHint = { ownerId: 'gw-1', birth: 1, serial: 1, name: 'q', queueClass: 'mail', epoch: FORCED + 5, members: ['b'] };
  const hints = hintsOf(hint);
  hints.note('gw-1/1/1', row('a', FORCED, ['a']));
  assert.equal(hints.get('gw-1/1/1'), hint);
  hints.note('gw-1/1/1', row('a', FORCED + 6, ['a']));
  assert.deepEqual(hints.get('gw-1/1/1')?.members, ['a']);
});

test('65,536 of them are remembered, and the oldest goes first', () => {
  const hints = hintsOf();
  for (let i = 0; i <= 65_536; i++) hints.note(`key ${String(i)}`, row('a', FORCED, ['a']));
  assert.deepEqual([hints.get('key 0'), hints.get('key 1')?.epoch, hints.get('key 65536')?.epoch], [undefined, FORCED, FORCED]);
});

test('a queue is not taken by an older copy before each member of it shows it again, or is given up', () => {
  const told = { epoch: FORCED, members: ['a', 'c'], wasTold: true };
  const old = [row('b', 4, ['b'])];
  assert.deepEqual(judgeQueue(old, ALL, NONE, told), { kind: 'wait', missing: ['a', 'c'] });
  assert.deepEqual(judgeQueue(old, ALL, new Set(['a']), told), { kind: 'wait', missing: ['c'] });
  assert.equal(judgeQueue(old, ALL, new Set(['a', 'c']), told).kind, 'take');
  assert.equal(judgeQueue([...old, row('c', FORCED, ['c'])], ALL, NONE, told).kind, 'take');
  assert.equal(judgeQueue(old, ALL, NONE, { epoch: FORCED, members: ['a', 'c'] }).kind, 'take', 'a hint out of the file asks for an answer only');
});
