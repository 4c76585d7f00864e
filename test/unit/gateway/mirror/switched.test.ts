/** The mirrors against stores that are played: what a store is sent after another path carries its link. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Mirrors } from '../../../../src/gateway/mirror/mirrors.js';
import type { Partition } from '../../../../src/gateway/mirror/partition.js';
import { SyncState } from '../../../../src/gateway/mirror/replica.js';
import type { StorePort } from '../../../../src/gateway/mirror/store-port.js';
import { EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import { isInvalid } from '../../../../src/protocol/invalid.js';
import { CHANGES, messageTypeName } from '../../../../src/protocol/message-types.js';
import { decodeChanges, sectionCount, sectionFirstNumber, sectionRows } from '../../../../src/protocol/messages/changes.js';
import { CHANGE_ROW_BYTES } from '../../../../src/protocol/change-rows.js';

const packer = new MessagePacker();
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

class PlayedStore implements StorePort {
  readonly storeId: string;
  readonly bootId = 'boot';
  readonly version = 2;
  isUp = true;
  canSend = true;
  readonly credit = 1_000_000;
  readonly unackedBytes = 0;
  readonly leaseEndsMs = Infinity;
  readonly leaseTerm = 1;
  /** Requests since they were taken last, in short; CHANGES with their numbers. */
  #sent: string[] = [];
  #sequence = 0;

  constructor(storeId: string) {
    this.storeId = storeId;
  }

  request(type: number, control: Uint8Array): number {
    const changes = type === CHANGES ? decodeChanges(packer, control) : undefined;
    if (changes === undefined || isInvalid(changes)) this.#sent.push(messageTypeName(type));
    else {
      for (let i = 0; i < sectionCount(changes); i++) {
        const first = sectionFirstNumber(changes, i);
        this.#sent.push(`${String(first)}-${String(first + sectionRows(changes, i).length / CHANGE_ROW_BYTES - 1)}`);
      }
    }
    this.#sequence += 1;
    return this.#sequence;
  }

  flush(): void {}

  askCredit(): void {}

  taken(): string[] {
    const sent = this.#sent;
    this.#sent = [];
    return sent;
  }
}

interface Played {
  readonly mirrors: Mirrors;
  readonly mirror: Partition;
  readonly a: PlayedStore;
  readonly b: PlayedStore;
  /** One turn in which the queue gets so many messages. */
  turn(count: number): void;
}

function played(): Played {
  const mirrors = new Mirrors(
    { group: ['gw-1'], replicas: 2, minReplicas: 1, retryMs: 500, refillFrameBytes: 4096, frameTargetBytes: 65_536, ringBytes: 1_000_000, replaceAfterMs: 60_000, placement: { gatewayHost: undefined, places: new Map() }, token: 7 },
    { packer, crc32, log: quiet, nowMs: () => 0, wallMs: () => 0, requestFlush: () => {}, refillEntries: () => assert.fail('nothing is filled'), onChanged: () => {}, onEpoch: () => {}, onLost: () => assert.fail('it is ours') },
  );
  const a = new PlayedStore('store-a');
  const b = new PlayedStore('store-b');
  const table = new EntryTable(1);
  const mirror = mirrors.create({ handle: 1, identity: { ownerId: 'gw-1', birth: 1, serial: 1 }, name: 'q' }, (table).partitionColumns);
  mirror.adopt(1, 0, 0, 0);
  mirror.firstMembers = ['store-a', 'store-b'];
  for (const store of [a, b]) {
    mirrors.addStore(store);
    mirrors.onLinkUp(store);
    const replica = mirrors.addReplica(mirror, store);
    replica.member = true;
    replica.wanted = true;
    replica.transition(SyncState.SYNC, 'queue created', 0);
    mirrors.open(mirror, replica);
  }
  let messageId = 0;
  const turn = (count: number): void => {
    for (let i = 0; i < count; i++) {
      messageId += 1;
      const body = new Uint8Array(10).fill(messageId);
      const head = new Uint8Array(4);
      mirror.store(messageId, 0, [body], body.length, head, crc32(head, crc32(body, 0)), 0);
    }
    mirrors.flush();
  };
  return { mirrors, mirror, a, b, turn };
}

describe('after another path carries a link', () => {
  test('the queue is attached again and all that was not acknowledged is repeated in order, under the same numbers, there alone', () => {
    const { mirrors, mirror, a, b, turn } = played();
    turn(2);
    turn(3);
    turn(1);
    assert.deepEqual(a.taken(), ['OPEN', '1-2', '3-5', '6-6']);
    assert.deepEqual(b.taken(), ['OPEN', '1-2', '3-5', '6-6']);
    mirrors.onAcknowledged(a, 1, 6);
    mirrors.onAcknowledged(b, 1, 2);
    assert.equal(mirror.committedNumber, 2);
    mirrors.onLinkSwitched(b);
    mirrors.flush();
    assert.deepEqual(b.taken(), ['OPEN', '3-5', '6-6']);
    assert.deepEqual(a.taken(), []);
    assert.ok(mirror.replicas.every((replica) => replica.inSync), 'nobody is isolated');
    turn(1);
    assert.deepEqual(b.taken(), ['7-7'], 'what comes later stands behind');
    mirrors.onAcknowledged(a, 1, 7);
    mirrors.onAcknowledged(b, 1, 7);
    assert.equal(mirror.committedNumber, 7);
  });

  test('a second change of the path before any answer repeats the same once more, and no more than once', () => {
    const { mirrors, b, turn } = played();
    turn(2);
    mirrors.onAcknowledged(b, 1, 1);
    b.taken();
    for (let round = 0; round < 2; round++) {
      mirrors.onLinkSwitched(b);
      mirrors.flush();
      const sent = b.taken();
      assert.equal(sent[0], 'OPEN');
      assert.deepEqual(sent.slice(1), ['1-2'], 'sections are repeated whole: the store takes each change once');
    }
  });

  test('changes that waited for the new path are sent behind the repeats, once', () => {
    const { mirrors, b, turn } = played();
    turn(2);
    b.taken();
    b.canSend = false;
    turn(1);
    b.canSend = true;
    mirrors.onLinkSwitched(b);
    mirrors.flush();
    assert.deepEqual(b.taken(), ['OPEN', '1-2', '3-3']);
  });
});
