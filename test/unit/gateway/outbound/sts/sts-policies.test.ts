/** Policies of domains, from real HTTPS servers and a scripted name server: which one counts, when it is fetched, and what outlives a restart. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import type { Answer } from 'dns-packet';
import { MxLookup } from '../../../../../src/gateway/outbound/mx-lookup.js';
import { PolicyJournal } from '../../../../../src/gateway/outbound/sts/policy-journal.js';
import { StsPolicies } from '../../../../../src/gateway/outbound/sts/sts-policies.js';
import type { StsFetchResult } from '../../../../../src/gateway/outbound/sts/sts-policies.js';
import { crc32 } from '../../../../../src/platform/node/checksum.js';
import { DnsClient } from '../../../../../src/platform/node/dns/dns-client.js';
import type { DnsAnswer, DnsFailure, Resolver } from '../../../../../src/platform/resolver.js';
import type { HttpsAnswer } from '../../../../../src/platform/https.js';
import { HttpsClient } from '../../../../../src/platform/node/https-client.js';
import { makeCertificates } from '../../../../process/tls-hop.js';
import { NameServer } from '../../../platform/node/dns/name-server.js';
import type { Scripted } from '../../../platform/node/dns/name-server.js';
import { toldTo } from '../memory-source.js';
import { PolicyServer, policyText } from './policy-server.js';

const certificates = makeCertificates();
const needsTls = { timeout: 30_000, skip: certificates === undefined ? 'openssl is missing' : false };
const DOMAIN = 'sts.example';
const HOST = `mta-sts.${DOMAIN}`;
const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
const certificate = certificates?.issue(HOST);

interface World {
  readonly zone: Map<string, Scripted>;
  readonly server: PolicyServer;
  readonly results: StsFetchResult[];
  readonly log: string[];
  readonly folder: string;
  /** Added to both clocks. */
  aheadMs: number;
  start(): StsPolicies;
}

function txt(data: string): Scripted {
  return { answers: [{ type: 'TXT', name: 'x', ttl: 0, data } as Answer] };
}

async function world(t: TestContext, allowsPrivate = true): Promise<World> {
  assert.ok(certificates !== undefined && certificate !== undefined);
  const zone = new Map<string, Scripted>([
    [`TXT _mta-sts.${DOMAIN}`, txt('v=STSv1; id=1')],
    [`A ${HOST}`, { answers: [{ type: 'A', name: 'x', ttl: 0, data: '127.0.0.1' }] }],
  ]);
  const names = await NameServer.start(t, (question) => {
    const said = zone.get(question);
    if (said === undefined) return { rcode: 3 };
    const name = question.slice(question.indexOf(' ') + 1);
    return { ...said, answers: (said.answers ?? []).map((answer) => ({ ...answer, name })) };
  });
  const server = new PolicyServer();
  const port = await server.listen();
  server.said.set(HOST, { certificate, text: policyText('enforce', ['mx.sts.example']) });
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-sts-'));
  const clock = { nowMs: () => performance.now() + on.aheadMs, wallMs: () => Date.now() + on.aheadMs };
  const resolver = new DnsClient({ resolvers: [names.resolver], trustsAd: false }, clock);
  const https = new HttpsClient({ port, ca: readFileSync(certificates.caFile, 'latin1') });
  const started: StsPolicies[] = [];
  t.after(async () => {
    https.close();
    resolver.close();
    server.close();
    await Promise.all(started.map((each) => each.flushed()));
    rmSync(folder, { recursive: true, force: true });
  });
  const on: World = {
    zone, server, results: [], log: [], folder, aheadMs: 0,
    start: () => {
      const policies = new StsPolicies(folder, {
        clock, resolver, https, log: toldTo(on.log),
        lookup: new MxLookup({ ownNames: [], allowsPrivate, usesIpv6: false, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 }, resolver),
        onFetched: (_domain, result) => { on.results.push(result); },
      });
      started.push(policies);
      return policies;
    },
  };
  return on;
}

