/**
 * `twinpost send` to a whole gateway by TLS, from the first byte and by STARTTLS, and as a user: what is sent arrives
 * unaltered and in order; a server that can't be verified gets nothing, and nobody a password in clear.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import type { SendOptions, SendReport } from '../../src/load/options.js';
import { runSend } from '../../src/load/run.js';
import { selfSigned } from '../dialog/self-signed.js';
import { startCluster } from './cluster.js';
import { freePorts } from './free-ports.js';
import { twinpost } from './twinpost.js';

const [tls, other] = [selfSigned(), selfSigned()];
const needsTls = { timeout: 120_000, skip: tls === undefined || other === undefined ? 'openssl is missing' : false };

test('send by STARTTLS and by implicit TLS, as a user, in lots and from a spool', needsTls, async () => {
  assert.ok(tls !== undefined && other !== undefined);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-send-tls-'));
  const [usersFile, passwordFile, wrongFile, log, spool] =
    ['users', 'password', 'wrong', 'send.log', 'spool.json'].map((name) => path.join(folder, name)) as [string, string, string, string, string];
  writeFileSync(usersFile, (await twinpost(['user', 'alice@example.org'], 'p\u00e4ss\n')).out);
  writeFileSync(passwordFile, 'p\u00e4ss\n');
  writeFileSync(wrongFile, 'guessed');
  const [mx = 0, submission = 0] = await freePorts(2);
  const cluster = await startCluster({
    sinkSection: { verify: true },
    gateway: {
      smtp: {
        listen: [`127.0.0.1:${String(mx)}`, { address: `127.0.0.1:${String(submission)}`, role: 'submission', tls: 'implicit' }],
        tls: { cert: tls.certFile, key: tls.keyFile }, users: usersFile,
      },
    },
  });
  try {
    const at = (port: number): readonly string[] => ['--to', `127.0.0.1:${String(port)}`, '--json'];
    const trust = ['--ca', tls.certFile];
    const alice = ['--user', 'alice@example.org', '--password-file', passwordFile, '--from', 'alice@example.org'];
    const send = async (...args: readonly string[]): Promise<SendReport> =>
      JSON.parse((await twinpost(['send', ...args])).out) as SendReport;

    const many = await send(...at(mx), '--tls', 'starttls', ...trust, '--count', '3000', '--connections', '5', '--mix', '1KB:70,10KB:30,200KB:1', '--log', log);
    assert.deepEqual([many.accepted, many.connectionErrors], [3000, {}]);
    await cluster.sinkHas(3000);
    const verdict = await cluster.verify(log, 100);
    assert.equal(verdict.ok, true, JSON.stringify(verdict));

    const own = await send(...at(submission), '--tls', 'implicit', ...trust, ...alice, '--count', '20', '--no-pipelining', '--messages-per-connection', '2');
    assert.deepEqual([own.accepted, own.connectionErrors], [20, {}]);

    writeFileSync(spool, JSON.stringify({ sender: 'alice@example.org', recipients: [{ address: 'b@a.example', state: 'waiting' }] }));
    writeFileSync(spool.replace('.json', '.eml'), 'Subject: kept\n\n.dot\n');
    const resent = await twinpost(['send', '--spool', folder, ...at(submission), '--tls', 'implicit', ...trust, ...alice]);
    assert.deepEqual([resent.code, resent.out], [0, '{"sent":1,"failed":0,"nothing_to_send":0}\n'], resent.error);
    await cluster.sinkHas(3021);

    const guess = ['--user', 'alice@example.org', '--password-file', wrongFile];
    for (const [args, why] of [
      [[...at(mx), '--tls', 'starttls', '--ca', other.certFile], /^TLS: .*SELF_SIGNED|^TLS: .*self.signed/],
      [[...at(submission), '--tls', 'implicit'], /^TLS: .*self.signed/],
      [[...at(submission), '--tls', 'implicit', ...trust, ...guess], /^AUTH: 535 5\.7\.8 /],
      [[...at(mx), '--tls', 'implicit', ...trust], /^TLS: wrong version number/],
    ] as const) {
      const refused = await send(...args, '--count', '1', '--patience', '3s');
      assert.equal(refused.unfinished, 1);
      assert.match(Object.keys(refused.connectionErrors).join(), why, args.join(' '));
    }
    // Once is enough: with patience for a minute it ends at once, and has not knocked often.
    for (const [args, why] of [
      [[...at(mx), '--tls', 'starttls', '--ca', other.certFile], /self.signed/i],
      [[...at(submission), '--tls', 'implicit', ...trust, ...guess], /^AUTH: 535 5\.7\.8 /],
      [[...at(submission), '--tls', 'implicit', ...trust, ...alice, '--tls-name', 'else.test'], /ERR_TLS_CERT_ALTNAME_INVALID/],
    ] as const) {
      const begunMs = performance.now();
      const refused = await send(...args, '--count', '500', '--connections', '4', '--patience', '60s');
      assert.ok(performance.now() - begunMs < 30_000, args.join(' '));
      assert.deepEqual([refused.accepted, refused.unfinished], [0, 500]);
      const errors = Object.entries(refused.connectionErrors).filter(([error]) => why.test(error));
      const times = errors.reduce((sum, [, count]) => sum + count, 0);
      assert.ok(times >= 1 && times <= 4, JSON.stringify(refused.connectionErrors));
    }
    const named = await send(...at(submission), '--tls', 'implicit', ...trust, ...alice, '--tls-name', 'mx.test', '--count', '2');
    assert.equal(named.accepted, 2);
    await cluster.sinkHas(3023);
    assert.equal((await cluster.sinkCounts()).messages, 3023);
  } finally {
    await cluster.stop();
    rmSync(folder, { recursive: true });
  }
});

/** Says what `answer` tells for each command; tells all that was said to it. */
async function scripted(answer: (line: string, socket: Socket) => string): Promise<{ readonly port: number; readonly heard: string[]; close(): void }> {
  const heard: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('220 here\r\n');
    socket.on('data', (bytes) => {
      const line = bytes.toString('latin1');
      heard.push(line);
      socket.write(answer(line, socket));
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { port: (server.address() as AddressInfo).port, heard, close: () => { server.close(); } };
}

test('no password and no mail goes in clear, and nothing said in clear is taken for said in TLS', { timeout: 30_000 }, async () => {
  const secret: Partial<SendOptions> = { tls: 'starttls', credentials: { user: 'alice', password: 'secret' } };
  for (const [offers, toStarttls, why] of [
    ['250-here\r\n250 AUTH PLAIN\r\n', '', /^no STARTTLS is offered$/],
    ['250-here\r\n250-AUTH PLAIN\r\n250 STARTTLS\r\n', '454 4.7.0 not now\r\n', /^STARTTLS: 454 4\.7\.0 not now$/],
    ['250-here\r\n250 STARTTLS\r\n', '220 go\r\n250-injected\r\n250 AUTH PLAIN\r\n', /^more than a reply to STARTTLS$/],
    ['250-here\r\n250 STARTTLS\r\n', '220 go\r\n25', /^more than a reply to STARTTLS$/],
  ] as const) {
    const server = await scripted((line) => (line.startsWith('EHLO') ? offers : toStarttls));
    const report = await runSend({ host: '127.0.0.1', port: server.port, count: 1, patienceMs: 200, ...secret });
    server.close();
    assert.equal(report.unfinished, 1);
    assert.match(Object.keys(report.connectionErrors).join(), why);
    assert.equal(server.heard.every((line) => line === 'EHLO client.example\r\n' || line === 'STARTTLS\r\n'), true, server.heard.join());
  }
  const inClear = { host: '127.0.0.1', port: 1, count: 1, credentials: { user: 'alice', password: 'secret' } };
  await assert.rejects(async () => runSend(inClear), /a password needs TLS/);
});
