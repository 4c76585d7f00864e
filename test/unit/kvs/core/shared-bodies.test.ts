import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CREDIT_OVERHEAD_BYTES, FLAG_BODY_ABSENT, FLAG_SHARED } from '../../../../src/protocol/change-rows.js';
import { REFUSAL_BODY, REFUSAL_CHECKSUM } from '../../../../src/protocol/reasons.js';
import { ROOM, accountOf, change, deleting, fingerprint, newStore, found, pullAll, storing, withdrawing } from './section-kit.js';

const HERE = FLAG_SHARED;
const ABSENT = FLAG_SHARED | FLAG_BODY_ABSENT;

describe('a body shared by copies', () => {
  test('stands in memory once and is freed with its last entry', () => {
    const store = newStore();
    const copies = [found(store, 1), found(store, 2), found(store, 3)];
    const body = 'x'.repeat(5000);
    copies.forEach((copy, i) => { assert.equal(change(store, copy, storing(77, body, `to ${String(i)}`, i === 0 ? HERE : ABSENT)), 0); });
    assert.ok(store.segments.liveBytes < 6000);
    assert.equal(store.shared.count, 1);
    copies.forEach((copy, i) => {
      assert.deepEqual(pullAll(store, copy).map((e) => [e.id, e.body, e.head]), [[77, body, `to ${String(i)}`]]);
      change(store, copy, i === 1 ? withdrawing(1) : deleting(1));
      assert.equal(store.shared.count, i === 2 ? 0 : 1);
    });
    assert.equal(store.segments.liveBytes, 0);
    assert.equal(store.segments.records, 0);
  });

  test('belongs to one gateway: another names its own by the same id', () => {
    const store = newStore();
    const mine = found(store, 1, 'g1');
    const theirs = found(store, 1, 'g2');
    change(store, mine, storing(5, 'of g1', 'h', HERE));
    assert.equal(change(store, theirs, storing(5, 'of g1', 'h', ABSENT)), REFUSAL_BODY);
    assert.equal(change(store, theirs, storing(5, 'of g2!', 'h', HERE)), 0);
    assert.equal(pullAll(store, theirs)[0]?.body, 'of g2!');
    assert.equal(pullAll(store, mine)[0]?.body, 'of g1');
  });

  test('brought a second time is counted, not kept twice; another body under its id is refused', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(5, 'same', 'h', HERE));
    const live = store.segments.liveBytes;
    assert.equal(change(store, copy, storing(5, 'same', '', HERE, 0)), 0);
    assert.equal(store.segments.liveBytes, live);
    const before = fingerprint(store, copy);
    assert.equal(change(store, copy, storing(5, 'SAME', 'h', HERE)), REFUSAL_BODY);
    assert.equal(change(store, copy, storing(5, 'longer', 'h', HERE)), REFUSAL_BODY);
    assert.equal(change(store, copy, storing(5, 'SAME', 'h', ABSENT)), REFUSAL_CHECKSUM);
    assert.equal(fingerprint(store, copy), before);
  });

  test('brought again whole by a repeat costs its sender what it cost when it was left out', () => {
    const store = newStore();
    const account = accountOf(store);
    const body = 'x'.repeat(5000);
    assert.equal(change(store, found(store, 1), storing(77, body, 'head', HERE)), 0);
    const cost = (flags: number, serial: number): number => {
      const before = store.admission.grant(account);
      assert.equal(change(store, found(store, serial), storing(77, body, 'head', flags)), 0);
      return before - account.granted;
    };
    assert.equal(cost(ABSENT, 2), 4 + ROOM + CREDIT_OVERHEAD_BYTES);
    assert.equal(cost(HERE, 3), 4 + ROOM + CREDIT_OVERHEAD_BYTES);
  });

  test('a refused section leaves the counts as they were', () => {
    const store = newStore();
    const copy = found(store);
    change(store, copy, storing(5, 'body', 'h', HERE));
    change(store, copy, storing(5, 'body', 'h2', ABSENT), storing(6, 'other', 'h', HERE), deleting(1), deleting(99));
    assert.equal(store.shared.count, 1);
    change(store, copy, deleting(1));
    assert.equal(store.shared.count, 0);
    assert.equal(store.segments.records, 0);
  });
});
