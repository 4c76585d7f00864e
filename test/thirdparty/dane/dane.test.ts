/**
 * Zones that are really signed (ldns), asked through a resolver that really validates (unbound): which hosts
 * by MX get mail, that Postfix's posttls-finger judges each of them as we do, and that `explain` says so
 * before.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { X509Certificate, createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { OUTBOUND_DEFAULTS } from '../../default-options.js';
import { TlsHop, makeCertificates } from '../../process/tls-hop.js';
import type { CertificateFiles } from '../../process/tls-hop.js';
import { contextFor } from '../../unit/cli/played-context.js';
import { MemoryQueue, MemorySource, dispatcherFor } from '../../unit/gateway/outbound/memory-source.js';
import { runCli } from '../../../src/cli/main.js';
import { DnsClient } from '../../../src/platform/node/dns/dns-client.js';
import { mustRun, runProgram } from '../support.js';

/** posttls-finger asks at port 53 alone, so nobody else may be there. */
const RESOLVER = '127.0.153.53';
const ZONE = 'signed.example';
/** TLS without a word on TLSA. */
const UNJUDGED = /^posttls-finger: certificate verification failed for [^\n]*self-signed[^]*TLS connection established/m;

interface Case {
  readonly label: string;
  /** Of its host; undefined: none. */
  readonly tlsa: string | undefined;
  /** The association is changed behind the signature. */
  readonly isForged?: boolean;
  readonly ours: RegExp;
  readonly postfix: RegExp;
  /** The line of `explain`. */
  readonly told: RegExp;
}

function digestOf({ certFile }: { readonly certFile: string }, selector: 'certificate' | 'key', algorithm = 'sha256'): string {
  const certificate = new X509Certificate(readFileSync(certFile));
  const data = selector === 'key' ? certificate.publicKey.export({ type: 'spki', format: 'der' }) : certificate.raw;
  return createHash(algorithm).update(data).digest('hex');
}

function zoneText(zone: string, port: number, cases: readonly Case[]): string {
  const lines = [`$ORIGIN ${zone}.`, '$TTL 60', `@ SOA ns root 1 3600 600 86400 60`, '@ NS ns', 'ns A 127.0.0.1'];
  for (const { label, tlsa } of cases) {
    lines.push(`${label} MX 10 mx.${label}`, `mx.${label} A 127.0.0.1`);
    if (tlsa !== undefined) lines.push(`_${port}._tcp.mx.${label} TLSA ${tlsa}`);
  }
  return `${lines.join('\n')}\n`;
}

/** Signs the zone, breaks what is to be broken, and starts the resolver for it and for one that is not signed. */
async function startResolver(t: TestContext, port: number, cases: readonly Case[], unsigned: readonly Case[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-dane-'));
  t.after(() => { rmSync(folder, { recursive: true, force: true }); });
  const file = (name: string): string => join(folder, name);
  writeFileSync(file('signed.zone'), zoneText(ZONE, port, cases));
  writeFileSync(file('unsigned.zone'), zoneText('unsigned.example', port, unsigned));
  const inFolder = `cd '${folder}' &&`;
  const key = (await mustRun('sh', ['-c', `${inFolder} ldns-keygen -a ECDSAP256SHA256 -k ${ZONE}`])).trim();
  await mustRun('sh', ['-c', `${inFolder} ldns-signzone signed.zone ${key}`]);
  let text = readFileSync(file('signed.zone.signed'), 'latin1');
  for (const { label, isForged } of cases) {
    if (isForged !== true) continue;
    const before = text;
    text = text.replace(new RegExp(`^(_${port}\\._tcp\\.mx\\.${label}\\..*TLSA\t3 1 1 )(.)`, 'm'), (_, head: string, digit: string) => head + (digit === '0' ? '1' : '0'));
    assert.notEqual(text, before);
  }
  writeFileSync(file('signed.zone.signed'), text);
  const zone = (name: string, zoneFile: string): string =>
    `auth-zone:\n  name: ${name}.\n  zonefile: ${file(zoneFile)}\n  for-downstream: no\n  for-upstream: yes\n  fallback-enabled: no\n`;
  writeFileSync(file('unbound.conf'), `server:
  interface: ${RESOLVER}
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "${folder}"
  pidfile: ""
  use-syslog: no
  module-config: "validator iterator"
  trust-anchor-file: ${file(`${key}.key`)}
remote-control:
  control-enable: no
${zone(ZONE, 'signed.zone.signed')}${zone('unsigned.example', 'unsigned.zone')}`);
  writeFileSync(file('resolv.conf'), `nameserver ${RESOLVER}\noptions trust-ad edns0\n`);
  const unbound = spawn('unbound', ['-d', '-c', file('unbound.conf')], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.after(() => { unbound.kill(); });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    unbound.once('exit', () => { reject(new Error(`unbound has ended: ${said}`)); });
    unbound.once('error', reject);
    unbound.stderr.on('data', (bytes: Buffer) => {
      said += bytes.toString('latin1');
      if (said.includes('start of service')) resolve();
    });
  });
  return file('resolv.conf');
}

