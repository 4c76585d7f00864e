/**
 * `twinpost explain DEST|RCPT`: where mail to an address, a domain or a queue would go, and why, and what
 * limits it now. A gateway that runs is asked, by what it has in force; or with --config a file says it, and
 * the DNS is asked from here (gateway/explain/explanation.ts), whether a gateway runs or not.
 *
 *   a way ─► 0      none, for good ─► 1      nobody could tell just now (DNS, HTTP, no gateway answers), or
 *                                            one of the group could not tell what limits the queue ─► 3
 *   wrong usage, or a file that nothing can be told by ─► 2
 */
import type { Argv } from 'yargs';
import type {
  DnsFinding, ExplainAnswer, ExplainQuestion, ExplainedHost, ExplainedSource, ExplainedTo, ExplainedWay,
} from '../admin-api/explain.js';
import { addressText } from '../base/address-text.js';
import { errorText } from '../base/error-text.js';
import { parseMessageId } from '../base/text-id.js';
import { formatDuration } from '../base/units.js';
import type { GatewayConfig } from '../config/types.js';
import { publishedKeys } from '../gateway/dkim/node/public-record.js';
import type { PublishedKey, PublishedKeys } from '../gateway/dkim/node/public-record.js';
import type { AnswerTime } from '../gateway/explain/answer-time.js';
import { UNSIGNED_MX } from '../gateway/explain/explained-dane.js';
import { NO_ANSWER, explained, isUntold } from '../gateway/explain/explanation.js';
import type { ExplainOptions } from '../gateway/explain/explanation.js';
import { NotExplained } from '../gateway/explain/not-explained.js';
import { sendersFindings } from '../gateway/explain/sender-findings.js';
import type { SenderQuestion } from '../gateway/explain/sender-findings.js';
import { openTable } from '../gateway/inbound/recipients-file.js';
import type { TableFile } from '../gateway/inbound/recipients-file.js';
import { isIpv6, ownNames } from '../gateway/outbound/pure/source-choice.js';
import { FALLBACK_PREFERENCE } from '../gateway/queue/next-hop.js';
import { SystemClock } from '../platform/node/clock.js';
import { DnsClient } from '../platform/node/dns/dns-client.js';
import { ACCESS_OPTIONS, GATEWAY_URL, addressHelp, adminAddress } from './admin-address.js';
import type { AccessArguments } from './admin-address.js';
import { AdminClient, NoAnswer } from './admin-client.js';
import { loadAny } from './config-file.js';
import type { CliContext } from './context.js';
import { CliError, UsageError } from './context.js';
import { limitLines, limitsOf, ownGateway } from './explained-limits.js';
import type { AskedGateway } from './explained-limits.js';
import { ownText } from './options.js';
import { counted, printable } from './tables.js';

const NO_WAY = 1;
const UNUSABLE = 2;
/** Nobody could tell: as of a gateway that does not answer. */
const CANT_TELL = 3;
const CODES = { question: UNUSABLE, answer: NO_WAY, unknown: CANT_TELL } as const;
/** A gateway that was asked so refuses it. */
const ASKED_WRONGLY = 400;
const NOT_KNOWN = 404;
/** Mail would be refused. */
const NOT_TAKEN = 409;

/** What was told, and who is asked what limits mail now. */
interface Told {
  readonly answer: ExplainAnswer;
  readonly asked: AskedGateway;
}

export function explainCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'explain <destination>',
    'where mail to an address, a domain or a queue would go, and what limits it now',
    (args) =>
      args
        .positional('destination', {
          type: 'string', demandOption: true, describe: 'an address, a domain, or a queue of queue summary',
        })
        .option('config', ownText('a YAML file, instead of what a gateway has in force'))
        .option('from', ownText('the reverse-path that it has (default: the null one)'))
        .option('listener', ownText('address:port that it comes in by (default: the first one)'))
        .option('gateway', ownText(addressHelp('the gateway that is asked', GATEWAY_URL)))
        .options(ACCESS_OPTIONS)
        .option('json', { type: 'boolean', describe: 'one JSON object a line, for each address' })
        .example('$0 explain anna@example.com', 'as the gateway of this machine would send it')
        .example('$0 explain example.com --config gateway.yaml', 'by the routes of this file')
        .epilogue('Exit code: 0 there is a way, 1 there is none, 3 the DNS, a directory or a gateway could '
          + 'not tell, 2 wrong usage, or a file that can\'t be used.'),
    async ({ destination: to, config: file, from = '', listener = '', gateway, json, ...access }) => {
      const question = { to, from, listener };
      const told = file === undefined ? await askGateway(question, gateway, access, context)
        : await readFile(question, file, { gateway, access }, context);
      const isPartial = await print(told, json === true, context);
      const codes = told.answer.ways.map(codeOf);
      done(codes.find((code) => code !== 0) ?? (isPartial ? CANT_TELL : 0));
    },
  );
}

