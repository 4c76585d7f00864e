/** What a gateway that runs tells of a way: by what it goes by itself, and nothing is asked twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { ExplainedWay } from '../../../../src/admin-api/explain.js';
import { explained } from '../../../../src/gateway/explain/explanation.js';
import type { ExplainPorts } from '../../../../src/gateway/explain/explanation.js';
import type { SenderQuestion } from '../../../../src/gateway/explain/sender-findings.js';
import type { LostTls } from '../../../../src/gateway/outbound/host-memory.js';
import { MxLookup } from '../../../../src/gateway/outbound/mx-lookup.js';
import { StsPolicies } from '../../../../src/gateway/outbound/sts/sts-policies.js';
import type { JudgedSource } from '../../../../src/gateway/outbound/sources.js';
import type { NextHop } from '../../../../src/gateway/mail-types.js';
import type { StsFetchResult } from '../../../../src/gateway/outbound/sts/sts-policies.js';
import type { Https, HttpsAnswer } from '../../../../src/platform/https.js';
import type { DnsAnswer, DnsType, Resolver } from '../../../../src/platform/resolver.js';
import { toldTo } from '../outbound/memory-source.js';
import { policyText } from '../outbound/sts/policy-server.js';

const NOON_MS = Date.UTC(2026, 10, 26, 12);
const MX = { ownNames: [], allowsPrivate: false, usesIpv6: false, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 };
const TLS = { level: 'may', isFirst: false, terms: { serverName: '', mustVerify: false, caFile: undefined } } as const;

/** The DNS says nothing at all. */
const SILENCE = Symbol('silence');

type Said = (name: string, type: DnsType) => unknown;

interface World {
  readonly clock: { nowMs(): number; wallMs(): number };
  readonly resolver: Resolver;
  readonly https: Https;
  readonly policies: StsPolicies;
  /** What was told of fetches. */
  readonly results: StsFetchResult[];
  readonly log: string[];
  aheadMs: number;
  /** Undefined: the server is silent. */
  said: HttpsAnswer | undefined;
  readonly unanswered: ((answer: HttpsAnswer) => void)[];
  /** What the gateway knows of its sources, which are these. */
  judged: readonly JudgedSource[];
  /** Of policies. */
  asked: number;
  readonly askedSenders: SenderQuestion[];
  way(to: string): Promise<ExplainedWay>;
  /** By a route that names a host. */
  wayByHost(host: string, lookUpHost: ExplainPorts['lookUpHost'], more?: Partial<NextHop>): Promise<ExplainedWay>;
  /** Of those whose TLS failed: what the gateway says. */
  readonly lost: Map<string, string>;
}

/** A gateway with one route by MX; `said` undefined: the DNS does not answer, null: there is nothing. */
function world(said: Said, isAuthentic = false): World {
  const clock = { nowMs: () => on.aheadMs, wallMs: () => NOON_MS + on.aheadMs };
  const resolver: Resolver = {
    ask: (name, type, done) => {
      const found = said(name, type);
      if (found === SILENCE) return;
      done((found === undefined ? { kind: 'failed', why: 'SERVFAIL' } : found === null ? { kind: 'no-records', isAuthentic } : { kind: 'found', records: [found], isAuthentic }) as DnsAnswer<typeof type>);
    },
  };
  const https: Https = {
    ask: (_question, done) => {
      on.asked++;
      if (on.said === undefined) on.unanswered.push(done);
      else done(on.said);
    },
  };
  const nextHop = { protocol: 'smtp', host: '', port: 25, isByMx: true, tls: TLS } as const;
  const options = {
    hostName: 'gw.test', sources: [], dkim: { domains: [1, 2, 3, 4, 5, 6].map((n) => `d${String(n)}.example`), of: () => [] }, mx: MX, listeners: [], relayDomains: [], postmaster: '', smtp: { srs: undefined, feedback: undefined, recipientsByHttp: undefined },
    routes: [{ name: 'out', domains: ['*'], nextHop, perDomain: true, ordering: 'fifo', concurrency: 1, lengthMax: 10 } as const],
    retry: { firstMs: 1, maxMs: 1 }, lifetimeMs: 1,
  };
  const results: StsFetchResult[] = [];
  const log: string[] = [];
  const policies = new StsPolicies(undefined, {
    clock, log: toldTo(log), resolver, lookup: new MxLookup(MX, resolver), https, onFetched: (_domain, result) => { results.push(result); },
  });
  const lost = new Map<string, string>();
  const lostTls = (host: string, port: number): LostTls | undefined => {
    const why = lost.get(`${host}:${String(port)}`);
    return why === undefined ? undefined : { why, untilWallMs: NOON_MS + 3_600_000 };
  };
  const on: World = {
    lost, clock, resolver, https, policies, results, log, aheadMs: 0, asked: 0, askedSenders: [], unanswered: [], judged: [], said: policy('enforce', 'mx.a.example'),
    way: async (to) => {
      const { ways: [way] } = await explained({ to, from: '', listener: '' }, { ...options, sources: on.judged, mx: { ...MX, usesIpv6: on.judged.length > 0 } }, {
        clock, resolver, https, policies, judged: () => on.judged, lostTls, recipients: undefined, lookUpHost: () => assert.fail('no host is named'), findSender: (question) => { on.askedSenders.push(question); return Promise.resolve([{ verdict: 'good', text: 'it is' }]); },
      });
      return way ?? assert.fail('no way');
    },
    wayByHost: async (host, lookUpHost, more = {}) => {
      const routes = options.routes.map((route) => ({ ...route, perDomain: false, nextHop: { protocol: 'smtp', host, port: 25, ...more } as const }));
      const ports = { clock, resolver, https, policies, judged: () => [], lostTls, recipients: undefined, lookUpHost, findSender: () => assert.fail('it is not by MX') };
      const { ways: [way] } = await explained({ to: 'x@a.example', from: '', listener: '' }, { ...options, routes }, ports);
      return way ?? assert.fail('no way');
    },
  };
  return on;
}

