/**
 * Modules in a whole gateway process: whatever a module does to its thread, the gateway goes on, its client is told
 * what on_failure says, and the next message is judged again.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { HOST, startCluster, until } from './cluster.js';
import type { Cluster } from './cluster.js';
import { readMaildir } from '../thirdparty/support.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const TIMEOUT_MS = 1000;
const BOUND_MS = 30_000;
const EXAMPLE = fileURLToPath(new URL('../../configs/hooks/policy.js', import.meta.url));

/** Does what the first word of the recipient says. */
const MODULE = `
import { existsSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
const kept = [];
export async function onMessage({ recipients, content }) {
  switch (recipients[0].split('@')[0]) {
    case 'throw': throw new Error('thrown on purpose');
    case 'loop': for (;;);
    case 'wait': while (!existsSync(new URL('go', import.meta.url))); return { action: 'accept' };
    case 'never': return new Promise(() => undefined);
    case 'later': throw await new Promise((_resolve, reject) => setTimeout(reject, 10, new Error('later')));
    case 'exit': return process.exit(7);
    case 'stray': setTimeout(() => { throw new Error('stray'); }, 1); return new Promise(() => undefined);
    case 'heap': for (;;) kept.push(new Array(1000).fill(recipients));
    case 'buffers': kept.push(Buffer.alloc(60e6)); return { action: 'accept' };
    case 'nonsense': parentPort.postMessage('nonsense'); return { action: 'accept', fields: 'X-A: b' };
    case 'inject': return { action: 'accept', fields: [{ name: 'X-A', value: 'b\\r\\nBcc: c' }] };
    case 'refuse': return { action: 'refuse', text: 'no\\r\\n250 yes' };
    case 'change': content.fill(0x21); return { action: 'accept' };
    case 'talk': console.log('talking'); return { action: 'accept' };
    default: return { action: 'accept', fields: [{ name: 'X-Seen', value: String(content.length) }] };
  }
}
`;

async function send(cluster: Cluster, to: string, from = 'a@client.example'): Promise<string> {
  const talk = await SmtpTalk.start(cluster.smtpPort);
  let last = '';
  for (const line of ['MAIL FROM:<a@client.example>', `RCPT TO:<${to}@example.net>`, 'DATA', `From: ${from}\r\nSubject: x\r\n\r\nhello\r\n.`]) {
    last = await talk.say(line);
  }
  talk.close();
  return last.trimEnd();
}

