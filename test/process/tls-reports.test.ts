/**
 * Reports on TLS by a real gateway with `workers: 2`: what both have counted is in files over a stop, and, as the day has
 * ended meanwhile, in one report of the processes that start then.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { Answer } from 'dns-packet';
import { sealedLine, unsealed } from '../../src/gateway/local/sealed-lines.js';
import { NameServer } from '../unit/platform/node/dns/name-server.js';
import { HOST, startCluster, until } from './cluster.js';
import type { Cluster } from './cluster.js';
import { edit, follows, refuses } from './reload-kit.js';
import { SmtpTalk } from './smtp-talk.js';
import { TlsHop, makeCertificates } from './tls-hop.js';

const WORKERS = [1, 2];
const REPORTER = { organization: 'Us', contact: 'tls@us.example' };
const DOMAIN = 'a.example';
const MX = `mx.${DOMAIN}`;
const REPORTS = 'reports.example';

const certificates = makeCertificates();

async function received(cluster: Cluster): Promise<readonly number[]> {
  const ask = async (number: number): Promise<unknown> => (await fetch(`http://${HOST}:${String(cluster.adminPort + number - 1)}/api/v1/status`)).json();
  return (await Promise.all(WORKERS.map(ask))).map((status) => ((status as { ready: boolean }).ready ? (status as { received: number }).received : -1));
}

async function put(port: number): Promise<void> {
  const talk = await SmtpTalk.start(port);
  for (const line of ['MAIL FROM:<me@from.example>', `RCPT TO:<one@${DOMAIN}>`, 'DATA', 'Subject: x\r\n\r\nhello\r\n.', 'QUIT']) {
    assert.match(await talk.say(line), /^[23]/, line);
  }
}

function today(): number {
  return Math.floor(Date.now() / 86_400_000);
}

interface Report {
  readonly 'date-range': { readonly 'start-datetime': string };
  readonly 'policies': readonly { readonly policy: object; readonly summary: { readonly 'total-successful-session-count': number } }[];
}

function summaries(hop: TlsHop): readonly Report[] {
  return hop.taken.flatMap(({ content }) => {
    const [, encoded] = /application\/tlsrpt\+gzip[^]*?\r\n\r\n([^-]*)/.exec(content) ?? [];
    return encoded === undefined ? [] : [JSON.parse(gunzipSync(Buffer.from(encoded, 'base64')).toString()) as Report];
  });
}

function sessionsOf(policies: Report['policies']): number {
  return policies.reduce((sum, { summary }) => sum + summary['total-successful-session-count'], 0);
}

test('two workers tell a domain once what both have counted, though they were stopped before the day was over', { timeout: 300_000, skip: certificates === undefined ? 'openssl is missing' : false }, async (t) => {
  const hop = new TlsHop({ certificate: certificates?.issue(MX) });
  const port = await hop.listen();
  t.after(() => { hop.close(); });
  const mx = (name: string): readonly Answer[] => [{ type: 'MX', name, ttl: 60, data: { preference: 1, exchange: MX } }];
  const zone: Readonly<Record<string, readonly Answer[]>> = {
    [`MX ${DOMAIN}`]: mx(DOMAIN), [`MX ${REPORTS}`]: mx(REPORTS), [`A ${MX}`]: [{ type: 'A', name: MX, ttl: 60, data: HOST }],
    [`TXT _smtp._tls.${DOMAIN}`]: [{ type: 'TXT', name: `_smtp._tls.${DOMAIN}`, ttl: 60, data: `v=TLSRPTv1; rua=mailto:tls@${REPORTS}` } as Answer],
  };
  const names = await NameServer.start(t, (question) => {
    const answers = zone[question];
    return answers === undefined ? { rcode: 3 } : { answers };
  });
  const cluster = await startCluster({
    sink: false, workers: WORKERS.length,
    routes: [{ domain: '*', name: 'out', via: `mx:${String(port)}` }],
    gateway: {
      dns: { resolvers: [`127.0.0.1:${String(names.port)}`] }, memory: { limit: '1GiB' },
      delivery: { mx: { allow_private_addresses: true }, retry: { first: '100ms', max: '500ms' } },
    },
  });
  t.after(() => cluster.stop());
  await until('both workers take mail', async () => (await received(cluster)).every((count) => count === 0), 60_000, cluster.gateway);
  // Off at the start, here and below: what the reload says holds for both.
  const turnOn = async (): Promise<void> => {
    assert.deepEqual(await follows(cluster, (gateway) => { gateway['tls_reports'] = REPORTER; }), ['gateway.tls_reports']);
  };
  await turnOn();
  const begunOn = today();
  for (const count of [1, 2]) {
    await put(cluster.smtpPort);
    await until('it is delivered', () => hop.taken.filter(({ content }) => content.includes('Subject: x')).length === count, 30_000, cluster.gateway);
  }
  assert.deepEqual(await received(cluster), [1, 1]);
  assert.equal(await cluster.gateway.stop(), 0, cluster.gateway.logTail());

  // As if the day had ended meanwhile. Where it did, some of it may be told already.
  const isOneDay = today() === begunOn;
  const files = WORKERS.map((number) => join(cluster.folder, `gateway-1-${String(number)}`, 'tls-counts'));
  assert.ok(!isOneDay || files.every((each) => existsSync(each)));
  for (const file of files.filter((each) => existsSync(each))) {
    const aged = readFileSync(file, 'latin1').split('\n').filter((line) => line !== '')
      .map((line) => sealedLine((unsealed(line) ?? assert.fail(line)).replace(/"day":(\d+)/, (_all, day) => `"day":${String(Number(day) - 1)}`)));
    writeFileSync(file, aged.join(''), 'latin1');
  }
  edit(cluster, (gateway) => { delete gateway['tls_reports']; });
  cluster.gateway.start();
  await cluster.gateway.ready();
  await until('both workers take mail', async () => (await received(cluster)).every((count) => count === 0), 60_000, cluster.gateway);
  // What is refused takes up nothing.
  await refuses(cluster, (gateway) => {
    const { listen } = gateway['smtp'] as { readonly listen: readonly unknown[] };
    Object.assign(gateway, { tls_reports: REPORTER, smtp: { ...gateway['smtp'] as object, listen: [...listen, `${HOST}:${String(port)}`] } });
  }, /gateway\.smtp\.listen/);
  assert.ok(!isOneDay || files.every((each) => existsSync(each)), 'nobody is told');
  await turnOn();
  const sessions = (): number => summaries(hop).reduce((sum, { policies }) => sum + sessionsOf(policies), 0);
  await until('all sessions are told', () => sessions() >= 2, 280_000, cluster.gateway);
  const told = summaries(hop);
  assert.deepEqual([sessions(), told.length], [2, isOneDay ? 1 : told.length]);
  for (const { policies } of told) assert.deepEqual(policies.map(({ policy }) => policy), [{ 'policy-type': 'no-policy-found', 'policy-domain': DOMAIN }]);
  for (const file of files) assert.ok(!existsSync(file), file);
});
