/** How waiting writes become transactions that can be judged at one moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { takeBatch } from '../../../../src/register/client/batches.js';
import type { WaitingWrite } from '../../../../src/register/client/batches.js';
import { TRANSACTION_BYTES_MAX } from '../../../../src/register/limits.js';

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
const writes = fc.array(
  fc.record({
    key,
    guards: fc.array(key, { maxLength: 3 }),
    session: fc.constantFrom('', '', '1', '2'),
    bytes: fc.constantFrom(1, 1, 60_000),
  }),
  { maxLength: 60 },
);

function waitingOf(
  list: readonly { key: string; guards: readonly string[]; session: string; bytes: number; }[],
): WaitingWrite[] {
  return list.map((each, index) => ({
    write: {
      key: each.key,
      ifRevision: index,
      value: 'x'.repeat(each.bytes),
      session: each.session,
      guards: each.guards.map((guard) => ({ key: guard, revision: 0 })),
    },
    deadlineMs: 1_000 - index,
    settle: () => {},
  }));
}

test('every write goes, each key in order, and no batch breaks a rule', () => {
  fc.assert(fc.property(writes, fc.integer({ min: 6, max: 20 }), (list, operationsMax) => {
    const all = waitingOf(list);
    const waiting = [...all];
    const went: WaitingWrite[] = [];
    for (let round = 0; waiting.length > 0; round++) {
      assert.ok(round <= all.length, 'every round takes some');
      const before = waiting.length;
      const batch = takeBatch(waiting, new Set(), operationsMax, 7);
      assert.ok(batch !== undefined && batch.writes.length + waiting.length === before);
      const keys = batch.writes.map(({ write }) => write.key);
      assert.equal(new Set(keys).size, keys.length, 'no key twice');
      for (const { write } of batch.writes) {
        for (const guard of write.guards) {
          assert.ok(
            guard.key === write.key || !keys.includes(guard.key),
            'no guard on a key that another one writes',
          );
        }
      }
      assert.equal(new Set(batch.writes.map(({ write }) => write.session)).size, 1, 'one session');
      const compares = Math.max(...batch.writes.map(({ write }) => 1 + write.guards.length));
      assert.ok(batch.writes.length === 1 || batch.writes.length + compares <= operationsMax, 'operations');
      assert.ok(
        batch.writes.length === 1
          || batch.writes.reduce((sum, { write }) => sum + (write.value ?? '').length, 0)
            <= TRANSACTION_BYTES_MAX,
        'bytes',
      );
      assert.equal(batch.deadlineMs, Math.min(...batch.writes.map(({ deadlineMs }) => deadlineMs)));
      went.push(...batch.writes);
    }
    for (const each of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
      const order = went.filter(({ write }) => write.key === each).map(({ write }) => write.ifRevision);
      assert.deepEqual(order, [...order].sort((a, b) => a - b), `writes of ${each} in their order`);
    }
  }));
});

test('a key that is under way waits, others go', () => {
  const waiting = waitingOf([{ key: 'a', guards: [], session: '', bytes: 1 }, {
    key: 'b',
    guards: [],
    session: '',
    bytes: 1,
  }]);
  const batch = takeBatch(waiting, new Set(['a']), 128, 0);
  assert.deepEqual(batch?.writes.map(({ write }) => write.key), ['b']);
  assert.equal(takeBatch(waiting, new Set(['a']), 128, 0), undefined);
  assert.equal(waiting.length, 1);
});
