/**
 * `twinpost config check --dns`: what those to whom a gateway sends look for in the DNS, and what it says.
 *
 *   each source        a PTR record of its address that names what it says in EHLO, and that name has the
 *                      address: many refuse others. An SPF record of the name: reports are judged by it
 *                      (RFC 7208 2.4)
 *   its host name      without sources: an address, and a PTR record of each that leads back to the name; SPF
 *   domains that sign  the public key of each of `dkim`, alone, with its kind and hash; one SPF record, one
 *                      DMARC record, where all look for it (RFC 7489, RFC 9989); whether their SPF lets each
 *                      source send
 *   return addresses   of each domain of `verp` and `srs`: it is what SPF judges that mail by, so the same
 *                      of its SPF; and MX records that lead here, or no report comes back. Those of
 *                      `smtp.feedback` too
 *   tls_reports        whether `dkim` has a key for the domain of `contact`: RFC 8460 3 wants reports signed
 *   blocklists         that each of `dnsbl` lives: 127.0.0.2 is on it, and 127.0.0.1 is not (RFC 5782 5)
 *   DNSSEC             of routes by MX, and a resolver that is believed: whether it looks at signatures
 *   next hops          that the system finds an address of each that a route names
 *
 * Without a route by MX nobody but next hops of the operator's sees our address and its name: whether the DNS
 * knows them is advice then.
 *
 * Which addresses mail leaves from is not known here without sources, nor of a private one: behind a
 * translator others see another address. Of its name what the host name is asked for.
 */
import { createPublicKey } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { pointerName, reversedAddress } from '../base/reversed-address.js';
import type { GatewayConfig } from '../config/types.js';
import { readDkimKey } from '../gateway/dkim/node/dkim-keys.js';
import { publicRecord, recordName } from '../gateway/dkim/node/public-record.js';
import { listAnswer } from '../gateway/inbound/blocklists.js';
import type { CheckedType } from '../gateway/inbound/sender-checks/node/check-messages.js';
import { isIpv6 } from '../gateway/outbound/pure/source-choice.js';
import type { MailSource } from '../gateway/outbound/pure/source-choice.js';
import { checkSource } from '../gateway/outbound/source-check.js';
import type { SourceVerdict } from '../gateway/outbound/source-check.js';
import type { DnsAnswer, LookUpHost, Resolver } from '../platform/resolver.js';

export interface DnsFinding {
  /** `unknown`: the DNS gave no answer. `advice`: mail is taken by most without it. */
  readonly verdict: 'good' | 'bad' | 'advice' | 'unknown';
  readonly text: string;
}

/** `believesAd`: what the resolver says of DNSSEC counts. */
export async function dnsFindings(
  config: GatewayConfig, resolver: Resolver, believesAd: boolean, lookUpHost: LookUpHost,
): Promise<readonly DnsFinding[]> {
  const { hostName, sources, dkim, routes } = config;
  const isSeen = routes.some(({ nextHop: { isByMx } }) => isByMx === true);
  const asker = new Asker(resolver, isSeen);
  const findings = sources.length > 0 ? await sourcesFindings(sources, resolver, asker)
    : await hostFindings(hostName.toLowerCase(), 'A', asker);
  const domains = new Set(dkim.map(({ domain }) => domain));
  for (const key of dkim) {
    const record = publicRecord(createPublicKey(readDkimKey(key).key));
    findings.push(await keyFinding(recordName(key.domain, key.selector), record, asker));
  }
  for (const domain of domains) {
    findings.push(await policyFinding('SPF', domain, 'v=spf1', asker, asker.ofSender));
    findings.push(...await senderFindings(domain, sources, asker));
    findings.push(await dmarcFinding(domain, asker));
  }
  findings.push(...await returnFindings(config, domains, asker));
  const contact = domainOf(config.tlsReports?.contact ?? '');
  if (contact !== '' && !domains.has(contact)) {
    const text = `reports on TLS are from ${contact} (tls_reports.contact), and dkim has no key for it: many `
      + 'take none that are not signed';
    findings.push({ verdict: 'advice', text });
  }
  const usesDane = routes.some(({ nextHop: { isByMx, tls } }) => isByMx === true && tls !== undefined);
  if (usesDane && believesAd) findings.push(await authenticFinding(asker));
  for (const list of new Set(config.smtp.listen.flatMap(({ blocklists }) => blocklists))) {
    findings.push(await listFinding(list, asker));
  }
  return [...findings, ...await hopFindings(routes, lookUpHost)];
}

