/**
 * `twinpost config check --dns`: what those to whom a gateway sends look for in the DNS, and what it says.
 *
 *   each source        a PTR record of its address that names what it says in EHLO, and that name has the
 *                      address: many refuse others. What SPF of the name says of the address: reports are
 *                      judged by it (RFC 7208 2.4)
 *   its host name      an address, or an MX record: reports are from there. Without sources an address, a PTR
 *                      record of each that leads back to the name, and what SPF of the name says of each
 *   domains that sign  DKIM, SPF and DMARC of each of `dkim` (gateway/explain/sender-findings.ts)
 *   users              in a file: a key of each domain that they send from
 *   return addresses   of each domain of `verp` and `srs`: it is what SPF judges that mail by, so the same
 *                      of its SPF; and MX records that lead here, or no report comes back. Those of
 *                      `smtp.feedback` too
 *   readers            that mail by MX to `postmaster`, and those of feedback and tls_reports, leads to hosts
 *                      that are connected to, and not back here, where it would bounce
 *   reports            whether `dkim` has a key for the domain of `tls_reports.contact` (RFC 8460 3 wants
 *                      them signed), and, where it has any, for the host name, which reports to senders are
 *                      from
 *   blocklists         that each of `dnsbl` lives: 127.0.0.2 is on it, and 127.0.0.1 is not (RFC 5782 5)
 *   DNSSEC             of routes by MX, and a resolver that is believed: whether it looks at signatures
 *   next hops          that the system finds an address of each that a route names
 *
 * Without a route by MX nobody but next hops of the operator's sees our address and its name: whether the DNS
 * knows them is advice then.
 *
 * Which addresses mail leaves from is not known here without sources, nor of a private one: behind a
 * translator others see another address. Of its name what the host name is asked for without sources.
 */
import ipaddr from 'ipaddr.js';
import type { DnsFinding } from '../admin-api/explain.js';
import { pointerName, reversedAddress } from '../base/reversed-address.js';
import type { GatewayConfig } from '../config/types.js';
import { publishedKeys } from '../gateway/dkim/node/public-record.js';
import {
  Asker, domainFindings, ehloSpfFindings, isTranslated, recordsOf, spfFindings, unknown,
} from '../gateway/explain/sender-findings.js';
import { listAnswer } from '../gateway/inbound/blocklists.js';
import { readUsers } from '../gateway/inbound/users-file.js';
import { RelayPolicy } from '../gateway/inbound/policy/relay-policy.js';
import { DEFERRED, OWN_ORIGIN } from '../gateway/mail-types.js';
import type { RecipientResult } from '../gateway/mail-types.js';
import { MxLookup } from '../gateway/outbound/mx-lookup.js';
import type { MailWay } from '../gateway/outbound/pure/mail-exchangers.js';
import { isIpv6, ownNames } from '../gateway/outbound/pure/source-choice.js';
import type { MailSource } from '../gateway/outbound/pure/source-choice.js';
import type { HostVerdict } from '../gateway/outbound/pure/public-address.js';
import { checkSource } from '../gateway/outbound/source-check.js';
import type { SourceVerdict } from '../gateway/outbound/source-check.js';
import { judgedHost } from '../gateway/outbound/pure/public-address.js';
import { createRouter } from '../gateway/queue/router.js';
import { toAscii } from '../platform/node/idna.js';
import type { LookUpHost, Resolver } from '../platform/resolver.js';
import { quotedNames } from './reception-files.js';

