/**
 * TLS with next hops, level by level: what becomes of mail when the next hop's certificate is good, expired, for another
 * name or signed by itself, when it offers no STARTTLS, refuses it, or resets the handshake (and then may insist on TLS), or
 * could resume a session that was begun unjudged. Besides the levels of routes, what domains by MX say themselves: a policy (MTA-STS) in testing and
 * enforced, and TLSA records (DANE). Real servers, real sockets, one gateway process; the rows are read from its log and
 * from what the servers heard.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Answer } from 'dns-packet';
import packet from 'dns-packet';
import type { QueueAnswer } from '../../../src/admin-api/gateway-answers.js';
import { HOST, pause, startCluster, until } from '../../process/cluster.js';
import type { Cluster } from '../../process/cluster.js';
import { SmtpTalk } from '../../process/smtp-talk.js';
import { TlsHop, makeCertificates } from '../../process/tls-hop.js';
import type { CertificateFiles, TlsHopOptions } from '../../process/tls-hop.js';
import { PolicyServer, policyText } from '../../unit/gateway/outbound/sts/policy-server.js';
import { NameServer } from '../../unit/platform/node/dns/name-server.js';
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

const NAME = 'hop.test';
/** Policies are fetched from port 443. */
const POLICY_HOST = '127.0.153.43';

/**
 * What each row's queue came to, in the order of the levels. A deferral is one of the next hop: its mail waits, in order. Where
 * it insists on TLS after a handshake that failed, one message is deferred.
 */
const EXPECTED = `
none           good           in clear  tls=none
none           expired        in clear  tls=none
none           wrong-name     in clear  tls=none
none           self-signed    in clear  tls=none
none           no-starttls    in clear  tls=none
none           454            in clear  tls=none
none           reset          in clear  tls=none
none           resumed        in clear  tls=none
may            good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
may            expired        in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
may            wrong-name     in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
may            self-signed    in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
may            no-starttls    in clear  tls=none
may            454            in clear  tls=none
may            reset          in clear  tls=none
may            resumed        in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
may            insists        deferred  4.7.0 530 5.7.0 Must issue a STARTTLS command first
encrypt        good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
encrypt        expired        in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
encrypt        wrong-name     in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
encrypt        self-signed    in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
encrypt        no-starttls    deferred  4.7.4 HOP offers no STARTTLS, and mail must not go there in clear: so says tls: encrypt of the route
encrypt        454            deferred  4.7.4 HOP refused STARTTLS: 454 4.7.0 TLS not available
encrypt        reset          deferred  4.7.5 no TLS with HOP: ECONNRESET
encrypt        resumed        in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
verify         good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=yes
verify         expired        deferred  4.7.5 no TLS with HOP: certificate has expired (CERT_HAS_EXPIRED)
verify         wrong-name     deferred  4.7.5 no TLS with HOP: Host: hop.test. is not in the cert's altnames: DNS:other.test, IP Address:127.0.0.2 (ERR_TLS_CERT_ALTNAME_INVALID)
verify         self-signed    deferred  4.7.5 no TLS with HOP: self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)
verify         no-starttls    deferred  4.7.4 HOP offers no STARTTLS, and mail must not go there in clear: so says tls: verify of the route
verify         454            deferred  4.7.4 HOP refused STARTTLS: 454 4.7.0 TLS not available
verify         reset          deferred  4.7.5 no TLS with HOP: ECONNRESET
verify         resumed        deferred  4.7.5 no TLS with HOP: self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)
smtps-encrypt  good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
smtps-encrypt  expired        in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
smtps-encrypt  wrong-name     in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
smtps-encrypt  self-signed    in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
smtps-encrypt  reset          deferred  4.7.5 no TLS with HOP: ECONNRESET
smtps-verify   good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=yes
smtps-verify   expired        deferred  4.7.5 no TLS with HOP: certificate has expired (CERT_HAS_EXPIRED)
smtps-verify   wrong-name     deferred  4.7.5 no TLS with HOP: Host: hop.test. is not in the cert's altnames: DNS:other.test, IP Address:127.0.0.2 (ERR_TLS_CERT_ALTNAME_INVALID)
smtps-verify   self-signed    deferred  4.7.5 no TLS with HOP: self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)
smtps-verify   reset          deferred  4.7.5 no TLS with HOP: ECONNRESET
sts-testing    good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=yes
sts-testing    expired        in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
sts-testing    wrong-name     in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
sts-testing    self-signed    in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
sts-testing    no-starttls    in clear  tls=none
sts-testing    454            in clear  tls=none
sts-testing    reset          in clear  tls=none
sts-testing    resumed        in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
sts-testing    insists        deferred  4.7.0 530 5.7.0 Must issue a STARTTLS command first
sts-enforce    good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=sts
sts-enforce    expired        deferred  4.7.5 no TLS with HOP: certificate has expired (CERT_HAS_EXPIRED)
sts-enforce    wrong-name     deferred  4.7.5 no TLS with HOP: Host: hop.test. is not in the cert's altnames: DNS:other.test, IP Address:127.0.0.2 (ERR_TLS_CERT_ALTNAME_INVALID)
sts-enforce    self-signed    deferred  4.7.5 no TLS with HOP: self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)
sts-enforce    no-starttls    deferred  4.7.4 HOP offers no STARTTLS, and mail must not go there in clear: so says the MTA-STS policy of the domain
sts-enforce    454            deferred  4.7.4 HOP refused STARTTLS: 454 4.7.0 TLS not available
sts-enforce    reset          deferred  4.7.5 no TLS with HOP: ECONNRESET
sts-enforce    resumed        deferred  4.7.5 no TLS with HOP: self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)
dane           good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=dane
dane           expired        in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=dane
dane           wrong-name     in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=dane
dane           self-signed    in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=dane
dane           no-starttls    deferred  4.7.4 HOP offers no STARTTLS, and mail must not go there in clear: it has TLSA records
dane           454            deferred  4.7.4 HOP refused STARTTLS: 454 4.7.0 TLS not available
dane           reset          deferred  4.7.5 no TLS with HOP: ECONNRESET
dane           resumed        deferred  4.7.5 no TLS with HOP: its certificate is not the one that its TLSA records speak of
`;