/** As connections to them find it. Of an address there is nothing to be found. */
async function hopFindings(
  routes: GatewayConfig['routes'], lookUpHost: LookUpHost,
): Promise<readonly DnsFinding[]> {
  const hosts = routes.flatMap(({ nextHop: { isByMx, host, others = [] } }) =>
    [...(isByMx === true ? [] : [host]), ...others.map((other) => other.host)]);
  const names = [...new Set(hosts)].filter((host) => !ipaddr.isValid(host));
  return Promise.all(names.map(async (name) => {
    const { addresses, why, isFailed } = await lookUpHost(name);
    if (addresses.length > 0) return { verdict: 'good', text: `next hop ${name} has an address` };
    return { verdict: isFailed ? 'unknown' : 'bad', text: `next hop ${name}: ${why}` };
  }));
}

/** Of domains that our reverse-paths are in; `judged`: their SPF has been looked at. */
async function returnFindings(
  { hostName, sources, routes, smtp: { srs, feedback } }: GatewayConfig, judged: ReadonlySet<string>,
  asker: Asker,
): Promise<DnsFinding[]> {
  const rewritten = routes.flatMap(({ verp }) => verp?.domain ?? []);
  if (srs !== undefined) rewritten.push(srs.domain);
  const findings: DnsFinding[] = [];
  for (const domain of new Set(rewritten)) {
    if (judged.has(domain)) continue;
    findings.push(await policyFinding('SPF', domain, 'v=spf1', asker, asker.ofSender));
    findings.push(...await senderFindings(domain, sources, asker));
  }
  const taking = feedback === undefined ? rewritten : [...rewritten, domainOf(feedback.address)];
  for (const domain of new Set(taking)) findings.push(await mxFinding(domain, hostName.toLowerCase(), asker));
  return findings;
}

/** Whether mail to the domain comes here. Behind a balancer its MX records have another name. */
async function mxFinding(domain: string, host: string, asker: Asker): Promise<DnsFinding> {
  const answer = await asker.ask(domain, 'MX');
  if (answer.kind === 'failed') return unknown('MX', domain, answer.why);
  const named = answer.kind === 'found' ? answer.records.map(({ exchange }) => exchange) : [];
  if (named.includes(host)) return { verdict: 'good', text: `MX of ${domain} leads to ${host}` };
  const names = named.filter((name) => name !== '').slice(0, 3).join(', ');
  if (names === '') {
    const what = named.length === 0 ? 'has no MX record' : 'says that it takes no mail (null MX)';
    const text = `${domain} ${what}: reports to it do not come back; publish "MX 10 ${host}."`;
    return { verdict: 'bad', text };
  }
  const text = `MX of ${domain} leads to ${names}, and not to ${host}: reports to it come back only if that `
    + 'leads to a gateway of this group';
  return { verdict: 'advice', text };
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase();
}

const SPF_VERDICTS: Readonly<Partial<Record<string, DnsFinding['verdict']>>> = {
  pass: 'good', neutral: 'advice', temperror: 'unknown',
};

/** Above a domain a DMARC record is looked for at names of so many labels at most (RFC 9989 4.10). */
const ABOVE_LABELS_MAX = 7;

/** What every list of IPv4 addresses has, and what none may have (RFC 5782 5). */
const LISTED = '127.0.0.2';
const UNLISTED = '127.0.0.1';

/** Signed as long as the root is, and of no company. */
const SIGNED = 'arpa';

/** Of ipaddr.js. */
const TRANSLATED: readonly string[] = ['private', 'carrierGradeNat', 'uniqueLocal'];

/** Whose data is text. */
type TextType = 'A' | 'AAAA' | 'PTR' | 'TXT';

class Asker {
  readonly #resolver: Resolver;
  /** What it is when the DNS does not know who we say to be. */
  readonly ofSender: 'bad' | 'advice';

  /** `isSeen`: we send to whom the DNS names. */
  constructor(resolver: Resolver, isSeen: boolean) {
    this.#resolver = resolver;
    this.ofSender = isSeen ? 'bad' : 'advice';
  }

