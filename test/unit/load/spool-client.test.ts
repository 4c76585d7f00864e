import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { Sessions } from '../../../src/load/session.js';
import { SpoolClient, SpoolLost } from '../../../src/load/spool-client.js';
import type { SpoolMessage } from '../../../src/load/spool-client.js';

/** Says what `answer` tells for each line; content up to the final dot is one line 'CONTENT …'. */
async function server(t: TestContext, answer: (line: string) => string): Promise<{ port: number; lines: string[] }> {
  const lines: string[] = [];
  const listening: Server = createServer((socket) => {
    let input = '';
    let inContent = false;
    socket.on('error', () => undefined);
    socket.write('220 ready\r\n');
    socket.on('data', (data) => {
      input += data.toString('utf8');
      for (;;) {
        const end = inContent ? input.indexOf('\r\n.\r\n') : input.indexOf('\r\n');
        if (end < 0) return;
        const line = inContent ? `CONTENT ${input.slice(0, end + 2)}` : input.slice(0, end);
        input = input.slice(end + (inContent ? 5 : 2));
        inContent = line === 'DATA';
        lines.push(line);
        const reply = answer(line);
        if (reply === '') socket.destroy();
        else socket.write(reply);
      }
    });
  });
  await new Promise<void>((resolve) => { listening.listen(0, '127.0.0.1', resolve); });
  t.after(() => { listening.close(); });
  return { port: (listening.address() as AddressInfo).port, lines };
}

function to(port: number): Sessions {
  return new Sessions({ host: '127.0.0.1', port }, 'localhost', 5_000);
}

const HELLO = '250-here\r\n250-SIZE 1000000\r\n250-8BITMIME\r\n250 DSN\r\n';

function usual(line: string): string {
  if (line.startsWith('EHLO')) return HELLO;
  return line === 'DATA' ? '354 go on\r\n' : '250 ok\r\n';
}

function message(more: Partial<SpoolMessage> = {}): SpoolMessage {
  return {
    sender: 'a@client.example', recipients: [{ address: 'bob@d.example', notify: 'SUCCESS,DELAY', orcpt: 'rfc822;bob@d.example' }], ret: 'HDRS', envid: 'QQ314',
    is8bit: true, isUtf8: false, requiresTls: false, content: Buffer.from('Subject: x\r\n\r\n.dot\r\n'), ...more,
  };
}

describe('the client of a spool', () => {
  test('sends the envelope with its DSN parameters and the content dot-stuffed', async (t) => {
    const { port, lines } = await server(t, usual);
    const client = await SpoolClient.open(to(port));
    assert.deepEqual(await client.send(message()), { taken: [0], trouble: '', lost: false });
    await client.quit();
    assert.deepEqual(lines.slice(1), [
      'MAIL FROM:<a@client.example> SIZE=20 BODY=8BITMIME RET=HDRS ENVID=QQ314', 'RCPT TO:<bob@d.example> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;bob@d.example',
      'DATA', 'CONTENT Subject: x\r\n\r\n..dot\r\n', 'QUIT',
    ]);
  });

  test('leaves out what the server does not offer', async (t) => {
    const { port, lines } = await server(t, (line) => (line.startsWith('EHLO') ? '250 plain\r\n' : usual(line)));
    const client = await SpoolClient.open(to(port));
    await client.send(message({ sender: '', is8bit: false }));
    assert.deepEqual(lines.slice(1, 3), ['MAIL FROM:<>', 'RCPT TO:<bob@d.example>']);
    assert.match((await client.send(message({ is8bit: false, isUtf8: true }))).trouble, /SMTPUTF8/);
    assert.match((await client.send(message())).trouble, /8-bit content/);
    assert.equal(lines.length, 5, 'of what the server does not take nothing is sent');
    client.destroy();
  });

  test('sends what requires TLS to nobody in clear, whatever is offered there', async (t) => {
    const { port, lines } = await server(t, (line) => (line.startsWith('EHLO') ? '250-here\r\n250-8BITMIME\r\n250 REQUIRETLS\r\n' : usual(line)));
    const client = await SpoolClient.open(to(port));
    t.after(() => { client.destroy(); });
    assert.match((await client.send(message({ requiresTls: true }))).trouble, /requires TLS \(REQUIRETLS\): send it with --tls/);
    assert.deepEqual((await client.send(message())).taken, [0]);
    assert.equal(lines.filter((line) => line.startsWith('MAIL')).length, 1, 'the next message goes by the same session');
  });

  test('tells which recipients were taken, and goes on after a refusal', async (t) => {
    const { port, lines } = await server(t, (line) => (line.includes('no@') ? '550 5.1.1 unknown\r\n' : usual(line)));
    const client = await SpoolClient.open(to(port));
    const recipients = (...addresses: string[]): Partial<SpoolMessage> => ({ recipients: addresses.map((address) => ({ address, notify: undefined, orcpt: undefined })) });
    assert.deepEqual(await client.send(message(recipients('no@d', 'yes@d'))), { taken: [1], trouble: '<no@d>: 550 5.1.1 unknown', lost: false });
    assert.deepEqual(await client.send(message(recipients('no@d'))), { taken: [], trouble: '<no@d>: 550 5.1.1 unknown', lost: false });
    assert.equal(lines.at(-1), 'RSET');
    assert.deepEqual((await client.send(message(recipients('yes@d')))).taken, [0]);
    client.destroy();
  });

  test('counts nothing as taken without a 2xx to the final dot', async (t) => {
    let last = '452 4.3.1 full\r\n';
    const { port } = await server(t, (line) => (line.startsWith('CONTENT') ? last : usual(line)));
    const client = await SpoolClient.open(to(port));
    assert.deepEqual(await client.send(message()), { taken: [], trouble: '452 4.3.1 full', lost: false });
    last = '';
    const cut = await client.send(message());
    assert.deepEqual([cut.taken, cut.lost], [[], true]);
    await assert.rejects(SpoolClient.open(to(1)), SpoolLost);
  });
});
