/**
 * The first line of `twinpost status`: the worst of all that is wrong in the group, so that whoever looks
 * knows at once where to look. Errors come before warnings; of one level the order is RANKS, whoever has it.
 * Pure.
 */
import type { HurtingQueueAnswer, StatusAnswer } from '../admin-api/gateway-answers.js';
import { isFinal } from '../admin-api/queue-orders.js';
import type { ConfigurationAnswer, LogAnswer } from '../admin-api/pages.js';
import { isStandingVerb } from '../admin-api/queue-rules.js';
import type { QueueRuleAnswer } from '../admin-api/queue-rules.js';
import { formatBytes, formatCount } from '../base/units.js';
import type { Missing } from './group.js';
import { partialLine } from './group.js';
import type { Picture } from './status-text.js';
import { counted, paint, printable } from './tables.js';

/** `error`: mail is lost, refused or stands still. `warning`: it may come to that, or is to be known. */
export type Level = 'error' | 'warning' | 'ok';

export interface Worst {
  readonly level: Level;
  /** '' where it is of no single gateway. */
  readonly gateway: string;
  readonly text: string;
  /** So many other things are wrong. */
  readonly others: number;
}

/** The worst first. */
const RANKS = [
  'copies', 'reception', 'absent', 'partitions', 'routes', 'dns', 'next hops', 'files', 'losses', 'mirrors',
  'register', 'memory', 'stores', 'queues', 'orders', 'certificates', 'others',
] as const;
type Rank = (typeof RANKS)[number];

interface Finding {
  readonly level: 'error' | 'warning';
  readonly rank: Rank;
  readonly gateway: string;
  readonly text: string;
  /** For so many things. */
  readonly count: number;
}

/** New mail is refused at 90% (memory.accept_share): there should be time to act. */
const MEMORY_SHARE = 0.8;
const DAY_SECONDS = 86_400;
/** As the log warns (platform/node/certificate-ends.ts). */
const CERTIFICATE_DAYS = 14;
/** Of one destination: fewer that wait for it are the daily life of whoever sends to strangers. */
const WORTH_MESSAGES = 20;
/** Of all of them together: a thousand domains with few each are no daily life. */
const WORTH_MESSAGES_IN_ALL = 200;
/** One that waits for its register answers so, with its port for mail closed (admin/waiting-server.ts). */
const TAKES_NO_MAIL = 503;
const TEXT_CHARACTERS_MAX = 300;
const LOSS_NEWS_SECONDS = 3_600;

export function worstOf(picture: Picture, nowMs: number): Worst {
  const all = [
    ...picture.gateways.flatMap(({ status }) => findingsOf(status, nowMs)),
    ...picture.missing.map(missingFinding),
    ...picture.stores.filter(({ status }) => !status.ready).map(({ status }) =>
      warning('stores', '', `store ${status.store_id} is not ready`)),
    ...picture.stores.flatMap(({ status: { store_id: id, log, configuration } }) => [
      ...logFindings(`the log of store ${id}`, '', log, nowMs),
      ...refusedFindings(`the file of store ${id}`, '', configuration),
    ]),
  ];
  if (routesOf(picture).size > 1) all.push(warning('others', '', 'gateways have different routes'));
  if (picture.gateways.length === 0) all.push(error('reception', '', 'no gateway answers'));
  const [worst] = all.sort((one, other) => weightOf(one) - weightOf(other));
  if (worst === undefined) return { level: 'ok', gateway: '', text: 'nothing is wrong', others: 0 };
  const { level, gateway, text } = worst;
  return { level, gateway, text, others: all.reduce((sum, { count }) => sum + count, 0) - 1 };
}

export function worstLine({ level, gateway, text, others }: Worst, isTty: boolean): string {
  if (level === 'ok') return paint('ALL WELL', 'green', isTty);
  const word = level === 'error' ? paint('ERROR', 'red', isTty) : paint('WARNING', 'yellow', isTty);
  const where = gateway === '' ? '' : ` ${gateway}`;
  const more = others === 0 ? '' : ` (and ${formatCount(others)} more, below)`;
  const cut = text.length > TEXT_CHARACTERS_MAX ? `${text.slice(0, TEXT_CHARACTERS_MAX)}…` : text;
  return `${word}${printable(where)}: ${printable(cut)}${more}`;
}

