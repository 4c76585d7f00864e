/** What a gateway that runs tells of a way: by what it goes by itself, and nothing is asked twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExplainedWay } from '../../../../src/admin-api/explain.js';
import { explained } from '../../../../src/gateway/explain/explanation.js';
import { MxLookup } from '../../../../src/gateway/outbound/mx-lookup.js';
import { StsPolicies } from '../../../../src/gateway/outbound/sts/sts-policies.js';
import type { StsFetchResult } from '../../../../src/gateway/outbound/sts/sts-policies.js';
import type { Https, HttpsAnswer } from '../../../../src/platform/https.js';
import type { DnsAnswer, DnsType, Resolver } from '../../../../src/platform/resolver.js';
import { toldTo } from '../outbound/memory-source.js';
import { policyText } from '../outbound/sts/policy-server.js';

const NOON_MS = Date.UTC(2026, 10, 26, 12);
const MX = { ownNames: [], allowsPrivate: false, usesIpv6: false, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 };
const TLS = { level: 'may', isFirst: false, terms: { serverName: '', mustVerify: false, caFile: undefined } } as const;

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
  said: HttpsAnswer;
  /** Of policies. */
  asked: number;
  way(to: string): Promise<ExplainedWay>;
}

/** A gateway with one route by MX; `said` undefined: the DNS does not answer, null: there is nothing. */
function world(said: Said, isAuthentic = false): World {
  const clock = { nowMs: () => on.aheadMs, wallMs: () => NOON_MS + on.aheadMs };
  const resolver: Resolver = {
    ask: (name, type, done) => {
      const found = said(name, type);
      done((found === undefined ? { kind: 'failed', why: 'SERVFAIL' } : found === null ? { kind: 'no-records', isAuthentic } : { kind: 'found', records: [found], isAuthentic }) as DnsAnswer<typeof type>);
    },
  };
  const https: Https = {
    ask: (_question, done) => {
      on.asked++;
      done(on.said);
    },
  };
  const nextHop = { protocol: 'smtp', host: '', port: 25, isByMx: true, tls: TLS } as const;
  const options = {
    hostName: 'gw.test', sources: [], mx: MX, listeners: [], relayDomains: [], postmaster: '', smtp: { srs: undefined, feedback: undefined, recipientsByHttp: undefined },
    routes: [{ name: 'out', domains: ['*'], nextHop, perDomain: true, ordering: 'fifo', concurrency: 1, lengthMax: 10 } as const],
    retry: { firstMs: 1, maxMs: 1 }, lifetimeMs: 1,
  };
  const results: StsFetchResult[] = [];
  const log: string[] = [];
  const policies = new StsPolicies(undefined, {
    clock, log: toldTo(log), resolver, lookup: new MxLookup(MX, resolver), https, onFetched: (_domain, result) => { results.push(result); },
  });
  const on: World = {
    clock, resolver, https, policies, results, log, aheadMs: 0, asked: 0, said: policy('enforce', 'mx.a.example'),
    way: async (to) => {
      const { ways: [way] } = await explained({ to, from: '', listener: '' }, options, {
        clock, resolver, https, policies, recipients: undefined, lookUpHost: () => assert.fail('no host is named'),
      });
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
  assert.deepEqual((await policyOf())[0], 'enforce for 1d: mx.a.example; kept, fetched at 2026-11-26T12:00:00Z, none to be had since: untrusted');
  on.aheadMs += 86_400_000;
  record = undefined;
  assert.deepEqual(await policyOf(), ['no answer: SERVFAIL', '']);
});

test('a policy that no mail has asked for is told, and neither kept nor counted', async () => {
  const on = world(zone(() => 'v=STSv1; id=1;'));
  assert.equal((await on.way('x@a.example')).mta_sts, 'enforce for 1d: mx.a.example');
  on.said = { kind: 'failed', why: 'x', isUntrusted: true };
  assert.equal((await on.way('x@a.example')).mta_sts, 'none to be had: untrusted');
  assert.deepEqual([on.asked, on.results, on.log, on.policies.count], [2, [], [], 0]);
  // What mail could not have is not asked for once more.
  on.policies.ask('a.example', () => undefined);
  assert.equal((await on.way('x@a.example')).mta_sts, 'none to be had: untrusted');
  assert.deepEqual([on.asked, on.results], [3, ['untrusted']]);
});

test('a queue of mail that must have TLS fails, or waits, where nothing proves the hosts', async () => {
  const told = async (record: string | null | undefined, said: HttpsAnswer, isSigned = false): Promise<string> => {
    const on = world(zone(() => record), isSigned);
    on.said = said;
    const { status, why } = await on.way('out/a.example!tls');
    return `${status} ${why}`.trim();
  };
  const named = policy('enforce', 'mx.a.example');
  const unproved = '5.7.10 mail to a.example must have TLS, and neither DNSSEC nor a policy proves its hosts';
  const unknown = '4.7.5 mail to a.example must have TLS, and whether a policy proves its hosts is not known now';
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
