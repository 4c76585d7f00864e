/** The header of a message of which TLS is not asked (RFC 8689 3). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTlsUnasked } from '../../../../src/gateway/inbound/content/header-look.js';

for (const [header, isUnasked] of [
  ['TLS-Required: No\r\n', true],
  ['Subject: x\r\ntls-required:no \r\nTo: a@b.example\r\n', true],
  ['TLS-Required:\r\n\tNo\r\n', true],
  ['TLS-Required: Yes\r\n', false],
  ['TLS-Required: No, thanks\r\n', false],
  ['TLS-Required: No\r\nTLS-Required: No\r\n', false],
  ['Subject: x\r\n TLS-Required: No\r\n', false],
  ['X-TLS-Required: No\r\n', false],
] as const) {
  test(`${JSON.stringify(header)}: ${isUnasked ? 'not asked' : 'as ever'}`, () => { assert.equal(isTlsUnasked(header), isUnasked); });
}
