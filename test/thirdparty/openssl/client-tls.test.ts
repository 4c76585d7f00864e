/** TLS of clients, with openssl as the outside judge: which versions are taken, on which ciphers, and certificates of clients. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, test } from 'node:test';

import { startHarness } from '../../dialog/harness.js';
import { selfSigned } from '../../dialog/self-signed.js';

const [tls, mta, other] = [selfSigned('mx.test'), selfSigned('mta.example'), selfSigned('mta.example')];

/** What openssl says of a conversation in which it sends these lines, one behind the other's reply. */
function converse(port: number, args: readonly string[], lines: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    // -ign_eof: it ends when the server does. -quiet would keep what it knows of the session to itself.
    const child = execFile('openssl', ['s_client', '-connect', `127.0.0.1:${String(port)}`, '-ign_eof', '-crlf', ...args], { timeout: 20_000 }, (_error, stdout, stderr) => {
      resolve(stdout + stderr);
    });
    // A connection that was refused.
    child.stdin?.on('error', () => undefined);
    let [heard, next] = ['', 0];
    child.stdout?.on('data', (text: string) => {
      heard += text;
      if (!heard.includes('Verify return code')) return;
      // Behind STARTTLS there is no greeting to wait for.
      const replies = heard.split('\n').filter((line) => /^\d{3} /.test(line)).length + (args.includes('-starttls') ? 1 : 0);
      while (next < lines.length && next < replies) child.stdin?.write(`${lines[next++] ?? ''}\n`);
    });
  });
}

describe('openssl as a client', { timeout: 120_000 }, () => {
  for (const [how, isTlsFirst, args] of [['STARTTLS', false, ['-starttls', 'smtp', '-name', 'client.example']], ['TLS from the start', true, []]] as const) {
    test(`${how}: 1.2 and 1.3 are taken, 1.1 and 1.0 refused`, async () => {
      assert.ok(tls !== undefined);
      const { inbound } = await startHarness({ tls, isTlsFirst });
      try {
        for (const [version, name] of [['-tls1_2', 'TLSv1.2'], ['-tls1_3', 'TLSv1.3']] as const) {
          const said = await converse(inbound.port, [...args, version, '-CAfile', tls.certFile], ['EHLO client.example', 'QUIT']);
          assert.match(said, new RegExp(`New, ${name.replace('.', '\\.')}, Cipher is \\S*(GCM|CHACHA20)`), said);
          assert.match(said, /Verify return code: 0 \(ok\)/);
          assert.match(said, /^250[ -]mx\.test greets/m);
          assert.match(said, /^221 2\.0\.0 /m);
          assert.doesNotMatch(said, /^250[ -]STARTTLS/m);
        }
        for (const version of ['-tls1_1', '-tls1']) {
          // A client that is as lax as may be: the refusal is the server's.
          const said = await converse(inbound.port, [...args, version, '-cipher', 'DEFAULT@SECLEVEL=0'], []);
          assert.match(said, /alert protocol version/, said);
          assert.match(said, /Cipher is \(NONE\)/);
        }
      } finally {
        await inbound.close(1000);
      }
    });
  }

  test('a certificate of the named client makes it a relay; that of another authority, or none, does not', async () => {
    assert.ok(tls !== undefined && mta !== undefined && other !== undefined);
    const { inbound } = await startHarness({
      tls: { ...tls, clientCaFile: mta.certFile }, isTlsFirst: true, relayNetworks: [], relayCertificates: ['mta.example'],
    });
    try {
      const lines = ['EHLO mta.example', 'MAIL FROM:<a@example.org>', 'RCPT TO:<b@example.net>', 'QUIT'];
      for (const [shown, answer] of [[mta, /^250 2\.1\.5 /m], [other, /^550 5\.7\.1 Relaying denied/m], [undefined, /^550 5\.7\.1 Relaying denied/m]] as const) {
        for (const version of ['-tls1_2', '-tls1_3']) {
          const certificate = shown === undefined ? [] : ['-cert', shown.certFile, '-key', shown.keyFile];
          const said = await converse(inbound.port, [version, ...certificate], lines);
          assert.match(said, /Acceptable client certificate CA names/);
          assert.match(said, answer, said);
        }
      }
    } finally {
      await inbound.close(1000);
    }
  });
});
