/**
 * Names and addresses that a gateway goes by, changed while it runs: its host name, reverse-paths of its own making, where
 * feedback loops send to, and when a delay is told. What is made is known at once in all sessions; what waits leaves by it.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { describe, test, type TestContext } from 'node:test';

import { ScriptedServer, type Accepted } from '../unit/gateway/outbound/scripted-server.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { edit, follows, reload, type Part } from './reload-kit.js';
import { report } from './returned-report.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const BOUND_MS = 20_000;
const MAIL = 'Subject: x\r\n\r\nhello\r\n';
const OLD = 'the secret of before';
const NEW = 'the secret of now';

interface Story {
  readonly cluster: Cluster;
  readonly hop: ScriptedServer;
  readonly folder: string;
  readonly via: string;
}

async function begin(t: TestContext, gateway: Part = {}): Promise<Story> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-names-'));
  const hop = new ScriptedServer();
  const via = `smtp://${HOST}:${String(await hop.listen())}`;
  const cluster = await startCluster({ sink: false, gateway, routes: [{ domain: '*', via, name: 'out' }] });
  t.after(async () => {
    await cluster.stop();
    hop.close();
    rmSync(folder, { recursive: true });
  });
  return { cluster, hop, folder, via };
}

async function put(talk: SmtpTalk, from: string, to: string, content = MAIL): Promise<void> {
  for (const line of ['RSET', `MAIL FROM:<${from}>`, `RCPT TO:<${to}>`]) assert.match(await talk.say(line), /^250 /, line);
  await talk.say('DATA');
  assert.match(await talk.say(`${content}.`), /^250 2\.0\.0 /);
}

/** By a session of its own. */
async function send({ cluster }: Story, from: string, to: string, content = MAIL): Promise<void> {
  const talk = await SmtpTalk.start(cluster.smtpPort);
  await put(talk, from, to, content);
  talk.close();
}

async function answer({ cluster }: Story, from: string, to: string): Promise<string> {
  const talk = await SmtpTalk.start(cluster.smtpPort);
  await talk.say(`MAIL FROM:<${from}>`);
  const said = await talk.say(`RCPT TO:<${to}>`);
  talk.close();
  return said;
}

async function arrived({ cluster, hop }: Story, count: number): Promise<Accepted> {
  await until(`${String(count)} have come`, () => hop.accepted.length === count, BOUND_MS, cluster.gateway);
  return hop.accepted[count - 1] ?? assert.fail();
}

async function logged({ cluster }: Story, event: string, fields: Part): Promise<void> {
  await until(`${event} ${JSON.stringify(fields)}`, () => cluster.gateway.log().split('\n').some((line) => {
    if (!line.includes(`"event":"${event}"`)) return false;
    const row = JSON.parse(line) as Part;
    return Object.entries(fields).every(([key, value]) => row[key] === value);
  }), BOUND_MS, cluster.gateway);
}

function smtp(gateway: Part, more: Part): void {
  gateway['smtp'] = { ...gateway['smtp'] as Part, ...more };
}

function verp(gateway: Part, options: Part | undefined): void {
  const [first] = gateway['routes'] as Part[];
  assert.ok(first !== undefined);
  if (options === undefined) delete first['verp'];
  else first['verp'] = options;
}

