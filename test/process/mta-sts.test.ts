/**
 * Mail to a domain that enforces a policy, by real processes: the policy is fetched from its server, survives a kill of
 * the gateway when neither the DNS nor that server knows of it any more, and another takes its place when its id changes.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Answer } from 'dns-packet';
import { PolicyServer, policyText } from '../unit/gateway/outbound/sts/policy-server.js';
import { NameServer } from '../unit/platform/node/dns/name-server.js';
import { HOST, startCluster, until } from './cluster.js';
import { follows, type Part } from './reload-kit.js';
import { SmtpTalk } from './smtp-talk.js';
import { TlsHop, makeCertificates } from './tls-hop.js';

/** Of its own, for other tests have policies at port 443 too. */
const POLICY_HOST = '127.0.153.44';
const DOMAIN = 'sts.example';
const MX = `mx.${DOMAIN}`;

const certificates = makeCertificates();
const whyNot = certificates === undefined ? 'openssl is missing' : process.getuid?.() === 0 ? false : 'port 443 is root\'s';

async function put(smtpPort: number, to: string): Promise<void> {
  const talk = await SmtpTalk.start(smtpPort);
  for (const line of ['MAIL FROM:<me@from.example>', `RCPT TO:<${to}>`, 'DATA', 'Subject: x\r\n\r\nhello\r\n.', 'QUIT']) {
    assert.match(await talk.say(line), /^[23]/, line);
  }
}

test('a policy of a domain is enforced, survives a kill, and is fetched anew when its id changes', { timeout: 120_000, skip: whyNot }, async (t) => {
  assert.ok(certificates !== undefined);
  const server = new PolicyServer();
  await server.listen(POLICY_HOST, 443);
  t.after(() => { server.close(); });
  const host = `mta-sts.${DOMAIN}`;
  const certificate = certificates.issue(host);
  server.said.set(host, { certificate, text: policyText('enforce', [MX]) });
  const hop = new TlsHop({ certificate: certificates.issue(MX) });
  const port = await hop.listen();
  t.after(() => { hop.close(); });
  const record = (id: string): readonly Answer[] => [{ type: 'TXT', name: `_${host}`, ttl: 0, data: `v=STSv1; id=${id}` } as Answer];
  const zone = new Map<string, readonly Answer[]>([
    [`MX ${DOMAIN}`, [{ type: 'MX', name: DOMAIN, ttl: 0, data: { preference: 1, exchange: MX } }]],
    [`A ${MX}`, [{ type: 'A', name: MX, ttl: 0, data: HOST }]],
    [`A ${host}`, [{ type: 'A', name: host, ttl: 0, data: POLICY_HOST }]],
    [`TXT _${host}`, record('1')],
  ]);
  const names = await NameServer.start(t, (question) => {
    const answers = zone.get(question);
    return answers === undefined ? { rcode: 3 } : { answers };
  });
  process.env['NODE_EXTRA_CA_CERTS'] = certificates.caFile;
  const cluster = await startCluster({
    sink: false,
    routes: [{ domain: '*', name: 'out', via: `mx:${String(port)}` }],
    gateway: {
      dns: { resolvers: [`127.0.0.1:${String(names.port)}`] }, reports: 'discard',
      delivery: { mx: { allow_private_addresses: true }, retry: { first: '100ms', max: '500ms' } },
    },
  });
  t.after(() => cluster.stop());
  const log = (): string => cluster.gateway.log();
  await put(cluster.smtpPort, `one@${DOMAIN}`);
  await until('the first is there', () => hop.taken.length === 1, 30_000, cluster.gateway);
  await until('its line', () => /"to":"one@sts\.example".*"tls":"TLSv1\.3".*"verified":"sts"/.test(log()), 30_000, cluster.gateway);
  const metrics = await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/metrics`)).text();
  assert.match(metrics, /^twinpost_mta_sts_fetches_total\{result="fetched"\} 1$/m);
  assert.match(metrics, /^twinpost_mta_sts_policies 1$/m);

  // Somebody takes the record and the server away, and offers no TLS.
  const file = join(cluster.folder, 'mta-sts.policies');
  assert.match(readFileSync(file, 'latin1'), /^[0-9a-f]{8} sts\.example 1 enforce \d+ 86400 mx\.sts\.example\n$/);
  await cluster.gateway.kill();
  zone.delete(`TXT _${host}`);
  zone.delete(`A ${host}`);
  hop.options = { offersStartTls: false };
  cluster.gateway.start();
  await cluster.gateway.ready();
  await put(cluster.smtpPort, `two@${DOMAIN}`);
  await until('it is deferred', () => log().includes('so says the MTA-STS policy of the domain'), 30_000, cluster.gateway);
  assert.deepEqual([hop.taken.length, server.asked.length], [1, 1]);

  // The operator has policies count no more, and again.
  const counts = (mta_sts: boolean): Promise<unknown> => follows(cluster, (gateway) => {
    const delivery = gateway['delivery'] as Part;
    Object.assign(gateway, { delivery: { ...delivery, mx: { ...delivery['mx'] as Part, mta_sts } } });
  });
  await counts(false);
  await until('it goes in clear', () => hop.taken.length === 2, 30_000, cluster.gateway);
  await put(cluster.smtpPort, `more@${DOMAIN}`);
  await until('so does the next', () => hop.taken.length === 3, 30_000, cluster.gateway);
  // The way in clear stands, with an open connection.
  await counts(true);
  const from = cluster.gateway.logBytes;
  await put(cluster.smtpPort, `three@${DOMAIN}`);
  await until('it is deferred', () => cluster.gateway.logSince(from).includes('so says the MTA-STS policy of the domain'), 30_000, cluster.gateway);
  assert.deepEqual([hop.taken.length, server.asked.length], [3, 1]);

  // The domain says that there is no policy any more.
  server.said.set(host, { certificate, text: policyText('none', []) });
  zone.set(`A ${host}`, [{ type: 'A', name: host, ttl: 0, data: POLICY_HOST }]);
  zone.set(`TXT _${host}`, record('2'));
  await until('it goes in clear', () => hop.taken.length === 4, 60_000, cluster.gateway);
  assert.deepEqual([...hop.taken.slice(1).map(({ isSecure }) => isSecure), server.asked.length], [false, false, false, 2]);
});
