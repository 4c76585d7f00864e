/** What a gateway that runs tells of a way: by what it goes by itself, and nothing is asked twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explained } from '../../../../src/gateway/explain/explanation.js';
import { MxLookup } from '../../../../src/gateway/outbound/mx-lookup.js';
import { StsPolicies } from '../../../../src/gateway/outbound/sts/sts-policies.js';
import type { HttpsAnswer } from '../../../../src/platform/https.js';
import type { DnsAnswer, Resolver } from '../../../../src/platform/resolver.js';
import { toldTo } from '../outbound/memory-source.js';
import { policyText } from '../outbound/sts/policy-server.js';

const NOON_MS = Date.UTC(2026, 10, 26, 12);
const MX = { ownNames: [], allowsPrivate: false, usesIpv6: false, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 };
const TLS = { level: 'may', isFirst: false, terms: { serverName: '', mustVerify: false, caFile: undefined } } as const;

test('the policy that it keeps, since when, and why there is none anew', async () => {
  let aheadMs = 0;
  let record: string | undefined = 'v=STSv1; id=1;';
  let said: HttpsAnswer = { kind: 'answer', status: 200, type: 'text/plain', text: policyText('enforce', ['mx.a.example']) };
  let asked = 0;
  const clock = { nowMs: () => aheadMs, wallMs: () => NOON_MS + aheadMs };
  const resolver: Resolver = {
    ask: (_name, type, done) => {
      const known: Readonly<Record<string, unknown>> = { MX: { preference: 1, exchange: 'mx.a.example' }, A: '93.184.216.34', TXT: record };
      const found = known[type];
      done((found === undefined ? { kind: 'failed', why: 'SERVFAIL' } : { kind: 'found', records: [found], isAuthentic: false }) as DnsAnswer<typeof type>);
    },
  };
  const https = { ask: (_question: unknown, done: (answer: HttpsAnswer) => void) => { asked++; done(said); } };
  const policies = new StsPolicies(undefined, { clock, log: toldTo([]), resolver, lookup: new MxLookup(MX, resolver), https, onFetched: () => undefined });
  const nextHop = { protocol: 'smtp', host: '', port: 25, isByMx: true, tls: TLS } as const;
  const options = {
    hostName: 'gw.test', sources: [], mx: MX, listeners: [], relayDomains: [], postmaster: '', smtp: { srs: undefined, feedback: undefined, recipientsByHttp: undefined },
    routes: [{ name: 'out', domains: ['*'], nextHop, perDomain: true, ordering: 'fifo', concurrency: 1, lengthMax: 10 } as const],
    retry: { firstMs: 1, maxMs: 1 }, lifetimeMs: 1,
  };
  const policyOf = async (): Promise<readonly (string | undefined)[]> => {
    const { ways: [way] } = await explained({ to: 'x@a.example', from: '', listener: '' }, options, {
      clock, resolver, https, policies, recipients: undefined, lookUpHost: () => assert.fail('no host is named'),
    });
    return [way?.mta_sts, way?.status];
  };
  assert.deepEqual(await policyOf(), ['enforce for 1d: mx.a.example; kept, fetched at 2026-11-26T12:00:00Z', '']);
  // The record is gone, and mail still goes by the policy.
  record = undefined;
  aheadMs = 3_600_000;
  assert.deepEqual([await policyOf(), asked], [['enforce for 1d: mx.a.example; kept, fetched at 2026-11-26T12:00:00Z', ''], 1]);
  record = 'v=STSv1; id=2;';
  said = { kind: 'failed', why: 'x', isUntrusted: true };
  assert.deepEqual((await policyOf())[0], 'enforce for 1d: mx.a.example; kept, fetched at 2026-11-26T12:00:00Z, none to be had since: untrusted');
  aheadMs += 86_400_000;
  record = undefined;
  assert.deepEqual(await policyOf(), ['no answer: SERVFAIL', '']);
});
