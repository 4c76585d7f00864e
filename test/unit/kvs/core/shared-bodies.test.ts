import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CREDIT_OVERHEAD_BYTES, FLAG_BODY_ABSENT, FLAG_SHARED } from '../../../../src/protocol/change-rows.js';
import { REFUSAL_BODY, REFUSAL_CHECKSUM } from '../../../../src/protocol/reasons.js';
import { ROOM, accountOf, change, deleting, fingerprint, newStore, openQueue, pullAll, replacing, storing, withdrawing } from './section-kit.js';

const HERE = FLAG_SHARED;
const ABSENT = FLAG_SHARED | FLAG_BODY_ABSENT;

describe('a body shared by queues', () => {
  test('stands in memory once and is freed with its last entry', () => {
    const store = newStore();
    const queues = [openQueue(store, 1), openQueue(store, 2), openQueue(store, 3)];
    const body = 'x'.repeat(5000);
    queues.forEach((queue, i) => { assert.equal(change(store, queue, storing(77, body, `to ${String(i)}`, i === 0 ? HERE : ABSENT)), 0); });
    assert.ok(store.segments.liveBytes < 6000);
    assert.equal(store.shared.count, 1);
    queues.forEach((queue, i) => {
      assert.deepEqual(pullAll(store, queue).map((e) => [e.id, e.body, e.head]), [[77, body, `to ${String(i)}`]]);
      change(store, queue, i === 1 ? withdrawing(1) : deleting(1));
      assert.equal(store.shared.count, i === 2 ? 0 : 1);
    });
    assert.equal(store.segments.liveBytes, 0);
    assert.equal(store.segments.records, 0);
  });

  test('belongs to one gateway: another names its own by the same id', () => {
    const store = newStore();
    const mine = openQueue(store, 1, 'g1');
    const theirs = openQueue(store, 1, 'g2');
    change(store, mine, storing(5, 'of g1', 'h', HERE));
    assert.equal(change(store, theirs, storing(5, 'of g1', 'h', ABSENT)), REFUSAL_BODY);
    assert.equal(change(store, theirs, storing(5, 'of g2!', 'h', HERE)), 0);
    assert.equal(pullAll(store, theirs)[0]?.body, 'of g2!');
    assert.equal(pullAll(store, mine)[0]?.body, 'of g1');
  });

  test('brought a second time is counted, not kept twice; another body under its id is refused', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(5, 'same', 'h', HERE));
    const live = store.segments.liveBytes;
    assert.equal(change(store, queue, storing(5, 'same', '', HERE, 0)), 0);
    assert.equal(store.segments.liveBytes, live);
    const before = fingerprint(store, queue);
    assert.equal(change(store, queue, storing(5, 'SAME', 'h', HERE)), REFUSAL_BODY);
    assert.equal(change(store, queue, storing(5, 'longer', 'h', HERE)), REFUSAL_BODY);
    assert.equal(change(store, queue, storing(5, 'SAME', 'h', ABSENT)), REFUSAL_CHECKSUM);
    assert.equal(fingerprint(store, queue), before);
  });

  test('brought again whole by a repeat costs its sender what it cost when it was left out', () => {
    const store = newStore();
    const account = accountOf(store);
    const body = 'x'.repeat(5000);
    assert.equal(change(store, openQueue(store, 1), storing(77, body, 'head', HERE)), 0);
    const cost = (flags: number, serial: number): number => {
      const before = store.admission.grant(account);
      assert.equal(change(store, openQueue(store, serial), storing(77, body, 'head', flags)), 0);
      return before - account.granted;
    };
    assert.equal(cost(ABSENT, 2), 4 + ROOM + CREDIT_OVERHEAD_BYTES);
    assert.equal(cost(HERE, 3), 4 + ROOM + CREDIT_OVERHEAD_BYTES);
  });

  test('a refused section leaves the counts as they were', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(5, 'body', 'h', HERE));
    change(store, queue, storing(5, 'body', 'h2', ABSENT), storing(6, 'other', 'h', HERE), deleting(1), deleting(99));
    assert.equal(store.shared.count, 1);
    change(store, queue, deleting(1));
    assert.equal(store.shared.count, 0);
    assert.equal(store.segments.records, 0);
  });

  test('an entry that is replaced lets go of it; one with a new head keeps it', () => {
    const store = newStore();
    const queue = openQueue(store);
    change(store, queue, storing(5, 'body', 'h', HERE), storing(5, 'body', 'i', ABSENT));
    change(store, queue, replacing(1, 'body', 'new head', FLAG_BODY_ABSENT));
    assert.deepEqual(pullAll(store, queue).map((e) => [e.body, e.head]), [['body', 'new head'], ['body', 'i']]);
    change(store, queue, replacing(1, 'own', 'h'), deleting(2));
    assert.equal(store.shared.count, 0);
    assert.deepEqual(pullAll(store, queue).map((e) => [e.body, e.flags]), [['own', 0]]);
  });
});
