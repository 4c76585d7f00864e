/** Above the last mark of memory: reports to the half, deliveries in flight to three quarters, then one at a time. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { DeliveryRoom } from '../../../../src/gateway/queue/delivery-room.js';
import type { MailQueue } from '../../../../src/gateway/queue/mail-queue.js';
import { MemoryGauge } from '../../../../src/gateway/queue/memory-gauge.js';
import { noteRoom } from '../../../../src/gateway/queue/note.js';

const LIMIT_BYTES = 1_000_000;
const RESERVE_BYTES = 960_000;
/** Beside the note: a row of 24 bytes in a section of its own, 512. */
const CHANGE_BYTES = 536;

/** What is asked of a queue here: how far the copies of its partition are. */
function queueOf(partition: { ackedNumber: number; lastNumber: number }): MailQueue {
  return { partition } as unknown as MailQueue;
}

function world(): { gauge: MemoryGauge; room: DeliveryRoom; held: { bytes: number; askedBytes: number }; woken: MailQueue[] } {
  const held = { bytes: 0, askedBytes: 0 };
  const gauge = new MemoryGauge({ limitBytes: LIMIT_BYTES, acceptShare: 0.8, reserveShare: 0.96 }, () => held.bytes, () => held.askedBytes);
  const woken: MailQueue[] = [];
  return { gauge, held, woken, room: new DeliveryRoom({ memory: gauge, wake: (queue) => { woken.push(queue); } }) };
}

describe('room for deliveries', () => {
  test('is promised from when they are taken until they are settled, and reports leave it alone', () => {
    const { gauge, held, room } = world();
    const queue = queueOf({ ackedNumber: 0, lastNumber: 1 });
    held.bytes = RESERVE_BYTES;
    const each = noteRoom(1000) + CHANGE_BYTES;
    let taken = 0;
    while (room.admits(queue, noteRoom(1000))) {
      room.taken(1000);
      taken++;
    }
    assert.equal(taken, Math.floor(30_000 / each));
    assert.equal(gauge.promisedBytes, taken * each);
    assert.deepEqual([gauge.admitsEnding(1), gauge.usedBytes], [false, RESERVE_BYTES]);
    for (; taken > 0; taken--) room.settled(1000);
    assert.equal(gauge.promisedBytes, 0);
    assert.deepEqual([gauge.admitsEnding(20_000), gauge.admitsEnding(20_001)], [true, false]);
  });

  test('leaves alone what was asked for of the stores: it comes however full memory is by then', () => {
    const { gauge, held, room } = world();
    const queue = queueOf({ ackedNumber: 0, lastNumber: 1 });
    held.bytes = RESERVE_BYTES;
    held.askedBytes = 29_000;
    assert.equal(room.admits(queue, noteRoom(1)), true);
    assert.equal(gauge.admitsEnding(1), false);
    held.askedBytes = 30_000;
    assert.equal(room.admits(queue, noteRoom(1)), false);
    assert.equal(room.admitsExpiry(queue.partition, noteRoom(1)), false);
    assert.equal(gauge.usedBytes, RESERVE_BYTES);
  });

  test('wakes who waits when there is room again, and forgets what went with its partition', () => {
    const { held, room, woken } = world();
    const [one, gone] = [queueOf({ ackedNumber: 0, lastNumber: 1 }), queueOf({ ackedNumber: 0, lastNumber: 1 })];
    held.bytes = LIMIT_BYTES;
    assert.deepEqual([room.admits(one, noteRoom(1)), room.admits(gone, noteRoom(1))], [false, false]);
    room.look();
    assert.deepEqual(woken, []);
    room.forget(gone.partition);
    held.bytes = RESERVE_BYTES;
    room.look();
    room.look();
    assert.deepEqual(woken, [one]);
  });

  test('is always there for one delivery of a partition whose copies have all there is, however full memory is', () => {
    const { held, room, woken } = world();
    const partition = { ackedNumber: 4, lastNumber: 5 };
    const [behind, level] = [queueOf(partition), queueOf({ ackedNumber: 7, lastNumber: 7 })];
    held.bytes = LIMIT_BYTES;
    assert.deepEqual([room.admits(behind, noteRoom(1)), room.admits(level, noteRoom(1))], [false, true]);
    room.taken(1);
    assert.equal(room.admits(level, noteRoom(1)), false, 'one is in flight');
    partition.ackedNumber = 5;
    room.look();
    assert.deepEqual(woken, []);
    room.settled(1);
    room.look();
    assert.deepEqual(woken, [behind, level]);
  });

  test('is not given to words that nothing depends on', () => {
    const { gauge, held } = world();
    held.bytes = RESERVE_BYTES;
    assert.equal(gauge.admitsTexts, true);
    held.bytes += 1;
    assert.equal(gauge.admitsTexts, false);
  });
});
