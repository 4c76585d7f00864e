/** What programs read of reports: by the RFCs, as servers really write them, and as nobody should. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { readDeliveryStatus, readFeedback, readReturnPath } from '../../../../src/gateway/returned/report-content.js';

const NOTHING = { action: '', status: '', finalRecipient: '', originalRecipient: '', diagnostic: '', remoteMta: '' };

describe('delivery status', () => {
  test('each recipient of RFC 3464, its fields folded, in any case and order', () => {
    const text = 'Reporting-MTA: dns; a.example\r\nArrival-Date: x\r\n\r\n'
      + 'Original-Recipient: rfc822;Bob@Example.net\r\nFINAL-recipient: RFC822; <robert@example.net>\r\naction: Failed (for good)\r\n'
      + 'Status: 5.1.1 (no such user)\r\nDiagnostic-Code: smtp; 550 5.1.1\r\n  no such\r\n\tuser\r\nRemote-MTA: dns; mx.example.net\r\n\r\n'
      + 'Final-Recipient: rfc822; carol@example.net\r\nAction: delayed\r\nStatus: 4.4.1\r\n';
    assert.deepEqual(readDeliveryStatus(text), [
      { action: 'failed', status: '5.1.1', finalRecipient: 'robert@example.net', originalRecipient: 'Bob@Example.net', diagnostic: '550 5.1.1 no such user', remoteMta: 'mx.example.net' },
      { ...NOTHING, action: 'delayed', status: '4.4.1', finalRecipient: 'carol@example.net' },
    ]);
  });

  test('line ends of any kind, no empty line between, blanks in it, fields twice', () => {
    for (const end of ['\r\n', '\n', '\r']) {
      const text = ['Reporting-MTA: dns; a', ' \t', 'Final-Recipient: rfc822; bob@b', 'Action: failed', 'Action: delivered', 'Status: 5.0.0'].join(end);
      assert.deepEqual(readDeliveryStatus(text), [{ ...NOTHING, action: 'failed', status: '5.0.0', finalRecipient: 'bob@b' }], JSON.stringify(end));
      assert.equal(readDeliveryStatus(text.replace(' \t', 'X: y')).length, 1);
    }
  });

  test('what is no word or code of the RFC is none here', () => {
    const [one] = readDeliveryStatus('Final-Recipient: bob@b\nAction: exploded\nStatus: 9.9.9\n');
    assert.deepEqual(one, { ...NOTHING, finalRecipient: 'bob@b' });
    for (const text of ['', '\r\n\r\n', 'hello', ': x', 'Action:', 'Reporting-MTA: dns; a']) assert.deepEqual(readDeliveryStatus(text), [], text);
  });

  test('all that comes out is bounded, one line, and of printable characters', () => {
    const [one] = readDeliveryStatus(`Final-Recipient: rfc822; a\u0000\u001b[31m\u2028\u202eb@c\nAction: failed\nDiagnostic-Code: smtp; ${'x'.repeat(100_000)}\n${' y\n'.repeat(10_000)}`);
    assert.equal(one?.finalRecipient, 'a [31m b@c');
    assert.ok((one.diagnostic.length) <= 500);
    assert.ok(readDeliveryStatus('Action: failed\n\n'.repeat(1000)).length <= 50);
    const started = performance.now();
    for (const piece of [' ', '\n', '\r', '\n ', ':', 'a:', '\t\n', ';', '<', '(']) readDeliveryStatus(piece.repeat(65_536 / piece.length));
    assert.ok(performance.now() - started < 2000, 'linear work');
  });
});

describe('feedback', () => {
  test('the fields of RFC 5965, and types as words of ours', () => {
    const text = 'Feedback-Type: abuse\r\nUser-Agent: SomeGenerator/1.0\r\nVersion: 1\r\nOriginal-Mail-From: <somespammer@example.net>\r\nOriginal-Rcpt-To: <user@example.com>\r\nReceived-Date: Thu, 8 Mar 2005 14:00:00 EDT\r\nSource-IP: 192.0.2.2\r\n';
    assert.deepEqual(readFeedback(text), {
      type: 'abuse', userAgent: 'SomeGenerator/1.0', sourceIp: '192.0.2.2', mailFrom: 'somespammer@example.net',
      rcptTo: 'user@example.com', arrivalDate: 'Thu, 8 Mar 2005 14:00:00 EDT',
    });
    assert.equal(readFeedback('Feedback-Type: Something-New\n')?.type, 'other');
    assert.equal(readFeedback('Feedback-Type: not-spam; x\n')?.type, 'not-spam');
    for (const none of ['', 'User-Agent: x', 'Feedback-Type:', 'Feedback-Type: =?x?=']) assert.equal(readFeedback(none), undefined, none);
  });

  test('the reverse-path of a mail is in its header section, nowhere else', () => {
    assert.equal(readReturnPath('Received: x\r\nReturn-Path: <b+1@ours.example>\r\n\r\nReturn-Path: <eve@x>\r\n'), 'b+1@ours.example');
    assert.equal(readReturnPath('Subject: x\r\n\r\nReturn-Path: <eve@x>\r\n'), '');
  });
});
