/**
 * TLS with next hops, level by level: what becomes of mail when the next hop's certificate is good, expired, for another
 * name or signed by itself, when it offers no STARTTLS, refuses it, or resets the handshake. Real servers, real sockets,
 * one gateway process; the rows are read from its log and from what the servers heard.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { QueueAnswer } from '../../../src/admin-api/gateway-answers.js';
import { HOST, pause, startCluster } from '../../process/cluster.js';
import type { Cluster } from '../../process/cluster.js';
import { SmtpTalk } from '../../process/smtp-talk.js';
import { TlsHop, makeCertificates } from '../../process/tls-hop.js';
import type { TlsHopOptions } from '../../process/tls-hop.js';

const NAME = 'hop.test';

/** What each row's queue came to, in the order of the levels. A deferral is one of the next hop: its mail waits, in order. */
const EXPECTED = `
none           good           in clear  tls=none
none           expired        in clear  tls=none
none           wrong-name     in clear  tls=none
none           self-signed    in clear  tls=none
none           no-starttls    in clear  tls=none
none           454            in clear  tls=none
none           reset          in clear  tls=none
may            good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
may            expired        in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
may            wrong-name     in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
may            self-signed    in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
may            no-starttls    in clear  tls=none
may            454            in clear  tls=none
may            reset          in clear  tls=none
encrypt        good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
encrypt        expired        in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
encrypt        wrong-name     in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
encrypt        self-signed    in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=no
encrypt        no-starttls    deferred  4.7.4 HOP offers no STARTTLS, and mail must not go there in clear
encrypt        454            deferred  4.7.4 HOP refused STARTTLS: 454 4.7.0 TLS not available
encrypt        reset          deferred  4.7.5 no TLS with HOP: ECONNRESET
verify         good           in TLS    tls=TLSv1.3 cipher=TLS_AES_256_GCM_SHA384 verified=yes
verify         expired        deferred  4.7.5 no TLS with HOP: certificate has expired (CERT_HAS_EXPIRED)
verify         wrong-name     deferred  4.7.5 no TLS with HOP: Host: hop.test. is not in the cert's altnames: DNS:other.test, IP Address:127.0.0.2 (ERR_TLS_CERT_ALTNAME_INVALID)
verify         self-signed    deferred  4.7.5 no TLS with HOP: self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)
verify         no-starttls    deferred  4.7.4 HOP offers no STARTTLS, and mail must not go there in clear
verify         454            deferred  4.7.4 HOP refused STARTTLS: 454 4.7.0 TLS not available
verify         reset          deferred  4.7.5 no TLS with HOP: ECONNRESET
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
}

function linesOf(cluster: Cluster): readonly Line[] {
  return cluster.gateway.log().split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Line);
}

/** What became of the mail of a row, by the log; undefined while it is on its way. */
function outcomeOf({ level, server, hop, port }: Row, lines: readonly Line[]): string | undefined {
  const own = lines.filter(({ queue }) => queue === `${level}-${server}`);
  const sent = own.find(({ event }) => event === 'delivered');
  const waits = own.find(({ event }) => event === 'suspended');
  if (sent === undefined && waits === undefined) return undefined;
  const row = `${level.padEnd(13)}  ${server.padEnd(13)}`;
  if (sent === undefined) return `${row}  deferred  ${waits?.dsn ?? ''} ${(waits?.why ?? '').replace(`127.0.0.1[127.0.0.1]:${String(port)}`, 'HOP')}`;
  const where = hop.taken[0]?.isSecure === true ? 'in TLS  ' : 'in clear';
  const more = sent.cipher === undefined ? '' : ` cipher=${sent.cipher} verified=${sent.verified ?? ''}`;
  return `${row}  ${where}  tls=${sent.tls ?? ''}${more}`;
}

test('each level of TLS with each kind of next hop: in TLS, in clear, or deferred', { timeout: 120_000 }, async () => {
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
  };
  const rows: Row[] = [];
  for (const line of EXPECTED.trim().split('\n')) {
    const [level = '', server = ''] = line.split(/ +/);
    const hop = new TlsHop({ ...servers[server], isTlsFirst: level.startsWith('smtps') });
    rows.push({ level, server, hop, port: await hop.listen() });
  }
  const routes = rows.map(({ level, server, port }) => ({
    domain: `${level}-${server}.test`, name: `${level}-${server}`,
    via: `${level.startsWith('smtps') ? 'smtps' : 'smtp'}://127.0.0.1:${String(port)}`,
    ...(level === 'may' ? {} : { tls: level.replace('smtps-', '') }),
    ...(level.endsWith('verify') ? { ca_file: certificates.caFile, server_name: NAME } : {}),
  }));
  const cluster = await startCluster({ routes, gateway: { reports: 'discard' } });
  try {
    const talk = await SmtpTalk.start(cluster.smtpPort);
    const recipients = routes.map(({ domain }) => `RCPT TO:<b@${domain}>`);
    for (const line of ['MAIL FROM:<a@example.org>', ...recipients, 'DATA', 'Subject: x\r\n\r\nhello\r\n.', 'QUIT']) {
      assert.match(await talk.say(line), /^[23]/, line);
    }
    let outcomes: readonly (string | undefined)[] = [];
    const until = performance.now() + 60_000;
    do {
      await pause(50);
      const lines = linesOf(cluster);
      outcomes = rows.map((row) => outcomeOf(row, lines));
    } while (outcomes.includes(undefined) && performance.now() < until);
    assert.deepEqual(outcomes, EXPECTED.trim().split('\n'));
    judgeHops(rows);

    const events = linesOf(cluster).filter(({ event }) => event === 'tls');
    assert.deepEqual(events.map(({ why = '' }) => why.replace(/^.*: /, '')).sort(), ['454 4.7.0 TLS not available', 'ECONNRESET']);
    const metrics = await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/metrics`)).text();
    assert.match(metrics, /^twinpost_tls_fallbacks_total 2$/m);
    const { rows: queues } = await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/api/v1/queues?limit=1000`)).json() as { readonly rows: readonly QueueAnswer[] };
    const told = (name: string): string | undefined => queues.find(({ queue_name }) => queue_name === name)?.tls;
    assert.deepEqual(
      ['none-good', 'verify-good', 'smtps-encrypt-expired', 'verify-expired'].map(told),
      ['none', 'TLSv1.3 TLS_AES_256_GCM_SHA384 verified=yes', 'TLSv1.3 TLS_AES_256_GCM_SHA384 verified=no', ''],
    );
  } finally {
    await cluster.stop();
    for (const { hop } of rows) hop.close();
  }
});

/** Mail, and the second EHLO, go in TLS where TLS stands; who may fall back does so once, on a connection of its own. */
function judgeHops(rows: readonly Row[]): void {
  for (const { level, server, hop } of rows) {
    const name = `${level} ${server}`;
    const heard = hop.heard.join(' ');
    const isFallback = level === 'may' && (server === '454' || server === 'reset');
    const mail = (mark: string): string => [`EHLO`, 'MAIL', 'RCPT', 'DATA'].map((verb) => mark + verb).join(' ');
    if (hop.taken.length === 0) assert.doesNotMatch(heard, /MAIL/, name);
    else if (isFallback) assert.ok(heard.startsWith(`| EHLO STARTTLS | ${mail('')}`), `${name}: ${heard}`);
    else if (!hop.taken[0]?.isSecure) assert.ok(heard.startsWith(`| ${mail('')}`), `${name}: ${heard}`);
    else assert.ok(heard.startsWith(`| ${level.startsWith('smtps') ? '' : 'EHLO STARTTLS '}${mail('*')}`), `${name}: ${heard}`);
  }
}