interface Row {
  readonly level: string;
  readonly server: string;
  readonly hop: TlsHop;
  readonly port: number;
}

interface Line {
  readonly event: string;
  readonly queue: string;
  readonly tls?: string;
  readonly cipher?: string;
  readonly verified?: string;
  readonly dsn?: string;
  readonly why?: string;
  readonly reply?: string;
  readonly msg?: string;
}

function linesOf(cluster: Cluster): readonly Line[] {
  return cluster.gateway.log().split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Line);
}

/** What became of the mail of a row, by the log; undefined while it is on its way. */
function outcomeOf({ level, server, hop, port }: Row, lines: readonly Line[]): string | undefined {
  const name = `${level}-${server}`;
  const own = lines.filter(({ queue }) => queue === name || queue === `${name}/${name}.test`);
  const sent = own.find(({ event }) => event === 'delivered');
  const waits = own.find(({ event }) => event === 'suspended');
  const deferred = own.find(({ event }) => event === 'deferred');
  if (sent === undefined && waits === undefined && deferred === undefined) return undefined;
  const row = `${level.padEnd(13)}  ${server.padEnd(13)}`;
  if (sent === undefined && waits === undefined) return `${row}  deferred  ${deferred?.dsn ?? ''} ${deferred?.reply ?? ''}`;
  if (sent === undefined) return `${row}  deferred  ${waits?.dsn ?? ''} ${(waits?.why ?? '').replace(`${isByMx(level) ? NAME : HOST}[127.0.0.1]:${String(port)}`, 'HOP')}`;
  const where = hop.taken.at(-1)?.isSecure === true ? 'in TLS  ' : 'in clear';
  const more = sent.cipher === undefined ? '' : ` cipher=${sent.cipher} verified=${sent.verified ?? ''}`;
  return `${row}  ${where}  tls=${sent.tls ?? ''}${more}`;
}

/** The domain says it, not the route. */
function isByMx(level: string): boolean {
  return level.startsWith('sts') || level === 'dane';
}

