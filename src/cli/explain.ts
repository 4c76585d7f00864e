/**
 * `twinpost explain RCPT`: where mail to a recipient would go by a configuration file, and why: alias, route,
 * queue, hosts with their addresses, TLS, the domain's own policy (MTA-STS), retries. Asks the table of
 * recipients, the DNS and the domain, and no gateway: whether the hosts take mail is not tried.
 *
 *   a way ─► 0      none, for good ─► 1      nobody could tell just now (DNS, HTTP) ─► 3
 */
import type { Argv } from 'yargs';
import { addressText } from '../base/address-text.js';
import { errorText } from '../base/error-text.js';
import { formatDuration } from '../base/units.js';
import type { GatewayConfig } from '../config/types.js';
import { parsePath } from '../gateway/inbound/policy/address.js';
import { RelayPolicy } from '../gateway/inbound/policy/relay-policy.js';
import { openTable } from '../gateway/inbound/recipients-file.js';
import type { TableFile } from '../gateway/inbound/recipients-file.js';
import { destinationsOf } from '../gateway/inbound/recipients/destinations.js';
import type { RoutedRecipient } from '../gateway/inbound/recipients/destinations.js';
import { MxLookup } from '../gateway/outbound/mx-lookup.js';
import type { HostsWay, MailWay } from '../gateway/outbound/pure/mail-exchangers.js';
import { whyNotPublic } from '../gateway/outbound/pure/public-address.js';
import { isNamedBy, underPolicy } from '../gateway/outbound/pure/sts-policy.js';
import type { StsPolicy } from '../gateway/outbound/pure/sts-policy.js';
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
import type { CliContext } from './context.js';
import { CliError, UsageError } from './context.js';
import { ownText } from './options.js';
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
}

