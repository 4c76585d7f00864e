import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FLAG_BODY_ABSENT, FLAG_SHARED, FLAG_SKIPPED, NOTE_CRC_BYTES } from '../../../../src/protocol/change-rows.js';
import {
  REFUSAL_BODY, REFUSAL_CHECKSUM, REFUSAL_DIGEST, REFUSAL_GAP, REFUSAL_INVALID, REFUSAL_MISSING,
} from '../../../../src/protocol/reasons.js';
import {
  ROOM, annotating, applyTo, change, deleting, fingerprint, newStore, nextSection, found, positions, pullAll,
  section, storing, withdrawing,
} from './section-kit.js';
import type { TestChange } from './section-kit.js';

describe('a section of CHANGES', () => {
  test('stores entries whose position is their change number and gives them back byte for byte', () => {
    const store = newStore();
    const copy = found(store);
    assert.equal(change(store, copy, storing(11, 'first', 'h1'), storing(12, '', ''), storing(13, 'third', 'h3')), 0);
    assert.deepEqual(pullAll(store, copy).map((e) => [e.position, e.id, e.body, e.head]), [
      [1, 11, 'first', 'h1'], [2, 12, '', ''], [3, 13, 'third', 'h3'],
    ]);
    assert.equal(copy.number, 3);
    assert.equal(copy.count, 3);
    assert.equal(copy.bytes, 14);
  });

  test('deletes the entry named and those behind it in the order of the copy', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'a'), storing(2, 'b'), storing(3, 'c'), storing(4, 'd'));
    assert.equal(change(store, copy, deleting(2)), 0);
    assert.equal(change(store, copy, deleting(1, 2)), 0);
    assert.deepEqual(positions(store, copy), [4]);
  });

  test('may delete what the same section stored', () => {
    const store = newStore();
    const copy = found(store);
    assert.equal(change(store, copy, storing(1, 'a'), storing(2, 'b'), deleting(1, 2), storing(3, 'c')), 0);
    assert.deepEqual(positions(store, copy), [4]);
    assert.equal(store.segments.records, 1);
  });

  test('an annotation replaces the one before; an empty one removes it', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'a'), annotating(1, 'one'), annotating(1, 'two'));
    assert.equal(pullAll(store, copy)[0]?.note, 'two');
    change(store, copy, annotating(1, ''));
    assert.equal(pullAll(store, copy)[0]?.note, '');
    assert.equal(store.segments.records, 1, 'it stands in the room of its entry');
    const before = fingerprint(store, copy);
    const most = ROOM - NOTE_CRC_BYTES;
    assert.equal(change(store, copy, annotating(1, 'n'.repeat(most)), annotating(1, 'n'.repeat(most + 1))), REFUSAL_INVALID);
    assert.equal(fingerprint(store, copy), before, 'one beyond the room is refused, and what stood in front of it taken back');
  });

  test('a withdrawal removes one entry', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'a'), storing(2, 'b'), withdrawing(1));
    assert.deepEqual(positions(store, copy), [2]);
  });

  test('a skipped change counts in number and digest and does nothing', () => {
    const store = newStore();
    const one = found(store, 1);
    const two = found(store, 2);
    change(store, one, storing(1, 'a', 'h'));
    change(store, two, storing(1, 'a', 'h', FLAG_SKIPPED));
    assert.deepEqual([two.number, two.digestA, two.digestB, two.count], [one.number, one.digestA, one.digestB, 0]);
  });

  test('a gap is refused and changes nothing', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'a'));
    const before = fingerprint(store, copy);
    assert.equal(applyTo(store, copy, section(2, copy.digestA, copy.digestB, [storing(2, 'b')])), REFUSAL_GAP);
    assert.equal(fingerprint(store, copy), before);
  });

  test('a repeat is acknowledged again, not applied again', () => {
    const store = newStore();
    const copy = found(store);
    const first = nextSection(copy, [storing(1, 'a'), storing(2, 'b')]);
    assert.equal(applyTo(store, copy, first), 0);
    change(store, copy, storing(3, 'c'));
    const before = fingerprint(store, copy);
    assert.equal(applyTo(store, copy, first), 0);
    assert.equal(fingerprint(store, copy), before);
  });

  test('a repeat with another digest is refused', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'a'), storing(2, 'b'));
    const before = fingerprint(store, copy);
    assert.equal(applyTo(store, copy, section(0, 0, 0, [storing(1, 'a'), storing(2, 'X')])), REFUSAL_DIGEST);
    assert.equal(applyTo(store, copy, section(0, 0, 0, [storing(1, 'Y')])), REFUSAL_DIGEST);
    assert.equal(fingerprint(store, copy), before);
  });

  test('of a section cut another way only the new rows are applied', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'a'), storing(2, 'b'));
    const longer = section(0, 0, 0, [storing(1, 'a'), storing(2, 'b'), storing(3, 'c'), annotating(3, 'n')]);
    assert.equal(applyTo(store, copy, longer), 0);
    assert.deepEqual(pullAll(store, copy).map((e) => [e.position, e.body, e.note]), [[1, 'a', ''], [2, 'b', ''], [3, 'c', 'n']]);
    assert.deepEqual([copy.digestA, copy.digestB], [longer.a, longer.b]);
  });

  test('a wrong digest takes the whole section back', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'a'), storing(2, 'b'), storing(3, 'c'), annotating(2, 'note'));
    const before = fingerprint(store, copy);
    const wrong = nextSection(copy, [
      deleting(1, 2), annotating(3, 'n'), storing(9, 'new'), annotating(7, 'newer'), deleting(7),
    ]);
    wrong.a ^= 1;
    assert.equal(applyTo(store, copy, wrong), REFUSAL_DIGEST);
    assert.equal(fingerprint(store, copy), before);
    assert.equal(change(store, copy, storing(4, 'd')), 0);
  });

  const before3: readonly TestChange[] = [storing(1, 'a'), storing(2, 'b'), annotating(2, 'n')];
  const cases: readonly (readonly [string, readonly TestChange[], number])[] = [
    ['DELETE of an unknown position', [deleting(7)], REFUSAL_MISSING],
    ['DELETE of more than there is', [deleting(2, 2)], REFUSAL_MISSING],
    ['ANNOTATE of an unknown position', [annotating(3, 'a')], REFUSAL_MISSING],
    ['WITHDRAW of an unknown position', [withdrawing(3)], REFUSAL_MISSING],
    ['a body that is not here', [storing(5, 'xyz', 'h', FLAG_SHARED | FLAG_BODY_ABSENT)], REFUSAL_BODY],
  ];
  for (const [name, changes, reason] of cases) {
    test(`refuses ${name}, also behind good rows, and changes nothing`, () => {
      const store = newStore();
      const copy = found(store);
      change(store, copy, ...before3);
      const before = fingerprint(store, copy);
      assert.equal(change(store, copy, ...changes), reason);
      assert.equal(change(store, copy, storing(8, 'good'), annotating(1, 'm'), withdrawing(4), ...changes), reason);
      assert.equal(fingerprint(store, copy), before);
    });
  }

  for (const at of [0, 3, 9, 12, 17, 24]) {
    test(`refuses a payload whose byte ${String(at)} was changed`, () => {
      const store = newStore();
      const copy = found(store);
      change(store, copy, storing(1, 'zero', 'h'));
      const before = fingerprint(store, copy);
      const bad = nextSection(copy, [
        storing(2, 'abc', 'head'), annotating(1, 'note'), storing(3, 'shared', 'h', FLAG_SHARED), storing(4, 'new', 'headers'),
      ]);
      const byte = bad.payload[at];
      assert.ok(byte !== undefined);
      bad.payload[at] = byte ^ 0x20;
      assert.equal(applyTo(store, copy, bad), REFUSAL_CHECKSUM);
      assert.equal(fingerprint(store, copy), before);
    });
  }

  test('of a section that only stores and deletes, each byte that was changed is noticed, and payloads that changed places', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(1, 'zero', 'h'));
    const before = fingerprint(store, copy);
    const changes = [storing(2, 'abc', 'head'), deleting(1), storing(3, 'def', 'HEAD'), storing(4, '', ''), storing(5, 'last', '')];
    const { length } = nextSection(copy, changes).payload;
    for (let at = 0; at < length; at += 1) {
      const bad = nextSection(copy, changes);
      bad.payload[at] = (bad.payload[at] ?? 0) ^ 0x01;
      assert.equal(applyTo(store, copy, bad), REFUSAL_CHECKSUM, `byte ${String(at)}`);
      assert.equal(fingerprint(store, copy), before);
    }
    const swapped = nextSection(copy, changes);
    const first = swapped.payload.slice(0, 7);
    swapped.payload.copyWithin(0, 7, 14);
    swapped.payload.set(first, 7);
    assert.equal(applyTo(store, copy, swapped), REFUSAL_CHECKSUM);
    assert.equal(fingerprint(store, copy), before);
    assert.equal(applyTo(store, copy, nextSection(copy, changes)), 0);
    assert.deepEqual(positions(store, copy), [2, 4, 5, 6]);
  });
});
