import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { ChangeRing } from '../../../../../src/gateway/mirror/feed/change-ring.js';
import { NO_SLABS, PayloadSlabs } from '../../../../../src/gateway/mirror/feed/payload-slabs.js';
import type { SealedSection } from '../../../../../src/gateway/mirror/feed/turn-section.js';
import { NO_BODIES, TurnSection } from '../../../../../src/gateway/mirror/feed/turn-section.js';
import { wholeSection } from '../../../../../src/gateway/mirror/feed/whole-section.js';
import { CHANGE_ROW_BYTES, FLAG_BODY_ABSENT, FLAG_SHARED, KIND_DELETE, KIND_STORE, KIND_WITHDRAW } from '../../../../../src/protocol/change-rows.js';
import { Digest } from '../../../../../src/protocol/digest.js';

const NOTHING_ON_THE_WAY = { mark: () => true, isPast: true };

/** A queue of which every number's digest is known. */
class Story {
  readonly handle: number;
  readonly digests: [number, number][] = [[0, 0]];
  readonly digest = new Digest();

  constructor(handle: number) {
    this.handle = handle;
  }

  get number(): number {
    return this.digests.length - 1;
  }

  section(rows: number, payloadBytes: number): SealedSection {
    const section = new TurnSection(new PayloadSlabs(NOTHING_ON_THE_WAY));
    const firstNumber = this.number + 1;
    for (let i = 0; i < rows; i++) {
      const ref = this.handle * 1000 + this.number;
      section.addRow(KIND_WITHDRAW, 0, 0, 0, 0, ref, 0);
      this.digest.add(KIND_WITHDRAW, 0, 0, 0, ref);
      this.digests.push([this.digest.a, this.digest.b]);
    }
    return { handle: this.handle, firstNumber, lastNumber: this.number, digestA: this.digest.a, digestB: this.digest.b, rows: section.rowBytes().slice(), pieces: [], payloadBytes, creditBytes: 0, unpaidBytes: 0, absent: NO_BODIES, keptBytes: 0, slabs: NO_SLABS };
  }
}

