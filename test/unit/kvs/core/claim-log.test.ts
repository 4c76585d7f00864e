import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ClaimLog } from '../../../../src/kvs/core/claim-log.js';
import type { LogFields } from '../../../../src/platform/ports.js';
import { CLAIM_GRANTED, CLAIM_LEASE_RUNS } from '../../../../src/protocol/reasons.js';

function logged(): { readonly lines: LogFields[]; readonly claims: ClaimLog } {
  const lines: LogFields[] = [];
  const take = (_event: string, _text: string, fields: LogFields = {}): void => { lines.push(fields); };
  return { lines, claims: new ClaimLog({ debug: take, info: take, warn: take, error: take }) };
}

describe('the log of claims', () => {
  test('has one line for a burst of a thousand, with counts by result', () => {
    const { lines, claims } = logged();
    for (let i = 0; i < 1000; i++) claims.note('g1', `q${String(i)}`, i < 990 ? CLAIM_GRANTED : CLAIM_LEASE_RUNS, i < 990 ? 0 : 700, i / 2);
    claims.tick('g1', 999);
    assert.deepEqual(lines, []);
    claims.tick('g1', 1000);
    claims.tick('g1', 5000);
    assert.deepEqual(lines, [{ gateway: 'g1', owner: 'g1', claims: 1000, granted: 990, queue: undefined, other_results: ['LEASE_RUNS 10'], wait_ms: 700 }]);
  });

  test('names the queue of a single claim, and tells a rescue from a return', () => {
    const { lines, claims } = logged();
    claims.note('g1', 'a.example', CLAIM_GRANTED, 0, 10);
    claims.note('g2', 'b.example', CLAIM_GRANTED, 0, 20);
    claims.flush('g1');
    assert.deepEqual(lines.map((line) => [line['gateway'], line['owner'], line['queue']]), [['g1', 'g1', 'a.example'], ['g1', 'g2', 'b.example']]);
    claims.note('g1', 'a.example', CLAIM_GRANTED, 0, 5000);
    claims.tick('g1', 5500);
    assert.equal(lines.length, 2, 'a new burst has its own time');
  });

  test('is bounded, whatever owners a gateway names', () => {
    const { lines, claims } = logged();
    for (let i = 0; i < 10_000; i++) claims.note(`g${String(i)}`, undefined, CLAIM_LEASE_RUNS, 0, 0);
    claims.flush('g1');
    assert.equal(lines.length, 17);
    assert.equal(lines.at(-1)?.['claims'], 10_000 - 16);
  });
});
