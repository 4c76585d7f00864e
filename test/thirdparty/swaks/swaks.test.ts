/** swaks, the tester's client, sends through Twinpost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startHarness } from '../../dialog/harness.js';
import { authenticatorOf, scryptLine } from '../../dialog/people.js';
import { selfSigned } from '../../dialog/self-signed.js';

import { assertUntouched, mustRun, readMaildir, runProgram, withMailbox } from '../support.js';

const CONTENT = 'Subject: from swaks\r\nFrom: <a@client.example>\r\n\r\nline\r\n.\r\n..two dots\r\n\r\nend\r\n';

test('swaks delivers a message to two recipients, with and without pipelining', () =>
  withMailbox(async (cluster) => {
    const to = 'one@a.example,two@b.example';
    const common = ['--server', `127.0.0.1:${cluster.smtpPort}`, '--from', 'a@client.example', '--to', to, '--no-data-fixup', '--data', '-'];
    // swaks writes the final dot itself when it may not mend the data.
    const wire = CONTENT.replace(/\r\n\./g, '\r\n..') + '.';
    await mustRun('swaks', common, wire);
    await mustRun('swaks', [...common, '--pipeline'], wire);
    await cluster.sinkHas(4);
    const kept = readMaildir(cluster.maildir);
    assert.equal(kept.length, 4);
    for (const message of kept) assertUntouched(message, Buffer.from(CONTENT), 'swaks');
  }, { domains: ['a.example', 'b.example'] }));

test('swaks gets a 5xx for a message above the size limit', () =>
  withMailbox(
    async (cluster) => {
      const data = `Subject: large\n\n${`${'x'.repeat(70)}\n`.repeat(2000)}`;
      const args = ['--server', `127.0.0.1:${cluster.smtpPort}`, '--from', 'a@client.example', '--to', 'b@a.example', '--data', '-'];
      const ended = await runProgram('swaks', args, data);
      assert.notEqual(ended.code, 0);
      assert.match(ended.output, /<\*\* +55\d /);
    },
    { gateway: { smtp: { message_size_limit: '64KiB' } } },
  ));

test('swaks submits within STARTTLS and within TLS from the start, after AUTH', { timeout: 60_000 }, async () => {
  const people = authenticatorOf([await scryptLine('alice@example.org', 'secret')]);
  const tls = selfSigned();
  for (const [isTlsFirst, how] of [[false, '--tls'], [true, '--tls-on-connect']] as const) {
    const harness = await startHarness({ tls, isTlsFirst, isSubmission: true, relayNetworks: [] }, { authenticator: people });
    const settings = [
      '--server', `127.0.0.1:${String(harness.inbound.port)}`, how, '--auth-user', 'alice@example.org', '--to', 'b@example.net',
    ];
    try {
      for (const mechanism of ['PLAIN', 'LOGIN']) {
        await mustRun('swaks', [...settings, '--auth', mechanism, '--auth-password', 'secret', '--from', 'alice@example.org']);
      }
      const other = await runProgram('swaks', [...settings, '--auth', 'PLAIN', '--auth-password', 'secret', '--from', 'bob@example.org']);
      assert.match(other.output, /550 5\.7\.1 This sender address is not yours/);
      const wrong = await runProgram('swaks', [...settings, '--auth', 'PLAIN', '--auth-password', 'guess', '--from', 'alice@example.org']);
      assert.match(wrong.output, /535 5\.7\.8 /);
      assert.equal(harness.reception.kept.length, 2);
    } finally {
      await harness.inbound.close(1000);
    }
  }
});