async function askGateway(
  question: ExplainQuestion, gateway: string | undefined, access: AccessArguments, context: CliContext,
): Promise<Told> {
  const { url, access: shown } = adminAddress({ from: gateway, ...access }, context);
  try {
    const answer = await new AdminClient(url, shown).explain(question);
    return { answer, asked: { from: url, ids: undefined, access } };
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    const hint = parseMessageId(question.to) === undefined ? ''
      : `; of a message: twinpost queue show ${question.to}`;
    if (error.code === ASKED_WRONGLY) throw new UsageError(error.refusal + hint);
    if (error.code === NOT_KNOWN) {
      const text = `${url} is no gateway, or one of a release that explains nothing: --config FILE`;
      throw new CliError(text, CANT_TELL);
    }
    if (error.code !== 0) {
      throw new CliError(error.refusal + hint, error.code === NOT_TAKEN ? NO_WAY : CANT_TELL);
    }
    throw new CliError(`no answer from ${url}: ${error.why}; is it running? --gateway ADDRESS names another `
      + 'one, --config FILE goes by a file', CANT_TELL);
  }
}

async function readFile(
  question: ExplainQuestion, file: string,
  { gateway: asked, access }: { readonly gateway: string | undefined; readonly access: AccessArguments },
  context: CliContext,
): Promise<Told> {
  const gateway = gatewayOf(file, context);
  const clock = new SystemClock();
  const resolver = new DnsClient(gateway.dns, clock);
  const recipients = await tableOf(gateway.smtp.recipientsFile);
  try {
    const { https, lookUpHost } = context;
    const ports = {
      clock, resolver, https, recipients, lookUpHost, policies: undefined, judged: undefined,
      lostTls: undefined,
      findSender,
    };
    const answer = await explained(question, optionsOf(gateway), ports);
    return { answer, asked: ownGateway(gateway, asked, access) };
  } catch (error) {
    if (!(error instanceof NotExplained)) throw error;
    throw new CliError(error.message, CODES[error.isOf]);
  } finally {
    recipients?.close();
    resolver.close();
  }
}

function gatewayOf(file: string, context: CliContext): GatewayConfig {
  let gateway: GatewayConfig | undefined;
  try {
    ({ gateway } = loadAny(file, context).config);
  } catch (error) {
    throw error instanceof CliError ? new CliError(error.message, UNUSABLE) : error;
  }
  if (gateway === undefined) throw new CliError(`${file} has no gateway`, UNUSABLE);
  return gateway;
}

function findSender(question: SenderQuestion, time: AnswerTime): Promise<readonly DnsFinding[]> {
  const late = [{ verdict: 'unknown', text: `of the sender not all is known: ${time.whyLate}` }] as const;
  return time.within(sendersFindings(question, time), late);
}

function optionsOf({ hostName, routes, sources, dkim, delivery, smtp }: GatewayConfig): ExplainOptions {
  const usesIpv6 = sources.some(({ address }) => isIpv6(address));
  return {
    hostName, routes, sources, smtp, dkim: keysOf(dkim),
    retry: delivery.retry, lifetimeMs: delivery.lifetimeMs,
    mx: { ...delivery.mx, usesIpv6, ownNames: ownNames(hostName, sources) },
    listeners: smtp.listen.map(({ host, port }) => addressText(host, port)),
    relayDomains: smtp.relayDomains, postmaster: smtp.postmaster,
  };
}

function keysOf(options: GatewayConfig['dkim']): PublishedKeys {
  const { domains, of } = publishedKeys(options);
  const ofDomain = (domain: string): readonly PublishedKey[] => {
    try {
      return of(domain);
    } catch (error) {
      throw new CliError(errorText(error), UNUSABLE);
    }
  };
  return { domains, of: ofDomain };
}

async function tableOf(file: string | undefined): Promise<TableFile | undefined> {
  if (file === undefined) return undefined;
  try {
    return await openTable(file);
  } catch (error) {
    throw new CliError(errorText(error), UNUSABLE);
  }
}