  ask<T extends CheckedType>(name: string, type: T): Promise<DnsAnswer<T>> {
    return new Promise((resolve) => { this.#resolver.ask(name, type, resolve); });
  }
}

async function sourcesFindings(
  sources: readonly MailSource[], resolver: Resolver, asker: Asker,
): Promise<DnsFinding[]> {
  const findings: DnsFinding[] = [];
  for (const source of sources) {
    if (isTranslated(source.address)) {
      const family = isIpv6(source.address) ? 'AAAA' : 'A';
      findings.push(...await addressFindings(source.name, family, asker));
    } else findings.push(await sourceFinding(source, resolver, asker));
  }
  for (const name of new Set(sources.map((source) => source.name))) {
    findings.push(await policyFinding('SPF', name, 'v=spf1', asker, 'advice'));
  }
  return findings;
}

async function sourceFinding(
  source: MailSource, resolver: Resolver, { ofSender }: Asker,
): Promise<DnsFinding> {
  const { address, name } = source;
  const verdict = await new Promise<SourceVerdict>((resolve) => { checkSource(source, resolver, resolve); });
  if (verdict.kind === 'confirmed') {
    return { verdict: 'good', text: `${address} and ${name} lead to each other (PTR, EHLO)` };
  }
  const text = `source ${address} (${name} in EHLO): ${verdict.why}`;
  return { verdict: verdict.kind === 'refuted' ? ofSender : 'unknown', text };
}

/** Whether mail by these addresses passes the domain's SPF, as those judge it who take it (RFC 7208). */
async function senderFindings(
  domain: string, sources: readonly MailSource[], asker: Asker,
): Promise<readonly DnsFinding[]> {
  const seen = sources.filter(({ address }) => !isTranslated(address));
  if (seen.length === 0) return [];
  // Loaded here alone: it is large, and few commands need it.
  const [{ spfVerdict }, { CheckQuestions }] = await Promise.all([
    import('../gateway/inbound/sender-checks/node/spf-check.js'),
    import('../gateway/inbound/sender-checks/node/check-questions.js'),
  ]);
  const findings: DnsFinding[] = [];
  for (const { address, name } of seen) {
    const questions = new CheckQuestions((of, type) => asker.ask(of, type));
    const { result } = await spfVerdict(
      { client: address, helo: name, hostName: name, reversePath: `postmaster@${domain}` }, questions,
    );
    // Without a record it has been told already.
    if (result === 'none') continue;
    const text = `mail of ${domain} by ${address}: SPF says ${result}`;
    findings.push({ verdict: SPF_VERDICTS[result] ?? asker.ofSender, text });
  }
  return findings;
}

/** As reception reads its answers. */
async function listFinding(list: string, asker: Asker): Promise<DnsFinding> {
  const listed = listAnswer(await asker.ask(`${reversedAddress(LISTED)}.${list}`, 'A'));
  const clear = listAnswer(await asker.ask(`${reversedAddress(UNLISTED)}.${list}`, 'A'));
  for (const answer of [listed, clear]) {
    if (answer.kind === 'failed') {
      return { verdict: 'unknown', text: `no answer of the blocklist ${list}: ${answer.why}` };
    }
    if (answer.kind === 'refused') {
      return { verdict: 'bad', text: `the blocklist ${list} will not tell: ${answer.why}` };
    }
  }
  if (clear.kind === 'listed') {
    return { verdict: 'bad', text: `the blocklist ${list} lists everybody: ${UNLISTED}, too (RFC 5782 5)` };
  }
  if (listed.kind === 'listed') return { verdict: 'good', text: `the blocklist ${list} lives (RFC 5782 5)` };
  return { verdict: 'bad', text: `the blocklist ${list} lists nobody: not even ${LISTED} (RFC 5782 5)` };
}

async function hostFindings(host: string, family: 'A' | 'AAAA', asker: Asker): Promise<DnsFinding[]> {
  const findings = await addressFindings(host, family, asker);
  findings.push(await policyFinding('SPF', host, 'v=spf1', asker, 'advice'));
  return findings;
}

async function addressFindings(host: string, family: 'A' | 'AAAA', asker: Asker): Promise<DnsFinding[]> {
  const answer = await asker.ask(host, family);
  if (answer.kind === 'failed') return [unknown(family, host, answer.why)];
  const addresses = recordsOf(answer);
  if (addresses.length === 0) {
    return [{ verdict: asker.ofSender, text: `${host} (said in EHLO) has no address` }];
  }
  const findings: DnsFinding[] = [];
  for (const address of addresses) findings.push(await pointerFinding(host, address, asker));
  return findings;
}

/** Nobody outside sees it. */
function isTranslated(address: string): boolean {
  return TRANSLATED.includes(ipaddr.parse(address).range());
}

async function pointerFinding(host: string, address: string, asker: Asker): Promise<DnsFinding> {
  const answer = await asker.ask(pointerName(address), 'PTR');
  if (answer.kind === 'failed') return unknown('PTR', address, answer.why);
  const names = recordsOf(answer);
  if (names.includes(host)) return { verdict: 'good', text: `${address} leads back to ${host} (PTR)` };
  const found = names.length === 0 ? 'nothing' : names.slice(0, 3).join(', ');
  const text = `${address} does not lead back to ${host}: its PTR record says ${found}`;
  return { verdict: asker.ofSender, text };
}

async function keyFinding(name: string, record: string, asker: Asker): Promise<DnsFinding> {
  const answer = await asker.ask(name, 'TXT');
  if (answer.kind === 'failed') return unknown('TXT', name, answer.why);
  const found = recordsOf(answer);
  const [only] = found;
  const what = only === undefined ? 'has no record'
    : found.length > 1 ? `has ${String(found.length)} records, and which of them counts is not said`
      : keyTrouble(only, record);
  if (what === '') return { verdict: 'good', text: `${name} has the key that signs (DKIM)` };
  return { verdict: 'bad', text: `${name} ${what}: publish "${record}"` };
}

/** As who verifies reads it (RFC 6376 3.6.1): why what is published does not serve; '' if it does. */
function keyTrouble(found: string, wanted: string): string {
  if (tagOf(found, 'p') !== tagOf(wanted, 'p')) return 'has another key';
  const kind = tagOf(found, 'k') || 'rsa';
  if (kind !== tagOf(wanted, 'k')) return `says that its key is of kind ${kind}`;
  const hashes = tagOf(found, 'h');
  return hashes === '' || hashes.split(':').includes('sha256') ? ''
    : `says that it is for ${hashes}, and we sign by sha256`;
}

/** Without it no TLSA record ever counts (RFC 7672 2.2), and nobody would notice. */
async function authenticFinding(asker: Asker): Promise<DnsFinding> {
  const answer = await asker.ask(SIGNED, 'A');
  if (answer.kind === 'failed') {
    const { text } = unknown('A', SIGNED, answer.why);
    return { verdict: 'unknown', text: `whether the resolver looks at DNSSEC can't be told: ${text}` };
  }
  if (answer.isAuthentic) return { verdict: 'good', text: 'the resolver looks at DNSSEC: DANE is used' };
  const text = `the resolver does not say of ${SIGNED}, a signed name, that it is (AD): it does not look at `
    + 'DNSSEC, and DANE is not used; have it validate, or name one that does (dns.resolvers)';
  return { verdict: 'advice', text };
}

async function policyFinding(
  what: 'SPF' | 'DMARC', name: string, start: string, asker: Asker, missing: 'bad' | 'advice',
): Promise<DnsFinding> {
  const answer = await asker.ask(name, 'TXT');
  if (answer.kind === 'failed') return unknown('TXT', name, answer.why);
  const found = recordsOf(answer).filter((text) => text.toLowerCase().startsWith(start.toLowerCase()));
  if (found.length === 1) return { verdict: 'good', text: `${name} has one ${what} record` };
  if (found.length === 0) return { verdict: missing, text: `${name} has no ${what} record` };
  const verdict = what === 'SPF' ? asker.ofSender : 'bad';
  return { verdict, text: `${name} has ${String(found.length)} ${what} records: none of them counts` };
}

/**
 * Without one of its own a domain is under that of its organizational domain by the list of public suffixes
 * (RFC 7489 6.6.3). Those at other names above only who walks the tree finds (RFC 9989 4.10).
 */
async function dmarcFinding(domain: string, asker: Asker): Promise<DnsFinding> {
  const own = await policyFinding('DMARC', `_dmarc.${domain}`, 'v=DMARC1', asker, 'advice');
  if (own.verdict !== 'advice') return own;
  // Loaded here alone, as for SPF.
  const find = (await import('../gateway/inbound/sender-checks/node/dmarc-check.js')).organizationOf;
  const organization = await find(domain);
  const labels = domain.split('.');
  const above = labels.map((_label, from) => labels.slice(from).join('.'))
    .slice(Math.max(1, labels.length - ABOVE_LABELS_MAX), -1);
  for (const name of new Set([...(organization === '' ? [] : [organization]), ...above])) {
    if (name === domain) continue;
    const found = await policyFinding('DMARC', `_dmarc.${name}`, 'v=DMARC1', asker, 'advice');
    if (found.verdict === 'unknown') return found;
    // It has several: who adds one for the domain alone has not mended that.
    if (found.verdict === 'bad' && name === organization) return found;
    if (found.verdict !== 'good') continue;
    if (name === organization) return { ...found, text: `${found.text}, which ${domain} is under` };
    const text = `_dmarc.${domain} has no DMARC record, and that of _dmarc.${name} is found by the tree walk `
      + 'of RFC 9989 alone: many go by the list of public suffixes (RFC 7489), and find none';
    return { verdict: 'advice', text };
  }
  return { ...own, verdict: 'bad' };
}

function recordsOf(answer: DnsAnswer<TextType>): readonly string[] {
  return answer.kind === 'found' ? answer.records : [];
}

function unknown(type: CheckedType, name: string, why: string): DnsFinding {
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
