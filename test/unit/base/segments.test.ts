import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Prng } from '../../../src/base/prng.js';
import { Segments } from '../../../src/base/segments.js';

function pattern(seed: number, bytes: number): Uint8Array {
  const out = new Uint8Array(bytes);
  for (let i = 0; i < bytes; i++) out[i] = (seed * 31 + i * 7 + (i >>> 8)) & 255;
  return out;
}

/** A cheap mark at both ends, so that large workloads can check every record. */
function mark(segments: Segments, slot: number, id: number): void {
  const at = segments.offsetOf(slot);
  const view = segments.segmentOf(slot);
  const end = at + segments.bytesOf(slot) - 1;
  view[at] = id & 255;
  view[end] = (id >>> 8) & 255;
}

function hasMark(segments: Segments, slot: number, id: number): boolean {
  const at = segments.offsetOf(slot);
  const view = segments.segmentOf(slot);
  return view[at] === (id & 255) && view[at + segments.bytesOf(slot) - 1] === ((id >>> 8) & 255);
}

/** Touches memory when it is told to; what is in use meanwhile would be overwritten. */
class OtherThread {
  readonly asked: { readonly bytes: Uint8Array; readonly done: () => void }[] = [];
  bytes = 0;
  readonly touchPages = (bytes: Uint8Array, done: () => void): void => {
    this.asked.push({ bytes, done });
    this.bytes += bytes.length;
  };

  run(): void {
    for (const { bytes, done } of this.asked.splice(0)) {
      bytes.fill(0);
      done();
    }
  }
}