interface Explained {
  readonly recipient: string;
  /** What an alias made of it; as it was otherwise. */
  readonly address: string;
  readonly queue: string;
  readonly next_hop: string;
  readonly hosts: readonly ExplainedHost[];
  readonly tls: string;
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
    'where mail to an address would go: alias, route, queue, hosts, TLS',
    (args) =>
      args
        .positional('recipient', { type: 'string', demandOption: true, describe: 'an address' })
        .option('config', { type: 'string', describe: 'the gateway\'s YAML file' })
        .option('from', ownText('the reverse-path that it has (default: the null one)'))
        .option('listener', ownText('address:port that it comes in by (default: the first one)'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line, for each address' })
        .example('$0 explain anna@example.com --config gateway.yaml', 'by the table, the routes and the DNS')
        .epilogue('Exit code: 0 there is a way, 1 there is none, 3 the DNS or a directory could not tell, '
          + '2 wrong usage.'),
    async ({ recipient, config: file, from, listener, json }) => {
      const { terminal } = context;
      const { gateway } = loadFor('gateway', file, undefined, context, 'explain');
      if (gateway === undefined) throw new CliError('the file has no gateway');
      const dns = new DnsClient(gateway.dns, new SystemClock());
      const explained: Explained[] = [];
      for (const routed of await routedTo(recipient, from ?? '', listener, gateway)) {
        explained.push(await explain(recipient, routed, gateway, { dns, https: context.https }));
      }
      dns.close();
      for (const each of explained) {
        if (json === true) terminal.print(JSON.stringify(each));
        else for (const line of linesOf(each, gateway)) terminal.print(printable(line));
      }
      const codes = explained.map(codeOf);
      done(codes.find((code) => code !== 0) ?? 0);
    },
  );
}

function codeOf({ why, status }: Explained): number {
  if (why === '') return 0;
  return status === NO_ANSWER ? CANT_TELL : 1;
}

/** As reception would find it for a client that may send anywhere. Throws what it would answer. */
async function routedTo(
  recipient: string, reversePath: string, listener: string | undefined, { smtp, routes }: GatewayConfig,
): Promise<readonly RoutedRecipient[]> {
  const path = parsePath(`<${recipient}>`, 0, toAscii);
  if (typeof path === 'string') throw new UsageError(`'${recipient}' is no address: ${path}`);
  const policy = new RelayPolicy({ networks: smtp.relayNetworks, domains: smtp.relayDomains }, toAscii);
  if (smtp.recipientsByHttp !== undefined && policy.isRelayDomain(path.domain)) {
    throw new CliError(`who is there in ${path.domain} is asked for by HTTP (smtp.recipients), and not here`);
  }
  const recipients = await tableOf(smtp.recipientsFile);
  const ports = { router: createRouter(routes), toAscii, recipients };
  const ours = smtp.listen.map(({ host, port }) => addressText(host, port));
  if (listener !== undefined && !ours.includes(listener)) {
    throw new UsageError(`no listener '${listener}'; there are: ${ours.join(', ')}`);
  }
  const origin = { reversePath, listener: listener ?? ours[0] ?? '' };
  const found = destinationsOf(path, { policy, ports, lookups: 0 }, origin, Infinity);
  recipients?.close();
  if ('unasked' in found) throw new CliError('a directory must be asked first');
  if ('reply' in found) {
    throw new CliError(`mail to ${recipient} would be refused: ${found.reply.trim()}`);
  }
  return found;
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
  recipient: string, { route, address }: RoutedRecipient, { delivery, hostName }: GatewayConfig,
  { dns, https }: Asked,
): Promise<Explained> {
  const { nextHop } = route;
  const lookup = new MxLookup({ ...delivery.mx, ownNames: [hostName.toLowerCase()] }, dns);
  const told = {
    recipient, address, queue: route.queueName, next_hop: nextHopUrl(nextHop), tls: tlsText(nextHop),
    mta_sts: '',
  };
  const others = (nextHop.others ?? []).map((other) => ({ ...other, addresses: [], why: '' }));
  if (nextHop.isByMx !== true) {
    const first = { preference: 0, host: nextHop.host, port: nextHop.port, addresses: [], why: '' };
    return { ...told, hosts: [first, ...others], why: '', status: '' };
  }
  const way = await new Promise<MailWay>((resolve) => { lookup.ask(nextHop.host, resolve); });
  if ('why' in way) return { ...told, hosts: [], why: way.why.text, status: way.why.enhanced };
  const asksPolicy = delivery.mx.usesMtaSts && nextHop.tls !== undefined;
  const { policy, text } = asksPolicy ? await policyOf(nextHop.host, lookup, dns, https) : NO_POLICY;
  const hosts = await hostsOf(way, nextHop.port, policy, lookup);
  const left = underPolicy(way, policy, nextHop.host);
  if ('why' in left) return { ...told, hosts, mta_sts: text, why: left.why.text, status: left.why.enhanced };
  const isReachable = others.length > 0 || hosts.some(({ addresses }) => addresses.length > 0);
  const why = isReachable ? '' : 'no host has an address that is connected to';
  return { ...told, hosts: [...hosts, ...others], mta_sts: text, why, status: isReachable ? '' : '4.4.1' };
}

async function hostsOf(
  { hosts: named }: HostsWay, port: number, policy: StsPolicy | undefined, lookup: MxLookup,
): Promise<readonly ExplainedHost[]> {
  const hosts: ExplainedHost[] = [];
  for (const { name, preference } of named) {
    const answers = await new Promise<Addresses>((resolve) => { lookup.addresses(name, resolve); });
    const { addresses, why } = judged(answers, lookup.allowsPrivate);
    const isNamed = policy === undefined || policy.mode === 'none' || isNamedBy(policy, name);
    const all = [why, isNamed ? '' : 'not named by the policy of the domain'];
    const whys = all.filter((text) => text !== '').join('; ');
    hosts.push({ preference, host: name, port, addresses, why: whys });
  }
  return hosts;
}

/** As a gateway would that knows none of it yet. */
async function policyOf(
  domain: string, lookup: MxLookup, resolver: DnsClient, https: Https,
): Promise<ExplainedPolicy> {
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

function judged(
  answers: Addresses, allowsPrivate: boolean,
): Pick<ExplainedHost, 'addresses' | 'why'> {
  const whys: string[] = [];
  const addresses: string[] = [];
  for (const answer of answers) {
    if (answer.kind === 'failed') whys.push(`no answer on its address: ${answer.why}`);
    if (answer.kind !== 'found') continue;
    for (const address of answer.records) {
      const why = allowsPrivate ? '' : whyNotPublic(address);
      if (why === '') addresses.push(address);
      else whys.push(`${address} is ${why}, which is not connected to`);
    }
  }
  if (addresses.length + whys.length === 0) whys.push('it has no address');
  return { addresses, why: whys.join('; ') };
}

function tlsText({ tls }: NextHop): string {
  if (tls === undefined) return 'none';
  return tls.isFirst ? `${tls.level}, before the greeting` : tls.level;
}

function linesOf(
  { recipient, address, queue, next_hop: hop, hosts, tls, mta_sts: sts, why, status }: Explained,
  { delivery: { retry, lifetimeMs } }: GatewayConfig,
): string[] {
  const alias = address === recipient ? '' : `, an alias of ${address}`;
  const lines = [`to        ${recipient}${alias}`, `queue     ${queue}`, `next hop  ${hop}`];
  for (const host of hosts) {
    const more = [host.addresses.join(' '), host.why].filter((text) => text !== '').join('; ');
    const order = host.preference < FALLBACK_PREFERENCE ? String(host.preference) : 'fallback';
    const place = `${order} ${host.host}:${String(host.port)}`;
    lines.push(`host      ${place}${more === '' ? '' : `  ${more}`}`);
  }
  if (why !== '') lines.push(`NO WAY    ${status} ${why}`);
  const [first = '', last = '', life = ''] = [retry.firstMs, retry.maxMs, lifetimeMs].map(formatDuration);
  const policy = sts === '' ? [] : [`mta-sts   ${sts}`];
  return [...lines, `tls       ${tls}`, ...policy, `retries   after ${first} to ${last}, for ${life}`];
}
