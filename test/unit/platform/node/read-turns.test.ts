/** Connections whose reads cost too much take turns: a turn of the loop has a bound, and nobody is left out. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { ReadTurns } from '../../../../src/platform/node/read-turns.js';
import { StreamServer } from '../../../../src/platform/node/server-socket.js';
import type { ServerConnection } from '../../../../src/platform/transport.js';

const nextTurn = (): Promise<void> => new Promise((resolve) => { setImmediate(resolve); });

class World {
  nowMs = 0;
  readonly turns = new ReadTurns(() => this.nowMs);
  readonly wentOn: string[] = [];
  readonly #all = new Map<string, { goOn(): void }>();

  /** A read of it that takes so long; whether it rests. */
  read(name: string, ms: number): boolean {
    this.nowMs += ms;
    return this.turns.onRead(this.of(name));
  }

  of(name: string): { goOn(): void } {
    const known = this.#all.get(name) ?? { goOn: () => { this.wentOn.push(name); } };
    this.#all.set(name, known);
    return known;
  }
}

describe('who is read from', () => {
  test('rests when the reads of a turn have taken twenty milliseconds, and goes on in the next one', async () => {
    const world = new World();
    assert.deepEqual([world.read('a', 5), world.read('a', 10), world.read('b', 9)], [false, false, false]);
    assert.deepEqual([world.read('a', 1), world.read('b', 0), world.read('c', 1)], [true, true, true]);
    assert.deepEqual(world.wentOn, []);
    await nextTurn();
    assert.deepEqual(world.wentOn, ['a', 'b', 'c']);
    assert.equal(world.read('a', 50), false, 'a turn begins with its first read');
    assert.equal(world.read('a', 20), true);
  });

  test('goes on with as many as a turn has time for, by what their reads have taken, in the order in which they rest', async () => {
    const world = new World();
    world.read('a', 1);
    for (const [name, ms] of [['a', 20], ['b', 14], ['c', 8], ['d', 30], ['e', 1]] as const) assert.equal(world.read(name, ms), true);
    world.turns.forget(world.of('e'));
    await nextTurn();
    assert.deepEqual(world.wentOn, ['a']);
    await nextTurn();
    assert.deepEqual(world.wentOn, ['a', 'b']);
    await nextTurn();
    assert.deepEqual(world.wentOn, ['a', 'b', 'c']);
    await nextTurn();
    await nextTurn();
    assert.deepEqual(world.wentOn, ['a', 'b', 'c', 'd']);
  });
});

describe('who holds what it has read', () => {
  test('is asked to wait before, and has its turn behind those who waited', async () => {
    const world = new World();
    assert.equal(world.turns.mayRead(world.of('a')), true);
    world.nowMs += 20;
    for (const name of ['a', 'b', 'c']) assert.equal(world.turns.mayRead(world.of(name)), false);
    const taken: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      world.of(name).goOn = () => {
        if (!world.turns.mayRead(world.of(name))) return;
        taken.push(name);
        world.nowMs += 15;
        world.turns.rest(world.of(name));
      };
    }
    await nextTurn();
    assert.deepEqual(taken, ['a', 'b'], 'two of them take what a turn has');
    await nextTurn();
    assert.deepEqual(taken, ['a', 'b', 'c', 'a']);
    for (const name of ['a', 'b', 'c']) world.turns.forget(world.of(name));
  });

  test('what it took is not charged to who is read behind it', async () => {
    const world = new World();
    for (let i = 0; i < 5; i++) {
      assert.equal(world.turns.mayRead(world.of('wire')), true);
      world.nowMs += 4;
    }
    assert.equal(world.turns.mayRead(world.of('wire')), false);
    for (const name of ['a', 'b']) assert.equal(world.read(name, 1), true);
    await nextTurn();
    assert.deepEqual(world.wentOn, ['wire', 'a', 'b'], 'all of them take less than a turn has');
  });

  test('is not asked any more when another one has ended it in its turn', async () => {
    const world = new World();
    for (const name of ['a', 'b']) world.turns.rest(world.of(name));
    world.of('a').goOn = () => {
      world.wentOn.push('a');
      world.turns.forget(world.of('b'));
    };
    for (let i = 0; i < 3; i++) await nextTurn();
    assert.deepEqual(world.wentOn, ['a']);
  });
});

test('a connection that rests is read to its end, also when its owner pauses it meanwhile', { timeout: 30_000 }, async (t) => {
  // What comes before makes the window of the connection large: then much waits in the kernel.
  const [BEFORE, COSTLY, OCTETS] = [8_000_000, 30 * 65_536, 16_000_000];
  let got = 0;
  let inTurn = 0;
  let most = 0;
  let own: ServerConnection | undefined;
  const server = new StreamServer({ connectionsMax: 10, backlog: 10, tls: undefined }, (connection) => {
    own = connection;
    return {
      onOpen: () => undefined, onDrain: () => undefined, onEnd: () => undefined, onSecure: () => undefined, onClose: () => undefined,
      onData: (bytes) => {
        got += bytes.length;
        if (got < BEFORE || got > BEFORE + COSTLY) return;
        if (inTurn++ === 0) setImmediate(() => { inTurn = 0; });
        most = Math.max(most, inTurn);
        const endMs = performance.now() + 12;
        while (performance.now() < endMs);
      },
    };
  });
  t.after(() => { server.close(); });
  const socket = connect(await server.listen('127.0.0.1', 0), '127.0.0.1');
  await once(socket, 'connect');
  socket.write(Buffer.alloc(OCTETS));
  while (got <= BEFORE) await nextTurn();
  own?.pause();
  const before = got;
  for (let i = 0; i < 20; i++) await nextTurn();
  assert.equal(got, before);
  own?.resume();
  while (got < OCTETS) await nextTurn();
  assert.ok(most <= 3, `${String(most)} reads in a turn`);
  socket.destroy();
});
