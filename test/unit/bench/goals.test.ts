import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { Quarter } from '../../../bench/endurance.js';
import { overheadBytes, peerFactor, shareOfDirect, storeFactor, storeNote } from '../../../bench/goal-numbers.js';
import { goalsOf, judge, type Goal } from '../../../bench/goals.js';
import { bestConnections } from '../../../bench/peers.js';
import { goalsTable, reportOf } from '../../../bench/report.js';
import { enduranceRow, fillRow, part, peerRow, relayRow, RESULTS, storeRow } from './results-kit.js';

function goal(goals: readonly Goal[], text: string): Goal {
  const found = goals.filter((each) => each.goal.includes(text));
  assert.equal(found.length, 1, `${text}: ${found.length}`);
  return found[0] ?? judge({ subject: '', goal: '', value: undefined });
}

describe('a goal', () => {
  test('is met at its bound, from either side', () => {
    assert.equal(judge({ subject: 's', goal: 'g', value: 95, atMost: 95 }).isMet, true);
    assert.equal(judge({ subject: 's', goal: 'g', value: 0.33, atLeast: 0.33 }).isMet, true);
  });

  test('says by how much it was missed', () => {
    assert.deepEqual(judge({ subject: 's', goal: 'g', value: 114, atMost: 95, unit: ' µs' }), { subject: 's', goal: 'g', isMet: false, measured: '114 µs: 20.0% too much' });
    assert.equal(judge({ subject: 's', goal: 'g', value: 9, atLeast: 12, unit: ' ×' }).measured, '9.00 ×: 25.0% too little');
  });

  test('is not judged without a number, nor by one that is none', () => {
    assert.equal(judge({ subject: 's', goal: 'g', value: undefined, atMost: 1 }).isMet, undefined);
    assert.equal(judge({ subject: 's', goal: 'g', value: NaN, atMost: 1 }).isMet, undefined);
  });

  test('of nothing that was measured is not judged', () => {
    const goals = goalsOf({});
    assert.ok(goals.length > 20);
    assert.ok(goals.every((each) => each.isMet === undefined && each.measured === 'not measured'));
  });
});

