/**
 * Where mail to an address, a domain or a queue would go by a configuration, and why: what an address of the
 * gateway's own stands for (own-address.ts), alias, route, queue, hosts with their addresses, TLS, what their
 * TLSA records say of it (explained-dane.ts), the domain's own policy (MTA-STS, explained-policy.ts), which
 * of our addresses it would leave from (`sources`), what receivers find of the sender (explained-sender.ts),
 * retries. Asks the table of recipients, the DNS and the
 * domain, all within one time (answer-time.ts), and no next hop: whether the hosts take mail is not tried.
 *
 *   name of a queue ─► its route      domain ─► where it leads      address ─► as RCPT would find it
 *
 * A gateway that runs answers so by what is in force, the command line by a file.
 */
import type {
  DnsFinding, ExplainAnswer, ExplainQuestion, ExplainedHost, ExplainedSource, ExplainedTo, ExplainedWay,
} from '../../admin-api/explain.js';
import type { Https } from '../../platform/https.js';
import { toAscii } from '../../platform/node/idna.js';
import type { Clock } from '../../platform/ports.js';
import type { DnsAnswer, HostAddresses, Resolver } from '../../platform/resolver.js';
import type { WhoMaySend } from '../daemon/gateway-options.js';
import type { PublishedKeys } from '../dkim/node/public-record.js';
import { parsePath } from '../../smtp/address.js';
import { RelayPolicy } from '../inbound/policy/relay-policy.js';
import { byDomain, destinationsOf } from '../inbound/recipients/destinations.js';
import type { DestinationDesk, RoutedRecipient } from '../inbound/recipients/destinations.js';
import type { RecipientTable } from '../inbound/recipients/listing.js';
import { isLoopback } from '../../platform/node/own-host.js';
import type { LostTls } from '../outbound/host-memory.js';
import { MxLookup } from '../outbound/mx-lookup.js';
import type { MxOptions } from '../outbound/mx-lookup.js';
import { addressOfLiteral } from '../outbound/pure/mail-exchangers.js';
import type { HostsWay, MailHost, MailWay } from '../outbound/pure/mail-exchangers.js';
import { areProved, isTlsJudged } from '../outbound/pure/host-tlsa.js';
import { judgedHost } from '../outbound/pure/public-address.js';
import { isIpv6, waysTo } from '../outbound/pure/source-choice.js';
import type { MailSource } from '../outbound/pure/source-choice.js';
import { provedWay, underPolicy } from '../outbound/pure/sts-policy.js';
import { checkSource } from '../outbound/source-check.js';
import type { JudgedSource } from '../outbound/sources.js';
import type { ExplainedPolicies } from '../outbound/sts/sts-policies.js';
import { nextHopUrl } from '../queue/next-hop.js';
import { createRouter } from '../queue/router.js';
import type { RouteOptions } from '../queue/router.js';
import type { MailOrigin, NextHop, NextHopTls, OtherHost } from '../mail-types.js';
import { AnswerTime } from './answer-time.js';
import { UNSIGNED_MX, daneOf } from './explained-dane.js';
import { senderQuestion } from './explained-sender.js';
import { fallbackUnder, hostsUnder, policyOf } from './explained-policy.js';
import type { AskedHost, ExplainedPolicy } from './explained-policy.js';
import { NotExplained } from './not-explained.js';
import { meantBy, rolesOf } from './own-address.js';
import type { SenderQuestion } from './sender-findings.js';

export interface ExplainOptions {
  readonly hostName: string;
  readonly routes: readonly RouteOptions[];
  readonly sources: readonly MailSource[];
  readonly dkim: PublishedKeys;
  readonly mx: MxOptions;
  /** "address:port" of each. */
  readonly listeners: readonly string[];
  readonly relayDomains: readonly string[];
  readonly postmaster: string;
  readonly smtp: Pick<WhoMaySend, 'srs' | 'feedback' | 'recipientsByHttp'>;
  readonly retry: { readonly firstMs: number; readonly maxMs: number };
  readonly lifetimeMs: number;
}

export interface ExplainPorts {
  readonly clock: Clock;
  readonly resolver: Resolver;
  readonly https: Https;
  readonly recipients: RecipientTable | undefined;
  /** Never rejects; given up when `over` is done. */
  readonly lookUpHost: (host: string, over: Promise<void>) => Promise<HostAddresses>;
  /** Of the gateway that runs, which goes by them; undefined: none does. */
  readonly policies: ExplainedPolicies | undefined;
  /** Likewise, sources of IPv6. */
  readonly judged: (() => readonly JudgedSource[]) | undefined;
  /** Likewise, hosts that are spoken to in clear as their TLS failed. */
  readonly lostTls: ((host: string, port: number) => LostTls | undefined) | undefined;
  /** Never rejects. */
  readonly findSender: (question: SenderQuestion, time: AnswerTime) => Promise<readonly DnsFinding[]>;
}

