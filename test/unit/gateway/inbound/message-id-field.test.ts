/** The Message-ID that the mail log shows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageIdField, messageIdWithin } from '../../../../src/gateway/inbound/content/message-id-field.js';
import { latin1Text } from '../../../../src/platform/node/latin1.js';

const bytes = (...texts: readonly string[]): readonly Uint8Array[] => ['Received: us\r\n', ...texts].map((text) => Buffer.from(text, 'latin1'));

test('finds the field in any case and position of the header', () => {
  assert.equal(messageIdField(bytes('Message-ID: <a@b>\r\nSubject: x\r\n\r\n'), latin1Text), '<a@b>');
  assert.equal(messageIdField(bytes('Message-ID:\r\n\t<a@b>\r\n\r\n'), latin1Text), '<a@b>', 'on the next line');
  assert.equal(messageIdField(bytes('Message-ID:\r\nTo: <a@b>\r\n\r\n'), latin1Text), '');
  assert.equal(messageIdField(bytes('Subject: x\r\nmessage-id:\t<c@d>  \r\n\r\nbody'), latin1Text), '<c@d>');
});

test('never looks into the body', () => {
  assert.equal(messageIdField(bytes('Subject: x\r\n\r\nMessage-ID: <a@b>\r\n'), latin1Text), '');
});

test('ends at its bounds', () => {
  assert.equal(messageIdField(bytes(`Message-ID: ${'x'.repeat(5000)}\r\n\r\n`), latin1Text).length, 250);
  assert.equal(messageIdField(bytes(`X: ${'y'.repeat(16_384)}\r\nMessage-ID: <late@b>\r\n\r\n`), latin1Text), '');
  assert.equal(messageIdField(bytes(''), latin1Text), '');
  assert.equal(messageIdField(bytes(), latin1Text), '');
  assert.equal(messageIdField(bytes(`X: ${'y'.repeat(9000)}\r\n`, `X: ${'y'.repeat(9000)}\r\nMessage-ID: <late@b>\r\n\r\n`), latin1Text), '');
});

test('finds it in whichever pieces a client sends its header', () => {
  for (const header of ['To: x@b\r\nMessage-ID: <a@b>\r\nSubject: x\r\n\r\n', 'Message-ID:\r\n <a@b>\r\n\r\n']) {
    for (let at = 1; at < header.length; at++) {
      assert.equal(messageIdField(bytes(header.slice(0, at), header.slice(at)), latin1Text), '<a@b>', String(at));
    }
    assert.equal(messageIdField(bytes(...header), latin1Text), '<a@b>', 'octet by octet');
  }
  assert.equal(messageIdField(bytes(`X: ${'y'.repeat(9000)}\r\n`, 'Message-ID: <late@b>\r\n\r\n'), latin1Text), '<late@b>');
});

test('knows nothing of one that is cut', () => {
  const within = (text: string): string | undefined => messageIdWithin(Buffer.from(text, 'latin1'), latin1Text);
  for (const text of ['Message-ID: <cut', 'Message-ID:', 'Message-ID: ', 'Message-ID:\r', 'Message-ID:\r\n', 'Message-I']) assert.equal(within(text), undefined, text);
  assert.equal(within('Message-ID: <a@b>\r'), '<a@b>');
  assert.equal(within('Message-ID:\r\nTo'), '');
});
