/**
 * Mail by MX to hosts with TLSA records: a real resolver asks a scripted name server on loopback, which is
 * believed; next hops speak TLS on real sockets.
 */
import assert from 'node:assert/strict';
import { X509Certificate, createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import packet from 'dns-packet';
import type { Answer } from 'dns-packet';
import { OUTBOUND_DEFAULTS } from '../../../default-options.js';
import type { NextHopTls, OtherHost, TlsLevel } from '../../../../src/gateway/mail-types.js';
import type { DispatcherOptions } from '../../../../src/gateway/outbound/dispatcher.js';
import { DnsClient } from '../../../../src/platform/node/dns/dns-client.js';
import { TlsHop, makeCertificates } from '../../../process/tls-hop.js';
import type { CertificateFiles, TlsHopOptions } from '../../../process/tls-hop.js';
import { NameServer } from '../../platform/node/dns/name-server.js';
import type { Scripted } from '../../platform/node/dns/name-server.js';
import { MemoryQueue, MemorySource, dispatcherFor, elsewhere, toldTo } from './memory-source.js';
import { ScriptedServer } from './scripted-server.js';

const certificates = makeCertificates();
const needsTls = { timeout: 30_000, skip: certificates === undefined ? 'openssl is missing' : false };

const DOMAIN = 'dane.example';
const HOST = 'mx.dane.example';
const TTL_S = 1;
const AD = packet.AUTHENTIC_DATA;

function mx(exchange: string, preference = 10): Answer {
  return { type: 'MX', name: 'x', ttl: TTL_S, data: { preference, exchange } };
}

function a(address: string): Answer {
  return { type: 'A', name: 'x', ttl: TTL_S, data: address };
}

/** "3 1 1" of a certificate. */
function tlsa(numbers: string, { certFile }: { readonly certFile: string }): Answer {
  const [usage = 0, selector = 0, matchingType = 0] = numbers.split(' ').map(Number);
  const certificate = new X509Certificate(readFileSync(certFile));
  const data = selector === 0 ? certificate.raw : certificate.publicKey.export({ type: 'spki', format: 'der' });
  const association = matchingType === 0 ? data : createHash('sha256').update(data).digest();
  return { type: 'TLSA', name: 'x', ttl: TTL_S, data: { usage, selector, matchingType, certificate: association } };
}

/** An answer of a signed zone. */
function signed(...answers: readonly Answer[]): Scripted {
  return { answers, flags: AD };
}

interface World {
  readonly zone: Map<string, Scripted>;
  readonly hop: TlsHop;
  readonly names: NameServer;
  readonly source: MemorySource;
  readonly log: string[];
  readonly port: number;
  /** The fallback of the route, set before anything is sent. */
  readonly others: OtherHost[];
  /** "TLSA" and the name that the host has. */
  tlsaOf(host: string): string;
  send(domain?: string, level?: TlsLevel | 'none', caFile?: string): Promise<readonly [code: string, text: string, verified: string]>;
  /** Its host, where it failed, may be tried now. */
  hasten(domain?: string): void;
}

async function world(t: TestContext, options: TlsHopOptions, more: Partial<DispatcherOptions> = {}, limits: Partial<DispatcherOptions['mx']> = {}): Promise<World> {
  const zone = new Map<string, Scripted>();
  const names = await NameServer.start(t, (question) => {
    const said = zone.get(question);
    if (said === undefined) return { flags: AD };
    const name = question.slice(question.indexOf(' ') + 1);
    return { ...said, answers: (said.answers ?? []).map((answer) => (answer.name === 'x' ? { ...answer, name } : answer)) };
  });
  const hop = new TlsHop(options);
  const port = await hop.listen();
  const clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };
  const resolver = new DnsClient({ resolvers: [names.resolver], trustsAd: false }, clock);
  const source = new MemorySource();
  const mxOptions = { ownNames: ['gw.test'], allowsPrivate: true, usesIpv6: false, usesMtaSts: false, connectionsMax: 20, connectionsPerAddressMax: 100, ...limits };
  const log: string[] = [];
  const dispatcher = dispatcherFor(source, { ...OUTBOUND_DEFAULTS, backoffFirstMs: 100, mx: mxOptions, ...more }, () => true, resolver, Math.random, toldTo(log));
  t.after(async () => {
    await dispatcher.stop(100);
    resolver.close();
    hop.close();
  });
  zone.set(`MX ${DOMAIN}`, signed(mx(HOST))).set(`A ${HOST}`, signed(a('127.0.0.1')));
  const queues = new Map<string, MemoryQueue>();
  const others: OtherHost[] = [];
  let entry = 0;
  const tlsOf = (level: TlsLevel, caFile: string | undefined): NextHopTls =>
    ({ level, isFirst: false, terms: { serverName: '', mustVerify: level === 'verify', caFile } });
  const queueOf = (domain: string, level: TlsLevel | 'none', caFile?: string): MemoryQueue => {
    const key = `${domain} ${level} ${caFile ?? ''}`;
    const tls = level === 'none' ? undefined : tlsOf(level, caFile);
    const queue = queues.get(key) ?? new MemoryQueue({ queueName: key, nextHop: { protocol: 'smtp', host: domain, port, isByMx: true, tls, others } });
    queues.set(key, queue);
    return queue;
  };
  return {
    zone, hop, names, source, log, port, others,
    hasten: (domain = DOMAIN) => { dispatcher.hasten(queueOf(domain, 'may')); },
    tlsaOf: (host) => `TLSA _${port}._tcp.${host}`,
    send: async (domain = DOMAIN, level = 'may', caFile) => {
      const queue = queueOf(domain, level, caFile);
      const count = source.ended.length + 1;
      source.put(queue, ++entry, 'Subject: x\r\n\r\nhello\r\n');
      dispatcher.onReady(queue);
      await source.untilEnded(count);
      const result = source.ended[count - 1]?.result;
      const [said] = result?.results ?? [];
      const { tls: had } = result ?? {};
      const verified = had === undefined ? 'clear' : had.by === 'dane' ? 'dane' : had.isVerified ? 'yes' : 'no';
      return [said?.enhanced ?? '', said?.text ?? '', verified];
    },
  };
}

