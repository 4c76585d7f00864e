/** curl sends through Twinpost. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { assertUntouched, mustRun, readMaildir, withMailbox } from '../support.js';

test('curl uploads a message of a megabyte with dots', () =>
  withMailbox(async (cluster) => {
    const content = Buffer.from(`Subject: from curl\r\n\r\n${'.starts with a dot\r\nplain\r\n.\r\n'.repeat(35_000)}`);
    assert.ok(content.length > 1_000_000);
    const file = join(cluster.folder, 'message.eml');
    writeFileSync(file, content);
    const url = `smtp://127.0.0.1:${cluster.smtpPort}/curl.example`;
    const recipients = ['--mail-rcpt', 'one@a.example', '--mail-rcpt', 'two@b.example'];
    await mustRun('curl', ['--silent', '--show-error', '--url', url, '--mail-from', 'a@client.example', ...recipients, '--upload-file', file]);
    await cluster.sinkHas(2);
    for (const message of readMaildir(cluster.maildir)) assertUntouched(message, content, 'curl');
  }, { domains: ['a.example', 'b.example'] }));
