/**
 * A zone for tests, served by a real name server: by name, records in short; and messages signed with our own signer, to
 * be checked by the real line in its real thread.
 */
import type { Answer } from 'dns-packet';

import { CheckLine } from '../../../../../src/gateway/inbound/sender-checks/node/check-line.js';
import type { Verdicts } from '../../../../../src/gateway/inbound/sender-checks/verdicts.js';
import type { DkimKey } from '../../../../../src/gateway/dkim/node/dkim-keys.js';
import { DkimSigner } from '../../../../../src/gateway/dkim/node/dkim-signer.js';
import { AuthenticationMetrics } from '../../../../../src/observability/authentication-metrics.js';
import { DkimMetrics } from '../../../../../src/observability/dkim-metrics.js';
import { DnsClient } from '../../../../../src/platform/node/dns/dns-client.js';
import { NO_LOG } from '../../../../inbound/desk.js';
import { NameServer } from '../../../platform/node/dns/name-server.js';
import type { Scripted } from '../../../platform/node/dns/name-server.js';
import { ED25519, RSA, pem, recordOf } from '../../dkim/node/new-keys.js';
import { judged } from '../hooks/judged.js';

const CLOCK = { nowMs: (): number => performance.now(), wallMs: (): number => Date.now() };

/** By "TYPE name": its records; 'silent' or 'broken' (SERVFAIL). What is not there does not exist. */
export type Zone = Readonly<Record<string, readonly string[] | 'silent' | 'broken'>>;

/** Keys of our signer, selectors r1 and e1. */
export function keysOf(domain: string): Zone {
  return { [`TXT r1._domainkey.${domain}`]: [recordOf(pem(RSA))], [`TXT e1._domainkey.${domain}`]: [recordOf(pem(ED25519))] };
}

export function scriptOf(zone: Zone): (question: string) => Scripted | undefined {
  const types = new Map(Object.keys(zone).map((key) => [key.slice(key.indexOf(' ') + 1), true]));
  return (question) => {
    const said = zone[question];
    if (said === 'silent') return undefined;
    if (said === 'broken') return { rcode: 2 };
    const [type = '', name = ''] = question.split(' ', 2);
    if (said === undefined) return { rcode: types.has(name) ? 0 : 3 };
    return { answers: said.map((record) => answerOf(type, name, record)) };
  };
}

function answerOf(type: string, name: string, record: string): Answer {
  switch (type) {
    case 'A': case 'AAAA': case 'PTR': return { type, name, ttl: 60, data: record };
    case 'MX': return { type, name, ttl: 60, data: { preference: 10, exchange: record } };
    default: return { type: 'TXT', name, ttl: 60, data: record.match(/[^]{1,255}/g) ?? [''] };
  }
}

export interface CheckField {
  readonly line: CheckLine;
  readonly server: NameServer;
  readonly metrics: AuthenticationMetrics;
  readonly memory: { bytes: number };
  /** What was logged. */
  readonly told: readonly string[];
  check(message: string, envelope?: Partial<ReturnType<typeof judged>['envelope']>): Promise<Verdicts>;
}

export async function checkField(t: { after(run: () => void): void }, zone: Zone, { memoryMax = Infinity, entry, resolverCount = 1, checkMs }: { readonly memoryMax?: number; readonly entry?: URL; readonly resolverCount?: number; readonly checkMs?: number } = {}): Promise<CheckField> {
  const server = await NameServer.start(t, scriptOf(zone));
  const resolver = new DnsClient({ resolvers: Array.from({ length: resolverCount }, () => server.resolver), trustsAd: false }, CLOCK);
  const metrics = new AuthenticationMetrics();
  const memory = { bytes: 0 };
  const reserve = (bytes: number): boolean => {
    if (memory.bytes + bytes > memoryMax) return false;
    memory.bytes += bytes;
    return true;
  };
  const told: string[] = [];
  const log = { ...NO_LOG, error: (event: string, _text: string, fields?: Readonly<Record<string, unknown>>): void => { told.push(`${event}: ${String(fields?.['why'])}`); } };
  const line = new CheckLine('mx.test', { ...(entry === undefined ? {} : { entry }), ...(checkMs === undefined ? {} : { checkMs }), resolver, log, metrics, memory: { reserve, release: (bytes) => { memory.bytes -= bytes; } } });
  t.after(() => {
    line.close();
    resolver.close();
  });
  const check: CheckField['check'] = (message, envelope = {}) => new Promise((resolve) => {
    // The gateway's own prefix is no part of what is checked.
    const asked = judged({ client: '192.0.2.1', helo: 'client.example', reversePath: 'bounce@x.example', ...envelope });
    line.check(asked, [Buffer.from(message, 'latin1')], resolve);
  });
  return { line, server, metrics, memory, told, check };
}

/** The message behind signatures of its From's domain, RSA and, on top, Ed25519. */
export function withSignatures(message: string): Promise<string> {
  const keys = (domain: string): readonly DkimKey[] => [
    { domain, selector: 'e1', algorithm: 'ed25519-sha256', key: ED25519, keyFile: '', expiresAfterMs: undefined },
    { domain, selector: 'r1', algorithm: 'rsa-sha256', key: RSA, keyFile: '', expiresAfterMs: undefined },
  ];
  const signer = new DkimSigner({ keys: { areNone: false, of: keys }, clock: CLOCK, log: NO_LOG, metrics: new DkimMetrics() });
  return new Promise((resolve) => {
    signer.sign(judged({}, [Buffer.from(message, 'latin1')]), () => true, (_refusal, fields) => {
      resolve(Buffer.from(fields).toString('latin1') + message);
    });
  });
}
