/**
 * `twinpost explain RCPT`: where mail to a recipient would go by a configuration file, and why: what an
 * address of the gateway's own stands for (own-address.ts), alias, route, queue, hosts with their addresses,
 * TLS, what their TLSA records say of it (explained-dane.ts), the domain's own policy (MTA-STS), which of our
 * addresses it would leave from (`sources`), retries. Asks the table of recipients, the DNS and the domain,
 * and no gateway: whether the hosts take mail is not tried.
 *
 *   a way ─► 0      none, for good ─► 1      nobody could tell just now (DNS, HTTP) ─► 3
 */
import { lookup as lookUp } from 'node:dns/promises';
import type { Argv } from 'yargs';
import { addressText } from '../base/address-text.js';
import { errorText } from '../base/error-text.js';
import { formatDuration } from '../base/units.js';
import type { GatewayConfig } from '../config/types.js';
import { parsePath } from '../gateway/inbound/policy/address.js';
import { RelayPolicy } from '../gateway/inbound/policy/relay-policy.js';
import { openTable } from '../gateway/inbound/recipients-file.js';
import type { TableFile } from '../gateway/inbound/recipients-file.js';
import { byDomain, destinationsOf } from '../gateway/inbound/recipients/destinations.js';
import type { RoutedRecipient } from '../gateway/inbound/recipients/destinations.js';
import { MxLookup } from '../gateway/outbound/mx-lookup.js';
import { IPV6_ONLY, NOT_CONNECTED, addressOfLiteral } from '../gateway/outbound/pure/mail-exchangers.js';
import type { HostsWay, MailWay } from '../gateway/outbound/pure/mail-exchangers.js';
import { whyNotPublic } from '../gateway/outbound/pure/public-address.js';
import { isIpv6, ownNames, waysTo } from '../gateway/outbound/pure/source-choice.js';
import type { KnownSource, MailSource } from '../gateway/outbound/pure/source-choice.js';
import { isNamedBy, stsRecordName, underPolicy } from '../gateway/outbound/pure/sts-policy.js';
import type { StsPolicy } from '../gateway/outbound/pure/sts-policy.js';
import { checkSource } from '../gateway/outbound/source-check.js';
import { StsPolicies } from '../gateway/outbound/sts/sts-policies.js';
import { FALLBACK_PREFERENCE, nextHopUrl } from '../gateway/queue/next-hop.js';
import { createRouter } from '../gateway/queue/router.js';
import type { NextHop } from '../gateway/queue/types.js';
import { SystemClock } from '../platform/node/clock.js';
import { DnsClient } from '../platform/node/dns/dns-client.js';
import { toAscii } from '../platform/node/idna.js';
import type { Https } from '../platform/https.js';
import type { EventLog } from '../platform/ports.js';
import type { DnsAnswer } from '../platform/resolver.js';
import { loadFor } from './config-file.js';
import { ACCESS_OPTIONS } from './admin-address.js';
import type { CliContext } from './context.js';
import { UNSIGNED_MX, daneOf } from './explained-dane.js';
import { limitLines, limitsOf } from './explained-limits.js';
import { CliError, UsageError } from './context.js';
import { ownText } from './options.js';
import { meantBy } from './own-address.js';
import type { MeantAddress } from './own-address.js';
import { printable } from './tables.js';

/** Nobody could tell: as of a gateway that does not answer. */
const CANT_TELL = 3;
/** Status of a question that the DNS did not answer (outbound/pure/mail-exchangers.ts). */
const NO_ANSWER = '4.4.3';

type Addresses = readonly DnsAnswer<'A' | 'AAAA'>[];

/** Who is asked. */
interface Asked {
  readonly dns: DnsClient;
  readonly https: Https;
}

/** One of ours, and what the DNS says of it. */
interface ExplainedSource extends KnownSource {
  /** Why the DNS does not confirm it; '' if it does. */
  readonly why: string;
}

interface ExplainedPolicy {
  readonly policy: StsPolicy | undefined;
  readonly text: string;
}

const NO_POLICY: ExplainedPolicy = { policy: undefined, text: '' };
/** What is to be said of a policy stands in the answer. */
const unsaid = (): void => undefined;
const SILENT: EventLog = { debug: unsaid, info: unsaid, warn: unsaid, error: unsaid };

