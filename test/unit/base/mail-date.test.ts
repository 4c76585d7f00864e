/** Dates of header fields, against the platform's own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mailDate } from '../../../src/base/mail-date.js';

test('any second from 1900 to 2500 is written as RFC 5322 3.3 wants it', () => {
  const seconds = fc.integer({ min: Date.UTC(1900, 0, 1) / 1000, max: Date.UTC(2500, 0, 1) / 1000 });
  fc.assert(fc.property(seconds, (second) => {
    assert.equal(mailDate(second * 1000), new Date(second * 1000).toUTCString().replace('GMT', '+0000'));
  }), { numRuns: 2000 });
  for (const text of ['2000-02-29T23:59:59Z', '2100-03-01T00:00:00Z', '1999-12-31T23:59:59Z', '1970-01-01T00:00:00Z']) {
    assert.equal(mailDate(Date.parse(text)), new Date(text).toUTCString().replace('GMT', '+0000'));
  }
});