describe('goals of a run', () => {
  const goals = goalsOf(RESULTS);

  test('compare the relay with direct of the same round', () => {
    assert.equal(goal(goals, '0.33').isMet, true);
    assert.equal(goal(goals, '0.33').measured, '0.40');
    assert.equal(goal(goals, 'does not pipeline').measured, '0.60');
    assert.equal(goal(goals, 'half of direct').isMet, false);
    const rows = [relayRow('direct', 'kept', 1, 30_000), relayRow('gateway', 'kept', 1, 15_000), relayRow('direct', 'kept', 2, 10_000), relayRow('gateway', 'kept', 2, 2000), relayRow('gateway', 'kept', 3, 9999)];
    assert.equal(shareOfDirect(rows, 'kept'), 0.35);
  });

  test('sum the CPU of gateway and stores', () => {
    assert.equal(goal(goals, '95 µs').measured, '71.0 µs');
    assert.equal(goal(goals, '10 µs').measured, '11.0 µs: 10.0% too much');
  });

  test('take a peer at the number of connections with most throughput', () => {
    assert.equal(goal(goals, 'Postfix on disk').measured, '20.0 ×');
    assert.equal(goal(goals, 'Haraka').measured, '5.00 ×: 16.7% too little');
    assert.equal(goal(goals, 'tmpfs').isMet, undefined);
    assert.equal(peerFactor([peerRow('p', 50, 10, 100), peerRow('p', 300, 20, 300)], 'p', 100), 3);
  });

  test('choose that number by the median of its rounds, not by one lucky round', () => {
    const rows = [...[10, 11, 12].map((perSecond) => peerRow('p', 50, perSecond, 100)), ...[5, 6, 99].map((perSecond) => peerRow('p', 300, perSecond, 300)), peerRow('other', 7, 1000, 1)];
    assert.equal(bestConnections(rows, 'p'), 50);
    assert.equal(peerFactor(rows, 'p', 100), 1);
    assert.equal(bestConnections(rows, 'nobody'), undefined);
  });

  test('tell the CPU of both servers, and whose client was the limit', () => {
    assert.equal(goal(goals, '1.0 × memcached at 0.4 KB').measured, '2.00 × (CPU of the server 1.00 µs, of memcached 1.00)');
    const rows = [storeRow('Twinpost', '20', 90), { ...storeRow('redis list', '20', 70), serverCpuMicros: 7.5, clientBusy: 0.99 }];
    assert.equal(storeNote(rows, 'redis list', '20'), 'CPU of the server 1.00 µs, of redis list 7.50; the client was the limit at redis list, 99% busy');
    assert.match(storeNote([{ ...storeRow('Twinpost', '20', 90), clientBusy: 0.95 }], 'redis list', '20'), /the limit at Twinpost, 95% busy/);
  });

  test('judge slowdown by CPU a message, beside what the sink says of the machine', () => {
    const quarter = (cpuMicrosPerMessage: number | null, sinkMicrosPerMessage: number | null): Quarter => ({ cpuMicrosPerMessage, sinkMicrosPerMessage, responseP50Ms: 1, responseP99Ms: 2 });
    const judged = (quarters: readonly Quarter[] | undefined): Goal => goal(goalsOf({ endurance: part('endurance', [enduranceRow(quarters)]) }), 'no slowdown');
    assert.equal(judged([quarter(70, 10), quarter(99, 10), quarter(99, 10), quarter(73, 10.2)]).isMet, true);
    assert.equal(judged([quarter(70, 10), quarter(70, 10), quarter(70, 10), quarter(77, 10)]).measured, "10.0%: 100% too much (the sink's, whose work is the same: 0.00%)");
    assert.equal(judged([quarter(70, 10), quarter(70, 10), quarter(70, 10), quarter(null, null)]).isMet, undefined);
    assert.equal(judged(undefined).isMet, undefined, 'results of before have no quarters');
    assert.match(reportOf({ endurance: part('endurance', [enduranceRow([quarter(70, 10), quarter(null, null)])]) }), /\| 2 \| - \| - \| 1\.00 \| 2\.00 \|/);
  });

  test('compare stores at one size', () => {
    assert.equal(goal(goals, '1.0 × redis list at 0.4 KB').measured, '2.50 × (CPU of the server 1.00 µs, of redis list 1.00)');
    assert.equal(goal(goals, '2.0 × memcached at 0.4 KB').isMet, true);
    assert.equal(storeFactor([storeRow('Twinpost', '1', 5), storeRow('memcached', '4', 5)], 'memcached', '1'), undefined);
  });

  test('take the bytes a message from the slope of memory, what is always there left out', () => {
    assert.equal(goal(goals, 'gateway ≤ 100 bytes a message beyond content and envelope at 5,000,000').measured, '80.0 bytes');
    assert.equal(goal(goals, 'store ≤ 100 bytes a message beyond content and envelope at 5,000,000').measured, '60.0 bytes');
    assert.equal(overheadBytes([fillRow(0, 900), fillRow(1000, 900)], (row) => row.gatewayBytes), undefined);
  });

  test('leave out the first cycles, in which rings fill', () => {
    const cycles = [100, 150, 180, 180, 180, 180].map((mb, index) => ({ what: 'cycle' as const, cycle: index + 1, messages: 1000, gatewayBytes: mb * 1e6, storeBytes: (100 + 5 * index) * 1e6 }));
    const judged = goalsOf({ memory: part('memory', cycles) });
    assert.equal(goal(judged, 'filled and drained').measured, '0.00 MB a cycle (few; the last 3 of 6 cycles)');
    assert.equal(goal(judged, 'store: the same').isMet, false);
  });

  test('compare what is used with what stays', () => {
    assert.equal(goal(goals, 'the others pass: gateway').measured, '1.10 ×');
    assert.equal(goal(goals, 'the others pass: store').isMet, false);
  });

  test('judge the longest queue by its own run', () => {
    assert.equal(goal(goals, 'gateway ≤ 100 bytes a message beyond content and envelope at 10,000,000').measured, 'not measured');
    const judged = goalsOf({ longest: part('longest', [fillRow(0, 580), fillRow(5_000_000, 580), fillRow(10_000_000, 580)]) });
    assert.equal(goal(judged, 'gateway ≤ 100 bytes a message beyond content and envelope at 10,000,000').isMet, true);
    assert.equal(goal(judged, 'gateway ≤ 100 bytes a message beyond content and envelope at 5,000,000').isMet, undefined);
  });

  test('name growth in percent', () => {
    assert.equal(goal(goals, '1,000 queues').measured, '3.75%');
    assert.equal(goal(goals, '10,000 queues').measured, '7.50%');
    assert.equal(goal(goals, '10,000 connections, each').measured, '25.0%: 150% too much');
    assert.equal(goal(goals, '10,000 connections at 4,000 messages a second').measured, '8.00%');
    assert.equal(goal(goals, '3,000,000 queued').measured, '5.00%');
  });

  test('that were tried with less say so', () => {
    const few = goalsOf({ memory: part('memory', [fillRow(0, 580), fillRow(1000, 580), fillRow(2000, 580)]) });
    assert.match(goal(few, 'gateway ≤ 100 bytes a message beyond content and envelope at 5,000,000').measured, /with 2,000 messages/);
    assert.match(goal(few, '3,000,000 queued').measured, /only to 2,000/);
    assert.equal(goal(few, 'gateway ≤ 100 bytes a message beyond content and envelope at 5,000,000').isPartial, true);
    assert.equal(goal(goals, 'gateway ≤ 100 bytes a message beyond content and envelope at 5,000,000').isPartial, undefined);
    assert.match(goalsTable(goalsOf(RESULTS)), /gateway ≤ 100 bytes[^|]*at 5,000,000 \| met \|/);
    assert.match(goalsTable(few), /gateway ≤ 100 bytes[^|]*at 5,000,000 \| met with less \|/);
  });
});
