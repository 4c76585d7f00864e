/** Which stores a partition's copies go to: host, weight, use, room. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Mirrors } from '../../../../../src/gateway/mirror/mirrors.js';
import type { StorePlace } from '../../../../../src/gateway/mirror/set/placement.js';
import type { StorePort } from '../../../../../src/gateway/mirror/link/store-port.js';
import { MessagePacker } from '../../../../../src/platform/node/packer.js';

const packer = new MessagePacker();
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

class PlacedStore implements StorePort {
  readonly storeId: string;
  readonly bootId = 'boot';
  readonly version = 3;
  readonly canSend = true;
  readonly unackedBytes = 0;
  readonly lease = { bootId: 'boot', endsMs: Infinity };
  isUp = true;
  credit = 1000;

  constructor(storeId: string) {
    this.storeId = storeId;
  }

  request(): number {
    return 1;
  }

  flush(): void {}

  askCredit(): void {}
}

class Places {
  readonly stores: readonly PlacedStore[];
  private readonly mirrors: Mirrors;
  private handles = 0;
  /** What the register told of the hosts of gateways. */
  readonly gateways = new Map([['self', 'gateway']]);

  /** By store: "host" or "host*weight". */
  constructor(places: Readonly<Record<string, string>>, options: { readonly oneHost?: boolean } = {}) {
    const entries = Object.entries(places).map(([id, place]): [string, StorePlace] => {
      const [host = '', weight = '1'] = place.split('*');
      return [id, { host, weight: Number(weight) }];
    });
    this.mirrors = new Mirrors(
      { replicas: 2, minReplicas: 1, retryMs: 500, refillFrameBytes: 4096, frameTargetBytes: 65_536, ringBytes: 1_000_000, replaceAfterMs: 60_000, rebalanceBytesPerSecond: 0, placement: { gatewayHost: options.oneHost === true ? undefined : 'gateway', places: new Map(entries) } },
      { packer, log: quiet, nowMs: () => 0, ringRoomBytes: () => Infinity, requestFlush: () => {}, hostOfGateway: (id) => this.gateways.get(id), refillEntries: () => assert.fail('nothing is filled') },
    );
    this.stores = entries.map(([id]) => new PlacedStore(id));
    for (const store of this.stores) this.mirrors.addStore(store);
  }

  get placement(): Mirrors['placement'] {
    return this.mirrors.placement;
  }

  store(id: string): PlacedStore {
    return this.stores.find(({ storeId }) => storeId === id) ?? assert.fail(`no ${id}`);
  }

  /** A partition with copies there. */
  use(...ids: string[]): void {
    this.handles += 1;
    this.mirrors.beginFounding(this.handles);
    for (const id of ids) this.mirrors.foundAt(this.handles, id);
  }

  /** For a new queue, or beside those that stay; `leaving` are mirrors as well. */
  choose(count: number, staying: readonly string[] = [], leaving: readonly string[] = [], owner = 'self'): string[] {
    const kept = staying.map((id) => this.store(id));
    return this.placement.choose(count, [...kept, ...leaving.map((id) => this.store(id))], kept, owner).map(({ storeId }) => storeId);
  }
}

describe('placement', () => {
  test('takes no two stores of one host, nor one of the gateway\'s own', () => {
    const places = new Places({ a: 'one', b: 'one', c: 'gateway', d: 'two' });
    assert.deepEqual(places.choose(2), ['a', 'd']);
    assert.deepEqual(places.choose(4), ['a', 'd'], 'rather fewer than asked for');
  });

  test('takes no store on the host of a mirror that stays; that of one that leaves may be used again', () => {
    const places = new Places({ a: 'one', b: 'one', c: 'two' });
    assert.deepEqual(places.choose(1, ['a']), ['c']);
    assert.deepEqual(places.choose(1, ['c'], ['a']), ['b']);
    assert.deepEqual(places.choose(1, ['a', 'c']), [], 'nothing is left');
  });

  test('for a gateway that is rescued takes the host of that one last: it will have the partition back', () => {
    const places = new Places({ a: 'one', b: 'two', c: 'gateway', d: 'three' });
    places.gateways.set('other', 'one');
    places.use('b', 'd');
    assert.deepEqual(places.choose(2, [], [], 'other'), ['b', 'd'], 'although the one there has fewest');
    assert.deepEqual(places.choose(3, [], [], 'other'), ['b', 'd', 'a'], 'better than none');
    places.store('b').isUp = false;
    assert.deepEqual(places.choose(2, [], [], 'other'), ['d', 'a']);
    assert.deepEqual(places.choose(2, [], [], 'unheard'), ['a', 'd'], 'nobody knows where it will be');
  });

  test('labels of hosts are of no account where all share one on purpose', () => {
    const places = new Places({ a: 'one', b: 'one' }, { oneHost: true });
    assert.deepEqual(places.choose(2), ['a', 'b']);
  });

  test('takes the stores with the fewest mirrors; of equals those that are configured first', () => {
    const places = new Places({ a: 'one', b: 'two', c: 'three' });
    assert.deepEqual(places.choose(2), ['a', 'b']);
    places.use('a', 'b');
    assert.deepEqual(places.choose(2), ['c', 'a']);
    places.use('c', 'a');
    assert.deepEqual(places.choose(2), ['b', 'c']);
  });

  test('a store of twice the weight gets twice the mirrors', () => {
    const places = new Places({ a: 'one*2', b: 'two', c: 'three' });
    const counts: Record<string, number> = { a: 0, b: 0, c: 0 };
    for (let i = 0; i < 40; i++) {
      const chosen = places.choose(1);
      for (const id of chosen) counts[id] = (counts[id] ?? 0) + 1;
      places.use(...chosen);
    }
    assert.deepEqual(counts, { a: 20, b: 10, c: 10 });
  });

  test('takes no store that can not be reached, is drained, or is about to stop', () => {
    const places = new Places({ a: 'one', b: 'two', c: 'three', d: 'four' });
    places.store('a').isUp = false;
    places.placement.drained.add('b');
    places.placement.stopping.add('c');
    assert.deepEqual(places.choose(2), ['d']);
    places.store('d').isUp = false;
    assert.deepEqual(places.choose(2), []);
  });

  test('takes stores with more free memory first, in steps of a half, and the fewest mirrors among those', () => {
    const places = new Places({ a: 'one', b: 'two', c: 'three*4' });
    places.use('b', 'c');
    // What is on its way to a store makes no difference.
    places.store('a').credit = 501;
    assert.deepEqual(places.choose(3), ['c', 'a', 'b']);
    places.store('a').credit = 500;
    assert.deepEqual(places.choose(3), ['c', 'b', 'a']);
    places.store('c').credit = 240;
    assert.deepEqual(places.choose(3), ['b', 'a', 'c'], 'whatever its weight');
  });

  test('takes no store without room', () => {
    const places = new Places({ a: 'one', b: 'two', c: 'three' });
    places.store('a').credit = 0;
    assert.deepEqual(places.choose(2), ['b', 'c']);
    for (const store of places.stores) store.credit = 0;
    assert.deepEqual(places.choose(2), []);
  });
});