describe('Segments', () => {
  test('keeps what was written, whatever is freed and compacted around it', () => {
    const command = fc.oneof(
      { weight: 6, arbitrary: fc.record({ kind: fc.constant('allocate'), n: fc.oneof(fc.nat(700), fc.nat(9000)) }) },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('free'), n: fc.nat() }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('compact'), n: fc.nat(6000) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('expect'), n: fc.nat(300_000) }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('touched'), n: fc.nat() }) },
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 300, size: 'max' }), (commands) => {
        const thread = new OtherThread();
        const segments = new Segments({ segmentBytes: 4096, touchPages: thread.touchPages });
        const model = new Map<number, Uint8Array>();
        let seed = 0;
        for (const { kind, n } of commands) {
          if (kind === 'allocate') {
            const bytes = pattern(seed++, n);
            const slot = (seed & 1) === 0 ? segments.keep(bytes) : segments.allocate(n);
            assert.ok(slot > 0 && !model.has(slot), 'a slot names one living record');
            const half = n >>> 1;
            if ((seed & 1) !== 0) {
              segments.write(slot, half, bytes.subarray(half));
              segments.write(slot, 0, bytes.subarray(0, half));
            }
            model.set(slot, bytes);
          } else if (kind === 'free' && model.size > 0) {
            const slot = [...model.keys()][n % model.size] ?? 0;
            segments.free(slot);
            model.delete(slot);
          } else if (kind === 'compact') segments.compact(n);
          else if (kind === 'expect') segments.expect(n >>> 10, n);
          else if (kind === 'touched') thread.run();
          assert.equal(segments.records, model.size);
        }
        let least = 0;
        for (const [slot, bytes] of model) {
          assert.equal(segments.bytesOf(slot), bytes.length);
          assert.deepEqual(Uint8Array.from(segments.read(slot)), bytes);
          const part = new Uint8Array(bytes.length + 2);
          segments.copyTo(slot, 0, bytes.length, part, 1);
          assert.deepEqual(part.subarray(1, 1 + bytes.length), bytes);
          least += bytes.length;
        }
        assert.ok(segments.liveBytes >= least && segments.liveBytes <= least + 16 * model.size);
        assert.ok(segments.usedBytes >= segments.liveBytes);
        for (const slot of model.keys()) segments.free(slot);
        segments.expectNoMore();
        assert.equal(segments.liveBytes, 0);
        assert.ok(segments.usedBytes <= 4 * 4096);
      }),
      { numRuns: 150 },
    );
  });

  test('keeps use within 1.25 × live bytes when 1% of the records, at random, live 100 times longer', () => {
    const segmentBytes = 65_536;
    const segments = new Segments({ segmentBytes });
    const random = new Prng(20_260_101);
    const records = 200_000;
    const life = 2_000; // records that arrive while a common one lives
    const endsAt: number[][] = [];
    const slots = new Map<number, number>();
    let moved = 0;
    let allocated = 0;
    let worst = 0;
    for (let id = 0; id < records; id++) {
      const bytes = 200 + random.below(1600);
      allocated += bytes;
      const slot = segments.allocate(bytes);
      mark(segments, slot, id);
      slots.set(id, slot);
      // Exponential lives: no order of arrival that would empty segments by itself.
      const lives = Math.ceil(-Math.log(1 - random.next()) * life * (random.below(100) === 0 ? 100 : 1));
      if (id + lives < records) (endsAt[id + lives] ??= []).push(id);
      for (const ended of endsAt[id] ?? []) {
        const its = slots.get(ended) ?? 0;
        assert.ok(hasMark(segments, its, ended));
        segments.free(its);
        slots.delete(ended);
      }
      if (id % 8 === 0) moved += segments.compact(32_768);
      if (id > 5_000) worst = Math.max(worst, (segments.usedBytes - 6 * segmentBytes) / segments.liveBytes);
    }
    assert.ok(worst <= 1.25, `used − 6 segments was ${String(worst)} × live at worst`);
    assert.ok(moved < 3 * allocated, `moved ${String(moved / allocated)} bytes for each new one`);
    for (const [id, slot] of slots) assert.ok(hasMark(segments, slot, id));
    for (const slot of slots.values()) segments.free(slot);
    assert.equal(segments.records, 0);
    assert.ok(segments.usedBytes <= 4 * segmentBytes, 'an emptied structure gives its memory back');
  });

  test('leaves a short queue alone that mail passes through, and a long one when little is gone of it', () => {
    const segments = new Segments({ segmentBytes: 65_536 });
    const slots: number[] = [];
    for (let i = 0; i < 100; i++) slots.push(segments.allocate(1000));
    for (let i = 0; i < 40_000; i++) {
      slots.push(segments.allocate(1000));
      // Not in order, as deliveries end.
      const [ended = 0] = slots.splice((i * 7) % 50, 1);
      segments.free(ended);
      if (segments.hasGaps) assert.equal(segments.compact(1_000_000), 0);
    }
    for (let i = 0; i < 20_000; i++) slots.push(segments.allocate(1000));
    for (let i = 0; i < slots.length; i += 10) segments.free(slots[i] ?? 0);
    assert.equal(segments.hasGaps, false);
    for (let i = 1; i < slots.length; i += 10) segments.free(slots[i] ?? 0);
    assert.equal(segments.hasGaps, true);
    assert.ok(segments.compact(1e9) > 0);
    assert.equal(segments.hasGaps, false);
  });

  test('keeps spare segments while they are needed, and gives them back when a burst is over', () => {
    const segmentBytes = 65_536;
    const segments = new Segments({ segmentBytes });
    segments.allocate(1000);
    const used = (): number => segments.usedBytes / segmentBytes;
    const blocks = new Set<Uint8Array>();
    for (let round = 0; round < 40; round++) {
      const slots = Array.from({ length: 250 }, () => segments.allocate(1000));
      for (const slot of slots) blocks.add(segments.segmentOf(slot));
      for (const slot of slots) segments.free(slot);
      if (round % 4 === 3) segments.rest();
    }
    assert.ok(blocks.size <= 6, `${String(blocks.size)} segments were made`);
    assert.ok(used() >= 4, `${String(used())} are held`);
    segments.rest();
    assert.ok(used() <= 4, `${String(used())} are held when nothing comes`);
  });

  test('gives segments back as a queue drains in order, without compaction', () => {
    const segments = new Segments({ segmentBytes: 65_536 });
    const slots: number[] = [];
    for (let i = 0; i < 20_000; i++) slots.push(segments.allocate(1000));
    const full = segments.usedBytes;
    assert.ok(full < 20_000 * 1016 * 1.02 + 2 * 65_536);
    for (let i = 0; i < 15_000; i++) segments.free(slots[i] ?? 0);
    assert.ok(segments.usedBytes < full * 0.25 + 6 * 65_536);
    assert.equal(segments.compact(1e9), 0, 'dense segments are left alone');
    for (let i = 15_000; i < 20_000; i++) segments.free(slots[i] ?? 0);
    assert.ok(segments.usedBytes <= 4 * 65_536);
  });

  test('takes no new memory while it fills a little and runs empty again and again', () => {
    const segments = new Segments({ segmentBytes: 65_536 });
    const blocks = new Set<Uint8Array>();
    for (let round = 0; round < 50; round++) {
      const slots: number[] = [];
      for (let i = 0; i < 150; i++) slots.push(segments.allocate(1000));
      for (const slot of slots) blocks.add(segments.segmentOf(slot));
      for (const slot of slots) segments.free(slot);
    }
    assert.ok(blocks.size <= 4, `${String(blocks.size)} segments were made`);
  });

  test('does as much as the budget allows and goes on with the next call', () => {
    const segments = new Segments({ segmentBytes: 65_536 });
    const slots: number[] = [];
    for (let i = 0; i < 4_000; i++) slots.push(segments.allocate(500));
    for (let i = 0; i < 4_000; i++) if (i % 4 !== 0) segments.free(slots[i] ?? 0);
    let calls = 0;
    for (let moved = segments.compact(2_000); moved > 0 && calls < 10_000; moved = segments.compact(2_000)) {
      assert.ok(moved <= 2_000 + 512, 'at most one record over the budget');
      calls += 1;
    }
    assert.ok(calls > 20);
    assert.ok(segments.usedBytes <= segments.liveBytes + (4 + 6) * 65_536);
    assert.equal(segments.compact(0), 0);
  });

  test('survives records being freed while their segment is half emptied', () => {
    const segments = new Segments({ segmentBytes: 4096 });
    const slots: number[] = [];
    for (let i = 0; i < 800; i++) {
      const slot = segments.allocate(100);
      mark(segments, slot, i);
      slots.push(slot);
    }
    const left = new Set<number>();
    for (let i = 0; i < 800; i++) {
      if (i % 3 === 0) left.add(i);
      else segments.free(slots[i] ?? 0);
    }
    const random = new Prng(7);
    while (left.size > 0) {
      segments.compact(150);
      const id = random.pick([...left]);
      assert.ok(hasMark(segments, slots[id] ?? 0, id));
      segments.free(slots[id] ?? 0);
      left.delete(id);
    }
    assert.equal(segments.liveBytes, 0);
  });

  test('gives a large record a block of its own size and gives that back at once', () => {
    const segments = new Segments({ segmentBytes: 4096 });
    const small = segments.allocate(10);
    const before = segments.usedBytes;
    const large = segments.allocate(100_000);
    assert.equal(segments.usedBytes, before + 100_008);
    segments.write(large, 99_998, Uint8Array.of(1, 2));
    assert.deepEqual(Uint8Array.from(segments.read(large).subarray(99_998)), Uint8Array.of(1, 2));
    segments.free(large);
    assert.equal(segments.usedBytes, before);
    segments.free(small);
  });

  test('wastes less than an eighth at the ends of segments, whatever the size of the records', () => {
    for (const bytes of [0, 1, 120, 3_000, 7_000, 8_100, 8_184, 8_185, 12_000]) {
      const segments = new Segments({ segmentBytes: 65_536 });
      for (let i = 0; i < 2_000; i++) segments.allocate(bytes);
      assert.ok(segments.usedBytes <= segments.liveBytes * 1.15 + 65_536, `records of ${String(bytes)}`);
    }
  });

  test('names more segments than one word of the slot table can', () => {
    // 512 segments of 64 MiB fill a word. Giving out a late number stands in for 32 GiB of memory.
    const segments = new Segments({ segmentBytes: 2 ** 26 });
    const inside = segments as unknown as { lists: { freeNumbers: number[] } };
    inside.lists.freeNumbers.push(100_000, 700);
    const first = segments.allocate(50);
    const second = segments.allocate(9_000_000);
    mark(segments, first, 1);
    mark(segments, second, 2);
    assert.ok(hasMark(segments, first, 1) && hasMark(segments, second, 2));
    assert.notEqual(segments.segmentOf(first), segments.segmentOf(second));
    segments.free(second);
    inside.lists.freeNumbers.splice(0, 9, 255 * 512);
    assert.throws(() => segments.allocate(9_000_000), /within what the slot table can name/);
  });

  test('stops at a slot that names nothing and at bytes outside a record', () => {
    const segments = new Segments({ segmentBytes: 4096 });
    const slot = segments.allocate(16);
    const other = segments.allocate(16);
    assert.throws(() => segments.read(0), /a slot names a record that lives/);
    assert.throws(() => segments.read(99), /column that holds/);
    assert.throws(() => { segments.write(slot, 10, new Uint8Array(7)); }, /within its record/);
    assert.throws(() => { segments.write(slot, -1, new Uint8Array(1)); }, /within its record/);
    assert.throws(() => { segments.copyTo(slot, 8, 9, new Uint8Array(99), 0); }, /within its record/);
    assert.throws(() => { segments.copyTo(slot, 0, 9, new Uint8Array(9), 1); }, /fits its target/);
    segments.free(slot);
    assert.throws(() => { segments.free(slot); }, /a slot names a record that lives/);
    segments.free(other);
    assert.throws(() => new Segments({ segmentBytes: 5000 }), /power of two/);
  });

  describe('that are expected', () => {
    const segmentBytes = 4096;
    /** So many records of 500 bytes, seven in a segment. */
    function filled(records: number): { segments: Segments; slots: number[] } {
      const segments = new Segments({ segmentBytes });
      segments.expect(records, records * 500);
      const slots = Array.from({ length: records }, (_none, id) => {
        const slot = segments.allocate(500);
        mark(segments, slot, id);
        return slot;
      });
      return { segments, slots };
    }

    test('come out of one allocation, and count only as far as they are used', () => {
      const { segments, slots } = filled(700);
      assert.ok(new Set(slots.map((slot) => segments.segmentOf(slot).buffer)).size <= 16, 'what the estimate lacks comes as ever');
      assert.ok(segments.usedBytes <= 110 * segmentBytes);
      const begun = new Segments({ segmentBytes });
      begun.expect(7_000, 3_500_000);
      begun.allocate(500);
      assert.equal(begun.usedBytes, segmentBytes);
    });

    test('go back as one when the last record has gone, be it in a segment that is still open', () => {
      const { segments, slots } = filled(300);
      for (const slot of slots) segments.free(slot);
      assert.ok(segments.usedBytes <= 2 * segmentBytes, `${String(segments.usedBytes)} bytes are held for nothing`);
    });

    test('are taken again before anything new while some of them are in use', () => {
      const { segments, slots } = filled(700);
      const held = segments.usedBytes;
      for (let round = 0; round < 3; round++) {
        for (let id = 0; id < 350; id++) segments.free(slots[id] ?? 0);
        for (let id = 0; id < 350; id++) slots[id] = segments.allocate(500);
        assert.ok(segments.usedBytes <= held + 4 * segmentBytes);
      }
    });

    test('get their pages on another thread, a few ahead of what is used and counted', () => {
      const thread = new OtherThread();
      const segments = new Segments({ segmentBytes, touchPages: thread.touchPages });
      segments.expect(7_000, 3_500_000);
      const touched: Uint8Array[] = [];
      let slot = 0;
      for (let id = 0; id < 1_400; id++) {
        slot = segments.allocate(500);
        touched.push(...thread.asked.map(({ bytes }) => bytes));
        thread.run();
        assert.ok(segments.usedBytes <= segments.liveBytes + 10 * segmentBytes, 'what is ahead is bounded');
      }
      const isTouched = (bytes: Uint8Array): boolean => touched.some(({ buffer, byteOffset, length }) => buffer === bytes.buffer && byteOffset <= bytes.byteOffset && bytes.byteOffset + bytes.length <= byteOffset + length);
      assert.ok(isTouched(segments.segmentOf(slot)));
      assert.equal(segments.usedBytes, segmentBytes + thread.bytes, 'the first one was made as it was used; all others count since they are touched');
    });

    test('are made as ever while the other thread is late, none of them twice', () => {
      const thread = new OtherThread();
      const segments = new Segments({ segmentBytes, touchPages: thread.touchPages });
      segments.expect(700, 350_000);
      const slots = Array.from({ length: 350 }, (_none, id) => {
        const slot = segments.keep(pattern(id, 500));
        if (id % 100 === 99) thread.run();
        return slot;
      });
      for (const [id, slot] of slots.entries()) assert.deepEqual(Uint8Array.from(segments.read(slot)), pattern(id, 500));
    });

    test('are touched no more when nothing is expected, and what was touched for nothing goes', () => {
      const thread = new OtherThread();
      const segments = new Segments({ segmentBytes, touchPages: thread.touchPages });
      segments.expect(7_000, 3_500_000);
      const slots = Array.from({ length: 100 }, () => segments.allocate(500));
      segments.expectNoMore();
      thread.run();
      assert.equal(thread.asked.length, 0);
      for (let id = 0; id < 1_000; id++) slots.push(segments.allocate(500));
      assert.equal(thread.asked.length, 0);
      for (const slot of slots) segments.free(slot);
      assert.ok(segments.usedBytes <= 2 * segmentBytes);
    });

    test('do not stay for a few dense segments, nor for an open one', () => {
      const { segments, slots } = filled(700);
      const kept = slots.map((slot, id) => ({ slot, id })).filter(({ id }) => (id >= 200 && id < 214) || id >= 690);
      for (const [id, slot] of slots.entries()) if (!kept.some((its) => its.id === id)) segments.free(slot);
      for (let tick = 0; tick < 50; tick++) segments.compact(2_000);
      assert.ok(segments.usedBytes <= 12 * segmentBytes, `${String(segments.usedBytes / segmentBytes)} segments are held for ${String(kept.length)} records`);
      for (const { slot, id } of kept) assert.ok(hasMark(segments, slot, id));
    });
  });

  test('takes an empty record', () => {
    const segments = new Segments({ segmentBytes: 4096 });
    const slot = segments.allocate(0);
    segments.write(slot, 0, new Uint8Array(0));
    assert.equal(segments.read(slot).length, 0);
    segments.free(slot);
    assert.equal(segments.records, 0);
  });
});
