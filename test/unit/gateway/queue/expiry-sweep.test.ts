/** The walk that finds what is over: bounded in each tick, whatever the order and the lifetimes are, and whatever the wall clock does. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EntryState, EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import { ExpirySweep } from '../../../../src/gateway/queue/expiry-sweep.js';
import { WallFrame } from '../../../../src/gateway/queue/wall-frame.js';

const START_WALL_MS = 1_750_000_000_000;
const LONGEST_RETRY_MS = 3_600_000;
const DELAY_MS = 400_000;

class Bench {
  nowMs = 0;
  aheadMs = 0;
  readonly table = new EntryTable(1);
  readonly expired: number[] = [];
  readonly delayed: number[] = [];
  readonly waiting: number[] = [];
  /** Whether the next hop of all of them is. */
  isDown = true;
  /** What becomes of a delay that is to be told. */
  isTold = true;
  readonly told: unknown[] = [];
  readonly frame = new WallFrame({ nowMs: () => this.nowMs, wallMs: () => START_WALL_MS + this.nowMs + this.aheadMs });
  /** What becomes of an entry that is over. */
  onExpired = (row: number): void => { this.table.transition(row, EntryState.FREE); };
  readonly sweep = new ExpirySweep({ longestRetryMs: LONGEST_RETRY_MS, delayMs: DELAY_MS }, {
    frame: this.frame,
    table: this.table,
    log: { debug: () => {}, info: () => {}, error: () => {}, warn: (event, _text, fields) => { this.told.push([event, fields?.['step_s']]); } },
    onExpired: (row) => {
      this.expired.push(row);
      this.onExpired(row);
    },
    onWaiting: (row) => {
      this.waiting.push(row);
      if (this.isDown) this.table.waitTold.set(row, 1);
      return this.isDown ? 1 : 0;
    },
    onDelayed: (row) => {
      this.delayed.push(row);
      return this.isTold;
    },
  });

  add(lifeMs: number): number {
    const row = this.table.take(this.table.highestRow + 1, 1);
    this.table.arrivalSeconds.set(row, Math.floor(this.frame.wallMs() / 1000));
    this.table.expirySeconds.set(row, Math.ceil((this.frame.wallMs() + lifeMs) / 1000));
    this.table.transition(row, EntryState.READY);
    return row;
  }

  tick(ms = 100): this {
    this.nowMs += ms;
    this.sweep.tick(this.nowMs);
    return this;
  }
}

