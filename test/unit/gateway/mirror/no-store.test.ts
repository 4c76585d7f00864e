/** When it is told that no store takes a queue, and in which words, by what played stores answer. Whole stories: test/scenario/no-store-free.test.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LostSets } from '../../../../src/gateway/mirror/lost-sets.js';
import { Mirrors } from '../../../../src/gateway/mirror/mirrors.js';
import { SyncState } from '../../../../src/gateway/mirror/replica.js';
import type { StorePort } from '../../../../src/gateway/mirror/store-port.js';
import { EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import { CHANGES, CLAIM, OPEN, REFILL_END } from '../../../../src/protocol/message-types.js';
import { CLAIM_GRACE, CLAIM_GRANTED, CLAIM_LEASE_RUNS, CLAIM_TOKEN_LOW, CLAIM_UNKNOWN, REFUSAL_LIMIT, ROLE_MEMBER, ROLE_NONE } from '../../../../src/protocol/reasons.js';
import type { RefillEntries } from '../../../../src/recovery/refill-source.js';

const packer = new MessagePacker();
const REPLACE_AFTER_MS = 60_000;
const TICK_MS = 100;
const LEASE_MS = 4000;
const HELD = 'no mirror is in sync, and no store takes a copy: store-a is silent, store-b is silent, store-c says that another gateway holds it, whose lease runs; start store-a or store-b, or stop the gateway that holds it';
const LEFT = 'for longer than a lease, until this queue has a mirror, or export what is here and go on there';

/** The queue has no mail. */
const NO_ENTRIES: RefillEntries = {
  first: () => 0, following: () => 0, position: () => 0, messageId: () => 0, flags: () => 0, bodyBytes: () => 0, headBytes: () => 0, noteBytes: () => 0, room: () => 0,
  checksum: () => 0, noteChecksum: () => 0, writePayload: () => {},
};

class PlayedStore implements StorePort {
  readonly storeId: string;
  bootId = 'boot-1';
  readonly version = 2;
  isUp = true;
  readonly canSend = true;
  credit = 1_000_000;
  readonly unackedBytes = 0;
  readonly leaseEndsMs = Infinity;
  readonly leaseTerm = 1;
  /** Sequence of a CLAIM that has no answer; 0 none. */
  asked = 0;
  /** Requests by type, with the sequence of the last. */
  readonly last = new Map<number, number>();
  #sequence = 0;

  constructor(storeId: string) {
    this.storeId = storeId;
  }

  request(type: number): number {
    this.#sequence += 1;
    if (type === CLAIM) this.asked = this.#sequence;
    this.last.set(type, this.#sequence);
    return this.#sequence;
  }

  flush(): void {}

  askCredit(): void {}
}

/** gw-1 has a queue that was at store-a and store-b; both came back without it, and are silent now. store-c is to take it. */
class Played {
  readonly a = new PlayedStore('store-a');
  readonly b = new PlayedStore('store-b');
  readonly c = new PlayedStore('store-c');
  private readonly stores = [this.a, this.b, this.c];
  readonly told: unknown[] = [];
  readonly lost: LostSets;
  private readonly mirrors: Mirrors;
  private nowMs = 0;

  /** `keepsA`: store-a was only away; it has its copy, and is asked. */
  constructor(ownerId: string, replaceAfterMs = REPLACE_AFTER_MS, keepsA = false) {
    const note = (_event: string, text: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      if (text.startsWith('no store takes a copy')) this.told.push(fields['why']);
    };
    const log = { debug: note, info: note, warn: note, error: note };
    const mirrors = new Mirrors(
      { group: ['gw-1', 'gw-2'], replicas: 2, minReplicas: 1, retryMs: 500, refillFrameBytes: 4096, frameTargetBytes: 65_536, ringBytes: 1_000_000, replaceAfterMs, placement: { gatewayHost: undefined, places: new Map() }, token: 7 },
      { packer, crc32, log, nowMs: () => this.nowMs, wallMs: () => 0, requestFlush: () => {}, refillEntries: () => NO_ENTRIES, onChanged: () => {}, onEpoch: () => {}, onLost: () => assert.fail('it is ours') },
    );
    this.mirrors = mirrors;
    this.lost = new LostSets({ mirrors, log, nowMs: () => this.nowMs });
    const mirror = mirrors.create({ handle: 1, identity: { ownerId, birth: 1, serial: 1 }, name: 'q' }, (new EntryTable(1)).partitionColumns);
    mirror.adopt(1, 0, 0, 0);
    mirror.isOwn = ownerId === 'gw-1';
    for (const store of [this.a, this.b, this.c]) {
      mirrors.addStore(store);
      mirrors.onLinkUp(store);
      const replica = mirrors.addReplica(mirror, store);
      if (store === this.c) continue;
      replica.member = true;
      replica.wanted = true;
      replica.transition(SyncState.SYNC, 'queue created', 0);
      replica.confirmedTerm = store.leaseTerm;
    }
    for (const store of [this.b, this.a]) this.goes(store);
    if (keepsA) this.comes(this.a);
    for (const store of keepsA ? [this.b] : [this.a, this.b]) {
      store.bootId = 'boot-2';
      this.comes(store);
      this.answer(store, CLAIM_UNKNOWN);
      this.goes(store);
    }
  }

