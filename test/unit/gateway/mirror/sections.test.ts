import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ChangeRing } from '../../../../src/gateway/mirror/feed/change-ring.js';
import { FeedVariant } from '../../../../src/gateway/mirror/feed/feed-variant.js';
import type { SealedSection } from '../../../../src/gateway/mirror/feed/turn-section.js';
import { PayloadSlabs } from '../../../../src/gateway/mirror/feed/payload-slabs.js';
import { TurnSection } from '../../../../src/gateway/mirror/feed/turn-section.js';
import { CHANGE_ROW_BYTES, FLAG_BODY_ABSENT, FLAG_SHARED, FLAG_SKIPPED, KIND_ANNOTATE, KIND_DELETE, KIND_STORE, KIND_WITHDRAW } from '../../../../src/protocol/change-rows.js';

/** Kept for the notes of entries. */
const ROOM = 30;
const NOTHING_ON_THE_WAY = { mark: () => true, isPast: true };

function joined(pieces: readonly Uint8Array[]): number[] {
  return pieces.flatMap((piece) => [...piece]);
}

function sealed(section: TurnSection): SealedSection {
  return { handle: 1, firstNumber: 1, lastNumber: section.rowCount, digestA: 5, digestB: 6, rows: section.rowBytes().slice(), pieces: section.takePieces(), payloadBytes: section.payloadBytes, creditBytes: section.creditBytes, unpaidBytes: section.unpaidBytes, absent: section.takeAbsent(), keptBytes: section.keptBytes, slabs: section.takeSlabs() };
}

describe('turn section', () => {
  test('payloads come out in the order they went in, whatever shares the slabs', () => {
    fc.assert(fc.property(fc.array(fc.tuple(fc.nat(2), fc.oneof(fc.nat(300), fc.nat(90_000))), { maxLength: 60 }), (adds) => {
      const slabs = new PayloadSlabs(NOTHING_ON_THE_WAY);
      const sections = [new TurnSection(slabs), new TurnSection(slabs), new TurnSection(slabs)];
      const expected: number[][] = [[], [], []];
      adds.forEach(([which, bytes], i) => {
        const payload = new Uint8Array(bytes).fill(i + 1);
        sections[which]?.addPayload(payload);
        if (bytes > 0) expected[which]?.push(i + 1, bytes);
        payload.fill(0);
      });
      sections.forEach((section, which) => {
        const runs: number[] = [];
        for (const byte of joined(section.takePieces())) {
          if (runs.at(-2) === byte) runs[runs.length - 1] = (runs.at(-1) ?? 0) + 1;
          else runs.push(byte, 1);
        }
        assert.deepEqual(runs, expected[which]);
      });
    }), { numRuns: 60 });
  });

  test('a sealed payload is not written again in later turns', () => {
    const slabs = new PayloadSlabs(NOTHING_ON_THE_WAY);
    const section = new TurnSection(slabs);
    section.addPayload(new Uint8Array(1000).fill(1));
    const pieces = section.takePieces();
    section.reset();
    for (let turn = 0; turn < 600; turn++) {
      section.addPayload(new Uint8Array(1000).fill(2));
      section.takePieces();
      section.reset();
    }
    assert.ok(joined(pieces).every((byte) => byte === 1));
  });

  test('what it costs beyond the credit of its entries is known before it is sealed, to the byte', () => {
    const slabs = new PayloadSlabs(NOTHING_ON_THE_WAY);
    const section = new TurnSection(slabs);
    const ring = new ChangeRing({ bytesMax: 1_000_000 }, { releasableThrough: () => 0, roomBytes: () => Infinity, onReleased: () => undefined });
    ring.begin(1, 0, 5, 6);
    for (let i = 0; i < 20; i++) {
      section.addRow(KIND_ANNOTATE, 0, 0, 40, 0, i, 0);
      section.addPayload(new Uint8Array(40));
      section.addRow(KIND_DELETE, 0, 0, 1, 0, i, 0);
    }
    const { uncountedBytes } = section;
    ring.add(sealed(section));
    assert.equal(uncountedBytes, ring.usedBytes);
    section.reset();
    section.addRow(KIND_STORE, 0, 10_000, 100, 0, 1, ROOM);
    section.addPayload(new Uint8Array(10_100));
    section.creditBytes += 10_100 + ROOM + 1000;
    assert.equal(section.uncountedBytes, 0, 'its credit pays for it');
  });

  test('rows beyond the first memory stay as they were; a run of deletes is one row', () => {
    const section = new TurnSection(new PayloadSlabs(NOTHING_ON_THE_WAY));
    for (let i = 0; i < 5000; i++) section.addRow(KIND_WITHDRAW, 0, 0, 0, 0, i + 1, 0);
    section.addRow(KIND_DELETE, 0, 0, 1, 0, 9, 0);
    section.extendLastDelete();
    section.extendLastDelete();
    assert.equal(section.rowCount, 5001);
    assert.equal(section.rowBytes().length, 5001 * CHANGE_ROW_BYTES);
    assert.equal(section.rowView().getFloat64(4999 * CHANGE_ROW_BYTES + 16, true), 5000);
    assert.equal(section.rowView().getUint32(5000 * CHANGE_ROW_BYTES + 8, true), 3);
    section.reset();
    section.addRow(KIND_DELETE, 0, 0, 1, 0, 7, 0);
    assert.equal(section.rowBytes().length, CHANGE_ROW_BYTES);
  });
});

