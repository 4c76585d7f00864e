/** What goes back to the stores while memory is short, and when (due-bodies.ts, entries.ts). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Segments } from '../../../../src/base/segments.js';
import type { Partition } from '../../../../src/gateway/mirror/set/partition.js';
import { ContentStore } from '../../../../src/gateway/queue/content-store.js';
import { DueBodies } from '../../../../src/gateway/queue/due-bodies.js';
import { Entries } from '../../../../src/gateway/queue/entries.js';
import { EntryState, EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import type { MailQueue } from '../../../../src/gateway/queue/mail-queue.js';
import { MemoryGauge } from '../../../../src/gateway/queue/memory-gauge.js';
import { encodeNote, freshNote, noteRoom } from '../../../../src/gateway/queue/note.js';
import { PositionOrder } from '../../../../src/gateway/mirror/set/position-order.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';

const LIMIT_BYTES = 1000;
const ROOM = 20;
const UNTIL = 1000;
const BODY = Uint8Array.of(1, 2, 3);
const HEAD = Uint8Array.of(4, 5, 6, 7);
const NOTE = Uint8Array.of(8, 9);

/** One entry of a partition that was taken over; nothing else of partition and queue is used here. */
class Bench {
  readonly entries: Entries;
  readonly bodies: DueBodies;
  readonly partition: Partition & { ackedNumber: number; lastNumber: number; isPartial: boolean };
  readonly row: number;
  usedBytes = LIMIT_BYTES;

  constructor(room = ROOM) {
    const table = new EntryTable(1);
    this.entries = new Entries({ textsBytesMax: 0 }, table, new ContentStore(new Segments({ segmentBytes: 4096 })), crc32);
    const memory = new MemoryGauge({ limitBytes: LIMIT_BYTES, acceptShare: 0.8, reserveShare: 0.97 }, () => this.usedBytes);
    this.bodies = new DueBodies({ entries: this.entries, memory });
    const order = new PositionOrder(table.partitionColumns);
    this.partition = { order, isOwn: true, isPartial: true, ackedNumber: 4, lastNumber: 5 } as unknown as Bench['partition'];
    this.entries.absent.begin(this.partition, UNTIL);
    const queue = { handle: 1, partition: this.partition } as unknown as MailQueue;
    const slot = this.entries.contents.storeOwn([BODY], BODY.length, HEAD, room);
    this.row = this.entries.create(queue, 7, slot, 0, BODY.length, crc32(HEAD, crc32(BODY, 0)), 1, 2, room);
    table.position.set(this.row, 10);
    table.transition(this.row, EntryState.READY);
    this.entries.setNote(this.row, NOTE);
  }

  get what(): 'all' | 'head and note' | 'its place' {
    if (!this.entries.isAbsent(this.row)) return 'all';
    return this.entries.isAllAbsent(this.row) ? 'its place' : 'head and note';
  }

  acknowledged(number: number): this {
    this.partition.ackedNumber = number;
    this.bodies.tick(0);
    return this;
  }
}