  goes(store: PlayedStore): void {
    store.isUp = false;
    store.asked = 0;
    this.mirrors.onLinkDown(store, 'reset');
  }

  comes(store: PlayedStore): void {
    store.isUp = true;
    this.mirrors.onLinkUp(store);
  }

  /** For how long its copy has been on its way there; 0 when it is not. */
  filledForMs(store: PlayedStore): number {
    const replica = this.mirrors.partitionOf(1)?.replicas.find((one) => one.store === store);
    return replica?.isFilling === true ? this.nowMs - replica.sinceMs : 0;
  }

  /** A tick, and what is due goes out. */
  turn(): void {
    this.run(TICK_MS);
    this.mirrors.flush();
  }

  /** The turn ends: what is due goes out. The last request of this type is refused. */
  refuse(store: PlayedStore, type: number, reason: number, number = 0): void {
    this.mirrors.flush();
    const sequence = store.last.get(type) ?? assert.fail(`${store.storeId} was sent ${String(type)}`);
    store.last.clear();
    this.mirrors.onRefusal(store, { sequence, handle: 1, reason, number, digestA: 0, digestB: 0, text: '' });
  }

  /** All that went out in this turn is applied. */
  takes(store: PlayedStore, number: number): void {
    this.mirrors.flush();
    this.mirrors.onAcknowledged(store, 1, number);
    this.mirrors.onAckedThrough(store, Math.max(...store.last.values()));
  }

  get lastNumber(): number {
    return this.mirrors.partitionOf(1)?.lastNumber ?? 0;
  }

  get inSync(): string[] {
    return this.mirrors.partitionOf(1)?.replicas.filter(({ inSync }) => inSync).map(({ store }) => store.storeId) ?? [];
  }

  answer(store: PlayedStore, result: number, role = ROLE_NONE, number = 5): void {
    const { asked } = store;
    assert.notEqual(asked, 0, `${store.storeId} is asked`);
    store.asked = 0;
    const waitMs = result === CLAIM_LEASE_RUNS || result === CLAIM_GRACE ? LEASE_MS : 0;
    assert.equal(this.mirrors.onClaimed(store, asked, { handle: 1, result, token: result === CLAIM_TOKEN_LOW ? 9 : 7, epoch: 1, members: [], number: result === CLAIM_GRANTED ? number : 0, digestA: 0, digestB: 0, count: 0, bytes: 0, role, waitMs, sameBoot: true, holderWallMs: 0, writer: undefined }), true);
  }

  addStore(store: PlayedStore): void {
    this.stores.push(store);
    this.mirrors.addStore(store);
    this.mirrors.onLinkUp(store);
  }

  /** Who is asked answers in this way, the next tick; without one nobody does. */
  run(ms: number, result?: number): void {
    for (const end = this.nowMs + ms; this.nowMs < end;) {
      this.nowMs += TICK_MS;
      for (const store of this.stores) if (result !== undefined && store.asked !== 0) this.answer(store, result);
      this.mirrors.tick(this.nowMs);
      this.lost.tick();
    }
  }

  /** store-c is to be filled, and its turn does not come: no turn ends here. */
  get waitsForTurn(): boolean {
    return this.mirrors.partitionOf(1)?.replicas.some(({ store, sync, mustRefill }) => store === this.c && sync === SyncState.NG && mustRefill) === true && this.c.asked === 0;
  }