/** `believesAd`: what the resolver says of DNSSEC counts. */
export async function dnsFindings(
  config: GatewayConfig, resolver: Resolver, believesAd: boolean, lookUpHost: LookUpHost,
): Promise<readonly DnsFinding[]> {
  const { sources, dkim, routes } = config;
  const host = config.hostName.toLowerCase();
  const isSeen = routes.some(({ nextHop: { isByMx } }) => isByMx === true);
  const asker = new Asker(resolver, isSeen);
  const findings = sources.length > 0 ? await sourcesFindings(sources, resolver, asker)
    : await hostFindings(host, 'A', asker);
  // Of one that is a source's, too, all has been told.
  if (sources.length > 0 && !sources.some(({ name }) => name.toLowerCase() === host)) {
    findings.push(await hostAddressFinding(host, asker));
  }
  const keys = publishedKeys(dkim);
  const domains = new Set(keys.domains);
  const { usersFile } = config.smtp;
  const ofUsers = usersFile === undefined ? [] : [...readUsers(usersFile).domains];
  const rewritten = rewrittenDomains(config);
  const isOfReports = !ofUsers.includes(host) && !rewritten.has(host);
  for (const domain of domains) {
    const from = domain === host && isOfReports ? undefined : sources;
    findings.push(...await domainFindings({ domain, keys: keys.of(domain) }, from, asker));
  }
  if (isSeen || domains.size > 0) findings.push(...unsignedUsers(ofUsers, domains));
  for (const domain of rewritten) {
    if (!domains.has(domain)) findings.push(...await spfFindings(domain, sources, asker));
  }
  findings.push(...await returnFindings(config, rewritten, asker), ...await readerFindings(config, resolver));
  const contact = domainOf(config.tlsReports?.contact ?? '');
  if (contact !== '' && !domains.has(contact)) {
    const text = `reports on TLS are from ${contact} (tls_reports.contact), and dkim has no key for it: many `
      + 'take none that are not signed';
    findings.push({ verdict: 'advice', text });
  }
  if (domains.size > 0 && !domains.has(host)) {
    const text = `reports to senders are from ${host} (hostname), and dkim has no key for it: many take none `
      + 'that are not signed';
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

/** Who sends to next hops of the operator's alone, and signs nothing, leaves that to them. */
function unsignedUsers(ofUsers: readonly string[], signed: ReadonlySet<string>): readonly DnsFinding[] {
  const without = ofUsers.filter((domain) => !signed.has(domain)).sort();
  if (without.length === 0) return [];
  const text = `users send from ${quotedNames(without)}, and dkim has no key for `
    + `${without.length === 1 ? 'it' : 'these'}: their mail gets no signature here`;
  return [{ verdict: 'advice', text }];
}

/** Those that our reverse-paths are in. */
function rewrittenDomains({ routes, smtp: { srs } }: GatewayConfig): ReadonlySet<string> {
  const ofRoutes = routes.flatMap(({ verp }) => verp?.domain ?? []);
  return new Set([...ofRoutes, ...(srs === undefined ? [] : [srs.domain])]);
}

async function returnFindings(
  { hostName, smtp: { feedback } }: GatewayConfig, rewritten: ReadonlySet<string>, asker: Asker,
): Promise<DnsFinding[]> {
  const taking = new Set([...rewritten, ...(feedback === undefined ? [] : [domainOf(feedback.address)])]);
  const findings: DnsFinding[] = [];
  for (const domain of taking) findings.push(...await mxFindings(domain, hostName.toLowerCase(), asker));
  return findings;
}

/** Whether mail to the domain comes here. Behind a balancer its MX records have another name. */
async function mxFindings(domain: string, host: string, asker: Asker): Promise<DnsFinding[]> {
  const answer = await asker.ask(domain, 'MX');
  if (answer.kind === 'failed') return [unknown('MX', domain, answer.why)];
  const named = answer.kind === 'found' ? answer.records.map(({ exchange }) => exchange) : [];
  const names = [...new Set(named)].filter((name) => name !== '').slice(0, MX_NAMES_MAX);
  if (names.length === 0) {
    const what = named.length === 0 ? 'has no MX record' : 'says that it takes no mail (null MX)';
    const text = `${domain} ${what}: reports to it do not come back; publish "MX 10 ${host}."`;
    return [{ verdict: 'bad', text }];
  }
  const has = await Promise.all(names.map((name) => hasAddress(name, asker)));
  const dead = names.filter((_name, at) => has[at] === false);
  const untold = has.find((each) => typeof each !== 'boolean');
  // Those who send reports try all of them: one that has an address is enough.
  if (untold !== undefined && !has.includes(true)) return [untold];
  const leads = `MX of ${domain} leads to`;
  if (dead.length === names.length) {
    const mend = names.includes(host) ? `give ${host} an address` : `publish "MX 10 ${host}."`;
    const what = names.length === 1 ? 'which has no address' : 'none of which has an address';
    const text = `${leads} ${names.join(', ')}, ${what}: reports to it do not come back; ${mend}`;
    return [{ verdict: 'bad', text }];
  }
  const findings = dead.map((name): DnsFinding => {
    const text = `${leads} ${names.join(', ')}, and ${name} has no address: take it out, or give it an `
      + 'address';
    return { verdict: 'advice', text };
  });
  if (!names.includes(host)) {
    const living = names.filter((name) => !dead.includes(name));
    const text = `${leads} ${living.join(', ')}, and not to ${host}: reports to it come back only if that `
      + 'leads to a gateway of this group';
    findings.push({ verdict: 'advice', text });
  } else if (!dead.includes(host)) findings.push({ verdict: 'good', text: `${leads} ${host}` });
  return findings;
}

/** Of either family; or that nobody could tell. */
async function hasAddress(name: string, asker: Asker): Promise<boolean | DnsFinding> {
  for (const family of ['A', 'AAAA'] as const) {
    const answer = await asker.ask(name, family);
    if (answer.kind === 'failed') return unknown(family, name, answer.why);
    if (answer.kind === 'found') return true;
  }
  return false;
}

/**
 * Whom we send on what comes to us, and whom mail about us is for: by the very rules of delivery. Where the
 * table of recipients may name another way, nothing is known here.
 */
async function readerFindings(
  { hostName, sources, routes, delivery, tlsReports, smtp }: GatewayConfig, resolver: Resolver,
): Promise<DnsFinding[]> {
  const { postmaster, feedback, relayDomains, recipientsFile, recipientsByHttp } = smtp;
  const router = createRouter(routes);
  const policy = new RelayPolicy({ networks: [], domains: relayDomains }, toAscii);
  const hasTable = recipientsFile !== undefined || recipientsByHttp !== undefined;
  const usesIpv6 = sources.some(({ address }) => isIpv6(address));
  const lookup = new MxLookup(
    { ...delivery.mx, usesIpv6, ownNames: ownNames(hostName, sources) }, resolver,
  );
  const findings: DnsFinding[] = [];
  for (const [key, address] of [
    ['smtp.postmaster', postmaster], ['smtp.feedback.forward_to', feedback?.forwardTo ?? ''],
    ['tls_reports.contact', tlsReports?.contact ?? ''],
  ] as const) {
    const domain = domainOf(address);
    if (domain === '' || (hasTable && policy.isRelayDomain(domain))) continue;
    if (router.route(domain, 'mail', address, OWN_ORIGIN)?.nextHop.isByMx !== true) continue;
    const way = await new Promise<MailWay>((resolve) => { lookup.ask(domain, resolve); });
    findings.push(await readerFinding(`mail to ${address} (${key})`, way, lookup));
  }
  return findings;
}

async function readerFinding(mail: string, way: MailWay, lookup: MxLookup): Promise<DnsFinding> {
  if ('why' in way) return strandedFinding(mail, way.why);
  const names: string[] = [];
  const whys: string[] = [];
  let enhanced = '4.4.1';
  for (const { name } of way.hosts) {
    const { open, whys: ofHost, isUntold } = await new Promise<HostVerdict>((resolve) => {
      lookup.addresses(name, (answers, isIpv6Only) => {
        resolve(judgedHost(answers, isIpv6Only, lookup.allowsPrivate));
      });
    });
    if (open.flat().length > 0) names.push(name);
    else if (whys.length < HOSTS_TOLD_MAX) whys.push(`${name}: ${ofHost.join(', ')}`);
    if (isUntold) enhanced = NO_ANSWER;
  }
  if (names.length > 0) return { verdict: 'good', text: `${mail} goes to ${names.join(', ')}` };
  return strandedFinding(mail, { status: DEFERRED, enhanced, text: whys.join('; ') });
}

function strandedFinding(
  mail: string, { status, enhanced, text: why }: Pick<RecipientResult, 'status' | 'enhanced' | 'text'>,
): DnsFinding {
  if (enhanced === NO_ANSWER) return { verdict: 'unknown', text: `${mail}: ${why}` };
  const what = status === DEFERRED ? 'waits' : 'bounces';
  const text = `${mail} ${what} (${enhanced}): ${why}; name an address that is read elsewhere, or give its `
    + 'domain a route to its mailboxes';
  return { verdict: 'bad', text };
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase();
}

/** What every list of IPv4 addresses has, and what none may have (RFC 5782 5). */
const LISTED = '127.0.0.2';
const UNLISTED = '127.0.0.1';

/** Of one domain: more are not looked at, and not shown. */
const MX_NAMES_MAX = 10;
/** Of hosts to which no mail can go. */
const HOSTS_TOLD_MAX = 3;
/** Enhanced status code of a way that the DNS did not tell (pure/mail-exchangers.ts). */
const NO_ANSWER = '4.4.3';

/** Signed as long as the root is, and of no company. */
const SIGNED = 'arpa';

async function sourcesFindings(
  sources: readonly MailSource[], resolver: Resolver, asker: Asker,
): Promise<DnsFinding[]> {
  const findings: DnsFinding[] = [];
  /** By what is said in EHLO: addresses that others see. */
  const seen = new Map<string, readonly string[]>();
  for (const source of sources) {
    const { address, name } = source;
    let addresses = [address];
    if (isTranslated(address)) {
      const found = await addressFindings(name, isIpv6(address) ? 'AAAA' : 'A', asker);
      findings.push(...found.findings);
      addresses = found.addresses;
    } else findings.push(await sourceFinding(source, resolver, asker));
    seen.set(name, [...seen.get(name) ?? [], ...addresses]);
  }
  for (const [name, addresses] of seen) {
    findings.push(...await ehloSpfFindings(name, [...new Set(addresses)], asker));
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
  const { findings, addresses } = await addressFindings(host, family, asker);
  return [...findings, ...await ehloSpfFindings(host, addresses, asker)];
}

/** Of reports it is the domain of From, whatever address they leave from. */
async function hostAddressFinding(host: string, asker: Asker): Promise<DnsFinding> {
  const has = await hasAddress(host, asker);
  if (typeof has !== 'boolean') return has;
  if (has) return { verdict: 'good', text: `${host} (hostname) has an address` };
  const answer = await asker.ask(host, 'MX');
  if (answer.kind === 'failed') return unknown('MX', host, answer.why);
  if (answer.kind === 'found' && answer.records.some(({ exchange }) => exchange !== '')) {
    return { verdict: 'good', text: `${host} (hostname) has an MX record` };
  }
  const text = `${host} (hostname) has neither an address nor an MX record: reports are from there, and many `
    + 'refuse mail of a domain that the DNS does not know; publish A or AAAA';
  return { verdict: asker.ofSender, text };
}

/** Addresses that the name has, and whether each leads back to it. */
async function addressFindings(
  host: string, family: 'A' | 'AAAA', asker: Asker,
): Promise<{ readonly findings: readonly DnsFinding[]; readonly addresses: string[] }> {
  const answer = await asker.ask(host, family);
  if (answer.kind === 'failed') return { findings: [unknown(family, host, answer.why)], addresses: [] };
  const addresses = [...recordsOf(answer)];
  if (addresses.length === 0) {
    const text = `${host} (said in EHLO) has no address`;
    return { findings: [{ verdict: asker.ofSender, text }], addresses };
  }
  const findings: DnsFinding[] = [];
  for (const address of addresses) findings.push(await pointerFinding(host, address, asker));
  return { findings, addresses };
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
