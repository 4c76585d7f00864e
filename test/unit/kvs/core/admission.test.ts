import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Grantee } from '../../../../src/kvs/core/admission.js';
import { CREDIT_OVERHEAD_BYTES, NOTE_CRC_BYTES } from '../../../../src/protocol/change-rows.js';
import { REPORTS_BEYOND_CREDIT_BYTES_MAX, UNPAID_BYTES_MAX } from '../../../../src/protocol/messages/changes.js';
import { REFUSAL_LIMIT } from '../../../../src/protocol/reasons.js';
import { ORIGIN, ROOM, accountOf, annotating, beginFill, bytes, change, deleting, newStore, found, refill, storing } from './section-kit.js';

const GATEWAYS = ['g1', 'g2', 'g3'] as const;
const HEAD = 'envelope';

describe('credit', () => {
  test('is never granted beyond what is free below the accept mark, whatever three gateways do', () => {
    const step = fc.record({ who: fc.nat(2), op: fc.nat(5), size: fc.nat(60_000) });
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 200, size: 'max' }), (steps) => {
        const store = newStore({ memoryLimitBytes: 2_000_000, segmentBytes: 4096 });
        const { admission } = store;
        const copies = GATEWAYS.map((id) => found(store, 1, id));
        for (const { who, op, size } of steps) {
          const id = GATEWAYS[who];
          const copy = copies[who];
          assert.ok(id !== undefined && copy !== undefined);
          const account = accountOf(store, id);
          if (op <= 1) admission.grant(account);
          else if (op <= 4 && size + HEAD.length + ROOM + CREDIT_OVERHEAD_BYTES <= account.granted) {
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

  test('is shared by those who may come: who is let in no more has his until his connections and lease are over, and anew when he is let in again', () => {
    const store = newStore({ memoryLimitBytes: 64 * 1024 * 1024, leaseMs: 10_000 });
    const letIn = (ids: readonly string[]): void => { store.letIn({ gateways: ids.map((id) => ({ id, secret: bytes(id) })), groupSecret: undefined }); };
    const known = (): readonly string[] => [...store.accounts()].map(({ id }) => id);
    const [gone, stays] = [accountOf(store, 'g1'), accountOf(store, 'g2')];
    const copy = found(store, 1, 'g1');
    assert.equal(change(store, copy, storing(1, 'kept')), 0);
    const connection = { incarnation: 0, fence: () => undefined, demote: () => undefined };
    gone.connections.add(connection);
    store.heartbeat(gone, 0, 0);
    store.admission.grant(gone);
    letIn(['g2']);
    store.tick(10_001);
    assert.deepEqual([known(), gone.granted], [['g1', 'g2'], 0], 'it is here, and g3 is not');
    gone.connections.delete(connection);
    store.heartbeat(gone, 0, 10_001);
    store.tick(20_001);
    assert.deepEqual(known(), ['g1', 'g2'], 'its lease lasts');
    store.tick(20_002);
    assert.deepEqual([known(), copy.count], [['g2'], 1]);
    assert.ok(store.admission.grant(stays) > 25 * 1024 * 1024, 'as if it were alone');
    letIn(['g1', 'g2']);
    store.tick(20_003);
    assert.deepEqual([known(), accountOf(store, 'g1') === gone], [['g2', 'g1'], true]);
  });

  test('runs out before the reserve and comes back with deletions', () => {
    const store = newStore({ memoryLimitBytes: 1_000_000, segmentBytes: 4096, gateways: ['g1'] });
    const copy = found(store);
    const account = accountOf(store);
    let stored = 0;
    while (store.admission.grant(account) >= 10_000 + HEAD.length + ROOM + CREDIT_OVERHEAD_BYTES) {
      assert.equal(change(store, copy, storing(1, 'x'.repeat(10_000), HEAD)), 0);
      stored += 1;
    }
    assert.ok(stored > 50);
    assert.ok(store.admission.usedBytes <= 820_000);
    change(store, copy, deleting(1, stored));
    assert.ok(store.admission.grant(account) >= 300_000);
  });

  test('beyond it a STORE takes from the reserve at most; a full store takes notes and deletions all the same', () => {
    const store = newStore({ memoryLimitBytes: 10_000_000, segmentBytes: 4096 });
    const copy = found(store);
    let reason = 0;
    while (reason === 0) reason = change(store, copy, storing(1, 'x'.repeat(1_000), HEAD));
    assert.equal(reason, REFUSAL_LIMIT);
    const used = store.admission.usedBytes;
    assert.ok(used > 0.94 * 10_000_000 && used <= store.admission.refillBytes);
    const { count } = copy;
    const note = 'y'.repeat(ROOM - NOTE_CRC_BYTES);
    for (let position = 1; position <= count; position++) assert.equal(change(store, copy, annotating(position, note)), 0);
    assert.equal(store.admission.usedBytes, used, 'a note takes nothing that was not taken before');
    assert.equal(change(store, copy, deleting(1, count)), 0);
  });

  test('a copy that is filled leaves room for reports beyond credit: none of them, nor what stands behind, is refused', () => {
    const store = newStore({ memoryLimitBytes: 64 * 1024 * 1024, gateways: ['g1', 'g2'] });
    const reports = found(store);
    assert.equal(change(store, reports, storing(1, 'source', HEAD)), 0);
    const filled = beginFill(store, 'g2/2', ORIGIN, { number: 10_000, id: 'g2' });
    const body = 'x'.repeat(64 * 1024);
    let reason = 0;
    for (let position = 1; reason === 0; position++) {
      reason = refill(store, filled, [{ position, id: position, flags: 0, body, head: HEAD, note: '' }]);
    }
    assert.equal(reason, REFUSAL_LIMIT);
    assert.equal(change(store, filled, storing(1, body)), REFUSAL_LIMIT, 'live mail of it neither');
    const beyond = 'y'.repeat(REPORTS_BEYOND_CREDIT_BYTES_MAX - HEAD.length - ROOM - CREDIT_OVERHEAD_BYTES);
    for (const id of ['g1', 'g2']) assert.equal(accountOf(store, id).granted, 0);
    assert.equal(change(store, reports, storing(2, beyond, HEAD), deleting(1)), 0, 'the longest report, with the end of its message');
    const others = found(store, 3, 'g2');
    assert.equal(change(store, others, storing(3, beyond, HEAD)), 0, 'another one, of the other gateway');
    assert.ok(store.admission.usedBytes <= store.admission.refillBytes);
  });

  test('a frame that comes in part is held: within it always, else up to the end mark; a control part up to the limit', () => {
    const limit = 40_000_000;
    const store = newStore({ memoryLimitBytes: limit, segmentBytes: 4096 });
    const { admission } = store;
    const [first, second] = [accountOf(store, 'g1'), accountOf(store, 'g2')];
    const granted = admission.grant(first);
    assert.ok(granted > 1_000_000);
    const copy = found(store, 1, 'g2');
    while (change(store, copy, storing(1, 'x'.repeat(10_000), HEAD)) === 0);
    const room = admission.endBytes - admission.usedBytes - admission.grantedBytes;
    assert.deepEqual([admission.endBytes, room >= 600_000, room < 620_000], [0.985 * limit, true, true]);
    const holds = (account: Grantee, bytes: number): boolean => admission.mayHold(account, bytes, bytes);
    assert.deepEqual([holds(first, granted), holds(first, granted + room), holds(first, granted + room + 1)], [true, true, false]);
    const left = room + second.granted;
    assert.deepEqual([holds(second, left), holds(second, left + 1)], [true, false]);
    assert.deepEqual([admission.mayHold(second, limit - admission.usedBytes, 0), admission.mayHold(second, limit + 1 - admission.usedBytes, 0)], [true, false]);
    // All of the first one's grant has come, and is still there when another asks: it takes nothing more.
    first.heldBytes = granted;
    admission.frameBytes = granted;
    assert.deepEqual([holds(second, left), holds(second, left + 1)], [true, false]);
  });

  test('what a frame brings unpaid finds room in any case, one frame of each gateway', () => {
    const gateways = Array.from({ length: 30 }, (_, i) => `g${String(i)}`);
    const store = newStore({ memoryLimitBytes: 64 * 1024 * 1024, segmentBytes: 4096, gateways });
    const { admission } = store;
    const copy = found(store, 1, 'g0');
    while (change(store, copy, storing(1, 'x'.repeat(10_000), HEAD)) === 0);
    for (const id of gateways) {
      const account = accountOf(store, id);
      assert.ok(admission.mayHold(account, UNPAID_BYTES_MAX, UNPAID_BYTES_MAX), id);
      account.heldBytes += UNPAID_BYTES_MAX;
      admission.frameBytes += UNPAID_BYTES_MAX;
    }
    assert.ok(admission.usedBytes <= admission.limitBytes, 'that much less is stored');
  });

  test('of an empty store does not stand in the way of a refill with all that its full twin holds', () => {
    const full = newStore({ memoryLimitBytes: 1_000_000, segmentBytes: 4096 });
    const source = found(full);
    let stored = 0;
    while (full.admission.grant(accountOf(full)) >= 10_000 + HEAD.length + ROOM + CREDIT_OVERHEAD_BYTES) {
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