async function withHooks(hooks: (folder: string) => readonly object[], body: (cluster: Cluster, folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-hooks-'));
  writeFileSync(path.join(folder, 'odd.mjs'), MODULE);
  const cluster = await startCluster({ gateway: { smtp: { hooks: hooks(folder) } }, sinkSection: { maildir: true } });
  try {
    await body(cluster, folder);
  } finally {
    await cluster.stop();
    rmSync(folder, { recursive: true });
  }
}

function hookLines(cluster: Cluster): string {
  return cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"hook"')).join('\n');
}

async function metric(cluster: Cluster, answer: string): Promise<number> {
  const text = await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/metrics`)).text();
  return Number(new RegExp(`^twinpost_hook_answers_total\\{hook="odd",answer="${answer}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}

test('a module that throws, loops, exits, is late or grows ends its thread at most, and the next message is judged', { timeout: 480_000 }, async () => {
  const hook = { timeout: `${String(TIMEOUT_MS)}ms`, heap: '32MiB' };
  await withHooks((folder) => [{ ...hook, module: path.join(folder, 'odd.mjs') }], async (cluster) => {
    const { pid } = cluster.gateway;
    for (const name of ['throw', 'later', 'loop', 'never', 'exit', 'stray', 'heap', 'nonsense', 'inject']) {
      const sinceMs = performance.now();
      assert.match(await send(cluster, name), /^451 4\.7\.1 The message can not be checked now/, `${name}: ${hookLines(cluster)}`);
      const tookMs = performance.now() - sinceMs;
      assert.ok(tookMs < BOUND_MS / 2, `${name} took ${String(tookMs)} ms`);
      // A thread that is made anew may take a while to load.
      await until(`a message is judged after ${name}`, async () => (await send(cluster, 'good')).startsWith('250 '), BOUND_MS, cluster.gateway);
    }
    assert.equal(await send(cluster, 'refuse'), '550 5.7.1 no 250 yes');
    for (const name of ['change', 'talk', 'buffers']) assert.match(await send(cluster, name), /^250 /, name);
    await until('the module that keeps buffers begins anew', () => hookLines(cluster).includes('it keeps too much memory outside its heap'), BOUND_MS);
    await until('a message is judged after that', async () => (await send(cluster, 'good')).startsWith('250 '), BOUND_MS, cluster.gateway);
    assert.ok(cluster.gateway.isRunning && cluster.gateway.pid === pid);
    const log = hookLines(cluster);
    for (const why of ['it threw: thrown on purpose', 'it took too long', 'its thread has ended with code 7', 'stray', 'Worker terminated due to reaching memory limit', 'talking']) {
      assert.ok(log.includes(why), `${why}:\n${log}`);
    }
    assert.equal(await metric(cluster, 'failed') >= 9, true);
    assert.equal(await metric(cluster, 'refuse'), 1);
  });
});

test('messages behind one that loops are judged by other threads', { timeout: 240_000 }, async () => {
  await withHooks((folder) => [{ timeout: '60s', threads: 2, module: path.join(folder, 'odd.mjs') }], async (cluster, folder) => {
    let isWaiting = true;
    const waits = send(cluster, 'wait').finally(() => { isWaiting = false; });
    for (let i = 0; i < 5; i++) assert.match(await send(cluster, 'good'), /^250 /);
    assert.equal(isWaiting, true, 'it loops still');
    writeFileSync(path.join(folder, 'go'), '');
    assert.match(await waits, /^250 /);
  });
});

test('messages behind two that loop are judged by the threads that come after theirs', { timeout: 240_000 }, async () => {
  await withHooks((folder) => [{ timeout: '3s', threads: 2, module: path.join(folder, 'odd.mjs') }], async (cluster) => {
    // Who comes then waits, is judged as soon as one of them has been made anew, or told to try later.
    const both = [send(cluster, 'loop'), send(cluster, 'loop')];
    await until('a message is judged again', async () => {
      const reply = await send(cluster, 'good');
      assert.match(reply, /^(250 |451 4\.7\.1 Too many messages wait)/);
      return reply.startsWith('250 ');
    }, BOUND_MS);
    for (const reply of await Promise.all(both)) assert.match(reply, /^451 4\.7\.1 The message can not/);
  });
});

test('on_failure: accept takes what could not be judged, and hooks are asked in their order', { timeout: 240_000 }, async () => {
  await withHooks((folder) => [
    { module: path.join(folder, 'odd.mjs'), on_failure: 'accept', timeout: '1s' }, { module: EXAMPLE, timeout: '5s' },
  ], async (cluster) => {
    assert.match(await send(cluster, 'throw'), /^250 /);
    assert.match(await send(cluster, 'throw', 'Boss <boss@EXAMPLE.com>'), /^550 5\.7\.1 You are not one of us/);
    assert.match(await send(cluster, 'good'), /^250 /);
    await cluster.sinkHas(2);
    const [first = '', second = ''] = readMaildir(cluster.maildir).map((mail) => mail.toString('latin1'));
    assert.match(first, /^Received: [^]*\+0000\r\nX-Policy: checked\r\nFrom: a@client\.example\r\n/);
    assert.match(second, /^Received: [^]*\+0000\r\nX-Seen: \d+\r\nX-Policy: checked\r\nFrom: a@client\.example\r\n/);
  });
});

test('config check loads each module, and says what is wrong with it', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-hooks-'));
  try {
    const config = path.join(folder, 'gateway.yaml');
    for (const [name, text, said] of [
      ['none.mjs', undefined, /^\/.*gateway\.yaml:1: gateway\.smtp\.hooks\[0\]\.module: expected a module with a function onMessage, found: Cannot find module /],
      ['syntax.mjs', 'export const = 1;', /onMessage, found: .*(Unexpected token|SyntaxError)/],
      ['throws.mjs', 'throw new Error("not today");', /onMessage, found: not today/],
      ['exits.mjs', 'process.exit(3);', /onMessage, found: its thread has ended with code 3/],
      ['other.mjs', 'export const onMessage = 1;', /onMessage, found: it exports no function onMessage/],
      ['good.mjs', MODULE, /^$/],
    ] as const) {
      if (text !== undefined) writeFileSync(path.join(folder, name), text);
      assert.equal(existsSync(path.join(folder, name)), text !== undefined);
      writeFileSync(config, `gateway: {id: gw-1, host: box-1, state_dir: state, secret: 0123456789abcdef0123, routes: [{domain: '*', via: 'smtp://127.0.0.1:26'}], `
        + `stores: [{id: s1, host: b, paths: [{name: A, address: '127.0.0.1:1'}]}], mirror: {replicas: 1}, smtp: {hooks: [{module: ${name}}]}}\n`);
      const checked = await twinpost(['config', 'check', '--quiet', config]);
      assert.match(checked.error, said, name);
      assert.equal(checked.code, text === MODULE ? 0 : 1, name);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