function modeOf(policies: StsPolicies, domain = DOMAIN): Promise<string> {
  return new Promise((resolve) => { policies.ask(domain, (policy, isUnknown) => { resolve(isUnknown ? 'unknown' : policy === undefined ? 'nothing' : `${policy.mode} ${policy.mx.join()}`); }); });
}

/** Of a DNS and servers that answer before anything else happens, by what `textOf` says of a host; undefined: it is silent. */
function answeredAtOnce(clock: { readonly ms: number }, textOf: (host: string) => string | undefined): StsPolicies {
  const resolver: Resolver = {
    ask(_name, type, done) {
      const records = [type === 'TXT' ? 'v=STSv1; id=1;' : '93.184.216.34'];
      done({ kind: 'found', records, isAuthentic: false } as unknown as DnsAnswer<typeof type>);
    },
  };
  return new StsPolicies(undefined, {
    clock: { nowMs: () => clock.ms, wallMs: () => clock.ms }, log: toldTo([]), resolver, onFetched: () => undefined,
    lookup: new MxLookup({ ownNames: [], allowsPrivate: false, usesIpv6: false, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 }, resolver),
    https: {
      ask({ host }, done) {
        const text = textOf(host);
        if (text !== undefined) done({ kind: 'answer', status: 200, type: 'text/plain', text });
      },
    },
  });
}

/** When so many fetches have ended. */
async function fetched({ results }: World, count: number): Promise<void> {
  while (results.length < count) await new Promise((resolve) => { setTimeout(resolve, 5); });
}

