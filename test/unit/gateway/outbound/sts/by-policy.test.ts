/** Mail to domains that enforce a policy: which of their hosts get it, over which connections, and what TLSA records change; real DNS, HTTPS and TLS on loopback. */
import assert from 'node:assert/strict';
import { X509Certificate, createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { OWN_ORIGIN } from '../../../../../src/gateway/mail-types.js';
import type { TestContext } from 'node:test';
import packet from 'dns-packet';
import type { Answer } from 'dns-packet';
import { OUTBOUND_DEFAULTS } from '../../../../default-options.js';
import { createRouter } from '../../../../../src/gateway/queue/router.js';
import type { NextHopTls, OtherHost, TlsNeed } from '../../../../../src/gateway/mail-types.js';
import { MxLookup } from '../../../../../src/gateway/outbound/mx-lookup.js';
import { StsPolicies } from '../../../../../src/gateway/outbound/sts/sts-policies.js';
import type { PolicySource } from '../../../../../src/gateway/outbound/sts/sts-policies.js';
import { TlsCounts } from '../../../../../src/gateway/outbound/tls-reports/tls-counts.js';
import { TlsTally } from '../../../../../src/gateway/outbound/tls-reports/tls-tally.js';
import { DnsClient } from '../../../../../src/platform/node/dns/dns-client.js';
import { HttpsClient } from '../../../../../src/platform/node/https-client.js';
import { verifiedText } from '../../../../../src/platform/transport.js';
import { TlsHop, makeCertificates } from '../../../../process/tls-hop.js';
import type { CertificateFiles, TlsHopOptions } from '../../../../process/tls-hop.js';
import { NameServer } from '../../../platform/node/dns/name-server.js';
import { MemoryQueue, MemorySource, dispatcherFor, elsewhere, toldTo } from '../memory-source.js';
import { ScriptedServer } from '../scripted-server.js';
import { PolicyServer, policyText } from './policy-server.js';

const certificates = makeCertificates();
const needsTls = { timeout: 30_000, skip: certificates === undefined ? 'openssl is missing' : false };
const MX = 'mx.sts.example';
const certificate = certificates?.issue(MX);

interface World {
  readonly zone: Map<string, readonly Answer[]>;
  /** Answers to these are authentic. */
  readonly signed: Set<string>;
  readonly hop: TlsHop;
  readonly server: PolicyServer;
  readonly log: string[];
  readonly counts: TlsCounts;
  /** Domains whose policy was to be fetched anew, as mail could not go by it; and what failed. */
  readonly failures: string[];
  readonly port: number;
  /** Questions without an answer. */
  readonly broken: Set<string>;
  /** From now on policies count, or none does, as after a reload. */
  counting(areOn: boolean): void;
  /** The fallback of the route, set before anything is sent. */
  readonly others: OtherHost[];
  /** A domain at these hosts, with a policy unless that is ''. */
  domain(name: string, hosts: readonly string[], policy: string): void;
  send(domain: string, need?: TlsNeed): Promise<string>;
  /** So many more by the queue of an earlier one; the codes of all. */
  sendMore(domain: string, need: TlsNeed, count: number): Promise<readonly (string | undefined)[]>;
  /** As a flush of its queue does. */
  hasten(domain: string): void;
  /** Added to the clocks of policies. */
  readonly ahead: { ms: number };
  /** Next hops that are called down. */
  down(): readonly string[];
  relays(): readonly string[];
}

const MAY: NextHopTls = { level: 'may', isFirst: false, terms: { serverName: '', mustVerify: false, caFile: undefined } };

/** What the route says; the authority of the certificates is one that everybody trusts. */
async function world(t: TestContext, options: TlsHopOptions, tls = MAY): Promise<World> {
  assert.ok(certificates !== undefined);
  const zone = new Map<string, readonly Answer[]>();
  const signed = new Set<string>();
  const broken = new Set<string>();
  let areOn = true;
  const names = await NameServer.start(t, (question) => {
    if (broken.has(question)) return { rcode: 2 };
    const answers = zone.get(question);
    const flags = signed.has(question) ? packet.AUTHENTIC_DATA : 0;
    return answers === undefined ? { rcode: 3, flags } : { answers, flags };
  });
  const hop = new TlsHop(options);
  const port = await hop.listen();
  const server = new PolicyServer();
  const ca = readFileSync(certificates.caFile, 'latin1');
  const https = new HttpsClient({ port: await server.listen(), ca });
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-by-policy-'));
  const ahead = { ms: 0 };
  const clock = { nowMs: () => performance.now() + ahead.ms, wallMs: () => Date.now() + ahead.ms };
  const resolver = new DnsClient({ resolvers: [names.resolver], trustsAd: false }, clock);
  const mx = { ownNames: ['gw.test'], allowsPrivate: true, usesIpv6: false, usesMtaSts: true, connectionsMax: 20, connectionsPerAddressMax: 100 };
  const log: string[] = [];
  const policies = new StsPolicies(folder, { clock, log: toldTo(log), resolver, lookup: new MxLookup(mx, resolver), https, onFetched: () => undefined });
  const counts = new TlsCounts();
  const tally = new TlsTally(counts, clock, (domain) => policies.kept(domain)?.policy);
  const source = new MemorySource();
  const failures: string[] = [];
  const heard: PolicySource = {
    ask: (domain, done) => {
      if (areOn) policies.ask(domain, done);
      else done(undefined, false);
    },
    onFailure: (domain, what) => {
      failures.push(`${domain} ${what}`);
      policies.onFailure(domain);
    },
    hasten: (domain) => { policies.hasten(domain); },
    tick: () => { policies.tick(); },
  };
  const sending = { ...OUTBOUND_DEFAULTS, backoffFirstMs: 100, mx };
  const dispatcher = dispatcherFor(source, sending, () => true, resolver, Math.random, toldTo(log), heard, tally, ca);
  t.after(async () => {
    await dispatcher.stop(100);
    https.close();
    resolver.close();
    hop.close();
    server.close();
    await policies.flushed();
    rmSync(folder, { recursive: true });
  });
  const queues = new Map<string, MemoryQueue>();
  const others: OtherHost[] = [];
  return {
    zone, signed, broken, hop, server, log, counts, failures, port, others, ahead,
    hasten: (domain) => { dispatcher.hasten(queues.get(`${domain} `) ?? assert.fail('a queue')); },
    counting: (isOn) => {
      areOn = isOn;
      dispatcher.renew(sending);
    },
    relays: () => dispatcher.nextHops().map(({ relay }) => relay),
    down: () => dispatcher.nextHops().filter(({ downSinceWallMs }) => downSinceWallMs !== undefined).map(({ relay }) => relay),
    domain: (name, hosts, text) => {
      zone.set(`MX ${name}`, hosts.map((exchange, preference) => ({ type: 'MX', name, ttl: 0, data: { preference, exchange } })));
      for (const host of hosts) zone.set(`A ${host}`, [{ type: 'A', name: host, ttl: 0, data: '127.0.0.1' }]);
      if (text === '') return;
      const policyHost = `mta-sts.${name}`;
      zone.set(`TXT _${policyHost}`, [{ type: 'TXT', name: `_${policyHost}`, ttl: 0, data: 'v=STSv1; id=1' } as Answer]);
      zone.set(`A ${policyHost}`, [{ type: 'A', name: policyHost, ttl: 0, data: '127.0.0.1' }]);
      server.said.set(policyHost, { certificate: certificates.issue(policyHost), text });
    },
    sendMore: async (domain, need, count) => {
      const queue = queues.get(`${domain} ${need}`) ?? assert.fail('a queue');
      const before = source.ended.length;
      for (let i = 0; i < count; i++) source.put(queue, 1_000 + i, 'Subject: x\r\n\r\nhello\r\n');
      dispatcher.onReady(queue);
      await source.untilEnded(before + count);
      return source.ended.slice(before).map(({ result: { results } }) => results[0]?.enhanced);
    },
    send: async (domain, need) => {
      const key = `${domain} ${need ?? ''}`;
      const nextHop = { protocol: 'smtp', host: '', port, isByMx: true, tls, others } as const;
      const router = createRouter([{ name: 'out', domains: ['*'], nextHop, perDomain: true, ordering: 'fifo', concurrency: 5, lengthMax: 10 }]);
      const route = router.route(domain, 'mail', '', OWN_ORIGIN) ?? assert.fail('a route');
      const queue = queues.get(key) ?? new MemoryQueue(need === undefined ? route : router.withTls(route, need));
      queues.set(key, queue);
      const count = source.ended.length + 1;
      source.put(queue, count, 'Subject: x\r\n\r\nhello\r\n');
      dispatcher.onReady(queue);
      await source.untilEnded(count);
      const { results: [said], tls: had } = source.ended[count - 1]?.result ?? { results: [] };
      return `${said?.enhanced ?? ''} ${had === undefined ? 'none' : verifiedText(had)} ${said?.text ?? ''}`;
    },
  };
}

/** The domain's zone is signed, and its host has a TLSA record of the certificate. */
function prove({ zone, signed, port }: World, domain: string, host: string, { certFile }: CertificateFiles, usage = 3): void {
  const key = new X509Certificate(readFileSync(certFile)).publicKey.export({ type: 'spki', format: 'der' });
  const name = `_${String(port)}._tcp.${host}`;
  zone.set(`TLSA ${name}`, [{ type: 'TLSA', name, ttl: 0, data: { usage, selector: 1, matchingType: 1, certificate: createHash('sha256').update(key).digest() } }]);
  for (const question of [`MX ${domain}`, `A ${host}`, `TLSA ${name}`]) signed.add(question);
}

/** "domain policy successes failures details" of each. */
function counted({ counts }: World): readonly string[] {
  const lines: string[] = [];
  for (const day of counts.days()) {
    for (const of of counts.domains(day)) {
      const { domain, policies } = counts.take(day, of) ?? assert.fail('a domain');
      lines.push(...policies.map(({ type, successes, failures, details }) =>
        `${domain} ${type} ${String(successes)} ${String(failures)} ${details.map((each) => `${each.type} ${each.mxHost} ${each.address}`).join()}`.trim()));
    }
  }
  return lines;
}

describe('sessions with hosts by MX', () => {
  test('are counted once for each domain and connection, by what they came to', needsTls, async (t) => {
    const on = await world(t, { certificate });
    on.domain('plain.example', [MX], '');
    on.domain('other.example', [MX], '');
    on.domain('testing.example', [MX], policyText('testing', ['nothing.example']));
    on.domain('enforce.example', [MX], policyText('enforce', [MX]));
    await on.send('plain.example', 'optional');
    for (const domain of ['plain.example', 'plain.example', 'other.example', 'testing.example', 'enforce.example']) await on.send(domain);
    assert.deepEqual(counted(on), [
      'plain.example no-policy-found 1 0', 'other.example no-policy-found 1 0',
      `testing.example sts 0 1 validation-failure ${MX} 127.0.0.1`, 'enforce.example sts 1 0',
    ]);
  });

  test('are counted as failed: in clear where nothing else is offered, refused, or with a certificate of nobody\'s', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    const on = await world(t, { offersStartTls: false });
    on.domain('clear.example', ['c.sts.example'], '');
    await on.send('clear.example');
    on.hop.options = { toStartTls: '454 4.7.0 no' };
    on.domain('refused.example', ['r.sts.example'], '');
    await on.send('refused.example');
    on.hop.options = { certificate: certificates.selfSigned('s.sts.example') };
    on.domain('enforce.example', ['s.sts.example'], policyText('enforce', ['*.sts.example']));
    await on.send('enforce.example');
    assert.deepEqual(counted(on), [
      'clear.example no-policy-found 0 1 starttls-not-supported c.sts.example 127.0.0.1',
      'refused.example no-policy-found 0 1 starttls-not-supported r.sts.example 127.0.0.1',
      'enforce.example sts 0 1 certificate-not-trusted s.sts.example 127.0.0.1',
    ]);
  });
});

