/** curl sends through Twinpost. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { startHarness } from '../../dialog/harness.js';
import { authenticatorOf, scryptLine } from '../../dialog/people.js';
import { selfSigned } from '../../dialog/self-signed.js';
import { assertUntouched, mustRun, readMaildir, runProgram, withMailbox } from '../support.js';

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

/** curl's exit codes: a certificate that it does not trust, a login that was refused. */
const UNTRUSTED = 60;
const LOGIN_DENIED = 67;

test('curl submits within STARTTLS and within TLS from the start, after AUTH, to whom it trusts', { timeout: 60_000 }, async () => {
  const people = authenticatorOf([await scryptLine('alice@example.org', 'secret')]);
  const [tls, other] = [selfSigned(), selfSigned()];
  assert.ok(tls !== undefined && other !== undefined);
  for (const [isTlsFirst, scheme] of [[false, 'smtp'], [true, 'smtps']] as const) {
    const harness = await startHarness({ tls, isTlsFirst, isSubmission: true, relayNetworks: [] }, { authenticator: people });
    const submit = (mechanism: string, password: string, ca: string): ReturnType<typeof runProgram> => runProgram('curl', [
      '--silent', '--show-error', '--ssl-reqd', '--cacert', ca, '--url', `${scheme}://127.0.0.1:${String(harness.inbound.port)}/curl.example`,
      '--user', `alice@example.org:${password}`, '--login-options', `AUTH=${mechanism}`,
      '--mail-from', 'alice@example.org', '--mail-rcpt', 'b@example.net', '--upload-file', '-',
    ], 'Subject: x\r\n\r\nhello\r\n');
    try {
      for (const mechanism of ['PLAIN', 'LOGIN']) assert.deepEqual(await submit(mechanism, 'secret', tls.certFile), { code: 0, output: '' });
      assert.equal((await submit('PLAIN', 'guess', tls.certFile)).code, LOGIN_DENIED);
      assert.equal((await submit('PLAIN', 'secret', other.certFile)).code, UNTRUSTED);
      assert.deepEqual(harness.reception.kept.map(({ content }) => content.toString('latin1').includes('with ESMTPSA id')), [true, true]);
    } finally {
      await harness.inbound.close(1000);
    }
  }
});
