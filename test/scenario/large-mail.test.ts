/**
 * Large messages against the gateway's limit (G7): one stands several times in memory until the mirrors have it: as it
 * arrived, in its queue, and in what goes to the stores. Nothing of that goes past the limit, and what is refused is
 * taken later.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NO_MEMORY } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import { Group } from './group.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const MEBIBYTE = 1024 * 1024;
const LIMIT_BYTES = 32 * MEBIBYTE;
/** The largest that a configuration allows beside this limit. */
const LARGEST_BYTES = LIMIT_BYTES / 5;
const QUEUES = ['q1', 'q2', 'q3', 'q4', 'q5', 'q6', 'q7', 'q8'];

interface Watched {
  readonly world: World;
  /** The most that was used, looked at after every step. */
  readonly most: () => number;
  /** As a connection submits it: what arrived stays counted until the client is answered. */
  submit(names: readonly string[], bytes: number): Letter | undefined;
  run(ms: number): void;
}

function watched(stores: number): Watched {
  const world = World.started({ stores, gatewayMemoryBytes: LIMIT_BYTES, storeMemoryBytes: 1024 * MEBIBYTE, queues: QUEUES.map((name) => ({ name })) });
  const { core } = world.gateway;
  assert.ok(core !== undefined);
  const { memory } = core;
  let most = 0;
  const arrived: { readonly letter: Letter; readonly bytes: number }[] = [];
  const look = (): void => {
    most = Math.max(most, memory.usedBytes);
    for (const one of [...arrived]) {
      if (one.letter.outcome === 0) continue;
      core.release(one.bytes);
      arrived.splice(arrived.indexOf(one), 1);
    }
  };
  return {
    world,
    most: () => most,
    submit: (names, bytes) => {
      if (!core.reserve(bytes)) return undefined;
      const letter = world.submit(names, { bytes });
      arrived.push({ letter, bytes });
      look();
      return letter;
    },
    run: (ms) => {
      const end = world.scheduler.nowMs + ms;
      while (world.scheduler.nowMs < end) {
        assert.ok(world.scheduler.step());
        look();
      }
    },
  };
}

/** Sends until nothing more is taken, lets the next hops take it, and sends once more. */
function fillAndEmpty({ world, most, submit, run }: Watched, names: readonly string[], bytes: number): void {
  world.hops.script = () => 'defer';
  let refused = 0;
  let taken = 0;
  while (refused < 3) {
    const letters = [submit(names, bytes), submit(names, bytes)];
    run(200);
    for (const letter of letters) {
      if (letter?.outcome === COMMITTED) taken += 1;
      else refused += 1;
      assert.ok(letter === undefined || letter.outcome === COMMITTED || letter.outcome === NO_MEMORY, `outcome ${String(letter?.outcome)}`);
    }
  }
  assert.ok(taken > 0, 'an empty gateway takes it');
  assert.ok(most() <= LIMIT_BYTES, `${String(most())} of ${String(LIMIT_BYTES)} bytes, ${String(taken)} messages`);
  world.hops.script = () => 'accept';
  run(5000);
  const after = submit(names, bytes);
  run(2000);
  assert.equal(after?.outcome, COMMITTED, 'an empty one takes it again');
  checkNoLoss(world.letters);
  checkNoDuplicates(world.letters);
}

