/** Reports on TLS: what is counted of sessions, what stands in the JSON and the mail, whom it goes to; real DNS and HTTPS on loopback. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { Answer } from 'dns-packet';
import { createRouter } from '../../../../../src/gateway/queue/router.js';
import { REFUSED } from '../../../../../src/gateway/mail-types.js';
import { MxLookup } from '../../../../../src/gateway/outbound/mx-lookup.js';
import type { StsPolicy } from '../../../../../src/gateway/outbound/pure/sts-policy.js';
import { TlsReporter } from '../../../../../src/gateway/outbound/tls-reports/tls-reporter.js';
import { TlsCounts } from '../../../../../src/gateway/outbound/tls-reports/tls-counts.js';
import { TlsTally } from '../../../../../src/gateway/outbound/tls-reports/tls-tally.js';
import { DnsClient } from '../../../../../src/platform/node/dns/dns-client.js';
import type { Resolver } from '../../../../../src/platform/resolver.js';
import { HttpsClient } from '../../../../../src/platform/node/https-client.js';
import { MemoryReception } from '../../../../dialog/memory-reception.js';
import { makeCertificates } from '../../../../process/tls-hop.js';
import { NameServer } from '../../../platform/node/dns/name-server.js';
import { PolicyServer } from '../sts/policy-server.js';
import { toldTo } from '../memory-source.js';

const certificates = makeCertificates();
const needsTls = { timeout: 30_000, skip: certificates === undefined ? 'openssl is missing' : false };
const DAY_MS = 86_400_000;
const US = { organization: 'Us & Söhne', contact: 'tls@us.example', hostName: 'gw.test' };
/** 2026-11-26 12:00 UTC. */
const NOON_MS = Date.UTC(2026, 10, 26, 12);
const SESSION = { mxHost: 'mx.a.example', address: '192.0.2.1', source: '9.9.9.9', dane: undefined };
const TLSA = { usage: 3, selector: 1, matching: 1, association: new Uint8Array(32).fill(0xab) };
const GOOD = { version: 'TLSv1.3', cipher: 'x', isVerified: true };
const BAD = { ...GOOD, isVerified: false, whyNot: 'DEPTH_ZERO_SELF_SIGNED_CERT' };

const SERVFAIL = 'SERVFAIL';
const STEP_MS = 60_000;

interface World {
  readonly tally: TlsTally;
  readonly reporter: TlsReporter;
  readonly reception: MemoryReception;
  readonly server: PolicyServer;
  readonly sent: string[];
  readonly names: NameServer;
  aheadMs: number;
  /** Ticks until so many reports were sent, or could not be. */
  until(count: number, isOnce?: boolean): Promise<void>;
}

async function world(t: TestContext, zone: Readonly<Record<string, string>>, policy?: StsPolicy, allowsPrivate = true): Promise<World> {
  assert.ok(certificates !== undefined);
  const names = await NameServer.start(t, (question) => {
    const data = zone[question];
    const [type = '', name = ''] = question.split(' ');
    if (data === SERVFAIL) return { rcode: 2 };
    return data === undefined ? { rcode: 3 } : { answers: [{ type, name, ttl: 0, data } as Answer] };
  });
  const server = new PolicyServer();
  const https = new HttpsClient({ port: await server.listen(), ca: readFileSync(certificates.caFile, 'latin1') });
  const begunMs = performance.now();
  const clock = { nowMs: () => performance.now() + on.aheadMs, wallMs: () => NOON_MS + performance.now() - begunMs + on.aheadMs };
  const client = new DnsClient({ resolvers: [names.resolver], trustsAd: false }, clock);
  let asked = 0;
  const resolver: Resolver = {
    ask: (name, type, done, withinMs) => {
      asked++;
      client.ask(name, type, (answer) => { asked--; done(answer); }, withinMs);
    },
  };
  t.after(() => {
    https.close();
    client.close();
    server.close();
  });
  const counts = new TlsCounts();
  const tally = new TlsTally(counts, clock, () => policy);
  const reception = new MemoryReception();
  const sent: string[] = [];
  const router = createRouter([{ domains: ['*'], name: 'out', nextHop: { protocol: 'smtp', host: '', port: 25, isByMx: true }, perDomain: true, ordering: 'fifo', concurrency: 1, lengthMax: 10 }]);
  const lookup = new MxLookup({ ownNames: [], allowsPrivate, usesIpv6: false, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 }, resolver);
  let reporter: TlsReporter | undefined;
  const on: World = {
    tally, reception, server, sent, names, aheadMs: 0,
    get reporter() { return reporter ??= made(); },
    until: async (count, isOnce = false) => {
      while (sent.length < count || isOnce) {
        // Hours of waiting go by in moments, but none while somebody is asked.
        if (asked === 0) on.aheadMs += STEP_MS;
        on.reporter.tick(clock.nowMs(), US);
        await new Promise((resolve) => { setTimeout(resolve, 2); });
        if (isOnce) return;
      }
    },
  };
  const made = (): TlsReporter => new TlsReporter({
    isWhole: () => true, counts, clock, log: toldTo([]), resolver, lookup, https, reception, router, signer: undefined, onSent: (how) => { sent.push(how); },
  });
  on.reporter.tick(clock.nowMs(), US);
  return on;
}

