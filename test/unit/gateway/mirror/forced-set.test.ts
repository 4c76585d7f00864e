/**
 * How the set is numbered that goes on without a store which an operator gave up (src/gateway/mirror/replica-set.ts,
 * goesAhead): far ahead, once; by the next number as long as a mirror of it has a store that takes no other.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isNewer } from '../../../../src/gateway/mirror/claim-again.js';
import { Mirrors } from '../../../../src/gateway/mirror/mirrors.js';
import type { Partition } from '../../../../src/gateway/mirror/partition.js';
import type { Replica } from '../../../../src/gateway/mirror/replica.js';
import { ResyncPhase, SyncState } from '../../../../src/gateway/mirror/replica.js';
import type { StorePort } from '../../../../src/gateway/mirror/store-port.js';
import { EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import { CHANGE_ROW_BYTES, KIND_SET_MEMBERS } from '../../../../src/protocol/change-rows.js';
import { isInvalid } from '../../../../src/protocol/invalid.js';
import { CHANGES } from '../../../../src/protocol/message-types.js';
import { decodeChanges, sectionCount, sectionRows } from '../../../../src/protocol/messages/changes.js';
import { ROLE_MEMBER } from '../../../../src/protocol/reasons.js';

const packer = new MessagePacker();
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const WALL_MS = Date.UTC(2026, 0, 1);
const TOKEN = 7;
/** What the clock of a machine says that has lost it. */
const LOST_CLOCK_MS = 5000;

class PlayedStore implements StorePort {
  readonly storeId: string;
  readonly bootId = 'boot';
  readonly isUp = true;
  readonly canSend = true;
  readonly credit = 1_000_000;
  readonly unackedBytes = 0;
  readonly leaseEndsMs = Infinity;
  readonly leaseTerm = 1;
  version = 2;
  /** Epochs that it was told, in order. */
  readonly epochs: number[] = [];
  #sequence = 0;

  constructor(storeId: string) {
    this.storeId = storeId;
  }

  request(type: number, control: Uint8Array): number {
    const changes = type === CHANGES ? decodeChanges(packer, control) : undefined;
    if (changes !== undefined && !isInvalid(changes)) for (let i = 0; i < sectionCount(changes); i++) this.#noteEpochs(sectionRows(changes, i));
    this.#sequence += 1;
    return this.#sequence;
  }

  flush(): void {}

  askCredit(): void {}

  #noteEpochs(rows: Uint8Array): void {
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    for (let at = 0; at < rows.length; at += CHANGE_ROW_BYTES) if (view.getUint8(at) === KIND_SET_MEMBERS) this.epochs.push(view.getFloat64(at + 16, true));
  }
}

interface Played {
  readonly mirrors: Mirrors;
  readonly mirror: Partition;
  readonly a: PlayedStore;
  readonly c: PlayedStore;
  /** The store tells that it has all of it. */
  acknowledge(store: PlayedStore): void;
}

/** A queue that was taken at store-a, in sync, without store-b, which an operator gave up: both are members of `epoch`; a newer one may be known. */
function taken(epoch: number, version: number, wallMs = WALL_MS, knownEpoch = epoch): Played {
  const mirrors = new Mirrors(
    { group: ['gw-1'], replicas: 2, minReplicas: 1, retryMs: 500, refillFrameBytes: 4096, frameTargetBytes: 65_536, ringBytes: 1_000_000, replaceAfterMs: 60_000, placement: { gatewayHost: undefined, places: new Map() }, token: TOKEN },
    { packer, crc32, log: quiet, nowMs: () => 0, wallMs: () => wallMs, requestFlush: () => {}, refillEntries: () => assert.fail('nothing is filled'), onChanged: () => {}, onEpoch: () => {}, onLost: () => assert.fail('it is ours') },
  );
  const [a, b, c] = [new PlayedStore('store-a'), new PlayedStore('store-b'), new PlayedStore('store-c')];
  const mirror = mirrors.create({ handle: 1, identity: { ownerId: 'gw-1', birth: 1, serial: 1 }, name: 'q' }, (new EntryTable(1)).partitionColumns);
  mirror.adopt(epoch, 9, 1, 2);
  mirror.giveUp(b.storeId, knownEpoch);
  a.version = version;
  for (const store of [a, b, c]) {
    mirrors.addStore(store);
    mirrors.onLinkUp(store);
  }
  for (const store of [a, b]) {
    const replica = mirrors.addReplica(mirror, store);
    replica.member = true;
    replica.wanted = true;
    replica.acked = 9;
    if (store === a) replica.transition(SyncState.SYNC, 'recovered complete', 0);
  }
  mirrors.reviseSetOf(mirror);
  mirrors.flush();
  const acknowledge = (store: PlayedStore): void => {
    mirrors.onAcknowledged(store, 1, mirror.lastNumber);
    mirrors.flush();
  };
  return { mirrors, mirror, a, c, acknowledge };
}

