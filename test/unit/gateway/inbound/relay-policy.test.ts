/** Who may send anywhere: the answers that are kept are those of the list. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toAscii } from '../../../../src/platform/node/idna.js';
import { RelayPolicy } from '../../../../src/gateway/inbound/policy/relay-policy.js';

describe('relay networks', () => {
  test('are answered alike the first time and later', () => {
    const policy = new RelayPolicy({ networks: ['127.0.0.0/8', '::1', '192.0.2.0/24', '2001:db8::/32'], domains: [] }, toAscii);
    const trusted = ['127.0.0.1', '192.0.2.255', '::ffff:192.0.2.1', '::1', '2001:db8::5'];
    const others = ['192.0.3.1', '::ffff:192.0.3.1', '2001:db9::5', '', 'nobody', '300.1.1.1'];
    for (let round = 0; round < 2; round++) {
      for (const address of trusted) assert.equal(policy.isTrusted(address), true, address);
      for (const address of others) assert.equal(policy.isTrusted(address), false, address);
    }
  });

  test('stay right when more addresses came than answers are kept', () => {
    const policy = new RelayPolicy({ networks: ['10.1.0.0/16'], domains: [] }, toAscii);
    for (let round = 0; round < 2; round++) {
      for (let host = 0; host < 10_000; host++) {
        const tail = `${host >> 8}.${host & 255}`;
        if (!policy.isTrusted(`10.1.${tail}`) || policy.isTrusted(`10.2.${tail}`)) assert.fail(tail);
      }
    }
  });
});
