/**
 * What a real mail server in front of Twinpost has to live through, whichever it is: it submits within STARTTLS to a
 * gateway whose certificate it checks.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { runSend } from '../../src/load/run.js';
import { startCluster, until, type Cluster } from '../process/cluster.js';
import { twinpost } from '../process/twinpost.js';
import { readMaildir, sendRaw } from './support.js';

const MAKE_CA = join(process.cwd(), 'configs', 'tls', 'make-test-ca.sh');
/** The name by which the front knows the gateway, and checks its certificate. */
const GATEWAY = 'gateway.test';
const BOUND_MS = 60_000;
const SIZE_LIMIT = 300_000;
/** A recipient whose queue takes so many messages. */
const FULL = 'user@full.example';
const QUEUE_LIMIT = 2;
/** A line of the report that a front makes. */
const REPORT = /^From: "?(Mail Delivery System|Mailer Daemon)/m;
/** With all fields that a server might miss, and add. */
const COMPLETE_HEADER = ['From: <load@client.example>', 'To: <user@a.example>', 'Subject: load', 'Date: Thu, 01 Jan 2026 00:00:00 +0000', 'Message-ID: <1@client.example>', ''].join('\r\n');

export interface FrontOptions {
  readonly gatewayPort: number;
  /** Certificate of the authority that it trusts. */
  readonly caFile: string;
}

export interface Front {
  readonly port: number;
  /** Everything that it logged. */
  log(): string;
  /** Has it try what it deferred, where it would not within a second. */
  retryNow(): Promise<void>;
  stop(): Promise<void>;
}

export interface Story {
  readonly cluster: Cluster;
  readonly front: Front;
}

export interface StoryOptions {
  readonly start: (options: FrontOptions) => Promise<Front>;
  /** False: the front trusts another authority than the gateway's. */
  readonly isTrusted?: boolean;
}

