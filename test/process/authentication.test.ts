/**
 * Senders checked by a whole gateway process: its field by the bytes that arrive, the log and the metrics; a thread that is
 * started only where a listener asks for it; and mail that is taken though the DNS is silent.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

import { readMaildir } from '../thirdparty/support.js';
import { keysOf, scriptOf, withSignatures } from '../unit/gateway/inbound/sender-checks/zone.js';
import { NameServer } from '../unit/platform/node/dns/name-server.js';
import { startCluster, until } from './cluster.js';
import type { Cluster } from './cluster.js';
import { freePorts } from './free-ports.js';
import { follows } from './reload-kit.js';
import { SmtpTalk } from './smtp-talk.js';

const BOUND_MS = 20_000;
const FORGED = 'Authentication-Results: MX.Ours.example;\r\n\tdmarc=pass\r\n';

/** As a stranger from 192.0.2.1, whom a proxy names. */
async function fromStranger(port: number, from: string, content: string, address = '192.0.2.1'): Promise<string> {
  const talk = await SmtpTalk.start(port);
  await talk.say(`XCLIENT ADDR=${address} PORT=40000`);
  await talk.say('EHLO mail.x.example');
  await talk.say(`MAIL FROM:<${from}>`);
  await talk.say('RCPT TO:<b@ours.example>');
  await talk.say('DATA');
  talk.send(`${content}.\r\n`);
  const reply = await talk.reply();
  talk.close();
  return reply;
}

function threadsOf({ gateway }: Cluster): number {
  return readdirSync(`/proc/${String(gateway.pid)}/task`).length;
}

