/** Known stores over the simulated register: what is linked and moved; no missing key takes a link away. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KnownStores } from '../../../../src/gateway/ownership/known-stores.js';
import type { KnownStore, KnownStoresOptions } from '../../../../src/gateway/ownership/known-stores.js';
import { storeKey } from '../../../../src/register/keys.js';
import { encodeStore } from '../../../../src/register/records.js';
import type { StoreRecord } from '../../../../src/register/records.js';
import { KeptLog } from '../../../scenario/ports.js';
import { Hand } from '../../register/contract.js';
import { SimulatedWorld } from '../../register/simulated-world.js';

const RECORD: StoreRecord = {
  bootId: 'ab'.repeat(16), addresses: ['10.1.0.2:7401', '[fd00::2]:7411'], host: 'box-2', weight: 3,
  memoryFreeBytes: 5, draining: false, admin: '10.1.0.2:9401',
};
const STORE: KnownStore = {
  id: 'store-a', host: 'box-2', weight: 3, admin: '10.1.0.2:9401',
  pathA: { host: '10.1.0.2', port: 7401 }, pathB: { host: 'fd00::2', port: 7411 },
};

class Kept {
  readonly world = new SimulatedWorld();
  readonly links: KnownStore[] = [];
  readonly moves: KnownStore[] = [];
  readonly known: KnownStores;
  readonly log = new KeptLog(() => this.world.nowMs(), () => {});
  readonly #hand = new Hand(this.world);
  readonly #revisions = new Map<string, number>();

  constructor(options: Partial<KnownStoresOptions> = {}) {
    this.known = new KnownStores({ configured: [], learnable: undefined, ...options }, {
      clock: this.world.time,
      log: this.log,
      barred: (host) => (host === '10.9.9.9' ? 'in clear' : ''),
      link: (store) => { this.links.push(store); },
      move: (store) => { this.moves.push(store); },
    });
    this.known.start(this.world.client());
  }

  /** null deletes. */
  async write(id: string, record: Partial<StoreRecord> | null): Promise<void> {
    const key = storeKey(id);
    const value = record === null ? null : encodeStore({ ...RECORD, ...record });
    const revision = await this.#hand.put(key, value, this.#revisions.get(id) ?? 0);
    this.#revisions.set(id, record === null ? 0 : revision);
    this.world.run(1_000);
  }

  ids(): readonly string[] {
    return [...this.known.all()].map(({ id }) => id);
  }
}

test('a store is linked once, as the register names it; a key that says the same again is no news', async () => {
  const kept = new Kept();
  await kept.write('store-a', {});
  await kept.write('store-a', { memoryFreeBytes: 9, draining: true });
  assert.deepEqual(kept.links, [STORE]);
  assert.deepEqual(kept.moves, []);
  assert.deepEqual(kept.known.find('store-a'), STORE);
});

test('all are known when the register has told its list, empty or not; without it those of the configuration are all', async () => {
  const kept = new Kept();
  assert.equal(kept.known.isListRead, false);
  kept.world.run(1_000);
  assert.deepEqual([kept.known.isListRead, kept.ids()], [true, []]);
  const ports = { clock: kept.world.time, log: kept.log, barred: () => '', link: () => {}, move: () => {} };
  const alone = new KnownStores({ configured: [STORE], learnable: [] }, ports);
  assert.equal(alone.isListRead, false);
  alone.start(undefined);
  assert.equal(alone.isListRead, true);
  await kept.write('store-a', {});
  assert.deepEqual(kept.ids(), ['store-a']);
});

test('other addresses move the link; another host or weight is taken note of', async () => {
  const kept = new Kept();
  await kept.write('store-a', {});
  await kept.write('store-a', { host: 'box-7', weight: 1 });
  assert.deepEqual(kept.moves, []);
  assert.deepEqual(kept.known.find('store-a'), { ...STORE, host: 'box-7', weight: 1 });
  await kept.write('store-a', { addresses: ['10.1.0.3:7401'] });
  assert.deepEqual(kept.moves, [{ ...STORE, pathA: { host: '10.1.0.3', port: 7401 }, pathB: undefined }]);
  assert.equal(kept.links.length, 1);
});

test('a missing key is no verdict: its link stays, and follows when the store is named again', async () => {
  const kept = new Kept();
  await kept.write('store-a', {});
  kept.known.onUp('store-a');
  await kept.write('store-a', null);
  kept.world.run(60_000);
  assert.deepEqual(kept.ids(), ['store-a']);
  await kept.write('store-a', { bootId: 'cd'.repeat(16), addresses: ['10.1.0.4:1'] });
  assert.deepEqual([kept.links.length, kept.moves.length], [1, 1]);
});

test('one that is named and not reached is told, and since when; not at once, nor without its key', async () => {
  const kept = new Kept();
  await kept.write('store-a', {});
  assert.deepEqual(kept.known.unreached(), []);
  kept.world.run(10_000);
  assert.deepEqual(kept.known.unreached().map(({ id, host }) => [id, host]), [['store-a', 'box-2']]);
  kept.known.onUp('store-a');
  assert.deepEqual(kept.known.unreached(), []);
  kept.known.onDown('store-a');
  const downMs = kept.world.nowMs();
  kept.world.run(10_000);
  kept.known.onDown('store-a');
  assert.deepEqual(kept.known.unreached().map(({ sinceMs }) => sinceMs), [downMs]);
  await kept.write('store-a', null);
  assert.deepEqual(kept.known.unreached(), []);
});

test('the configuration restricts: others are told and not linked, its own addresses stay', async () => {
  const configured = [{ ...STORE, id: 'store-b' }];
  const kept = new Kept({ configured, learnable: ['store-c'] });
  assert.deepEqual(kept.links, configured);
  await kept.write('store-a', {});
  await kept.write('store-b', { addresses: ['10.1.0.9:1'] });
  await kept.write('store-c', {});
  assert.deepEqual([kept.ids(), kept.moves], [['store-b', 'store-c'], []]);
  kept.known.onUp('store-b');
  kept.known.onUp('store-c');
  const told = kept.known.unreached().map(({ id, why }) => [id, why]);
  assert.deepEqual(told, [['store-a', 'gateway.stores does not name it']]);
  await kept.write('store-a', null);
  assert.deepEqual(kept.known.unreached(), []);
});

test('no link leads where it may not, at first or by a move; none beyond what a gateway can have', async () => {
  const kept = new Kept();
  await kept.write('store-a', { addresses: ['10.1.0.2:7401', '10.9.9.9:1'] });
  assert.deepEqual([kept.ids(), kept.known.unreached().map(({ why }) => why)], [[], ['in clear']]);
  await kept.write('store-a', {});
  await kept.write('store-a', { addresses: ['10.9.9.9:1'] });
  assert.deepEqual([kept.ids(), kept.moves], [['store-a'], []]);
  for (let i = 0; i < 64; i++) await kept.write(`store-${String(i)}`, {});
  assert.equal(kept.known.count, 64);
  assert.ok(kept.known.unreached().some(({ id, why }) => id === 'store-63' && why.includes('64 stores at most')));
});

test('with none at all the log says why nothing is accepted, and again after a while', async () => {
  const kept = new Kept();
  const said = (): number => kept.log.count('the register names none');
  for (let i = 0; i < 200; i++) {
    kept.world.run(200);
    kept.known.tick(kept.world.nowMs());
  }
  assert.equal(said(), 2);
  await kept.write('store-a', {});
  kept.world.run(100_000);
  kept.known.tick(kept.world.nowMs());
  assert.equal(said(), 2);
});