/** Gateways by the hash of their routes. */
export function routesOf({ gateways }: Picture): ReadonlyMap<string, readonly string[]> {
  const byRoutes = new Map<string, string[]>();
  for (const { status: { gateway, configuration } } of gateways) {
    if (configuration === undefined) continue;
    const same = byRoutes.get(configuration.routes_hash) ?? [];
    byRoutes.set(configuration.routes_hash, [...same, gateway]);
  }
  return byRoutes;
}

function weightOf({ level, rank }: Finding): number {
  return (level === 'error' ? 0 : RANKS.length) + RANKS.indexOf(rank);
}

/** A gateway whose address nobody knows, or that does not take our token, may be well. */
function missingFinding(one: Missing): Finding {
  const text = partialLine(one, false, true);
  const isAway = one.how === 'silent' || one.how === 'away' || one.code === TAKES_NO_MAIL;
  return isAway && one.kind === 'gateway' ? error('absent', '', text) : warning('absent', '', text);
}

function findingsOf(status: StatusAnswer, nowMs: number): Finding[] {
  return [
    ...copyFindings(status, nowMs), ...refusalFindings(status), ...destinationFindings(status),
    ...queueFindings(status), ...lesserFindings(status, nowMs),
    ...logFindings('the log', status.gateway, status.log, nowMs),
  ];
}

/** What mail may be lost by, or stands still. */
function copyFindings(status: StatusAnswer, nowMs: number): Finding[] {
  const { gateway, losses, waiting_for: waiting, partitions_waiting: all, degraded } = status;
  const found: Finding[] = [];
  if (waiting.copies_away > 0) {
    const text = 'can not be served: all copies that count are away';
    found.push(error('copies', gateway, `${counted(waiting.copies_away, 'partition')} ${text}`));
  }
  if (all > waiting.copies_away) {
    const waits = status.waiting.find(({ waits_for: what }) => what !== 'copies away')?.waits_for ?? '';
    const what = waits === '' ? '' : `, one for: ${waits}`;
    const count = counted(all - waiting.copies_away, 'partition');
    found.push(error('partitions', gateway, `${count} not served yet${what}`));
  }
  if (losses > 0) found.push(lossFinding(status, nowMs));
  if (degraded) {
    const text = `mail is on fewer machines than configured: ${status.degraded_cause}`;
    found.push(warning('mirrors', gateway, text));
  }
  for (const { store, why } of status.stores_unreached) {
    found.push(warning('stores', gateway, `store ${store} is not reached: ${why}`));
  }
  for (const { stores, partitions } of status.ends_untold) {
    const text = `of ${counted(partitions, 'partition')} that ended ${stores.join(', ')} must still be told`;
    found.push(warning('others', gateway, text));
  }
  return found;
}

/** Nothing can be done about it: who has looked within the hour is told of other things first. */
function lossFinding({ gateway, losses, lost }: StatusAnswer, nowMs: number): Finding {
  const text = `${counted(losses, 'partition')} began empty since the start: every copy was lost or given up`;
  const last = lost.at(-1)?.at;
  const isOld = last !== undefined && nowMs / 1000 - last >= LOSS_NEWS_SECONDS;
  return isOld ? warning('others', gateway, text) : error('losses', gateway, text);
}

/** What makes it refuse mail, or soon will. */
function refusalFindings(status: StatusAnswer): Finding[] {
  const { gateway, memory_used_bytes: used, memory_limit_bytes: limit } = status;
  const found: Finding[] = [];
  if (!status.ready) found.push(error('reception', gateway, `takes no mail: ${status.not_ready_reason}`));
  for (const { route, reason } of status.routes_refused) {
    // What an operator wants is not what hurts most.
    found.push(reason === 'operator'
      ? warning('orders', gateway, `new mail of route ${route} is refused by an operator`)
      : error('routes', gateway, `new mail of route ${route} is refused: ${reason}`));
  }
  if (status.register_away !== '') {
    found.push(warning('register', gateway, `the register is away: ${status.register_away}`));
  }
  if (used >= MEMORY_SHARE * limit) {
    const percent = String(Math.floor(100 * used / limit));
    const text = `memory is ${percent}% full: ${formatBytes(used)} of ${formatBytes(limit)}`;
    found.push(warning('memory', gateway, text));
  }
  found.push(...refusedFindings('the file of its configuration', gateway, status.configuration));
  for (const list of status.reception?.blocklists_failing ?? []) {
    found.push(warning('files', gateway, `the DNS blocklist ${list} gives no answer of use`));
  }
  const { stale_files: stale = [], recipients_deferred_by: deferredBy = '' } = status.reception ?? {};
  if (deferredBy !== '') {
    found.push(error('files', gateway, `mail for recipients is deferred: ${deferredBy}`));
  }
  for (const file of stale) {
    if (file === 'recipients' && deferredBy !== '') continue;
    found.push(error('files', gateway, `the ${file} on disk can't be used; what was read before stays`));
  }
  for (const { hook, why } of status.outages?.hooks ?? []) {
    found.push(error('files', gateway, `hook ${hook} fails: ${why}`));
  }
  return found;
}