describe('the policy of a domain', () => {
  test('is fetched once for all who ask, and kept while its id is the same', needsTls, async (t) => {
    const on = await world(t);
    const policies = on.start();
    assert.deepEqual(await Promise.all([modeOf(policies), modeOf(policies)]), ['enforce mx.sts.example', 'enforce mx.sts.example']);
    assert.equal(await modeOf(policies), 'enforce mx.sts.example');
    assert.deepEqual([on.server.asked, on.results, policies.count], [[`GET ${HOST} /.well-known/mta-sts.txt`], ['fetched'], 1]);
  });

  test('is fetched anew when its id changes; if that fails the one that is kept counts, and nobody asks for five minutes', needsTls, async (t) => {
    const on = await world(t);
    const policies = on.start();
    await modeOf(policies);
    assert.ok(certificate !== undefined);
    on.zone.set(`TXT _mta-sts.${DOMAIN}`, txt('v=STSv1; id=2'));
    on.server.said.set(HOST, { certificate, status: 500 });
    assert.equal(await modeOf(policies), 'enforce mx.sts.example');
    on.server.said.set(HOST, { certificate, text: policyText('testing', ['mx2.sts.example']) });
    assert.equal(await modeOf(policies), 'enforce mx.sts.example');
    on.aheadMs += 6 * MINUTE_MS;
    assert.equal(await modeOf(policies), 'testing mx2.sts.example');
    assert.deepEqual(on.results, ['fetched', 'refused', 'fetched']);
    assert.deepEqual(on.log, ['mta-sts the policy of a domain can not be had; one that is kept counts']);
  });

  test('counts until it ends whatever the DNS says since; mode none ends it', needsTls, async (t) => {
    const on = await world(t);
    const policies = on.start();
    await modeOf(policies);
    on.zone.delete(`TXT _mta-sts.${DOMAIN}`);
    assert.equal(await modeOf(policies), 'enforce mx.sts.example');
    on.zone.set(`TXT _mta-sts.${DOMAIN}`, { rcode: 2 });
    on.aheadMs += DAY_MS - MINUTE_MS;
    assert.equal(await modeOf(policies), 'enforce mx.sts.example');
    on.aheadMs += 2 * MINUTE_MS;
    assert.deepEqual([await modeOf(policies), policies.count], ['unknown', 0]);
    // That the DNS does not answer is kept for five seconds.
    on.aheadMs += MINUTE_MS;
    assert.ok(certificate !== undefined);
    on.zone.set(`TXT _mta-sts.${DOMAIN}`, txt('v=STSv1; id=3'));
    on.server.said.set(HOST, { certificate, text: policyText('none', []) });
    assert.equal(await modeOf(policies), 'none ');
  });

  test('is renewed when half of its life is over, without anybody waiting', needsTls, async (t) => {
    const on = await world(t);
    const policies = on.start();
    await modeOf(policies);
    on.aheadMs += 11 * 60 * MINUTE_MS;
    policies.tick();
    on.aheadMs += 2 * 60 * MINUTE_MS;
    policies.tick();
    policies.tick();
    await fetched(on, 2);
    on.aheadMs += DAY_MS - MINUTE_MS;
    assert.equal(await modeOf(policies), 'enforce mx.sts.example');
    assert.equal(on.server.asked.length, 2);
  });

  test('is not renewed any more once no mail has gone there for thirty days', () => {
    const [clock, asked] = [{ ms: 0 }, [] as string[]];
    const policies = answeredAtOnce(clock, (host) => {
      asked.push(host);
      return policyText('enforce', ['mx.sts.example'], 31_557_600);
    });
    policies.ask(DOMAIN, () => undefined);
    clock.ms = 30 * DAY_MS - 1;
    policies.tick();
    assert.equal(asked.length, 2, 'until then it is');
    clock.ms = 32 * DAY_MS;
    policies.tick();
    assert.deepEqual([asked.length, policies.count], [2, 1]);
  });

  test('counts for five minutes where its max_age is shorter', () => {
    const [clock, asked] = [{ ms: 0 }, [] as string[]];
    const policies = answeredAtOnce(clock, (host) => {
      asked.push(host);
      return policyText('enforce', ['mx.sts.example'], 60);
    });
    const count = (): number => {
      policies.ask(DOMAIN, () => undefined);
      return asked.length;
    };
    assert.deepEqual([0, 5 * MINUTE_MS - 1, 5 * MINUTE_MS].map((ms) => { clock.ms = ms; return count(); }), [1, 1, 2]);
  });

  test('is fetched anew when mail could not go by it, not more often than each five minutes', needsTls, async (t) => {
    const on = await world(t);
    const policies = on.start();
    await modeOf(policies);
    policies.onFailure(DOMAIN);
    on.aheadMs += 6 * MINUTE_MS;
    policies.onFailure(DOMAIN);
    policies.onFailure(DOMAIN);
    await fetched(on, 2);
    policies.onFailure(DOMAIN);
    await modeOf(policies);
    assert.deepEqual(on.results, ['fetched', 'fetched']);
  });

  for (const [what, result, said] of [
    ['a redirect', 'refused', { status: 301 }],
    ['another type', 'refused', { type: 'text/html', text: policyText('enforce', ['mx.sts.example']) }],
    ['no type', 'refused', { type: '', text: policyText('enforce', ['mx.sts.example']) }],
    ['what is no policy', 'invalid', { text: 'hello: world' }],
    ['64 KiB and one octet', 'unreachable', { text: `${policyText('enforce', ['mx.sts.example'])}${'x'.repeat(65_536)}` }],
    ['a certificate for another name', 'untrusted', { certificate: certificates?.issue('other.example') }],
    ['a certificate with a common name alone', 'untrusted', { certificate: certificates?.issueFor(HOST, '') }],
    ['an expired certificate', 'untrusted', { certificate: certificates?.issue(HOST, -1) }],
    ['a certificate by nobody', 'untrusted', { certificate: certificates?.selfSigned(HOST) }],
  ] as const) {
    test(`is none where the server shows ${what}`, needsTls, async (t) => {
      const on = await world(t);
      assert.ok(certificate !== undefined);
      const own = 'certificate' in said ? said.certificate : undefined;
      on.server.said.set(HOST, { text: policyText('enforce', ['mx.sts.example']), ...said, certificate: own ?? certificate });
      assert.deepEqual([await modeOf(on.start()), on.results], ['unknown', [result]], on.log.join());
    });
  }

  test('is not fetched from an address that no host of the Internet has, nor for an address literal', needsTls, async (t) => {
    const on = await world(t, false);
    const policies = on.start();
    assert.deepEqual([await modeOf(policies), await modeOf(policies, '[192.0.2.1]')], ['unknown', 'nothing']);
    assert.deepEqual([on.results, on.server.asked], [['unreachable'], []]);
  });
});