interface ExplainedHost {
  readonly preference: number;
  readonly host: string;
  readonly port: number;
  /** By MX: those that would be tried. */
  readonly addresses: readonly string[];
  /** Why there are none, or which are not connected to. */
  readonly why: string;
  /** By MX: what its TLSA records say. */
  readonly dane?: string;
  /** It has addresses, and is not connected to before the DNS answers about these. */
  readonly dane_failed?: true;
  /** By MX: none that is connected to, and the DNS did not answer about all. */
  readonly addresses_failed?: true;
}

type Judged = Pick<ExplainedHost, 'addresses' | 'why' | 'addresses_failed'>;

interface ExplainedTo {
  readonly recipient: string;
  /** Of an address that the gateway takes itself: what it is; '' of any other. */
  readonly is: string;
  /** Whom it stands for; the recipient otherwise. */
  readonly stands_for: string;
}

interface Explained extends ExplainedTo {
  /** What an alias made of that; as it was otherwise. */
  readonly address: string;
  readonly queue: string;
  readonly next_hop: string;
  readonly hosts: readonly ExplainedHost[];
  readonly tls: string;
  /** That it would leave from, and those of IPv6 that are not confirmed; none: as the system chooses. */
  readonly sources: readonly ExplainedSource[];
  /** The MTA-STS policy of the domain, or that none can be had; '' where it has none, or none counts. */
  readonly mta_sts: string;
  /** Why there is no way; '' if there is one. */
  readonly why: string;
  /** RFC 3463, of why. */
  readonly status: string;
}

export function explainCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'explain <recipient>',
    'where mail to an address would go, and what limits it now',
    (args) =>
      args
        .positional('recipient', { type: 'string', demandOption: true, describe: 'an address' })
        .option('config', { type: 'string', describe: 'the gateway\'s YAML file' })
        .option('from', ownText('the reverse-path that it has (default: the null one)'))
        .option('listener', ownText('address:port that it comes in by (default: the first one)'))
        .option('gateway', ownText('admin address of a gateway that is asked what limits it now'))
        .options(ACCESS_OPTIONS)
        .option('json', { type: 'boolean', describe: 'one JSON object a line, for each address' })
        .example('$0 explain anna@example.com --config gateway.yaml', 'by the table, the routes and the DNS')
        .epilogue('Exit code: 0 there is a way, 1 there is none, 3 the DNS or a directory could not tell, '
          + '2 wrong usage.'),
    async ({ recipient, config: file, from, listener, gateway: asked, json, ...access }) => {
      const { terminal } = context;
      const { gateway } = loadFor('gateway', file, undefined, context, 'explain');
      if (gateway === undefined) throw new CliError('the file has no gateway');
      const dns = new DnsClient(gateway.dns, new SystemClock());
      const explained: Explained[] = [];
      const { meant, found } = await routedTo(recipient, from ?? '', listener, gateway);
      const to = { recipient, is: meant.is, stands_for: meant.to?.address ?? '' };
      for (const routed of found) {
        explained.push(await explain(to, routed, gateway, { dns, https: context.https }));
      }
      dns.close();
      const print = (told: object, lines: readonly string[]): void => {
        if (json === true) terminal.print(JSON.stringify(told));
        else for (const line of lines) terminal.print(printable(line));
      };
      if (found.length === 0) print(to, toLines(to));
      const queues = explained.map(({ queue }) => queue);
      const { byQueue, untold } = await limitsOf(queues, gateway, { asked, access }, context);
      for (const each of explained) {
        const limits = byQueue.get(each.queue) ?? [];
        const lines = untold.map((why) => `limits    not told: ${why}`);
        print({ ...each, limits, limits_untold: untold }, [
          ...linesOf(each, gateway), ...limitLines(limits), ...lines,
        ]);
      }
      const codes = explained.map(codeOf);
      done(codes.find((code) => code !== 0) ?? 0);
    },
  );
}

function codeOf({ why, status, hosts }: Explained): number {
  if (why === '') return 0;
  return status === NO_ANSWER || hosts.some(isUntold) ? CANT_TELL : 1;
}