function policy(mode: string, mx: string): HttpsAnswer {
  return { kind: 'answer', status: 200, type: 'text/plain', text: policyText(mode, [mx]) };
}

/** One host; `record` says that there is a policy. */
function zone(record: () => string | null | undefined, tlsa: () => null | undefined = () => null): Said {
  return (_name, type) => {
    if (type === 'TXT') return record();
    if (type === 'TLSA') return tlsa();
    return type === 'MX' ? { preference: 1, exchange: 'mx.a.example' } : type === 'A' ? '93.184.216.34' : null;
  };
}

test('the policy that it keeps, since when, and why there is none anew', async () => {
  let record: string | undefined = 'v=STSv1; id=1;';
  const on = world(zone(() => record));
  const policyOf = async (): Promise<readonly (string | undefined)[]> => {
    const { mta_sts: told, status } = await on.way('x@a.example');
    return [told, status];
  };
  on.policies.ask('a.example', () => undefined);
  assert.deepEqual(await policyOf(), ['enforce for 1d: mx.a.example; kept, fetched at 2026-11-26T12:00:00Z', '']);
  // The record is gone, and mail still goes by the policy.
  record = undefined;
  on.aheadMs = 3_600_000;
  assert.deepEqual([await policyOf(), on.asked], [['enforce for 1d: mx.a.example; kept, fetched at 2026-11-26T12:00:00Z', ''], 1]);
  record = 'v=STSv1; id=2;';
  on.said = { kind: 'failed', why: 'x', isUntrusted: true };
  assert.deepEqual((await policyOf())[0], 'enforce for 1d: mx.a.example; kept, fetched at 2026-11-26T12:00:00Z, none to be had since: untrusted: x (asked at 2026-11-26T13:00:00Z, and not again before 2026-11-26T13:05:00Z but for a flush)');
  on.aheadMs += 86_400_000;
  record = undefined;
  assert.deepEqual(await policyOf(), ['no answer: SERVFAIL', '']);
});

test('a policy that no mail has asked for is told, and neither kept nor counted', async () => {
  const on = world(zone(() => 'v=STSv1; id=1;'));
  assert.equal((await on.way('x@a.example')).mta_sts, 'enforce for 1d: mx.a.example');
  on.said = { kind: 'failed', why: 'x', isUntrusted: true };
  assert.equal((await on.way('x@a.example')).mta_sts, 'none to be had: untrusted: x');
  assert.deepEqual([on.asked, on.results, on.log, on.policies.count], [2, [], [], 0]);
  // What mail could not have is not asked for once more.
  on.policies.ask('a.example', () => undefined);
  const times = 'asked at 2026-11-26T12:00:00Z, and not again before 2026-11-26T12:05:00Z but for a flush';
  assert.equal((await on.way('x@a.example')).mta_sts, `none to be had: untrusted: x (${times})`);
  assert.deepEqual([on.asked, on.results], [3, ['untrusted']]);
});

test('a record that says something of a policy, and is none, is told', async () => {
  const on = world(zone(() => 'v=STSv1; id=a-b;'));
  assert.equal((await on.way('x@a.example')).mta_sts, 'none: the record at _mta-sts.a.example has no id of 1 to 32 letters and digits');
  assert.equal(on.asked, 0);
});