describe('an entry that nothing needs here any more', () => {
  test('stays while there is memory', () => {
    const bench = new Bench();
    bench.usedBytes = 100;
    bench.bodies.onUsed(bench.partition, bench.row);
    assert.equal(bench.what, 'all');
  });

  test('loses its body alone while there is memory for envelopes', () => {
    const bench = new Bench();
    bench.usedBytes = 0.7 * LIMIT_BYTES;
    bench.bodies.onUsed(bench.partition, bench.row);
    assert.equal(bench.acknowledged(5).what, 'head and note');
  });

  test('keeps its head until every copy has acknowledged what became of it', () => {
    const bench = new Bench();
    bench.bodies.onUsed(bench.partition, bench.row);
    assert.equal(bench.what, 'head and note');
    assert.equal(bench.acknowledged(4).what, 'head and note');
    assert.equal(bench.acknowledged(5).what, 'its place');
  });

  test('goes at once when every copy has all that was changed', () => {
    const bench = new Bench();
    bench.partition.ackedNumber = 5;
    bench.bodies.onUsed(bench.partition, bench.row);
    assert.equal(bench.what, 'its place');
  });

  test('keeps its head when more becomes of it meanwhile, until every copy has acknowledged that', () => {
    const bench = new Bench();
    bench.bodies.onUsed(bench.partition, bench.row);
    bench.entries.setNote(bench.row, Uint8Array.of(8, 10));
    bench.partition.lastNumber = 6;
    assert.equal(bench.acknowledged(5).what, 'head and note');
    assert.equal(bench.acknowledged(6).what, 'its place');
  });

  test('keeps its head while it owes a report: whoever asks where that goes reads it again and again', () => {
    const owing = encodeNote({ ...freshNote(1), owedChange: 3 });
    const bench = new Bench(noteRoom(1));
    bench.entries.setNote(bench.row, owing);
    bench.partition.ackedNumber = 5;
    bench.bodies.onUsed(bench.partition, bench.row);
    assert.equal(bench.acknowledged(5).what, 'head and note');
    const later = new Bench(noteRoom(1));
    later.bodies.onUsed(later.partition, later.row);
    later.entries.setNote(later.row, owing);
    later.partition.lastNumber = 6;
    for (let i = 0; i < 3; i++) assert.equal(later.acknowledged(6).what, 'head and note');
  });

  test('goes a while after it came, when nobody used it', () => {
    const bench = new Bench();
    bench.partition.ackedNumber = 5;
    bench.bodies.tick(1000);
    bench.bodies.onCame(bench.partition, bench.row);
    bench.bodies.tick(5999);
    assert.equal(bench.what, 'all');
    bench.bodies.tick(6000);
    assert.equal(bench.what, 'its place');
  });

  test('stays after it came when it is in use, its row another one\'s, or memory was plenty', () => {
    const inUse = new Bench();
    inUse.bodies.onCame(inUse.partition, inUse.row);
    inUse.entries.table.transition(inUse.row, EntryState.IN_FLIGHT);
    const other = new Bench();
    other.bodies.onCame(other.partition, other.row);
    other.entries.table.position.set(other.row, 20);
    const plenty = new Bench();
    plenty.usedBytes = 100;
    plenty.bodies.onCame(plenty.partition, plenty.row);
    plenty.usedBytes = LIMIT_BYTES;
    for (const bench of [inUse, other, plenty]) {
      bench.bodies.tick(60_000);
      assert.equal(bench.what, 'all');
    }
  });

  test('stays when it is on its way again, or a delivery has it', () => {
    const room = { countMax: 9, bytesMax: 1e6, wantedBytes: 1e6, restBytes: 1e6, mayTakeOne: false, aloneBytes: 0, nowMs: 0 };
    const asked = new Bench();
    asked.bodies.onUsed(asked.partition, asked.row);
    asked.entries.absent.wantSoon(asked.partition, asked.row);
    assert.deepEqual(asked.entries.absent.next(asked.partition, room, false), [10]);
    assert.equal(asked.acknowledged(5).what, 'head and note');
    const sending = new Bench();
    sending.bodies.onUsed(sending.partition, sending.row);
    sending.entries.table.transition(sending.row, EntryState.IN_FLIGHT);
    assert.equal(sending.acknowledged(5).what, 'head and note');
  });

  test('stays when its row is another one\'s by then, or its partition is whole here', () => {
    const bench = new Bench();
    bench.bodies.onUsed(bench.partition, bench.row);
    bench.entries.table.position.set(bench.row, 20);
    assert.equal(bench.acknowledged(5).what, 'head and note');
    const whole = new Bench();
    whole.bodies.onUsed(whole.partition, whole.row);
    whole.partition.isPartial = false;
    assert.equal(whole.acknowledged(5).what, 'head and note');
  });

  test('comes back whole, with its note, and is counted meanwhile as what it is', () => {
    const bench = new Bench();
    const { entries, partition, row } = bench;
    const queue = { handle: 1, partition } as unknown as MailQueue;
    partition.ackedNumber = 5;
    bench.bodies.onUsed(partition, row);
    assert.deepEqual([entries.bytes(row), entries.absent.sizeOf(row)], [7, 7 + ROOM]);
    assert.deepEqual([entries.absent.count, entries.contents.segments.records], [1, 0]);
    assert.throws(() => entries.head(row), /before it is read/);
    assert.throws(() => entries.note(row), /before it is read/);
    assert.throws(() => { entries.setNote(row, NOTE); }, /before it is noted/);
    entries.putAll(queue, row, Uint8Array.of(...BODY, ...HEAD), NOTE, 0);
    assert.deepEqual([bench.what, entries.bytes(row), entries.absent.count], ['all', 7, 0]);
    assert.deepEqual([entries.head(row), entries.note(row)], [HEAD, NOTE]);
    const body = new Uint8Array(BODY.length);
    entries.copyBody(row, body, 0);
    assert.deepEqual(body, BODY);
    assert.equal(entries.isDamaged(row), false);
  });
});
