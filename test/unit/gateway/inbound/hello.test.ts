/** Greeting and replies to EHLO and HELO: what is offered when, and which arguments are none. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HelloReplies, helloName } from '../../../../src/gateway/inbound/hello-replies.js';
import { INBOUND_DEFAULTS } from '../../../../src/gateway/inbound/options.js';

describe('hello', () => {
  test('offers STARTTLS with a certificate, and not within TLS', () => {
    const plain = new HelloReplies({ ...INBOUND_DEFAULTS, hostName: 'mx.test', messageBytesMax: 1000 });
    const offered = ['250-mx.test greets [192.0.2.1]', '250-PIPELINING', '250-8BITMIME', '250-SMTPUTF8', '250-ENHANCEDSTATUSCODES', '250-DSN', '250 SIZE 1000'];
    assert.deepEqual(plain.ehlo('192.0.2.1', false).split('\r\n'), offered);
    const able = new HelloReplies({ ...INBOUND_DEFAULTS, hostName: 'mx.test', messageBytesMax: 1000, tls: { key: '', cert: '' } });
    assert.deepEqual(able.ehlo('192.0.2.1', true).split('\r\n'), offered);
    assert.deepEqual(able.ehlo('192.0.2.1', false).split('\r\n'), [...offered.slice(0, -1), '250-STARTTLS', '250 SIZE 1000']);
    assert.deepEqual([able.greeting, able.helo('2001:db8::1')], ['220 mx.test ESMTP', '250 mx.test greets [2001:db8::1]']);
  });

  test('takes one argument, of a bounded length', () => {
    assert.deepEqual(helloName('EHLO Mail.Example'), { name: 'Mail.Example' });
    assert.deepEqual(helloName('helo   [192.0.2.1]'), { name: '[192.0.2.1]' });
    for (const text of ['EHLO', 'HELO ', 'EHLO a b', 'EHLO a\u2003b']) assert.match(String(helloName(text)), /^501 Syntax: (EHLO|HELO) hostname$/, text);
    assert.deepEqual(helloName(`EHLO ${'x'.repeat(300)}`), { name: 'x'.repeat(300) });
    assert.equal(helloName(`EHLO ${'x'.repeat(301)}`), '501 Host name too long');
  });
});
