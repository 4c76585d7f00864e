import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FLAG_BODY_ABSENT, FLAG_SHARED, FLAG_SKIPPED, NOTE_CRC_BYTES } from '../../../../src/protocol/change-rows.js';
import {
  REFUSAL_BODY, REFUSAL_CHECKSUM, REFUSAL_DIGEST, REFUSAL_EPOCH, REFUSAL_GAP, REFUSAL_INVALID, REFUSAL_MISSING,
  ROLE_MEMBER, ROLE_NONE,
} from '../../../../src/protocol/reasons.js';
import {
  ROOM, annotating, applyTo, change, deleting, fingerprint, newStore, nextSection, openQueue, positions, pullAll, replacing,
  section, settingMembers, storing, withdrawing,
} from './section-kit.js';
import type { TestChange } from './section-kit.js';

describe('a section of CHANGES', () => {
  test('stores entries whose position is their change number and gives them back byte for byte', () => {
    const store = newStore();
    const queue = openQueue(store);
    assert.equal(change(store, queue, storing(11, 'first', 'h1'), storing(12, '', ''), storing(13, 'third', 'h3')), 0);
    assert.deepEqual(pullAll(store, queue).map((e) => [e.position, e.id, e.body, e.head]), [
      [1, 11, 'first', 'h1'], [2, 12, '', ''], [3, 13, 'third', 'h3'],
    ]);
    assert.equal(queue.number, 3);
    assert.equal(queue.count, 3);
    assert.equal(queue.bytes, 14);
  });

  test('deletes the entry named and those behind it in the order of the queue', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'a'), storing(2, 'b'), storing(3, 'c'), storing(4, 'd'));
    assert.equal(change(store, queue, deleting(2)), 0);
    assert.equal(change(store, queue, deleting(1, 2)), 0);
    assert.deepEqual(positions(store, queue), [4]);
  });

  test('may delete what the same section stored', () => {
    const store = newStore();
    const queue = openQueue(store);
    assert.equal(change(store, queue, storing(1, 'a'), storing(2, 'b'), deleting(1, 2), storing(3, 'c')), 0);
    assert.deepEqual(positions(store, queue), [4]);
    assert.equal(store.segments.records, 1);
  });

  test('replaces body and head, keeps the position, forgets the note', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'old body', 'old head'), annotating(1, 'tried once'));
    assert.equal(pullAll(store, queue)[0]?.note, 'tried once');
    assert.equal(change(store, queue, replacing(1, 'new', 'other')), 0);
    assert.deepEqual(pullAll(store, queue), [{ position: 1, id: 1, flags: 0, body: 'new', head: 'other', note: '' }]);
    assert.equal(queue.bytes, 8);
    assert.equal(store.segments.records, 1);
  });

  test('replaces the head alone when the body is said to be here', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'body stays', 'old'));
    assert.equal(change(store, queue, replacing(1, 'body stays', 'new head', FLAG_BODY_ABSENT)), 0);
    assert.deepEqual(pullAll(store, queue).map((e) => [e.body, e.head]), [['body stays', 'new head']]);
    const before = fingerprint(store, queue);
    assert.equal(change(store, queue, replacing(1, 'another length', 'x', FLAG_BODY_ABSENT)), REFUSAL_BODY);
    assert.equal(change(store, queue, replacing(1, 'BODY STAYS', 'x', FLAG_BODY_ABSENT)), REFUSAL_CHECKSUM);
    assert.equal(fingerprint(store, queue), before);
  });

  test('an annotation replaces the one before; an empty one removes it', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'a'), annotating(1, 'one'), annotating(1, 'two'));
    assert.equal(pullAll(store, queue)[0]?.note, 'two');
    change(store, queue, annotating(1, ''));
    assert.equal(pullAll(store, queue)[0]?.note, '');
    assert.equal(store.segments.records, 1, 'it stands in the room of its entry');
    const before = fingerprint(store, queue);
    assert.equal(change(store, queue, annotating(1, 'n'.repeat(ROOM - NOTE_CRC_BYTES)), annotating(1, 'n'.repeat(ROOM - NOTE_CRC_BYTES + 1))), REFUSAL_INVALID);
    assert.equal(fingerprint(store, queue), before, 'one beyond the room is refused, and what stood in front of it taken back');
  });

  test('a withdrawal removes one entry', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'a'), storing(2, 'b'), withdrawing(1));
    assert.deepEqual(positions(store, queue), [2]);
  });

  test('a skipped change counts in number and digest and does nothing', () => {
    const store = newStore();
    const one = openQueue(store, 1);
    const two = openQueue(store, 2);
    change(store, one, storing(1, 'a', 'h'));
    change(store, two, storing(1, 'a', 'h', FLAG_SKIPPED));
    assert.deepEqual([two.number, two.digestA, two.digestB, two.count], [one.number, one.digestA, one.digestB, 0]);
  });

  test('a gap is refused and changes nothing', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'a'));
    const before = fingerprint(store, queue);
    assert.equal(applyTo(store, queue, section(2, queue.digestA, queue.digestB, [storing(2, 'b')])), REFUSAL_GAP);
    assert.equal(fingerprint(store, queue), before);
  });

  test('a repeat is acknowledged again, not applied again', () => {
    const store = newStore();
    const queue = openQueue(store);
    const first = nextSection(queue, [storing(1, 'a'), storing(2, 'b')]);
    assert.equal(applyTo(store, queue, first), 0);
    change(store, queue, storing(3, 'c'));
    const before = fingerprint(store, queue);
    assert.equal(applyTo(store, queue, first), 0);
    assert.equal(fingerprint(store, queue), before);
  });

  test('a repeat with another digest is refused', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'a'), storing(2, 'b'));
    const before = fingerprint(store, queue);
    assert.equal(applyTo(store, queue, section(0, 0, 0, [storing(1, 'a'), storing(2, 'X')])), REFUSAL_DIGEST);
    assert.equal(applyTo(store, queue, section(0, 0, 0, [storing(1, 'Y')])), REFUSAL_DIGEST);
    assert.equal(fingerprint(store, queue), before);
  });

  test('of a section cut another way only the new rows are applied', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'a'), storing(2, 'b'));
    const longer = section(0, 0, 0, [storing(1, 'a'), storing(2, 'b'), storing(3, 'c'), annotating(3, 'n')]);
    assert.equal(applyTo(store, queue, longer), 0);
    assert.deepEqual(pullAll(store, queue).map((e) => [e.position, e.body, e.note]), [[1, 'a', ''], [2, 'b', ''], [3, 'c', 'n']]);
    assert.deepEqual([queue.digestA, queue.digestB], [longer.a, longer.b]);
  });

  test('a wrong digest takes the whole section back', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'a'), storing(2, 'b'), storing(3, 'c'), annotating(2, 'note'), settingMembers(2, ['store-a', 'store-c']));
    const before = fingerprint(store, queue);
    const wrong = nextSection(queue, [
      deleting(1, 2), replacing(3, 'zzz', 'h'), annotating(3, 'n'), storing(9, 'new'), replacing(9, 'newer', ''), deleting(9),
      settingMembers(3, ['store-b']),
    ]);
    wrong.a ^= 1;
    assert.equal(applyTo(store, queue, wrong), REFUSAL_DIGEST);
    assert.equal(fingerprint(store, queue), before);
    assert.equal(change(store, queue, storing(4, 'd')), 0);
  });

  const before3: readonly TestChange[] = [storing(1, 'a'), storing(2, 'b'), annotating(2, 'n')];
  const cases: readonly (readonly [string, readonly TestChange[], number])[] = [
    ['DELETE of an unknown position', [deleting(7)], REFUSAL_MISSING],
    ['DELETE of more than there is', [deleting(2, 2)], REFUSAL_MISSING],
    ['REPLACE of an unknown position', [replacing(3, 'a', 'b')], REFUSAL_MISSING],
    ['ANNOTATE of an unknown position', [annotating(3, 'a')], REFUSAL_MISSING],
    ['WITHDRAW of an unknown position', [withdrawing(3)], REFUSAL_MISSING],
    ['an epoch that was', [settingMembers(1, ['store-a'])], REFUSAL_EPOCH],
    ['members that are no list of names', [{ ...settingMembers(2, []), head: new Uint8Array([0x91, 0x01]) }], REFUSAL_INVALID],
    ['a body that is not here', [storing(5, 'xyz', 'h', FLAG_SHARED | FLAG_BODY_ABSENT)], REFUSAL_BODY],
  ];
  for (const [name, changes, reason] of cases) {
    test(`refuses ${name}, also behind good rows, and changes nothing`, () => {
      const store = newStore();
      const queue = openQueue(store);
      change(store, queue, ...before3);
      const before = fingerprint(store, queue);
      assert.equal(change(store, queue, ...changes), reason);
      assert.equal(change(store, queue, storing(8, 'good'), annotating(1, 'm'), withdrawing(4), ...changes), reason);
      assert.equal(fingerprint(store, queue), before);
    });
  }

  for (const at of [0, 3, 9, 12, 17, 24]) {
    test(`refuses a payload whose byte ${String(at)} was changed`, () => {
      const store = newStore();
      const queue = openQueue(store);
      change(store, queue, storing(1, 'zero', 'h'));
      const before = fingerprint(store, queue);
      const bad = nextSection(queue, [
        storing(2, 'abc', 'head'), annotating(1, 'note'), storing(3, 'shared', 'h', FLAG_SHARED), replacing(1, 'new', 'headers'),
      ]);
      const byte = bad.payload[at];
      assert.ok(byte !== undefined);
      bad.payload[at] = byte ^ 0x20;
      assert.equal(applyTo(store, queue, bad), REFUSAL_CHECKSUM);
      assert.equal(fingerprint(store, queue), before);
    });
  }

  test('of a section that only stores and deletes, each byte that was changed is noticed, and payloads that changed places', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(1, 'zero', 'h'));
    const before = fingerprint(store, queue);
    const changes = [storing(2, 'abc', 'head'), deleting(1), storing(3, 'def', 'HEAD'), storing(4, '', ''), storing(5, 'last', '')];
    const { length } = nextSection(queue, changes).payload;
    for (let at = 0; at < length; at += 1) {
      const bad = nextSection(queue, changes);
      bad.payload[at] = (bad.payload[at] ?? 0) ^ 0x01;
      assert.equal(applyTo(store, queue, bad), REFUSAL_CHECKSUM, `byte ${String(at)}`);
      assert.equal(fingerprint(store, queue), before);
    }
    const swapped = nextSection(queue, changes);
    const first = swapped.payload.slice(0, 7);
    swapped.payload.copyWithin(0, 7, 14);
    swapped.payload.set(first, 7);
    assert.equal(applyTo(store, queue, swapped), REFUSAL_CHECKSUM);
    assert.equal(fingerprint(store, queue), before);
    assert.equal(applyTo(store, queue, nextSection(queue, changes)), 0);
    assert.deepEqual(positions(store, queue), [2, 4, 5, 6]);
  });

  test('SET_MEMBERS makes a store a member and ends that', () => {
    const store = newStore();
    const queue = openQueue(store);
    assert.equal(queue.role, ROLE_MEMBER);
    change(store, queue, settingMembers(2, ['store-b']));
    assert.deepEqual([queue.role, queue.epoch, queue.members], [ROLE_NONE, 2, ['store-b']]);
    assert.equal(change(store, queue, settingMembers(5, ['store-a'])), 0, 'a copy that is no member takes any higher epoch');
    assert.equal(queue.role, ROLE_MEMBER);
    assert.equal(change(store, queue, settingMembers(5, ['store-a'])), REFUSAL_EPOCH);
    assert.equal(change(store, queue, settingMembers(2 ** 20 + 5, ['store-a'])), 0, 'an operator had it go on without a store');
  });
});