describe('mail to a domain that enforces a policy', () => {
  test('goes to hosts that the policy names, and to no other though it is preferred', needsTls, async (t) => {
    const on = await world(t, { certificate });
    on.domain('sts.example', ['first.other.example', MX], policyText('enforce', ['*.sts.example']));
    assert.match(await on.send('sts.example'), /^2\.0\.0 sts /);
    assert.deepEqual(on.hop.named, [MX]);
  });

  test('waits where the policy names none of its hosts, though a connection of before is there', needsTls, async (t) => {
    const on = await world(t, { certificate });
    on.domain('sts.example', [MX], '');
    on.domain('late.example', [MX], policyText('enforce', ['mx.late.example']));
    assert.match(await on.send('sts.example'), /^2\.0\.0 yes /);
    assert.match(await on.send('late.example'), /^4\.7\.5 none the MTA-STS policy of late\.example names none of its MX hosts$/);
    assert.equal(on.hop.taken.length, 1);
    assert.deepEqual(on.failures, ['late.example hosts'], 'the policy is fetched anew');
  });

  test('goes once its queue is flushed where the domain has mended its policy, under the same id or not', needsTls, async (t) => {
    const on = await world(t, { certificate });
    on.domain('sts.example', [MX], policyText('enforce', ['other.example']));
    assert.match(await on.send('sts.example'), /^4\.7\.5 /);
    on.domain('sts.example', [MX], policyText('enforce', [MX]));
    assert.match(await on.send('sts.example'), /^4\.7\.5 /);
    on.hasten('sts.example');
    assert.match(await on.send('sts.example'), /^4\.7\.5 /, 'who flushes at once again is no load');
    assert.equal(on.server.asked.length, 1);
    on.ahead.ms = 10_000;
    on.hasten('sts.example');
    assert.match(await on.send('sts.example'), /^2\.0\.0 sts /);
    assert.equal(on.server.asked.length, 2);
  });

  test('never goes over a connection that was begun without the policy, but over one of another that enforces it', needsTls, async (t) => {
    const on = await world(t, { certificate });
    on.domain('plain.example', [MX], '');
    on.domain('testing.example', [MX], policyText('testing', ['nothing.example']));
    on.domain('one.example', [MX], policyText('enforce', [MX]));
    on.domain('two.example', [MX], policyText('enforce', ['*.sts.example']));
    const said: string[] = [];
    for (const domain of ['plain.example', 'testing.example', 'one.example', 'two.example']) said.push((await on.send(domain)).slice(0, 9));
    assert.deepEqual([said, on.hop.connections], [['2.0.0 yes', '2.0.0 yes', '2.0.0 sts', '2.0.0 sts'], 2]);
  });

  test('goes nowhere by the way of before, once policies count again: not even while the DNS gives no answer', needsTls, async (t) => {
    const on = await world(t, { offersStartTls: false });
    on.domain('sts.example', [MX], policyText('enforce', [MX]));
    assert.match(await on.send('sts.example'), /^4\.7\.4 none .*so says the MTA-STS policy/);
    on.counting(false);
    assert.match(await on.send('sts.example'), /^2\.0\.0 none /);
    on.broken.add('MX sts.example');
    on.counting(true);
    assert.match(await on.send('sts.example'), /^4\.4\.3 none .*SERVFAIL/);
    on.broken.clear();
    on.counting(true);
    assert.match(await on.send('sts.example'), /^4\.7\.4 none .*so says the MTA-STS policy/);
    assert.equal(on.hop.taken.length, 1);
  });

  test('waits for a certificate for the host, and is told once', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    const on = await world(t, { certificate: certificates.issue('other.example') });
    on.domain('sts.example', [MX], policyText('enforce', [MX]));
    assert.match(await on.send('sts.example'), /^4\.7\.5 none no TLS with .*ERR_TLS_CERT_ALTNAME_INVALID/);
    assert.deepEqual(on.failures, ['sts.example tls'], 'the policy is fetched anew');
    assert.deepEqual([on.hop.taken, on.log], [[], [
      'tls a host does not do what the MTA-STS policy of a domain says: no mail of it goes there until that is mended',
      'nexthop next hop can not be reached',
    ]]);
  });

  test('waits for a certificate that has the host among its DNS names: a common name is none (RFC 8461 4.2)', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    const on = await world(t, { certificate: certificates.issueFor(MX, '') });
    on.domain('sts.example', [MX], policyText('enforce', [MX]));
    assert.match(await on.send('sts.example'), /^4\.7\.5 none no TLS with .*: the certificate has no DNS name in subjectAltName, and is to be for mx\.sts\.example/);
    assert.deepEqual(on.hop.taken, []);
  });

  test('does not go to the fallback of its route while a host fails by the policy, nor in clear while none takes connections', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    for (const [options, code] of [[{ certificate: certificates.selfSigned(MX) }, '4.7.5'], [{ offersStartTls: false }, '4.7.4']] as const) {
      const on = await world(t, options);
      const fallback = new ScriptedServer();
      await fallback.listen('127.0.0.2', on.port);
      t.after(() => { fallback.close(); });
      on.others.push({ host: elsewhere(2), port: on.port, preference: 65_536 });
      on.domain('sts.example', [MX], policyText('enforce', [MX]));
      on.domain('names.example', [MX], policyText('enforce', ['other.example']));
      for (let i = 0; i < 2; i++) assert.equal((await on.send('sts.example')).slice(0, 5), code);
      assert.deepEqual(on.down(), [`${MX}:${String(on.port)} and 1 more (sts)`]);
      assert.equal((await on.send('names.example')).slice(0, 5), '4.7.5');
      assert.equal(fallback.connections, 0);
      on.domain('away.example', ['mx.away.example'], policyText('enforce', ['mx.away.example']));
      on.zone.set('A mx.away.example', [{ type: 'A', name: 'mx.away.example', ttl: 0, data: '127.0.0.9' }]);
      assert.match(await on.send('away.example'), /^4\.7\.4 none at-2\.elsewhere\.test.* offers no STARTTLS, .*: so says the MTA-STS policy of the domain$/);
      assert.deepEqual([fallback.accepted.length, fallback.connections], [0, 1]);
    }
  });

  test('goes to the fallback of its route while the host that the policy names is away, whatever others the domain has: not where it names none', needsTls, async (t) => {
    for (const [named, code, taken] of [['mx.away.example', '2.0.0', 1], ['mx.none.example', '4.7.5', 0]] as const) {
      const on = await world(t, {});
      const fallback = new ScriptedServer();
      await fallback.listen('127.0.0.2', on.port);
      t.after(() => { fallback.close(); });
      on.others.push({ host: '127.0.0.2', port: on.port, preference: 65_536 });
      on.domain('away.example', ['mx.away.example', 'b.other.example'], policyText('enforce', [named]));
      on.zone.set('A mx.away.example', [{ type: 'A', name: 'mx.away.example', ttl: 0, data: '127.0.0.9' }]);
      on.signed.add('MX away.example');
      const said = await on.send('away.example');
      assert.deepEqual([said.slice(0, 5), fallback.accepted.length, on.hop.connections], [code, taken, 0], said);
    }
  });

  test('goes by the name of the host and by whom everybody trusts, whatever name and CAs the route means', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    const own = certificates.selfSigned('smart.example');
    const verify: NextHopTls = { level: 'verify', isFirst: false, terms: { serverName: 'smart.example', mustVerify: true, caFile: own.certFile } };
    const on = await world(t, { certificate }, verify);
    on.domain('plain.example', [MX], '');
    on.domain('sts.example', [MX], policyText('enforce', [MX]));
    assert.match(await on.send('sts.example'), /^2\.0\.0 sts /);
    on.hop.options = { certificate: own };
    assert.match(await on.send('plain.example'), /^2\.0\.0 yes /, 'the route counts where there is no policy');
    assert.deepEqual(on.hop.named, [MX, 'smart.example']);
  });

  test('goes by TLSA records alone to a host that has them, named by the policy or not; one without is not connected to', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    const own = certificates.selfSigned('whoever.example');
    const on = await world(t, { certificate: own });
    on.domain('sts.example', ['a.other.example', 'b.other.example'], policyText('enforce', [MX]));
    prove(on, 'sts.example', 'b.other.example', own);
    for (const question of ['A a.other.example', `TLSA _${String(on.port)}._tcp.a.other.example`]) on.signed.add(question);
    assert.match(await on.send('sts.example'), /^2\.0\.0 dane /);
    assert.deepEqual(on.hop.named, ['b.other.example']);
    assert.match(on.log.join('\n'), /^tls a host does not do what the MTA-STS policy/);
  });
});