test('a record that was not asked for, for want of room, says so where no policy is kept', () => {
  let isFull = true;
  const told: string[] = [];
  const resolver: Resolver = {
    ask(_name, type, done) {
      const records = [type === 'TXT' ? 'v=STSv1; id=1;' : '93.184.216.34'];
      const unasked = { kind: 'failed', why: 'too many questions at once', isUnasked: true } as const;
      done(isFull ? unasked : ({ kind: 'found', records, isAuthentic: false } as unknown as DnsAnswer<typeof type>));
    },
  };
  const policies = new StsPolicies(undefined, {
    clock: { nowMs: () => 0, wallMs: () => 0 }, resolver, onFetched: () => undefined, log: toldTo([]),
    lookup: new MxLookup({ ownNames: [], allowsPrivate: false, usesIpv6: false, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 }, resolver),
    https: { ask: (_question, done) => { done({ kind: 'answer', status: 200, type: 'text/plain', text: policyText('enforce', ['mx.sts.example']) }); } },
  });
  const ask = (): void => { policies.ask(DOMAIN, (policy, isUnknown, isUnasked) => { told.push(`${policy?.mode ?? 'none'} ${String(isUnknown)} ${String(isUnasked)}`); }); };
  ask();
  isFull = false;
  ask();
  isFull = true;
  ask();
  assert.deepEqual(told, ['none true true', 'enforce false false', 'enforce false false']);
});

test('an answer on the addresses of a server that was not asked for, for want of room, is no failure of its domain: one that failed is, and says so', () => {
  let failure: DnsFailure | undefined = { kind: 'failed', why: 'too many questions at once', isUnasked: true };
  let nowMs = 0;
  const [told, results, modes]: [string[], StsFetchResult[], string[]] = [[], [], []];
  const resolver: Resolver = {
    ask(_name, type, done) {
      const records = [type === 'TXT' ? 'v=STSv1; id=1;' : '93.184.216.34'];
      done((type === 'TXT' ? undefined : failure) ?? ({ kind: 'found', records, isAuthentic: false } as unknown as DnsAnswer<typeof type>));
    },
  };
  const policies = new StsPolicies(undefined, {
    clock: { nowMs: () => nowMs, wallMs: () => nowMs }, resolver, onFetched: (_domain, result) => { results.push(result); },
    log: { ...toldTo([]), warn: (_event, text, fields) => { told.push(`${text}: ${String(fields?.['why'])}`); } },
    lookup: new MxLookup({ ownNames: [], allowsPrivate: false, usesIpv6: false, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 }, resolver),
    https: { ask: (_question, done) => { done({ kind: 'answer', status: 200, type: 'text/plain', text: policyText('enforce', ['mx.sts.example']) }); } },
  });
  const ask = (): void => { policies.ask(DOMAIN, (policy, isUnknown, isUnasked) => { modes.push(isUnasked === true ? 'unasked' : isUnknown ? 'unknown' : policy?.mode ?? 'nothing'); }); };
  // More often than there is room for fetches at once: each makes room again.
  for (let asked = 0; asked < 60; asked++) ask();
  assert.deepEqual([[...new Set(modes)], told, results, policies.failureOf(DOMAIN)], [['unasked'], [], [], undefined]);
  failure = { kind: 'failed', why: 'SERVFAIL' };
  ask();
  assert.deepEqual(told, ['the policy of a domain can not be had; one that is kept counts: no answer on its addresses: SERVFAIL']);
  assert.deepEqual([modes.at(-1), results, policies.failureOf(DOMAIN)?.result], ['unknown', ['unreachable'], 'unreachable']);
  failure = undefined;
  nowMs = 5 * MINUTE_MS;
  ask();
  assert.deepEqual([modes.at(-1), results], ['enforce', ['unreachable', 'fetched']]);
});

