import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CREDIT_OVERHEAD_BYTES } from '../../../../src/protocol/change-rows.js';
import { REFUSAL_LIMIT } from '../../../../src/protocol/reasons.js';
import { ORIGIN, accountOf, annotating, beginFill, change, deleting, newStore, found, refill, storing } from './section-kit.js';

const GATEWAYS = ['g1', 'g2', 'g3'] as const;
const HEAD = 'envelope';

describe('credit', () => {
  test('is never granted beyond what is free below the accept mark, whatever three gateways do', () => {
    const step = fc.record({ who: fc.nat(2), op: fc.nat(5), size: fc.nat(60_000) });
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 200 }), (steps) => {
        const store = newStore({ memoryLimitBytes: 2_000_000, segmentBytes: 4096 });
        const { admission } = store;
        const copies = GATEWAYS.map((id) => found(store, 1, id));
        for (const { who, op, size } of steps) {
          const id = GATEWAYS[who];
          const copy = copies[who];
          assert.ok(id !== undefined && copy !== undefined);
          const account = accountOf(store, id);
          if (op <= 1) admission.grant(account);
          else if (op <= 4 && size + HEAD.length + CREDIT_OVERHEAD_BYTES <= account.granted) {
            assert.equal(change(store, copy, storing(1, 'x'.repeat(size), HEAD)), 0, 'within credit nothing is refused');
          } else if (copy.count > 0) {
            change(store, copy, deleting(store.entries.positionOf(copy.first)));
          }
          const granted = GATEWAYS.reduce((sum, each) => sum + accountOf(store, each).granted, 0);
          assert.equal(admission.grantedBytes, granted);
          assert.ok(admission.chargedBytes + granted <= admission.acceptBytes);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('is left for a gateway that comes when the others hold theirs', () => {
    const store = newStore({ memoryLimitBytes: 64 * 1024 * 1024 });
    for (const id of ['g1', 'g2']) for (let i = 0; i < 3; i++) store.admission.grant(accountOf(store, id));
    assert.ok(store.admission.grant(accountOf(store, 'g3')) > 1024 * 1024);
  });

  test('is as much for each as for the first, and enough for a large message of any that asks for it', () => {
    const gateways = Array.from({ length: 10 }, (_, i) => `g${String(i)}`);
    const store = newStore({ memoryLimitBytes: 256 * 1024 * 1024, gateways });
    for (let i = 0; i < 3; i++) for (const id of gateways) store.admission.grant(accountOf(store, id));
    const granted = gateways.map((id) => accountOf(store, id).granted);
    assert.ok(granted.every((bytes) => bytes > 8 * 1024 * 1024 && bytes < 10 * 1024 * 1024), `granted: ${granted.join(' ')}`);
    for (const [i, id] of [...gateways.entries()].reverse()) {
      const account = accountOf(store, id);
      const copy = found(store, i + 1, id);
      for (let asked = 0; asked < 2; asked++) store.admission.grant(account, true);
      assert.ok(account.granted > 26 * 1024 * 1024, `${id} has asked for it`);
      assert.equal(store.admission.grant(account), account.granted, 'and keeps it until it is used');
      assert.equal(change(store, copy, storing(1, 'x'.repeat(25 * 1024 * 1024), HEAD)), 0);
      change(store, copy, deleting(1));
      assert.ok(store.admission.grant(account) < 10 * 1024 * 1024, 'then it has its share again');
      assert.ok(store.admission.chargedBytes + store.admission.grantedBytes <= store.admission.acceptBytes);
    }
    assert.ok(store.admission.mayKeep(4 * 1024 * 1024), 'something is left for the rings');
  });

  test('is all that there may be, unasked, while every gateway can have that, or none but one may come', () => {
    const few = newStore({ memoryLimitBytes: 1024 * 1024 * 1024, gateways: ['g1', 'g2', 'g3'] });
    assert.ok(few.admission.grant(accountOf(few, 'g3')) === 32 * 1024 * 1024);
    const alone = newStore({ memoryLimitBytes: 64 * 1024 * 1024, gateways: ['g1'] });
    assert.ok(alone.admission.grant(accountOf(alone, 'g1')) > 25 * 1024 * 1024);
  });

  test('runs out before the reserve and comes back with deletions', () => {
    const store = newStore({ memoryLimitBytes: 1_000_000, segmentBytes: 4096, gateways: ['g1'] });
    const copy = found(store);
    const account = accountOf(store);
    let stored = 0;
    while (store.admission.grant(account) >= 10_000 + HEAD.length + CREDIT_OVERHEAD_BYTES) {
      assert.equal(change(store, copy, storing(1, 'x'.repeat(10_000), HEAD)), 0);
      stored += 1;
    }
    assert.ok(stored > 50);
    assert.ok(store.admission.usedBytes <= 820_000);
    change(store, copy, deleting(1, stored));
    assert.ok(store.admission.grant(account) >= 300_000);
  });

  test('beyond it a STORE takes from the reserve at most, and notes are taken up to the limit', () => {
    const store = newStore({ memoryLimitBytes: 1_000_000, segmentBytes: 4096 });
    const copy = found(store);
    let reason = 0;
    while (reason === 0) reason = change(store, copy, storing(1, 'x'.repeat(1_000), HEAD));
    assert.equal(reason, REFUSAL_LIMIT);
    assert.ok(store.admission.usedBytes > 950_000 && store.admission.usedBytes <= 970_000);
    assert.equal(change(store, copy, annotating(1, 'y'.repeat(1_000))), 0);
    assert.equal(change(store, copy, deleting(1)), 0);
    while (reason !== 0 && change(store, copy, annotating(2, 'y'.repeat(100)), annotating(3, 'z'.repeat(8_000))) === 0) reason = 0;
    assert.ok(store.admission.usedBytes <= 1_000_000);
  });

  test('a frame that comes in part is held: within it always, else up to the end mark; a control part up to the limit', () => {
    const store = newStore({ memoryLimitBytes: 1_000_000, segmentBytes: 4096 });
    const { admission } = store;
    const [first, second] = [accountOf(store, 'g1'), accountOf(store, 'g2')];
    const granted = admission.grant(first);
    assert.ok(granted > 100_000);
    const copy = found(store, 1, 'g2');
    while (change(store, copy, storing(1, 'x'.repeat(1_000), HEAD)) === 0);
    const room = admission.endBytes - admission.usedBytes - admission.grantedBytes;
    assert.deepEqual([admission.endBytes, room >= 15_000, room < 20_000], [985_000, true, true]);
    assert.deepEqual([admission.mayHold(first, granted, true), admission.mayHold(first, granted + room, true), admission.mayHold(first, granted + room + 1, true)], [true, true, false]);
    const left = room + second.granted;
    assert.deepEqual([admission.mayHold(second, left, true), admission.mayHold(second, left + 1, true)], [true, false]);
    assert.deepEqual([admission.mayHold(second, 1_000_000 - admission.usedBytes, false), admission.mayHold(second, 1_000_001 - admission.usedBytes, false)], [true, false]);
    // All of the first one's grant has come, and is still there when another asks: it takes nothing more.
    first.heldBytes = granted;
    admission.frameBytes = granted;
    assert.deepEqual([admission.mayHold(second, left, true), admission.mayHold(second, left + 1, true)], [true, false]);
  });

  test('of an empty store does not stand in the way of a refill with all that its full twin holds', () => {
    const full = newStore({ memoryLimitBytes: 1_000_000, segmentBytes: 4096 });
    const source = found(full);
    let stored = 0;
    while (full.admission.grant(accountOf(full)) >= 10_000 + HEAD.length + CREDIT_OVERHEAD_BYTES) {
      stored += 1;
      assert.equal(change(full, source, storing(stored, 'x'.repeat(10_000), HEAD)), 0);
    }
    const empty = newStore({ memoryLimitBytes: 1_000_000, segmentBytes: 4096 });
    const copy = beginFill(empty, 'g1/1', ORIGIN, { number: stored });
    const account = accountOf(empty);
    for (let position = 1; position <= stored; position += 1) {
      const granted = empty.admission.grant(account);
      assert.equal(refill(empty, copy, [{ position, id: position, flags: 0, body: 'x'.repeat(10_000), head: HEAD, note: '' }]), 0, `entry ${position} of ${stored}`);
      assert.ok(granted < 10_000 || account.granted <= granted - 10_000, 'a refill takes of the credit');
    }
    assert.ok(empty.admission.usedBytes + empty.admission.grantedBytes <= empty.admission.refillBytes);
  });

  test('of a gateway that is gone past its lease is free for others', () => {
    const store = newStore({ memoryLimitBytes: 1_000_000, segmentBytes: 4096 });
    const account = accountOf(store);
    store.heartbeat(account, 0, 0);
    assert.ok(store.admission.grant(account) > 0);
    store.tick(9_999);
    assert.ok(store.admission.grantedBytes > 0);
    store.tick(10_001);
    assert.equal(store.admission.grantedBytes, 0);
    assert.equal(account.granted, 0);
  });

  test('of an older incarnation is forgotten when a newer one comes', () => {
    const store = newStore();
    const account = accountOf(store);
    assert.ok(account.admit(5, new Uint8Array([1]), store.admission));
    store.admission.grant(account);
    assert.ok(account.admit(5, new Uint8Array([1]), store.admission));
    assert.ok(account.granted > 0);
    assert.ok(account.admit(6, new Uint8Array([2]), store.admission));
    assert.equal(account.granted, 0);
    assert.equal(store.admission.grantedBytes, 0);
  });
});

test('a small store takes small segments: one is taken whole when the marks have been looked at', () => {
  for (const [limitBytes, most] of [[1_000_000, 4096], [64 * 1024 * 1024, 512 * 1024], [1024 * 1024 * 1024, 1024 * 1024]] as const) {
    const store = newStore({ memoryLimitBytes: limitBytes, segmentBytes: 1024 * 1024 });
    change(store, found(store), storing(1, 'x', HEAD));
    assert.equal(store.segments.usedBytes, most);
  }
});