interface WayPorts extends ExplainPorts {
  readonly time: AnswerTime;
}

/** Whom an alias leads to beyond these is not looked up. */
const WAYS_MAX = 20;
const RECIPIENTS_MAX = 10_000;
/** No further one is begun after so long, and none goes on after ANSWER_MS. */
const WAYS_MS_MAX = 15_000;
const ANSWER_MS = 20_000;

/** Status of a question that the DNS did not answer (outbound/pure/mail-exchangers.ts). */
export const NO_ANSWER = '4.4.3';

type Addresses = readonly DnsAnswer<'A' | 'AAAA'>[];

const NO_POLICY: ExplainedPolicy = { policy: undefined, text: '', isUnknown: false };

interface Found {
  readonly to: ExplainedTo;
  readonly routed: readonly RoutedRecipient[];
}

/** Rejects with NotExplained when nothing is meant by it, or mail to it would be refused. */
export async function explained(
  question: ExplainQuestion, options: ExplainOptions, ports: ExplainPorts,
): Promise<ExplainAnswer> {
  const from = reversePathOf(question.from);
  const { to, routed } = meantAndRouted({ ...question, from }, options, ports);
  const { retry: { firstMs, maxMs }, lifetimeMs } = options;
  const untilMs = ports.clock.nowMs() + WAYS_MS_MAX;
  const time = new AnswerTime(ANSWER_MS, ports.resolver);
  const ways: ExplainedWay[] = [];
  let sender: readonly DnsFinding[] = [];
  try {
    const asked = senderOf(from, routed, options, { ...ports, time });
    for (const one of routed.slice(0, WAYS_MAX)) {
      if (ways.length > 0 && ports.clock.nowMs() >= untilMs) break;
      ways.push(await wayOf(to, one, options, { ...ports, time }));
    }
    sender = await asked;
  } finally {
    time.close();
  }
  return {
    to, ways, left_out: routed.length - ways.length, sender,
    retries: { first_ms: firstMs, max_ms: maxMs, lifetime_ms: lifetimeMs },
  };
}

/** As MAIL takes it, in its angle brackets or without them. */
function reversePathOf(from: string): string {
  const text = from.startsWith('<') ? from : `<${from}>`;
  const path = parsePath(text, 0, toAscii);
  const why = typeof path === 'string' ? path : path.end < text.length ? 'there is more behind it'
    : path.address !== '' && path.domain === '' ? 'domain is missing' : '';
  if (typeof path !== 'string' && why === '') return path.address;
  const isNone = `'${from}' is no reverse-path (${why})`;
  throw new NotExplained('question', `${isNone}: say USER@DOMAIN, or <> for the null one`);
}

/** Nobody but the operator's own sees it where none is by MX. */
function senderOf(
  from: string, routed: readonly RoutedRecipient[], options: ExplainOptions,
  { findSender, time }: WayPorts,
): Promise<readonly DnsFinding[]> {
  const byMx = routed.map(({ route }) => route).filter(({ nextHop }) => nextHop.isByMx === true);
  return byMx.length === 0 ? Promise.resolve([]) : findSender(senderQuestion(from, byMx, options), time);
}

/** As reception would find it for a client that may send anywhere. */
function meantAndRouted(question: ExplainQuestion, options: ExplainOptions, ports: ExplainPorts): Found {
  const { to: recipient, from: reversePath, listener } = question;
  const { listeners, relayDomains: domains, routes } = options;
  if (listener !== '' && !listeners.includes(listener)) {
    throw new NotExplained('question', `no listener '${listener}'; there are: ${listeners.join(', ')}`);
  }
  const policy = new RelayPolicy({ networks: [], domains }, toAscii);
  const router = createRouter(routes);
  const roles = rolesOf(policy, options);
  const desk = { policy, roles, ports: { router, toAscii, recipients: ports.recipients }, lookups: 0 };
  const origin = { reversePath, listener: listener === '' ? listeners[0] ?? '' : listener };
  const path = parsePath(`<${recipient}>`, 0, toAscii);
  if (typeof path === 'string') return destination(recipient, path, desk, origin, options);
  const meant = meantBy(path, reversePath, roles, options, ports.clock);
  const { to } = meant;
  const senders = meant.is === '' ? sendersTo(path.domain, desk) : {};
  const told = { recipient, is: meant.is, stands_for: to?.address ?? '', ...senders };
  if (to === undefined) return { to: told, routed: [] };
  if (options.smtp.recipientsByHttp !== undefined && policy.isRelayDomain(to.domain)) {
    const text = `who is there in ${to.domain} is asked for by HTTP (smtp.recipients), and not here`;
    throw new NotExplained('unknown', text);
  }
  const listed = destinationsOf(to, desk, origin, RECIPIENTS_MAX);
  const routed = meant.isRole && 'reply' in listed ? byDomain(to, desk, origin) : listed;
  if ('unasked' in routed) throw new NotExplained('unknown', 'a directory must be asked first');
  if ('reply' in routed) throw refused(recipient, routed.reply);
  return { to: told, routed };
}