/** The next start would fail by it. */
function refusedFindings(
  which: string, gateway: string, configuration: ConfigurationAnswer | undefined,
): Finding[] {
  const { refused = '' } = configuration ?? {};
  return refused === '' ? [] : [error('files', gateway, `${which} is refused: ${refused}`)];
}

function logFindings(which: string, gateway: string, log: LogAnswer | undefined, nowMs: number): Finding[] {
  if (log === undefined) return [];
  const { lost_lines: lost, lost_at: at, failing } = log;
  if (failing !== '') {
    const text = `${which} can't be written: ${failing}; ${counted(lost, 'line')} lost`;
    return [error('files', gateway, text)];
  }
  const isOld = at === null || nowMs / 1000 - at >= LOSS_NEWS_SECONDS;
  const text = `${counted(lost, 'line')} of ${which} lost since the start`;
  return isOld ? [] : [warning('files', gateway, text)];
}

/** Where mail goes, and does not arrive. */
function destinationFindings(status: StatusAnswer): Finding[] {
  const { gateway, outages, sources = [] } = status;
  const { dns_away: dns = '', lookups_held: held = '', connections_full: full = '' } = status;
  const found = dns === '' ? [] : [error('dns', gateway, `no resolver of DNS answers: ${dns}`)];
  if (held !== '') found.push(error('dns', gateway, `mail waits for the lookup of next hops: ${held}`));
  if (full !== '') {
    const text = `mail waits as connections to next hops are used up: ${full} (delivery.connections)`;
    found.push(error('next hops', gateway, text));
  }
  const { next_hops: hops = [], next_hops_down: hopsDown = 0, mx = [] } = outages ?? {};
  const { mx_down: mxDown = 0, mx_waiting: mxWaiting = 0 } = outages ?? {};
  for (const { relay, waiting, why } of hops) {
    const waits = `${counted(waiting, 'message')} ${waiting === 1 ? 'waits' : 'wait'}`;
    const level = waiting > 0 ? error : warning;
    found.push(level('next hops', gateway, `next hop ${relay} can't be reached, ${waits}: ${why}`));
  }
  if (hopsDown > hops.length) {
    // For the others no more waits than for the last of these.
    const level = hops.at(-1)?.waiting === 0 ? warning : error;
    found.push(level('next hops', gateway, 'next hops can\'t be reached', hopsDown - hops.length));
  }
  const worthIt = mx.filter((one) => one.waiting >= WORTH_MESSAGES);
  for (const { relay, waiting, why } of worthIt) {
    const text = `${relay} can't be reached, ${formatCount(waiting)} to deliver: ${why}`;
    found.push(warning('queues', gateway, text));
  }
  if (worthIt.length === 0 && mxWaiting >= WORTH_MESSAGES_IN_ALL) {
    const text = `${counted(mxDown, 'destination')} by MX can't be reached, `
      + `${formatCount(mxWaiting)} to deliver`;
    found.push(warning('queues', gateway, text));
  }
  for (const { address, why } of sources.filter((one) => one.why !== '')) {
    found.push(warning('others', gateway, `no mail leaves from ${address}: ${why}`));
  }
  return found;
}

