import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { MirroredPartition } from '../../../../src/kvs/core/mirrored-partition.js';
import type { Store } from '../../../../src/kvs/core/store.js';
import { FLAG_BODY_ABSENT, FLAG_SHARED, FLAG_SKIPPED } from '../../../../src/protocol/change-rows.js';
import {
  ROOM, accountOf, annotating, applyTo, beginFill, change, deleting, newStore, nextSection, found, join, pullAll, section, storing, termOf, withdrawing,
} from './section-kit.js';
import type { Section, TestChange } from './section-kit.js';

/** Where a copy stood after each of its changes, and what they were. */
class Story {
  readonly copy: MirroredPartition;
  readonly changes: TestChange[] = [];
  readonly digests: (readonly [a: number, b: number])[] = [[0, 0]];

  constructor(copy: MirroredPartition) {
    this.copy = copy;
  }

  apply(store: Store, ...changes: TestChange[]): void {
    let from = this.copy.number;
    for (const one of changes) {
      const [a, b] = this.digests[from] ?? [0, 0];
      const next = section(from, a, b, [one]);
      this.digests.push([next.a, next.b]);
      this.changes.push(one);
      from += 1;
    }
    assert.equal(change(store, this.copy, ...changes), 0);
  }

  /** The tail behind a number, as the section that should come. */
  wanted(number: number): Section {
    const [a, b] = this.digests[number] ?? [0, 0];
    return section(number, a, b, this.changes.slice(number));
  }

  tail(number: number) {
    const [a, b] = this.digests[number] ?? [0, 0];
    return this.copy.ring.tail(this.copy, number, a, b);
  }
}

/** Any next change that the copy can take. */
function nextChange(story: Story, number: number, living: number[], pick: number, size: number): TestChange {
  const position = living[pick % Math.max(1, living.length)] ?? 0;
  const kind = living.length === 0 ? 0 : pick % 5;
  if (kind === 1) return annotating(position, 'n'.repeat(size % (ROOM - 3)));
  if (kind === 3) {
    living.splice(living.indexOf(position), 1);
    return pick % 2 === 0 ? deleting(position) : withdrawing(position);
  }
  living.push(number);
  return kind === 2 ? storing(number * 2 + story.copy.ordinal, 's'.repeat(size), 'head', FLAG_SHARED) : storing(number, 'b'.repeat(size), 'envelope');
}