describe('the sweep', () => {
  test('finds a short life behind longer ones', () => {
    const bench = new Bench();
    for (let i = 0; i < 500; i++) bench.add(1_000_000);
    const short = bench.add(1000);
    bench.add(1_000_000);
    assert.deepEqual(bench.tick(2000).expired, [short]);
    assert.deepEqual(bench.tick(2000).expired, [short], 'once');
  });

  test('finds a delay once, when it is told, and again until it is', () => {
    const bench = new Bench();
    const row = bench.add(1_000_000);
    assert.deepEqual(bench.tick(DELAY_MS - 2000).delayed, []);
    bench.isTold = false;
    assert.deepEqual(bench.tick(4000).tick().delayed, [row, row]);
    bench.isTold = true;
    assert.deepEqual(bench.tick().tick().delayed, [row, row, row]);
    assert.deepEqual(bench.expired, []);
  });

  test('tells delays behind a hundred of which none can be told now', () => {
    const bench = new Bench();
    bench.isTold = false;
    const rows = Array.from({ length: 120 }, () => bench.add(1_000_000));
    const counts = [DELAY_MS + 2000, 100, 100].map((ms) => bench.tick(ms).delayed.length);
    assert.deepEqual(counts, [50, 100, 150], 'so many in a tick');
    assert.deepEqual([...new Set(bench.delayed)], rows);
    assert.deepEqual(bench.delayed.slice(120), rows.slice(0, 30));
  });

  test('comes to the delays of a large table in one round, those of one part before those of the next', () => {
    const bench = new Bench();
    bench.isTold = false;
    const rows = Array.from({ length: 20_000 }, () => bench.add(1_000_000));
    for (let ms = DELAY_MS + 2000, ticks = 0; ticks < 400; ticks++, ms = 100) bench.tick(ms);
    assert.deepEqual(bench.delayed, rows);
  });

  test('tells a delay whose body comes at once: it may be gone when the walk comes by', () => {
    const bench = new Bench();
    bench.isTold = false;
    const rows = Array.from({ length: 200 }, () => bench.add(1_000_000));
    const last = rows.at(-1) ?? 0;
    bench.tick(DELAY_MS + 2000);
    bench.isTold = true;
    bench.sweep.look(last);
    assert.equal(bench.delayed.at(-1), last);
    bench.sweep.look(last);
    assert.equal(bench.delayed.filter((row) => row === last).length, 1, 'once');
    assert.deepEqual(bench.expired, []);
  });

  test('gives what is held no turn, and its delay when it goes on', () => {
    const bench = new Bench();
    const held = Array.from({ length: 60 }, () => bench.add(1_000_000));
    for (const row of held) bench.table.transition(row, EntryState.HELD);
    const row = bench.add(1_000_000);
    assert.deepEqual(bench.tick(DELAY_MS + 2000).tick().delayed, [row]);
    const [first = 0] = held;
    bench.table.transition(first, EntryState.READY);
    assert.deepEqual(bench.tick().tick().delayed, [row, first]);
  });

  test('meets what waits untried for its next hop, and once that is told not again; so many in a tick', () => {
    const bench = new Bench();
    bench.isDown = false;
    const row = bench.add(1_000_000);
    const tried = bench.add(1_000_000);
    bench.table.attempts.set(tried, 1);
    const flying = bench.add(1_000_000);
    bench.table.transition(flying, EntryState.IN_FLIGHT);
    assert.deepEqual(bench.tick(29_000).waiting, [], 'a restart of the next hop is not told');
    assert.deepEqual(bench.tick(1_000).waiting, [row]);
    bench.isDown = true;
    assert.deepEqual(bench.tick().tick().waiting, [row, row]);
    for (let i = 0; i < 500; i++) bench.add(1_000_000);
    bench.waiting.length = 0;
    const counts = [30_000, 100, 100, 100].map((ms) => bench.tick(ms).waiting.length);
    assert.deepEqual(counts, [200, 400, 500, 500]);
  });

  test('tells no delay of what is in flight, or over', () => {
    const bench = new Bench();
    bench.table.transition(bench.add(1_000_000), EntryState.IN_FLIGHT);
    const over = bench.add(1000);
    assert.deepEqual(bench.tick(DELAY_MS + 2000).delayed, []);
    assert.deepEqual(bench.expired, [over]);
  });

  test('goes round a large table within a minute, a part with each tick', () => {
    const bench = new Bench();
    for (let i = 0; i < 5_000_000; i++) bench.table.take(i + 1, 1);
    const last = bench.add(0);
    bench.nowMs += 2000;
    let ticks = 0;
    for (; bench.expired.length === 0 && ticks < 601; ticks++) bench.tick();
    assert.deepEqual(bench.expired, [last]);
    assert.ok(ticks > 500, `one tick does not walk through all of it (${String(ticks)})`);
  });

  test('ends so many with a tick, no more, and comes to those behind them; one that stays is met again', () => {
    const bench = new Bench();
    const rows = Array.from({ length: 1200 }, () => bench.add(0));
    bench.onExpired = () => {};
    const seen: number[] = [];
    for (let ticks = 0; ticks < 3; ticks++) {
      bench.tick(1000);
      assert.ok(bench.expired.length - seen.length <= 500);
      seen.splice(0, seen.length, ...bench.expired);
    }
    assert.deepEqual([...new Set(seen)].sort((a, b) => a - b), rows);
    assert.deepEqual(seen.slice(1200), rows.slice(0, 300));
  });

  test('leaves alone what does not rest', () => {
    const bench = new Bench();
    const row = bench.add(0);
    bench.table.transition(row, EntryState.IN_FLIGHT);
    assert.deepEqual(bench.tick(5000).expired, []);
    bench.table.transition(row, EntryState.READY);
    assert.deepEqual(bench.tick().expired, [row]);
  });

  for (const [name, aheadMs] of [['ahead', 30 * 86_400_000], ['back', -30 * 86_400_000]] as const) {
    test(`ends nothing until the longest retry has passed since the wall clock was set ${name}; then by the time that has passed`, () => {
      const bench = new Bench();
      const row = bench.add(1000);
      const later = bench.add(2 * LONGEST_RETRY_MS);
      bench.tick();
      bench.aheadMs = aheadMs;
      bench.tick(5000);
      assert.deepEqual(bench.tick(LONGEST_RETRY_MS - 1000).expired, []);
      assert.deepEqual(bench.tick(1000).expired, [row]);
      assert.deepEqual(bench.tick(LONGEST_RETRY_MS).expired, [row, later]);
      assert.deepEqual(bench.told, [['clock', aheadMs / 1000]], 'told once');
    });
  }

  test('a clock that is slewed disturbs nobody', () => {
    const bench = new Bench();
    const row = bench.add(60_000);
    for (let i = 0; i < 700; i++) {
      bench.aheadMs += 0.05;
      bench.tick();
    }
    assert.deepEqual(bench.expired, [row]);
    assert.deepEqual(bench.told, []);
  });
});