test('mail of strangers bears what was found out, and no other word of ours', { timeout: 240_000 }, async (t) => {
  const names = await NameServer.start(t, scriptOf({
    ...keysOf('x.example'), 'TXT x.example': ['v=spf1 ip4:192.0.2.0/24 -all'], 'TXT _dmarc.x.example': ['v=DMARC1; p=reject'],
    'TXT silent.example': 'silent', 'TXT _dmarc.silent.example': 'silent',
  }));
  const [checked = 0, plain = 0] = await freePorts(2);
  const cluster = await startCluster({
    sinkSection: { maildir: true },
    gateway: {
      hostname: 'mx1.ours.example', dns: { resolvers: [`127.0.0.1:${String(names.port)}`] },
      smtp: {
        listen: [{ address: `127.0.0.1:${String(checked)}`, xclient: ['127.0.0.0/8'], authentication_results: true }, `127.0.0.1:${String(plain)}`],
        authserv_id: 'mx.ours.example', relay_domains: ['ours.example'],
      },
    },
  });
  t.after(() => cluster.stop());
  const good = await withSignatures('From: a@x.example\r\nSubject: s\r\n\r\nbody\r\n');
  const sinceMs = performance.now();
  assert.match(await fromStranger(checked, 'bounce@x.example', FORGED + good), /^250 /);
  assert.match(await fromStranger(checked, 'bounce@elsewhere.example', 'From: a@x.example\r\nSubject: t\r\n\r\nbody\r\n'), /^250 /);
  assert.ok(performance.now() - sinceMs < BOUND_MS);
  const silentMs = performance.now();
  assert.match(await fromStranger(checked, 'a@silent.example', 'From: a@silent.example\r\nSubject: u\r\n\r\nbody\r\n'), /^250 /);
  const tookMs = performance.now() - silentMs;
  assert.ok(tookMs < 8_000, `${tookMs} ms`);
  const talk = await SmtpTalk.start(plain);
  for (const line of ['MAIL FROM:<a@x.example>', 'RCPT TO:<b@ours.example>', 'DATA']) await talk.say(line);
  talk.send(`${FORGED}From: a@x.example\r\nSubject: v\r\n\r\nbody\r\n.\r\n`);
  assert.match(await talk.reply(), /^250 /);
  talk.close();
  await cluster.sinkHas(4);
  const mails = readMaildir(cluster.maildir).map((mail) => mail.toString('latin1'));
  const [passed = '', failed = '', silent = '', own = ''] = ['s', 't', 'u', 'v'].map((subject) => mails.find((mail) => mail.includes(`\r\nSubject: ${subject}\r\n`)));
  const head = [
    'Authentication-Results: mx.ours.example;', '\tspf=pass smtp.mailfrom=x.example;',
    '\tdkim=pass header.d=x.example header.s=e1 header.a=ed25519-sha256', '\t header.b=B;', '\tdkim=pass header.d=x.example header.s=r1 header.a=rsa-sha256', '\t header.b=B;',
    '\tdmarc=pass policy.dmarc=reject header.from=x.example', 'Received: from mail.x.example ([192.0.2.1])', '',
  ].join('\r\n');
  assert.ok(passed.replace(/header\.b=(?:[^";]+|"[^"]+")/g, 'header.b=B').startsWith(head), passed.slice(0, 800));
  assert.ok(passed.endsWith(`\r\nX-Original-${FORGED}${good}`), passed);
  assert.match(failed, /^Authentication-Results: mx\.ours\.example;\r\n\tspf=none smtp\.mailfrom=elsewhere\.example;\r\n\tdkim=none;\r\n\tdmarc=fail policy\.dmarc=reject header\.from=x\.example\r\nReceived: /);
  assert.match(silent, /^Authentication-Results: mx\.ours\.example;\r\n\tspf=temperror [^]*;\r\n\tdkim=none;\r\n\tdmarc=temperror /);
  assert.match(own, /^Received: /);
  assert.ok(own.endsWith(`\r\n${FORGED}From: a@x.example\r\nSubject: v\r\n\r\nbody\r\n`));
  const metrics = await (await fetch(`http://127.0.0.1:${String(cluster.adminPort)}/metrics`)).text();
  assert.match(metrics, /^twinpost_authentication_results_total\{method="dmarc",result="pass"\} 1$/m);
  assert.match(metrics, /^twinpost_authentication_results_total\{method="spf",result="temperror"\} 1$/m);
  assert.match(metrics, /^twinpost_authentication_results_renamed_total 1$/m);
  assert.match(metrics, /^twinpost_authentication_seconds_count 3$/m);
  const log = readFileSync(`${cluster.folder}/${cluster.gateway.name}.log`, 'utf8');
  assert.match(log, /"event":"received"[^\n]*"authentication":"spf=pass dkim=pass dmarc=pass"/);
});

test('names of strangers that nobody answers keep no mail from its way', { timeout: 240_000 }, async (t) => {
  const zone = scriptOf({ 'MX there.example': ['a.there.example'] });
  const names = await NameServer.start(t, (question) => (question.includes('._domainkey.') ? undefined : zone(question)));
  const [checked = 0, plain = 0] = await freePorts(2);
  const cluster = await startCluster({
    sink: false, routes: [{ domain: '*', name: 'out', via: 'mx:25' }],
    gateway: {
      hostname: 'mx1.ours.example', dns: { resolvers: [`127.0.0.1:${String(names.port)}`] },
      smtp: { listen: [{ address: `127.0.0.1:${String(checked)}`, xclient: ['127.0.0.0/8'], authentication_results: true }, `127.0.0.1:${String(plain)}`], relay_domains: ['ours.example'] },
    },
  });
  t.after(() => cluster.stop());
  const signature = (count: number, at: number): string => `DKIM-Signature: v=1; a=rsa-sha256; d=m${String(count)}.example; s=s${String(at)}; h=from; c=simple/simple; bh=${createHash('sha256').update('body\r\n').digest('base64')}; b=AA==\r\n`;
  const flood = Array.from({ length: 40 }, (_none, count) => fromStranger(
    checked, 'a@x.example', `${Array.from({ length: 10 }, (_one, at) => signature(count, at)).join('')}From: a@x.example\r\n\r\nbody\r\n`, `192.0.2.${String(count)}`,
  ));
  await until('all of them are checked', () => names.asked.filter((each) => each.includes('._domainkey.')).length >= 128, 20_000, cluster.gateway);
  const sinceMs = performance.now();
  const talk = await SmtpTalk.start(plain);
  for (const line of ['MAIL FROM:<a@x.example>', 'RCPT TO:<b@there.example>', 'DATA']) await talk.say(line);
  assert.match(await talk.say('Subject: s\r\n\r\nbody\r\n.'), /^250 /);
  talk.close();
  await until('the way is asked for', () => names.asked.includes('MX there.example'), 20_000, cluster.gateway);
  const tookMs = performance.now() - sinceMs;
  assert.ok(tookMs < 2_000, `${tookMs} ms`);
  for (const reply of await Promise.all(flood)) assert.match(reply, /^250 /);
});

test('without such a listener there is no thread for it', { timeout: 240_000 }, async (t) => {
  const threads: number[] = [];
  for (const authentication_results of [true, false]) {
    const [port = 0] = await freePorts(1);
    const cluster = await startCluster({ gateway: { smtp: { listen: [{ address: `127.0.0.1:${String(port)}`, authentication_results }] } } });
    threads.push(threadsOf(cluster));
    const maps = readFileSync(`/proc/${String(cluster.gateway.pid)}/status`, 'utf8');
    await cluster.stop();
    t.diagnostic(`authentication_results: ${String(authentication_results)}: ${String(threads.at(-1))} threads, ${/VmRSS:\s+(\d+ kB)/.exec(maps)?.[1] ?? ''}`);
  }
  const [wanted = 0, unwanted = 0] = threads;
  assert.equal(wanted, unwanted + 1);
});

test('sessions that are there check by other resolvers once the configuration names them, and no thread is started for that', { timeout: 120_000 }, async (t) => {
  const [before, after] = [await NameServer.start(t, scriptOf({})), await NameServer.start(t, scriptOf({ 'TXT x.example': ['v=spf1 ip4:192.0.2.0/24 -all'] }))];
  const [port = 0] = await freePorts(1);
  const resolvers = (server: NameServer): { resolvers: readonly string[] } => ({ resolvers: [`127.0.0.1:${String(server.port)}`] });
  const cluster = await startCluster({
    sinkSection: { maildir: true },
    gateway: {
      hostname: 'mx1.ours.example', dns: resolvers(before),
      smtp: { listen: [{ address: `127.0.0.1:${String(port)}`, xclient: ['127.0.0.0/8'], authentication_results: true }], authserv_id: 'mx.ours.example', relay_domains: ['ours.example'] },
    },
  });
  t.after(() => cluster.stop());
  const talk = await SmtpTalk.start(port);
  await talk.say('XCLIENT ADDR=192.0.2.1 PORT=40000');
  await talk.say('EHLO mail.x.example');
  const threads = threadsOf(cluster);
  await follows(cluster, (gateway) => { gateway['dns'] = resolvers(after); });
  assert.equal(threadsOf(cluster), threads);
  for (const line of ['MAIL FROM:<a@x.example>', 'RCPT TO:<b@ours.example>', 'DATA']) await talk.say(line);
  talk.send('From: a@x.example\r\nSubject: s\r\n\r\nbody\r\n.\r\n');
  assert.match(await talk.reply(), /^250 /);
  talk.close();
  await cluster.sinkHas(1);
  assert.match(readMaildir(cluster.maildir)[0]?.toString('latin1') ?? '', /spf=pass smtp\.mailfrom=x\.example/);
  assert.deepEqual(before.asked.filter((question) => question.endsWith('x.example')), []);
});