describe('the ring of changes', () => {
  test('gives exactly what followed any number it still knows, also from the middle of a section', () => {
    const step = fc.record({ copy: fc.nat(1), changes: fc.array(fc.tuple(fc.nat(1000), fc.nat(3000)), { minLength: 1, maxLength: 8 }) });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), (steps) => {
        const store = newStore({ memoryLimitBytes: 8_000_000, ringBytes: 64 * 1024 });
        const stories = [new Story(found(store, 1)), new Story(found(store, 2))];
        const living: number[][] = [[], []];
        for (const { copy, changes } of steps) {
          const story = stories[copy];
          const alive = living[copy];
          assert.ok(story !== undefined && alive !== undefined);
          // One change of the set a section, or its epochs would have to be told here.
          let epochs = 0;
          const list = changes.map(([pick, size], i) => nextChange(story, story.changes.length + 1 + i, alive, pick % 7 === 4 && (epochs += 1) > 1 ? 0 : pick, size));
          story.apply(store, ...list);
        }
        for (const story of stories) checkTails(story);
        assert.ok(store.admission.ringBytes <= 64 * 1024);
      }),
      { numRuns: 150 },
    );
  });

  test('brings a copy that stands behind to the same content', () => {
    const store = newStore();
    const story = new Story(found(store));
    const behind = newStore();
    const copy = found(behind);
    const first = [storing(1, 'one'), storing(2, 'two'), storing(3, 'three')];
    story.apply(store, ...first);
    story.apply(store, annotating(2, 'tried'), deleting(1), annotating(3, 'new three'));
    assert.equal(change(behind, copy, ...first, annotating(2, 'tried')), 0);
    const tail = story.tail(4);
    assert.ok(tail !== undefined);
    const { digestA, digestB } = story.copy;
    assert.equal(applyTo(behind, copy, { first: 5, a: digestA, b: digestB, rows: tail.rows, payload: tail.bodies }), 0);
    assert.deepEqual(pullAll(behind, copy), pullAll(store, story.copy));
  });

  test('knows nothing behind another digest, a number to come, or a change that went as SKIPPED', () => {
    const store = newStore();
    const story = new Story(found(store));
    story.apply(store, storing(1, 'one'), storing(2, 'two'));
    const { copy } = story;
    assert.equal(copy.ring.tail(copy, 1, 7, 7), undefined);
    assert.equal(copy.ring.tail(copy, 2, 7, 7), undefined);
    assert.equal(copy.ring.tail(copy, 3, 0, 0), undefined);
    story.apply(store, { ...annotating(1, 'not for this copy'), flags: FLAG_SKIPPED });
    story.apply(store, storing(4, 'four'));
    assert.equal(story.tail(2), undefined, 'another copy would skip it too');
    assert.equal(story.tail(3)?.rows.length, 24);
  });

  test('keeps only what was new of a section that is a repeat in part', () => {
    const store = newStore();
    const story = new Story(found(store));
    story.apply(store, storing(1, 'one'), storing(2, 'two'));
    const whole = section(0, 0, 0, [storing(1, 'one'), storing(2, 'two'), storing(3, 'three', 'h3')]);
    assert.equal(applyTo(store, story.copy, whole), 0);
    const tail = story.tail(2);
    assert.equal(new TextDecoder().decode(tail?.bodies), 'threeh3');
    assert.deepEqual(story.tail(0)?.bodies, whole.payload);
  });

  test('is kept when a higher term takes the copy, and begins anew when the copy is emptied', () => {
    const store = newStore();
    const story = new Story(found(store));
    story.apply(store, storing(1, 'one'), storing(2, 'two'));
    join(store, 'g1/1', termOf(2), { id: 'g2' });
    story.apply(store, storing(3, 'three'));
    assert.equal(story.tail(1)?.rows.length, 48);
    const [a, b] = story.digests[3] ?? [0, 0];
    beginFill(store, 'g1/1', termOf(2), { id: 'g2', number: 3, digestA: a, digestB: b });
    assert.equal(story.tail(1), undefined);
    assert.equal(story.tail(3)?.rows.length, 0, 'nothing is missing at its own number');
  });

  test('is counted, never takes more than its share, nor what was promised to mail', () => {
    const store = newStore({ memoryLimitBytes: 4_000_000, segmentBytes: 4096 });
    const { admission } = store;
    const copy = found(store);
    let highest = 0;
    for (let i = 0; i < 400; i += 1) {
      assert.equal(change(store, copy, storing(1, 'x'.repeat(5_000)), deleting(copy.number + 1)), 0);
      highest = Math.max(highest, admission.ringBytes);
    }
    assert.ok(highest > 200_000 && highest <= 250_000, `${String(highest)} bytes`);
    assert.ok(admission.usedBytes >= admission.ringBytes);
    while (admission.grant(accountOf(store)) > 6_000) {
      assert.equal(change(store, copy, storing(1, 'x'.repeat(5_000))), 0, 'within credit nothing is refused');
      assert.ok(admission.usedBytes + admission.grantedBytes <= admission.acceptBytes + 8_192, 'what was granted to mail is not taken');
    }
  });

  test('of each gateway is bounded, and all of them together by an eighth of the memory', () => {
    const store = newStore({ memoryLimitBytes: 4_000_000, segmentBytes: 4096 });
    const stories = ['g1', 'g2', 'g3'].map((id) => new Story(found(store, 1, id)));
    for (let i = 0; i < 100; i += 1) {
      for (const story of stories) {
        assert.equal(change(store, story.copy, storing(1, 'x'.repeat(5_000)), deleting(story.copy.number + 1)), 0);
        assert.ok(store.admission.ringBytes <= 500_000, `${String(store.admission.ringBytes)} bytes`);
      }
    }
    assert.ok(store.admission.ringBytes > 450_000);
  });

  test('of a size of 0 keeps nothing, and a section larger than the ring only cuts it', () => {
    const none = newStore({ ringBytes: 0 });
    const story = new Story(found(none));
    story.apply(none, storing(1, 'one'));
    assert.equal(story.tail(0), undefined);
    assert.equal(none.admission.ringBytes, 0);
    const small = newStore({ ringBytes: 16 * 1024 });
    const other = new Story(found(small));
    other.apply(small, storing(1, 'one'));
    other.apply(small, storing(2, 'x'.repeat(20_000)));
    other.apply(small, storing(3, 'three'));
    assert.equal(other.tail(1), undefined);
    assert.equal(other.tail(2)?.rows.length, 24);
  });

  test('leaves out a body that stands elsewhere, as it came', () => {
    const store = newStore();
    const story = new Story(found(store, 1));
    const other = found(store, 2);
    assert.equal(change(store, other, storing(77, 'shared body', 'h', FLAG_SHARED)), 0);
    assert.equal(applyTo(store, story.copy, nextSection(story.copy, [storing(77, 'shared body', 'mine', FLAG_SHARED | FLAG_BODY_ABSENT)])), 0);
    const tail = story.copy.ring.tail(story.copy, 0, 0, 0);
    assert.equal(new TextDecoder().decode(tail?.bodies), 'mine');
  });
});

function checkTails(story: Story): void {
  let known = true;
  for (let number = story.copy.number; number >= 0; number -= 1) {
    const tail = story.tail(number);
    if (tail === undefined) known = false;
    else {
      assert.ok(known, 'what is known is one piece up to the end');
      const wanted = story.wanted(number);
      assert.deepEqual(tail.rows, wanted.rows);
      assert.deepEqual(tail.bodies, wanted.payload);
    }
  }
}