test('why there is none is told once, and again when the domain publishes another fault; without what no log may hold', () => {
  const clock = { ms: 0 };
  const told: unknown[] = [];
  let answer: HttpsAnswer = { kind: 'answer', status: 200, type: `text/\u001b[31m${'x'.repeat(500)}`, text: '' };
  const records: DnsAnswer<'TXT'> = { kind: 'found', records: ['v=STSv1; id=1;'], isAuthentic: false };
  const resolver: Resolver = {
    ask(_name, type, done) { done((type === 'TXT' ? records : { ...records, records: ['93.184.216.34'] }) as unknown as DnsAnswer<typeof type>); },
  };
  const policies = new StsPolicies(undefined, {
    clock: { nowMs: () => clock.ms, wallMs: () => clock.ms }, resolver, onFetched: () => undefined,
    log: { ...toldTo([]), warn: (_event, _text, fields) => { told.push(fields?.['why']); } },
    lookup: new MxLookup({ ownNames: [], allowsPrivate: false, usesIpv6: false, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 }, resolver),
    https: { ask(_question, done) { done(answer); } },
  });
  const plain = (text: string): HttpsAnswer => ({ kind: 'answer', status: 200, type: 'text/plain', text });
  const failed = (why: string): HttpsAnswer => ({ kind: 'failed', why, isUntrusted: false });
  const html = `it is text/?[31m${'x'.repeat(87)}…, and no text/plain`;
  // A server fails by one address now, and by another then.
  const answers = [answer, answer, plain('version: STSv1\nmode: enforced\n'), plain('version: STSv1\n'), failed('ECONNREFUSED ::1'), failed('ECONNREFUSED 127.0.0.1'), plain('version: STSv1\n'), { ...answer, type: '' }, plain('version: STSv1\n')];
  for (answer of answers) {
    policies.ask(DOMAIN, () => undefined);
    clock.ms += 5 * MINUTE_MS;
  }
  assert.deepEqual(told, [html, 'its mode is none of enforce, testing, none', 'it has no mode', 'ECONNREFUSED ::1', 'it has no mode', 'it has no Content-Type', 'it has no mode']);
  policies.ask(DOMAIN, () => undefined);
  assert.deepEqual(policies.failureOf(DOMAIN), { result: 'invalid', why: 'it has no mode', wallMs: clock.ms, untilWallMs: clock.ms + 5 * MINUTE_MS, atMs: clock.ms, untilMs: clock.ms + 5 * MINUTE_MS });
  // Who flushes its mail would know it now.
  clock.ms += 10_000;
  policies.hasten(DOMAIN);
  answer = plain(policyText('none', []));
  let mode: string | undefined;
  policies.ask(DOMAIN, (policy) => { mode = policy?.mode; });
  assert.equal(mode, 'none');
});

describe('ten thousand domains in line', () => {
  test('whose policies can not be had, as is known at once, need no stack', async () => {
    const MANY = 9_900;
    const hanging: (() => void)[] = [];
    const resolver: Resolver = {
      ask(name, type, done) {
        const answer = type === 'TXT' ? { kind: 'found', records: ['v=STSv1; id=1;'], isAuthentic: false } as const
          : { kind: 'found', records: [name.includes('slow') ? '93.184.216.34' : '10.0.0.1'], isAuthentic: false } as const;
        done(answer as unknown as DnsAnswer<typeof type>);
      },
    };
    const policies = new StsPolicies(undefined, {
      clock: { nowMs: () => 0, wallMs: () => 0 }, log: toldTo([]), resolver, onFetched: () => undefined,
      lookup: new MxLookup({ ownNames: [], allowsPrivate: false, usesIpv6: true, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 }, resolver),
      https: { ask(_question, done) { hanging.push(() => { done({ kind: 'failed', why: '', isUntrusted: false }); }); } },
    });
    for (let i = 0; i < 50; i++) policies.ask(`slow${String(i)}.example`, () => undefined);
    const told = Promise.all(Array.from({ length: MANY }, (_, i) => modeOf(policies, `d${String(i)}.example`)));
    assert.equal(hanging.length, 50);
    hanging[0]?.();
    assert.deepEqual([...new Set(await told)], ['unknown']);
  });
});

