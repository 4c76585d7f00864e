/**
 * Wall clocks that are set or differ: due times and expiry do not move, here or at whoever takes the queue over
 * (src/gateway/queue/wall-frame.ts, src/base/told-clock.ts).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { decodeNote, freshNote } from '../../src/gateway/queue/note.js';
import { doById, type MessageVerb } from './by-id.js';
import { checkAll } from './checks.js';
import { Group } from './group.js';
import { coreOf, stateOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const HOUR_MS = 3_600_000;
const MONTH_MS = 30 * 24 * HOUR_MS;
const LIFE_MS = 20_000;

function deferring(): World {
  const world = World.started({ lifetimeMs: LIFE_MS });
  world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
  return world;
}

/** Milliseconds that pass until the message is tried again. */
function untilTried(world: World, letter: Letter, boundMs: number): number {
  const before = letter.attempts.get('q1') ?? 0;
  const fromMs = world.scheduler.nowMs;
  world.until(() => (letter.attempts.get('q1') ?? 0) > before, boundMs, 'another attempt');
  return world.scheduler.nowMs - fromMs;
}

describe('a wall clock that is set', () => {
  for (const [name, aheadMs] of [['a month ahead', MONTH_MS], ['a month back', -MONTH_MS]] as const) {
    test(`${name}, and right again: retries stay a second apart, and the message ends when its lifetime is over`, () => {
      const world = deferring();
      const letter = world.submit(['q1']);
      world.run(500);
      world.gateway.wallAheadMs = aheadMs;
      assert.ok(untilTried(world, letter, 2000) <= 1300);
      world.run(100);
      world.gateway.wallAheadMs = 0;
      assert.ok(untilTried(world, letter, 2000) <= 1300);
      world.run(LIFE_MS - 5000);
      assert.equal(letter.reports.size, 0);
      world.run(5000);
      world.untilQuiet();
      assert.equal(letter.reports.size, 1);
      checkAll(world.letters, world.queueNames);
    });

    test(`${name} when the message was taken, right at the next process: due within a retry, expiry a lifetime after it was taken`, () => {
      const world = new World({ lifetimeMs: LIFE_MS });
      world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
      for (const store of world.stores) store.start();
      world.gateway.wallAheadMs = aheadMs;
      world.gateway.start();
      world.until(() => world.gateway.core?.accepting === true);
      const letter = world.submit(['q1']);
      world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED);
      world.run(400);
      world.gateway.kill();
      world.gateway.wallAheadMs = 0;
      world.gateway.start();
      const takenMs = world.scheduler.nowMs;
      assert.ok(untilTried(world, letter, 3000) <= 1500);
      world.run(LIFE_MS - 3000 - (world.scheduler.nowMs - takenMs));
      assert.equal(letter.reports.size, 0, 'not before its time');
      world.run(5000);
      world.untilQuiet();
      assert.equal(letter.reports.size, 1);
      checkAll(world.letters, world.queueNames);
    });
  }

  test('nothing expires until the longest retry has passed, and the log says so', () => {
    const world = deferring();
    world.submit(['q1']);
    world.run(500);
    world.gateway.wallAheadMs = HOUR_MS;
    world.run(500);
    const told = world.log.lines.filter(({ event }) => event === 'clock');
    assert.deepEqual(told.map(({ fields }) => [fields['step_s'], fields['rests_s']]), [[3600, 1]]);
  });

  test('back over a restart: no message id is drawn twice', () => {
    const world = deferring();
    const ids = new Set<number>();
    for (let start = 0; start < 3; start++) {
      for (const letter of world.submitMany(50, ['q1', 'q2'])) ids.add(letter.id);
      world.run(500);
      world.gateway.kill();
      world.gateway.wallAheadMs -= HOUR_MS;
      world.gateway.start();
      world.until(() => world.gateway.core?.accepting === true);
    }
    assert.equal(ids.size, 150);
  });
});

describe('a taker whose clock differs', () => {
  for (const [name, aheadMs] of [['ahead by more than a lifetime', MONTH_MS], ['behind by more than a lifetime', -MONTH_MS]] as const) {
    test(`${name}: it delivers what it takes over, bounces none of it, and retries as ever`, () => {
      const group = new Group();
      for (const store of group.stores) store.start();
      group.gateway('gw-2').wallAheadMs = aheadMs;
      group.gateway('gw-1').start();
      group.gateway('gw-2').start();
      group.run(group.leaseMs + 500);
      group.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
      const letters = Array.from({ length: 20 }, () => group.submit('gw-1', ['q1']));
      group.until(() => letters.every((letter) => letter.attempts.get('q1') === 1), 'the first attempts');
      group.run(300);
      group.gateway('gw-1').kill();
      group.until(() => group.served('gw-2', 'gw-1').length > 0, 'the takeover');
      group.until(() => letters.every((letter) => letter.attempts.get('q1') === 2), 'the second attempts', 3000);
      group.hops.script = () => 'accept';
      group.until(() => letters.every((letter) => letter.arrivals.size === 1), 'the deliveries', 3000);
      assert.equal(group.hops.reports.length, 0);
      assert.ok(letters.every((letter) => letter.reports.size === 0));
      assert.ok(group.log.lines.some(({ event, fields }) => event === 'clock' && Math.abs(Number(fields['ahead_s']) - aheadMs / 1000) <= 2));
    });
  }
});