test('TLSA records of which none is usable lead no mail to a host that the policy does not name', needsTls, async (t) => {
  const on = await world(t, { certificate });
  assert.ok(certificate !== undefined);
  on.domain('sts.example', [MX], policyText('enforce', ['other.example']));
  prove(on, 'sts.example', MX, certificate, 200);
  assert.match(await on.send('sts.example'), /^4\.7\.5 none .* has no usable TLSA records$/);
  assert.deepEqual(on.hop.taken, []);
  assert.deepEqual(counted(on), [`sts.example sts 0 1 validation-failure ${MX}`], 'it is the policy that it fails by');
});

test('a certificate that TLSA records judge fails by these, though the policy does not name the host', needsTls, async (t) => {
  const it = await world(t, { certificate });
  assert.ok(certificates !== undefined);
  it.domain('sts.example', [MX], policyText('enforce', ['other.example']));
  prove(it, 'sts.example', MX, certificates.selfSigned('whoever.example'));
  assert.match(await it.send('sts.example'), /^4\.7\.5 /);
  assert.match(it.log.join('\n'), /^tls a host does not do what its TLSA records say/);
  assert.deepEqual(counted(it).map((line) => line.split(' ').slice(0, 4).join(' ')), ['sts.example tlsa 0 1']);
});

