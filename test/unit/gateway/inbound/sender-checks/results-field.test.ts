/** The field that tells what was found out: its form, and that no value of a sender's gets out of its place. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { resultWords, resultsField } from '../../../../../src/gateway/inbound/sender-checks/results-field.js';
import { dkimVerdict, unchecked } from '../../../../../src/gateway/inbound/sender-checks/verdicts.js';
import type { Verdicts } from '../../../../../src/gateway/inbound/sender-checks/verdicts.js';

const GOOD: Verdicts = {
  spf: { result: 'pass', domain: 'example.com', isHelo: false },
  dkim: [{ result: 'fail', reason: 'body has been altered', domain: 'example.com', selector: 's1', algorithm: 'rsa-sha256', start: 'dGhlIGJl' }, dkimVerdict('neutral')],
  dmarc: { result: 'fail', reason: '', domain: 'example.com', policy: 'reject' },
};

describe('the field', () => {
  test('tells each result in a line or two, with what it is about', () => {
    assert.equal(resultsField('mx.example.org', GOOD), [
      'Authentication-Results: mx.example.org;', '\tspf=pass smtp.mailfrom=example.com;',
      '\tdkim=fail reason="body has been altered" header.d=example.com', '\t header.s=s1 header.a=rsa-sha256 header.b=dGhlIGJl;', '\tdkim=neutral;',
      '\tdmarc=fail policy.dmarc=reject header.from=example.com', '',
    ].join('\r\n'));
    assert.equal(resultWords(GOOD), 'spf=pass dkim=fail dmarc=fail');
  });

  test('says so where nobody could check', () => {
    assert.equal(resultsField('mx', unchecked('not in time')), 'Authentication-Results: mx;\r\n\tspf=temperror;\r\n\tdkim=temperror reason="not in time";\r\n\tdmarc=temperror reason="not in time"\r\n');
    assert.equal(resultsField('mx', { ...GOOD, spf: { result: 'none', domain: 'helo.example', isHelo: true } }).split('\r\n')[1], '\tspf=none smtp.helo=helo.example;');
  });

  test('keeps every value in its place', () => {
    for (const hostile of [
      'x; dmarc=pass', 'x\r\nX-Injected: y', 'x\r\n\r\nbody', '"', '\\', '\\"; dkim=pass', ') (', 'x (comment', '\0\x7f', '\u00fc\u2028', 'a b', 'x=y', '<x>', '@', `${'x'.repeat(300)}"; dkim=pass`,
    ]) {
      const verdict = { result: 'fail', reason: hostile, domain: hostile, selector: hostile, algorithm: hostile, start: hostile } as const;
      const field = resultsField(hostile, { spf: { result: 'fail', domain: hostile, isHelo: true }, dkim: [verdict], dmarc: { result: 'fail', reason: hostile, domain: hostile, policy: 'none' } });
      assert.match(field, /^[\t\r\n -~]+$/);
      const lines = field.split('\r\n');
      assert.equal(lines.pop(), '');
      assert.ok(lines.every((line, index) => line.length <= 998 && /[^ \t]/.test(line) && (index === 0 || line.startsWith('\t'))), field);
      // Without its quoted strings nothing is left but words of ours.
      const bare = field.replace(/"(?:[^"\\]|\\.)*"/g, 'Q').replace(/x{255}/g, 'Q').replace(/\r\n/g, '').replace(/[ \t]+/g, ' ');
      assert.equal(bare, 'Authentication-Results: Q; spf=fail smtp.helo=Q; dkim=fail reason=Q header.d=Q header.s=Q header.a=Q header.b=Q; dmarc=fail reason=Q policy.dmarc=none header.from=Q\r\n'.replace('\r\n', ''), hostile);
    }
  });
});