/** What waits, and for what. */
function queueFindings(status: StatusAnswer): Finding[] {
  const { gateway, hurting, rules = [], orders = [], orders_left: left = 0 } = status;
  const { held_messages: held, unrouted_messages: unrouted = 0 } = status;
  const found = hurting.queues
    .filter(({ problem, messages }) => problem === 'refused' || messages >= WORTH_MESSAGES)
    .map((one) => warning('queues', gateway, hurtingText(one)));
  if (held > 0) {
    const unled = unrouted === 0 ? '' : `, ${formatCount(unrouted)} of them with no route`;
    const text = `${counted(held, 'message')} held${unled}: twinpost queue summary says in which queues`;
    found.push(warning('orders', gateway, text));
  }
  for (const rule of rules) {
    const text = ruleText(rule);
    if (text !== '') found.push(warning('orders', gateway, text));
  }
  for (const { verb, selector, phase, matched, who } of orders) {
    if (!isFinal(verb) || (phase !== 'grace' && phase !== 'acting')) continue;
    const when = phase === 'grace' ? 'when its grace is over' : 'at this moment';
    const text = `${verb} ${selector} of ${who} is done to ${counted(matched, 'message')} ${when}`;
    found.push(warning('orders', gateway, text));
  }
  if (left > 0) {
    const text = `${counted(left, 'order')} in the register for mail that is not here: twinpost queue orders`;
    found.push(warning('orders', gateway, text));
  }
  return found;
}

/** '' where nothing is done to mail at this moment, or it is told elsewhere (routes_refused). */
function ruleText({ verb, queue, messages, who }: QueueRuleAnswer): string {
  const count = counted(messages, 'message');
  if (isStandingVerb(verb)) {
    return `an order to ${verb} mail that comes stands: ${queue}, by ${who}, `
      + `${count} caught since the gateway started`;
  }
  if (verb === 'suspend') {
    return messages === 0 ? '' : `queue ${queue} is suspended by an operator, ${count} in it`;
  }
  if (/^--(?:domain|rcpt) /.test(queue)) return `new mail for ${queue} is refused by an operator`;
  return /^--(?:client|sender) /.test(queue) ? `new mail of ${queue} is refused by an operator` : '';
}

function lesserFindings(status: StatusAnswer, nowMs: number): Finding[] {
  const { gateway, reception, orphan_partitions: orphans, partitions_without_memory: short } = status;
  const ending = (reception?.certificates ?? []).filter(({ ends }) => isEnding(ends, nowMs));
  const found = ending.map(({ use, ends }) => {
    const secondsLeft = ends - nowMs / 1000;
    const days = counted(Math.floor(Math.abs(secondsLeft) / DAY_SECONDS), 'day');
    const what = `the certificate for ${use}`;
    return secondsLeft > 0
      ? warning('certificates', gateway, `${what} ends in ${days}`)
      : error('certificates', gateway, `${what} expired ${days} ago: renew it`);
  });
  if (short > 0) found.push(warning('memory', gateway, `no memory to read ${counted(short, 'partition')}`));
  if (orphans > 0) {
    found.push(warning('others', gateway, `${counted(orphans, 'partition')} of a gateway that is gone`));
  }
  if (status.insecure) found.push(warning('others', gateway, 'store links outside loopback run without TLS'));
  return found;
}

/** Unix seconds: of a certificate that is to be renewed soon. */
export function isEnding(ends: number, nowMs: number): boolean {
  return ends - nowMs / 1000 < CERTIFICATE_DAYS * DAY_SECONDS;
}

/** Of a queue whose mail does not get on; `where`: what tells it from another of its name. */
export function hurtingText(
  {
    queue_name: name, problem, messages, deferred, tried = 0, refused = 0, last_error: last,
  }: HurtingQueueAnswer, where = '',
): string {
  const queue = name + where;
  const said = last === '' ? '' : `; last: ${last}`;
  // A strict queue has no other that was tried.
  const behind = `${counted(messages - 1, 'message')} behind it`;
  switch (problem) {
    case 'refused':
      return `queue ${queue}: its next hop refuses mail for good, ${formatCount(refused)} of `
        + `${counted(tried, 'recipient')} in the last minutes${said}`;
    case 'deferred':
      if (deferred === 0) return `queue ${queue}: its next hop puts its first message off, ${behind}${said}`;
      return `queue ${queue}: its next hop puts mail off, ${formatCount(deferred)} of `
        + `${counted(messages, 'message')} deferred${said}`;
    case 'growing': return `queue ${queue} grows, ${counted(messages, 'message')}${said}`;
    case 'slow': return `queue ${queue} is slow, ${counted(messages, 'message')} in it${said}`;
  }
}

function error(rank: Rank, gateway: string, text: string, count = 1): Finding {
  return { level: 'error', rank, gateway, text, count };
}

function warning(rank: Rank, gateway: string, text: string, count = 1): Finding {
  return { level: 'warning', rank, gateway, text, count };
}
