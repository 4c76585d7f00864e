/**
 * What becomes of mail that an alias sends on, by a real gateway and a next hop of another make: the reverse-path is
 * rewritten where it leaves us, reports find their way back to the sender, and a list tells that it has the message.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { SMTPServer } from 'smtp-server';

import { HOST, startCluster, until } from './cluster.js';
import type { Cluster } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const BOUND_MS = 20_000;

interface Arrival {
  readonly from: string;
  readonly recipients: readonly string[];
  readonly notify: readonly string[];
  readonly content: string;
}

/** Takes all, but who is called nobody. */
class OtherHop {
  readonly arrivals: Arrival[] = [];
  readonly #server = new SMTPServer({
    authOptional: true, hideSTARTTLS: true, hideDSN: false, logger: false,
    onRcptTo: ({ address }, _session, done) => {
      if (address.startsWith('busy@')) return done(Object.assign(new Error('4.2.1 come later'), { responseCode: 450 }));
      if (!address.startsWith('nobody@')) return done();
      done(Object.assign(new Error(`5.1.1 <${address}> no such user`), { responseCode: 550 }));
    },
    onData: (stream, { envelope: { mailFrom, rcptTo } }, done) => {
      let content = '';
      stream.on('data', (bytes: Buffer) => { content += bytes.toString('latin1'); });
      stream.on('end', () => {
        const notify = rcptTo.map(({ args }) => (typeof args === 'object' && 'NOTIFY' in args ? String(args['NOTIFY']) : ''));
        this.arrivals.push({ from: mailFrom === false ? '' : mailFrom.address, recipients: rcptTo.map(({ address }) => address), notify, content });
        done();
      });
    },
  });

  async listen(): Promise<number> {
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

async function withAliases(lines: readonly string[], story: (cluster: Cluster, hop: OtherHop) => Promise<void>, delivery: object = {}): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-aliases-'));
  const [text, table, secret] = ['text', 'table', 'secret'].map((name) => path.join(folder, name)) as [string, string, string];
  writeFileSync(text, lines.map((line) => `${line}\n`).join(''));
  writeFileSync(secret, 'the second secret of ours\n', { mode: 0o600 });
  assert.equal((await twinpost(['table', 'build', text, table])).code, 0);
  const hop = new OtherHop();
  const port = await hop.listen();
  const cluster = await startCluster({
    gateway: { delivery, smtp: { postmaster: 'nobody@else.example', relay_domains: ['relayed.example'], recipients: table, srs: { domain: 'fwd.example', secret_file: secret } } },
    routes: [{ domain: '*.example', via: `smtp://${HOST}:${String(port)}` }],
  });
  try {
    await story(cluster, hop);
  } finally {
    await cluster.stop();
    await hop.close();
    rmSync(folder, { recursive: true });
  }
}

async function send(cluster: Cluster, from: string, recipients: readonly string[]): Promise<void> {
  const talk = await SmtpTalk.start(cluster.smtpPort);
  for (const line of [`MAIL FROM:<${from}>`, ...recipients.map((to) => `RCPT TO:${to}`)]) assert.match(await talk.say(line), /^250 /, line);
  await talk.say('DATA');
  assert.match(await talk.say('Subject: x\r\n\r\nhello\r\n.'), /^250 2\.0\.0 /);
  talk.close();
}

/** There is a line of this event with these fields. */
async function logged(cluster: Cluster, event: string, fields: Readonly<Record<string, string | undefined>>): Promise<void> {
  await until(`${event} ${JSON.stringify(fields)}`, () => {
    const lines = cluster.gateway.log().split('\n').filter((line) => line.includes(`"event":"${event}"`));
    return lines.some((line) => {
      const row = JSON.parse(line) as Record<string, unknown>;
      return Object.entries(fields).every(([key, value]) => row[key] === value);
    });
  }, BOUND_MS, cluster.gateway);
}

test('what expires says what was said of it last, and so does its report', { timeout: 180_000 }, () => withAliases(
  ['late+er@relayed.example to=busy@else.example'],
  async (cluster, hop) => {
    await send(cluster, 'alice@client.example', ['<Late+er@relayed.example>']);
    await until('alice has her report', () => hop.find('alice@client.example') !== undefined, BOUND_MS, cluster.gateway);
    await logged(cluster, 'deferred', { to: 'busy@else.example', orig_to: 'Late+er@relayed.example', reply: '450 4.2.1 come later' });
    await logged(cluster, 'expired', { to: 'busy@else.example', orig_to: 'Late+er@relayed.example', reply: 'delivery time expired', last: '450 4.2.1 come later' });
    await logged(cluster, 'report', { to: 'alice@client.example', kind: 'failure', why: '450 4.2.1 come later' });
  }, { lifetime: '3s', retry: { first: '1s', max: '1s' } },
));