test('hosts of a signed zone get mail as its TLSA records say, and Postfix says the same of each', { timeout: 120_000 }, async (t) => {
  const certificates = makeCertificates();
  assert.ok(certificates !== undefined);
  const leaf = certificates.selfSigned('any.name.example');
  const chained = (name: string): CertificateFiles => {
    const own = certificates.issue(name);
    const certFile = `${own.certFile}.chain`;
    writeFileSync(certFile, readFileSync(own.certFile, 'latin1') + readFileSync(certificates.caFile, 'latin1'));
    return { certFile, keyFile: own.keyFile };
  };
  const hop = new TlsHop({
    certificate: leaf,
    certificateOf: { [`mx.ta.${ZONE}`]: chained(`mx.ta.${ZONE}`), [`mx.domain.${ZONE}`]: chained(`domain.${ZONE}`), [`mx.name.${ZONE}`]: chained('another.example') },
  });
  const port = await hop.listen();
  t.after(() => { hop.close(); });
  const right = `3 1 1 ${digestOf(leaf, 'key')}`;
  const wrong = `3 1 1 ${digestOf({ certFile: certificates.caFile }, 'key')}`;
  const anchor = `2 0 1 ${digestOf({ certFile: certificates.caFile }, 'certificate')}`;
  const signed: readonly Case[] = [
    { label: 'right', tlsa: right, ours: /^2\.0\.0 dane /, postfix: /Verified TLS connection established/, told: /^mx\.right\S+ {2}TLS as its TLSA records say: 3 1 1 [0-9a-f]{16}…$/ },
    { label: 'whole', tlsa: `3 0 1 ${digestOf(leaf, 'certificate')}`, ours: /^2\.0\.0 dane /, postfix: /Verified TLS connection established/, told: /\S {2}TLS as its TLSA records say: 3 0 1 / },
    { label: 'longer', tlsa: `3 1 2 ${digestOf(leaf, 'key', 'sha512')}`, ours: /^2\.0\.0 dane /, postfix: /Verified TLS connection established/, told: /\S {2}TLS as its TLSA records say: 3 1 2 / },
    { label: 'wrong', tlsa: wrong, ours: /^4\.7\.5 clear .*not the one that its TLSA records speak of/, postfix: /num=65:no matching DANE TLSA records/, told: /^mx\.wrong\S+ {2}TLS as its TLSA records say: 3 1 1 / },
    { label: 'forged', tlsa: right, isForged: true, ours: /^4\.7\.5 clear .*a name of a signed zone: .*SERVFAIL/, postfix: /TLSA lookup error for mx\.forged/, told: /^mx\.forged\S+ {2}not connected to: no answer on TLSA of \S+, a name of a signed zone: .*SERVFAIL$/ },
    { label: 'none', tlsa: undefined, ours: /^2\.0\.0 no /, postfix: UNJUDGED, told: /^mx\.none\S+ {2}no TLSA records$/ },
    { label: 'ta', tlsa: anchor, ours: /^2\.0\.0 dane /, postfix: /Verified TLS connection established/, told: /\S {2}TLS as its TLSA records say: 2 0 1 / },
    { label: 'domain', tlsa: anchor, ours: /^2\.0\.0 dane /, postfix: /Verified TLS connection established/, told: /\S {2}TLS as its TLSA records say: 2 0 1 / },
    { label: 'name', tlsa: anchor, ours: /^4\.7\.5 clear .*is not for mx\.name/, postfix: /num=62:hostname mismatch/, told: /\S {2}TLS as its TLSA records say: 2 0 1 / },
    { label: 'own', tlsa: `2 0 1 ${digestOf(leaf, 'certificate')}`, ours: /^4\.7\.5 clear /, postfix: /num=65:no matching DANE TLSA records/, told: /\S {2}TLS as its TLSA records say: 2 0 1 / },
    { label: 'unusable', tlsa: right.replace('3 1 1', '1 1 1'), ours: /^2\.0\.0 no /, postfix: /unsupported TLSA certificate usage: 1 1 1 /, told: /^mx\.unusable\S+ {2}TLS, but none of its TLSA records can be used: 1 1 1 / },
  ];
  const unsigned: readonly Case[] = [{ label: 'wrong', tlsa: wrong, ours: /^2\.0\.0 no /, postfix: UNJUDGED, told: /^none asked for: no believed resolver says that the MX records are signed$/ }];
  const resolvConf = await startResolver(t, port, signed, unsigned);

  const clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };
  const resolver = new DnsClient({ resolvers: [{ host: RESOLVER, port: 53 }], trustsAd: false }, clock);
  const source = new MemorySource();
  const mx = { ownNames: ['gw.test'], allowsPrivate: true, usesIpv6: false, usesMtaSts: false, connectionsMax: 20, connectionsPerAddressMax: 100 };
  const dispatcher = dispatcherFor(source, { ...OUTBOUND_DEFAULTS, mx }, () => true, resolver, Math.random);
  t.after(async () => {
    await dispatcher.stop(100);
    resolver.close();
  });
  const configFile = join(mkdtempSync(join(tmpdir(), 'twinpost-dane-')), 'gateway.yaml');
  t.after(() => { rmSync(dirname(configFile), { recursive: true }); });
  writeFileSync(configFile, JSON.stringify({
    gateway: {
      id: 'gw-1', host: 'box-1', secret: 'sixteen-characters-and-more', hostname: 'gw.test', state_dir: dirname(configFile),
      dns: { resolvers: [`${RESOLVER}:53`] }, delivery: { mx: { allow_private_addresses: true, mta_sts: false } },
      routes: [{ domain: '*', via: `mx:${port}` }],
      smtp: { listen: ['127.0.0.1:2525'] },
      stores: ['s1', 's2'].map((id, at) => ({ id, host: `box-${at + 2}`, paths: [{ name: 'A', address: `127.0.0.1:${7401 + at}` }] })),
    },
  }));
  const all = [...signed.map((one) => ({ ...one, zone: ZONE })), ...unsigned.map((one) => ({ ...one, zone: 'unsigned.example' }))];
  for (const [at, { label, zone, ours, postfix, told }] of all.entries()) {
    const host = `${label}.${zone}`;
    const tls = { level: 'may', isFirst: false, terms: { serverName: '', mustVerify: false, caFile: undefined } } as const;
    const queue = new MemoryQueue({ queueName: host, nextHop: { protocol: 'smtp', host, port, isByMx: true, tls } });
    source.put(queue, at + 1, 'Subject: x\r\n\r\nhello\r\n');
    dispatcher.onReady(queue);
    await source.untilEnded(at + 1);
    const result = source.ended[at]?.result;
    const [said] = result?.results ?? [];
    const had = result?.tls === undefined ? 'clear' : result.tls.by === 'dane' ? 'dane' : 'no';
    assert.match(`${said?.enhanced ?? ''} ${had} ${said?.text ?? ''}`, ours, host);
    const finger = `mount --bind '${resolvConf}' /etc/resolv.conf && exec posttls-finger -c -l dane -o inet_protocols=ipv4 -o smtp_tls_dane_insecure_mx_policy=may '${host}:${port}'`;
    const { output } = await runProgram('unshare', ['--mount', 'sh', '-c', finger]);
    assert.match(output, postfix, `${host}: ${output}`);
    const printed: string[] = [];
    const code = await runCli(['explain', `x@${host}`, '--config', configFile], contextFor(printed));
    const dane = printed.filter((line) => line.startsWith('dane')).map((line) => line.replace(/^dane +/, ''));
    assert.match(dane.join('\n'), told, `${host}: ${printed.join('\n')}`);
    assert.equal(code, label === 'forged' ? 3 : 0, printed.join('\n'));
  }
  assert.ok(hop.taken.every(({ isSecure }) => isSecure));
});