/** Runs `body` with a cluster, whose sink keeps mail, and a front before it. */
export async function withFront({ start, isTrusted = true }: StoryOptions, body: (story: Story) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-front-'));
  const at = (...path: string[]): string => join(folder, ...path);
  try {
    for (const ca of ['own', 'other']) execFileSync(MAKE_CA, [at(ca), GATEWAY], { stdio: 'pipe' });
    // carol@relayed.example is nobody.
    writeFileSync(at('text'), 'anna@relayed.example\nbob@relayed.example\n');
    const table = await twinpost(['table', 'build', at('text'), at('table')]);
    assert.equal(table.code, 0, table.error);
    const smtp = {
      tls: { cert: at('own', `${GATEWAY}.crt`), key: at('own', `${GATEWAY}.key`) },
      message_size_limit: `${SIZE_LIMIT}B`, relay_domains: ['relayed.example'], recipients: at('table'),
    };
    const cluster = await startCluster({ domains: ['a.example', 'b.example'], restRoute: { length_limit: QUEUE_LIMIT }, sinkSection: { maildir: true }, gateway: { hostname: GATEWAY, smtp } });
    try {
      const front = await start({ gatewayPort: cluster.smtpPort, caFile: at(isTrusted ? 'own' : 'other', 'ca.crt') });
      try {
        await body({ cluster, front });
      } catch (error) {
        throw new Error(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n${front.log().slice(-6000)}`, { cause: error });
      } finally {
        await front.stop();
      }
    } finally {
      await cluster.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Load through the front arrives once and unaltered, every bit of it by TLS. */
export async function relaysAll({ cluster, front }: Story, count = 300): Promise<void> {
  const log = join(cluster.folder, 'send.log');
  const eml = [1, 10, 100, 2500].map((lines) => Buffer.from(`${COMPLETE_HEADER}\r\n${'.a line with a dot in front, and more\r\n'.repeat(lines)}`));
  const sent = await runSend({ host: '127.0.0.1', port: front.port, count, connections: 5, eml, domains: ['a.example', 'b.example'], log });
  assert.equal(sent.accepted, count, JSON.stringify(sent));
  await cluster.sinkHas(count, BOUND_MS);
  // It delivers in parallel: no order is promised through it.
  const report = await cluster.verify(log, count);
  assert.equal(report.ok, true, JSON.stringify(report));
  assert.equal(report.arrived, count);
  const received = events(cluster, 'received');
  assert.equal(received.length, count);
  for (const line of received) assert.match(line, /"tls":"TLSv1\.3"/);
}

/** A message in eight bits to three recipients, one of whom is refused with 5xx: two get it, and its sender a report. */
export async function bouncesOneOfThree({ cluster, front }: Story): Promise<void> {
  const content = Buffer.from('Subject: three\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\ngr\xc3\xbc\xc3\x9fe\r\n.dot\r\n', 'latin1');
  const to = ['anna@relayed.example', 'carol@relayed.example', 'bob@relayed.example'];
  assert.match(await sendRaw(front.port, content, to, ' BODY=8BITMIME'), /^250 /);
  const bounce = await bounceOf(cluster, 'carol@relayed.example');
  assert.match(bounce, /550[ -]5\.1\.1/);
  assert.doesNotMatch(bounce, /(anna|bob)@relayed\.example[^\n]*\r\n[^\r\n]*5\d\d/);
  const copies = (): string[] => events(cluster, 'delivered').filter((line) => line.includes('@relayed.example'));
  await until('both have it', () => ['anna', 'bob'].every((name) => copies().some((line) => line.includes(`"to":"${name}@`))), BOUND_MS, cluster.gateway);
  assert.equal(copies().length, 2, copies().join('\n'));
  const got = readMaildir(cluster.maildir).map((message) => message.toString('latin1')).filter((text) => text.includes('\r\nSubject: three\r\n') && !REPORT.test(text));
  assert.ok(got.length > 0);
  for (const text of got) assert.ok(text.endsWith('\r\n\r\ngr\xc3\xbc\xc3\x9fe\r\n.dot\r\n'), text);
}

/** A message beyond the gateway's limit is refused for good, before a byte of it was taken: `words` of the front's log say so. */
export async function failsTooLarge({ cluster, front }: Story, words: RegExp): Promise<void> {
  const before = events(cluster, 'received').length;
  const content = Buffer.from(`Subject: large\r\n\r\n${`${'x'.repeat(70)}\r\n`.repeat(SIZE_LIMIT / 70)}`);
  assert.match(await sendRaw(front.port, content, 'large@a.example'), /^250 /);
  await until('the front gives up', () => words.test(front.log()), BOUND_MS, cluster.gateway);
  assert.ok(events(cluster, 'received').slice(before).every((line) => !line.includes('large@a.example')));
}

/** While a queue is full the gateway answers 4xx: the front keeps the mail, and delivers it when there is room. */
export async function defersWhileFull({ cluster, front }: Story, count = 6): Promise<void> {
  await cluster.sink.stop();
  for (let i = 0; i < count; i++) assert.match(await sendRaw(front.port, Buffer.from(`Subject: ${String(i)}\r\n\r\nkept\r\n`), FULL), /^250 /);
  await until('the gateway has refused all but two for now', () => {
    const refused = events(cluster, 'rejected').filter((line) => line.includes('"reply":"452'));
    return refused.length >= count - QUEUE_LIMIT;
  }, BOUND_MS, cluster.gateway);
  assert.equal(events(cluster, 'received').length, QUEUE_LIMIT);
  cluster.sink.start();
  await cluster.sink.ready();
  await until('all has come', async () => {
    await front.retryNow();
    return (await cluster.sinkCounts()).messages >= count;
  }, BOUND_MS, cluster.gateway);
  const subjects = readMaildir(cluster.maildir).map((message) => /^Subject: (\d+)\r$/m.exec(message.toString('latin1'))?.[1]);
  assert.deepEqual(subjects.sort(), Array.from({ length: count }, (_none, i) => String(i)));
}

/** A gateway whose certificate another authority made gets no mail. */
export async function refusesTheCertificate({ cluster, front }: Story, words: RegExp): Promise<void> {
  assert.match(await sendRaw(front.port, Buffer.from('Subject: x\r\n\r\nkept\r\n'), 'user@a.example'), /^250 /);
  await until('the front says what it does not trust', () => words.test(front.log()), BOUND_MS, cluster.gateway);
  assert.deepEqual(events(cluster, 'received'), []);
}

/** What the sender is told about `address`: it goes through the gateway, too. */
async function bounceOf(cluster: Cluster, address: string): Promise<string> {
  let found: string | undefined;
  await until(`the report about ${address}`, () => {
    const texts = readMaildir(cluster.maildir).map((message) => message.toString('latin1'));
    found = texts.find((text) => REPORT.test(text) && text.includes(address));
    return found !== undefined;
  }, BOUND_MS, cluster.gateway);
  return found ?? '';
}

function events(cluster: Cluster, name: string): string[] {
  return cluster.gateway.log().split('\n').filter((line) => line.includes(`"event":"${name}"`));
}
