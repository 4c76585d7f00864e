/** The key of a store: what it says and when it is written again, and whom it takes for another. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { StorePresence } from '../../../../src/kvs/daemon/store-presence.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { BrokenRule } from '../../../../src/base/json-shape.js';
import { storeKey } from '../../../../src/register/keys.js';
import { decodeStore, encodeStore } from '../../../../src/register/records.js';
import type { StoreRecord } from '../../../../src/register/records.js';
import { Hand } from '../../register/contract.js';
import { SimulatedWorld } from '../../register/simulated-world.js';

const KEY = storeKey('store-a');
const RECORD: StoreRecord = {
  bootId: 'ab'.repeat(16), addresses: ['10.1.0.2:7401'], host: 'box-2', weight: 1, memoryFreeBytes: 1_000,
  draining: false, admin: '',
};
/** Of an earlier process at the very same addresses. */
const BEFORE = encodeStore({ ...RECORD, bootId: 'cd'.repeat(16) });
const ELSEWHERE = encodeStore({ ...RECORD, bootId: 'cd'.repeat(16), host: 'box-9' });

class Present {
  readonly world: SimulatedWorld;
  readonly hand: Hand;
  readonly presence: StorePresence;
  readonly refused: string[] = [];
  record = RECORD;

  constructor(world = new SimulatedWorld()) {
    this.world = world;
    this.hand = new Hand(world);
    this.presence = new StorePresence('store-a', { register: world.client(), close: async () => {} }, {
      clock: world.time, crc32, log: world.log, record: () => this.record,
      onRefused: (why) => { this.refused.push(why); },
    });
    const tick = (): void => {
      this.presence.tick(world.nowMs());
      world.scheduler.after(20, tick);
    };
    world.scheduler.soon(tick);
  }

  async stands(): Promise<void> {
    await this.world.until(() => this.presence.isNamed, 'it stands');
  }

  async told(): Promise<StoreRecord | undefined> {
    const entry = await this.hand.get(KEY);
    const record = entry === undefined ? undefined : decodeStore(entry.value);
    assert.ok(!(record instanceof BrokenRule));
    return record;
  }
}

test('a deleted key is made good; what the store serves is not asked', async () => {
  const present = new Present();
  await present.stands();
  assert.deepEqual(await present.told(), RECORD);
  await present.hand.put(KEY, null, (await present.hand.get(KEY))?.revision);
  present.world.run(2_000);
  assert.deepEqual(await present.told(), RECORD);
  assert.deepEqual(present.refused, []);
});

test('free memory is told when it moved by a tenth, every 10 s at most; draining at once', async () => {
  const present = new Present();
  await present.stands();
  const writtenMs = present.world.nowMs();
  present.record = { ...RECORD, memoryFreeBytes: 850 };
  present.world.run(9_000);
  assert.equal((await present.told())?.memoryFreeBytes, 1_000);
  present.world.run(writtenMs + 10_500 - present.world.nowMs());
  assert.equal((await present.told())?.memoryFreeBytes, 850);
  const revision = (await present.hand.get(KEY))?.revision;
  present.record = { ...RECORD, memoryFreeBytes: 800 };
  present.world.run(60_000);
  assert.equal((await present.hand.get(KEY))?.revision, revision, 'a little is not told');
  present.record = { ...RECORD, memoryFreeBytes: 850, draining: true };
  present.world.run(500);
  assert.equal((await present.told())?.draining, true);
});

test('a start that finds another living process is refused, and names where that runs', async () => {
  const world = new SimulatedWorld();
  await new Hand(world).put(KEY, ELSEWHERE);
  const present = new Present(world);
  await world.until(() => present.refused.length > 0, 'it is refused');
  assert.match(present.refused[0] ?? '', /^a process of store store-a runs on host box-9 at 10\.1\.0\.2:7401: stop /);
});

test('the very boot at other addresses is another process: both run on copies of one spill file', async () => {
  const world = new SimulatedWorld();
  const there = encodeStore({ ...RECORD, addresses: ['10.1.0.9:7401'] });
  await new Hand(world).put(KEY, there);
  const present = new Present(world);
  await world.until(() => present.refused.length > 0, 'it is refused');
  assert.match(present.refused[0] ?? '', /^a process of store store-a runs on host box-2 at 10\.1\.0\.9:7401: stop /);
  assert.equal((await present.hand.get(KEY))?.value, there);
});

test('who was at our own addresses is dead: a start does not wait for its session', async () => {
  const world = new SimulatedWorld();
  await new Hand(world).put(KEY, BEFORE);
  const present = new Present(world);
  const startMs = world.nowMs();
  await present.stands();
  assert.ok(world.nowMs() - startMs < 2_000);
});

test('one whose key stood overwrites nobody, nor is it ended, even by one at its own addresses', async () => {
  const present = new Present();
  await present.stands();
  await present.hand.put(KEY, BEFORE, (await present.hand.get(KEY))?.revision);
  present.world.run(60_000);
  assert.deepEqual([present.refused, (await present.hand.get(KEY))?.value], [[], BEFORE]);
});