/** Nothing more is opened, whatever time brings. */
function restsAt(played: Played, epoch: number): void {
  for (let n = 0; n < 5; n++) {
    played.mirrors.tick(n * 1000);
    played.mirrors.reviseSetOf(played.mirror);
    played.mirrors.flush();
  }
  assert.deepEqual([played.mirror.setChangeNumber, played.mirror.epoch], [0, epoch]);
}

/** As one that has caught up beside the survivor. */
function joins({ mirrors, mirror }: Played, store: PlayedStore): Replica {
  const replica = mirrors.addReplica(mirror, store);
  replica.transition(SyncState.RESYNC, 'played', 0);
  replica.phase = ResyncPhase.CAUGHT_UP;
  replica.acked = mirror.lastNumber;
  mirrors.reviseSetOf(mirror);
  mirrors.flush();
  return replica;
}

describe('the set that goes on without a store that was given up', () => {
  test('has the time of day for a number, by the word of that gateway; the next one is one more', () => {
    const played = taken(3, 2);
    const { mirror, a } = played;
    const ahead = WALL_MS + TOKEN;
    assert.deepEqual([a.epochs, [...mirror.given], mirror.epoch], [[ahead], [], 3]);
    assert.equal(isNewer(mirror, 'store-b', { role: ROLE_MEMBER, epoch: 1000, members: ['store-b'] }), false, 'what that store shows is older, acknowledged or not');
    played.acknowledge(a);
    restsAt(played, ahead);
    joins(played, played.c);
    assert.deepEqual(a.epochs, [ahead, ahead + 1]);
  });

  test('goes ahead of one that was forced before it, also by a clock that was set back', () => {
    const past = 2 ** 40;
    for (const [epoch, wallMs] of [[3, LOST_CLOCK_MS], [past, LOST_CLOCK_MS], [WALL_MS, WALL_MS - 1]] as const) {
      const { a, mirror } = taken(epoch, 2, wallMs);
      assert.ok((a.epochs[0] ?? 0) > epoch + 10_000, `${String(a.epochs[0])} is far ahead of ${String(epoch)}`);
      assert.equal(mirror.given.size, 0);
    }
  });

  test('goes ahead of any that was known, also of one that was numbered by a clock that is ahead of ours', () => {
    const known = WALL_MS + 3_600_000;
    const [told] = taken(3, 2, WALL_MS, known).a.epochs;
    assert.ok((told ?? 0) > known + 10_000);
  });

  test('has the next number at a store of version 1, which takes no other, and nothing is tried again and again; once that is upgraded it goes ahead', () => {
    const played = taken(3, 1);
    const { mirror, mirrors, a } = played;
    assert.deepEqual([a.epochs, [...mirror.given]], [[4], ['store-b']]);
    assert.equal(isNewer(mirror, 'store-b', { role: ROLE_MEMBER, epoch: 1000, members: ['store-b'] }), false, 'this process does not believe it');
    assert.equal(isNewer(mirror, 'store-c', { role: ROLE_MEMBER, epoch: 1000, members: ['store-b'] }), true);
    played.acknowledge(a);
    restsAt(played, 4);
    const joined = joins(played, played.c);
    assert.deepEqual(a.epochs, [4, 5], 'nor does a mirror that joins there change that');
    played.acknowledge(a);
    played.acknowledge(played.c);
    restsAt(played, 5);
    a.version = 2;
    mirrors.onLinkUp(a);
    mirrors.flush();
    assert.deepEqual([a.epochs, [...mirror.given]], [[4, 5, WALL_MS + TOKEN], []]);
    assert.equal(joined.inSync, true);
  });
});