function json(gzipped: Uint8Array): unknown {
  return JSON.parse(gunzipSync(gzipped).toString()) as unknown;
}

describe('reports on TLS', () => {
  test('go by mail when the day is over: sessions by policy, what failed, and how', needsTls, async (t) => {
    const policy: StsPolicy = { mode: 'testing', mx: ['mx.a.example'], maxAgeS: 86_400 };
    const on = await world(t, { 'TXT _smtp._tls.a.example': 'v=TLSRPTv1; rua=mailto:tls@reports.example' }, policy);
    on.tally.onSession('a.example', SESSION, GOOD);
    on.tally.onSession('a.example', SESSION, BAD);
    on.tally.onSession('a.example', SESSION, BAD);
    on.tally.onSession('a.example', { ...SESSION, mxHost: 'other.example', address: '192.0.2.2' }, GOOD);
    const dane = { records: [TLSA, { ...TLSA, usage: 2, association: new Uint8Array(5_000) }], names: ['mx.a.example', 'a.example'] };
    on.tally.onSession('a.example', { ...SESSION, dane }, { ...GOOD, by: 'dane' });
    on.tally.onSession('a.example', { ...SESSION, dane: { records: [{ ...TLSA, usage: 0 }], names: ['mx2.a.example'] } }, GOOD);
    // An address of our own network is nobody's business.
    on.tally.onFailedSession('a.example', { ...SESSION, source: '10.1.2.3', address: '', dane: { records: [], names: ['mx3.a.example'] } }, 'no answer on TLSA of it');
    on.tally.onSession('a.example', SESSION, undefined);
    on.tally.onFetched('a.example', 'fetched');
    on.tally.onFetched('a.example', 'untrusted');
    on.aheadMs += 1000;
    on.reporter.tick(performance.now() + on.aheadMs, US);
    assert.equal(on.reception.kept.length, 0);
    on.aheadMs += DAY_MS / 2;
    await on.until(1);
    const [{ submission, content } = assert.fail('a mail')] = on.reception.kept;
    assert.deepEqual([submission.reversePath, submission.groups.map(({ route, recipients }) => [route.queueName, recipients[0]?.address])], ['tls@us.example', [['out/reports.example!any', 'tls@reports.example']]]);
    const text = content.toString('latin1');
    const lines = text.split('\r\n');
    assert.ok(lines.every((line) => line.length <= 998 && /^[\t -~]*$/.test(line)), text);
    for (const line of ['From: <tls@us.example>', 'To: <tls@reports.example>', 'TLS-Report-Domain: a.example', 'TLS-Report-Submitter: gw.test', 'TLS-Required: No', 'Content-Type: multipart/report; report-type="tlsrpt";', 'Content-Type: application/tlsrpt+gzip']) assert.ok(lines.includes(line), line);
    assert.match(text, /^Subject: Report Domain: a\.example\r\n Submitter: gw\.test\r\n Report-ID: <\S+>\r$/m);
    assert.match(text, /^\tfilename="gw\.test!a\.example!1795651200!1795737599!\w+\.json\.gz"\r$/m);
    const [, boundary = ''] = /boundary="(.*)"/.exec(text) ?? [];
    const part = text.split(`--${boundary}`)[2] ?? '';
    const told = json(Buffer.from(part.slice(part.indexOf('\r\n\r\n')), 'base64')) as Readonly<Record<string, unknown>>;
    assert.match(String(told['report-id']), /^\w+$/);
    assert.deepEqual({ ...told, 'report-id': '' }, {
      'organization-name': 'Us & Söhne', 'contact-info': 'tls@us.example', 'report-id': '',
      'date-range': { 'start-datetime': '2026-11-26T00:00:00Z', 'end-datetime': '2026-11-26T23:59:59Z' },
      'policies': [
        {
          'policy': { 'policy-type': 'sts', 'policy-string': ['version: STSv1', 'mode: testing', 'mx: mx.a.example', 'max_age: 86400'], 'policy-domain': 'a.example', 'mx-host': ['mx.a.example'] },
          'summary': { 'total-successful-session-count': 1, 'total-failure-session-count': 5 },
          'failure-details': [
            { 'result-type': 'certificate-not-trusted', 'sending-mta-ip': '9.9.9.9', 'receiving-mx-hostname': 'mx.a.example', 'receiving-ip': '192.0.2.1', 'failed-session-count': 2, 'failure-reason-code': 'DEPTH_ZERO_SELF_SIGNED_CERT' },
            { 'result-type': 'validation-failure', 'sending-mta-ip': '9.9.9.9', 'receiving-mx-hostname': 'other.example', 'receiving-ip': '192.0.2.2', 'failed-session-count': 1, 'failure-reason-code': 'the policy does not name the host' },
            { 'result-type': 'starttls-not-supported', 'sending-mta-ip': '9.9.9.9', 'receiving-mx-hostname': 'mx.a.example', 'receiving-ip': '192.0.2.1', 'failed-session-count': 1 },
            { 'result-type': 'sts-webpki-invalid', 'failed-session-count': 1, 'failure-reason-code': 'untrusted' },
          ],
        },
        { 'policy': { 'policy-type': 'tlsa', 'policy-string': [`3 1 1 ${'AB'.repeat(32)}`], 'policy-domain': 'mx.a.example' }, 'summary': { 'total-successful-session-count': 1, 'total-failure-session-count': 0 } },
        {
          'policy': { 'policy-type': 'tlsa', 'policy-string': [`0 1 1 ${'AB'.repeat(32)}`], 'policy-domain': 'mx2.a.example' }, 'summary': { 'total-successful-session-count': 0, 'total-failure-session-count': 1 },
          'failure-details': [{ 'result-type': 'tlsa-invalid', 'sending-mta-ip': '9.9.9.9', 'receiving-mx-hostname': 'mx.a.example', 'receiving-ip': '192.0.2.1', 'failed-session-count': 1, 'failure-reason-code': 'none of the records can be used' }],
        },
        {
          'policy': { 'policy-type': 'tlsa', 'policy-domain': 'mx3.a.example' }, 'summary': { 'total-successful-session-count': 0, 'total-failure-session-count': 1 },
          'failure-details': [{ 'result-type': 'dnssec-invalid', 'receiving-mx-hostname': 'mx.a.example', 'failed-session-count': 1, 'failure-reason-code': 'no answer on TLSA of it' }],
        },
      ],
    });
  });

  test('go by HTTPS where the domain asks for it, not to a port of its own; nobody is told who did not ask', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    const on = await world(t, {
      'TXT _smtp._tls.a.example': 'v=TLSRPTv1; rua=https://r.example/v1?x=y,https://r.example:8443/',
      'A r.example': '127.0.0.1',
    });
    on.server.said.set('r.example', { certificate: certificates.issue('r.example'), text: 'thanks' });
    on.tally.onSession('quiet.example', SESSION, GOOD);
    on.tally.onFailedSession('a.example', SESSION, 'no TLS with mx: ECONNRESET');
    on.aheadMs += DAY_MS / 2;
    await on.until(2);
    assert.deepEqual([on.sent.sort(), on.server.asked, on.reception.kept.length], [['failed', 'https'], ['POST r.example /v1?x=y'], 0]);
    const [{ type, bytes } = assert.fail('a body')] = on.server.bodies;
    const { policies } = json(bytes) as { readonly policies: readonly { readonly policy: unknown; readonly summary: unknown }[] };
    assert.equal(type, 'application/tlsrpt+gzip');
    assert.deepEqual(policies.map(({ policy, summary }) => [policy, summary]), [[
      { 'policy-type': 'no-policy-found', 'policy-domain': 'a.example' },
      { 'total-successful-session-count': 0, 'total-failure-session-count': 1 },
    ]]);
    assert.ok(on.names.asked.includes('TXT _smtp._tls.quiet.example'));
  });

  test('are a hundred on their way at most, though nobody answers', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    const domains = Array.from({ length: 110 }, (_, i) => `d${String(i)}.example`);
    const asks = domains.map((domain) => [`TXT _smtp._tls.${domain}`, 'v=TLSRPTv1; rua=https://r.example/v1'] as const);
    const on = await world(t, { ...Object.fromEntries(asks), 'A r.example': '127.0.0.1' });
    on.server.said.set('r.example', { certificate: certificates.issue('r.example'), answer: () => undefined });
    for (const domain of domains) on.tally.onSession(domain, SESSION, GOOD);
    on.aheadMs += DAY_MS / 2;
    while (on.server.asked.length < 100) await on.until(0, true);
    for (let more = 0; more < 100; more++) await on.until(0, true);
    assert.equal(on.server.asked.length, 100);
  });

  test('are posted to no address that no host of the Internet has', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    const on = await world(t, { 'TXT _smtp._tls.a.example': 'v=TLSRPTv1; rua=https://r.example/v1', 'A r.example': '127.0.0.1' }, undefined, false);
    on.server.said.set('r.example', { certificate: certificates.issue('r.example'), text: 'thanks' });
    on.tally.onSession('a.example', SESSION, GOOD);
    on.aheadMs += DAY_MS / 2;
    await on.until(1);
    assert.deepEqual([on.sent, on.server.asked], [['failed'], []]);
  });

  test('are tried again where nobody knows whom to tell, and given up and counted after a while', needsTls, async (t) => {
    const zone: Record<string, string> = { 'TXT _smtp._tls.a.example': SERVFAIL, 'TXT _smtp._tls.b.example': SERVFAIL };
    const on = await world(t, zone);
    on.tally.onSession('a.example', SESSION, GOOD);
    on.tally.onSession('b.example', SESSION, GOOD);
    on.aheadMs += DAY_MS / 2;
    while (on.names.asked.length < 4) await on.until(0, true);
    zone['TXT _smtp._tls.a.example'] = 'v=TLSRPTv1; rua=mailto:tls@reports.example';
    await on.until(2);
    assert.deepEqual([on.sent, on.reception.kept.length], [['mail', 'failed'], 1]);
  });

  test('that can not be stored are tried again, and given up after a while', needsTls, async (t) => {
    const on = await world(t, { 'TXT _smtp._tls.a.example': 'v=TLSRPTv1; rua=mailto:tls@reports.example' });
    on.reception.outcomes.push(REFUSED, REFUSED);
    on.tally.onSession('a.example', SESSION, GOOD);
    on.aheadMs += DAY_MS / 2;
    await on.until(1);
    assert.deepEqual([on.reception.kept.length, on.sent], [3, ['mail']]);
  });

  test('that can not be stored for one are tried again for that one alone', needsTls, async (t) => {
    const on = await world(t, { 'TXT _smtp._tls.a.example': 'v=TLSRPTv1; rua=mailto:one@reports.example,mailto:two@reports.example' });
    on.reception.outcomes.push(REFUSED);
    on.tally.onSession('a.example', SESSION, GOOD);
    on.aheadMs += DAY_MS / 2;
    await on.until(2);
    assert.deepEqual(on.reception.kept.map(({ submission }) => submission.groups[0]?.recipients[0]?.address.slice(0, 3)), ['one', 'two', 'one']);
  });

  test('are of 10,000 domains at most; of each, what is beyond some failures is in the sums', () => {
    const counts = new TlsCounts();
    const tally = new TlsTally(counts, { nowMs: () => 0, wallMs: () => NOON_MS }, () => undefined);
    for (let i = 0; i < 10_001; i++) tally.onSession(`${String(i)}.example`, SESSION, GOOD);
    for (let i = 0; i < 100; i++) tally.onFailedSession('1.example', { ...SESSION, address: `192.0.2.${String(i)}` }, 'x'.repeat(10_000));
    const [day = 0] = counts.days();
    assert.equal(counts.domains(day).length, 10_000);
    const [of] = counts.take(day, '1.example')?.policies ?? [];
    assert.deepEqual([of?.successes, of?.failures, of?.details.length, of?.details[0]?.reason.length], [1, 100, 10, 200]);
    assert.equal(counts.take(day, '1.example'), undefined);
  });

  test('have a bound of text for each domain, so that nobody takes room from others', () => {
    const counts = new TlsCounts();
    const tally = new TlsTally(counts, { nowMs: () => 0, wallMs: () => NOON_MS }, () => undefined);
    const lists = Array.from({ length: 16 }, (_none, k) => [{ ...TLSA, association: new Uint8Array(900).fill(k) }]);
    for (let i = 0; i < 3_000; i++) {
      for (const [k, records] of lists.entries()) tally.onFailedSession(`${String(i)}.stranger.example`, { ...SESSION, dane: { records, names: [`mx${String(k)}.example`] } }, 'x'.repeat(200));
    }
    tally.onFailedSession('a.example', { ...SESSION, dane: { records: [TLSA], names: ['mx.a.example'] } }, 'x');
    const [day = 0] = counts.days();
    const [own] = counts.take(day, 'a.example')?.policies ?? [];
    assert.deepEqual([own?.failures, own?.details.length, own?.text.strings.length], [1, 1, 1]);
    const { policies } = counts.take(day, '2999.stranger.example') ?? assert.fail('it is counted');
    assert.deepEqual(policies.map(({ failures }) => failures), Array(8).fill(1));
    const text = JSON.stringify(policies);
    assert.ok(text.length < 8_000, text);
  });
});
