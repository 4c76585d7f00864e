/** One checksum over all payloads of a frame: when it is enough, and that nothing damaged gets in by it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MirroredPartition } from '../../../../src/kvs/core/mirrored-partition.js';
import { STORE_DEFAULTS, Store } from '../../../../src/kvs/core/store.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { CHANGE_ROW_BYTES, FLAG_SHARED } from '../../../../src/protocol/change-rows.js';
import { REFUSAL_CHECKSUM } from '../../../../src/protocol/reasons.js';
import type { Section } from './section-kit.js';
import { BOOT_ID, accountOf, annotating, attached, bytes, concat, deleting, nextSection, found, positions, storing } from './section-kit.js';

interface Made {
  readonly store: Store;
  readonly copies: readonly MirroredPartition[];
  /** Checksums computed since it was asked last. */
  computed(): number;
}

function made(): Made {
  let count = 0;
  const counting = (of: Uint8Array, seed: number): number => {
    count += 1;
    return crc32(of, seed);
  };
  const store = new Store(
    { ...STORE_DEFAULTS, storeId: 'store-a', bootId: BOOT_ID, startMs: 0, indexSeed: 7, gateways: [{ id: 'g1', secret: bytes('secret') }], memoryLimitBytes: 1 << 28 },
    { crc32: counting },
  );
  const copies = [1, 2, 3].map((serial) => found(store, serial));
  const computed = (): number => {
    const before = count;
    count = 0;
    return before;
  };
  return { store, copies, computed };
}

/** The elements of a frame: its rows lie in one buffer, as they come. */
function controlOf(sections: readonly Section[]): { rows: Uint8Array; changes: (number | Uint8Array)[] } {
  const rows = concat(sections.map((section) => section.rows));
  let at = 0;
  const changes = sections.flatMap((section) => {
    at += section.rows.length;
    return [1, section.first, section.a, section.b, rows.subarray(at - section.rows.length, at)];
  });
  return { rows, changes };
}

/** Applies the sections as one frame, as a connection does; answers the reasons. */
function frame({ store, copies }: Made, sections: readonly Section[], payload = concat(sections.map((section) => section.payload)), judged = payload, known = -1): number[] {
  const { rows, changes } = controlOf(sections);
  const view = new DataView(rows.buffer);
  let rowsAt = 0;
  let payloadAt = 0;
  store.applier.beginFrame(changes, judged, known);
  const reasons = sections.map((section, i) => {
    const copy = copies[i] ?? assert.fail('a copy for each section');
    const reason = store.applySection(accountOf(store), attached(copy), section.first, section.a, section.b, view, rowsAt, section.rows.length / CHANGE_ROW_BYTES, payload, payloadAt, 0);
    rowsAt += section.rows.length;
    payloadAt += section.payload.length;
    return reason;
  });
  store.applier.endFrame();
  return reasons;
}

function sectionsOf({ copies }: Made): Section[] {
  return copies.map((copy, i) => nextSection(copy, [storing(10 + i, `first body ${String(i)}`), storing(20 + i, 'second', ''), ...(i === 1 ? [deleting(1)] : [])]));
}

describe('the checksum of a frame', () => {
  test('is computed once for all its sections', () => {
    const world = made();
    const sections = sectionsOf(world);
    world.computed();
    assert.deepEqual(frame(world, sections), [0, 0, 0]);
    assert.equal(world.computed(), 1);
    assert.deepEqual(world.copies.map((copy) => positions(world.store, copy)), [[1, 2], [2], [1, 2]]);
  });

  test('is not computed again when it was worked out as the frame came, and then judges it as well', () => {
    for (const [error, reasons] of [[0, [0, 0, 0]], [1, [0, REFUSAL_CHECKSUM, 0]]] as const) {
      const world = made();
      const sections = sectionsOf(world);
      const payload = concat(sections.map((section) => section.payload));
      const middle = payload.length >>> 1;
      payload[middle] = (payload[middle] ?? 0) ^ error;
      const known = crc32(payload, 0);
      world.computed();
      assert.deepEqual(frame(world, sections, payload, payload, known), reasons);
      if (error === 0) assert.equal(world.computed(), 0);
    }
  });

  test('does for a frame of one section', () => {
    const world = made();
    const sections = sectionsOf(world).slice(0, 1);
    world.computed();
    assert.deepEqual(frame(world, sections), [0]);
    assert.equal(world.computed(), 1);
  });

  test('when one byte is wrong, the section that it is in is refused, and only that', () => {
    const { length } = concat(sectionsOf(made()).map((section) => section.payload));
    for (let at = 0; at < length; at += 1) {
      const world = made();
      const sections = sectionsOf(world);
      const payload = concat(sections.map((section) => section.payload));
      payload[at] = (payload[at] ?? 0) ^ 0x10;
      const hit = Math.floor(at / (length / 3));
      assert.deepEqual(frame(world, sections, payload), [0, 1, 2].map((i) => (i === hit ? REFUSAL_CHECKSUM : 0)), `byte ${String(at)}`);
    }
  });

  test('payloads that changed places between sections are refused', () => {
    const world = made();
    const sections = sectionsOf(world);
    const [a, b, c] = sections.map((section) => section.payload);
    assert.ok(a !== undefined && b !== undefined && c !== undefined);
    assert.deepEqual(frame(world, sections, concat([b, a, c])), [REFUSAL_CHECKSUM, REFUSAL_CHECKSUM, 0]);
  });

  test('holds for the bytes it was computed of alone, and not beyond the frame', () => {
    const world = made();
    const sections = sectionsOf(world);
    const payload = concat(sections.map((section) => section.payload));
    const damaged = payload.slice();
    damaged[0] = (damaged[0] ?? 0) ^ 1;
    assert.deepEqual(frame(world, sections, damaged, payload), [REFUSAL_CHECKSUM, 0, 0]);
    const later = made();
    const again = sectionsOf(later);
    const same = concat(again.map((section) => section.payload));
    later.store.applier.beginFrame(controlOf(again).changes, same);
    later.store.applier.endFrame();
    same[0] = (same[0] ?? 0) ^ 1;
    const [first] = again;
    assert.ok(first !== undefined);
    const view = new DataView(first.rows.buffer);
    assert.equal(later.store.applySection(accountOf(later.store), attached(later.copies[0] ?? assert.fail()), first.first, first.a, first.b, view, 0, 2, same, 0, 0), REFUSAL_CHECKSUM);
  });

  test('tells nothing where a row is of another kind: sections are judged by themselves', () => {
    for (const odd of [annotating(1, 'note'), storing(9, 'shared', 'h', FLAG_SHARED)]) {
      const world = made();
      const sections = sectionsOf(world);
      const [copy] = world.copies;
      assert.ok(copy !== undefined);
      sections[0] = nextSection(copy, [storing(10, 'first body'), odd]);
      const payload = concat(sections.map((section) => section.payload));
      payload[payload.length - 1] = (payload.at(-1) ?? 0) ^ 1;
      assert.deepEqual(frame(world, sections, payload), [0, 0, REFUSAL_CHECKSUM]);
    }
  });

  test('takes no harm from rows that claim more than the frame has, which are judged later', () => {
    const world = made();
    const sections = sectionsOf(world);
    const [, second] = sections;
    assert.ok(second !== undefined);
    const view = new DataView(second.rows.buffer);
    view.setUint32(4, 0xffffffff, true);
    view.setUint32(8, 0xffffffff, true);
    world.computed();
    world.store.applier.beginFrame(controlOf(sections).changes, new Uint8Array(100));
    assert.equal(world.computed(), 0);
  });
});
