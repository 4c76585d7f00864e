/** A Postfix that takes mail and finds later that it can't deliver it: its report comes back by the return address. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { startSink } from '../../../src/sink/sink.js';
import { startCluster, until } from '../../process/cluster.js';
import { SmtpTalk } from '../../process/smtp-talk.js';
import { startPostfix } from '../postfix.js';

test('the report of a real server is counted by what it says, and reaches the sender', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(os.tmpdir(), 'twinpost-returns-'));
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'the secret of our returns\n', { mode: 0o600 });
  const sink = await startSink({ host: '127.0.0.1', port: 0, verify: false, displacementMax: 1 });
  // Postfix needs to know the way back before the gateway has its port.
  let smtpPort = 0;
  const back = createServer((socket) => {
    const onward = connect(smtpPort, '127.0.0.1');
    for (const each of [socket, onward]) each.on('error', () => undefined);
    socket.pipe(onward).pipe(socket);
  });
  await new Promise<void>((resolve) => { back.listen(0, '127.0.0.1', resolve); });
  const settings = { transport_maps: 'inline:{{far.example=error:5.2.1 mailbox is closed}}', smtpd_reject_unlisted_recipient: 'no' };
  const postfix = await startPostfix((back.address() as AddressInfo).port, { settings });
  try {
    const routes = [
      { domain: 'far.example', via: `smtp://127.0.0.1:${String(postfix.port)}`, name: 'out', verp: { domain: 'bounces.example', secret_file: secret } },
      { domain: 'ours.example', via: `smtp://127.0.0.1:${String(sink.port)}` },
    ];
    const cluster = await startCluster({ routes });
    try {
      smtpPort = cluster.smtpPort;
      const talk = await SmtpTalk.start(cluster.smtpPort);
      for (const line of ['MAIL FROM:<anna@ours.example>', 'RCPT TO:<bob@far.example>', 'RCPT TO:<carol@far.example>']) assert.match(await talk.say(line), /^250 /, line);
      await talk.say('DATA');
      assert.match(await talk.say('Subject: x\r\n\r\nhello\r\n.'), /^250 /);
      talk.close();
      const told = (): string[] => cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"returned"'));
      await until('both have come back', () => told().length === 2 && sink.counts.messages === 2, 60_000, cluster.gateway);
      for (const name of ['bob', 'carol']) {
        const line = told().find((each) => each.includes(`"to":"${name}@far.example"`)) ?? assert.fail(`${told().join('\n')}\n${postfix.log()}`);
        assert.match(line, /"route":"out","class":"5","from":"anna@ours\.example".*"action":"failed","dsn":"5\.2\.1","reply":"mailbox is closed"/);
      }
    } finally {
      await cluster.stop();
    }
  } finally {
    await postfix.stop();
    await new Promise<void>((resolve) => { back.close(() => { resolve(); }); });
    await sink.close();
    rmSync(folder, { recursive: true });
  }
});