describe('mail that must have TLS all the way', () => {
  test('fails where neither DNSSEC nor a policy proves the hosts, though TLS with them would be right', needsTls, async (t) => {
    const on = await world(t, { certificate, offers: ['REQUIRETLS'] });
    on.domain('plain.example', [MX], '');
    on.domain('testing.example', [MX], policyText('testing', [MX]));
    for (const domain of ['plain.example', 'testing.example']) {
      assert.equal(await on.send(domain, 'required'), `5.7.10 none mail to ${domain} must have TLS, and neither DNSSEC nor a policy proves its hosts`);
    }
    assert.deepEqual(on.hop.taken, []);
  });

  test('waits where the policy that may prove them can not be had now', needsTls, async (t) => {
    const on = await world(t, { certificate, offers: ['REQUIRETLS'] });
    on.domain('sick.example', [MX], policyText('enforce', [MX]));
    on.server.said.delete('mta-sts.sick.example');
    assert.match(await on.send('sick.example', 'required'), /^4\.7\.5 none .* is not known now$/);
    assert.deepEqual(on.hop.taken, []);
  });

  test('goes by a policy, by TLSA records, and by CAs where the DNS proves the host, if that promises it within TLS', needsTls, async (t) => {
    assert.ok(certificate !== undefined);
    const on = await world(t, { certificate, offers: [], offersInTls: ['REQUIRETLS'] });
    on.domain('policy.example', [MX], policyText('enforce', [MX]));
    on.domain('dane.example', ['mx.dane.example'], '');
    prove(on, 'dane.example', 'mx.dane.example', certificate);
    on.domain('signed.example', [MX], '');
    on.signed.add('MX signed.example');
    const said: string[] = [];
    for (const domain of ['policy.example', 'dane.example', 'signed.example']) said.push((await on.send(domain, 'required')).slice(0, 10));
    assert.deepEqual(said, ['2.0.0 sts ', '2.0.0 dane', '2.0.0 yes ']);
    assert.deepEqual(on.relays(), [
      `${MX}:${String(on.port)} (!tls, sts)`, `mx.dane.example:${String(on.port)} (!tls, dane of dane.example)`, `${MX}:${String(on.port)} (!tls, dane)`,
    ], 'status tells them apart');
  });

  test('fails where that is promised in clear alone; other mail goes there', needsTls, async (t) => {
    const on = await world(t, { certificate, offers: ['REQUIRETLS'], offersInTls: [] });
    on.domain('policy.example', [MX], policyText('enforce', [MX]));
    assert.match(await on.send('policy.example', 'required'), /^5\.7\.30 sts .* offers no REQUIRETLS, and mail must have TLS all the way$/);
    // A backlog of it too: not one message a back-off, and the host is not called down.
    const beganMs = performance.now();
    const codes = await on.sendMore('policy.example', 'required', 150);
    assert.deepEqual([codes.filter((code) => code === '5.7.30').length, performance.now() - beganMs < 10_000], [150, true]);
    assert.deepEqual([on.down(), on.log.some((line) => line.includes('can not be reached'))], [[], false]);
    assert.match(await on.send('policy.example'), /^2\.0\.0 sts /);
  });

  test('waits where the certificate is not right', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    const on = await world(t, { certificate: certificates.selfSigned(MX), offers: ['REQUIRETLS'] });
    on.domain('policy.example', [MX], policyText('enforce', [MX]));
    assert.match(await on.send('policy.example', 'required'), /^4\.7\.5 none no TLS with /);
  });
});

test('mail of which TLS is not asked goes whatever policy and TLSA records say of the certificate', needsTls, async (t) => {
  assert.ok(certificates !== undefined);
  const on = await world(t, { certificate: certificates.selfSigned('whoever.example') });
  on.domain('policy.example', [MX], policyText('enforce', ['other.example']));
  on.domain('dane.example', ['mx.dane.example'], '');
  prove(on, 'dane.example', 'mx.dane.example', certificates.selfSigned('other.example'));
  for (const domain of ['policy.example', 'dane.example']) {
    assert.match(await on.send(domain), /^4\.7\.5 /);
    assert.match(await on.send(domain, 'optional'), /^2\.0\.0 no /);
  }
});
