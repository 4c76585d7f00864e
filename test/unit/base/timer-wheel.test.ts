import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Prng } from '../../../src/base/prng.js';
import { TimerWheel } from '../../../src/base/timer-wheel.js';

const DAY_MS = 86_400_000;

/** Fires by (tick, order of scheduling), as the wheel promises. */
class SortedList {
  nowTick = 0;
  readonly tickMs: number;
  readonly entries = new Map<number, { tick: number; order: number }>();
  private order = 0;

  constructor(tickMs: number) {
    this.tickMs = tickMs;
  }

  schedule(row: number, dueMs: number): void {
    this.entries.set(row, { tick: Math.max(Math.ceil(dueMs / this.tickMs), this.nowTick), order: this.order++ });
  }

  advance(nowMs: number, most: number): number[] {
    const nowTick = Math.floor(nowMs / this.tickMs);
    const due = [...this.entries].filter(([, e]) => e.tick <= nowTick).sort(([, a], [, b]) => a.tick - b.tick || a.order - b.order);
    const fired = due.slice(0, most);
    for (const [row] of fired) this.entries.delete(row);
    const last = fired.at(-1)?.[1].tick ?? 0;
    this.nowTick = Math.max(this.nowTick, due.length > fired.length || fired.length === most ? last : nowTick);
    return fired.map(([row]) => row);
  }
}