/** As reception would find it for a client that may send anywhere. Throws what it would answer. */
async function routedTo(
  recipient: string, reversePath: string, listener: string | undefined, config: GatewayConfig,
): Promise<{ readonly meant: MeantAddress; readonly found: readonly RoutedRecipient[] }> {
  const { smtp, routes } = config;
  const path = parsePath(`<${recipient}>`, 0, toAscii);
  if (typeof path === 'string') throw new UsageError(`'${recipient}' is no address: ${path}`);
  const policy = new RelayPolicy({ networks: smtp.relayNetworks, domains: smtp.relayDomains }, toAscii);
  const meant = meantBy(path, reversePath, policy, config);
  const { to } = meant;
  if (to === undefined) return { meant, found: [] };
  if (smtp.recipientsByHttp !== undefined && policy.isRelayDomain(to.domain)) {
    throw new CliError(`who is there in ${to.domain} is asked for by HTTP (smtp.recipients), and not here`);
  }
  const recipients = await tableOf(smtp.recipientsFile);
  const ports = { router: createRouter(routes), toAscii, recipients };
  const ours = smtp.listen.map(({ host, port }) => addressText(host, port));
  if (listener !== undefined && !ours.includes(listener)) {
    throw new UsageError(`no listener '${listener}'; there are: ${ours.join(', ')}`);
  }
  const origin = { reversePath, listener: listener ?? ours[0] ?? '' };
  const desk = { policy, ports, lookups: 0 };
  const listed = destinationsOf(to, desk, origin, Infinity);
  const found = meant.isRole && 'reply' in listed ? byDomain(to, desk, origin) : listed;
  recipients?.close();
  if ('unasked' in found) throw new CliError('a directory must be asked first');
  if ('reply' in found) {
    throw new CliError(`mail to ${recipient} would be refused: ${found.reply.trim()}`);
  }
  return { meant, found };
}

async function tableOf(file: string | undefined): Promise<TableFile | undefined> {
  if (file === undefined) return undefined;
  try {
    return await openTable(file);
  } catch (error) {
    throw new CliError(errorText(error));
  }
}

async function explain(
  to: ExplainedTo, { route, address }: RoutedRecipient, { delivery, hostName, sources }: GatewayConfig,
  { dns, https }: Asked,
): Promise<Explained> {
  const { nextHop } = route;
  const usesIpv6 = sources.some((source) => isIpv6(source.address));
  const lookup = new MxLookup({ ...delivery.mx, usesIpv6, ownNames: ownNames(hostName, sources) }, dns);
  const ours = await knownSources(sources, nextHop, dns);
  const told = {
    ...to, address, queue: route.queueName, next_hop: nextHopUrl(nextHop), tls: tlsText(nextHop),
    mta_sts: '', sources: [],
  };
  const others = (nextHop.others ?? []).map((other) => ({ ...other, addresses: [], why: '' }));
  if (nextHop.isByMx !== true) {
    const first = { preference: 0, host: nextHop.host, port: nextHop.port, addresses: [], why: '' };
    const all = [first, ...others];
    return { ...told, hosts: all, sources: await sourcesOfNamed(all, ours), why: '', status: '' };
  }
  const way = await new Promise<MailWay>((resolve) => { lookup.ask(nextHop.host, resolve); });
  if ('why' in way) return { ...told, hosts: [], why: way.why.text, status: way.why.enhanced };
  const usesTls = nextHop.tls !== undefined;
  const asksPolicy = delivery.mx.usesMtaSts && usesTls && addressOfLiteral(nextHop.host) === undefined;
  const { policy, text } = asksPolicy ? await policyOf(nextHop.host, lookup, dns, https) : NO_POLICY;
  const left = underPolicy(way, policy, nextHop.host);
  const [{ name: site } = { name: '' }] = 'hosts' in left ? left.hosts : way.hosts;
  const named = await hostsOf(way, nextHop.port, policy, lookup);
  const found = usesTls ? await withDane(named, way, lookup) : named;
  const { hosts, used } = sourced(found, site, ours);
  if ('why' in left) return { ...told, hosts, mta_sts: text, why: left.why.text, status: left.why.enhanced };
  const isReachable = others.length > 0 || hosts.some(({ addresses }) => addresses.length > 0);
  const [why, status] = isReachable ? ['', ''] : whyNone(hosts);
  return { ...told, hosts: [...hosts, ...others], sources: used, mta_sts: text, why, status };
}