test('domains with silent servers, as many as there are, hold up no policy that is renewed', () => {
  const clock = { ms: 0 };
  const asked: string[] = [];
  const policies = answeredAtOnce(clock, (host) => {
    asked.push(host);
    return host.includes('silent') ? undefined : policyText('enforce', ['mx.sts.example']);
  });
  policies.ask(DOMAIN, () => undefined);
  // More than half of its day.
  clock.ms = 0.6 * DAY_MS;
  for (let i = 0; i < 200; i++) policies.ask(`silent${String(i)}.example`, () => undefined);
  assert.equal(asked.filter((host) => host.includes('silent')).length, 50, 'no more of them at once');
  policies.tick();
  assert.deepEqual(asked.filter((host) => host === HOST), [HOST, HOST]);
  assert.equal(policies.kept(DOMAIN)?.fetchedWallMs, clock.ms);
});

describe('what is kept of policies is bounded', () => {
  /** Each domain has one, of these names. */
  const policiesOf = (mxOf: (host: string) => readonly string[]): StsPolicies =>
    answeredAtOnce({ ms: 0 }, (host) => policyText('enforce', mxOf(host)));

  test('whoever fills the memory with names pushes out no policy of others', async () => {
    const longest = Array.from({ length: 16 }, (_, i) => `${String(i).padStart(3, '0')}.${'l'.repeat(60)}.${'l'.repeat(60)}.${'l'.repeat(60)}.${'l'.repeat(60)}`);
    const policies = policiesOf((host) => (host.startsWith('mta-sts.d') ? longest : ['mx.sts.example']));
    assert.equal(await modeOf(policies), 'enforce mx.sts.example');
    for (let i = 0; i < 17_500; i++) policies.ask(`d${String(i)}.example`, () => undefined);
    assert.ok(policies.count < 17_200, `${String(policies.count)} are kept`);
    assert.equal(policies.kept(DOMAIN)?.policy.mode, 'enforce');
  });

  test('of a hundred thousand the one longest not fetched leaves when there is one more', () => {
    const policies = policiesOf(() => ['mx.sts.example']);
    for (let i = 0; i < 100_000; i++) policies.ask(`d${String(i)}.example`, () => undefined);
    assert.deepEqual([policies.count, policies.kept('d0.example') !== undefined], [100_000, true]);
    policies.ask('one-more.example', () => undefined);
    const kept = ['d0.example', 'd1.example', 'one-more.example'].map((domain) => policies.kept(domain) !== undefined);
    assert.deepEqual([policies.count, kept], [100_000, [false, true, true]]);
  });
});

