/**
 * What a real mail server in front of Twinpost has to live through, whichever it is: it relays within STARTTLS to a
 * gateway whose certificate it checks, or logs in where only users may send, within STARTTLS or with TLS first.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from '../process/cluster.js';
import type { Section } from '../process/cluster-config.js';
import { freePorts } from '../process/free-ports.js';
import { twinpost } from '../process/twinpost.js';
import { completeMessage, readMaildir, sendRaw } from './support.js';

const MAKE_CA = join(process.cwd(), 'configs', 'tls', 'make-test-ca.sh');
/** The name by which the front knows the gateway, and checks its certificate. */
const GATEWAY = 'gateway.test';
const BOUND_MS = 60_000;
const SIZE_LIMIT = 300_000;
/** A recipient whose queue takes so many messages. */
const FULL = 'user@full.example';
const QUEUE_LIMIT = 2;
/** A line of the report that a front makes. */
const REPORT = /^From: "?(Mail Delivery System|Mailer Daemon|MAILER-DAEMON@)/m;
/** Whom the gateway knows where users submit. */
const USER = 'front@relay.test';
const PASSWORD = 'correct-horse';
/** How many a front submits in one story of its login. */
const SUBMITTED = 60;

/** As whom, and how, a front submits. */
export interface Login {
  readonly user: string;
  readonly password: string;
  /** TLS before the greeting (RFC 8314); else STARTTLS. */
  readonly isTlsFirst: boolean;
}

export interface FrontOptions {
  readonly gatewayPort: number;
  /** Certificate of the authority that it trusts. */
  readonly caFile: string;
  /** Undefined: it says not who it is. */
  readonly login: Login | undefined;
}

export interface Front {
  readonly port: number;
  /** False: it does not bear that a client's next envelope goes with a final dot (RFC 2920 3.1). */
  readonly nextBehindDot?: false;
  /** Everything that it logged. */
  log(): string;
  /** Has it try what it deferred, where it would not within a second. */
  retryNow(): Promise<void>;
  stop(): Promise<void>;
}

export interface Story {
  readonly cluster: Cluster;
  readonly front: Front;
  readonly login: Login | undefined;
}

export interface StoryOptions {
  readonly start: (options: FrontOptions) => Promise<Front>;
  /** False: the front trusts another authority than the gateway's. */
  readonly isTrusted?: boolean;
  /** It meets a listener that takes mail of users alone; else one that relays for its address. */
  readonly submits?: 'starttls' | 'implicit';
  /** What it takes for its password. */
  readonly password?: string;
}