describe('a gateway that reads its configuration again', { timeout: 480_000 }, () => {
  test('has another host name for sessions, connections and reports that begin', async (t) => {
    const asked: string[] = [];
    const rspamd = createServer((request, response) => {
      asked.push(String(request.headers['mta-name']));
      response.end('{"action": "no action"}');
    }).listen(0, HOST);
    t.after(() => { rspamd.close(); });
    await once(rspamd, 'listening');
    const hooks = [{ rspamd: `http://${HOST}:${String((rspamd.address() as AddressInfo).port)}` }];
    const story = await begin(t, { hostname: 'old.example', smtp: { hooks }, delivery: { messages_per_connection: 1 } });
    const { cluster, hop } = story;
    const greeted: string[] = [];
    const refused = new Set<number>();
    hop.answer = (verb, connection, line) => {
      if (verb === 'EHLO') greeted.push(line);
      if (verb === 'RCPT' && line.includes('nobody')) refused.add(connection);
      return ['RCPT', 'DATA'].includes(verb) && refused.has(connection) ? '550 5.1.1 none' : undefined;
    };
    const kept = await SmtpTalk.start(cluster.smtpPort);
    assert.deepEqual(await follows(cluster, (gateway) => { gateway['hostname'] = 'new.example'; }), ['gateway.hostname']);
    await put(kept, 'a@client.example', 'b@far.example');
    assert.match((await arrived(story, 1)).content, /^Received: [^]*?\r\n\tby old\.example /, 'as it began');
    const fresh = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await fresh.say('EHLO c.example'), /^250-new\.example/);
    await put(fresh, 'a@client.example', 'nobody@far.example');
    const { content } = await arrived(story, 2);
    assert.match(content, /^Reporting-MTA: dns; new\.example\r$/m);
    assert.match(content, /^\tby new\.example /m);
    assert.deepEqual(new Set(greeted), new Set(['EHLO new.example']));
    assert.deepEqual(asked, ['old.example', 'new.example']);
    for (const talk of [kept, fresh]) talk.close();
  });

  test('makes return addresses that are new for mail that waits, knows those of a secret that is kept, and makes none any more', async (t) => {
    const story = await begin(t, { delivery: { retry: { first: '1s', max: '1s' } } });
    const { cluster, hop, folder } = story;
    const secret = path.join(folder, 'secret');
    const keep = (...lines: readonly string[]): void => { writeFileSync(secret, `${lines.join('\n')}\n`, { mode: 0o600 }); };
    keep(OLD);
    let isBusy = true;
    hop.answer = (verb) => (isBusy && ['MAIL', 'RCPT', 'DATA'].includes(verb) ? '451 4.3.0 later' : undefined);
    await send(story, 'a@client.example', 'b@far.example');
    await logged(story, 'deferred', { to: 'b@far.example' });
    await follows(cluster, (gateway) => { verp(gateway, { domain: 'bounces.example', secret_file: secret }); });
    isBusy = false;
    const { from: first } = await arrived(story, 1);
    assert.match(first, /^b\+[0-9a-z]{25}=client\.example=a@bounces\.example$/);

    const kept = await SmtpTalk.start(cluster.smtpPort);
    keep(NEW, OLD);
    assert.deepEqual((await reload(cluster)).changed, ['gateway.routes[0].verp.secret_file']);
    await send(story, '', first, report('delivery-status', 'Reporting-MTA: dns; x\r\n\r\nFinal-Recipient: rfc822; b@far.example\r\nAction: failed\r\nStatus: 5.1.1\r\n'));
    await logged(story, 'returned', { to: 'b@far.example', class: '5', from: 'a@client.example' });
    assert.deepEqual((await arrived(story, 2)).to, ['a@client.example'], 'it goes on');
    await send(story, 'a@client.example', 'b@far.example');
    const { from: second } = await arrived(story, 3);
    await put(kept, '', second);
    assert.deepEqual((await arrived(story, 4)).to, ['a@client.example'], 'though the session is older than the secret');
    kept.close();

    keep(NEW);
    await follows(cluster, () => undefined);
    assert.match(await answer(story, '', first), /^550 5\.1\.1 .*not made here/);
    assert.match(await answer(story, '', second), /^250 /);

    // An address of another party again: mail to it goes where its domain leads.
    await follows(cluster, (gateway) => { verp(gateway, undefined); });
    assert.match(await answer(story, '', first), /^250 /);
    await send(story, 'a@client.example', 'b@far.example');
    assert.equal((await arrived(story, 5)).from, 'a@client.example');
  });

  test('rewrites senders of mail that an alias leads away, also of mail that waits, leads reports back, and takes them no more', async (t) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-names-'));
    const [text, table, secret] = ['text', 'table', 'secret'].map((name) => path.join(folder, name)) as [string, string, string];
    writeFileSync(text, 'team@ours.example to=far@there.example\n');
    writeFileSync(secret, `${OLD}\n`, { mode: 0o600 });
    assert.equal((await twinpost(['table', 'build', text, table])).code, 0);
    const story = await begin(t, { smtp: { relay_domains: ['ours.example'], recipients: table }, delivery: { retry: { first: '1s', max: '1s' } } });
    t.after(() => { rmSync(folder, { recursive: true }); });
    const { cluster, hop } = story;
    await send(story, 'a@client.example', 'team@ours.example');
    assert.equal((await arrived(story, 1)).from, 'a@client.example');
    let isLater = true;
    const refused = new Set<number>();
    hop.answer = (verb, connection, line) => {
      if (verb === 'MAIL') refused.delete(connection);
      if (line.includes('nobody@')) refused.add(connection);
      if (!['MAIL', 'RCPT', 'DATA'].includes(verb)) return undefined;
      return isLater ? '451 4.3.0 later' : refused.has(connection) ? '550 5.1.1 none' : undefined;
    };
    const kept = await SmtpTalk.start(cluster.smtpPort);
    await put(kept, 'a@client.example', 'team@ours.example');
    await logged(story, 'deferred', { orig_to: 'team@ours.example' });
    const added = await follows(cluster, (gateway) => { smtp(gateway, { srs: { domain: 'fwd.example', secret_file: secret } }); });
    assert.deepEqual(added, ['gateway.smtp.srs']);
    isLater = false;
    const { from: made } = await arrived(story, 2);
    assert.match(made, /^SRS0=.*=client\.example=a@fwd\.example$/, 'what waited');
    await put(kept, '', made);
    assert.deepEqual((await arrived(story, 3)).to, ['a@client.example']);
    // It goes no further under our name than our own reports find back.
    await put(kept, made, 'nobody@far.example');
    await logged(story, 'bounced', { to: 'nobody@far.example' });
    assert.deepEqual((await arrived(story, 4)).to, ['a@client.example']);
    kept.close();

    await follows(cluster, (gateway) => { smtp(gateway, { srs: undefined }); });
    await send(story, 'a@client.example', 'team@ours.example');
    assert.equal((await arrived(story, 5)).from, 'a@client.example');
    await send(story, '', made);
    assert.deepEqual((await arrived(story, 6)).to, [made], 'where its domain leads');
  });

  test('reads feedback at an address that is new, also of a session that was there, and none where there is none', async (t) => {
    const story = await begin(t);
    const { cluster } = story;
    const feedback = report('feedback-report', 'Feedback-Type: abuse\r\nUser-Agent: Far/1\r\nVersion: 1\r\n');
    const isRead = (type: string): Promise<void> => logged(story, 'feedback', { type, verified: 'no' });
    await follows(cluster, (gateway) => { smtp(gateway, { feedback: { address: 'fbl@ours.example' } }); });
    const kept = await SmtpTalk.start(cluster.smtpPort);
    await put(kept, '', 'fbl@ours.example', feedback);
    await isRead('abuse');
    await follows(cluster, (gateway) => { smtp(gateway, { feedback: { address: 'loop@ours.example' } }); });
    await put(kept, '', 'loop@ours.example', feedback.replace('abuse', 'fraud'));
    await isRead('fraud');
    assert.match(await answer(story, '', 'fbl@ours.example'), /^250 /, 'a mailbox as any');
    await follows(cluster, (gateway) => { smtp(gateway, { feedback: undefined }); });
    await send(story, '', 'loop@ours.example', feedback.replace('abuse', 'other'));
    assert.deepEqual((await arrived(story, 1)).to, ['loop@ours.example']);
    kept.close();
    assert.equal(cluster.gateway.log().includes('"type":"other"'), false);
  });

  test('tells a delay of mail that waits, once it is old enough by what is new', async (t) => {
    const story = await begin(t, { delivery: { retry: { first: '1h', max: '1h' } } });
    const { cluster, hop } = story;
    hop.answer = (verb) => (['RCPT', 'DATA'].includes(verb) ? '451 4.3.0 later' : undefined);
    await send(story, 'a@client.example', 'late@far.example');
    await logged(story, 'deferred', { to: 'late@far.example' });
    hop.answer = () => undefined;
    edit(cluster, (gateway) => { gateway['reports'] = { delay_after: '1s', delay_unasked: true }; });
    assert.deepEqual((await reload(cluster)).changed, ['gateway.reports.delay_after', 'gateway.reports.delay_unasked']);
    const { to, content } = await arrived(story, 1);
    assert.deepEqual(to, ['a@client.example']);
    assert.match(content, /^Action: delayed\r$/m);
  });
});
