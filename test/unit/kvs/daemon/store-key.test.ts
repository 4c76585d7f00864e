/** The key of a store by itself: its arrows, and what it does as the register answers, forgets, or knows another. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { StoreKey, StoreKeyState, isValidStoreKeyTransition } from '../../../../src/kvs/daemon/store-key.js';
import type { StoreKeyStateValue } from '../../../../src/kvs/daemon/store-key.js';
import { BrokenRule } from '../../../../src/register/core/shapes.js';
import { storeKey } from '../../../../src/register/keys.js';
import { decodeStore, encodeStore } from '../../../../src/register/records.js';
import type { StoreRecord } from '../../../../src/register/records.js';
import { KeptLog } from '../../../scenario/ports.js';
import { Hand } from '../../register/contract.js';
import { SimulatedWorld } from '../../register/simulated-world.js';

const { OPENING, LOOKING, WRITING, STANDING, WAITING, REFUSED, CLOSED } = StoreKeyState;
const KEY = storeKey('store-a');
const RECORD: StoreRecord = {
  bootId: 'ab'.repeat(16), addresses: ['10.1.0.2:7401'], host: 'box-2', weight: 1, memoryFreeBytes: 1_000,
  draining: false, admin: '',
};
const OTHER = encodeStore({ ...RECORD, bootId: 'cd'.repeat(16), host: 'box-9' });

class Keyed {
  readonly world: SimulatedWorld;
  readonly hand: Hand;
  readonly key: StoreKey;
  readonly log: KeptLog;
  readonly refused: string[] = [];
  record = RECORD;

  constructor(world = new SimulatedWorld(), hand = new Hand(world)) {
    this.world = world;
    this.hand = hand;
    this.log = new KeptLog(() => world.nowMs(), () => {});
    const register = world.client();
    this.key = new StoreKey('store-a', {
      register, clock: world.time, log: this.log, record: () => this.record,
      onRefused: (why) => { this.refused.push(why); },
    });
    register.watch([KEY], {
      onSnapshot: () => undefined,
      onChange: (entry) => { this.key.onNews(entry); },
      onDeleted: () => { this.key.onNews(undefined); },
      onAway: () => undefined,
    });
    const tick = (): void => {
      if (this.key.state === CLOSED) return;
      this.key.tick(world.nowMs());
      world.scheduler.after(20, tick);
    };
    world.scheduler.soon(tick);
  }

  async stands(): Promise<void> {
    await this.world.until(() => this.key.state === STANDING, 'it stands');
  }

  async told(): Promise<StoreRecord | undefined> {
    const entry = await this.hand.get(KEY);
    if (entry === undefined) return undefined;
    const record = decodeStore(entry.value);
    assert.ok(!(record instanceof BrokenRule));
    return record;
  }
}

test('the arrows of the key of a store', () => {
  const arrows: Readonly<Record<StoreKeyStateValue, readonly StoreKeyStateValue[]>> = {
    [OPENING]: [LOOKING],
    [LOOKING]: [WRITING, STANDING, WAITING, REFUSED, OPENING],
    [WRITING]: [STANDING, LOOKING, OPENING],
    [STANDING]: [WRITING, LOOKING, OPENING],
    [WAITING]: [LOOKING, OPENING],
    [REFUSED]: [],
    [CLOSED]: [],
  };
  const states = Object.values(StoreKeyState);
  for (const from of states) {
    for (const to of states) {
      const isArrow = arrows[from].includes(to) || (to === CLOSED && from !== CLOSED);
      assert.equal(isValidStoreKeyTransition(from, to), isArrow, `${String(from)} to ${String(to)}`);
    }
  }
});

test('it is written with a session, and gone with it', async () => {
  const keyed = new Keyed();
  await keyed.stands();
  assert.deepEqual(await keyed.told(), RECORD);
  keyed.key.close(() => undefined);
  keyed.world.run(2_000);
  assert.equal(await keyed.told(), undefined);
});

test('a lost session, or a deleted key, is made good; what it serves is not asked', async () => {
  const keyed = new Keyed();
  await keyed.stands();
  const first = await keyed.hand.get(KEY);
  keyed.world.register.rollBack(1_000);
  await keyed.world.until(() => keyed.log.count('session of this store is lost') > 0, 'it hears of it');
  await keyed.stands();
  assert.notEqual((await keyed.hand.get(KEY))?.session, first?.session);
  await keyed.hand.put(KEY, null, (await keyed.hand.get(KEY))?.revision);
  keyed.world.run(2_000);
  assert.deepEqual(await keyed.told(), RECORD);
  assert.deepEqual(keyed.refused, []);
});

test('free memory is told when it moved by a tenth, every 10 s at most; draining at once', async () => {
  const keyed = new Keyed();
  await keyed.stands();
  const writtenMs = keyed.world.nowMs();
  keyed.record = { ...RECORD, memoryFreeBytes: 850 };
  keyed.world.run(9_000);
  assert.equal((await keyed.told())?.memoryFreeBytes, 1_000);
  keyed.world.run(writtenMs + 10_500 - keyed.world.nowMs());
  assert.equal((await keyed.told())?.memoryFreeBytes, 850);
  const revision = (await keyed.hand.get(KEY))?.revision;
  keyed.record = { ...RECORD, memoryFreeBytes: 800 };
  keyed.world.run(60_000);
  assert.equal((await keyed.hand.get(KEY))?.revision, revision, 'a little is not told');
  keyed.record = { ...RECORD, memoryFreeBytes: 850, draining: true };
  keyed.world.run(500);
  assert.equal((await keyed.told())?.draining, true);
});

test('a start that finds another living process is refused; one whose other ends is not', async () => {
  const world = new SimulatedWorld();
  const hand = new Hand(world);
  const { session } = await hand.session();
  await hand.put(KEY, OTHER, 0, { session });
  const refused = new Keyed(world);
  await world.until(() => refused.key.state === REFUSED, 'it is refused');
  const [why, ...more] = refused.refused;
  assert.match(why ?? '', /^a process of store store-a runs on host box-9 at 10\.1\.0\.2:7401: stop that one, or /);
  assert.deepEqual(more, []);
  const waits = new Keyed(world);
  await world.until(() => waits.key.state === WAITING, 'it waits');
  session.close(() => undefined);
  await waits.stands();
  assert.deepEqual(waits.refused, []);
});

test('who was at our own addresses is dead: a start does not wait for its session', async () => {
  const world = new SimulatedWorld();
  const hand = new Hand(world);
  const { session } = await hand.session();
  await hand.put(KEY, encodeStore({ ...RECORD, bootId: 'cd'.repeat(16) }), 0, { session });
  const keyed = new Keyed(world, hand);
  const startMs = world.nowMs();
  await keyed.stands();
  assert.ok(world.nowMs() - startMs < 2_000);
});

test('one whose key stood is never ended by what the register says, and overwrites nobody', async () => {
  for (const other of [OTHER, encodeStore({ ...RECORD, bootId: 'cd'.repeat(16) })]) {
    const keyed = new Keyed();
    await keyed.stands();
    const { session } = await keyed.hand.session();
    await keyed.hand.put(KEY, other, (await keyed.hand.get(KEY))?.revision, { session });
    keyed.world.run(60_000);
    assert.deepEqual([keyed.refused, (await keyed.hand.get(KEY))?.value], [[], other]);
    assert.equal(keyed.log.lines.filter(({ level }) => level === 'error').length, 1);
    session.close(() => undefined);
    await keyed.stands();
  }
});