  get whys(): string[] {
    return this.lost.held().map(({ state, why }) => (state === 'no store free' ? why : state));
  }
}

describe('no store free', () => {
  test('is told when every store has been silent, or has said no, for replace_after; once, with one time', () => {
    const played = new Played('gw-1');
    played.run(REPLACE_AFTER_MS - 1000, CLAIM_LEASE_RUNS);
    assert.deepEqual([played.whys, played.told], [[], []]);
    played.run(2000, CLAIM_LEASE_RUNS);
    const [first] = played.lost.held();
    assert.deepEqual([first?.state, first?.stores], ['no store free', ['store-a', 'store-b']]);
    for (let i = 0; i < 12 * LEASE_MS / TICK_MS; i++) {
      played.run(TICK_MS, CLAIM_LEASE_RUNS);
      assert.equal(played.lost.held()[0]?.sinceMs, first?.sinceMs);
    }
    assert.deepEqual(played.told, [first?.why]);
  });

  test('is told when stores are asked more seldom than replace_after, and not at the same time', () => {
    const played = new Played('gw-1', 3000);
    played.run(1700, CLAIM_LEASE_RUNS);
    played.addStore(new PlayedStore('store-d'));
    played.run(20_000, CLAIM_LEASE_RUNS);
    assert.equal(played.told.length, 1);
    assert.match(played.whys[0] ?? '', /store-c says .*, store-d says /);
  });

  test('says of an own queue who holds copies, and what ends that', () => {
    const played = new Played('gw-1');
    played.run(REPLACE_AFTER_MS + 1000, CLAIM_LEASE_RUNS);
    assert.deepEqual(played.whys, [`${HELD} (twinpost store status shows which) ${LEFT}`]);
  });

  test('says of a queue taken over whose it is', () => {
    const played = new Played('gw-2');
    played.run(REPLACE_AFTER_MS + 1000, CLAIM_LEASE_RUNS);
    assert.deepEqual(played.whys, [`${HELD} (gw-2, or one that goes on for it: twinpost store status shows which) ${LEFT}`]);
  });

  test('names what the stores are: taken by a newer claim, just started, without room, silent', () => {
    const why = (result: number): string => {
      const played = new Played('gw-2');
      played.run(REPLACE_AFTER_MS + LEASE_MS, result);
      return played.whys[0]?.replace('no mirror is in sync, and no store takes a copy: store-a is silent, store-b is silent, ', '') ?? '';
    };
    assert.equal(why(CLAIM_TOKEN_LOW), 'store-c says that another gateway has taken it; start store-a or store-b, or export what is here and go on at the gateway that holds it (gw-2, or one that goes on for it: twinpost store status shows which)');
    assert.equal(why(CLAIM_GRACE), 'store-c has just started, and waits for a lease of before; start store-a or store-b');
    const played = new Played('gw-1');
    const full = new PlayedStore('store-d');
    full.credit = 0;
    played.addStore(full);
    played.goes(played.c);
    played.run(2 * REPLACE_AFTER_MS);
    assert.deepEqual(played.whys, ['no mirror is in sync, and no store takes a copy: store-a is silent, store-b is silent, store-c is silent, store-d is full; start store-a or store-b or store-c, or make room at store-d']);
  });

  test('is not told while a store that is asked again has not answered, but then', () => {
    const played = new Played('gw-1');
    played.run(REPLACE_AFTER_MS - LEASE_MS - 1000, CLAIM_LEASE_RUNS);
    while (played.c.asked === 0) played.run(TICK_MS);
    played.run(LEASE_MS + 2000);
    assert.deepEqual([played.whys, played.told], [[], []]);
    played.run(TICK_MS, CLAIM_LEASE_RUNS);
    assert.equal(played.told.length, 1);
  });

  test('is not told by a no that is longer ago than replace_after, if there was no answer since', () => {
    const played = new Played('gw-1');
    played.run(1000, CLAIM_LEASE_RUNS);
    played.run(2 * REPLACE_AFTER_MS);
    played.goes(played.c);
    played.run(REPLACE_AFTER_MS - 1000);
    assert.deepEqual([played.whys, played.told], [[], []]);
    played.run(2000);
    assert.equal(played.told.length, 1);
  });

  test('is not told while a store that another had lets it wait for its turn', () => {
    const played = new Played('gw-1');
    played.run(REPLACE_AFTER_MS - 10_000, CLAIM_LEASE_RUNS);
    played.run(LEASE_MS + 1000, CLAIM_GRANTED);
    assert.equal(played.waitsForTurn, true);
    played.run(8000);
    played.goes(played.c);
    played.run(REPLACE_AFTER_MS - 1000);
    played.comes(played.c);
    played.run(4 * REPLACE_AFTER_MS);
    assert.deepEqual([played.whys, played.told], [[], []]);
  });

  test('is not told by what a store said before it was started again', () => {
    const played = new Played('gw-1');
    played.run(REPLACE_AFTER_MS - 1000, CLAIM_LEASE_RUNS);
    played.goes(played.c);
    played.c.bootId = 'boot-2';
    played.comes(played.c);
    played.run(3000);
    played.run(REPLACE_AFTER_MS - 1000, CLAIM_LEASE_RUNS);
    assert.deepEqual([played.whys, played.told], [[], []]);
    played.run(2000, CLAIM_LEASE_RUNS);
    assert.equal(played.told.length, 1);
  });

  test('is told of a store whose table of queues is full, and of what an operator can do', () => {
    const played = new Played('gw-1');
    for (let elapsedMs = 0; elapsedMs < REPLACE_AFTER_MS + 20_000; elapsedMs += TICK_MS) {
      if (played.c.asked !== 0) played.answer(played.c, CLAIM_UNKNOWN);
      if (played.waitsForTurn) played.refuse(played.c, OPEN, REFUSAL_LIMIT);
      played.run(TICK_MS);
    }
    assert.deepEqual(played.whys, ['no mirror is in sync, and no store takes a copy: store-a is silent, store-b is silent, store-c has no room in its table of queues; start store-a or store-b, or add a store, or move other queues away from store-c: twinpost store drain, and with --undo again when some are gone']);
  });

  test('is told while the one mirror that has its copy is at a store that is too full for the rest of it', () => {
    const played = new Played('gw-1', REPLACE_AFTER_MS, true);
    played.goes(played.c);
    for (let elapsedMs = 0; elapsedMs < REPLACE_AFTER_MS + 20_000; elapsedMs += TICK_MS) {
      if (played.a.asked !== 0) {
        played.answer(played.a, CLAIM_GRANTED, ROLE_MEMBER, 0);
        played.refuse(played.a, CHANGES, REFUSAL_LIMIT);
      }
      played.run(TICK_MS);
    }
    assert.deepEqual(played.whys, ['no mirror is in sync, and no store takes a copy: store-b is silent, store-c is silent, store-a is full; start store-b or store-c, or make room at store-a']);
  });

  test('is not waited for: a copy that was emptied to be filled, and refused at once, does not keep others from a new set', () => {
    const played = new Played('gw-1', REPLACE_AFTER_MS, true);
    played.goes(played.c);
    played.answer(played.a, CLAIM_GRANTED, ROLE_MEMBER);
    played.refuse(played.a, REFILL_END, REFUSAL_LIMIT, played.lastNumber);
    played.comes(played.c);
    played.answer(played.c, CLAIM_UNKNOWN);
    for (let round = 0; round < 3; round++) played.takes(played.c, played.lastNumber);
    assert.deepEqual(played.inSync, ['store-c']);
  });

  test('is told of full stores that take turns, each attempt longer than replace_after: when each has refused', () => {
    const played = new Played('gw-1');
    const d = new PlayedStore('store-d');
    played.addStore(d);
    const refusals: string[] = [];
    for (let elapsedMs = 0; elapsedMs < 5 * REPLACE_AFTER_MS; elapsedMs += TICK_MS) {
      for (const store of [played.c, d]) {
        if (store.asked !== 0) played.answer(store, CLAIM_UNKNOWN);
        if (played.filledForMs(store) < REPLACE_AFTER_MS + 10_000) continue;
        played.refuse(store, REFILL_END, REFUSAL_LIMIT, played.lastNumber);
        refusals.push(store.storeId);
      }
      played.turn();
      if (refusals.length < 2) assert.deepEqual(played.told, []);
    }
    assert.deepEqual([refusals.slice(0, 3), played.told.length], [['store-c', 'store-d', 'store-c'], 1]);
    assert.match(played.whys[0] ?? '', /store-c is full, store-d is full; .* make room at store-c or store-d$/);
  });
});

describe('with no mirror in sync', () => {
  test('a copy that decides is filled beside one that has caught up: one that is worth less waits for it, and is not waited for', () => {
    const played = new Played('gw-1', REPLACE_AFTER_MS, true);
    if (played.c.asked === 0) played.turn();
    played.answer(played.c, CLAIM_UNKNOWN);
    for (let round = 0; round < 3; round++) played.takes(played.c, played.lastNumber);
    const d = new PlayedStore('store-d');
    played.addStore(d);
    for (let elapsedMs = 0; d.asked === 0 && elapsedMs < 2 * REPLACE_AFTER_MS; elapsedMs += TICK_MS) played.turn();
    played.answer(d, CLAIM_UNKNOWN);
    played.turn();
    assert.equal(d.last.has(REFILL_END), false, 'nothing is to be founded there');
    // What store-a has can not be continued.
    played.answer(played.a, CLAIM_GRANTED, ROLE_MEMBER);
    for (let round = 0; round < 6; round++) {
      played.turn();
      for (const store of [played.a, d, played.c]) if (store.last.size > 0) played.takes(store, played.lastNumber);
    }
    assert.ok(played.inSync.includes('store-a'), `in sync: ${played.inSync.join()}`);
  });
});
