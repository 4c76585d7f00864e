import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { MirroredPartition } from '../../../../src/kvs/core/mirrored-partition.js';
import type { Store } from '../../../../src/kvs/core/store.js';
import { FLAG_BODY_ABSENT, FLAG_SHARED, FLAG_SKIPPED, KIND_STORE } from '../../../../src/protocol/change-rows.js';
import { REFUSAL_CHECKSUM, REFUSAL_COUNT, REFUSAL_INVALID } from '../../../../src/protocol/reasons.js';
import {
  ORIGIN, accountOf, annotating, applyTo, attached, beginFill, change, deleting, found, newStore, nextSection, positions, pullAll, refill, refillRows,
  section, storing, withdrawing,
} from './section-kit.js';
import type { TestChange, TestEntry } from './section-kit.js';

describe('a refill', () => {
  test('empties the copy, stands it at the number given and puts entries in front of live ones', () => {
    const store = newStore();
    const source = found(store, 1);
    const target = found(store, 2);
    change(store, source, storing(1, 'a'), storing(2, 'b'), annotating(2, 'note'), storing(3, 'c'), deleting(1));
    change(store, target, storing(9, 'stale'));
    const before = pullAll(store, source);
    const filled = beginFill(store, 'g1/2', ORIGIN, source);
    assert.equal(filled, target);
    assert.equal(target.count, 0);
    assert.equal(target.isComplete, false);
    const live = nextSection(source, [storing(4, 'live')]);
    assert.equal(applyTo(store, source, live), 0);
    assert.equal(applyTo(store, target, live), 0);
    assert.equal(refill(store, target, before.slice(0, 1)), 0);
    assert.equal(refill(store, target, before.slice(1)), 0);
    assert.equal(store.refills.end(target, 2), 0);
    assert.deepEqual(pullAll(store, target), pullAll(store, source));
    assert.deepEqual([target.number, target.digestA, target.digestB], [source.number, source.digestA, source.digestB]);
    assert.equal(target.isComplete, true);
  });

  test('is not complete while entries are missing: nobody reads it, and a wrong count leaves it so', () => {
    const store = newStore();
    const copy = beginFill(store, 'g1/1', ORIGIN, { number: 2, digestA: 1, digestB: 2 });
    const attachment = attached(copy);
    assert.deepEqual([store.check(attachment), store.checkReader(attachment)], [0, REFUSAL_INVALID]);
    assert.equal(store.ask({ partition: 'g1/1', holder: { gatewayId: 'g1', incarnation: 0 } }, 0).hasCopy, false);
    assert.equal(store.refills.end(copy, 1), REFUSAL_COUNT);
    assert.equal(copy.isComplete, false);
    assert.equal(store.refills.end(copy, 0), 0);
    assert.equal(store.checkReader(attachment), 0);
    assert.equal(store.refills.end(copy, 0), REFUSAL_INVALID, 'over is over');
  });

  test('refuses positions that do not rise or lie beyond its number, a wrong count, a bad checksum', () => {
    const store = newStore();
    const copy = found(store, 1);
    const entry = (position: number): TestEntry => ({ position, id: position, flags: 0, body: 'b', head: 'h', note: 'n' });
    assert.equal(refill(store, copy, [entry(1)]), REFUSAL_INVALID, 'of a copy that is complete');
    beginFill(store, 'g1/1', ORIGIN, { number: 5, digestA: 1, digestB: 2 });
    assert.equal(refill(store, copy, [entry(3)]), 0);
    assert.equal(refill(store, copy, [entry(3)]), REFUSAL_INVALID);
    assert.equal(refill(store, copy, [entry(2)]), REFUSAL_INVALID);
    assert.equal(refill(store, copy, [entry(6)]), REFUSAL_INVALID);
    for (const at of [0, 1, 2]) {
      const { rows, payload } = refillRows([entry(4)]);
      payload[at] = 0x7e;
      assert.equal(store.refill(accountOf(store), copy, new DataView(rows.buffer), 0, 1, payload), REFUSAL_CHECKSUM);
    }
    assert.equal(store.segments.records, 1, 'what was refused left nothing behind');
    assert.equal(store.refills.end(copy, 2), REFUSAL_COUNT);
    assert.equal(store.refills.end(copy, 1), 0);
  });

  test('goes on behind an entry that was deleted at the cursor', () => {
    const store = newStore();
    const copy = found(store, 1);
    beginFill(store, 'g1/1', ORIGIN, { number: 3, digestA: 1, digestB: 2 });
    const entry = (position: number): TestEntry => ({ position, id: position, flags: 0, body: 'b', head: 'h', note: '' });
    refill(store, copy, [entry(1), entry(2)]);
    assert.equal(change(store, copy, storing(7, 'live'), deleting(2)), 0);
    assert.equal(change(store, copy, deleting(1), deleting(99)), 7, 'refused: the cursor is back where it was');
    assert.equal(refill(store, copy, [entry(3)]), 0);
    assert.deepEqual(positions(store, copy), [1, 3, 4]);
    change(store, copy, deleting(1, 2));
    assert.deepEqual(positions(store, copy), [4]);
  });

  test('frees what was there before in steps', () => {
    const store = newStore();
    const copy = found(store);
    for (let i = 0; i < 100; i += 1) change(store, copy, ...Array.from({ length: 100 }, (_, j) => storing(i * 100 + j, 'body')));
    beginFill(store, 'g1/1', ORIGIN);
    assert.equal(copy.count, 0);
    assert.equal(store.entries.count, 10_000);
    let steps = 0;
    while (store.hasWork) {
      store.work();
      steps += 1;
    }
    assert.ok(steps > 1);
    assert.equal(store.entries.count, 0);
    assert.equal(store.segments.liveBytes, 0);
  });
});

