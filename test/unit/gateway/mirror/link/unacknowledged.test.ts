import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Unacknowledged } from '../../../../../src/gateway/mirror/link/unacknowledged.js';

describe('record of unacknowledged requests', () => {
  test('an acknowledgement takes all requests up to it, across gaps', () => {
    const record = new Unacknowledged();
    record.add(3, 100, 10);
    record.add(5, 200, 20);
    record.add(6, 400, 0);
    record.acknowledgeThrough(4);
    assert.deepEqual([record.count, record.bytes, record.credit], [2, 600, 20]);
    record.acknowledgeThrough(6);
    assert.deepEqual([record.count, record.bytes, record.credit], [0, 0, 0]);
  });

  test('a reply frees its own request only, once', () => {
    const record = new Unacknowledged();
    record.add(3, 100, 10);
    record.add(4, 200, 0);
    assert.equal(record.answer(4), true);
    assert.equal(record.answer(4), false);
    assert.equal(record.answer(9), false);
    assert.deepEqual([record.count, record.bytes, record.credit], [2, 100, 10]);
    record.acknowledgeThrough(4);
    assert.deepEqual([record.count, record.bytes, record.credit], [0, 0, 0]);
  });

  test('replies alone empty the record', () => {
    const record = new Unacknowledged();
    record.add(3, 100, 0);
    record.add(4, 100, 0);
    record.add(5, 100, 0);
    record.answer(4);
    record.answer(3);
    assert.equal(record.count, 1);
    record.answer(5);
    assert.equal(record.count, 0);
  });

  test('credit after a point counts only requests behind it', () => {
    const record = new Unacknowledged();
    record.add(3, 1, 10);
    record.add(5, 1, 20);
    record.add(7, 1, 40);
    assert.equal(record.creditAfter(2), 70);
    assert.equal(record.creditAfter(5), 40);
    assert.equal(record.creditAfter(7), 0);
  });

  test('agrees with a plain list under any mix, also where it grows round its end', () => {
    const step = fc.record({ kind: fc.constantFrom('add', 'add', 'add', 'ack', 'answer'), amount: fc.nat(900), pick: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const record = new Unacknowledged();
        let list: { sequence: number; bytes: number; credit: number }[] = [];
        let sequence = 2;
        for (const { kind, amount, pick } of steps) {
          if (kind === 'add') {
            for (let i = 0; i < amount; i++) {
              sequence += 1 + (pick % 2);
              record.add(sequence, amount, pick % 100);
              list.push({ sequence, bytes: amount, credit: pick % 100 });
            }
          } else if (kind === 'ack') {
            const through = list[pick % Math.max(1, list.length)]?.sequence ?? 0;
            record.acknowledgeThrough(through);
            list = list.filter((request) => request.sequence > through);
          } else {
            const request = list[pick % Math.max(1, list.length)];
            if (request !== undefined) record.answer(request.sequence);
            list = list.filter((other) => other !== request);
          }
          assert.equal(record.bytes, list.reduce((sum, request) => sum + request.bytes, 0));
          assert.equal(record.credit, list.reduce((sum, request) => sum + request.credit, 0));
        }
        record.clear();
        assert.deepEqual([record.count, record.bytes, record.credit], [0, 0, 0]);
      }),
      { numRuns: 50 },
    );
  });
});
