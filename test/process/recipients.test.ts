/**
 * Recipients by whole gateway processes: `twinpost table` makes and asks a table, two workers refuse who is not in it, send
 * each where it says, and notice a new one while mail comes in.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const BOUND_MS = 20_000;
/** Connections that meet both workers, but for one time in a million. */
const IN_A_ROW = 20;

async function build(folder: string, lines: readonly string[]): Promise<string> {
  const [text, file] = [path.join(folder, 'text'), path.join(folder, 'table')];
  writeFileSync(text, lines.map((line) => `${line}\n`).join(''));
  const built = await twinpost(['table', 'build', text, file]);
  assert.equal(built.code, 0, built.error);
  assert.match(built.out, new RegExp(`^.*table: ${lines.length.toLocaleString('en')} addresses, .* aliases, .* routes, .*\n$`));
  return file;
}

test('a table decides in every worker, is replaced under load without a refusal, and names next hops', { timeout: 360_000 }, async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-recipients-'));
  const others = Array.from({ length: 20_000 }, (_none, i) => `user${String(i)}@relayed.example`);
  const file = await build(folder, ['anna@relayed.example', 'bob@relayed.example route=away', '@load.example', ...others]);
  const cluster = await startCluster({
    workers: 2,
    gateway: { memory: { limit: '1GiB' }, smtp: { relay_domains: ['relayed.example', 'load.example'], recipients: file } },
    routes: [{ via: `smtp://${HOST}:1`, name: 'away' }],
  });
  try {
    const reply = async (address: string, more: readonly string[] = []): Promise<string> => {
      const talk = await SmtpTalk.start(cluster.smtpPort);
      let last = '';
      for (const line of ['MAIL FROM:<a@client.example>', `RCPT TO:<${address}>`, ...more]) last = await talk.say(line);
      talk.close();
      return last;
    };
    // By several connections: both workers answer.
    for (let i = 0; i < 10; i++) {
      assert.match(await reply('Anna@relayed.example'), /^250 /);
      assert.match(await reply('bob@relayed.example'), /^250 /, 'by a route that has no domain');
      assert.match(await reply('carol@relayed.example'), /^550 5\.1\.1 /);
      assert.match(await reply('postmaster@relayed.example'), /^250 /);
    }
    const load = runSend({ host: HOST, port: cluster.smtpPort, count: 6000, rate: 500, resend: false, connections: 8, domains: ['load.example'] });
    await build(folder, ['carol@relayed.example to=anna@relayed.example,x@else.example', 'anna@relayed.example', '@load.example', ...others]);
    await until('both workers have the new table', async () => {
      for (let i = 0; i < IN_A_ROW; i++) if (!(await reply('carol@relayed.example')).startsWith('250 ')) return false;
      return true;
    }, BOUND_MS, cluster.gateway);
    assert.match(await reply('bob@relayed.example'), /^550 5\.1\.1 /);
    const sent = await load;
    assert.deepEqual([sent.accepted, sent.replies], [6000, { 250: 6000 }], JSON.stringify(sent));
    assert.match(await reply('carol@relayed.example', ['DATA', 'Subject: x\r\n\r\nhello\r\n.']), /^250 2\.0\.0 /);
    // One message to two, who stand in one queue.
    await cluster.sinkHas(6001);
  } finally {
    await cluster.stop();
    rmSync(folder, { recursive: true });
  }
});

test('who is there may be asked for by HTTP: kept for its time, and nobody is refused while nobody answers', { timeout: 180_000 }, async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-recipients-'));
  const asked: string[] = [];
  let isAway = false;
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (bytes: Buffer) => { body += bytes.toString(); });
    request.on('end', () => {
      const { address } = JSON.parse(body) as { readonly address: string };
      asked.push(`${String(request.headers.authorization)} ${address}`);
      const said: Record<string, string> = { 'anna@relayed.example': '{}', 'team@relayed.example': '{"to": ["anna@relayed.example", "x@else.example"]}' };
      response.writeHead(isAway ? 503 : said[address] === undefined ? 404 : 200).end(said[address]);
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, HOST, resolve); });
  const token = path.join(folder, 'token');
  writeFileSync(token, 'letmein\n', { mode: 0o600 });
  const http = `http://${HOST}:${String((server.address() as AddressInfo).port)}/recipients`;
  const cluster = await startCluster({ gateway: { smtp: { relay_domains: ['relayed.example'], recipients: { http, token_file: token, timeout: '2s' } } } });
  try {
    const talk = await SmtpTalk.start(cluster.smtpPort);
    await talk.say('MAIL FROM:<a@client.example>');
    for (const [address, reply] of [
      ['Anna@Relayed.example', /^250 /], ['carol@relayed.example', /^550 5\.1\.1 /], ['x@else.example', /^250 /], ['team@relayed.example', /^250 /],
    ] as const) assert.match(await talk.say(`RCPT TO:<${address}>`), reply, address);
    assert.deepEqual(asked, ['anna', 'carol', 'team'].map((name) => `Bearer letmein ${name}@relayed.example`));
    isAway = true;
    assert.match(await talk.say('RCPT TO:<anna@relayed.example>'), /^250 /);
    assert.match(await talk.say('RCPT TO:<dora@relayed.example>'), /^451 4\.4\.3 /);
    await talk.say('DATA');
    assert.match(await talk.say('Subject: x\r\n\r\nhello\r\n.'), /^250 2\.0\.0 /);
    talk.close();
    await cluster.sinkHas(1);
  } finally {
    await cluster.stop();
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  }
});

