/** How much of what the DNS has said is kept: dns-client.test.ts has for how long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { DnsCache } from '../../../../../src/platform/node/dns/dns-cache.js';

/** With its key of eight characters and what is counted for its objects it takes 16 KiB. */
const ANSWER = { kind: 'found', records: ['x'.repeat(16 * 1024 - 256 - 64 - 8)], isAuthentic: false } as const;

test('sixteen MiB of answers are kept; what comes then pushes out the oldest, and the same one again counts once', () => {
  const cache = new DnsCache();
  const key = (at: number): string => `TXT ${String(at).padStart(4, '0')}`;
  const isKept = (at: number): boolean => cache.get(key(at), 0) !== undefined;
  for (let at = 0; at < 1024; at++) cache.put(key(at), ANSWER, 1);
  // It is the newest now.
  for (let again = 0; again < 3; again++) cache.put(key(0), ANSWER, 1);
  assert.deepEqual([isKept(0), isKept(1), isKept(2)], [true, true, true]);
  cache.put(key(1024), ANSWER, 1);
  assert.deepEqual([isKept(0), isKept(1), isKept(2), isKept(1024)], [true, false, true, true]);
  // What is over has made room.
  assert.equal(cache.get(key(2), 1), undefined);
  cache.put(key(1025), ANSWER, 1);
  assert.deepEqual([isKept(3), isKept(1025)], [true, true]);
});
