/** Whatever a hook says, what is put in front of a message is header fields, and nothing else. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { moduleAnswer } from '../../../../../src/gateway/inbound/hooks/module-answer.js';
import { fieldOctets, fieldRule } from '../../../../../src/gateway/inbound/hooks/prefix-fields.js';
import { rspamdVerdict } from '../../../../../src/gateway/inbound/hooks/rspamd-answer.js';

/** Texts that come near to what could break a header. */
const oddText = fc.array(fc.constantFrom('a', 'Bcc', ':', ' ', '\t', '\r', '\n', '\r\n', '\0', '.', '\u00f6', '\u2028', '\x7f', 'x'.repeat(500)), { maxLength: 12 })
  .map((parts) => parts.join(''));
const name = fc.oneof(oddText, fc.constantFrom('X-A', 'x_1', 'DKIM-Signature'));

function assertFields(fields: readonly { readonly name: string; readonly value: string }[]): void {
  const text = Buffer.from(fieldOctets(fields)).toString('latin1');
  assert.ok(fields.length === 0 || text.endsWith('\r\n'));
  const lines = text.split('\r\n').slice(0, -1);
  for (const line of lines) {
    assert.match(line, /^(?:[A-Za-z0-9][A-Za-z0-9_-]*: |[ \t])[\t -~]*$/);
    assert.ok(line.length <= 998);
    assert.notEqual(line.trim(), '');
  }
  assert.equal(lines.filter((line) => !/^[ \t]/.test(line)).length, fields.length);
}

describe('fields in front of a message', () => {
  test('are whole header fields, one each, or none', () => {
    let passed = 0;
    fc.assert(fc.property(fc.array(fc.record({ name, value: oddText }), { maxLength: 4 }), (fields) => {
      const good = fields.filter((field) => fieldRule(field) === '');
      passed += good.length;
      assertFields(good);
    }), { numRuns: 3000 });
    assert.ok(passed > 100, `only ${String(passed)} fields passed`);
  });

  test('come of any answer of rspamd and of any module without a fault', () => {
    const value = fc.oneof(oddText, fc.record({ value: oddText }), fc.array(oddText, { maxLength: 3 }), fc.jsonValue());
    const rspamd = fc.record({
      action: fc.constantFrom('no action', 'add header', 'rewrite subject', 'greylist', 'reject', 'soft reject', 7, 'other'),
      score: fc.oneof(fc.double(), fc.string()), required_score: fc.double(), messages: fc.jsonValue(), 'dkim-signature': value,
      milter: fc.record({ add_headers: fc.dictionary(name, value), remove_headers: fc.jsonValue() }),
    }, { requiredKeys: ['action'] });
    fc.assert(fc.property(fc.oneof(rspamd, fc.jsonValue()), (answer) => {
      const verdict = rspamdVerdict(answer);
      if (verdict.action !== 'accept') return;
      assert.deepEqual(verdict.fields.map(fieldRule).filter((rule) => rule !== ''), []);
      assertFields([...verdict.mark ?? [], ...verdict.fields]);
    }), { numRuns: 3000 });
    fc.assert(fc.property(fc.oneof(fc.anything(), fc.record({ action: fc.constantFrom('accept', 'refuse', 'defer'), text: fc.anything(), fields: fc.anything() })), (answer) => {
      const said = moduleAnswer(answer);
      assert.deepEqual(moduleAnswer(said), said);
    }), { numRuns: 2000 });
  });
});