describe('change ring', () => {
  test('takes in front what leads to where it begins, and nothing else', () => {
    const story = new Story(1);
    const older = story.section(5, 10);
    const [adoptedA, adoptedB] = story.digests[5] ?? assert.fail('five changes');
    const ring = new ChangeRing({ bytesMax: 10_000 }, { releasableThrough: () => 0, roomBytes: () => Infinity, onReleased: () => undefined });
    ring.begin(1, 5, adoptedA, adoptedB);
    ring.add(story.section(3, 10));
    const [a2, b2] = story.digests[2] ?? assert.fail('two changes');
    assert.equal(ring.stands(1, 2, a2, b2), false);
    assert.equal(ring.prepend({ ...older, lastNumber: 4 }, 0, 0), false, 'a gap');
    assert.equal(ring.prepend(older, 1, 0), false, 'another history');
    const before = ring.usedBytes;
    assert.equal(ring.prepend(older, 0, 0), true);
    assert.ok(ring.usedBytes > before);
    assert.equal(ring.stands(1, 2, a2, b2), true);
    assert.deepEqual(ring.after(1, 2).map(({ firstNumber }) => firstNumber), [1, 6]);
    assert.equal(ring.prepend(older, 0, 0), false, 'once');
  });

  test('knows the digest at every number it holds, gives what follows, and keeps its bound', () => {
    fc.assert(fc.property(fc.array(fc.record({ queue: fc.nat(2), rows: fc.integer({ min: 1, max: 9 }), bytes: fc.nat(900) }), { minLength: 1, maxLength: 80, size: 'max' }), (adds) => {
      const ring = new ChangeRing({ bytesMax: 10_000 }, { releasableThrough: () => Infinity, roomBytes: () => Infinity, onReleased: () => undefined });
      const stories = [1, 2, 3].map((handle) => new Story(handle));
      for (const { handle } of stories) ring.begin(handle, 0, 0, 0);
      for (const { queue, rows, bytes } of adds) {
        const story = stories[queue];
        if (story !== undefined) ring.add(story.section(rows, bytes));
        assert.ok(ring.usedBytes <= 10_000);
      }
      for (const story of stories) {
        const base = ring.baseOf(story.handle) ?? assert.fail('it was begun');
        assert.deepEqual([base.digestA, base.digestB], story.digests[base.number], 'what is let go leads to where it begins now');
        let oldest = story.number;
        for (let n = story.number; n >= 0; n--) {
          const [a, b] = story.digests[n] ?? [0, 0];
          if (!ring.stands(story.handle, n, a, b)) break;
          assert.equal(ring.stands(story.handle, n, a ^ 1, b), false, 'another digest is another history');
          oldest = n;
          let next = n + 1;
          for (const section of ring.after(story.handle, n)) {
            assert.ok(section.firstNumber <= next && section.lastNumber >= next, 'contiguous');
            next = section.lastNumber + 1;
          }
          assert.equal(next, story.number + 1, 'up to the last');
        }
        assert.ok(oldest <= story.number);
        assert.equal(ring.stands(story.handle, story.number + 1, 0, 0), false);
      }
    }));
  });

  test('what a mirror has not acknowledged stays, whatever other queues bring, and goes when it has', () => {
    let pinned = 0;
    const ring = new ChangeRing({ bytesMax: 5_000 }, { releasableThrough: (handle) => (handle === 1 ? pinned : Infinity), roomBytes: () => Infinity, onReleased: () => undefined });
    const slow = new Story(1);
    const busy = new Story(2);
    ring.begin(1, 0, 0, 0);
    ring.begin(2, 0, 0, 0);
    for (let i = 0; i < 3; i++) ring.add(slow.section(2, 500));
    for (let i = 0; i < 100; i++) ring.add(busy.section(1, 500));
    assert.ok(ring.stands(1, 0, 0, 0));
    assert.equal(ring.after(1, 0).length, 3);
    assert.ok(ring.usedBytes <= 5_000, 'the others make room');
    pinned = 6;
    for (let i = 0; i < 10; i++) ring.add(busy.section(1, 500));
    assert.equal(ring.after(1, 0).length, 0);
  });

  test('while memory is short less is kept, but nothing goes that a mirror lacks', () => {
    let room = Infinity;
    let pinned = 0;
    const ring = new ChangeRing({ bytesMax: 100_000 }, { releasableThrough: () => pinned, roomBytes: () => room, onReleased: () => undefined });
    const story = new Story(1);
    ring.begin(1, 0, 0, 0);
    for (let i = 0; i < 10; i++) ring.add(story.section(1, 500));
    room = -1;
    ring.add(story.section(1, 500));
    assert.equal(ring.after(1, 0).length, 11, 'no mirror has acknowledged them');
    pinned = 10;
    ring.add(story.section(1, 500));
    ring.trim(100);
    assert.equal(ring.after(1, 0).length, 2, 'what all have is let go, though the bound allows it');
    room = Infinity;
    for (let i = 0; i < 10; i++) ring.add(story.section(1, 500));
    assert.equal(ring.after(1, 0).length, 12);
  });

  test('a forgotten queue is nowhere, and one that begins anew under its handle is another', () => {
    const ring = new ChangeRing({ bytesMax: 3_000 }, { releasableThrough: () => Infinity, roomBytes: () => Infinity, onReleased: () => undefined });
    const first = new Story(1);
    ring.begin(1, 0, 0, 0);
    ring.add(first.section(2, 100));
    ring.forget(1);
    assert.deepEqual([ring.usedBytes, ring.stands(1, 0, 0, 0), ring.after(1, 0).length], [0, false, 0]);
    ring.begin(1, 40, 7, 8);
    assert.deepEqual([ring.stands(1, 40, 7, 8), ring.stands(1, 0, 0, 0)], [true, false]);
    const other = new Story(2);
    ring.begin(2, 0, 0, 0);
    for (let i = 0; i < 50; i++) ring.add(other.section(1, 100));
    assert.ok(ring.usedBytes <= 3_000);
    assert.ok(ring.stands(1, 40, 7, 8), 'what is left of the first does not touch it');
  });

  test('what was let go is not kept in memory, however many queues there are', async () => {
    const queues = 200;
    const sections = 50;
    const ring = new ChangeRing({ bytesMax: 100_000 }, { releasableThrough: () => Infinity, roomBytes: () => Infinity, onReleased: () => undefined });
    const stories = Array.from({ length: queues }, (_none, i) => new Story(i + 1));
    for (const { handle } of stories) ring.begin(handle, 0, 0, 0);
    const made: WeakRef<SealedSection>[] = [];
    for (let n = 0; n < sections; n++) {
      for (const story of stories) {
        const section = story.section(1, 100);
        made.push(new WeakRef(section));
        ring.add(section);
      }
    }
    // A WeakRef holds its object until the job that made it has ended.
    await new Promise((resolve) => { setImmediate(resolve); });
    setFlagsFromString('--expose-gc');
    const collect: unknown = runInNewContext('gc');
    assert.ok(typeof collect === 'function');
    collect();
    const alive = made.filter((ref) => ref.deref() !== undefined).length;
    assert.ok(alive < 10 * queues, `${alive} of ${queues * sections} sections are in memory`);
    assert.ok(ring.usedBytes <= 100_000, 'the ring is in use until here');
  });
});