test('an alias that leads out of our domains has the reverse-path rewritten, and the report finds the sender', { timeout: 180_000 }, () => withAliases(
  ['anna@relayed.example', 'info@relayed.example to=x@else.example', 'gone@relayed.example to=nobody@else.example', 'nobody@relayed.example', 'both@relayed.example to=anna@relayed.example,y@else.example'],
  async (cluster, hop) => {
    await send(cluster, 'alice@client.example', ['<info@relayed.example>']);
    await send(cluster, 'alice@client.example', ['<anna@relayed.example>']);
    await until('both are there', () => hop.arrivals.length === 2, BOUND_MS, cluster.gateway);
    assert.equal(hop.find('anna@relayed.example')?.from, 'alice@client.example');
    const rewritten = hop.find('x@else.example')?.from ?? '';
    await logged(cluster, 'delivered', { from: 'alice@client.example', mail_from: rewritten, to: 'x@else.example', orig_to: 'info@relayed.example' });
    await logged(cluster, 'delivered', { from: 'alice@client.example', mail_from: undefined, to: 'anna@relayed.example', orig_to: undefined });
    assert.match(rewritten, /^SRS0=[a-z2-7]{8}=[a-z2-7]{2}=client\.example=alice@fwd\.example$/);
    // The next hop's report comes back.
    await send(cluster, '', [`<${rewritten}>`]);
    await until('the report is with the sender', () => hop.find('alice@client.example') !== undefined, BOUND_MS, cluster.gateway);
    assert.equal(hop.find('alice@client.example')?.from, '');
    // Our own report goes to the sender himself, and who was written to was the alias.
    await send(cluster, 'bob@client.example', ['<gone@relayed.example>']);
    await until('bob has his report', () => hop.find('bob@client.example') !== undefined, BOUND_MS, cluster.gateway);
    assert.match(hop.find('bob@client.example')?.content ?? '', /^Original-Recipient: rfc822; gone@relayed\.example\r\nFinal-Recipient: rfc822; gone@relayed\.example\r\n/m);
    assert.doesNotMatch(hop.find('bob@client.example')?.content ?? '', /nobody|else\.example/);
    await logged(cluster, 'bounced', { from: 'bob@client.example', to: 'nobody@else.example', orig_to: 'gone@relayed.example' });
    await logged(cluster, 'report', { to: 'bob@client.example', kind: 'failure', why: '550 5.1.1 <nobody@else.example> no such user' });
    // So does that of a mail which comes back under the rewritten reverse-path, and fails here.
    const ofAlice = (): number => hop.arrivals.filter(({ recipients }) => recipients.includes('alice@client.example')).length;
    assert.equal(ofAlice(), 1);
    await send(cluster, rewritten, ['<nobody@relayed.example>']);
    await until('alice is told of that, too', () => ofAlice() === 2, BOUND_MS, cluster.gateway);
    // A sender of our own domains is known to come from here.
    await send(cluster, 'anna@relayed.example', ['<info@relayed.example>']);
    await until('the last is there', () => hop.arrivals.filter(({ recipients }) => recipients.includes('x@else.example')).length === 2, BOUND_MS, cluster.gateway);
    assert.equal(hop.arrivals.at(-1)?.from, 'anna@relayed.example');
  },
));

test('a list with success asked for tells once that it has the message, not who is on it', { timeout: 180_000 }, () => withAliases(
  ['anna@relayed.example', 'team@relayed.example to=anna@relayed.example,bob@relayed.example,x@else.example', 'bob@relayed.example'],
  async (cluster, hop) => {
    await send(cluster, 'alice@client.example', ['<team@relayed.example> NOTIFY=SUCCESS,FAILURE', '<anna@relayed.example> NOTIFY=SUCCESS']);
    await until('the report is there', () => hop.find('alice@client.example') !== undefined, BOUND_MS, cluster.gateway);
    const report = hop.find('alice@client.example')?.content ?? '';
    const told = [...report.matchAll(/^Final-Recipient: (.*)\r\nAction: (.*)\r$/gm)].map(([, who, what]) => `${String(who)} ${String(what)}`);
    assert.deepEqual(told, ['rfc822; team@relayed.example expanded']);
    assert.doesNotMatch(report, /bob@|else\.example/);
    const notified = new Map(hop.arrivals.flatMap(({ recipients, notify }) => recipients.map((one, i) => [one, notify[i]])));
    assert.deepEqual(['bob@relayed.example', 'x@else.example'].map((one) => notified.get(one)), ['FAILURE', 'FAILURE']);
  },
));

