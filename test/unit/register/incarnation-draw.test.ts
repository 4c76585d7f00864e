/** Incarnations are drawn once, ordinals are unique in the group, whatever the register loses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { DrawState, IncarnationDraw, isValidDrawTransition } from '../../../src/register/incarnation-draw.js';
import type { IncarnationRecord } from '../../../src/register/records.js';
import { UNKNOWN_STARTS } from '../../../src/register/ordinal-draw.js';
import { decodeIncarnation, decodeOrdinal, encodeIncarnation, encodeOrdinal } from '../../../src/register/records.js';
import { Hand } from './contract.js';
import { SimulatedWorld } from './simulated-world.js';

const NONE: IncarnationRecord = { incarnation: 0, ordinal: -1 };

class Starting {
  readonly draw: IncarnationDraw;
  record: IncarnationRecord | undefined;
  failed = '';

  constructor(world: SimulatedWorld, gatewayId: string, floor = NONE, isBehind = false) {
    this.draw = new IncarnationDraw({ gatewayId, floor, isBehind }, {
      register: world.client(),
      onDrawn: (record) => {
        assert.equal(this.record, undefined);
        this.record = record;
      },
      onFailed: (why) => {
        this.failed = why;
      },
    });
    const tick = (): void => {
      this.draw.tick(world.nowMs());
      world.scheduler.after(100, tick);
    };
    world.scheduler.soon(tick);
  }
}

test('each start of a gateway draws the next incarnation and an ordinal of its own', async () => {
  const world = new SimulatedWorld();
  const drawn: IncarnationRecord[] = [];
  for (const id of ['gw-1', 'gw-2', 'gw-1', 'gw-1', 'gw-2']) {
    const starting = new Starting(world, id);
    await world.until(() => starting.record !== undefined, 'drawn');
    drawn.push(starting.record as IncarnationRecord);
  }
  assert.deepEqual(drawn.map(({ incarnation }) => incarnation), [1, 1, 2, 3, 2]);
  assert.deepEqual(drawn.map(({ ordinal }) => ordinal), [0, 1, 2, 3, 4]);
  assert.deepEqual(decodeIncarnation((await new Hand(world).get('incarnations/gw-1'))?.value ?? ''), {
    incarnation: 3,
    ordinal: 3,
  });
});

test('many that start at once, with answers lost and late: no incarnation and no ordinal twice', async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const world = new SimulatedWorld(seed);
    const draws: Starting[] = [];
    Object.assign(world.register.faults, {
      lostReplies: 0.2,
      lostRequests: 0.1,
      lateRequests: 0.3,
      lateReplies: 0.1,
      lateMs: 15_000,
    });
    // Some die in the middle, and the next process of that id starts.
    for (let i = 0; i < 12; i++) {
      draws.push(new Starting(world, `gw-${String(i % 4)}`));
      world.run(world.prng.below(4_000));
      if (world.prng.below(3) === 0) draws[world.prng.below(draws.length)]?.draw.stop();
    }
    Object.assign(world.register.faults, {
      lostReplies: 0,
      lostRequests: 0,
      lateRequests: 0,
      lateReplies: 0,
    });
    world.run(120_000);
    const records = draws.filter(({ draw }) => draw.state !== DrawState.stopped).map(({ record, draw }) => {
      assert.ok(record !== undefined, `seed ${String(seed)}: not drawn: ${draw.why}`);
      return record;
    });
    assert.equal(
      new Set(records.map(({ ordinal }) => ordinal)).size,
      records.length,
      `seed ${String(seed)}: an ordinal twice`,
    );
    const lives = draws.flatMap((
      { record },
      i,
    ) => (record === undefined ? [] : [`${String(i % 4)} ${String(record.incarnation)}`]));
    assert.equal(new Set(lives).size, lives.length, `seed ${String(seed)}: an incarnation twice`);
  }
});

test('numbers that stores know of are not given out again, nor those of records that stand', async () => {
  const world = new SimulatedWorld();
  const hand = new Hand(world);
  await hand.put('incarnations/gw-9', encodeIncarnation({ incarnation: 4, ordinal: 40 }));
  await hand.put('ordinal', encodeOrdinal({ next: 31 }));
  const one = new Starting(world, 'gw-1', { incarnation: 7, ordinal: 30 });
  await world.until(() => one.record !== undefined, 'drawn');
  assert.deepEqual(one.record, { incarnation: 8, ordinal: 41 });
});

test('a register that was lost, or is an older one: ordinals that others may have drawn are passed over', async () => {
  const world = new SimulatedWorld();
  const hand = new Hand(world);
  const lost = new Starting(world, 'gw-1', { incarnation: 2, ordinal: 99 });
  await world.until(() => lost.record !== undefined, 'drawn');
  assert.deepEqual(lost.record, { incarnation: 3, ordinal: 100 + UNKNOWN_STARTS });
  const next = 101 + UNKNOWN_STARTS;
  assert.deepEqual(decodeOrdinal((await hand.get('ordinal'))?.value ?? ''), { next });
  // This folder knows nothing of it, but stores do.
  const told = new Starting(world, 'gw-1', { incarnation: 9, ordinal: 18 }, true);
  await world.until(() => told.record !== undefined, 'drawn');
  assert.deepEqual(told.record, { incarnation: 10, ordinal: next + UNKNOWN_STARTS });
  const after = new Starting(world, 'gw-1', told.record);
  await world.until(() => after.record !== undefined, 'drawn');
  assert.equal(after.record?.ordinal, next + UNKNOWN_STARTS + 1);
});

test('a record that can not be read, and ordinals that are used up, are for a person', async () => {
  for (
    const [key, value, text] of [
      ['ordinal', 'x', /record ordinal can't be read \(no JSON\)/],
      ['incarnations/gw-1', '{"version":2}', /record incarnations\/gw-1 can't be read \(another version\)/],
      ['incarnations/other', '{}', /record incarnations\/other/],
      ['ordinal', encodeOrdinal({ next: 2 ** 24 }), /all ordinals of this group are used up/],
    ] as const
  ) {
    const world = new SimulatedWorld();
    await new Hand(world).put(key, value);
    const starting = new Starting(world, 'gw-1');
    await world.until(() => starting.failed !== '', 'failed');
    assert.match(starting.failed, text);
    assert.equal(starting.draw.state, DrawState.failed);
  }
});

test('it waits as long as the register is away, and says why', async () => {
  const world = new SimulatedWorld();
  world.register.goAway('refusing');
  const starting = new Starting(world, 'gw-1');
  world.run(60_000);
  assert.equal(starting.record, undefined);
  assert.notEqual(starting.draw.why, '');
  world.register.comeBack();
  await world.until(() => starting.record !== undefined, 'drawn');
});

test('a draw that has ended goes nowhere', () => {
  const states = Object.values(DrawState);
  const arrows = states.flatMap((from) =>
    states.filter((to) => isValidDrawTransition(from, to)).map((to) => `${String(from)}${String(to)}`)
  );
  assert.deepEqual(arrows, ['01', '03', '04', '12', '13', '14']);
});

test('a draw whose answer was lost is known again, and no number is skipped', async () => {
  const world = new SimulatedWorld();
  const starting = new Starting(world, 'gw-1');
  const { register } = world;
  await world.until(() => register.host.map.get('incarnations/gw-1') !== undefined, 'it is written');
  // Its answer is on the way.
  register.goAway('refusing');
  world.run(1_000);
  assert.equal(starting.record, undefined);
  register.comeBack();
  await world.until(() => starting.record !== undefined, 'drawn');
  assert.deepEqual(starting.record, { incarnation: 1, ordinal: 0 });
});