describe('whole section', () => {
  test('puts absent bodies back where their rows have them', () => {
    const section = new TurnSection(new PayloadSlabs(NOTHING_ON_THE_WAY));
    const piece = (byte: number, length: number): Uint8Array => new Uint8Array(length).fill(byte);
    section.addRow(KIND_STORE, 0, 4, 2, 9, 1, 30);
    section.addPayload(piece(1, 6));
    section.addRow(KIND_STORE, FLAG_SHARED | FLAG_BODY_ABSENT, 5, 3, 9, 2, 30);
    section.addAbsent([piece(7, 2), piece(8, 3)], 5);
    section.addPayload(piece(2, 3));
    section.addRow(KIND_DELETE, 0, 0, 1, 0, 1, 0);
    section.addRow(KIND_STORE, FLAG_SHARED | FLAG_BODY_ABSENT, 1, 1, 9, 3, 30);
    section.addAbsent([piece(9, 1)], 0);
    section.addPayload(piece(3, 1));
    const sealed: SealedSection = { handle: 1, firstNumber: 1, lastNumber: 4, digestA: 5, digestB: 6, rows: section.rowBytes().slice(), pieces: section.takePieces(), payloadBytes: section.payloadBytes, creditBytes: 500, unpaidBytes: 0, absent: section.takeAbsent(), keptBytes: section.keptBytes, slabs: section.takeSlabs() };
    const whole = wholeSection(sealed);
    assert.deepEqual(whole.pieces.flatMap((bytes) => [...bytes]), [1, 1, 1, 1, 1, 1, 7, 7, 8, 8, 8, 2, 2, 2, 9, 3]);
    assert.deepEqual([0, 1, 3].map((row) => whole.rows[row * CHANGE_ROW_BYTES + 1]), [0, FLAG_SHARED, FLAG_SHARED]);
    assert.deepEqual([whole.payloadBytes, whole.creditBytes, whole.lastNumber, whole.digestA], [16, 506, 4, 5]);
    assert.equal((sealed.rows[CHANGE_ROW_BYTES + 1] ?? 0) & FLAG_BODY_ABSENT, FLAG_BODY_ABSENT, 'the section itself stays as it is');
  });
});
