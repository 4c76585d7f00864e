/**
 * Mail whose way the DNS says, by real processes: a queue for each destination domain, the host that answers, a
 * restart of the gateway in between, and what becomes of mail to domains that take none.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from 'dns-packet';
import { ScriptedServer } from '../unit/gateway/outbound/scripted-server.js';
import { NameServer } from '../unit/platform/node/dns/name-server.js';
import { HOST, startCluster, until } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const BACKUP = '127.0.0.2';
/** Where nobody listens; a port of 127.0.0.1 that was free may be another test's soon. */
const NOBODY = '127.0.0.3';

test('mail by MX goes to the hosts of its domain, survives a kill, and comes back where there is none', { timeout: 240_000 }, async (t) => {
  const [free, backup] = [new ScriptedServer(), new ScriptedServer()];
  const port = await free.listen();
  free.close();
  t.after(() => { backup.close(); });
  const mx = (name: string, exchange: string, preference = 10): Answer => ({ type: 'MX', name, ttl: 60, data: { preference, exchange } });
  const zone: Readonly<Record<string, readonly Answer[]>> = {
    'MX there.example': [mx('there.example', 'b.there.example', 20), mx('there.example', 'a.there.example')],
    'A a.there.example': [{ type: 'A', name: 'a.there.example', ttl: 60, data: NOBODY }],
    'A b.there.example': [{ type: 'A', name: 'b.there.example', ttl: 60, data: BACKUP }],
    'MX null.example': [mx('null.example', '.', 0)],
  };
  const names = await NameServer.start(t, (question) => {
    const answers = zone[question];
    return answers === undefined ? { rcode: 3 } : { answers };
  });
  const cluster = await startCluster({
    sink: false,
    routes: [{ domain: '*', name: 'out', via: `mx:${String(port)}` }],
    gateway: {
      dns: { resolvers: [`127.0.0.1:${String(names.port)}`] },
      delivery: { mx: { allow_private_addresses: true }, retry: { first: '100ms', max: '500ms' } },
    },
  });
  t.after(() => cluster.stop());
  const talk = await SmtpTalk.start(cluster.smtpPort);
  for (const to of ['one@there.example', 'two@null.example', 'three@nowhere.example']) {
    await talk.say('MAIL FROM:<me@there.example>');
    await talk.say(`RCPT TO:<${to}>`);
    await talk.say('DATA');
    assert.match(await talk.say(`Subject: to ${to}\r\n\r\nbody\r\n.`), /^250/);
  }
  await talk.say('QUIT');
  const hopOf = async (): Promise<readonly string[]> =>
    ((await cluster.status()).outages?.mx ?? []).map(({ relay, waiting }) => `${relay} ${String(waiting)}`);
  await until('both reports wait beside the mail', async () => (await hopOf()).includes(`a.there.example:${String(port)} and 1 more 3`), 30_000, cluster.gateway);
  const { out: top } = await twinpost(['queue', 'top', '--ticks', '1', '--from', `${HOST}:${String(cluster.adminPort)}`]);
  assert.match(top, /there\.example .* down /);
  await cluster.gateway.kill();
  await backup.listen(BACKUP, port);
  cluster.gateway.start();
  await cluster.gateway.ready();
  await cluster.drained();
  const got = backup.accepted.map(({ from, to }) => [from, to.join()]);
  assert.equal(got.length, 3, JSON.stringify(got));
  assert.ok(got.some(([from, to]) => from === 'me@there.example' && to === 'one@there.example'));
  const reports = backup.accepted.filter(({ from }) => from === '');
  assert.deepEqual(reports.map(({ content }) => /^Status: (.*)$/m.exec(content)?.[1]).sort(), ['5.1.10', '5.1.2']);
  const bounced = cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"bounced"'));
  assert.ok(bounced.length === 2 && !bounced.some((line) => /"(relay|tls|mail_from)":/.test(line)), bounced.join('\n'));
  await until('the log says by which host', () => cluster.gateway.log().includes(`"relay":"b.there.example[${BACKUP}]:${String(port)}"`));
});