/** Where the domains of the rows by MX lead; those with TLSA records have them proved. */
function zoneOf(rows: readonly Row[], shown: (server: string) => CertificateFiles | undefined): Map<string, readonly Answer[]> {
  const zone = new Map<string, readonly Answer[]>([[`A ${NAME}`, [{ type: 'A', name: NAME, ttl: 60, data: HOST }]]]);
  for (const { level, server, port } of rows) {
    const domain = `${level}-${server}.test`;
    zone.set(`MX ${domain}`, [{ type: 'MX', name: domain, ttl: 60, data: { preference: 10, exchange: NAME } }]);
    const certificate = shown(server);
    if (level === 'dane' && certificate !== undefined) {
      const key = new X509Certificate(readFileSync(certificate.certFile)).publicKey.export({ type: 'spki', format: 'der' });
      const name = `_${String(port)}._tcp.${NAME}`;
      zone.set(`TLSA ${name}`, [{ type: 'TLSA', name, ttl: 60, data: { usage: 3, selector: 1, matchingType: 1, certificate: createHash('sha256').update(key).digest() } }]);
    }
    if (!level.startsWith('sts')) continue;
    zone.set(`TXT _mta-sts.${domain}`, [{ type: 'TXT', name: `_mta-sts.${domain}`, ttl: 60, data: 'v=STSv1; id=1' } as Answer]);
    zone.set(`A mta-sts.${domain}`, [{ type: 'A', name: `mta-sts.${domain}`, ttl: 60, data: POLICY_HOST }]);
  }
  return zone;
}

test('each level of TLS with each kind of next hop: in TLS, in clear, or deferred', { timeout: 180_000 }, async (t) => {
  const certificates = makeCertificates();
  assert.ok(certificates !== undefined);
  const good = certificates.issue(NAME);
  const servers: Readonly<Record<string, TlsHopOptions>> = {
    'good': { certificate: good },
    'expired': { certificate: certificates.issue(NAME, -1) },
    'wrong-name': { certificate: certificates.issue('other.test') },
    'self-signed': { certificate: certificates.selfSigned(NAME) },
    'no-starttls': { offersStartTls: false },
    '454': { toStartTls: '454 4.7.0 TLS not available' },
    'reset': { handshake: 'reset' },
    'resumed': { certificate: certificates.selfSigned(NAME) },
    'insists': { handshake: 'reset', insists: true },
  };
  const rows: Row[] = [];
  for (const line of EXPECTED.trim().split('\n')) {
    const [level = '', server = ''] = line.split(/ +/);
    const hop = new TlsHop({ ...servers[server], isTlsFirst: level.startsWith('smtps') });
    rows.push({ level, server, hop, port: await hop.listen() });
  }
  const policies = new PolicyServer();
  await policies.listen(POLICY_HOST, 443);
  for (const { level, server } of rows) {
    const host = `mta-sts.${level}-${server}.test`;
    if (level.startsWith('sts')) policies.said.set(host, { certificate: certificates.issue(host), text: policyText(level.slice(4), [NAME]) });
  }
  // The one whose session could be resumed is none that the records speak of.
  const zone = zoneOf(rows, (server) => (server === 'resumed' ? good : servers[server]?.certificate ?? good));
  const names = await NameServer.start(t, (question) => {
    const answers = zone.get(question);
    const flags = /dane|hop\.test/.test(question) ? packet.AUTHENTIC_DATA : 0;
    return answers === undefined ? { rcode: 3, flags } : { answers, flags };
  });
  const routes = rows.map(({ level, server, port }) => ({
    domain: `${level}-${server}.test`, name: `${level}-${server}`,
    via: isByMx(level) ? `mx:${String(port)}` : `${level.startsWith('smtps') ? 'smtps' : 'smtp'}://127.0.0.1:${String(port)}`,
    ...(level === 'may' || isByMx(level) ? {} : { tls: level.replace('smtps-', '') }),
    ...(level.endsWith('verify') ? { ca_file: certificates.caFile, server_name: NAME } : {}),
  }));
  // Over these a session is begun unjudged before.
  const first = rows.filter(({ server }) => server === 'resumed').map(({ level, port }) => ({ domain: `first-${level}.test`, name: `first-${level}`, via: `smtp://127.0.0.1:${String(port)}` }));
  process.env['NODE_EXTRA_CA_CERTS'] = certificates.caFile;
  const cluster = await startCluster({
    routes: [...routes, ...first],
    gateway: { reports: 'discard', dns: { resolvers: [`127.0.0.1:${String(names.port)}`] }, delivery: { mx: { allow_private_addresses: true }, retry: { first: '5min', max: '1h' } } },
  });
  try {
    const talk = await SmtpTalk.start(cluster.smtpPort);
    for (const line of ['MAIL FROM:<a@example.org>', ...first.map(({ domain }) => `RCPT TO:<b@${domain}>`), 'DATA', 'Subject: x\r\n\r\nhello\r\n.']) {
      assert.match(await talk.say(line), /^[23]/, line);
    }
    await until('sessions are begun', () => rows.every(({ server, hop }) => server !== 'resumed' || hop.taken.length === 1), 30_000, cluster.gateway);
    for (const { server, hop } of rows) if (server === 'resumed') hop.taken.length = 0;
    const recipients = routes.map(({ domain }) => `RCPT TO:<b@${domain}>`);
    for (const line of ['MAIL FROM:<a@example.org>', ...recipients, 'DATA', 'Subject: x\r\n\r\nhello\r\n.', 'QUIT']) {
      assert.match(await talk.say(line), /^[23]/, line);
    }
    let outcomes: readonly (string | undefined)[] = [];
    const untilMs = performance.now() + 60_000;
    do {
      await pause(50);
      const lines = linesOf(cluster);
      outcomes = rows.map((row) => outcomeOf(row, lines));
    } while (outcomes.includes(undefined) && performance.now() < untilMs);
    assert.deepEqual(outcomes, EXPECTED.trim().split('\n'));
    judgeHops(rows);

    const events = linesOf(cluster).filter(({ event, msg = '' }) => event === 'tls' && msg.includes('in clear for an hour'));
    const causes = ['454 4.7.0 TLS not available', 'ECONNRESET'];
    assert.deepEqual(events.map(({ why = '' }) => why.replace(/^.*: /, '')).sort(), [...causes.flatMap((cause) => [cause, cause]), 'ECONNRESET', 'ECONNRESET']);
    assert.equal(rows.reduce((sum, { hop }) => sum + hop.resumed, 0), 0);
    const metrics = await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/metrics`)).text();
    assert.match(metrics, /^twinpost_tls_fallbacks_total 6$/m);
    const failing = (level: string): number => outcomes.filter((line) => line.startsWith(level) && line.includes('deferred')).length;
    // A host that failed is tried again after a second: on a slow machine before this is asked.
    const counted = (name: string): number => Number(new RegExp(`^twinpost_${name}_failures_total (\\d+)$`, 'm').exec(metrics)?.[1]);
    for (const [name, least] of [['dane', failing('dane ')], ['mta_sts', failing('sts-enforce ')]] as const) {
      assert.ok(least > 0 && counted(name) >= least && counted(name) <= 4 * least, `${name}: ${String(counted(name))} for ${String(least)}`);
    }
    const { rows: queues } = await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/api/v1/queues?limit=1000`)).json() as { readonly rows: readonly QueueAnswer[] };
    const told = (name: string): string | undefined => queues.find(({ queue_name }) => queue_name === name)?.tls;
    assert.deepEqual(
      ['none-good', 'verify-good', 'smtps-encrypt-expired', 'verify-expired'].map(told),
      ['none', 'TLSv1.3 TLS_AES_256_GCM_SHA384 verified=yes', 'TLSv1.3 TLS_AES_256_GCM_SHA384 verified=no', ''],
    );
  } finally {
    await cluster.stop();
    policies.close();
    for (const { hop } of rows) hop.close();
  }
});

