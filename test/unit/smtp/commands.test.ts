/** What a peer offers, and the commands that follow from it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CAN_8BITMIME, CAN_AUTH, CAN_AUTH_LOGIN, CAN_AUTH_PLAIN, CAN_DSN, CAN_PIPELINE, CAN_SIZE, CAN_SMTPUTF8, CAN_STARTTLS, NO_CAPABILITIES, parseCapabilities } from '../../../src/smtp/capabilities.js';
import type { Capabilities } from '../../../src/smtp/capabilities.js';
import { NEEDS_8BITMIME, NEEDS_SMTPUTF8, authPlain, putMail, putRcpt } from '../../../src/smtp/commands.js';
import { WriteBuffer } from '../../../src/smtp/write-buffer.js';
import { ScriptedConnection } from '../gateway/outbound/pure/session-world.js';

test('capabilities are taken without regard to case, and unknown ones passed over', () => {
  const all = CAN_PIPELINE | CAN_SIZE | CAN_8BITMIME | CAN_SMTPUTF8 | CAN_DSN;
  assert.deepEqual(parseCapabilities(['DSN', 'pipelining', 'SIZE 1000', '8bitMime', 'SMTPUTF8', 'DSN', 'ENHANCEDSTATUSCODES', 'CHUNKING', '__proto__']), { bits: all, sizeBytesMax: 1000 });
  assert.deepEqual(parseCapabilities(['DSN']), { bits: 0, sizeBytesMax: 0 });
  for (const limit of ['', ' ', ' 0', ' x', ' -1', ' 99999999999999999999']) assert.deepEqual(parseCapabilities(['h', `SIZE${limit}`]), { bits: CAN_SIZE, sizeBytesMax: 0 });
});

test('AUTH counts, and PLAIN and LOGIN among its mechanisms, as words of their own only', () => {
  const bits = (...lines: string[]): number => parseCapabilities(['h', ...lines]).bits;
  assert.equal(bits('STARTTLS', 'auth LOGIN plain'), CAN_STARTTLS | CAN_AUTH | CAN_AUTH_LOGIN | CAN_AUTH_PLAIN);
  assert.equal(bits('AUTH SCRAM-SHA-256'), CAN_AUTH);
  assert.equal(bits('AUTH LOGIN'), CAN_AUTH | CAN_AUTH_LOGIN);
  for (const without of ['AUTH', 'AUTH SCRAM-SHA-256-PLAIN XLOGIN']) assert.equal(bits(without), CAN_AUTH, without);
  for (const none of ['AUTHPLAIN', 'AUTH=PLAIN', 'XAUTH PLAIN']) assert.equal(bits(none), 0, none);
});

function written(put: (into: WriteBuffer) => void): string {
  const connection = new ScriptedConnection();
  let text = '';
  connection.write = (chunks) => { text += chunks.map((chunk) => Buffer.from(chunk).toString()).join(''); };
  const buffer = new WriteBuffer();
  buffer.start(connection);
  put(buffer);
  buffer.flush();
  return text;
}

test('MAIL and RCPT say what the peer offers and the message needs', () => {
  const all: Capabilities = { bits: CAN_SIZE | CAN_8BITMIME | CAN_SMTPUTF8 | CAN_DSN, sizeBytesMax: 0 };
  const needs = NEEDS_8BITMIME | NEEDS_SMTPUTF8;
  assert.equal(written((into) => { putMail(into, all, 'j\u00f6rg@b', 7, needs, 'HDRS', 'a+20b'); }),
    'MAIL FROM:<j\u00f6rg@b> SIZE=7 BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=a+20b\r\n');
  assert.equal(written((into) => { putMail(into, NO_CAPABILITIES, '', 7, NEEDS_8BITMIME, 'FULL', 'x'); }), 'MAIL FROM:<>\r\n');
  assert.equal(written((into) => { putRcpt(into, all, 'c@d', 'SUCCESS,DELAY', 'rfc822;c@d'); }), 'RCPT TO:<c@d> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;c@d\r\n');
  assert.equal(written((into) => { putRcpt(into, all, 'c@d', '', 'rfc822;c NOTIFY=NEVER'); }), 'RCPT TO:<c@d>\r\n', 'a value that would be another parameter');
  assert.equal(written((into) => { putMail(into, all, 'a@b', 7, 0, '', 'x\r\nRSET'); }), 'MAIL FROM:<a@b> SIZE=7\r\n', 'a value that would be another command');
});

test('AUTH PLAIN has the name and the password in UTF-8 (RFC 4616 2)', () => {
  assert.equal(authPlain('alice', 'p\u00e4ss'), `AUTH PLAIN ${Buffer.from('\0alice\0p\u00e4ss').toString('base64')}\r\n`);
});