test('twinpost table tells what a table says, and what is wrong in one line', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-recipients-'));
  try {
    const file = await build(folder, ['anna@relayed.example', 'bob@relayed.example route=away', 'team@relayed.example to=anna@relayed.example,b@c.example', '@other.example']);
    for (const [address, said, code] of [
      ['Anna@Relayed.example', 'goes where its domain leads', 0], ['bob@relayed.example', 'goes by route away', 0],
      ['team@relayed.example', 'goes to anna@relayed.example, b@c.example', 0], ['x@other.example', 'goes where its domain leads (by @other.example)', 0],
      ['nobody@relayed.example', 'not there', 1],
      ['Postmaster@relayed.example', 'not there; but at a relay domain it is taken whatever a table says: it goes to smtp.postmaster, else where its domain leads', 1],
    ] as const) {
      const found = await twinpost(['table', 'find', file, address]);
      assert.deepEqual([found.out, found.code], [`${address}: ${said}\n`, code]);
    }
    const json = JSON.parse((await twinpost(['table', 'find', file, 'bob@relayed.example', '--json'])).out) as unknown;
    assert.deepEqual(json, { address: 'bob@relayed.example', found: true, by: 'bob@relayed.example', route: 'away', to: [] });
    chmodSync(file, 0o604);
    await build(folder, ['anna@relayed.example']);
    assert.equal(statSync(file).mode & 0o777, 0o604, 'whoever could read the old one can read the new one');
    const wrong = path.join(folder, 'wrong');
    writeFileSync(wrong, `a@b.example\n${'nonsense\n'.repeat(25)}a@b.example x\n`);
    const { code, error: all } = await twinpost(['table', 'build', wrong, file]);
    const said = all.trimEnd().split('\n');
    assert.deepEqual([code, said.length], [1, 21]);
    assert.match(said[19] ?? '', /wrong: line 21: expected an address, found 'nonsense': /);
    assert.match(said[20] ?? '', /wrong: 6 more lines are wrong$/);
    writeFileSync(path.join(folder, 'text'), 'a@b.example\nnonsense\n');
    for (const [args, error] of [
      [['build', path.join(folder, 'text'), file], /^twinpost: table: .*text: line 2: expected an address, found 'nonsense': /],
      [['build', path.join(folder, 'none'), file], /^twinpost: table: ENOENT/],
      [['find', path.join(folder, 'text'), 'a@b.example'], /^twinpost: table: '.*text': (it is no table; twinpost table build makes one|it is cut off)/],
      [['find', file, 'nonsense'], /^twinpost: table: 'nonsense' is no address/],
    ] as const) {
      const ended = await twinpost(['table', ...args]);
      assert.equal(ended.code, /is no address/.test(ended.error) ? 2 : 1);
      assert.match(ended.error, error);
      assert.equal(ended.error.trimEnd().split('\n').length, 1, ended.error);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('twinpost table build warns of aliases that lead nowhere, and makes the table all the same', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-recipients-'));
  try {
    const [text, file] = [path.join(folder, 'text'), path.join(folder, 'table')];
    writeFileSync(text, [
      '# people', 'anna@x.example', 'bob@x.example route=boxes', '@whole.example',
      'good@x.example to=Anna@X.example,any@whole.example,foreign@else.example', 'own@x.example to=own@x.example',
      'gone@x.example to=anna@x.example,nobody@x.example', 'team@x.example to=gone@x.example',
      'one@x.example to=two@x.example', 'two@x.example to=one@x.example', 'saved@x.example to=saved2@x.example,bob@x.example', 'saved2@x.example to=saved@x.example',
      'root@x.example to=postmaster@x.example', 'postmaster@x.example to=root@x.example', 'spam@x.example to=Abuse@x.example', 'half@x.example to=abuse@x.example,nowhere@x.example',
    ].join('\n'));
    const built = await twinpost(['table', 'build', text, file]);
    assert.equal(built.code, 0, built.error);
    assert.match(built.out, /: 15 addresses, 12 aliases, 1 routes, /);
    const lines = built.error.trimEnd().split('\n');
    assert.equal(lines.length, 5, built.error);
    for (const [index, expected] of [
      /text: line 7: warning: 'gone@x\.example' leads nowhere: 'nobody@x\.example' is not in the table, and there is no line '@x\.example'$/,
      /text: line 8: warning: 'team@x\.example' leads nowhere: its aliases go in a circle, .* or end in one that leads nowhere$/,
      /text: line 9: warning: 'one@x\.example' leads nowhere: its aliases go in a circle/, /text: line 10: warning: 'two@x\.example' leads nowhere: its aliases go in a circle/,
      /text: line 16: warning: 'half@x\.example' leads nowhere: 'nowhere@x\.example' is not in the table/,
    ].entries()) assert.match(lines[index] ?? '', expected);
    const { warnings, nowhere } = JSON.parse((await twinpost(['table', 'build', text, file, '--json'])).out) as { warnings: string[]; nowhere: number };
    assert.deepEqual([warnings.length, nowhere], [5, 5]);
    assert.equal((await twinpost(['table', 'find', file, 'gone@x.example'])).code, 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
