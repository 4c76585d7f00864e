/** The judge finds each kind of defect, and nothing where there is none. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { SendLogFile, SendRecord } from '../../../src/load/send-log.js';
import {
  CUT, DEFERRED, REJECTED, REPORTED, TAKEN, UNFINISHED, verifyBySerials, verifyRun, type Arrival, type ArrivalKind,
} from '../../../src/sink/verify.js';

const RUN = 'r1';

/** A try of message `id`, its dot at `dot`, its reply at `reply`. */
function sent(id: number, dot: number, reply: number, code = 250): SendRecord {
  return { id, queue: 'a.example', serial: id, dot, reply, code, hash: 1000 + id };
}

/** Attempts begin in the order in which they are written down. */
let begun = 0;

function arrived(id: number, kind: ArrivalKind = TAKEN, hash = 1000 + id): Arrival {
  return { run: RUN, id, queue: 'a.example', serial: id, kind, begun: ++begun, hash };
}

function log(...records: SendRecord[]): SendLogFile {
  return { run: RUN, count: records.length, records };
}

/** Three messages sent one after the other. */
const three = log(sent(1, 10, 11), sent(2, 20, 21), sent(3, 30, 31));

describe('verifyRun', () => {
  test('finds nothing when every message arrived once and in order', () => {
    const report = verifyRun(three, [arrived(1), arrived(2), arrived(3)]);
    assert.equal(report.ok, true);
    assert.equal(report.accepted, 3);
    assert.equal(report.arrived, 3);
    assert.equal(report.displacement, 0);
  });

  test('names a message that was accepted and did not arrive', () => {
    const report = verifyRun(three, [arrived(1), arrived(3)]);
    assert.equal(report.ok, false);
    assert.deepEqual(report.lost, { count: 1, examples: ['a.example#2 (2)'] });
  });

  test('counts a message that was only deferred as not yet delivered', () => {
    assert.equal(verifyRun(three, [arrived(1), arrived(2, DEFERRED), arrived(3)]).lost.count, 1);
  });

  test('does not call lost what the sink refused or a DSN reported', () => {
    const report = verifyRun(three, [arrived(1, REJECTED), arrived(2, REPORTED, -1), arrived(3)]);
    assert.equal(report.lost.count, 0);
    assert.equal(report.altered.count, 0);
    assert.equal(report.rejectedBySink, 1);
    assert.equal(report.reportedByDsn, 1);
  });

  test('does not call lost what was never accepted', () => {
    const report = verifyRun(log(sent(1, 10, 11), sent(2, 20, 21, 451), sent(3, 30, 0, 0)), [arrived(1)]);
    assert.equal(report.ok, true);
    assert.equal(report.accepted, 1);
  });

  test('finds a refused message that was delivered all the same', () => {
    const report = verifyRun(log(sent(1, 10, 11, 451), sent(2, 20, 21)), [arrived(1), arrived(2)]);
    assert.equal(report.ok, false);
    assert.equal(report.resurrected.count, 1);
  });

  test('finds content that differs from what was sent', () => {
    assert.equal(verifyRun(three, [arrived(1), arrived(2, TAKEN, 7), arrived(3)]).altered.count, 1);
  });

  test('finds a second copy that nothing explains', () => {
    const report = verifyRun(three, [arrived(1), arrived(2), arrived(2), arrived(3)]);
    assert.equal(report.ok, false);
    assert.equal(report.duplicated.count, 1);
    assert.equal(verifyRun(three, [arrived(1), arrived(2), arrived(2), arrived(3)], { duplicatesMax: 1 }).ok, true);
  });

  test('explains a second copy by a try that got no reply', () => {
    const report = verifyRun(log(sent(1, 10, 0, 0), sent(1, 15, 16)), [arrived(1), arrived(1)]);
    assert.equal(report.ok, true);
    assert.equal(report.explainedDuplicates, 1);
    assert.equal(verifyRun(log(sent(1, 10, 0, 0), sent(1, 15, 16)), [arrived(1), arrived(1), arrived(1)]).duplicated.count, 1);
  });

  test('explains a second copy by a connection that the sink cut', () => {
    const report = verifyRun(three, [arrived(1), arrived(2, CUT), arrived(2), arrived(3)]);
    assert.equal(report.ok, true);
    assert.equal(report.explainedDuplicates, 1);
  });

  test('does not explain a second copy by a try that was refused', () => {
    assert.equal(verifyRun(log(sent(1, 10, 11, 451), sent(1, 15, 16)), [arrived(1), arrived(1)]).duplicated.count, 1);
  });

  test('finds a message that overtook one accepted before its final dot', () => {
    const report = verifyRun(three, [arrived(2), arrived(1), arrived(3)]);
    assert.equal(report.ok, false);
    assert.deepEqual(report.outOfOrder, { count: 1, examples: ['a.example#2 (2)'] });
    assert.equal(report.displacement, 1);
  });

  test('binds nobody whose dot left before the other was accepted', () => {
    const overlapping = log(sent(1, 10, 25), sent(2, 20, 21));
    assert.equal(verifyRun(overlapping, [arrived(2), arrived(1)]).ok, true);
    const touching = log(sent(1, 10, 20), sent(2, 20, 21));
    assert.equal(verifyRun(touching, [arrived(2), arrived(1)]).ok, true);
  });

  test('allows fifo the displacement of its concurrency, and not more', () => {
    const order = [arrived(3), arrived(1), arrived(2)];
    assert.equal(verifyRun(three, order, { displacementMax: 2 }).ok, true);
    assert.equal(verifyRun(three, order, { displacementMax: 1 }).ok, false);
    assert.equal(verifyRun(three, order).displacement, 2);
  });

  test('takes the first attempt for the order, even one that was deferred', () => {
    assert.equal(verifyRun(three, [arrived(1, DEFERRED), arrived(2), arrived(1), arrived(3)]).ok, true);
  });

  test('takes the beginnings of attempts for the order; by the dots only if asked', () => {
    const [first, second, third] = [arrived(1), arrived(2), arrived(3)];
    const slow = [third, first, second];
    assert.equal(verifyRun(three, slow).ok, true);
    const byDots = verifyRun(three, slow, { orderBy: 'dot' });
    assert.deepEqual([byDots.ok, byDots.displacement], [false, 2]);
    const late = [{ ...first, begun: third.begun + 1 }, second, third];
    assert.equal(verifyRun(three, late).outOfOrder.count, 2);
    assert.equal(verifyRun(three, late, { orderBy: 'dot' }).ok, true);
  });

  test('knows an attempt that ended before its dot as the first, and as no copy', () => {
    const begunAgain = [arrived(1, UNFINISHED, 0), arrived(2), arrived(1), arrived(3)];
    const report = verifyRun(three, begunAgain);
    assert.deepEqual([report.ok, report.arrived, report.copies], [true, 3, 3]);
    assert.equal(verifyRun(three, begunAgain, { orderBy: 'dot' }).displacement, 1);
    const never = verifyRun(three, [arrived(1), arrived(2), arrived(3, UNFINISHED, 0)]);
    assert.deepEqual([never.arrived, never.lost.count, never.altered.count], [2, 1, 0]);
    assert.equal(verifyBySerials([{ ...arrived(1, UNFINISHED, 0), queue: '', serial: 0 }, arrived(1)]).ok, true);
  });

  test('lets a resent message arrive by its first, unanswered try', () => {
    const resent = log(sent(2, 5, 0, 0), sent(1, 10, 11), sent(2, 20, 21));
    assert.equal(verifyRun(resent, [arrived(2), arrived(1)]).ok, true);
  });

  test('judges each queue by itself', () => {
    const other: SendRecord = { ...sent(2, 20, 21), queue: 'b.example' };
    assert.equal(verifyRun(log(sent(1, 10, 11), other), [{ ...arrived(2), queue: 'b.example' }, arrived(1)]).ok, true);
  });

  test('reports arrivals that the log does not know, and leaves other runs alone', () => {
    assert.equal(verifyRun(three, [arrived(1), arrived(2), arrived(3), arrived(9)]).unknown.count, 1);
    assert.equal(verifyRun(three, [arrived(1), arrived(2), arrived(3), { ...arrived(9), run: 'r2' }]).ok, true);
  });

  test('counts overtaken messages like a plain comparison of all pairs', () => {
    // A fixed shuffle of 60 messages with overlapping tries.
    const records: SendRecord[] = [];
    const order: number[] = [];
    for (let id = 1; id <= 60; id++) {
      records.push(sent(id, id * 10, id * 10 + 1 + ((id * 37) % 45)));
      order.splice((id * 23) % (order.length + 1), 0, id);
    }
    let worst = 0;
    for (const [place, y] of order.entries()) {
      const later = order.slice(place + 1).map((id) => records[id - 1]);
      worst = Math.max(worst, later.filter((x) => (x?.reply ?? 0) < y * 10).length);
    }
    assert.equal(verifyRun(log(...records), order.map((id) => arrived(id))).displacement, worst);
    assert.ok(worst > 5);
  });
});

describe('verifyBySerials', () => {
  test('finds gaps, repeats and overtaking without a log', () => {
    assert.equal(verifyBySerials([arrived(1), arrived(2), arrived(3)]).ok, true);
    assert.equal(verifyBySerials([arrived(1), arrived(3)]).lost.count, 1);
    assert.equal(verifyBySerials([arrived(1), arrived(2), arrived(2)]).duplicated.count, 1);
    assert.equal(verifyBySerials([arrived(2), arrived(1)]).displacement, 1);
    assert.equal(verifyBySerials([arrived(1, TAKEN, -1)]).altered.count, 1);
  });
});
