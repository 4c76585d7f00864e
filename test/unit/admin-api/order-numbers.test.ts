/** Numbers of orders and rules, src/admin-api: none that a client may send comes to where only sound ones are kept. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goOrder, queueOrder, whyNotThen } from '../../../src/admin-api/queue-orders.js';
import { newQueueRule } from '../../../src/admin-api/queue-rules.js';

const YEAR_9999_MS = Date.parse('9999-12-31T23:59:59.999Z');
const NONE = ['1', null, NaN, Infinity, -1, 0.5, 2 ** 53, 1e300];

const order = (changes: object): boolean => queueOrder.safeParse({ verb: 'delay', selector: { domain: 'a.example' }, not_before_ms: 1, ...changes }).success;
const chosen = (changes: object): boolean => order({ selector: { domain: 'a.example', ...changes } });
const rule = (changes: object): boolean => newQueueRule.safeParse({ verb: 'delay', selector: { domain: 'a.example' }, not_before_ms: 1, ...changes }).success;
const go = (changes: object): boolean => goOrder.safeParse({ grace_seconds: 0, ...changes }).success;

test('a number of an order or a rule is whole, and within its bounds', () => {
  const each: readonly (readonly [string, (changes: object) => boolean, least: number, most: number])[] = [
    ['not_before_ms', order, 1, YEAR_9999_MS], ['not_before_ms', rule, 1, YEAR_9999_MS], ['duration_seconds', rule, 1, 10 * 365 * 86_400],
    ['grace_seconds', go, 0, 3600], ['since', rule, 0, Number.MAX_SAFE_INTEGER],
    ...(['older_than_seconds', 'newer_than_seconds', 'larger_than_bytes'] as const).map((key) => [key, chosen, 0, Number.MAX_SAFE_INTEGER] as const),
  ];
  for (const [key, isTaken, least, most] of each) {
    assert.deepEqual([least, most].map((value) => isTaken({ [key]: value })), [true, true], key);
    for (const value of [...NONE, least - 1, most + 1]) assert.equal(isTaken({ [key]: value }), false, `${key} ${String(value)}`);
  }
});

test('a delay is a year at most: microseconds are none', () => {
  const nowMs = Date.UTC(2026, 0, 1);
  assert.equal(whyNotThen(undefined, nowMs), '');
  assert.equal(whyNotThen(nowMs + 366 * 86_400_000, nowMs), '');
  assert.match(whyNotThen(nowMs * 1000, nowMs), /^a delay is a year at most: not_before_ms is in milliseconds/);
});
