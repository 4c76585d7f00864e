/** Python's smtplib sends through Twinpost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertUntouched, mustRun, readMaildir, withMailbox } from '../support.js';

/** Many messages on one connection: plain, 8-bit with BODY=8BITMIME, and an address in UTF-8. */
const SCRIPT = `
import smtplib, sys
port = int(sys.argv[1])
client = smtplib.SMTP('127.0.0.1', port, timeout=30)
client.ehlo('python.example')
for name in ('pipelining', 'size', '8bitmime', 'smtputf8', 'enhancedstatuscodes', 'dsn'):
    assert client.has_extn(name), name + ' is not offered'
for number in range(20):
    refused = client.sendmail('a@client.example', ['one@a.example', 'two@a.example'],
        b'Subject: %d\\r\\n\\r\\nhello\\r\\n.hidden\\r\\n' % number)
    assert refused == {}, refused
client.sendmail('a@client.example', 'b@a.example', b'Subject: 8\\r\\n\\r\\n\\xff\\xfe\\xe4\\r\\n', mail_options=['BODY=8BITMIME'])
client.sendmail('ä@client.example', 'ö@a.example', 'Subject: ü\\r\\n\\r\\nß\\r\\n'.encode('utf-8'), mail_options=['SMTPUTF8', 'BODY=8BITMIME'])
client.sendmail('', 'b@a.example', b'Subject: null reverse-path\\r\\n\\r\\n')
assert client.verify('b@a.example')[0] in (250, 252, 502)
assert client.noop()[0] == 250
client.quit()
`;

test('smtplib delivers plain, 8-bit and SMTPUTF8 messages', () =>
  withMailbox(async (cluster) => {
    await mustRun('python3', ['-c', SCRIPT, String(cluster.smtpPort)]);
    // Two recipients of one domain share a queue and a transaction.
    await cluster.sinkHas(23);
    const kept = readMaildir(cluster.maildir);
    const expected = [
      ...Array.from({ length: 20 }, (_none, number) => Buffer.from(`Subject: ${number}\r\n\r\nhello\r\n.hidden\r\n`)),
      Buffer.from('Subject: 8\r\n\r\n\u00ff\u00fe\u00e4\r\n', 'latin1'),
      Buffer.from('Subject: \u00fc\r\n\r\n\u00df\r\n', 'utf8'),
      Buffer.from('Subject: null reverse-path\r\n\r\n'),
    ];
    for (const content of expected) {
      const match = kept.find((message) => message.subarray(-content.length).equals(content));
      assertUntouched(match, content, JSON.stringify(content.toString('latin1', 0, 20)));
    }
    assert.equal((await cluster.sinkCounts()).recipients, 43);
  }));