function issue(name = HOST, days = 30): CertificateFiles {
  assert.ok(certificates !== undefined);
  return certificates.issue(name, days);
}

function selfSigned(name: string): CertificateFiles {
  assert.ok(certificates !== undefined);
  return certificates.selfSigned(name);
}

function ca(): { readonly certFile: string } {
  assert.ok(certificates !== undefined);
  return { certFile: certificates.caFile };
}

/** Shows the authority behind it. */
function withCa(own: CertificateFiles): CertificateFiles {
  const certFile = `${own.certFile}.chain`;
  writeFileSync(certFile, readFileSync(own.certFile, 'latin1') + readFileSync(ca().certFile, 'latin1'));
  return { certFile, keyFile: own.keyFile };
}

const LEVELS: readonly TlsLevel[] = ['may', 'encrypt', 'verify'];

describe('a host with TLSA records', () => {
  for (const level of LEVELS) {
    test(`gets mail by a certificate that they speak of, whoever has signed it, where the route says ${level}`, needsTls, async (t) => {
      const certificate = selfSigned('some.other.name');
      const on = await world(t, { certificate });
      on.zone.set(on.tlsaOf(HOST), signed(tlsa('3 1 1', certificate)));
      const [code, text, verified] = await on.send(DOMAIN, level);
      assert.deepEqual([code, verified], ['2.0.0', 'dane'], text);
      assert.deepEqual([on.hop.taken.map(({ isSecure }) => isSecure), on.hop.named], [[true], [HOST]]);
    });

    test(`gets no mail by another certificate, nor in clear, where the route says ${level}; told once`, needsTls, async (t) => {
      const on = await world(t, { certificate: issue() });
      on.zone.set(on.tlsaOf(HOST), signed(tlsa('3 1 1', issue())));
      for (let i = 0; i < 3; i++) {
        const [code, text] = await on.send(DOMAIN, level, ca().certFile);
        assert.equal(code, '4.7.5');
        assert.match(text, /^no TLS with mx\.dane\.example\[127\.0\.0\.1\]:\d+: its certificate is not the one that its TLSA records speak of$/);
      }
      assert.deepEqual([on.hop.taken, on.source.tlsFallbacks, on.source.daneFailures, on.hop.heard.filter((line) => line === 'MAIL' || line.startsWith('*'))], [[], 0, 3, []]);
      assert.equal(on.log.filter((line) => line.startsWith('tls ')).length, 1, on.log.join('\n'));
    });
  }

  test('gets mail when it is mended, and what fails later is told again', needsTls, async (t) => {
    const certificate = issue();
    const on = await world(t, { certificate }, { messagesPerConnectionMax: 1 });
    for (const [of, code] of [[issue(), '4.7.5'], [certificate, '2.0.0'], [issue(), '4.7.5']] as const) {
      on.zone.set(on.tlsaOf(HOST), signed(tlsa('3 1 1', of)));
      await until(async () => (await on.send())[0] === code);
    }
    assert.equal(on.log.filter((line) => line.startsWith('tls ')).length, 2, on.log.join('\n'));
  });

  test('gets nothing in clear: without STARTTLS, with a refused one, with a handshake that fails', needsTls, async (t) => {
    const certificate = issue();
    for (const [how, code, words] of [
      [{ offersStartTls: false }, '4.7.4', /offers no STARTTLS, and mail must not go there in clear: it has TLSA records$/],
      [{ toStartTls: '454 4.7.0 not now' }, '4.7.4', /refused STARTTLS: 454 4\.7\.0 not now$/],
      [{ handshake: 'reset' }, '4.7.5', /no TLS with .*: ECONNRESET$/],
      [{ tls: { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } }, '4.7.5', /no TLS with /],
    ] as const) {
      const on = await world(t, { certificate, ...how });
      on.zone.set(on.tlsaOf(HOST), signed(tlsa('3 1 1', certificate)));
      for (let i = 0; i < 2; i++) {
        const said = await on.send();
        assert.equal(said[0], code, said[1]);
        assert.match(said[1], words);
      }
      assert.deepEqual([on.hop.taken, on.source.tlsFallbacks], [[], 0]);
      assert.equal(on.log.filter((line) => line.startsWith('tls ')).length, 1, on.log.join('\n'));
    }
  });

  test('is not connected to while they can not be had; another host is', needsTls, async (t) => {
    const certificate = issue();
    const on = await world(t, { certificate });
    on.zone.set(on.tlsaOf(HOST), { rcode: 2 });
    const [code, text, verified] = await on.send();
    const why = `no connection to ${HOST}:${on.port}: no answer on TLSA of _${on.port}._tcp.${HOST}, a name of a signed zone: 127.0.0.1: SERVFAIL`;
    assert.deepEqual([code, text, verified, on.hop.connections], ['4.7.5', why, 'clear', 0]);
    assert.equal(on.log.filter((line) => line.startsWith('tls ')).length, 1, on.log.join('\n'));
    on.zone.set('MX two.example', signed(mx(HOST), mx('b.two.example', 20))).set('A b.two.example', signed(a('127.0.0.1')));
    assert.deepEqual((await on.send('two.example')).map((one, i) => (i === 1 ? '' : one)), ['2.0.0', '', 'no']);
    // Where no TLS is to be had, nobody asks.
    assert.deepEqual((await on.send(DOMAIN, 'none'))[2], 'clear');
  });

  test('that is too busy to talk has not failed by them', needsTls, async (t) => {
    const on = await world(t, {});
    const busy = new ScriptedServer();
    await busy.listen('127.0.0.2', on.port);
    t.after(() => { busy.close(); });
    busy.answer = (verb) => (verb === 'GREETING' ? '421 4.7.0 too busy' : undefined);
    on.zone.set(`A ${HOST}`, signed(a('127.0.0.2'))).set(on.tlsaOf(HOST), signed(tlsa('3 1 1', issue())));
    const [code, text] = await on.send();
    assert.deepEqual([code, on.log.filter((line) => line.startsWith('tls '))], ['4.7.0', []], text);
  });

  test('gets mail in TLS, unjudged, when none of them can be used; never in clear; verify judges as before', needsTls, async (t) => {
    const certificate = issue();
    const on = await world(t, { certificate });
    on.zone.set(on.tlsaOf(HOST), signed(tlsa('1 1 1', issue()), tlsa('3 1 9', issue())));
    assert.deepEqual((await on.send())[2], 'no');
    assert.deepEqual((await on.send(DOMAIN, 'verify', ca().certFile))[2], 'yes');
    assert.deepEqual((await on.send(DOMAIN, 'verify', selfSigned('x').certFile))[0], '4.7.5');
    const other = await world(t, { certificate, offersStartTls: false });
    other.zone.set(other.tlsaOf(HOST), signed(tlsa('1 1 1', issue())));
    assert.deepEqual((await other.send())[0], '4.7.4');
    assert.deepEqual(other.hop.taken, []);
  });

  test('does not go to the fallback of its route while it fails by them, however it fails', needsTls, async (t) => {
    const certificate = issue();
    for (const [how, records, code] of [
      [{ certificate }, signed(tlsa('3 1 1', issue())), '4.7.5'],
      [{ offersStartTls: false }, signed(tlsa('3 1 1', certificate)), '4.7.4'],
      [{ certificate, toStartTls: '454 4.7.0 not now' }, signed(tlsa('3 1 1', certificate)), '4.7.4'],
      [{ certificate, handshake: 'reset' }, signed(tlsa('3 1 1', certificate)), '4.7.5'],
      [{ certificate }, { rcode: 2 }, '4.7.5'],
    ] as const) {
      const on = await world(t, how);
      const fallback = await fallbackOf(t, on);
      on.zone.set(on.tlsaOf(HOST), records);
      // Another host of the domain is away: that does not let mail go there either.
      on.zone.set(`MX ${DOMAIN}`, signed(mx(HOST), mx('b.dane.example', 20))).set('A b.dane.example', signed(a('127.0.0.9')));
      const said: string[] = [];
      for (let i = 0; i < 3; i++) said.push((await on.send())[0]);
      assert.deepEqual(said.filter((one) => one !== '4.4.1' && one !== code), []);
      assert.deepEqual([fallback.connections, on.hop.taken], [0, []]);
      assert.equal(on.log.filter((line) => line.startsWith('tls ')).length, 1, on.log.join('\n'));
    }
  });

  test('goes to one that has none, rather than to the fallback, and to itself when it is mended', needsTls, async (t) => {
    const certificate = issue();
    const on = await world(t, { certificate }, { messagesPerConnectionMax: 1 });
    const fallback = await fallbackOf(t, on);
    const second = new ScriptedServer();
    await second.listen('127.0.0.3', on.port);
    t.after(() => { second.close(); });
    on.zone.set(on.tlsaOf(HOST), signed(tlsa('3 1 1', issue())));
    on.zone.set(`MX ${DOMAIN}`, signed(mx(HOST), mx('b.dane.example', 20))).set('A b.dane.example', signed(a('127.0.0.3')));
    assert.deepEqual([(await on.send())[2], second.accepted.length], ['clear', 1]);
    on.zone.set(on.tlsaOf(HOST), signed(tlsa('3 1 1', certificate)));
    await until(async () => (await on.send())[2] === 'dane');
    assert.equal(fallback.connections, 0);
  });

  test('goes to the fallback while it takes no connections: over TLS alone, in doubt too, unless it has none by proof', needsTls, async (t) => {
    const certificate = issue();
    for (const [records, address, had] of [
      [signed(tlsa('3 1 1', certificate)), signed(a('127.0.0.9')), 'TLS'], [signed(), { rcode: 2 }, 'TLS'], [signed(), signed(a('127.0.0.9')), 'clear'],
    ] as const) {
      for (const isInTls of [true, false]) {
        const on = await world(t, { certificate });
        on.zone.set(on.tlsaOf(HOST), records).set(`A ${HOST}`, address);
        const fallback = isInTls ? undefined : await fallbackOf(t, on);
        if (isInTls) on.others.push({ host: elsewhere(1), port: on.port, preference: 65_536 });
        const [code, text, verified] = await on.send();
        if (fallback === undefined) assert.deepEqual([code, verified], ['2.0.0', 'no'], text);
        else assert.deepEqual([code, fallback.accepted.length], had === 'TLS' ? ['4.7.4', 0] : ['2.0.0', 1], text);
        if (code === '4.7.4') assert.match(text, /offers no STARTTLS, .*: a host before it has TLSA records, or may have$/);
      }
    }
  });

  test('binds no fallback where it is no host, by proof, or has but addresses that are not connected to, and no records', needsTls, async (t) => {
    const certificate = issue();
    const proved = { rcode: 3, flags: AD };
    for (const [address, records, code] of [
      [proved, signed(), '2.0.0'], [signed(), signed(), '2.0.0'], [signed(a('127.0.0.1')), signed(), '2.0.0'],
      [{ rcode: 3, flags: 0 }, signed(), '4.7.4'], [signed(a('127.0.0.1')), signed(tlsa('3 1 1', certificate)), '4.7.4'], [signed(a('127.0.0.1')), { rcode: 2 }, '4.7.5'],
    ] as const) {
      const on = await world(t, { certificate }, {}, { allowsPrivate: false });
      on.zone.set(`A ${HOST}`, address).set(on.tlsaOf(HOST), records);
      const fallback = await fallbackOf(t, on);
      const [said, text] = await on.send();
      assert.deepEqual([said, fallback.accepted.length, on.hop.connections], [code, code === '2.0.0' ? 1 : 0, 0], text);
    }
  });

  test('in doubt asks for no TLS with a fallback on this machine, which gets nothing while it fails by them all the same', needsTls, async (t) => {
    for (const [address, code, taken] of [[{ rcode: 2 }, '2.0.0', 1], [signed(a('127.0.0.1')), '4.7.4', 0]] as const) {
      const on = await world(t, { offersStartTls: false });
      const fallback = await fallbackOf(t, on, '127.0.0.2');
      on.zone.set(`A ${HOST}`, address).set(on.tlsaOf(HOST), signed(tlsa('3 1 1', issue())));
      const [said, text, verified] = await on.send();
      assert.deepEqual([said, verified, fallback.accepted.length, fallback.connections], [code, 'clear', taken, taken], text);
    }
  });

  test('that failed by them only while its address had no room for another connection is forgiven when it answers: what fails later is told', needsTls, async (t) => {
    const certificate = issue();
    const on = await world(t, { handshake: 'reset', certificate }, { messagesPerConnectionMax: 1 }, { connectionsPerAddressMax: 1 });
    on.zone.set(on.tlsaOf(HOST), signed(tlsa('3 1 1', certificate)));
    const both = Promise.all([on.send(), on.send()]);
    await until(async () => Promise.resolve(on.source.daneFailures === 1));
    on.hop.options = { certificate };
    await both;
    await until(async () => Promise.resolve(on.hop.taken.length === 2));
    on.hop.options = { handshake: 'reset', certificate };
    assert.equal((await on.send())[0], '4.7.5');
    assert.equal(on.log.filter((line) => line.startsWith('tls ')).length, 2, on.log.join('\n'));
  });

  describe('that fails by them while mail is on its way to the fallback', () => {
    /**
     * Its first mail has gone in clear to the fallback, whose connection has another one now and does not answer; a
     * second connection there waits for its greeting. A third mail was told that the host's TLS is wrong.
     */
    async function failing(t: TestContext): Promise<readonly [on: World, fallback: ScriptedServer, first: Socket, second: Socket]> {
      const on = await world(t, { certificate: issue() }, { backoffFirstMs: 60_000 });
      const fallback = await fallbackOf(t, on);
      fallback.answer = (verb, connection) => (verb === 'GREETING' && connection === 2 ? '' : undefined);
      on.zone.set(`A ${HOST}`, signed(a('127.0.0.9')));
      assert.equal((await on.send())[0], '2.0.0');
      const [first] = fallback.sockets;
      first?.pause();
      void on.send();
      await until(async () => Promise.resolve(on.source.taken.length === 2));
      on.zone.set(`A ${HOST}`, signed(a('127.0.0.1'))).set(on.tlsaOf(HOST), signed(tlsa('3 1 1', issue())));
      await gone();
      on.hasten();
      assert.equal((await on.send())[0], '4.7.5');
      await until(async () => Promise.resolve(fallback.connections === 2));
      const [, second] = fallback.sockets;
      assert.ok(first !== undefined && second !== undefined);
      return [on, fallback, first, second];
    }

    const mails = ({ verbs }: ScriptedServer): number => verbs.filter((verb) => verb === 'MAIL').length;

    test('has no more go there: neither behind the dot of that mail, nor when that is taken', needsTls, async (t) => {
      const [on, fallback, first] = await failing(t);
      void on.send();
      first.resume();
      await until(async () => Promise.resolve(fallback.open === 1 || mails(fallback) > 2));
      assert.deepEqual([mails(fallback), fallback.accepted.length, fallback.verbs.at(-1), on.source.taken.length], [2, 2, 'QUIT', 3]);
    });

    test('has that mail not go there once more by a connection that is ready now', needsTls, async (t) => {
      const [on, fallback, first, second] = await failing(t);
      first.destroy();
      await until(async () => Promise.resolve(fallback.open === 1));
      second.write('220 scripted\r\n');
      await until(async () => Promise.resolve(fallback.open === 0 || mails(fallback) > 1));
      assert.deepEqual([mails(fallback), fallback.verbs.at(-1)], [1, 'QUIT']);
      on.hasten();
      await on.source.untilEnded(3);
      assert.deepEqual(on.source.ended.map(({ entry, result }) => [entry, result.results[0]?.enhanced]), [[1, '2.0.0'], [3, '4.7.5'], [2, '4.7.5']]);
    });
  });

  test('counts only if the DNS proves each step to it: else as the route says', needsTls, async (t) => {
    const certificate = issue();
    const wrong = issue();
    for (const unproved of [`MX ${DOMAIN}`, `A ${HOST}`, 'TLSA']) {
      const on = await world(t, { certificate });
      const question = unproved === 'TLSA' ? on.tlsaOf(HOST) : unproved;
      on.zone.set(on.tlsaOf(HOST), signed(tlsa('3 1 1', wrong)));
      on.zone.set(question, { ...on.zone.get(question), flags: 0 });
      assert.deepEqual((await on.send()).map((one, i) => (i === 1 ? '' : one)), ['2.0.0', '', 'no']);
      assert.equal(on.names.asked.includes(on.tlsaOf(HOST)), unproved === 'TLSA', 'asked for only where it may count');
    }
  });

  test('that has none, by proof, gets mail as the route says', needsTls, async (t) => {
    const on = await world(t, { certificate: issue(), offersStartTls: false });
    assert.deepEqual((await on.send()).map((one, i) => (i === 1 ? '' : one)), ['2.0.0', '', 'clear']);
    assert.ok(on.names.asked.includes(on.tlsaOf(HOST)));
  });

  test('that is the domain itself, without an MX record by proof, has them as well', needsTls, async (t) => {
    const certificate = issue();
    const on = await world(t, { certificate });
    on.zone.set('A plain.example', signed(a('127.0.0.1')));
    on.zone.set(on.tlsaOf('plain.example'), signed(tlsa('3 1 1', certificate)));
    assert.equal((await on.send('plain.example'))[2], 'dane');
    on.zone.set('MX unsigned.example', { flags: 0 }).set('A unsigned.example', signed(a('127.0.0.1')));
    on.zone.set(on.tlsaOf('unsigned.example'), signed(tlsa('3 1 1', certificate)));
    assert.equal((await on.send('unsigned.example'))[2], 'no');
  });

  test('by a trust anchor must be named in its certificate: itself, or the domain that has it for itself', needsTls, async (t) => {
    for (const [name, domain, code] of [
      [HOST, DOMAIN, '2.0.0'], [DOMAIN, DOMAIN, '2.0.0'], ['*.dane.example', DOMAIN, '2.0.0'], [HOST, 'guest.example', '2.0.0'],
      [DOMAIN, 'guest.example', '4.7.5'], ['guest.example', 'guest.example', '4.7.5'], ['mx.elsewhere.example', DOMAIN, '4.7.5'],
    ] as const) {
      const on = await world(t, { certificate: withCa(issue(name)) });
      on.zone.set('MX guest.example', signed(mx(HOST)));
      on.zone.set(on.tlsaOf(HOST), signed(tlsa('2 1 1', ca())));
      const [said, text, verified] = await on.send(domain);
      assert.equal(said, code, `${name} for ${domain}: ${text}`);
      assert.equal(verified, code === '2.0.0' ? 'dane' : 'clear');
      if (code === '4.7.5') assert.match(text, /: its certificate, by its TLSA records, is not for mx\.dane\.example( or dane\.example)?$/);
    }
  });

  test('by a trust anchor is not taken when its certificate has expired, or who has signed it did not come along', needsTls, async (t) => {
    const on = await world(t, { certificate: withCa(issue(HOST, -1)) }, { messagesPerConnectionMax: 1 });
    on.zone.set(on.tlsaOf(HOST), signed(tlsa('2 0 1', ca())));
    assert.match((await on.send())[1], /a certificate that leads to its TLSA records has expired, or is not valid yet$/);
    on.hop.options = { certificate: issue() };
    assert.match((await on.send())[1], /its certificate is not the one that its TLSA records speak of$/);
    on.zone.set(on.tlsaOf(HOST), signed(tlsa('2 0 0', ca())));
    await until(async () => (await on.send())[2] === 'dane');
  });

  test('that is an alias has its records where it leads to, else under its own name', needsTls, async (t) => {
    const certificate = issue();
    const target = 'real.elsewhere.example';
    const leads = (flags: number): Scripted => ({ flags, answers: [{ type: 'CNAME', name: HOST, ttl: TTL_S, data: target }, { type: 'A', name: target, ttl: TTL_S, data: '127.0.0.1' }] });
    const alias: Answer = { type: 'CNAME', name: HOST, ttl: TTL_S, data: target };
    const right = signed(tlsa('3 1 1', certificate));
    for (const [what, zone, verified, named] of [
      ['records at both', (on: World) => on.zone.set(`A ${HOST}`, leads(AD)).set(on.tlsaOf(target), right).set(on.tlsaOf(HOST), signed(tlsa('3 1 1', issue()))), 'dane', target],
      ['records at its own', (on: World) => on.zone.set(`A ${HOST}`, leads(AD)).set(on.tlsaOf(HOST), right), 'dane', HOST],
      ['leads out of a signed zone', (on: World) => on.zone.set(`A ${HOST}`, leads(0)).set(`CNAME ${HOST}`, signed(alias)).set(on.tlsaOf(HOST), right).set(on.tlsaOf(target), signed(tlsa('3 1 1', issue()))), 'dane', HOST],
      ['not signed at all', (on: World) => on.zone.set(`A ${HOST}`, leads(0)).set(`CNAME ${HOST}`, { answers: [alias], flags: 0 }).set(on.tlsaOf(HOST), signed(tlsa('3 1 1', issue()))), 'no', HOST],
      ['no answer on its alias', (on: World) => on.zone.set(`A ${HOST}`, leads(0)).set(`CNAME ${HOST}`, { rcode: 2 }), 'clear', undefined],
    ] as const) {
      const on = await world(t, { certificate });
      zone(on);
      const [code, text, had] = await on.send();
      assert.deepEqual([had, on.hop.named[0]], [verified, named], `${what}: ${text}`);
      assert.equal(code, verified === 'clear' ? '4.7.5' : '2.0.0', what);
    }
  });

  test('has none where the name that they would stand under is too long to be one', needsTls, async (t) => {
    const on = await world(t, { certificate: issue() });
    const long = `${'l.'.repeat(120)}example`;
    on.zone.set(`MX ${DOMAIN}`, signed(mx(long))).set(`A ${long}`, signed(a('127.0.0.1')));
    const [code, text, had] = await on.send();
    assert.deepEqual([code, had], ['2.0.0', 'no'], text);
    assert.equal(on.names.asked.some((question) => question.startsWith('TLSA')), false);
  });

  test('is never served by a connection that was begun without them: each way has its own', needsTls, async (t) => {
    const certificate = issue();
    const on = await world(t, { certificate });
    on.zone.set(on.tlsaOf(HOST), signed(tlsa('3 1 1', certificate)));
    on.zone.set('MX guest.example', { answers: [mx(HOST)], flags: 0 }).set('MX other.example', signed(mx(HOST))).set('MX third.example', signed(mx(HOST)));
    const had: string[] = [];
    for (const domain of ['guest.example', 'other.example', 'third.example', DOMAIN, 'guest.example', 'other.example']) had.push((await on.send(domain))[2]);
    assert.deepEqual(had, ['no', 'dane', 'dane', 'dane', 'no', 'dane']);
    assert.equal(on.hop.connections, 3, 'one unproved, one shared, and one that takes a certificate for the domain as well');
  });

  test('loses its memory of a TLS that failed: what was in clear is not, once there are records', needsTls, async (t) => {
    const certificate = issue();
    const on = await world(t, { certificate, handshake: 'reset' }, { messagesPerConnectionMax: 1 });
    assert.deepEqual([(await on.send())[2], on.source.tlsFallbacks], ['clear', 1]);
    on.hop.options = { certificate };
    assert.equal((await on.send())[2], 'clear', 'for an hour');
    on.zone.set(on.tlsaOf(HOST), signed(tlsa('3 1 1', certificate)));
    await until(async () => (await on.send())[2] === 'dane');
  });
});

/** Takes mail in clear, behind all hosts of the DNS. */
async function fallbackOf(t: TestContext, { others, port }: World, host = elsewhere(2)): Promise<ScriptedServer> {
  const server = new ScriptedServer();
  await server.listen('127.0.0.2', port);
  t.after(() => { server.close(); });
  others.push({ host, port, preference: 65_536 });
  return server;
}

/** What the DNS said so far. */
async function gone(): Promise<void> {
  await new Promise((resolve) => { setTimeout(resolve, 1_000 * TTL_S + 200); });
}

/** Answers are kept for a second here: until then the old one counts. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!await isSo()) {
    assert.ok(performance.now() < endMs, 'it takes too long');
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
}
