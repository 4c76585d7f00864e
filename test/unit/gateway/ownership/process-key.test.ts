/** The key of a process by itself: its arrows, and what it does while a register answers in any order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KeyState, ProcessKey, isValidKeyTransition } from '../../../../src/gateway/ownership/process-key.js';
import type { KeyStateValue, OtherProcess } from '../../../../src/gateway/ownership/process-key.js';
import { KeptLog } from '../../../scenario/ports.js';
import { Hand } from '../../register/contract.js';
import { SimulatedWorld } from '../../register/simulated-world.js';

const { OPENING, LOOKING, WRITING, HELD, TYING, CHECKING, WAITING, TAKEN, CLOSED } = KeyState;

test('the arrows of a key', () => {
  const arrows: Readonly<Record<KeyStateValue, readonly KeyStateValue[]>> = {
    [OPENING]: [LOOKING],
    [LOOKING]: [WRITING, HELD, WAITING, TAKEN, OPENING],
    [WRITING]: [HELD, LOOKING, OPENING],
    [HELD]: [TYING, CHECKING, OPENING],
    [TYING]: [HELD, CHECKING, OPENING],
    [CHECKING]: [HELD, OPENING],
    [WAITING]: [LOOKING, OPENING],
    [TAKEN]: [],
    [CLOSED]: [],
  };
  const states = Object.values(KeyState);
  for (const from of states) {
    for (const to of states) {
      const isArrow = arrows[from].includes(to) || (to === CLOSED && from !== CLOSED);
      assert.equal(isValidKeyTransition(from, to), isArrow, `${String(from)} to ${String(to)}`);
    }
  }
});

class Keyed {
  readonly world: SimulatedWorld;
  readonly key: ProcessKey;
  readonly states: KeyStateValue[] = [];
  readonly taken: OtherProcess[] = [];

  constructor(world: SimulatedWorld, incarnation: number) {
    this.world = world;
    const register = world.client();
    const record = { incarnation, ordinal: incarnation, host: 'box-1', addresses: [], group: [] };
    const log = new KeptLog(() => world.nowMs(), () => {});
    this.key = new ProcessKey({ gatewayId: 'gw-1', record, ttlMs: 5_000 }, {
      register, clock: world.time, log,
      isProvenDead: () => false,
      onHeld: () => undefined,
      onTaken: (other) => { this.taken.push(other); },
    });
    register.watch(['gateways/'], {
      onSnapshot: () => undefined,
      onChange: (entry) => { this.key.onNews(entry); },
      onDeleted: () => { this.key.onNews(undefined); },
      onAway: () => undefined,
    });
    const tick = (): void => {
      if (this.key.state === CLOSED) return;
      this.key.tick(world.nowMs());
      if (this.states.at(-1) !== this.key.state) this.states.push(this.key.state);
      world.scheduler.after(1, tick);
    };
    world.scheduler.soon(tick);
  }

  async held(): Promise<void> {
    await this.world.until(() => this.key.state === HELD, 'it is held');
  }
}

test('it is written, checked when news come, and written with another session when it is gone', async () => {
  const world = new SimulatedWorld();
  const hand = new Hand(world);
  const keyed = new Keyed(world, 3);
  await keyed.held();
  const { id } = keyed.key.session();
  keyed.states.length = 0;
  keyed.key.onNews(undefined);
  assert.equal(keyed.key.state, CHECKING);
  assert.deepEqual(keyed.key.session(), { id, endsMs: 0 }, 'nothing is done by it until it is known to stand');
  await keyed.held();
  assert.equal(keyed.key.session().id, id);
  const entry = await hand.get('gateways/gw-1');
  await hand.put('gateways/gw-1', null, entry?.revision);
  await world.until(() => keyed.key.session().id === 0, 'it is gone');
  await keyed.held();
  assert.notEqual(keyed.key.session().id, id);
  assert.ok([CHECKING, LOOKING, WRITING].every((state) => keyed.states.includes(state)), keyed.states.join());
});

test('another process that took the key by proof is waited for; it comes back when that has ended', async () => {
  const world = new SimulatedWorld();
  const keyed = new Keyed(world, 3);
  await keyed.held();
  const hand = new Hand(world);
  const { session } = await hand.session();
  const entry = await hand.get('gateways/gw-1');
  await hand.put('gateways/gw-1', entry?.value.replace('"incarnation":3', '"incarnation":2') ?? '', entry?.revision, { session });
  await world.until(() => keyed.key.state === WAITING, 'it waits');
  assert.equal(keyed.key.session().id, 0);
  session.close(() => undefined);
  await keyed.held();
  assert.deepEqual(keyed.taken, []);
});

test('ties that wait while there is no session are not answered for ever', async () => {
  const world = new SimulatedWorld();
  const keyed = new Keyed(world, 3);
  await keyed.held();
  world.register.goAway('silent');
  const told: string[] = [];
  keyed.key.addTie({
    guard: { key: 'partitions/gw-1/0', revision: 0 },
    onTied: () => { told.push('tied'); },
    onStale: () => { told.push('stale'); },
    onNoAnswer: () => { told.push('no answer'); },
  });
  await world.until(() => told.length > 0, 'it is answered');
  assert.deepEqual(told, ['no answer']);
});

test('an unreadable key is waited for like that of another, and named', async () => {
  const world = new SimulatedWorld();
  await new Hand(world).put('gateways/gw-1', 'x');
  const keyed = new Keyed(world, 3);
  await world.until(() => keyed.taken.length > 0, 'it is refused');
  assert.equal(keyed.taken[0]?.host, '(unreadable record)');
  assert.equal(keyed.key.state, TAKEN);
});
