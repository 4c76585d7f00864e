/** The Message-ID that the mail log shows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageIdField } from '../../../../src/gateway/inbound/content/message-id-field.js';
import { latin1Text } from '../../../../src/platform/node/latin1.js';

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1');

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
  assert.equal(messageIdField(bytes(`X: ${'y'.repeat(9000)}\r\nMessage-ID: <late@b>\r\n\r\n`), latin1Text), '');
  assert.equal(messageIdField(bytes(''), latin1Text), '');
  assert.equal(messageIdField(bytes('Message-ID: <cut'), latin1Text), '<cut');
});
