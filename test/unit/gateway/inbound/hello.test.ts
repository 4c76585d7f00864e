/** Greeting and replies to EHLO and HELO: what is offered when, in clear and within TLS. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HelloReplies } from '../../../../src/gateway/inbound/commands/hello.js';
import { INBOUND_DEFAULTS } from '../../../default-options.js';

describe('hello', () => {
  test('offers STARTTLS with a certificate, and not within TLS; REQUIRETLS within TLS alone, and not where links are insecure', () => {
    const plain = new HelloReplies({ ...INBOUND_DEFAULTS, hostName: 'mx.test', messageBytesMax: 1000, offersTls: false });
    const offered = ['250-mx.test greets [192.0.2.1]', '250-PIPELINING', '250-8BITMIME', '250-SMTPUTF8', '250-ENHANCEDSTATUSCODES', '250-DSN', '250-CHUNKING', '250-LIMITS RCPTMAX=1000', '250 SIZE 1000'];
    assert.deepEqual(plain.ehlo('192.0.2.1', false, []).split('\r\n'), offered);
    const able = new HelloReplies({ ...INBOUND_DEFAULTS, hostName: 'mx.test', messageBytesMax: 1000, offersTls: true });
    assert.deepEqual(able.ehlo('192.0.2.1', true, []).split('\r\n'), [...offered.slice(0, -2), '250-REQUIRETLS', ...offered.slice(-2)]);
    const insecure = new HelloReplies({ ...INBOUND_DEFAULTS, hostName: 'mx.test', messageBytesMax: 1000, offersTls: true, offersRequireTls: false });
    assert.deepEqual(insecure.ehlo('192.0.2.1', true, []).split('\r\n'), offered);
    assert.deepEqual(able.ehlo('192.0.2.1', false, []).split('\r\n'), [...offered.slice(0, -2), '250-STARTTLS', ...offered.slice(-2)]);
    assert.deepEqual([able.greeting, able.helo('2001:db8::1')], ['220 mx.test ESMTP', '250 mx.test greets [2001:db8::1]']);
  });
});
