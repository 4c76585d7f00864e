/**
 * A next hop that says much, to messages with many recipients, at full stores (G7): its replies take no memory that was
 * not paid for, no mirror is given up for want of it, mail of other queues ends, and all drains when it heals.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NO_MEMORY } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { World } from './world.js';
import type { WorldOptions } from './world.js';

const MEBIBYTE = 1024 * 1024;
const STORE_BYTES = 2 * MEBIBYTE;
const RECIPIENTS = 40;
/** Says a gateway of a change that a store did not apply. */
const REFUSED = 'a store refused what a partition changed';

/** Mail of a queue that waits for its next hop, and of a verbose one that takes all that is left. */
function full(options: WorldOptions): World {
  const world = World.started({ queues: [{ name: 'calm' }, { name: 'verbose', concurrency: 20 }], storeMemoryBytes: STORE_BYTES, gatewayMemoryBytes: 64 * MEBIBYTE, ...options });
  world.hops.words = ({ address, earlier }) => `${String(earlier)} ${address} `.padEnd(350, 'mailbox is busy ');
  world.hops.script = () => 'defer';
  world.submitMany(100, ['calm']);
  world.run(300);
  for (let last = 0; last !== NO_MEMORY;) {
    const letter = world.submit(['verbose'], { recipients: RECIPIENTS, bytes: 300 });
    world.run(20);
    last = letter.outcome;
    assert.ok(last === 0 || last === COMMITTED || last === NO_MEMORY, `answered ${String(last)}`);
  }
  return world;
}

/** Runs on, and holds at each step that memory is within its limits and all mirrors count. */
function runWell(world: World, ms: number): void {
  const end = world.scheduler.nowMs + ms;
  while (world.scheduler.nowMs < end) {
    world.run(100);
    const core = world.gateway.core ?? assert.fail('the gateway lives');
    assert.ok(core.memory.usedBytes <= core.memory.limitBytes, `the gateway has ${String(core.memory.usedBytes)}`);
    for (const { id, store } of world.stores) {
      assert.ok(store !== undefined && store.admission.usedBytes <= store.admission.limitBytes, `${id} is beyond its limit`);
    }
    assert.deepEqual(world.log.lines.filter(({ text }) => text === REFUSED).map(({ fields }) => fields), []);
    for (const partition of core.mirrors.all()) assert.deepEqual([partition.memberCount, partition.inSyncCount], [2, 2], partition.name);
  }
}

function count(world: World, queue: string): number {
  return (world.gateway.core?.registry.byName(queue) ?? []).reduce((sum, { length }) => sum + length, 0);
}

describe('a verbose next hop', () => {
  for (const [name, options] of [['full stores', {}], ['a full gateway', { storeMemoryBytes: 256 * MEBIBYTE, gatewayMemoryBytes: 2 * MEBIBYTE }]] as const) {
    test(`that defers takes nothing beyond what was paid: ${name}`, () => {
      const world = full(options);
      const letters = world.letters.count(COMMITTED);
      assert.ok(letters > 200, String(letters));
      runWell(world, 10_000);
      world.hops.script = ({ queueName }) => (queueName === 'calm' ? 'accept' : 'defer');
      runWell(world, 5_000);
      assert.equal(count(world, 'calm'), 0, 'the neighbour ends beside it');
      world.hops.script = () => 'accept';
      runWell(world, 10_000);
      world.untilQuiet();
      world.assertSameContent();
      checkNoLoss(world.letters);
      checkNoDuplicates(world.letters);
    });
  }

  test('that refuses some and defers others at full stores: each is reported, and all drains', () => {
    const world = full({});
    world.hops.script = ({ queueName, address }) => (queueName !== 'verbose' ? 'defer' : address.startsWith('1') ? 'reject' : 'defer');
    runWell(world, 15_000);
    world.hops.script = ({ queueName, address }) => (queueName === 'verbose' && address.startsWith('1') ? 'reject' : 'accept');
    runWell(world, 15_000);
    world.untilQuiet(600_000);
    checkNoLoss(world.letters);
  });

  test('is heard again after a takeover: the texts come back with the entries, and with them gone the codes are left', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'defer';
    world.hops.words = ({ address }) => `${address} is busy`;
    world.submit(['q1'], { recipients: 3 });
    world.run(500);
    const heard = (): readonly unknown[] => {
      const core = world.gateway.core ?? assert.fail('the gateway lives');
      const row = core.registry.byName('q1').at(-1)?.first ?? assert.fail('a message');
      assert.deepEqual(core.noteOf(row, 3).results.map(({ code, enhanced }) => `${String(code)} ${enhanced}`), ['451 4.3.0', '451 4.3.0', '451 4.3.0']);
      return [0, 1, 2].map((recipient) => core.textsOf(row).get(recipient));
    };
    const texts = heard();
    assert.deepEqual(texts, [0, 1, 2].map((i) => ({ text: `${String(i)}@q1.example is busy`, host: 'mx.hop.example' })));
    world.hops.script = () => 'hang';
    world.gateway.kill();
    world.gateway.start();
    world.until(() => count(world, 'q1') === 1);
    assert.deepEqual(heard(), texts);
    for (const { store } of world.stores) for (let row = 1; row < 10; row++) store?.texts.drop(row);
    world.gateway.kill();
    world.gateway.start();
    world.until(() => count(world, 'q1') === 1);
    assert.deepEqual(heard(), [undefined, undefined, undefined]);
  });
});
