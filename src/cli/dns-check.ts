/**
 * `twinpost config check --dns`: what those to whom a gateway sends look for in the DNS, and what it says.
 *
 *   its host name      an address, and a PTR record of each address that leads back to the name: many refuse
 *                      others. An SPF record: reports are judged by it (RFC 7208 2.4)
 *   domains that sign  the public key of each of `dkim`, one SPF record, one DMARC record (RFC 9989)
 *
 * Which addresses mail leaves from is not known here: behind a translator they are not the host's own.
 */
import { createPublicKey } from 'node:crypto';
import { pointerName } from '../base/reversed-address.js';
import type { GatewayConfig } from '../config/types.js';
import { readDkimKey } from '../gateway/dkim/node/dkim-keys.js';
import { publicRecord, recordName } from '../gateway/dkim/node/public-record.js';
import type { DnsAnswer, Resolver } from '../platform/resolver.js';

export interface DnsFinding {
  /** `unknown`: the DNS gave no answer. `advice`: mail is taken by most without it. */
  readonly verdict: 'good' | 'bad' | 'advice' | 'unknown';
  readonly text: string;
}

export async function dnsFindings(
  { hostName, delivery, dkim }: GatewayConfig, resolver: Resolver,
): Promise<readonly DnsFinding[]> {
  const asker = new Asker(resolver);
  const families = delivery.mx.usesIpv6 ? ['A', 'AAAA'] as const : ['A'] as const;
  const findings = await hostFindings(hostName.toLowerCase(), families, asker);
  const domains = new Set(dkim.map(({ domain }) => domain));
  for (const key of dkim) {
    const record = publicRecord(createPublicKey(readDkimKey(key).key));
    findings.push(await keyFinding(recordName(key.domain, key.selector), record, asker));
  }
  for (const domain of domains) {
    findings.push(await policyFinding('SPF', domain, 'v=spf1', asker, 'bad'));
    findings.push(await policyFinding('DMARC', `_dmarc.${domain}`, 'v=DMARC1', asker, 'bad'));
  }
  return findings;
}

/** Whose data is text. */
type TextType = 'A' | 'AAAA' | 'PTR' | 'TXT';

class Asker {
  readonly #resolver: Resolver;

  constructor(resolver: Resolver) {
    this.#resolver = resolver;
  }

  ask(name: string, type: TextType): Promise<DnsAnswer<TextType>> {
    return new Promise((resolve) => { this.#resolver.ask(name, type, resolve); });
  }
}

async function hostFindings(
  host: string, families: readonly ('A' | 'AAAA')[], asker: Asker,
): Promise<DnsFinding[]> {
  const findings: DnsFinding[] = [];
  const addresses: string[] = [];
  for (const family of families) {
    const answer = await asker.ask(host, family);
    if (answer.kind === 'failed') findings.push(unknown(family, host, answer.why));
    addresses.push(...recordsOf(answer));
  }
  if (addresses.length === 0 && findings.length === 0) {
    findings.push({ verdict: 'bad', text: `${host} (hostname, said in EHLO) has no address` });
  }
  for (const address of addresses) findings.push(await pointerFinding(host, address, asker));
  findings.push(await policyFinding('SPF', host, 'v=spf1', asker, 'advice'));
  return findings;
}

async function pointerFinding(host: string, address: string, asker: Asker): Promise<DnsFinding> {
  const answer = await asker.ask(pointerName(address), 'PTR');
  if (answer.kind === 'failed') return unknown('PTR', address, answer.why);
  const names = recordsOf(answer);
  if (names.includes(host)) return { verdict: 'good', text: `${address} leads back to ${host} (PTR)` };
  const found = names.length === 0 ? 'nothing' : names.slice(0, 3).join(', ');
  return { verdict: 'bad', text: `${address} does not lead back to ${host}: its PTR record says ${found}` };
}

async function keyFinding(name: string, record: string, asker: Asker): Promise<DnsFinding> {
  const answer = await asker.ask(name, 'TXT');
  if (answer.kind === 'failed') return unknown('TXT', name, answer.why);
  const wanted = tagOf(record, 'p');
  const found = recordsOf(answer);
  if (found.some((text) => tagOf(text, 'p') === wanted)) {
    return { verdict: 'good', text: `${name} has the key that signs (DKIM)` };
  }
  const what = found.length === 0 ? 'has no record' : 'has another key';
  return { verdict: 'bad', text: `${name} ${what}: publish "${record}"` };
}

async function policyFinding(
  what: 'SPF' | 'DMARC', name: string, start: string, asker: Asker, missing: 'bad' | 'advice',
): Promise<DnsFinding> {
  const answer = await asker.ask(name, 'TXT');
  if (answer.kind === 'failed') return unknown('TXT', name, answer.why);
  const found = recordsOf(answer).filter((text) => text.toLowerCase().startsWith(start.toLowerCase()));
  if (found.length === 1) return { verdict: 'good', text: `${name} has one ${what} record` };
  if (found.length === 0) return { verdict: missing, text: `${name} has no ${what} record` };
  return { verdict: 'bad', text: `${name} has ${String(found.length)} ${what} records: none of them counts` };
}

function recordsOf(answer: DnsAnswer<TextType>): readonly string[] {
  return answer.kind === 'found' ? answer.records : [];
}

function unknown(type: TextType, name: string, why: string): DnsFinding {
  return { verdict: 'unknown', text: `no answer on ${type} of ${name}: ${why}` };
}

/** RFC 6376 3.2: tags with blanks anywhere. */
function tagOf(record: string, tag: string): string {
  for (const part of record.split(';')) {
    const [name = '', ...value] = part.split('=');
    if (name.trim() === tag) return value.join('=').replace(/\s/g, '');
  }
  return '';
}