test('a queue of mail that must have TLS fails, or waits, where nothing proves the hosts', async () => {
  const told = async (record: string | null | undefined, said: HttpsAnswer, isSigned = false): Promise<string> => {
    const on = world(zone(() => record), isSigned);
    on.said = said;
    const { status, why, policy_untold: isUntold } = await on.way('out/a.example!tls');
    return `${status} ${why}${isUntold === true ? ' UNTOLD' : ''}`.trim();
  };
  const named = policy('enforce', 'mx.a.example');
  const unproved = '5.7.10 mail to a.example must have TLS, and neither DNSSEC nor a policy proves its hosts';
  const unknown = '4.7.5 mail to a.example must have TLS, and whether a policy proves its hosts is not known now UNTOLD';
  assert.equal(await told(null, named), unproved);
  assert.equal(await told('v=STSv1; id=1;', policy('testing', 'mx.a.example')), unproved);
  assert.equal(await told(undefined, named), unknown);
  assert.equal(await told('v=STSv1; id=1;', { kind: 'failed', why: 'x', isUntrusted: true }), unknown);
  assert.equal(await told('v=STSv1; id=1;', named), '');
  assert.equal(await told(null, named, true), '');
});

test('a queue of mail that needs no TLS goes whatever policy and TLSA records say', async () => {
  const on = world(zone(() => 'v=STSv1; id=1;', () => undefined), true);
  on.said = policy('enforce', 'another.example');
  const told = async (to: string): Promise<unknown> => {
    const { status, mta_sts: sts, hosts: [host] } = await on.way(to);
    return [status, sts, host?.addresses, host?.dane_failed];
  };
  assert.deepEqual(await told('out/a.example!any'), ['', '', ['93.184.216.34'], undefined]);
  assert.deepEqual(await told('out/a.example'), ['4.7.5', 'enforce for 1d: another.example', [], true]);
});

test('a host that the policy does not name, and no TLSA record binds, is no way where it is enforced', async () => {
  const on = world(zone(() => 'v=STSv1; id=1;'), true);
  const told = async (): Promise<unknown> => {
    const { status, why, hosts: [host] } = await on.way('x@a.example');
    return [status, why, host?.addresses, host?.why];
  };
  const unnamed = 'the MTA-STS policy of the domain does not name it, and it has no usable TLSA records';
  on.said = policy('enforce', 'another.example');
  assert.deepEqual(await told(), ['4.7.5', `mx.a.example: ${unnamed}`, [], unnamed]);
  on.said = policy('testing', 'another.example');
  assert.deepEqual(await told(), ['', '', ['93.184.216.34'], `${unnamed}: enforced, it would not be connected to`]);
  const record = { usage: 3, selector: 1, matching: 1, association: new Uint8Array(32) };
  const bound = world((name, type) => (type === 'TLSA' ? record : zone(() => 'v=STSv1; id=1;')(name, type)), true);
  bound.said = policy('enforce', 'another.example');
  const { status, hosts: [host] } = await bound.way('x@a.example');
  assert.deepEqual([status, host?.addresses, host?.why], ['', ['93.184.216.34'], 'the MTA-STS policy of the domain does not name it']);
});

test('a fetch that mail has begun is waited for, and no other one begun', async () => {
  const on = world(zone(() => 'v=STSv1; id=1;'));
  on.said = undefined;
  on.policies.ask('a.example', () => undefined);
  const way = on.way('x@a.example');
  while (on.unanswered.length === 0) await turn();
  for (let turns = 0; turns < 20; turns++) await turn();
  for (const answer of on.unanswered) answer(policy('enforce', 'mx.a.example'));
  assert.match((await way).mta_sts, /^enforce for 1d: mx\.a\.example; kept/);
  assert.equal(on.asked, 1);
});

test('what does not answer within the time is told as that, and what does all the same', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const late = 'not within the 20 s that this answer has';
  const told = async (said: Said): Promise<ExplainedWay> => {
    const on = world(said);
    on.said = undefined;
    const way = on.way('x@a.example');
    for (let turns = 0; turns < 20; turns++) await turn();
    t.mock.timers.tick(20_000);
    return way;
  };
  const byPolicy = await told(zone(() => 'v=STSv1; id=1;'));
  assert.deepEqual([byPolicy.status, byPolicy.mta_sts, byPolicy.hosts.map(({ addresses }) => addresses)], ['', `no answer yet: ${late}`, [['93.184.216.34']]]);
  const byHost = await told((name, type) => (type === 'A' ? SILENCE : zone(() => null)(name, type)));
  assert.deepEqual([byHost.status, byHost.why], ['4.4.3', `mx.a.example: no answer on its address: ${late}`]);
  const byMx = await told(() => SILENCE);
  assert.deepEqual([byMx.status, byMx.why], ['4.4.3', `no answer on MX of a.example: ${late}`]);
});

