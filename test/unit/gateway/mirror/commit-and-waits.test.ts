import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { CommitPoint, CommitState, isValidCommitTransition } from '../../../../src/gateway/mirror/commit-point.js';
import { WaitList } from '../../../../src/gateway/mirror/wait-list.js';

describe('wait list', () => {
  test('calls each waiter once, in order, when its number is committed', () => {
    fc.assert(fc.property(fc.array(fc.tuple(fc.nat(3), fc.boolean()), { maxLength: 400, size: 'max' }), (steps) => {
      const list = new WaitList();
      const called: number[] = [];
      const added: number[] = [];
      let number = 0;
      let committed = 0;
      for (const [step, commit] of steps) {
        if (commit) {
          committed = Math.max(committed, number - step);
          list.advance(committed);
        } else {
          number = Math.max(number, committed) + step;
          const mine = number;
          added.push(mine);
          list.add(mine, { onCommitted: () => called.push(mine) });
        }
        const reached = called.length;
        assert.deepEqual(called, added.slice(0, reached));
        assert.equal(list.length, added.length - reached);
      }
    }));
  });

  test('a waiter may add the next one from inside its call', () => {
    const list = new WaitList();
    const seen: string[] = [];
    list.add(1, { onCommitted: () => { list.add(3, { onCommitted: () => seen.push('three') }); seen.push('one'); } });
    list.advance(2);
    assert.deepEqual(seen, ['one']);
    list.advance(3);
    assert.deepEqual(seen, ['one', 'three']);
  });

  test('thousands of waiters are given back as they go by', () => {
    const list = new WaitList();
    let calls = 0;
    const waiter = { onCommitted: () => { calls += 1; } };
    for (let n = 1; n <= 10_000; n++) {
      list.add(n, waiter);
      if (n > 10) list.advance(n - 10);
    }
    assert.equal(calls, 9990);
    assert.equal(list.length, 10);
  });

  test('a list that ran empty keeps little, however many waited', () => {
    setFlagsFromString('--expose-gc');
    const collect: unknown = runInNewContext('gc');
    assert.ok(typeof collect === 'function');
    const heapBytes = (): number => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const waiter = { onCommitted: (): void => undefined };
    const before = heapBytes();
    const lists = Array.from({ length: 1000 }, () => {
      const list = new WaitList();
      for (let number = 1; number <= 1000; number++) list.add(number, waiter);
      list.advance(1000);
      return list;
    });
    const each = (heapBytes() - before) / lists.length;
    assert.ok(each < 2048, `${Math.round(each)} bytes for each list in which nobody waits`);
  });

  test('one that waits for an earlier change than others is told in its turn, also when it comes while others are told', () => {
    const list = new WaitList();
    const told: string[] = [];
    const waiter = (name: string, then: () => void = () => {}): { onCommitted(): void } => ({ onCommitted: () => { told.push(name); then(); } });
    list.add(4, waiter('4', () => { list.add(6, waiter('6 late')); }));
    list.add(5, waiter('5'));
    list.add(8, waiter('8'));
    list.add(5, waiter('5 late'));
    list.advance(4);
    assert.deepEqual([told, list.length], [['4'], 4]);
    list.advance(6);
    assert.deepEqual(told, ['4', '5', '5 late', '6 late']);
    list.advance(8);
    assert.deepEqual([told.at(-1), list.length], ['8', 0]);
  });
});

describe('commit states', () => {
  test('a commit goes forward and ends once', () => {
    const { STORING, WITHDRAWING, OVER } = CommitState;
    const valid = new Set([`${String(STORING)}${String(WITHDRAWING)}`, `${String(STORING)}${String(OVER)}`, `${String(WITHDRAWING)}${String(OVER)}`]);
    for (const from of [STORING, WITHDRAWING, OVER]) for (const to of [STORING, WITHDRAWING, OVER]) assert.equal(isValidCommitTransition(from, to), valid.has(`${String(from)}${String(to)}`));
  });

  test('deadlines are met from the oldest on, and each commit is settled once', () => {
    const settled: number[] = [];
    const point = new CommitPoint({ timeoutMs: 100 }, { release: () => {}, withdraw: () => 0, settled: (pending) => settled.push(pending.startedMs) });
    const commits = [0, 10, 20].map((at) => point.begin({ settle: () => {} }, at));
    point.committed(commits[1] ?? point.begin({ settle: () => {} }, 0));
    assert.equal(point.openCount, 2);
    point.tick(100);
    assert.equal(commits[0]?.state, CommitState.WITHDRAWING);
    assert.equal(commits[2]?.state, CommitState.STORING);
    point.tick(120);
    point.tick(199);
    assert.deepEqual(settled, [10]);
    point.tick(230);
    assert.deepEqual(settled, [10, 0, 20]);
    assert.equal(point.openCount, 0);
    assert.throws(() => { if (commits[0] !== undefined) point.committed(commits[0]); });
  });
});