describe('the limit of a gateway holds', () => {
  for (const [what, names] of [['one queue', ['q1']], ['two queues', ['q1', 'q2']], ['many queues', QUEUES]] as const) {
    test(`with messages of the largest size to ${what}`, () => {
      fillAndEmpty(watched(2), names, LARGEST_BYTES);
    });
  }

  test('with messages to many queues whose mirrors lie at different pairs of stores', () => {
    fillAndEmpty(watched(4), QUEUES, LARGEST_BYTES / 4);
  });

  test('with many messages that end in one turn', () => {
    const all = watched(2);
    all.world.hops.script = () => 'defer';
    for (let i = 0; i < 400; i++) all.submit(['q1'], 100_000);
    all.run(1000);
    assert.ok(all.most() <= LIMIT_BYTES, `${String(all.most())} of ${String(LIMIT_BYTES)} bytes`);
  });

  for (const [what, names] of [['many queues with a large message each', QUEUES], ['one queue of large messages', QUEUES.map(() => 'q1')]] as const) {
    test(`when it takes over ${what}, and leaves alone what new mail may use`, () => {
      const largestBytes = 0.18 * LIMIT_BYTES;
      const group = Group.started({ queues: QUEUES.map((name) => ({ name })), memoryBytes: { 'gw-2': LIMIT_BYTES }, storeMemoryBytes: 1024 * MEBIBYTE, largestBytes });
      group.hops.script = () => 'hang';
      for (const name of names) {
        const letter = group.submit('gw-1', [name], 'alice@senders.example', largestBytes);
        group.until(() => letter.outcome === COMMITTED, 'its commit');
      }
      group.gateway('gw-1').kill();
      group.hops.script = () => 'defer';
      let most = 0;
      const look = (): void => { most = Math.max(most, group.gateway('gw-2').core?.memory.usedBytes ?? 0); };
      group.until(() => {
        look();
        return group.log.count('a partition is known') > 0;
      }, 'no more room');
      group.hops.script = () => 'accept';
      group.until(() => {
        look();
        return group.letters.delivered === names.length;
      }, 'all deliveries');
      assert.ok(most <= 0.8 * LIMIT_BYTES, `${String(most)} of ${String(LIMIT_BYTES)} bytes`);
      checkNoLoss(group.letters);
      checkNoDuplicates(group.letters);
    });
  }

  test('when the next hop defers all that fits of a queue that was taken over: it is tried again, and makes room for the rest', () => {
    const group = Group.started({ memoryBytes: { 'gw-2': LIMIT_BYTES }, storeMemoryBytes: 1024 * MEBIBYTE, largestBytes: LARGEST_BYTES });
    group.hops.script = () => 'hang';
    for (let i = 0; i < 8; i++) {
      const letter = group.submit('gw-1', ['q1'], 'alice@senders.example', LARGEST_BYTES);
      group.until(() => letter.outcome === COMMITTED, 'its commit');
    }
    group.gateway('gw-1').kill();
    group.hops.script = () => 'defer';
    group.until(() => group.log.count('a partition is known') > 0, 'no more room');
    group.run(500);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 8, 'all deliveries');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
    checkOrder(group.letters, 'q1');
  });

  test('and large mail that was taken over is delivered by a gateway that mail for a dead next hop has filled since', () => {
    const bytes = 0.15 * LIMIT_BYTES;
    const group = Group.started({
      queues: ['q1', 'dead'].map((name) => ({ name })), memoryBytes: { 'gw-2': LIMIT_BYTES },
      storeMemoryBytes: 1024 * MEBIBYTE, largestBytes: LARGEST_BYTES,
    });
    group.hops.script = () => 'defer';
    for (let i = 0; i < 8; i++) {
      const letter = group.submit('gw-1', ['q1'], 'alice@senders.example', bytes);
      group.until(() => letter.outcome === COMMITTED, 'its commit');
    }
    group.gateway('gw-1').kill();
    group.until(() => group.log.count('a partition is known') > 0, 'the takeover');
    // Bodies that were here go when their attempt has ended, and new mail takes their room.
    for (let fills = 0; fills < 10; fills++) {
      for (let outcome: number = COMMITTED; outcome === COMMITTED;) {
        const letter = group.submit('gw-2', ['dead'], 'bob@senders.example', 0.04 * LIMIT_BYTES);
        group.until(() => letter.outcome !== 0, 'its reply');
        ({ outcome } = letter);
      }
      group.run(2000);
    }
    group.hops.script = ({ queueName }) => (queueName === 'dead' ? 'defer' : 'accept');
    group.until(() => group.letters.delivered === 8, 'all deliveries but those of the dead next hop', 120_000);
    assert.ok((group.gateway('gw-2').core?.memory.usedBytes ?? 0) > 0.7 * LIMIT_BYTES, 'it is still as full');
  });

  test('with a mirror that acknowledges nothing', () => {
    const all = watched(2);
    const { world } = all;
    world.holdAnswers(world.store('a'), true);
    for (let i = 0; i < 20; i++) {
      all.submit(['q1'], LARGEST_BYTES / 3);
      all.run(50);
    }
    assert.ok(all.most() <= LIMIT_BYTES, `${String(all.most())} of ${String(LIMIT_BYTES)} bytes`);
  });
});
