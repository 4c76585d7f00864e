/** msmtp, a sendmail for people without a server, sends through Twinpost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mustRun, readMaildir, withMailbox } from '../support.js';

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
