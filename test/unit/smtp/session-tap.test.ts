/** What of a client's command others may see. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownCommand } from '../../../src/smtp/session-tap.js';

test('commands are shown as they are, but for what may be a password', () => {
  for (const open of ['EHLO box.example', 'mail FROM:<a@b.example> SIZE=1', 'RCPT TO:<x@y.example>', 'DATA', 'BDAT 12 LAST', 'QUIT', 'STARTTLS', 'Noop']) assert.equal(shownCommand(open), open);
  for (const [said, shown] of [
    ['AUTH PLAIN AGFubgBzZWNyZXQ=', 'AUTH PLAIN ***'], ['auth  login YW5u', 'AUTH login ***'], ['AUTH', 'AUTH  ***'],
    ['AGFubgBzZWNyZXQ=', '(16 characters that are no command)'], ['AUTHORIZE secret', 'AUTH  ***'], ['DATAsecret', '(10 characters that are no command)'],
    ['', '(0 characters that are no command)'],
  ] as const) assert.equal(shownCommand(said), shown);
});