describe('feed of a mirror under refill', () => {
  function mixed(): TurnSection {
    const section = new TurnSection(new PayloadSlabs(NOTHING_ON_THE_WAY));
    const add = (kind: number, flags: number, body: number, head: number, ref: number, mark: number): void => {
      section.addRow(kind, flags, body, head, 77, ref, kind === KIND_STORE ? ROOM : 0);
      const sent = kind === KIND_STORE ? ((flags & FLAG_BODY_ABSENT) === 0 ? body : 0) + head : kind === KIND_ANNOTATE ? head : 0;
      section.addPayload(new Uint8Array(sent).fill(mark));
    };
    add(KIND_ANNOTATE, 0, 0, 4, 3, 1); // behind the cursor
    add(KIND_ANNOTATE, 0, 0, 5, 8, 2); // not refilled yet
    add(KIND_STORE, 0, 6, 2, 4242, 3);
    add(KIND_DELETE, 0, 0, 1, 9, 0); // not refilled yet
    add(KIND_STORE, FLAG_SHARED | FLAG_BODY_ABSENT, 50, 3, 4243, 4);
    add(KIND_WITHDRAW, 0, 0, 0, 11, 0); // live, behind the base
    add(KIND_DELETE, 0, 0, 1, 5, 0); // at the cursor
    return section;
  }

  test('changes of entries between cursor and base are skipped with their payload; digest and sizes stay', () => {
    const whole = sealed(mixed());
    const variant = new FeedVariant().of(whole, 5, 10);
    const flags = Array.from({ length: 7 }, (_, i) => (variant.rows[i * CHANGE_ROW_BYTES + 1] ?? 0) & FLAG_SKIPPED);
    assert.deepEqual(flags, [0, FLAG_SKIPPED, 0, FLAG_SKIPPED, 0, 0, 0]);
    const marks = [...new Set(joined(variant.pieces))];
    assert.deepEqual(marks, [1, 3, 4]);
    assert.equal(joined(variant.pieces).length, 4 + 8 + 3);
    assert.equal(variant.payloadBytes, 15);
    assert.equal(variant.creditBytes, 8 + ROOM + 128 + 3 + ROOM + 128);
    assert.deepEqual([variant.digestA, variant.digestB, variant.firstNumber, variant.lastNumber], [5, 6, 1, 7]);
    const sizes = (rows: Uint8Array): number[] => [...rows].filter((_, i) => i % CHANGE_ROW_BYTES !== 1);
    assert.deepEqual(sizes(variant.rows), sizes(whole.rows));
    assert.equal((whole.rows[CHANGE_ROW_BYTES + 1] ?? 0) & FLAG_SKIPPED, 0, 'the other mirror gets it whole');
  });

  test('with the cursor at the base nothing is skipped', () => {
    const whole = sealed(mixed());
    const variant = new FeedVariant().of(whole, 10, 10);
    assert.deepEqual(variant.rows, whole.rows);
    assert.deepEqual(joined(variant.pieces), joined(whole.pieces));
  });
});