/** Of hosts of which none is connected to: why, and its status. */
function whyNone(hosts: readonly ExplainedHost[]): readonly [string, string] {
  const untold = hosts.find(isUntold);
  if (untold !== undefined) return [`${untold.host} is ${untold.dane ?? ''}`, '4.7.5'];
  const silent = hosts.find(({ addresses_failed: isFailed }) => isFailed === true);
  if (silent !== undefined) return [`${silent.host}: ${silent.why}`, NO_ANSWER];
  return ['no host has an address that is connected to', '4.4.1'];
}

function isUntold({ dane_failed: isFailed }: ExplainedHost): boolean {
  return isFailed === true;
}

/** Nothing of a host without addresses. */
async function withDane(
  hosts: readonly ExplainedHost[], { isAuthentic }: HostsWay, lookup: MxLookup,
): Promise<readonly ExplainedHost[]> {
  if (!isAuthentic) return hosts.map((host) => ({ ...host, dane: UNSIGNED_MX }));
  const explained: ExplainedHost[] = [];
  for (const host of hosts) {
    const { text: dane, isFailed } = await daneOf(host.host, host.port, lookup);
    if (host.addresses.length === 0) explained.push(host);
    else if (isFailed) explained.push({ ...host, addresses: [], dane, dane_failed: true });
    else explained.push({ ...host, dane });
  }
  return explained;
}

/** Those that its route allows, as the DNS knows them now. */
async function knownSources(
  sources: readonly MailSource[], { sources: allowed }: NextHop, dns: DnsClient,
): Promise<readonly ExplainedSource[]> {
  const ours = sources.filter(({ address }) => allowed === undefined || allowed.includes(address));
  return Promise.all(ours.map((source) => new Promise<ExplainedSource>((resolve) => {
    checkSource(source, dns, (verdict) => {
      const isConfirmed = verdict.kind === 'confirmed';
      resolve({ ...source, isConfirmed, why: verdict.kind === 'confirmed' ? '' : verdict.why });
    });
  })));
}

/** Hosts by MX, less the addresses that no source leads to. */
function sourced(
  found: readonly ExplainedHost[], site: string, ours: readonly ExplainedSource[],
): { readonly hosts: readonly ExplainedHost[]; readonly used: readonly ExplainedSource[] } {
  const from = new Set(ours.filter(({ address, isConfirmed }) => isIpv6(address) && !isConfirmed)
    .map(({ address }) => address));
  const hosts = found.map((host) => {
    const { ways, whys } = waysTo(host.addresses, { site, isByMx: true }, ours);
    for (const way of ways) if (way.from !== undefined) from.add(way.from.address);
    const why = [host.why, ...whys].filter((text) => text !== '').join('; ');
    return { ...host, addresses: ways.map(({ address }) => address), why };
  });
  return { hosts, used: ours.filter(({ address }) => from.has(address)) };
}

/** A host that the route names is resolved as the system does it. */
async function sourcesOfNamed(
  hosts: readonly ExplainedHost[], ours: readonly ExplainedSource[],
): Promise<readonly ExplainedSource[]> {
  if (ours.length === 0) return [];
  const [{ host: site } = { host: '' }] = hosts;
  const from = new Set<string>();
  for (const { host } of hosts) {
    const found = await lookUp(host, { all: true }).catch(() => []);
    const { ways } = waysTo(found.map(({ address }) => address), { site, isByMx: false }, ours);
    for (const way of ways) if (way.from !== undefined) from.add(way.from.address);
  }
  return ours.filter(({ address }) => from.has(address));
}

async function hostsOf(
  { hosts: named }: HostsWay, port: number, policy: StsPolicy | undefined, lookup: MxLookup,
): Promise<readonly ExplainedHost[]> {
  const hosts: ExplainedHost[] = [];
  for (const { name, preference } of named) {
    const { why, ...found } = await new Promise<Judged>((resolve) => {
      lookup.addresses(name, (answers, isIpv6Only) => {
        resolve(isIpv6Only ? { addresses: [], why: `it ${IPV6_ONLY}` }
          : judged(answers, lookup.allowsPrivate));
      });
    });
    const isNamed = policy === undefined || policy.mode === 'none' || isNamedBy(policy, name);
    const all = [why, isNamed ? '' : 'not named by the policy of the domain'];
    const whys = all.filter((text) => text !== '').join('; ');
    hosts.push({ preference, host: name, port, ...found, why: whys });
  }
  return hosts;
}

