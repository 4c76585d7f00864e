/**
 * What comes back, by a real gateway and a next hop of another make: each recipient of a route with `verp` gets a mail
 * under a reverse-path of his own, reports to it are counted and go on to the sender, and nobody else can make one.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { SMTPServer } from 'smtp-server';

import { ReturnAddresses } from '../../src/base/return-addresses.js';
import { HOST, startCluster, until } from './cluster.js';
import type { Cluster } from './cluster.js';
import { report } from './returned-report.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const BOUND_MS = 20_000;
const DAY_MS = 86_400_000;
const SECRET = 'the secret of our returns';

interface Arrival {
  readonly from: string;
  readonly recipients: readonly string[];
  readonly content: string;
}

/** Takes all, but who is called nobody. */
class FarHop {
  readonly arrivals: Arrival[] = [];
  readonly #server = new SMTPServer({
    authOptional: true, hideSTARTTLS: true, hideDSN: false, logger: false,
    onRcptTo: ({ address }, _session, done) => {
      if (!address.startsWith('nobody')) return done();
      done(Object.assign(new Error('5.1.1 no such user'), { responseCode: 550 }));
    },
    onData: (stream, { envelope: { mailFrom, rcptTo } }, done) => {
      let content = '';
      stream.on('data', (bytes: Buffer) => { content += bytes.toString('latin1'); });
      stream.on('end', () => {
        this.arrivals.push({ from: mailFrom === false ? '' : mailFrom.address, recipients: rcptTo.map(({ address }) => address), content });
        done();
      });
    },
  });

  async listen(): Promise<number> {
    // A connection may be cut off: no fault of the server's.
    this.#server.on('error', () => undefined);
    await new Promise<void>((resolve) => { this.#server.listen(0, HOST, resolve); });
    return (this.#server.server.address() as AddressInfo).port;
  }

  close(): Promise<void> {
    return new Promise((resolve) => { this.#server.close(resolve); });
  }

  find(recipient: string): Arrival | undefined {
    return this.arrivals.find(({ recipients }) => recipients.includes(recipient));
  }
}

interface Story {
  readonly cluster: Cluster;
  readonly hop: FarHop;
}

async function withReturns(verp: object, smtp: object, story: (world: Story) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-returned-'));
  const secret = path.join(folder, 'secret');
  writeFileSync(secret, `${SECRET}\n`, { mode: 0o600 });
  const hop = new FarHop();
  const via = `smtp://${HOST}:${String(await hop.listen())}`;
  const routes = [{ domain: 'ours.example', via, name: 'own' }, { domain: 'far.example', via, name: 'out', verp: { domain: 'bounces.example', secret_file: secret, ...verp } }];
  try {
    const cluster = await startCluster({ gateway: { smtp: { relay_domains: ['ours.example'], ...smtp } }, routes });
    try {
      await story({ cluster, hop });
    } finally {
      await cluster.stop();
    }
  } finally {
    await hop.close();
    rmSync(folder, { recursive: true });
  }
}

async function send(cluster: Cluster, from: string, recipients: readonly string[], content = 'Subject: x\r\n\r\nhello\r\n', localAddress = HOST): Promise<void> {
  const talk = await SmtpTalk.over(connect({ host: HOST, port: cluster.smtpPort, localAddress }));
  for (const line of [`MAIL FROM:<${from}>`, ...recipients.map((to) => `RCPT TO:<${to}>`)]) assert.match(await talk.say(line), /^250 /, line);
  await talk.say('DATA');
  assert.match(await talk.say(`${content}.`), /^250 2\.0\.0 /);
  talk.close();
}

async function reply(cluster: Cluster, from: string, recipient: string): Promise<string> {
  const talk = await SmtpTalk.start(cluster.smtpPort);
  await talk.say(`MAIL FROM:<${from}>`);
  const said = await talk.say(`RCPT TO:<${recipient}>`);
  talk.close();
  return said;
}

type Row = Readonly<Record<string, unknown>>;

function rows(cluster: Cluster, event: string): Row[] {
  return cluster.gateway.log().split('\n').filter((line) => line.includes(`"event":"${event}"`)).map((line) => JSON.parse(line) as Row);
}

async function logged(cluster: Cluster, event: string, fields: Row): Promise<Row> {
  const find = (): Row | undefined => rows(cluster, event).find((row) => Object.entries(fields).every(([key, value]) => row[key] === value));
  await until(`${event} ${JSON.stringify(fields)}`, () => find() !== undefined, BOUND_MS, cluster.gateway);
  return find() ?? assert.fail();
}

async function metric(cluster: Cluster, series: string): Promise<number> {
  const text = await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

function status(recipient: string, action: string, code: string, why: string): string {
  return `Reporting-MTA: dns; far.example\r\n\r\nFinal-Recipient: rfc822; ${recipient}\r\nAction: ${action}\r\nStatus: ${code}\r\nRemote-MTA: dns; mx.far.example\r\nDiagnostic-Code: smtp; ${why}\r\n`;
}

test('each recipient has a reverse-path of his own; a report to it is counted, told, and goes on to the sender', { timeout: 180_000 }, () => withReturns({}, {}, async ({ cluster, hop }) => {
  await send(cluster, 'anna@ours.example', ['bob@far.example', 'carol@far.example', 'nobody@far.example']);
  await until('all have an end', () => hop.arrivals.length === 3, BOUND_MS, cluster.gateway);
  // Two of it left alone, and the third one's report of our own went to the sender as ever.
  const [bob, carol, own] = ['bob@far.example', 'carol@far.example', 'anna@ours.example'].map((one) => hop.find(one) ?? assert.fail(one));
  assert.ok(bob !== undefined && carol !== undefined && own !== undefined);
  assert.deepEqual([bob.recipients.length, carol.recipients.length, own.from], [1, 1, '']);
  assert.match(bob.from, /^b\+[0-9a-z]{25}=ours\.example=anna@bounces\.example$/);
  assert.notEqual(bob.from, carol.from);
  const delivered = await logged(cluster, 'delivered', { to: 'bob@far.example', from: 'anna@ours.example', mail_from: bob.from });
  await logged(cluster, 'delivered', { to: 'carol@far.example', mail_from: carol.from });
  await logged(cluster, 'bounced', { to: 'nobody@far.example', from: 'anna@ours.example' });

  // An MTA on the way that writes everything in capitals reports that Bob is no more.
  const why = '550 5.1.1 bob\u0007 has gone\tfor good';
  await send(cluster, '', [bob.from.toUpperCase()], report('delivery-status', status('BOB@FAR.EXAMPLE', 'failed', '5.1.1', why)));
  const told = await logged(cluster, 'returned', { to: 'BOB@FAR.EXAMPLE' });
  const { queue_id, route, from, class: resultClass, action, dsn, reply: text, relay, final_to } = told;
  assert.deepEqual([route, String(from).toLowerCase(), resultClass, action, dsn, text, relay, final_to],
    ['out', 'anna@ours.example', '5', 'failed', '5.1.1', '550 5.1.1 bob has gone for good', 'mx.far.example', undefined]);
  assert.equal(queue_id, delivered['queue_id']);
  await until('anna has the report', () => hop.arrivals.some(({ recipients }) => recipients[0]?.toLowerCase() === 'anna@ours.example' && hop.arrivals.length === 4), BOUND_MS, cluster.gateway);
  const [, , , forwarded = assert.fail()] = hop.arrivals;
  assert.equal(forwarded.from, '');
  assert.match(forwarded.content, /Final-Recipient: rfc822; BOB@FAR\.EXAMPLE/);

  // A delay, of an address that Bob's mail went on to; and what no program can read.
  await send(cluster, '', [bob.from], report('delivery-status', status('robert@else.example', 'delayed', '4.4.1', '')));
  const delay = await logged(cluster, 'returned', { class: '4', action: 'delayed', final_to: 'robert@else.example' });
  assert.equal(delay['to'], undefined);
  await send(cluster, 'daemon@far.example', [carol.from], 'Subject: I am away\r\n\r\nuntil Monday\r\n');
  await logged(cluster, 'returned', { class: 'unknown', from: 'anna@ours.example' });
  // Bob's mail goes on to an address of ours that fails: our own report finds Anna, and is no count here.
  const ofAnna = (): number => hop.arrivals.filter(({ recipients }) => recipients.includes('anna@ours.example')).length;
  await until('anna has what carol\'s server said', () => hop.arrivals.some(({ content }) => content.includes('I am away')), BOUND_MS, cluster.gateway);
  const before = ofAnna();
  await send(cluster, bob.from, ['nobody@ours.example']);
  await until('anna has our report', () => ofAnna() === before + 1, BOUND_MS, cluster.gateway);
  assert.equal(await metric(cluster, 'twinpost_returned_total{route="out",class="5"}'), 1);
  assert.equal(await metric(cluster, 'twinpost_returned_total{route="out",class="4"}'), 1);
  assert.equal(await metric(cluster, 'twinpost_returned_total{route="out",class="unknown"}'), 1);
  assert.doesNotMatch(cluster.gateway.log(), new RegExp(SECRET));
}));

test('what was not made here, or too long ago, is refused, and so is all that goes elsewhere by it', { timeout: 180_000 }, () => withReturns({ valid_for: '3d' }, { relay_networks: ['192.0.2.0/24'] }, async ({ cluster }) => {
  const options = { route: 'out', domain: 'bounces.example', prefix: 'b', daysValid: 3, leadsBack: true };
  const made = (secret: string, daysAgo: number, sender = 'anna@ours.example'): string => new ReturnAddresses(options, [Buffer.from(secret)],
    (key, text) => createHmac('sha256', key).update(text).digest(), () => Date.now() - daysAgo * DAY_MS).written(4711, 'bob@far.example', sender);
  assert.match(await reply(cluster, '', made(SECRET, 3)), /^250 /);
  assert.match(await reply(cluster, '', made(SECRET, 4)), /^550 5\.1\.1 .*time is over/);
  assert.match(await reply(cluster, '', made('the secret of somebody', 0)), /^550 5\.1\.1 .*not made here/);
  // Whoever called himself by a victim's address must not get an open door to him.
  const victim = made(SECRET, 0, 'victim@far.example');
  assert.match(await reply(cluster, 'mallory@else.example', victim), /^550 5\.7\.1 .*reports only/);
  assert.match(await reply(cluster, '', victim), /^250 /);
  assert.match(await reply(cluster, 'daemon@far.example', made(SECRET, 0)), /^250 /);
  assert.equal(await metric(cluster, 'twinpost_rejected_total{reason="returned-no-report"}'), 1);
  assert.match(await reply(cluster, '', 'b+x@bounces.example'), /^550 5\.1\.1 .*not made here/);
  assert.match(await reply(cluster, '', 'anna@bounces.example'), /^55\d 5\.7\.1 /);
  assert.match(await reply(cluster, '', 'postmaster@bounces.example'), /^250 /);
  assert.equal(await metric(cluster, 'twinpost_rejected_total{reason="returned-forged"}'), 2);
  assert.equal(await metric(cluster, 'twinpost_rejected_total{reason="returned-stale"}'), 1);
}));

test('SPF of ours vouches for no mail of strangers, whatever leads it out: who may relay alone has return addresses', { timeout: 180_000 }, async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-strangers-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const [list, table, secret] = ['list', 'table', 'secret'].map((name) => path.join(folder, name)) as [string, string, string];
  writeFileSync(list, 'friend@ours.example to=pal@far.example\nanna@ours.example\n');
  writeFileSync(secret, 'a secret of more than sixteen\n', { mode: 0o600 });
  assert.equal((await twinpost(['table', 'build', list, table])).code, 0);
  await withReturns({ returned: 'discard' }, {
    relay_networks: [`${HOST}/32`], postmaster: 'ops@far.example', recipients: table, srs: { domain: 'fwd.example', secret_file: secret },
    feedback: { address: 'fbl@ours.example', forward_to: 'abuse-team@far.example' },
  }, async ({ cluster, hop }) => {
    const forged = 'From: CEO <ceo@ours.example>\r\n\r\npay now\r\n';
    const led = ['pal@far.example', 'ops@far.example', 'abuse-team@far.example'];
    let before = 0;
    const senders = { 'x@evil.example': /^SRS0=.*=evil\.example=x@fwd\.example$/, 'ceo@ours.example': /^ceo@ours\.example$/, 'a%b@evil.example': /^a%b@evil\.example$/ };
    for (const [sender, as] of Object.entries(senders)) {
      for (const to of ['friend@ours.example', 'postmaster@ours.example', 'FBL@ours.example']) await send(cluster, sender, [to], forged, '127.0.0.9');
      const here = (): readonly Arrival[] => hop.arrivals.slice(before);
      await until('all three are there', () => here().length === 3, BOUND_MS, cluster.gateway);
      assert.deepEqual(here().flatMap(({ recipients }) => recipients).sort(), [...led].sort());
      for (const { from } of here()) assert.match(from, as);
      before = hop.arrivals.length;
    }

    // A client of ours: what it sends itself has one, what an alias leads out of it has none.
    await send(cluster, 'x@evil.example', ['bob@far.example', 'friend@ours.example', 'carol@far.example'], forged);
    await until('each has it alone', () => hop.arrivals.length === before + 3, BOUND_MS, cluster.gateway);
    const last = (to: string): string => hop.arrivals.slice(before).find(({ recipients: [only, ...others] }) => only === to && others.length === 0)?.from ?? '';
    assert.match(last('bob@far.example'), /^b\+[0-9a-z]{25}@bounces\.example$/);
    assert.match(last('carol@far.example'), /^b\+[0-9a-z]{25}@bounces\.example$/);
    assert.match(last('pal@far.example'), senders['x@evil.example']);
    await logged(cluster, 'delivered', { to: 'pal@far.example', mail_from: last('pal@far.example') });
    await logged(cluster, 'delivered', { to: 'carol@far.example', mail_from: last('carol@far.example') });
  });
});

test('discarded reports are counted and go nowhere; feedback is true when it brings a return address of ours', { timeout: 180_000 }, () => withReturns({ returned: 'discard', prefix: 'news' }, {
  feedback: { address: 'fbl@ours.example', forward_to: 'abuse-team@ours.example' }, relay_networks: ['127.0.0.0/8'],
}, async ({ cluster, hop }) => {
  await send(cluster, `${'long'.repeat(16)}@${'domain.'.repeat(8)}example`, ['bob@far.example']);
  await until('bob has it', () => hop.arrivals.length === 1, BOUND_MS, cluster.gateway);
  const { from } = hop.find('bob@far.example') ?? assert.fail();
  assert.match(from, /^news\+[0-9a-z]{25}@bounces\.example$/);
  await send(cluster, '', [from], report('delivery-status', status('bob@far.example', 'failed', '5.2.2', '552 full')));
  const { queue_id } = await logged(cluster, 'returned', { to: 'bob@far.example', dsn: '5.2.2', reply: '552 full' });
  assert.equal((await logged(cluster, 'received', { to: from }))['queue'], '');
  await send(cluster, from, ['nobody@ours.example']);
  await logged(cluster, 'removed', { from, reason: 'reverse-path of ours that leads to nobody: the report has nowhere to go' });

  const machine = 'Feedback-Type: abuse\r\nUser-Agent: FarReports/1.0\r\nVersion: 1\r\nSource-IP: 192.0.2.1\r\nArrival-Date: Thu, 8 Mar 2035 14:00:00 -0500\r\nOriginal-Rcpt-To: <bob@far.example>\r\n';
  await send(cluster, 'fbl@far.example', ['FBL@ours.example'], report('feedback-report', machine, `Return-Path: <${from}>\r\nSubject: x\r\n`));
  const feedback = await logged(cluster, 'feedback', { verified: 'yes' });
  assert.deepEqual([feedback['type'], feedback['queue_id'], feedback['route'], feedback['to'], feedback['user_agent'], feedback['source_ip']],
    ['abuse', queue_id, 'out', 'bob@far.example', 'FarReports/1.0', '192.0.2.1']);
  await send(cluster, 'fbl@far.example', ['fbl@ours.example'], report('feedback-report', `${machine}Original-Mail-From: <news+aaaaaaaaaaaaaaaaaaaaaaaaa@bounces.example>\r\n`));
  await logged(cluster, 'feedback', { verified: 'no', type: 'abuse' });
  await until('the team has both', () => hop.arrivals.length === 3, BOUND_MS, cluster.gateway);
  assert.deepEqual(hop.arrivals.slice(1).map(({ recipients }) => recipients), [['abuse-team@ours.example'], ['abuse-team@ours.example']]);
  assert.equal(await metric(cluster, 'twinpost_feedback_total{type="abuse",verified="yes",route="out"}'), 1);
  assert.equal(await metric(cluster, 'twinpost_feedback_total{type="abuse",verified="no",route=""}'), 1);
}));
