/** What of a client's command others may see. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownCommand } from '../../../src/smtp/session-tap.js';

test('commands are shown as they are, but for what may be a password', () => {
  for (const open of ['EHLO box.example', 'mail FROM:<a@b.example> SIZE=1', 'RCPT TO:<x@y.example>', 'DATA', 'BDAT 12 LAST', 'QUIT', 'STARTTLS', 'Noop']) assert.equal(shownCommand(open), open);
  for (const [said, shown] of [
    ['AUTH PLAIN AGFubgBzZWNyZXQ=', 'AUTH PLAIN ***'], ['auth  login YW5u', 'AUTH login ***'], ['AUTH', 'AUTH ***'], ['AUTH scram-sha-256-plus biws', 'AUTH scram-sha-256-plus ***'], ['AUTH XOAUTH2', 'AUTH XOAUTH2 ***'],
    ['AGFubgBzZWNyZXQ=', '(16 characters that are no command)'], ['AUTHORIZE secret', 'AUTH ***'], ['AUTH hunter2', 'AUTH ***'], ['AUTH PLAINsecret', 'AUTH ***'], ['AUTH AGFubgBzZWNyZXQ=', 'AUTH ***'], ['DATAsecret', '(10 characters that are no command)'],
    ['', '(0 characters that are no command)'],
  ] as const) assert.equal(shownCommand(said), shown);
});
