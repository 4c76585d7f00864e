/**
 * Addresses that mail leaves from, by real processes: what a next hop and the mail log see, what `status` says of
 * one of IPv6 that the DNS does not confirm, and a start that is refused.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pointerName } from '../../src/base/reversed-address.js';
import { ScriptedServer } from '../unit/gateway/outbound/scripted-server.js';
import { NameServer } from '../unit/platform/node/dns/name-server.js';
import { startCluster, until } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';

test('mail leaves from the source of its route, with its name in EHLO, as log and status say', { timeout: 240_000 }, async (t) => {
  const hop = new ScriptedServer();
  const port = await hop.listen();
  t.after(() => { hop.close(); });
  const greeted: string[] = [];
  hop.answer = (verb, connection, line) => {
    if (verb === 'EHLO') greeted.push(`${hop.sockets[connection - 1]?.remoteAddress ?? ''} ${line}`);
    return undefined;
  };
  const names = await NameServer.start(t, (question) => (question === `PTR ${pointerName('::1')}`
    ? { answers: [{ type: 'PTR', name: pointerName('::1'), ttl: 60, data: 'other.test' }] } : { rcode: 3 }));
  const cluster = await startCluster({
    sink: false,
    routes: [
      { domain: 'news.example', via: `smtp://127.0.0.1:${String(port)}`, sources: ['three.test'] },
      { domain: '*', via: `smtp://127.0.0.1:${String(port)}`, sources: ['127.0.0.2'] },
    ],
    gateway: {
      dns: { resolvers: [`127.0.0.1:${String(names.port)}`] },
      sources: [{ address: '127.0.0.2', name: 'two.test' }, { address: '127.0.0.3', name: 'three.test' }, { address: '::1', name: 'six.test' }],
    },
  });
  t.after(() => cluster.stop());
  const say = async (...recipients: readonly string[]): Promise<void> => {
    const talk = await SmtpTalk.start(cluster.smtpPort);
    for (const to of recipients) {
      await talk.say('MAIL FROM:<me@there.example>');
      await talk.say(`RCPT TO:<${to}>`);
      await talk.say('DATA');
      assert.match(await talk.say(`Subject: to ${to}\r\n\r\nbody\r\n.`), /^250/);
    }
    await talk.say('QUIT');
  };
  await say('one@there.example', 'two@news.example');
  await cluster.drained();
  assert.deepEqual(greeted.sort(), ['127.0.0.2 EHLO two.test', '127.0.0.3 EHLO three.test']);
  const logged = (): readonly string[] => cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"delivered"'))
    .map((line) => (JSON.parse(line) as { source?: string }).source ?? '').sort();
  // The log is written behind the turn that delivers.
  await until('both deliveries are in the log', () => logged().length === 2, 10_000, cluster.gateway);
  assert.deepEqual(logged(), ['127.0.0.2', '127.0.0.3']);
  const scrape = async (): Promise<string> => (await fetch(`http://127.0.0.1:${String(cluster.adminPort)}/metrics`)).text();
  const scraped = await scrape();
  for (const [source, route] of [['127.0.0.2', 'default'], ['127.0.0.3', 'news.example']] as const) {
    assert.ok(scraped.split('\n').includes(`twinpost_outcomes_total{source="${source}",route="${route}",outcome="delivered"} 1`), scraped.match(/^twinpost_outcomes.*$/gm)?.join('\n'));
  }
  assert.match(scraped, /^twinpost_delivered_tls_total\{how="clear"\} 2$/m);
  hop.close();
  await say('three@news.example');
  const down = (): readonly string[] => cluster.gateway.log().split('\n').filter((line) => /"event":"(nexthop|suspended)"/.test(line));
  await until('the log says that it is down', () => down().some((line) => line.includes('"suspended"')), 30_000, cluster.gateway);
  assert.deepEqual(down().filter((line) => !line.includes('"source":"127.0.0.3"')), []);
  assert.match(await scrape(), /^twinpost_connections_failed_total [1-9]/m);
  await until('what the DNS says', async () => ((await cluster.status()).sources ?? []).some(({ why }) => why.includes('other.test')), 30_000, cluster.gateway);
  assert.deepEqual((await cluster.status()).sources?.map(({ address, why }) => [address, why]), [
    ['127.0.0.2', ''], ['127.0.0.3', ''], ['::1', 'its PTR record says other.test, and not six.test'],
  ]);
});

test('a gateway with a source that is no address of this machine does not start, and says why', { timeout: 120_000 }, async () => {
  await assert.rejects(
    startCluster({ sink: false, routes: [{ domain: '*', via: 'smtp://127.0.0.1:9' }], gateway: { sources: [{ address: '192.0.2.77' }] } }),
    /ended while it started[^]*gateway\.sources\[0\]\.address: expected an address of this machine, found '192\.0\.2\.77', which no interface has/,
  );
});