/** Runs `body` with a cluster, whose sink keeps mail, and a front before it. */
export async function withFront(options: StoryOptions, body: (story: Story) => Promise<void>): Promise<void> {
  const { start, isTrusted = true, submits, password = PASSWORD } = options;
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-front-'));
  try {
    for (const ca of ['own', 'other']) execFileSync(MAKE_CA, [join(folder, ca), GATEWAY], { stdio: 'pipe' });
    const [submissionPort = 0] = await freePorts(1);
    const smtp = { ...(await relaySection(folder)), ...(submits === undefined ? {} : await submissionSection(folder, submissionPort, submits)) };
    const cluster = await startCluster({ domains: ['a.example', 'b.example'], restRoute: { length_limit: QUEUE_LIMIT }, sinkSection: { maildir: true }, gateway: { hostname: GATEWAY, smtp } });
    try {
      const gatewayPort = submits === undefined ? cluster.smtpPort : submissionPort;
      const login = submits === undefined ? undefined : { user: USER, password, isTlsFirst: submits === 'implicit' };
      const front = await start({ gatewayPort, caFile: join(folder, isTrusted ? 'own' : 'other', 'ca.crt'), login });
      try {
        await body({ cluster, front, login });
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

/** A listener that relays for loopback, and knows who is there in relayed.example: anna and bob. */
async function relaySection(folder: string): Promise<Section> {
  const [text, recipients] = [join(folder, 'text'), join(folder, 'table')];
  writeFileSync(text, 'anna@relayed.example\nbob@relayed.example\n');
  const table = await twinpost(['table', 'build', text, recipients]);
  assert.equal(table.code, 0, table.error);
  return {
    tls: { cert: join(folder, 'own', `${GATEWAY}.crt`), key: join(folder, 'own', `${GATEWAY}.key`) },
    message_size_limit: `${SIZE_LIMIT}B`, relay_domains: ['relayed.example'], recipients,
  };
}

/** Instead, a listener for users; loopback may not relay without being one. */
async function submissionSection(folder: string, port: number, tls: string): Promise<Section> {
  const users = join(folder, 'users');
  const made = await twinpost(['user', USER, '--address', '*', '--scram'], `${PASSWORD}\n`);
  assert.equal(made.code, 0, made.error);
  writeFileSync(users, made.out, { mode: 0o600 });
  return { listen: [{ address: `${HOST}:${String(port)}`, role: 'submission', tls }], users, relay_networks: ['192.0.2.0/24'] };
}

/** Load through the front arrives once and unaltered, every bit of it by TLS, and from its user where it has one. */
export async function relaysAll({ cluster, front, login }: Story, count = login === undefined ? 300 : SUBMITTED): Promise<void> {
  const log = join(cluster.folder, 'send.log');
  const eml = [1, 10, 100, 2500].map(completeMessage);
  const { port, nextBehindDot = true } = front;
  const sent = await runSend({ host: HOST, port, nextBehindDot, count, connections: 5, eml, domains: ['a.example', 'b.example'], log });
  assert.equal(sent.accepted, count, JSON.stringify(sent));
  await cluster.sinkHas(count, BOUND_MS);
  // It delivers in parallel: no order is promised through it.
  const report = await cluster.verify(log, count);
  assert.equal(report.ok, true, JSON.stringify(report));
  assert.equal(report.arrived, count);
  // Lines of the log come a turn or more behind the mail they tell of.
  await until('the log tells of all', () => events(cluster, 'received').length >= count, BOUND_MS, cluster.gateway);
  const received = events(cluster, 'received');
  assert.equal(received.length, count);
  for (const line of received) assert.match(line, login === undefined ? /"tls":"TLSv1\.3"/ : new RegExp(`"tls":"TLSv1\\.3","user":"${login.user}"`));
}

/** Who does not know the password submits nothing: the front keeps its mail, and `words` of its log say why. */
export async function keepsWithoutPassword({ cluster, front }: Story, words: RegExp): Promise<void> {
  assert.match(await sendRaw(front.port, Buffer.from('Subject: x\r\n\r\nkept\r\n'), 'user@a.example'), /^250 /);
  await until('the front says that it was refused', () => words.test(front.log()), BOUND_MS, cluster.gateway);
  const metrics = await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/metrics`)).text();
  assert.match(metrics, /^twinpost_auth_total\{mechanism="[^"]+",result="failed"\} [1-9]/m);
  assert.deepEqual(events(cluster, 'received'), []);
  assert.equal((await cluster.sinkCounts()).messages, 0);
}

/** A message in eight bits to three recipients, one of whom is refused with 5xx: two get it, and its sender a report, which tells the `reason`. */
export async function bouncesOneOfThree({ cluster, front }: Story, reason = /550[ -]5\.1\.1/): Promise<void> {
  const content = Buffer.from('Subject: three\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\ngr\xc3\xbc\xc3\x9fe\r\n.dot\r\n', 'latin1');
  const to = ['anna@relayed.example', 'carol@relayed.example', 'bob@relayed.example'];
  assert.match(await sendRaw(front.port, content, to, ' BODY=8BITMIME'), /^250 /);
  const bounce = await bounceOf(cluster, 'carol@relayed.example');
  assert.match(bounce, reason);
  assert.doesNotMatch(bounce, /(anna|bob)@relayed\.example[^\n]*\r\n[^\r\n]*5\d\d/);
  const copies = (): string[] => events(cluster, 'delivered').filter((line) => line.includes('@relayed.example'));
  await until('both have it', () => ['anna', 'bob'].every((name) => copies().some((line) => line.includes(`"to":"${name}@`))), BOUND_MS, cluster.gateway);
  assert.equal(copies().length, 2, copies().join('\n'));
  const got = readMaildir(cluster.maildir).map((message) => message.toString('latin1')).filter((text) => text.includes('\r\nSubject: three\r\n') && !REPORT.test(text));
  assert.ok(got.length > 0);
  for (const text of got) assert.ok(text.endsWith('\r\n\r\ngr\xc3\xbc\xc3\x9fe\r\n.dot\r\n'), text);
}

/** A message beyond the gateway's limit is refused for good, and nothing of it goes on: `words` of the front's log say so. */
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
