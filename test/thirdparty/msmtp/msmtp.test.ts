/** msmtp, a sendmail for people without a server, sends through Twinpost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startHarness } from '../../dialog/harness.js';
import { authenticatorOf, scramLine } from '../../dialog/people.js';
import { selfSigned } from '../../dialog/self-signed.js';
import { mustRun, readMaildir, runProgram, withMailbox } from '../support.js';

test('msmtp delivers what it reads from stdin', () =>
  withMailbox(async (cluster) => {
    const settings = ['--file=/dev/null', '--host=127.0.0.1', `--port=${cluster.smtpPort}`, '--tls=off', '--auth=off', '--from=a@client.example'];
    for (let number = 0; number < 5; number++) {
      await mustRun('msmtp', [...settings, 'b@a.example'], `Subject: ${number}\nFrom: a@client.example\n\nbody ${number}\n.dot\n`);
    }
    await cluster.sinkHas(5);
    const kept = readMaildir(cluster.maildir).map((message) => message.toString('latin1'));
    // msmtp may add headers of its own (Date, Message-ID): the rest must be as written, line ends made CRLF.
    for (const [number, message] of kept.entries()) {
      assert.ok(message.startsWith('Received: '));
      assert.ok(message.includes(`Subject: ${number}\r\nFrom: a@client.example\r\n`), message);
      assert.ok(message.endsWith(`\r\n\r\nbody ${number}\r\n.dot\r\n`), message);
    }
  }));

test('msmtp submits within STARTTLS and within TLS from the start, after AUTH, to whom it trusts', { timeout: 60_000 }, async () => {
  const people = authenticatorOf([await scramLine('alice@example.org', 'secret')]);
  const [tls, other] = [selfSigned(), selfSigned()];
  assert.ok(tls !== undefined && other !== undefined);
  for (const isTlsFirst of [false, true]) {
    const harness = await startHarness({ tls, isTlsFirst, isSubmission: true, relayNetworks: [] }, { authenticator: people });
    const submit = (mechanism: string, password: string, ca: string): ReturnType<typeof runProgram> => runProgram('msmtp', [
      '--file=/dev/null', '--host=127.0.0.1', `--port=${String(harness.inbound.port)}`, '--tls=on', `--tls-starttls=${isTlsFirst ? 'off' : 'on'}`,
      `--tls-trust-file=${ca}`, `--auth=${mechanism}`, '--user=alice@example.org', `--passwordeval=echo ${password}`, '--from=alice@example.org', 'b@example.net',
    ], 'Subject: x\n\nhello\n');
    try {
      for (const mechanism of ['plain', 'login', 'scram-sha-256']) assert.deepEqual(await submit(mechanism, 'secret', tls.certFile), { code: 0, output: '' });
      assert.match((await submit('scram-sha-256', 'guess', tls.certFile)).output, /535 5\.7\.8 /);
      assert.match((await submit('plain', 'secret', other.certFile)).output, /certificate verification failed/);
      assert.deepEqual(harness.reception.kept.map(({ content }) => content.toString('latin1').includes('with ESMTPSA id')), [true, true, true]);
    } finally {
      await harness.inbound.close(1000);
    }
  }
});