describe('the file of policies', () => {
  test('brings them back after a restart, the last line of each domain, but for what is damaged or over', needsTls, async (t) => {
    const on = await world(t);
    const first = on.start();
    await modeOf(first);
    assert.ok(certificate !== undefined);
    on.zone.set(`TXT _mta-sts.${DOMAIN}`, txt('v=STSv1; id=2'));
    on.server.said.set(HOST, { certificate, text: policyText('enforce', ['mx2.sts.example', '*.sts.example']) });
    await modeOf(first);
    await first.flushed();
    const file = join(on.folder, 'mta-sts.policies');
    assert.equal(statSync(file).mode & 0o777, 0o600);
    appendFileSync(file, `deadbeef ${DOMAIN} 3 none 1 1 \n00000000 cut`);
    on.server.close();
    const second = on.start();
    await second.load();
    assert.equal(await modeOf(second), 'enforce mx2.sts.example,*.sts.example');
    assert.equal(on.log.length, 1);
    assert.match(on.log[0] ?? '', /damaged in places/);
    on.aheadMs += 2 * DAY_MS;
    const third = on.start();
    await third.load();
    assert.equal(await modeOf(third), 'unknown');
    await third.flushed();
    on.aheadMs = 0;
    const fourth = on.start();
    await fourth.load();
    assert.equal(fourth.count, 0, 'what was over is not there again when the clock steps back');
  });

  test('gives none a longer life than its max_age from now, when the clock was ahead', needsTls, async (t) => {
    const on = await world(t);
    const first = on.start();
    await modeOf(first);
    await first.flushed();
    const file = join(on.folder, 'mta-sts.policies');
    const fetchedWallMs = first.kept(DOMAIN)?.fetchedWallMs ?? 0;
    const line = readFileSync(file, 'latin1').trim().replace(/^\S+ /, '').replace(String(fetchedWallMs), String(fetchedWallMs + 100 * DAY_MS));
    writeFileSync(file, `${crc32(Buffer.from(line, 'latin1'), 0).toString(16).padStart(8, '0')} ${line}\n`);
    on.server.close();
    const second = on.start();
    await second.load();
    assert.deepEqual([on.log, await modeOf(second)], [[], 'enforce mx.sts.example']);
    on.aheadMs += 2 * DAY_MS;
    assert.equal(await modeOf(second), 'unknown');
  });

  test('that can not be read or written stops nobody', needsTls, async (t) => {
    const on = await world(t);
    rmSync(on.folder, { recursive: true });
    writeFileSync(on.folder, 'no folder');
    const policies = on.start();
    await policies.load();
    assert.equal(await modeOf(policies), 'enforce mx.sts.example');
    await policies.flushed();
    assert.equal(await modeOf(policies), 'enforce mx.sts.example');
    assert.equal(on.log.length, 1, on.log.join());
  });

  test('loses the policy that a full disk cut, and none behind it', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-sts-'));
    t.after(() => { rmSync(folder, { recursive: true, force: true }); });
    const file = join(folder, 'mta-sts.policies');
    const log: string[] = [];
    const journal = (): PolicyJournal => new PolicyJournal(folder, { clock: { nowMs: () => 0, wallMs: () => 0 }, log: toldTo(log), all: () => [] });
    const first = journal();
    const put = (domain: string): Promise<void> => {
      first.put({ domain, id: '1', policy: { mode: 'enforce', mx: ['mx.sts.example'], maxAgeS: 86_400 }, fetchedWallMs: 1 }, 3);
      return first.flushed();
    };
    await put('a.example');
    const whole = readFileSync(file, 'latin1');
    rmSync(file);
    symlinkSync('/dev/full', file);
    await put('b.example');
    assert.deepEqual(log.splice(0), ['mta-sts the file of policies can not be written; policies are known until this process ends']);
    rmSync(file);
    writeFileSync(file, `${whole}00000000 b.exa`);
    await put('c.example');
    await put('d.example');
    const domains: string[] = [];
    await journal().load((domain) => { domains.push(domain); });
    assert.deepEqual(domains, ['a.example', 'c.example', 'd.example']);
  });

  test('is written anew once most of it no longer counts', { ...needsTls, timeout: 120_000 }, async (t) => {
    const on = await world(t);
    const policies = on.start();
    for (let id = 1; id <= 1100; id++) {
      on.zone.set(`TXT _mta-sts.${DOMAIN}`, txt(`v=STSv1; id=${String(id)}`));
      await modeOf(policies);
    }
    await policies.flushed();
    const lines = readFileSync(join(on.folder, 'mta-sts.policies'), 'latin1').trim().split('\n');
    assert.ok(lines.length < 200, String(lines.length));
    assert.match(lines.at(-1) ?? '', / sts\.example 1100 enforce /);
  });
});