/** Whether a gateway could not tell. */
async function print({ answer, asked }: Told, isJson: boolean, context: CliContext): Promise<boolean> {
  const { terminal } = context;
  const write = (told: object, lines: readonly string[]): void => {
    if (isJson) terminal.print(JSON.stringify(told));
    else for (const line of lines) terminal.print(printable(line));
  };
  const { to, ways, left_out: leftOut, retries, sender = [] } = answer;
  if (ways.length === 0) write(to, toLines(to));
  const { byQueue, untold, isPartial } = await limitsOf(ways, asked, context);
  for (const way of ways) {
    const limits = byQueue.get(way.queue) ?? [];
    const lines = untold.map((why) => `limits    not told: ${why}`);
    write({ ...way, limits, limits_untold: untold }, [
      ...linesOf(way, retries), ...limitLines(limits), ...lines,
    ]);
  }
  const more = `          and ${counted(leftOut, 'more address', 'more addresses')}`;
  if (leftOut > 0) write({ left_out: leftOut }, [more]);
  if (sender.length > 0) write({ sender }, sender.map(senderText));
  return isPartial;
}

function codeOf({ why, status, hosts, policy_untold: isPolicyUntold }: ExplainedWay): number {
  if (why === '') return 0;
  return status === NO_ANSWER || isPolicyUntold === true || hosts.some(isUntold) ? CANT_TELL : NO_WAY;
}

function sourceText({ address, name, why }: ExplainedSource): string {
  return `${address}  ${name} in EHLO, ${why === '' ? 'confirmed by the DNS' : `not confirmed: ${why}`}`;
}

function senderText({ verdict, text }: DnsFinding): string {
  return `sender    ${verdict === 'bad' ? 'WRONG: ' : verdict === 'advice' ? 'advice: ' : ''}${text}`;
}

/** What it is, whom it stands for, and who may send to it. */
function toLines({ recipient, is, stands_for: to, senders }: ExplainedTo, address = to): string[] {
  const alias = address === to ? '' : `, an alias of ${address}`;
  const who = senders === undefined ? [] : [`senders   ${senders}`];
  if (is === '') return [`to        ${recipient}${alias}`, ...who];
  const whom = to === recipient ? '' : `: mail goes on to ${to}`;
  const what = `is        ${is}${to === '' ? ', and mail ends here' : whom}${alias}`;
  return [`to        ${recipient}`, what, ...who];
}

function linesOf(
  way: ExplainedWay, { first_ms: firstMs, max_ms: maxMs, lifetime_ms: lifetimeMs }: ExplainAnswer['retries'],
): string[] {
  const { queue, next_hop: hop, hosts, tls, auth, sources, mta_sts: sts, why, status } = way;
  const lines = [...toLines(way, way.address), `queue     ${queue}`, `next hop  ${hop}`];
  for (const host of hosts) {
    const addresses = host.addresses.filter((address) => address !== host.host).join(' ');
    const more = [addresses, host.why].filter((text) => text !== '').join('; ');
    const order = host.preference < FALLBACK_PREFERENCE ? String(host.preference) : 'fallback';
    const place = `${order} ${addressText(host.host, host.port)}`;
    lines.push(`host      ${place}${more === '' ? '' : `  ${more}`}`);
  }
  const none = codeOf(way) === CANT_TELL ? "CAN'T TELL" : 'NO WAY   ';
  if (why !== '') lines.push(`${none} ${status} ${why}`);
  const [first = '', last = '', life = ''] = [firstMs, maxMs, lifetimeMs].map(formatDuration);
  for (const source of sources) lines.push(`source    ${sourceText(source)}`);
  const as = auth === undefined ? [] : [`auth      as ${auth}`];
  const policies = [...daneLines(hosts), ...(sts === '' ? [] : [`mta-sts   ${sts}`])];
  const retries = `retries   after ${first} to ${last}, for ${life}`;
  return [...lines, `tls       ${tls}`, ...as, ...policies, retries];
}

/** Where nothing was asked, once for all. */
function daneLines(hosts: readonly ExplainedHost[]): string[] {
  const lines = hosts.flatMap(({ host, dane = '' }) => {
    if (dane === '') return [];
    return [dane === UNSIGNED_MX ? `dane      ${dane}` : `dane      ${host}  ${dane}`];
  });
  return [...new Set(lines)];
}