/** Mail, and the second EHLO, go in TLS where TLS stands; who may fall back does so once, on a connection of its own. */
function judgeHops(rows: readonly Row[]): void {
  for (const { level, server, hop } of rows) {
    const name = `${level} ${server}`;
    const heard = hop.heard.join(' ');
    if (server === 'resumed') continue;
    const isFallback = (level === 'may' || level === 'sts-testing') && (server === '454' || server === 'reset');
    const mail = (mark: string): string => [`EHLO`, 'MAIL', 'RCPT', 'DATA'].map((verb) => mark + verb).join(' ');
    if (server === 'insists') assert.equal(heard, '| EHLO STARTTLS | EHLO MAIL RCPT DATA', name);
    else if (hop.taken.length === 0) assert.doesNotMatch(heard, /MAIL/, name);
    else if (isFallback) assert.ok(heard.startsWith(`| EHLO STARTTLS | ${mail('')}`), `${name}: ${heard}`);
    else if (!hop.taken[0]?.isSecure) assert.ok(heard.startsWith(`| ${mail('')}`), `${name}: ${heard}`);
    else assert.ok(heard.startsWith(`| ${level.startsWith('smtps') ? '' : 'EHLO STARTTLS '}${mail('*')}`), `${name}: ${heard}`);
  }
}
