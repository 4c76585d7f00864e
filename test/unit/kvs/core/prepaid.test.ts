/** G7 at a store: what an entry needs until its end is paid for with its STORE; texts are beside it, and may get lost. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { TextPool } from '../../../../src/base/text-pool.js';
import type { MirroredPartition } from '../../../../src/kvs/core/mirrored-partition.js';
import type { Store } from '../../../../src/kvs/core/store.js';
import { CREDIT_OVERHEAD_BYTES, FLAG_BODY_ABSENT, FLAG_SHARED, NOTE_CRC_BYTES } from '../../../../src/protocol/change-rows.js';
import { REFUSAL_MISSING } from '../../../../src/protocol/reasons.js';
import { TEXT_BYTES_MAX, TextRows, textOf, textPosition } from '../../../../src/protocol/text-rows.js';
import { annotating, bytes, change, deleting, fingerprint, newStore, found, pullAll, storing, withdrawing } from './section-kit.js';

function rowsOf(...texts: readonly (readonly [position: number, text: string])[]): Uint8Array {
  const rows = new TextRows();
  for (const [position, text] of texts) rows.add(position, bytes(text));
  return rows.take();
}

/** The texts that a pull of the whole copy shows. */
function pulledTexts(store: Store, copy: MirroredPartition): [number, string][] {
  const { texts } = store.blocks.pull(copy, 0, Number.MAX_SAFE_INTEGER, 1000, 1 << 24);
  const shown: [number, string][] = [];
  for (let at = 0; at < texts.length; at += 10 + textOf(texts, at).length) shown.push([textPosition(texts, at), new TextDecoder().decode(textOf(texts, at))]);
  return shown;
}

describe('hard state', () => {
  test('is paid for by STORE: whatever follows, no more is counted than the entries that are left have cost', () => {
    const step = fc.record({ op: fc.nat(8), pick: fc.nat(1000), size: fc.nat(900), room: fc.nat(300), isRefused: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 80, size: 'max' }), (steps) => {
        const store = newStore({ memoryLimitBytes: 8_000_000, segmentBytes: 4096, ringBytes: 0 });
        const [one, two] = [found(store, 1), found(store, 2)];
        const rooms = new Map<number, number>();
        let paid = 0;
        const costs = new Map<number, number>();
        const shared = new Set<number>();
        steps.forEach(({ op, pick, size, room, isRefused }, i) => {
          const living = [...rooms.keys()];
          const position = living[pick % Math.max(1, living.length)] ?? 0;
          const isLast = isRefused ? [deleting(1_000_000)] : [];
          const reason = isRefused ? REFUSAL_MISSING : 0;
          if (op <= 2 || position === 0) {
            const flags = op === 0 ? FLAG_SHARED : 0;
            assert.equal(change(store, one, storing(i + 1, 's'.repeat(size), 'head', flags, room), ...isLast), reason);
            if (isRefused) return;
            rooms.set(one.number, room);
            costs.set(one.number, size + 4 + room + CREDIT_OVERHEAD_BYTES);
            if (op === 0) {
              assert.equal(change(store, two, storing(i + 1, 's'.repeat(size), 'head', FLAG_SHARED | FLAG_BODY_ABSENT, room)), 0);
              shared.add(one.number);
              costs.set(-i - 1, 4 + room + CREDIT_OVERHEAD_BYTES);
            }
          } else if (op <= 6) {
            const most = Math.max(0, (rooms.get(position) ?? 0) - NOTE_CRC_BYTES);
            assert.equal(change(store, one, annotating(position, 'n'.repeat(size % (most + 1))), annotating(position, 'm'.repeat(most)), ...isLast), reason);
          } else {
            assert.equal(change(store, one, op === 7 ? deleting(position) : withdrawing(position), ...isLast), reason);
            if (isRefused) return;
            rooms.delete(position);
            // A body that the other copy shares stays, and so does what was paid for it.
            if (!shared.has(position)) costs.delete(position);
          }
          paid = [...costs.values()].reduce((sum, cost) => sum + cost, 0);
          assert.ok(store.admission.chargedBytes <= paid, `counted ${String(store.admission.chargedBytes)}, paid ${String(paid)}`);
        });
      }),
      { numRuns: 100 },
    );
  });
});