describe('an operator of a taker whose clock differs', () => {
  const LIFE_SECONDS = 3600;
  const HELD_MS = 600_000;

  for (const [name, aheadMs] of [['ahead', MONTH_MS], ['behind', -MONTH_MS]] as const) {
    test(`${name}: what is held, before or after, and what is delayed lives as long as it would elsewhere`, () => {
      const group = new Group({ lifetimeMs: LIFE_SECONDS * 1000 });
      for (const store of group.stores) store.start();
      group.gateway('gw-2').wallAheadMs = aheadMs;
      group.gateway('gw-1').start();
      group.gateway('gw-2').start();
      group.run(group.leaseMs + 500);
      group.hops.script = () => 'defer';
      const letters = [1, 2, 3, 4].map(() => group.submit('gw-1', ['q1']));
      const [before, after, delayed, ended] = letters;
      assert.ok(before !== undefined && after !== undefined && delayed !== undefined && ended !== undefined);
      const order = (id: string, verb: MessageVerb, letter: Letter, untilWallMs = 0): void => {
        const core = coreOf({ gateway: group.gateway(id) });
        group.until(() => stateOf(core, 'q1', letter) !== EntryState.IN_FLIGHT, 'it is not in hand');
        const done = doById(core, verb, letter.id, undefined, untilWallMs);
        assert.deepEqual(done.whys, ['']);
        group.until(() => done.isKept, 'it is kept');
      };
      /** It ends so many seconds from now. */
      const leftAt2 = (letter: Letter, seconds: number): void => {
        const core = coreOf({ gateway: group.gateway('gw-2') });
        const [place] = [...core.registry.placesOf(letter.id)];
        assert.ok(place !== undefined);
        const note = decodeNote(core.entries.note(place.row)) ?? freshNote(1);
        const left = (core.holds.expiryWallMs(place.row, note) - core.frame.wallMs()) / 1000;
        assert.ok(Math.abs(left - seconds) < 60, `${String(left)} s, not ${String(seconds)}`);
      };
      group.until(() => letters.every((letter) => letter.attempts.get('q1') === 1), 'the first attempts');
      order('gw-1', 'hold', before);
      group.gateway('gw-1').kill();
      group.until(() => group.served('gw-2', 'gw-1').length > 0, 'the takeover');
      group.until(() => letters.every((letter) => letter === before || (letter.attempts.get('q1') ?? 0) > 1), 'the second attempts', 3000);
      const nowWallMs = group.gateway('gw-2').wallMs();
      order('gw-2', 'hold', after);
      for (const letter of [delayed, ended]) order('gw-2', 'delay', letter, nowWallMs + 2 * HELD_MS);
      for (let held = 0; held < 2; held++) {
        for (const letter of [before, after]) leftAt2(letter, LIFE_SECONDS);
        for (const letter of [delayed, ended]) leftAt2(letter, LIFE_SECONDS + (2 - held) * HELD_MS / 1000);
        if (held === 0) group.run(HELD_MS);
      }
      for (const letter of [before, after, ended]) order('gw-2', 'release', letter);
      for (const letter of [before, after, ended]) leftAt2(letter, LIFE_SECONDS);
      group.run(HELD_MS);
      for (const letter of [before, after, ended]) leftAt2(letter, LIFE_SECONDS - HELD_MS / 1000);
      order('gw-2', 'hold', ended);
      group.run(HELD_MS);
      leftAt2(ended, LIFE_SECONDS - HELD_MS / 1000);
      assert.ok(letters.every(({ reports }) => reports.size === 0));
    });
  }
});

describe('an entry that comes back from stores that know no clock any more', () => {
  function back(answer: 'unreachable' | 'defer', aheadMs: number): { readonly world: World; readonly letter: Letter } {
    const world = World.started({ lifetimeMs: LIFE_MS });
    world.hops.script = () => answer;
    const letter = world.submit(['q1']);
    world.run(200);
    world.gateway.kill();
    for (const store of world.stores) for (const account of store.store?.accounts() ?? []) account.clock.note(0, 0);
    world.gateway.wallAheadMs = aheadMs;
    world.gateway.start();
    return { world, letter };
  }

  test('has the time of a retry before it is bounced, though our clock is far ahead', () => {
    const { world, letter } = back('unreachable', MONTH_MS);
    world.until(() => (world.gateway.core?.registry.byName('q1')[0]?.length ?? 0) > 0);
    world.run(300);
    world.hops.script = () => 'accept';
    world.until(() => letter.arrivals.size === 1, 3000);
    world.untilQuiet();
    checkAll(world.letters, world.queueNames);
    assert.equal(letter.reports.size, 0);
  });

  test('is due within a retry, though our clock is far behind', () => {
    const { world, letter } = back('defer', -MONTH_MS);
    world.until(() => (letter.attempts.get('q1') ?? 0) === 2, 3000);
  });
});