/** One random step: what to do, and where. */
interface Step {
  readonly op: number;
  readonly at: number;
  readonly size: number;
}

/** Mirror A is live; mirror B is filled from what A holds while the same changes go on, as a gateway does it. */
class Pair {
  readonly a: Store = newStore();
  readonly b: Store = newStore();
  readonly copyA: MirroredPartition = found(this.a);
  readonly copyB: MirroredPartition = found(this.b, 1);
  #filling = false;
  /** It was begun once. */
  #isFilled = false;
  #cursor = 0;
  #until = 0;
  #refilled = 0;
  #nextId = 1;

  begin(): void {
    if (this.#filling || this.copyB.number > 0) return;
    beginFill(this.b, 'g1/1', ORIGIN, this.copyA);
    this.#until = this.copyA.number;
    this.#filling = true;
    this.#isFilled = true;
  }

  /** Sends the next entries as they are at A now. */
  fill(most: number): void {
    if (!this.#filling) return;
    const block = pullAll(this.a, this.copyA).filter((e) => e.position > this.#cursor && e.position <= this.#until).slice(0, most);
    if (block.length === 0) {
      assert.equal(this.b.refills.end(this.copyB, this.#refilled), 0);
      this.#filling = false;
      return;
    }
    assert.equal(refill(this.b, this.copyB, block), 0);
    this.#refilled += block.length;
    this.#cursor = block.at(-1)?.position ?? this.#cursor;
  }

  finish(): void {
    this.begin();
    while (this.#filling) this.fill(7);
  }

  step({ op, at, size }: Step): void {
    const held = pullAll(this.a, this.copyA);
    const entry = held[at % Math.max(1, held.length)];
    const text = 'x'.repeat(size);
    if (op < 4 || entry === undefined) this.#change([storing(this.#nextId++, text, `h${String(at)}`)]);
    else if (op === 4) this.#storeShared(text);
    else if (op === 5) this.#change([annotating(entry.position, `note ${text}`)]);
    else if (op === 6) this.#change([annotating(entry.position, '')]);
    else if (op === 7) this.#change([withdrawing(entry.position)]);
    else if (op === 8) this.#delete(held, at % held.length, 1 + (size % 5));
    else if (op === 9) this.#change([storing(this.#nextId++, text), deleting(this.copyA.number + 1)]);
    else this.fill(1 + (size % 4));
  }

  #storeShared(body: string): void {
    const id = this.#nextId++;
    this.#change([storing(id, body, 'first', FLAG_SHARED)]);
    this.#change([storing(id, body, 'second', FLAG_SHARED | FLAG_BODY_ABSENT)]);
  }

  /** A range that reaches over the cursor is refilled up to its end first. */
  #delete(held: readonly TestEntry[], from: number, wanted: number): void {
    const range = held.slice(from, from + wanted);
    const first = range[0];
    const last = range.at(-1);
    if (first === undefined || last === undefined) return;
    if (first.position <= this.#cursor) this.#fillTo(last.position);
    if (this.#filling && first.position > this.#cursor && first.position <= this.#until && last.position > this.#until) {
      this.#change([deleting(first.position)]);
      return;
    }
    this.#change([deleting(first.position, range.length)]);
  }

  #fillTo(position: number): void {
    while (this.#filling && position > this.#cursor && this.#cursor < this.#until) this.fill(1);
  }

  #change(changes: readonly TestChange[]): void {
    const number = this.copyA.number;
    const { digestA, digestB } = this.copyA;
    assert.equal(applyTo(this.a, this.copyA, section(number, digestA, digestB, changes)), 0);
    if (this.#until === 0 && !this.#filling && !this.#isFilled) return;
    const forB = changes.map((each) => (this.#isBeyond(each) ? { ...each, flags: (each.flags ?? 0) | FLAG_SKIPPED } : each));
    assert.equal(applyTo(this.b, this.copyB, section(number, digestA, digestB, forB)), 0);
  }

  #isBeyond(each: TestChange): boolean {
    if (!this.#filling || each.kind === KIND_STORE) return false;
    return each.ref > this.#cursor && each.ref <= this.#until;
  }
}

test('a mirror filled at any moment, under any live changes, ends equal to the one that was always there', () => {
  const step = fc.record({ op: fc.integer({ min: 0, max: 12 }), at: fc.nat(50), size: fc.nat(40) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40, size: 'max' }), fc.array(step, { maxLength: 60, size: 'max' }), (before, during) => {
      const pair = new Pair();
      for (const each of before) if (each.op <= 9) pair.step(each);
      pair.begin();
      for (const each of during) pair.step(each);
      pair.finish();
      const { a, b, copyA, copyB } = pair;
      const plain = (entries: TestEntry[]): unknown[] => entries.map(({ position, id, body, head, note }) => [position, id, body, head, note]);
      assert.deepEqual(plain(pullAll(b, copyB, 5)), plain(pullAll(a, copyA, 3)));
      assert.deepEqual([copyB.number, copyB.digestA, copyB.digestB], [copyA.number, copyA.digestA, copyA.digestB]);
      assert.deepEqual([copyB.count, copyB.bytes], [copyA.count, copyA.bytes]);
    }),
    { numRuns: 300 },
  );
});