describe('TimerWheel', () => {
  test('fires what a sorted list would, in its order', () => {
    const span = fc.oneof(fc.nat(100), fc.nat(40_000), fc.nat(30 * DAY_MS));
    const command = fc.oneof(
      { weight: 5, arbitrary: fc.record({ kind: fc.constant('schedule'), row: fc.integer({ min: 1, max: 60 }), n: span }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel'), row: fc.integer({ min: 1, max: 60 }), n: fc.constant(0) }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance'), row: fc.integer({ min: 1, max: 20 }), n: span }) },
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 200, size: 'max' }), fc.constantFrom(1, 10, 250), (commands, tickMs) => {
        const wheel = new TimerWheel({ tickMs, startMs: 1000 });
        const model = new SortedList(tickMs);
        let nowMs = 0;
        for (const { kind, row, n } of commands) {
          if (kind === 'schedule') {
            // From a little before now to 30 days ahead.
            wheel.schedule(row, 1000 + nowMs + n - 20);
            model.schedule(row, nowMs + n - 20);
          } else if (kind === 'cancel') {
            wheel.cancel(row);
            model.entries.delete(row);
          } else {
            nowMs += n;
            const fired: number[] = [];
            const count = wheel.advance(1000 + nowMs, (due) => fired.push(due), row);
            assert.deepEqual(fired, model.advance(nowMs, row));
            assert.equal(count, fired.length);
          }
          assert.equal(wheel.size, model.entries.size);
          assert.equal(wheel.isScheduled(row), model.entries.has(row));
          const earliest = Math.min(Infinity, ...[...model.entries.values()].map((entry) => entry.tick));
          assert.ok(wheel.nextDueMs() <= 1000 + earliest * tickMs);
          assert.equal(wheel.nextDueMs() === Infinity, model.entries.size === 0);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('never fires early and, asked at nextDueMs() each time, never late by more than a tick', () => {
    const wheel = new TimerWheel({ tickMs: 5, startMs: 0 });
    const random = new Prng(11);
    const dueAt = new Map<number, number>();
    for (let row = 1; row <= 20_000; row++) {
      const dueMs = random.next() * (row % 3 === 0 ? 30 * DAY_MS : 90_000);
      wheel.schedule(row, dueMs);
      dueAt.set(row, dueMs);
    }
    let nowMs = 0;
    let calls = 0;
    while (wheel.size > 0) {
      nowMs = Math.max(nowMs, wheel.nextDueMs());
      wheel.advance(nowMs, (row) => {
        const dueMs = dueAt.get(row) ?? Infinity;
        assert.ok(nowMs >= dueMs && nowMs < dueMs + 5);
        dueAt.delete(row);
      }, 1000);
      calls += 1;
    }
    assert.equal(dueAt.size, 0);
    assert.ok(calls < 100_000, 'empty time is skipped');
  });

  test('bounds the callbacks of a call and goes on with the next', () => {
    const wheel = new TimerWheel({ tickMs: 1, startMs: 0 });
    for (let row = 1; row <= 1_000; row++) wheel.schedule(row, 10);
    const fired: number[] = [];
    const onDue = (row: number): void => { fired.push(row); };
    assert.equal(wheel.advance(9.9, onDue, 5_000), 0);
    assert.equal(wheel.advance(10, onDue, 300), 300);
    assert.ok(wheel.nextDueMs() <= 10, 'says that more is due');
    assert.equal(wheel.advance(10, onDue, 300), 300);
    assert.equal(wheel.advance(10, onDue, 5_000), 400);
    assert.deepEqual(fired, Array.from({ length: 1_000 }, (_, i) => i + 1));
  });

  test('bounds the work of a call when very many rows share a far deadline', () => {
    const wheel = new TimerWheel({ tickMs: 1, startMs: 0 });
    const rows = 50_000;
    const dueMs = 5 * DAY_MS;
    for (let row = 1; row <= rows; row++) wheel.schedule(row, dueMs + (row % 7));
    wheel.schedule(rows + 1, dueMs + 3);
    wheel.cancel(77);
    const fired: number[] = [];
    let calls = 0;
    while (wheel.nextDueMs() <= dueMs + 6) {
      wheel.advance(dueMs + 6, (row) => fired.push(row), 1_000_000);
      calls += 1;
    }
    assert.ok(calls > rows / 4096, 'dealing out is spread over calls');
    assert.equal(fired.length, rows);
    for (let i = 1; i < fired.length; i++) {
      const before = fired[i - 1] ?? 0;
      const row = fired[i] ?? 0;
      if (row <= rows && before <= rows) assert.ok(before % 7 < row % 7 || (before % 7 === row % 7 && before < row));
    }
  });

  test('lets the callback reschedule, cancel and add rows', () => {
    const wheel = new TimerWheel({ tickMs: 10, startMs: 0 });
    wheel.schedule(1, 10);
    wheel.schedule(2, 10);
    wheel.schedule(3, 10);
    const fired: number[] = [];
    wheel.advance(25, (row) => {
      fired.push(row);
      assert.ok(!wheel.isScheduled(row));
      if (row !== 1) return;
      wheel.cancel(2);
      wheel.schedule(1, 100);
      wheel.schedule(4, 0);
      wheel.schedule(5, 15);
    }, 100);
    assert.deepEqual(fired, [1, 3, 4, 5]);
    assert.equal(wheel.nextDueMs() <= 100, true);
    assert.deepEqual([wheel.isScheduled(1), wheel.size], [true, 1]);
  });

  test('takes rows in the tens of millions one page at a time, and months of uptime', () => {
    const wheel = new TimerWheel({ tickMs: 1, startMs: 0 });
    const fired: number[] = [];
    const onDue = (row: number): void => { fired.push(row); };
    wheel.advance(400 * DAY_MS, onDue, 10);
    wheel.schedule(50_000_000, 400 * DAY_MS + 30 * DAY_MS);
    wheel.schedule(3, 400 * DAY_MS + 1);
    assert.ok(!wheel.isScheduled(49_999_999));
    wheel.advance(430 * DAY_MS - 1, onDue, 10);
    assert.deepEqual(fired, [3]);
    wheel.advance(430 * DAY_MS, onDue, 10);
    assert.deepEqual(fired, [3, 50_000_000]);
    assert.throws(() => { wheel.schedule(0, 1); }, /a row is from 1/);
  });
});