describe('texts', () => {
  test('come back with the entries, the last one of each; those of entries that are gone, or were never tried, are not kept', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'a'), storing(2, 'b'), storing(3, 'c'), annotating(1, 'n'), annotating(3, 'n'));
    store.keepTexts(copy, rowsOf([1, 'busy'], [2, 'never tried'], [3, 'first'], [9, 'gone']));
    store.keepTexts(copy, rowsOf([3, 'second']));
    assert.deepEqual(pulledTexts(store, copy), [[1, 'busy'], [3, 'second']]);
    change(store, copy, deleting(1), annotating(3, ''));
    assert.deepEqual([pulledTexts(store, copy), store.texts.count, store.texts.heldBytes], [[], 0, 0]);
  });

  test('change neither number nor digest, nor what a block brings, whatever becomes of them', () => {
    const [with_, without] = [newStore(), newStore({ memoryLimitBytes: 1_000_000, segmentBytes: 4096 })];
    const copies = [with_, without].map((store) => {
      const copy = found(store);
      assert.equal(change(store, copy, storing(1, 'a'), annotating(1, 'n')), 0);
      return copy;
    });
    const [kept, dropped] = copies;
    assert.ok(kept !== undefined && dropped !== undefined);
    // Nothing is left below the accept mark: no text is kept, and mail goes on to its end.
    while (change(without, found(without, 2), storing(1, 'x'.repeat(1_000))) === 0);
    const before = copies.map((copy) => [copy.number, copy.digestA, copy.digestB]);
    with_.keepTexts(kept, rowsOf([1, 'busy']));
    without.keepTexts(dropped, rowsOf([1, 'busy']));
    assert.deepEqual([with_.texts.count, without.texts.count], [1, 0]);
    assert.deepEqual(copies.map((copy) => [copy.number, copy.digestA, copy.digestB]), before);
    assert.deepEqual(pullAll(with_, kept), pullAll(without, dropped));
    for (const [store, copy] of [[with_, kept], [without, dropped]] as const) assert.equal(change(store, copy, annotating(1, 'm'), deleting(1)), 0);
    assert.deepEqual([kept.number, kept.digestA, kept.digestB], [dropped.number, dropped.digestA, dropped.digestB]);
  });

  test('go with the entry by whatever way it goes, a refused section brings nothing of them back or away', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, ...[1, 2, 3, 4].map((id) => storing(id, 'a')), ...[1, 2, 3, 4].map((id) => annotating(id, 'n')));
    store.keepTexts(copy, rowsOf([1, 'a'], [2, 'b'], [3, 'c'], [4, 'd']));
    const before = fingerprint(store, copy);
    assert.equal(change(store, copy, deleting(1), annotating(2, 'other'), deleting(77)), REFUSAL_MISSING);
    assert.deepEqual([fingerprint(store, copy), store.texts.count], [before, 4]);
    change(store, copy, deleting(1, 2), withdrawing(3), annotating(4, ''));
    assert.deepEqual([store.texts.count, store.segments.records], [0, 1]);
  });

  test('are bounded: the oldest go first', () => {
    const store = newStore({ memoryLimitBytes: 1_000_000, segmentBytes: 4096 });
    const copy = found(store);
    const count = 100;
    change(store, copy, ...Array.from({ length: count }, (_, i) => storing(i + 1, 'a')), ...Array.from({ length: count }, (_, i) => annotating(i + 1, 'n')));
    for (let position = 1; position <= count; position++) store.keepTexts(copy, rowsOf([position, 't'.repeat(TEXT_BYTES_MAX)]));
    const most = Math.floor(1_000_000 / 32 / TextPool.costOf(new Uint8Array(TEXT_BYTES_MAX)));
    assert.ok(most > 10 && store.texts.heldBytes <= 1_000_000 / 32);
    assert.deepEqual(pulledTexts(store, copy).map(([position]) => position), Array.from({ length: most }, (_, i) => count - most + 1 + i));
  });
});