test('a list tells that it has the message also when the first on it refuses it', { timeout: 180_000 }, () => withAliases(
  ['anna@relayed.example', 'team@relayed.example to=nobody@else.example,anna@relayed.example'],
  async (cluster, hop) => {
    const reportsTo = (sender: string): string[] => hop.arrivals.filter(({ recipients }) => recipients.includes(sender)).flatMap(({ content }) => [...content.matchAll(/^Final-Recipient: (.*)\r\nAction: (.*)\r$/gm)].map(([, who, what]) => `${String(who)} ${String(what)}`));
    await send(cluster, 'alice@client.example', ['<team@relayed.example> NOTIFY=SUCCESS']);
    await until('alice knows', () => reportsTo('alice@client.example').length === 1, BOUND_MS, cluster.gateway);
    assert.deepEqual(reportsTo('alice@client.example'), ['rfc822; team@relayed.example expanded']);
    await send(cluster, 'bob@client.example', ['<team@relayed.example> NOTIFY=SUCCESS,FAILURE']);
    await until('bob knows', () => reportsTo('bob@client.example').length === 2, BOUND_MS, cluster.gateway);
    assert.deepEqual(reportsTo('bob@client.example').sort(), ['rfc822; team@relayed.example expanded', 'rfc822; team@relayed.example failed']);
    for (const sender of ['alice@client.example', 'bob@client.example']) assert.doesNotMatch(hop.find(sender)?.content ?? '', /nobody|else\.example|anna/);
    // Of the postmaster too nobody is told who that is.
    await send(cluster, 'carol@client.example', ['<postmaster@relayed.example>']);
    await until('carol knows', () => reportsTo('carol@client.example').length === 1, BOUND_MS, cluster.gateway);
    assert.deepEqual(reportsTo('carol@client.example'), ['rfc822; postmaster@relayed.example failed']);
    assert.doesNotMatch(hop.find('carol@client.example')?.content ?? '', /nobody|else\.example/);
    await logged(cluster, 'bounced', { to: 'nobody@else.example', orig_to: 'postmaster@relayed.example' });
  },
));

test('mail that an alias led on, exported and sent again, tells its sender no more than it did, and leaves by an address of ours', { timeout: 120_000 }, async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-again-'));
  const hop = new OtherHop();
  const [list, table, secret, mails] = ['list', 'table', 'secret', 'mails'].map((name) => path.join(folder, name)) as [string, string, string, string];
  writeFileSync(list, 'team@ours.example to=busy@hidden.example\ncrew@ours.example to=busy@hidden.example\n');
  writeFileSync(secret, 'a secret of more than sixteen\n', { mode: 0o600 });
  assert.equal((await twinpost(['table', 'build', list, table])).code, 0);
  const cluster = await startCluster({
    sink: false, routes: [{ domain: '*', name: 'out', via: `smtp://${HOST}:${String(await hop.listen())}` }],
    gateway: {
      smtp: { relay_domains: ['ours.example'], recipients: table, srs: { domain: 'fwd.ours.example', secret_file: secret } },
      delivery: { retry: { first: '1h', max: '1h' } },
    },
  });
  t.after(async () => {
    await cluster.stop();
    await hop.close();
    rmSync(folder, { recursive: true });
  });
  const at = ['--from', `${HOST}:${String(cluster.adminPort)}`];
  const talk = await SmtpTalk.start(cluster.smtpPort);
  for (const line of ['MAIL FROM:<me@sender.example>', 'RCPT TO:<team@ours.example> NOTIFY=SUCCESS,FAILURE', 'DATA', 'Subject: x\r\n\r\nhello\r\n.',
    // Whatever a client says was written to is nothing that its mail is sent to.
    'MAIL FROM:<me@sender.example>', 'RCPT TO:<crew@ours.example> NOTIFY=NEVER ORCPT=rfc822;victim@stranger.example', 'DATA', 'Subject: x\r\n\r\nhello\r\n.']) {
    assert.match(await talk.say(line), /^[23]/, line);
  }
  await until('it is put off', () => cluster.gateway.log().includes('come later'), BOUND_MS, cluster.gateway);
  assert.equal((await twinpost(['queue', 'export', '--everything', mails, ...at])).code, 0);

  // The alias leads elsewhere by now: its table is asked anew.
  writeFileSync(list, 'team@ours.example to=here@hidden.example\n');
  assert.equal((await twinpost(['table', 'build', list, table])).code, 0);
  assert.equal((await twinpost(['config', 'reload', '--reason', 'the alias', ...at])).code, 0);
  const send = async (...options: readonly string[]): Promise<number | null> =>
    (await twinpost(['send', '--spool', mails, '--to', `${HOST}:${String(cluster.smtpPort)}`, ...options])).code;
  assert.deepEqual([await send(), await send('--aliases', 'original'), await send('--aliases', 'original')], [1, 1, 1]);
  await until('it and its report are there', () => hop.arrivals.length === 2, BOUND_MS, cluster.gateway);
  assert.match(hop.find('here@hidden.example')?.from ?? '', /^SRS0=.*@fwd\.ours\.example$/);
  const report = hop.find('me@sender.example')?.content ?? '';
  assert.match(report, /^Final-Recipient: rfc822; team@ours\.example\r\nAction: relayed\r$/m);
  assert.ok(!report.includes('hidden.example'));
  assert.equal(hop.find('victim@stranger.example'), undefined);
});