test('the name of a host is not looked up any more when the time is over, or the answer is there', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  for (const [found, status] of [[undefined, '4.4.3'], [{ addresses: ['192.0.2.1'], why: '', isFailed: false }, '']] as const) {
    const on = world(() => SILENCE);
    const given: string[] = [];
    const way = on.wayByHost('smarthost.test', (host, over) => {
      void over.then(() => { given.push(host); });
      return found === undefined ? new Promise(() => undefined) : Promise.resolve(found);
    });
    for (let turns = 0; turns < 20; turns++) await turn();
    if (found === undefined) t.mock.timers.tick(20_000);
    assert.equal((await way).status, status);
    await turn();
    assert.deepEqual(given, ['smarthost.test']);
  }
});

test('whether a source of IPv6 is confirmed is as the gateway knows it, whatever the DNS says now', async () => {
  const on = world((name, type) => (type === 'AAAA' ? '2606:4700::1111' : zone(() => null)(name, type)));
  const told = async (isConfirmed: boolean, why: string): Promise<unknown> => {
    on.judged = [{ address: '2001:db8::25', name: 'six.test', isConfirmed, why }];
    const { hosts: [host], sources } = await on.way('x@a.example');
    return [host?.addresses, sources];
  };
  assert.deepEqual(await told(true, ''), [['2606:4700::1111'], [{ address: '2001:db8::25', name: 'six.test', confirmed: true, why: '' }]]);
  const not = { address: '2001:db8::25', name: 'six.test', confirmed: false, why: 'the DNS was not asked yet' };
  assert.deepEqual(await told(false, not.why), [['93.184.216.34'], [not]]);
});

test('what is asked of the DNS about who sends: domains that are signed for, five at most, and addresses of the route', async () => {
  const on = world(zone(() => null));
  on.judged = [{ address: '192.0.2.7', name: 'gw.test', isConfirmed: true, why: '' }];
  await on.way('x@a.example');
  const { domains, sources, leftOut } = on.askedSenders[0] ?? assert.fail('nothing was asked');
  assert.deepEqual([domains.map(({ domain }) => domain), sources.map(({ address }) => address), leftOut], [['d1.example', 'd2.example', 'd3.example', 'd4.example', 'd5.example'], ['192.0.2.7'], 1]);
});

const IN_CLEAR = 'in clear until 2026-11-26T13:00Z: its TLS failed: ECONNRESET';

test('a host whose TLS failed is told as spoken to in clear where TLS is only tried, and nothing else asks for it', async () => {
  const whys = async (said: Said, isAuthentic: boolean, mode: string, to = 'x@a.example'): Promise<unknown> => {
    const on = world(said, isAuthentic);
    on.said = policy(mode, 'mx.a.example');
    on.lost.set('mx.a.example:25', 'ECONNRESET');
    return (await on.way(to)).hosts.map(({ why }) => why);
  };
  const record = { usage: 3, selector: 1, matching: 1, association: new Uint8Array(32) };
  assert.deepEqual(await whys(zone(() => null), false, 'none'), [IN_CLEAR]);
  assert.deepEqual(await whys(zone(() => 'v=STSv1; id=1;'), false, 'testing'), [IN_CLEAR]);
  assert.deepEqual(await whys(zone(() => 'v=STSv1; id=1;'), false, 'enforce'), ['']);
  assert.deepEqual(await whys((name, type) => (type === 'TLSA' ? record : zone(() => null)(name, type)), true, 'none'), ['']);
});

test('so is one that a route names, by the terms that it has; and who we are to it is told, without the password', async () => {
  const on = world(() => null);
  for (const port of [25, 26, 27]) on.lost.set(`smart.test:${String(port)}`, 'ECONNRESET');
  const lookUpHost = (): Promise<{ addresses: string[]; why: string; isFailed: boolean }> => Promise.resolve({ addresses: ['192.0.2.1'], why: '', isFailed: false });
  const named = { ...TLS, terms: { ...TLS.terms, serverName: 'cert.test' } };
  const auth = { user: 'anna', passwordFile: '/p' };
  const others = [{ host: 'smart.test', port: 26, preference: 1 }, { host: 'smart.test', port: 27, preference: 2, terms: { tls: { ...named, level: 'encrypt' as const }, auth } }];
  const { hosts, tls, auth: as } = await on.wayByHost('smart.test', lookUpHost, { tls: named, auth, others });
  assert.deepEqual(hosts.map(({ why }) => why), [IN_CLEAR, IN_CLEAR, 'tls encrypt, server_name cert.test, as anna']);
  assert.deepEqual([tls, as], ['may, server_name cert.test', 'anna']);
  const other = await on.wayByHost('smart.test', lookUpHost, { tls: { ...TLS, level: 'encrypt', terms: { ...TLS.terms, serverName: 'smart.test' } } });
  assert.deepEqual([other.hosts.map(({ why }) => why), other.tls, other.auth], [[''], 'encrypt', undefined]);
});