test('a resolver that is dead stands in status, metrics and log, until it answers', { timeout: 240_000 }, async (t) => {
  let isDead = true;
  const names = await NameServer.start(t, () => (isDead ? { rcode: 2 } : { rcode: 3 }));
  const cluster = await startCluster({
    sink: false,
    routes: [{ domain: '*', name: 'out', via: 'mx' }],
    gateway: { dns: { resolvers: [`127.0.0.1:${String(names.port)}`] }, delivery: { retry: { first: '100ms', max: '500ms' } } },
  });
  t.after(() => cluster.stop());
  const talk = await SmtpTalk.start(cluster.smtpPort);
  await talk.say('MAIL FROM:<me@there.example>');
  await talk.say('RCPT TO:<one@there.example>');
  await talk.say('DATA');
  assert.match(await talk.say('Subject: x\r\n\r\nbody\r\n.'), /^250/);
  await talk.say('QUIT');
  const why = `127.0.0.1:${String(names.port)}: SERVFAIL`;
  await until('the status says so', async () => (await cluster.status()).dns_away === why, 30_000, cluster.gateway);
  await until('the log says so', () => /"event":"dns".*no resolver answers/.test(cluster.gateway.log()), 10_000, cluster.gateway);
  const scraped = await (await fetch(`http://127.0.0.1:${String(cluster.adminPort)}/metrics`)).text();
  assert.match(scraped, /^twinpost_dns_up 0$/m);
  assert.match(scraped, /^twinpost_connections_failed_total 0$/m);
  isDead = false;
  await until('it is over', async () => (await cluster.status()).dns_away === '', 30_000, cluster.gateway);
  await until('the log says that', () => /"event":"dns".*a resolver answers again/.test(cluster.gateway.log()), 10_000, cluster.gateway);
});

test('a site is suspended for all domains whose mail it takes, when the DNS has named it and before it is connected to', { timeout: 240_000 }, async (t) => {
  const server = new ScriptedServer();
  const port = await server.listen();
  t.after(() => { server.close(); });
  const hostOf: Readonly<Record<string, string>> = { 'one.example': 'mx1.big.example', 'two.example': 'mx1.big.example', 'three.example': 'mx.small.example' };
  const names = await NameServer.start(t, (question) => {
    const [type = '', name = ''] = question.split(' ');
    const exchange = hostOf[name];
    if (type === 'A') return { answers: [{ type: 'A', name, ttl: 60, data: '127.0.0.1' }] };
    if (type !== 'MX' || exchange === undefined) return { rcode: 3 };
    return { answers: [{ type: 'MX', name, ttl: 60, data: { preference: 10, exchange } }] };
  });
  const cluster = await startCluster({
    sink: false,
    routes: [{ domain: '*', name: 'out', via: `mx:${String(port)}` }],
    gateway: {
      dns: { resolvers: [`127.0.0.1:${String(names.port)}`] },
      delivery: { mx: { allow_private_addresses: true }, retry: { first: '100ms', max: '500ms' } },
    },
  });
  t.after(() => cluster.stop());
  const site = ['--site', 'mx1.big.example', '--reason', 'a test', '--from', `127.0.0.1:${String(cluster.adminPort)}`] as const;
  const given = await twinpost(['queue', 'suspend', ...site]);
  assert.match(given.out, /^--site mx1\.big\.example is suspended: NOTHING MATCHES now .*; rule /, given.error);
  const talk = await SmtpTalk.start(cluster.smtpPort);
  for (const domain of ['one', 'two', 'three']) {
    await talk.say('MAIL FROM:<me@there.example>');
    await talk.say(`RCPT TO:<x@${domain}.example>`);
    await talk.say('DATA');
    assert.match(await talk.say('Subject: x\r\n\r\nbody\r\n.'), /^250/);
  }
  await talk.say('QUIT');
  const messages = async (): Promise<readonly number[]> => ((await cluster.status()).rules ?? []).map((rule) => rule.messages);
  await until('both domains are suspended', async () => (await messages()).join() === '2', 30_000, cluster.gateway);
  await until('the other is served', () => server.accepted.length === 1);
  assert.deepEqual(server.accepted[0]?.to, ['x@three.example']);
  const found = await twinpost(['queue', 'find', '--json', '--site', 'mx1.*', '--from', `127.0.0.1:${String(cluster.adminPort)}`]);
  assert.equal(found.out.trim().split('\n').length, 2, found.out + found.error);
  assert.equal((await twinpost(['queue', 'resume', ...site])).code, 0);
  await cluster.drained();
  assert.equal(server.accepted.length, 3);
});