/** A queue, or a domain. `why`: it is no address. */
function destination(
  text: string, why: string, desk: DestinationDesk, origin: MailOrigin,
  { routes, smtp: { recipientsByHttp } }: ExplainOptions,
): Found {
  const { policy, ports: { recipients } } = desk;
  const route = createRouter(routes).routeOfQueue(text, 'mail');
  // An address of nobody's: conditions of routes that name recipients mean others.
  const path = /[.[]/.test(text) ? parsePath(`<*@${text}>`, 0, toAscii) : why;
  if (route !== undefined) {
    if (route.nextHop.isByMx === true && route.nextHop.host === '') {
      const each = `route ${text} has a queue for each domain: say the domain, or ${text}/DOMAIN`;
      throw new NotExplained('question', each);
    }
    // A route of one domain has its name.
    const isOfDomain = typeof path !== 'string' && routes.some(({ name, domains: [domain, ...others] }) =>
      name === text && domain === path.domain && others.length === 0);
    const to = {
      recipient: text, is: 'a queue', stands_for: text, ...(isOfDomain ? sendersTo(path.domain, desk) : {}),
    };
    return { to, routed: [{ route, address: text, hasLeft: false, key: text }] };
  }
  if (typeof path === 'string') {
    const names = routes.map(({ name }) => name).join(', ');
    const isNone = `'${text}' is no address (${why}), no domain and no queue`;
    throw new NotExplained('question', `${isNone}; there are the routes ${names}`);
  }
  const { domain } = path;
  const isListed = (recipients ?? recipientsByHttp) !== undefined && policy.isRelayDomain(domain);
  const is = isListed ? 'a domain of ours: a listed recipient may have a way of his own' : 'a domain';
  const routed = byDomain({ address: `@${domain}`, domain }, desk, origin);
  if ('reply' in routed) throw refused(text, routed.reply);
  const to = { recipient: text, is, stands_for: text, ...sendersTo(domain, desk) };
  return { to, routed: routed.map((one) => ({ ...one, address: text })) };
}

/** By the domain alone, as RCPT judges it (inbound/commands/recipient.ts). */
function sendersTo(domain: string, { policy, roles }: DestinationDesk): { readonly senders: string } {
  if (policy.isRelayDomain(domain)) return { senders: 'anybody: it is in relay_domains' };
  const role = parsePath(`<postmaster@${domain}>`, 0, toAscii);
  const hasOwn = typeof role !== 'string' && roles.destinationOf(role) !== undefined;
  const others = hasOwn ? "others only to addresses of the gateway's own" : 'nobody else';
  return { senders: `users, and clients of relay_networks and relay_certificates; ${others}` };
}

function refused(recipient: string, reply: string): NotExplained {
  return new NotExplained('answer', `mail to ${recipient} would be refused: ${reply.trim()}`);
}

async function wayOf(
  to: ExplainedTo, { route, address }: RoutedRecipient, { mx, sources }: ExplainOptions, ports: WayPorts,
): Promise<ExplainedWay> {
  const { nextHop } = route;
  const lookup = new MxLookup(mx, ports.time);
  const ours = await knownSources(sources, nextHop, ports);
  const told = {
    ...to, address, queue: route.queueName, next_hop: nextHopUrl(nextHop),
    tls: tlsText(nextHop, nextHop.host), ...authOf(nextHop), mta_sts: '', sources: [],
  };
  const others = await namedHosts(nextHop.others ?? [], ports);
  const spoken = (host: ExplainedHost, at: number): ExplainedHost => {
    const { terms } = nextHop.others?.[at] ?? {};
    return inClear(host, terms === undefined ? nextHop.tls : terms.tls, ports);
  };
  if (nextHop.isByMx !== true) {
    const first = await namedHosts([{ preference: 0, host: nextHop.host, port: nextHop.port }], ports);
    const named = [...first.map((host) => inClear(host, nextHop.tls, ports)), ...others.map(spoken)];
    const { hosts, used } = sourced([], named, nextHop.host, ours);
    const [why, status] = whyNone(hosts);
    return { ...told, hosts, sources: shown(used), why, status };
  }
  const way = await new Promise<MailWay>((resolve) => { lookup.ask(nextHop.host, resolve); });
  if ('why' in way) return { ...told, hosts: [], why: way.why.text, status: way.why.enhanced };
  const isJudged = isTlsJudged(nextHop);
  const asksPolicy = mx.usesMtaSts && isJudged && addressOfLiteral(nextHop.host) === undefined;
  const [{ policy, text, isUnknown }, asked] = await Promise.all([
    asksPolicy ? policyOf(nextHop.host, lookup, ports) : NO_POLICY,
    Promise.all(way.hosts.map((host) => askHost(host, way, nextHop.port, isJudged, lookup))),
  ]);
  const under = underPolicy(way, policy, nextHop.host);
  const mustProve = nextHop.tlsNeed === 'required' && 'hosts' in under;
  const left = mustProve ? provedWay(under, nextHop.host, isUnknown) : under;
  const [{ name: site } = { name: '' }] = 'hosts' in left ? left.hosts : way.hosts;
  const { hosts: allowed, refused } = hostsUnder(policy, asked, way.isAuthentic);
  const isNoWay = 'why' in left;
  const found = allowed.map((host, at) =>
    (asked[at]?.isFree === true && policy?.mode !== 'enforce' ? inClear(host, nextHop.tls, ports) : host));
  const named = isNoWay ? [] : fallbackUnder(policy, asked, others).map((host, at) =>
    (host === others[at] || isLoopback(host.host) ? spoken(host, at) : host));
  const { hosts, used } = sourced(found, named, site, ours);
  const [why, status] = isNoWay ? [left.why.text, left.why.enhanced] : whyNone(hosts, refused);
  const untold = mustProve && isNoWay && isUnknown ? { policy_untold: true } as const : {};
  return { ...told, hosts, sources: shown(used), mta_sts: text, why, status, ...untold };
}

function shown(sources: readonly JudgedSource[]): readonly ExplainedSource[] {
  return sources.map(({ address, name, isConfirmed: confirmed, why }) => ({ address, name, confirmed, why }));
}

/** Why none of them is connected to, and its status; '' where one is. `refused`: for the policy alone. */
function whyNone(hosts: readonly ExplainedHost[], refused = ''): readonly [string, string] {
  if (hosts.some(({ addresses }) => addresses.length > 0)) return ['', ''];
  const untold = hosts.find(isUntold);
  if (untold !== undefined) return [`${untold.host} is ${untold.dane ?? ''}`, '4.7.5'];
  const silent = hosts.find(({ addresses_failed: isFailed }) => isFailed === true);
  if (silent !== undefined) return [`${silent.host}: ${silent.why}`, NO_ANSWER];
  if (refused !== '') return [refused, '4.7.5'];
  return ['no host has an address that is connected to', '4.4.1'];
}

export function isUntold({ dane_failed: isFailed }: ExplainedHost): boolean {
  return isFailed === true;
}

/** Its addresses, and what its TLSA records say of it: nothing of a host without addresses. */
async function askHost(
  { name, preference }: MailHost, { isAuthentic }: HostsWay, port: number, isJudged: boolean,
  lookup: MxLookup,
): Promise<AskedHost> {
  const [answers, isIpv6Only] = await new Promise<readonly [Addresses, boolean]>((resolve) => {
    lookup.addresses(name, (...told) => { resolve(told); });
  });
  const { open, whys, isUntold: isPartial } = judgedHost(answers, isIpv6Only, lookup.allowsPrivate);
  const found = { addresses: open.flat(), why: whys.join('; ') };
  const failed = isPartial ? { addresses_failed: true } as const : {};
  const host = { preference, host: name, port, ...found, ...failed };
  if (!isJudged) return { host, isBound: false, isFree: true };
  if (!isAuthentic) return { host: { ...host, dane: UNSIGNED_MX }, isBound: false, isFree: true };
  const hasNone = host.addresses.length === 0;
  if (hasNone && (isIpv6Only || !areProved(answers))) return { host, isBound: false, isFree: false };
  const { text: dane, isFailed, ...tlsa } = await daneOf(name, port, answers, lookup);
  if (hasNone) return { host, ...tlsa };
  if (isFailed) return { host: { ...host, addresses: [], dane, dane_failed: true }, ...tlsa };
  return { host: { ...host, dane }, ...tlsa };
}

/**
 * Those that its route allows, as the DNS knows them now; those of IPv6 as the gateway that runs does, which
 * goes by that.
 */
async function knownSources(
  sources: readonly MailSource[], { sources: allowed }: NextHop, { time, judged: running }: WayPorts,
): Promise<readonly JudgedSource[]> {
  const ours = sources.filter(({ address }) => allowed === undefined || allowed.includes(address));
  const known = running?.() ?? [];
  return Promise.all(ours.map((source) => new Promise<JudgedSource>((resolve) => {
    const before = known.find(({ address }) => address === source.address);
    if (before !== undefined) return resolve(before);
    checkSource(source, time, (verdict) => {
      const isConfirmed = verdict.kind === 'confirmed';
      resolve({ ...source, isConfirmed, why: verdict.kind === 'confirmed' ? '' : verdict.why });
    });
  })));
}

/** Hosts by MX and those that the route names, less the addresses that no source leads to (dial.ts). */
function sourced(
  byMx: readonly ExplainedHost[], named: readonly ExplainedHost[], site: string,
  ours: readonly JudgedSource[],
): { readonly hosts: readonly ExplainedHost[]; readonly used: readonly JudgedSource[] } {
  const from = new Set(ours.filter(({ address, isConfirmed }) =>
    byMx.length > 0 && isIpv6(address) && !isConfirmed).map(({ address }) => address));
  const lessOf = (isByMx: boolean) => (host: ExplainedHost): ExplainedHost => {
    const { ways, whys } = waysTo(host.addresses, { site, isByMx }, ours);
    for (const way of ways) if (way.from !== undefined) from.add(way.from.address);
    const why = [host.why, ...whys].filter((text) => text !== '').join('; ');
    return { ...host, addresses: ways.map(({ address }) => address), why };
  };
  const hosts = [...byMx.map(lessOf(true)), ...named.map(lessOf(false))];
  return { hosts, used: ours.filter(({ address }) => from.has(address)) };
}

/** Hosts that the route names. */
function namedHosts(
  hosts: readonly OtherHost[], { lookUpHost, time }: WayPorts,
): Promise<readonly ExplainedHost[]> {
  return Promise.all(hosts.map(async (named) => {
    const late = { addresses: [], why: `no answer on its address: ${time.whyLate}`, isFailed: true };
    const { addresses, why, isFailed } = await time.within(lookUpHost(named.host, time.over), late);
    const { host, port, preference } = named;
    const terms = [why, ownTerms(named)].filter((text) => text !== '').join('; ');
    const failed = isFailed ? { addresses_failed: true } as const : {};
    return { host, port, preference, addresses, why: terms, ...failed };
  }));
}

/** Of a host that is not spoken to as the route says. */
function ownTerms({ host, terms }: OtherHost): string {
  if (terms === undefined) return '';
  return `tls ${tlsText(terms, host)}${terms.auth === undefined ? '' : `, as ${terms.auth.user}`}`;
}

/** `host`: whose name its certificate is for, where the route says no other one. */
function tlsText({ tls }: Pick<NextHop, 'tls'>, host: string): string {
  if (tls === undefined) return 'none';
  const { level, isFirst, terms: { serverName } } = tls;
  const other = serverName === '' || serverName === host ? '' : `, server_name ${serverName}`;
  return `${level}${isFirst ? ', before the greeting' : ''}${other}`;
}

function authOf({ auth, isByMx }: NextHop): { readonly auth?: string } {
  if (auth === undefined) return {};
  return { auth: isByMx === true ? `${auth.user}, with its fallback alone` : auth.user };
}

/** With why TLS, which is only tried, is not tried with it now. */
function inClear(host: ExplainedHost, tls: NextHopTls | undefined, { lostTls }: WayPorts): ExplainedHost {
  const lost = tls?.level === 'may' ? lostTls?.(host.host, host.port) : undefined;
  if (lost === undefined || host.addresses.length === 0) return host;
  const until = `${new Date(lost.untilWallMs).toISOString().slice(0, 16)}Z`;
  const said = `in clear until ${until}: its TLS failed: ${lost.why}`;
  return { ...host, why: host.why === '' ? said : `${host.why}; ${said}` };
}
