/**
 * A body that is damaged in the holder's memory after its 250 (docs/decisions/0027): stores refuse to have it from there, so that
 * no sound copy is lost for it; a takeover reads a sound one.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkAll } from './checks.js';
import { coreOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const REFUSED = 'a store refused what a partition changed';

/** Flips a bit of the body in memory. */
function damage(world: World, messageId: number): void {
  const { entries, registry } = coreOf(world);
  const [queue] = registry.byName('q1');
  const row = entries.table.index.find(messageId, queue?.handle ?? 0);
  const body = entries.contents.segments.read(entries.table.slot.get(row));
  body[0] = (body[0] ?? 0) ^ 1;
}

/** When the store that is filled refused it. */
function refusals(world: World): readonly number[] {
  return world.log.lines.filter(({ text, fields }) => text === REFUSED && fields['store'] === 'store-b' && fields['reason'] === 'CHECKSUM').map(({ atMs }) => atMs);
}

/** A partition with one sound copy; that of the other store is to be filled from a memory with a damaged body. */
function damaged(): { world: World; letter: Letter } {
  const world = World.started({ queues: [{ name: 'q1' }], partitions: 1 });
  world.hops.script = () => 'unreachable';
  const [letter] = world.submitMany(20, ['q1']);
  world.run(100);
  assert.ok(letter?.outcome === COMMITTED);
  damage(world, letter.id);
  world.store('b').kill();
  world.until(() => world.mirror('q1').memberCount === 1, 20_000, 'one copy');
  world.store('b').start();
  world.until(() => refusals(world).length === 1, 10_000, 'that it is refused');
  return { world, letter };
}

function judged(world: World): void {
  world.hops.script = () => 'accept';
  world.untilQuiet();
  world.assertSameContent();
  checkAll(world.letters, world.queueNames);
}

describe('a body that is damaged in the memory of its holder', () => {
  test('is refused by a store once a second; the sound copy and the links stay, mail goes on, a takeover mends it', () => {
    const { world } = damaged();
    const partition = world.mirror('q1');
    const before = world.log.lines.length;
    world.run(10_000);
    const times = refusals(world);
    assert.ok(times.length >= 9 && times.length <= 12, String(times));
    assert.deepEqual([partition.memberCount, partition.inSyncCount], [1, 1]);
    assert.deepEqual(world.log.lines.slice(before).filter(({ event }) => event === 'link'), []);
    const late = world.submit(['q1']);
    world.until(() => late.outcome === COMMITTED, 2000, 'new mail, on one copy');

    world.gateway.kill();
    world.gateway.start();
    world.until(() => world.isWhole && world.mirror('q1').inSyncCount === 2, 60_000, 'two copies');
    judged(world);
  });

  test('goes out as it is; without it the copy is filled', () => {
    const { world, letter } = damaged();
    letter.content[0] = (letter.content[0] ?? 0) ^ 1;
    world.hops.script = () => 'accept';
    world.until(() => letter.arrivals.size === 1, 5000, 'it');
    world.until(() => world.mirror('q1').inSyncCount === 2, 10_000, 'two copies');
    judged(world);
  });
});