/** As a gateway would that knows none of it yet. */
async function policyOf(
  domain: string, lookup: MxLookup, resolver: DnsClient, https: Https,
): Promise<ExplainedPolicy> {
  const record = await new Promise<DnsAnswer<'TXT'>>((resolve) => {
    resolver.ask(stsRecordName(domain), 'TXT', resolve);
  });
  if (record.kind === 'failed') return { policy: undefined, text: `no answer: ${record.why}` };
  let failed = '';
  const policies = new StsPolicies(undefined, {
    clock: new SystemClock(), log: SILENT, resolver, lookup, https,
    onFetched: (_domain, result) => { failed = `none to be had: ${result}`; },
  });
  const policy = await new Promise<StsPolicy | undefined>((resolve) => { policies.ask(domain, resolve); });
  if (policy === undefined) return { policy, text: failed };
  const { mode, mx, maxAgeS } = policy;
  const names = mx.length > 0 ? `: ${mx.join(' ')}` : '';
  return { policy, text: `${mode} for ${formatDuration(maxAgeS * 1000)}${names}` };
}

function judged(answers: Addresses, allowsPrivate: boolean): Judged {
  const whys: string[] = [];
  const addresses: string[] = [];
  for (const answer of answers) {
    if (answer.kind === 'failed') whys.push(`no answer on its address: ${answer.why}`);
    if (answer.kind !== 'found') continue;
    for (const address of answer.records) {
      const why = allowsPrivate ? '' : whyNotPublic(address);
      if (why === '') addresses.push(address);
      else whys.push(`${address} is ${why}, ${NOT_CONNECTED}`);
    }
  }
  if (addresses.length + whys.length === 0) whys.push('it has no address');
  const isFailed = addresses.length === 0 && answers.some(({ kind }) => kind === 'failed');
  return { addresses, why: whys.join('; '), ...(isFailed ? { addresses_failed: true } : {}) };
}

function tlsText({ tls }: NextHop): string {
  if (tls === undefined) return 'none';
  return tls.isFirst ? `${tls.level}, before the greeting` : tls.level;
}

function sourceText({ address, name, why }: ExplainedSource): string {
  return `${address}  ${name} in EHLO, ${why === '' ? 'confirmed by the DNS' : `not confirmed: ${why}`}`;
}

/** What it is, and whom it stands for. */
function toLines({ recipient, is, stands_for: to }: ExplainedTo, address = to): string[] {
  const alias = address === to ? '' : `, an alias of ${address}`;
  if (is === '') return [`to        ${recipient}${alias}`];
  const whom = to === recipient ? '' : `: mail goes on to ${to}`;
  return [`to        ${recipient}`, `is        ${is}${to === '' ? ', and mail ends here' : whom}${alias}`];
}

function linesOf(
  { queue, next_hop: hop, hosts, tls, sources, mta_sts: sts, why, status, ...to }: Explained,
  { delivery: { retry, lifetimeMs } }: GatewayConfig,
): string[] {
  const lines = [...toLines(to, to.address), `queue     ${queue}`, `next hop  ${hop}`];
  for (const host of hosts) {
    const more = [host.addresses.join(' '), host.why].filter((text) => text !== '').join('; ');
    const order = host.preference < FALLBACK_PREFERENCE ? String(host.preference) : 'fallback';
    const place = `${order} ${host.host}:${String(host.port)}`;
    lines.push(`host      ${place}${more === '' ? '' : `  ${more}`}`);
  }
  if (why !== '') lines.push(`NO WAY    ${status} ${why}`);
  const [first = '', last = '', life = ''] = [retry.firstMs, retry.maxMs, lifetimeMs].map(formatDuration);
  for (const source of sources) lines.push(`source    ${sourceText(source)}`);
  const policies = [...daneLines(hosts), ...(sts === '' ? [] : [`mta-sts   ${sts}`])];
  return [...lines, `tls       ${tls}`, ...policies, `retries   after ${first} to ${last}, for ${life}`];
}

/** Where nothing was asked, once for all. */
function daneLines(hosts: readonly ExplainedHost[]): string[] {
  const lines = hosts.flatMap(({ host, dane = '' }) => {
    if (dane === '') return [];
    return [dane === UNSIGNED_MX ? `dane      ${dane}` : `dane      ${host}  ${dane}`];
  });
  return [...new Set(lines)];
}
