/**
 * Options of a process hold also what is secret (config/build.ts): it stands in no log, no page of the admin HTTP, no
 * metric and no output of a verb, while what asks with it works, and while it does not.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { HOST, startCluster, until } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const BOUND_MS = 20_000;
const WORDS = { token: 'word-of-recipients-1', password: 'word-of-rspamd-22', srs: 'word-of-rewriting-333' };
const PAGES = ['/api/v1/status', '/api/v1/table', '/api/v1/queues', '/metrics', '/readyz', '/'];

test('secrets that options carry are printed nowhere', { timeout: 240_000 }, async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-secrets-'));
  const fileOf = (name: keyof typeof WORDS): string => {
    const file = path.join(folder, name);
    writeFileSync(file, `${WORDS[name]}\n`, { mode: 0o600 });
    return file;
  };
  const seen = new Set<string>();
  let isAway = false;
  const server = createServer((request, response) => {
    for (const field of ['authorization', 'password']) {
      const said = request.headers[field];
      if (typeof said === 'string') seen.add(said);
    }
    request.resume();
    const answer = request.url === '/recipients' ? '{}' : '{"action": "no action"}';
    request.on('end', () => { response.writeHead(isAway ? 503 : 200).end(answer); });
  });
  await new Promise<void>((resolve) => { server.listen(0, HOST, resolve); });
  const http = `http://${HOST}:${String((server.address() as AddressInfo).port)}`;
  const smtp = {
    relay_domains: ['relayed.example'],
    recipients: { http: `${http}/recipients`, token_file: fileOf('token'), cache: '1s', cache_missing: '1s', timeout: '2s' },
    hooks: [{ rspamd: http, password_file: fileOf('password'), timeout: '2s' }],
    srs: { domain: 'relayed.example', secret_file: fileOf('srs') },
  };
  const cluster = await startCluster({ gateway: { smtp, log: { level: 'debug' } } });
  const texts: string[] = [];
  try {
    const send = async (to: string): Promise<string> => {
      const talk = await SmtpTalk.start(cluster.smtpPort);
      await talk.say('MAIL FROM:<a@client.example>');
      let reply = await talk.say(`RCPT TO:<${to}>`);
      texts.push(reply);
      if (reply.startsWith('250 ') && (await talk.say('DATA')).startsWith('354 ')) reply = await talk.say('Subject: x\r\n\r\nhello\r\n.');
      talk.close();
      texts.push(reply);
      return reply;
    };
    assert.match(await send('anna@relayed.example'), /^250 2\.0\.0 /);
    assert.deepEqual([...seen].sort(), [`Bearer ${WORDS.token}`, WORDS.password], 'both are asked with their secrets');
    isAway = true;
    assert.match(await send('bob@relayed.example'), /^451 4\.4\.3 /);
    assert.match(await send('x@else.example'), /^451 /);
    await until('both failures are logged', () => Promise.resolve(['recipients', 'rspamd'].every((word) => cluster.gateway.log().includes(word))), BOUND_MS, cluster.gateway);
    for (const page of PAGES) texts.push(await (await fetch(`http://${HOST}:${String(cluster.adminPort)}${page}`)).text());
    const check = await twinpost(['config', 'check', path.join(cluster.folder, 'gateway.yaml')]);
    assert.equal(check.code, 0, check.error);
    assert.match(check.out, /^ {2}secret: \(hidden\)$/m);
    texts.push(check.out, check.error);
    assert.equal(await cluster.gateway.stop(), 0);
    texts.push(cluster.gateway.log(), ...cluster.stores.map((store) => store.log()));
    const all = texts.join('\n');
    for (const word of [...Object.values(WORDS), 'a secret that only this test knows']) assert.ok(!all.includes(word), `${word} is printed`);
  } finally {
    await cluster.stop();
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  }
});
