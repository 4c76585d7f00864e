/** What `twinpost status` shows to people. Pure: answers in, lines out. */
import { awaitedBackText } from '../admin-api/awaited-back.js';
import type {
  HopOutageAnswer, LastHeldAnswer, LossAnswer, OrderInForceAnswer, OrphansAnswer, StatusAnswer, StoreAnswer,
  TableRowAnswer, UnreachedStoreAnswer, UntoldEndsAnswer, WaitingPartitionAnswer,
} from '../admin-api/gateway-answers.js';
import type { ConfigurationAnswer, LogAnswer } from '../admin-api/pages.js';
import { isFinal } from '../admin-api/queue-orders.js';
import type { StoreStatusAnswer } from '../admin-api/store-answers.js';
import { isStandingVerb } from '../admin-api/queue-rules.js';
import type { RuleVerb } from '../admin-api/queue-rules.js';
import { formatBytes, formatCount, formatDuration } from '../base/units.js';
import { PROTOCOL_VERSION } from '../protocol/versions.js';
import { RESCUE_ORDER } from '../recovery/ownership/waiting.js';
import type { Missing } from './group.js';
import { partialLine } from './group.js';
import { hurtingText, isEnding, routesOf, worstLine, worstOf } from './status-worst.js';
import { counted, paint, printable, tableText, timeText } from './tables.js';

export interface GatewayPicture {
  readonly status: StatusAnswer;
  readonly rows: readonly TableRowAnswer[];
  readonly address: string;
}

export interface StorePicture {
  readonly status: StoreStatusAnswer;
  readonly address: string;
}

export interface Picture {
  readonly gateways: readonly GatewayPicture[];
  readonly stores: readonly StorePicture[];
  readonly missing: readonly Missing[];
  /** The table has every partition. */
  readonly all: boolean;
  /** As of Looked (live.ts). */
  readonly awaitedMs?: number;
}

/** Below, who sends most says nothing. */
const BUSY_MESSAGES_MIN = 100;
const BUSY_SHARE_MIN = 0.1;
const CAUSE_CHARACTERS_MAX = 48;
/** Waiting partitions stand below the word WAITING. */
const WAITING_INDENT = ' '.repeat(16);
/** Of those that wait for the same. */
const NAMES_SHOWN_MAX = 8;
/** What was lost in one minute stands together. */
const MINUTE_SECONDS = 60;
const LOSS_GROUPS_MAX = 8;
const ORDERS_SHOWN_MAX = 8;
const NO_LOSS: LossAnswer = { partition: '', at: 0, who: '', reason: '' };
/** Messages, deletions, notes; of a copy that is filled, messages still to be sent. */
const LAG = 'Lag, changes';

export function statusLines(picture: Picture, nowMs: number, isTty: boolean): string[] {
  const lines = [worstLine(worstOf(picture, nowMs), isTty), ''];
  for (const gateway of picture.gateways) lines.push(...gatewayLines(gateway, picture.all, nowMs, isTty), '');
  lines.push(...differingLines(picture, isTty));
  if (picture.stores.length > 0) lines.push(...storesLines(picture.stores, nowMs, isTty), '');
  for (const missing of picture.missing) lines.push(partialLine(missing, isTty, true));
  return lines;
}

/** Gateways of one group take over one another's mail, and send it by their own routes. */
function differingLines(picture: Picture, isTty: boolean): string[] {
  const byRoutes = routesOf(picture);
  if (byRoutes.size < 2) return [];
  const groups = [...byRoutes].map(([hash, names]) => `${hash}: ${names.join(', ')}`);
  return [`${paint('ROUTES DIFFER', 'yellow', isTty)}: ${printable(groups.join('; '))}; give all gateways `
    + 'the same file and run twinpost config reload', ''];
}

/** What there is room for; the last line says how much is left out. */
export function fittingLines(lines: readonly string[], rows: number): readonly string[] {
  const shown = lines.at(-1) === '' ? lines.slice(0, -1) : lines;
  if (shown.length <= rows) return shown;
  return [...shown.slice(0, rows - 1), `… ${counted(shown.length - rows + 1, 'more line')}`];
}

/** For a pipe: one line a gateway, the same columns each time. */
export function watchLine({ status }: GatewayPicture, nowMs: number): string {
  const lag = status.stores.reduce((most, store) => Math.max(most, store.lag_messages), 0);
  const down = status.stores.filter((store) => !store.up).map((store) => store.store);
  const drained = status.stores.filter((store) => store.drained).map((store) => store.store);
  return [
    new Date(nowMs).toISOString(),
    printable(status.gateway),
    status.ready ? 'ready' : `not-ready(${printable(status.not_ready_reason)})`,
    status.degraded_since === null ? 'complete' : 'degraded',
    `received=${String(status.received)}`,
    `delivered=${String(status.delivered)}`,
    `queued=${String(status.queued_messages)}`,
    `lag=${String(lag)}`,
    `refused=${String(status.routes_refused.length)}`,
    `down=${down.length === 0 ? '-' : printable(down.join(','))}`,
    `drained=${drained.length === 0 ? '-' : printable(drained.join(','))}`,
    `register=${status.register_away === '' ? 'up' : 'away'}`,
    `waiting=${String(status.partitions_waiting)}`,
    `copies-away=${String(status.waiting_for.copies_away)}`,
    `orphans=${String(status.orphan_partitions)}`,
  ].join(' ');
}

function gatewayLines(
  { status, rows, address }: GatewayPicture, all: boolean, nowMs: number, isTty: boolean,
): string[] {
  const notReady = `${paint('NOT READY', 'red', isTty)}: ${printable(status.not_ready_reason)}`;
  const { awaited_back: awaited } = status;
  const recovering = status.partitions_recovering - awaited.partitions;
  const comingBack =
    recovering <= 0 ? '' : `, ${counted(recovering, 'partition')} still coming back from the stores`;
  const memory = `${formatBytes(status.memory_used_bytes)} of ${formatBytes(status.memory_limit_bytes)}`;
  const lines = [
    `${paint(printable(status.gateway), 'bold', isTty)} on ${printable(status.host)}: twinpost `
      + `${printable(status.version)}, pid ${String(status.pid)}, up `
      + `${formatDuration(status.uptime_seconds * 1000)}, incarnation ${String(status.incarnation)}`,
    `  mail        ${status.ready ? paint('READY', 'green', isTty) : notReady}`,
    `  mirrors     ${mirrorsText(status, nowMs, isTty)}`,
    `  received    ${formatCount(status.received)}   delivered ${formatCount(status.delivered)}   deferred `
      + `${formatCount(status.deferred)}   bounced ${formatCount(status.bounced)}   expired `
      + `${formatCount(status.expired)}   rejected ${formatCount(status.rejected)}`,
    `  queued      ${counted(status.queued_messages, 'message')}, ${formatBytes(status.queued_bytes)} in `
      + `${counted(status.queues, 'queue')} of ${counted(status.partitions, 'partition')}${comingBack}; `
      + `memory ${memory}`,
  ];
  lines.push(...configurationLines(status, nowMs, isTty));
  lines.push(...receptionLines(status, isTty));
  lines.push(...logLines(status.log, nowMs, isTty));
  lines.push(...busiestLine(status, isTty), ...certificateLines(status, nowMs, isTty));
  lines.push(...outageLines(status, nowMs, isTty), ...hurtingLines(status, nowMs, isTty));
  lines.push(...sourceLines(status, isTty));
  lines.push(...ruleLines(status, nowMs, isTty));
  if (status.register_away !== '') lines.push(registerLine(status.register_away, isTty));
  for (const held of status.last_held) lines.push(lastHeldLine(held, status.register_heard, nowMs));
  if (status.routes_refused.length > 0) lines.push(refusedLine(status, nowMs, isTty));
  if (status.partitions_rescued > 0) {
    lines.push(
      `  rescued     ${counted(status.partitions_rescued, 'partition')} of other gateways delivered here`,
    );
  }
  if (awaited.partitions > 0) lines.push(`  rescued     ${printable(awaitedBackText(awaited))}`);
  if (status.partitions_on_own_host > 0) lines.push(ownHostLine(status, isTty));
  if (status.partitions_without_memory > 0) lines.push(shortLine(status, isTty));
  for (const orphans of status.orphans) lines.push(orphansLine(orphans, nowMs, isTty));
  for (const ends of status.ends_untold) lines.push(...untoldEndsLines(ends, address, isTty));
  lines.push(...waitingLines(status, address, nowMs, isTty));
  if (status.losses > 0) lines.push(...lossLines(status, nowMs, isTty));
  if (status.adopted > 0) lines.push(adoptedLine(status));
  if (status.insecure) {
    lines.push(`  ${paint('INSECURE', 'yellow', isTty)}    store links outside loopback run without TLS `
      + `(insecure: true)`);
  }
  for (const one of status.stores_unreached) lines.push(unreachedLine(one, nowMs, isTty));
  lines.push('', ...storeTable(status, nowMs));
  lines.push('', ...managementTable(rows, nowMs));
  const shown = new Set(rows.map((row) => row.partition)).size;
  if (!all && shown < status.partitions) {
    lines.push(`-- ${formatCount(shown)} of ${counted(status.partitions, 'partition')}, those that need a `
      + `look first; --all shows every one`);
  }
  return lines;
}

function configurationLines({ configuration }: StatusAnswer, nowMs: number, isTty: boolean): string[] {
  if (configuration === undefined) return [];
  const { hash, routes_hash: routes, since } = configuration;
  return [
    `  config      ${printable(hash)}, routes ${printable(routes)}, since ${timeText(since)}`,
    ...refusedFileLines(configuration, '', nowMs, isTty),
  ];
}

/** A file that was refused is what the next start would fail by. `whose`: '' below its name. */
export function refusedFileLines(
  configuration: ConfigurationAnswer | undefined, whose: string, nowMs: number, isTty: boolean,
): string[] {
  const { refused = '', refused_at: refusedAt = null } = configuration ?? {};
  if (refused === '') return [];
  const when = refusedAt === null ? '' : ` ${ago(refusedAt, nowMs)} ago`;
  const by = whose === '' ? '' : ` by ${printable(whose)}`;
  return [`  ${paint('RELOAD', 'red', isTty)}      ERROR: refused${by}${when}: ${printable(refused)}; `
    + 'the one before is in force, mend the file before the next start'];
}

/** Nobody has to do anything, unless there are only as many hosts. */
function ownHostLine({ partitions_on_own_host: partitions }: StatusAnswer, isTty: boolean): string {
  const have = partitions === 1 ? 'has' : 'have';
  return `  ${paint('OWN HOST', 'yellow', isTty)}    ${counted(partitions, 'partition')} ${have} a copy at a `
    + 'store on the host of this gateway, lost with it: it moves away as soon as a store elsewhere takes it';
}

/** Nobody has to do anything; more memory has it sooner. */
function shortLine({ partitions_without_memory: short }: StatusAnswer, isTty: boolean): string {
  return `  ${paint('SHORT', 'yellow', isTty)}       ${counted(short, 'partition')} not read to the end: `
    + `no memory left even for an index; goes on as mail is delivered, sooner with a higher memory limit`;
}

/** Nothing where there is neither TLS, AUTH nor a look-up. */
function receptionLines({ reception }: StatusAnswer, isTty: boolean): string[] {
  if (reception === undefined) return [];
  const counts = ([
    ['TLS', reception.tls_handshakes, reception.tls_failed], ['AUTH', reception.auth, reception.auth_failed],
    ['look-ups', reception.lookups, reception.lookups_failed],
  ] as const).filter(([, all]) => all > 0);
  const words = counts.map(([what, all, failed]) =>
    `${what} ${formatCount(all)}${failed === 0 ? '' : `, ${formatCount(failed)} failed`}`);
  const lines = words.length === 0 ? [] : [`  reception   ${words.join('   ')}`];
  if (reception.blocklists_failing.length > 0) {
    lines.push(`  ${paint('BLOCKLIST', 'yellow', isTty)}   no answer of use, clients are taken as if they `
      + `were not on it: ${printable(reception.blocklists_failing.join(', '))}; the log says why`);
  }
  const { stale_files: stale, recipients_deferred_by: deferredBy = '' } = reception;
  const staying = stale.filter((file) => file !== 'recipients' || deferredBy === '');
  if (staying.length > 0) {
    lines.push(`  ${paint('STALE', 'red', isTty)}       what is on disk can't be used, and what was read `
      + `before stays: ${printable(staying.join(', '))}; the log says why`);
  }
  if (deferredBy !== '') {
    lines.push(`  ${paint('RECIPIENTS', 'red', isTty)}  nobody can tell who is there, so mail is deferred: `
      + printable(deferredBy));
  }
  return lines;
}

/** What mail depends on and does not answer. */
function logLines(log: LogAnswer | undefined, nowMs: number, isTty: boolean): string[] {
  if (log === undefined || (log.lost_lines === 0 && log.failing === '')) return [];
  const why = log.failing === '' ? '' : `, it can't be written now: ${printable(log.failing)}`;
  const last = log.lost_at === null ? '' : `, the last ${ago(log.lost_at, nowMs)} ago`;
  const lost = `${counted(log.lost_lines, 'line')} lost since the start${last}`;
  return [`  ${paint('LOG', log.failing === '' ? 'yellow' : 'red', isTty)}         ${lost}${why}`];
}

function outageLines(status: StatusAnswer, nowMs: number, isTty: boolean): string[] {
  const { outages, dns_away: dns = '', lookups_held: held = '', connections_full: full = '' } = status;
  if (outages === undefined) return [];
  const { next_hops: shown, next_hops_down: all, mx, mx_down: mxDown, hooks } = outages;
  const { memory_limit_bytes: limit } = status;
  const lines = shown.map((hop) =>
    `  ${paint('NEXT HOP', 'red', isTty)}    ${outageText(hop, limit, nowMs)}`);
  if (full !== '') {
    const word = paint('CONNECTIONS', 'red', isTty);
    lines.unshift(`  ${word} mail waits for one to a next hop: ${printable(full)}`);
  }
  if (held !== '') {
    const word = paint('LOOKUPS', 'red', isTty);
    lines.unshift(`  ${word}     mail waits for those of next hops: ${printable(held)}`);
  }
  if (dns !== '') {
    lines.unshift(`  ${paint('DNS', 'red', isTty)}         no resolver answers: ${printable(dns)}`);
  }
  const more = all - shown.length;
  if (more > 0) lines.push(`${WAITING_INDENT}and ${counted(more, 'more next hop')}`);
  for (const hop of mx) lines.push(`  MX          ${outageText(hop, limit, nowMs)}`);
  if (mxDown > mx.length) {
    const others = formatCount(mxDown - mx.length);
    lines.push(`${WAITING_INDENT}and ${others} more by MX: twinpost queue summary says what waits, and why`);
  }
  for (const { hook, since, why } of hooks) {
    lines.push(`  ${paint('HOOK', 'red', isTty)}        ${printable(hook)} fails for ${ago(since, nowMs)}: `
      + printable(why));
  }
  return lines;
}

function outageText(
  { relay, since, waiting, why, bytes = 0, next_try: nextTry, code = '' }: HopOutageAnswer, limit: number,
  nowMs: number,
): string {
  const last = code === '' || why.startsWith(code) ? why : `${code} ${why}`;
  return `${printable(relay)} can't be reached for ${ago(since, nowMs)}, ${formatCount(waiting)} to deliver`
    + `${shareText(bytes, limit)}${againText(nextTry, nowMs)}: ${printable(last)}`;
}

/** Below half a percent nothing. */
function shareText(bytes: number, limit: number): string {
  const share = Math.round(100 * bytes / limit);
  return share === 0 ? '' : `, ${String(share)}% of the memory`;
}

/** Undefined: of a release that does not tell it. */
function againText(nextTry: number | null | undefined, nowMs: number): string {
  if (nextTry === undefined) return '';
  const leftMs = nextTry === null ? 0 : Math.max(0, nextTry * 1000 - nowMs);
  return leftMs === 0 ? ', tried now' : `, next try in ${formatDuration(Math.ceil(leftMs / 1000) * 1000)}`;
}

/** Queues whose mail does not get on, those with most of it first. */
function hurtingLines(
  { hurting: { counts, queues }, memory_limit_bytes: limit }: StatusAnswer, nowMs: number, isTty: boolean,
): string[] {
  const lines = queues.map((one) => {
    const title = one.problem.toUpperCase();
    // Beside its own a gateway has the queue of a partition that it has taken over.
    const isAlone = queues.filter((other) => other.queue_name === one.queue_name).length === 1;
    const where = isAlone ? '' : ` of ${one.partition}`;
    const again = typeof one.next_try === 'number' ? againText(one.next_try, nowMs) : '';
    const pad = ' '.repeat(12 - title.length);
    return `  ${paint(title, 'yellow', isTty)}${pad}${printable(hurtingText(one, where))}; `
      + `for ${ago(one.since, nowMs)}${shareText(one.bytes, limit)}${again}`;
  });
  const { refused = 0, deferred, growing, slow } = counts;
  const more = refused + deferred + growing + slow - queues.length;
  return more > 0 ? [...lines, `${WAITING_INDENT}and ${counted(more, 'more queue')}`] : lines;
}

/** Nothing where hardly anything comes in. */
function busiestLine(
  { busiest: { seconds, messages, clients, senders, users } }: StatusAnswer, isTty: boolean,
): string[] {
  if (messages < BUSY_MESSAGES_MIN) return [];
  const parties = ([['client', clients], ['sender', senders], ['user', users]] as const)
    .flatMap(([party, all]) => {
      const busy = all.filter((one) => one.messages >= BUSY_SHARE_MIN * messages).map((one) => {
        const percent = String(Math.round(100 * one.messages / messages));
        return `${printable(one.name === '' ? '<>' : one.name)} ${percent}%`;
      });
      return busy.length === 0 ? [] : [`${party} ${busy.join(', ')}`];
    });
  if (parties.length === 0) return [];
  const isOne = (clients[0]?.messages ?? 0) * 2 > messages;
  return [`  ${isOne ? paint('busiest', 'yellow', isTty) : 'busiest'}     ${parties.join('   ')}   of `
    + `${counted(messages, 'message')} accepted in ${formatDuration(seconds * 1000)}`];
}

function certificateLines({ reception }: StatusAnswer, nowMs: number, isTty: boolean): string[] {
  const title = paint('CERTIFICATE', 'red', isTty);
  return (reception?.certificates ?? []).filter(({ ends }) => isEnding(ends, nowMs)).map(({ use, ends }) => {
    const verb = ends * 1000 <= nowMs ? 'expired' : 'ends';
    return `  ${title} for ${printable(use)} ${verb} ${timeText(ends)}: renew it`;
  });
}

const RULE_TITLES: Readonly<Record<RuleVerb, string>> = {
  suspend: 'SUSPENDED', refuse: 'REFUSING', hold: 'HOLDING', delay: 'DELAYING', bounce: 'RETURNING',
  delete: 'DELETING',
};

/** What operators have decided, and may have forgotten. */
function ruleLines(status: StatusAnswer, nowMs: number, isTty: boolean): string[] {
  const { rules } = status;
  const lines = (rules ?? []).map(({ verb, queue, since, until, local, who, reason, messages }) => {
    const title = RULE_TITLES[verb];
    const end = until === null ? '' : `, until ${timeText(until)}`;
    const waits = `${counted(messages, 'message')} ${messages === 1 ? 'waits' : 'wait'}`;
    const met = `${counted(messages, 'message')} caught here since the gateway started`;
    const waiting = isStandingVerb(verb) ? met : verb === 'suspend' ? waits : 'new mail gets 452';
    const time = `since ${timeText(since)} (${ago(since, nowMs)})${end}`;
    const pad = ' '.repeat(12 - title.length);
    return `  ${paint(title, 'yellow', isTty)}${pad}${printable(queue)} ${time} by ${printable(who)}: `
      + `${printable(reason)}; ${waiting}${local ? '; not in the register yet' : ''}`;
  });
  return [...lines, ...heldLine(status, isTty), ...delayedLine(status, isTty),
    ...orderLines(status, nowMs, isTty)];
}

function heldLine(
  { held_messages: held, unrouted_messages: unrouted, queued_messages: all }: StatusAnswer, isTty: boolean,
): string[] {
  if (held === 0) return [];
  const wait = held === 1 ? 'waits' : 'wait';
  const count = `${formatCount(held)} of ${counted(all, 'message')}`;
  const unled = (unrouted ?? 0) === 0 ? '' : `, ${formatCount(unrouted ?? 0)} of them with no route`;
  const but = unrouted === 0 ? '' : ', but where no route leads out: there add one with the name of the '
    + 'queue, or queue rebind';
  return [`  ${paint('HELD', 'yellow', isTty)}        ${count} ${wait} for an operator${unled}: `
    + `twinpost queue summary says in which queues; queue release lets it go${but}`];
}

function delayedLine(
  { delayed_messages: delayed = 0, queued_messages: all }: StatusAnswer, isTty: boolean,
): string[] {
  if (delayed === 0) return [];
  const wait = delayed === 1 ? 'waits' : 'wait';
  const count = `${formatCount(delayed)} of ${counted(all, 'message')}`;
  return [`  ${paint('DELAYED', 'yellow', isTty)}     ${count} ${wait} `
    + 'for the time that an operator has set: queue release lets it go before'];
}

/** Those that come to an end by themselves are shown too: who gave one in error has its grace to see it. */
function orderLines(
  { orders, orders_left: left = 0 }: StatusAnswer, nowMs: number, isTty: boolean,
): string[] {
  if (orders === undefined && left > 0) {
    const wait = left === 1 ? 'order waits' : 'orders wait';
    return [`  ${paint('LEFT', 'yellow', isTty)}        ${formatCount(left)} ${wait} in the register for `
      + 'mail of gateways that did not answer: twinpost queue orders'];
  }
  const all = orders ?? [];
  const lines = all.slice(0, ORDERS_SHOWN_MAX).map((order) =>
    `  ${paint('ORDER', 'yellow', isTty)}       ${printable(orderText(order, nowMs))}`);
  const more = all.length - ORDERS_SHOWN_MAX;
  if (more > 0) lines.push(`${WAITING_INDENT}and ${formatCount(more)} more: twinpost queue orders`);
  return lines;
}

function orderText(order: OrderInForceAnswer, nowMs: number): string {
  const { order: id, verb, selector, given, who, reason } = order;
  const time = `since ${timeText(given)} (${ago(given, nowMs)})`;
  return `${verb} ${selector} (${id}) ${time} by ${who}: ${reason}; ${progressText(order, nowMs)}`;
}

function progressText(
  { verb, phase, matched, done, grace_ends: graceEnds, until, order }: OrderInForceAnswer, nowMs: number,
): string {
  const meant = `${counted(matched, 'message')} matched`;
  const ended = `${formatCount(done)} ${isFinal(verb) && verb !== 'rebind' ? 'ended' : 'done'}`;
  switch (phase) {
    case 'looking': return `${meant} so far, it still looks`;
    case 'found': return `${meant}, waits for whoever gave it`;
    case 'grace': {
      const leftMs = Math.max(0, (graceEnds ?? 0) * 1000 - nowMs);
      return `${meant}, ${ended}; its grace ends ${timeText(graceEnds ?? 0)}, in ${formatDuration(leftMs)}: `
        + `twinpost queue orders --cancel ${order} takes it back`;
    }
    case 'acting': return `${meant}, ${ended}`;
    case 'kept': return 'in the grace of another gateway, kept back here and not ended, until '
      + `${timeText(until ?? 0)} if nobody acts: twinpost queue orders --cancel ${order} lets it go`;
    case 'left': return `left in the register for mail of gateways that did not answer, ${ended} here, until `
      + timeText(until ?? 0);
  }
}

/** Of our own, from which nothing leaves. */
function sourceLines({ sources }: StatusAnswer, isTty: boolean): string[] {
  const unused = (sources ?? []).filter(({ why }) => why !== '');
  return unused.map(({ address, name, why }) =>
    `  ${paint('SOURCE', 'yellow', isTty)}      ${printable(address)} (${printable(name)} in EHLO): no mail `
      + `${address.includes(':') ? 'by MX ' : ''}leaves from it: ${printable(why)}`);
}

function storeTable({ stores }: StatusAnswer, nowMs: number): string[] {
  const rows = stores.map((store) => [
    printable(store.store),
    printable(store.host),
    `${store.up ? 'up' : 'DOWN'}${drainedText(store, nowMs)}${olderText(store)}`,
    store.paths.map((path) => `${path.path} ${path.state}`).join(', '),
    store.lease_left_ms === 0 ? '-' : `${(store.lease_left_ms / 1000).toFixed(1)} s`,
    formatCount(store.failovers),
    formatCount(store.partitions_sync),
    formatCount(store.partitions_resync),
    formatCount(store.partitions_ng),
    `${formatCount(store.lag_messages)} (${formatBytes(store.lag_bytes)})`,
  ]);
  return tableText([
    { title: 'Store' }, { title: 'Host' }, { title: 'State' }, { title: 'Paths' },
    { title: 'Lease', right: true }, { title: 'Failovers', right: true }, { title: 'Sync', right: true },
    { title: 'Resync', right: true }, { title: 'NG', right: true }, { title: LAG, right: true },
  ], rows).split('\n');
}

function unreachedLine(one: UnreachedStoreAnswer, nowMs: number, isTty: boolean): string {
  const { store, host, why, since } = one;
  const time = `${timeText(since)} (${ago(since, nowMs)})`;
  const named = `${printable(store)} on ${printable(host)}: named by the register, not reached since ${time}`;
  return `  ${paint('UNREACHED', 'yellow', isTty)}   ${named}: ${printable(why)}`;
}

function drainedText({ drained, drained_since: since }: StoreAnswer, nowMs: number): string {
  if (!drained) return '';
  return since === null ? ', drained' : `, drained ${ago(since, nowMs)} ago`;
}

/** Every one of them: what is refused is not to be looked for elsewhere. */
function refusedLine(
  { routes, routes_refused: refused }: StatusAnswer, nowMs: number, isTty: boolean,
): string {
  const names =
    refused.map(({ route, reason, since }) => `${route} (${reason} for ${ago(since, nowMs)})`).join(', ');
  return `  ${paint('REFUSED', 'red', isTty)}     new mail of ${formatCount(refused.length)} of `
    + `${counted(routes, 'route')}: ${printable(names)}`;
}

/** Mail of a gateway that is no more: who delivers it, an operator sees in the table. */
function orphansLine(
  { gateway, retired, partitions, names, since }: OrphansAnswer, nowMs: number, isTty: boolean,
): string {
  const shown = names.join(', ')
    + (partitions > names.length ? ` and ${formatCount(partitions - names.length)} more` : '');
  const why = retired ? 'retired by an operator' : 'which no configuration serves any more';
  return `  ${paint('ORPHANS', 'yellow', isTty)}     ${counted(partitions, 'partition')} of `
    + `${printable(gateway)}, ${why}, for `
    + `${ago(since, nowMs)}: ${printable(shown)}; the group delivers what they have, then they end`;
}

/** With the order that can be copied. */
function untoldEndsLines(
  { stores, partitions, names }: UntoldEndsAnswer, address: string, isTty: boolean,
): string[] {
  const more = partitions > names.length ? ` and ${formatCount(partitions - names.length)} more` : '';
  const given = stores.map((store) => `--give-up ${store}`).join(' ');
  const have = partitions === 1 ? 'has' : 'have';
  const is = stores.length === 1 ? 'is' : 'are';
  const from = address.replace(/^http:\/\//, '');
  return [
    `  ${paint('ENDED', 'yellow', isTty)}       ${counted(partitions, 'partition')} ${have} ended, and `
      + `${printable(stores.join(', '))}, which may have copies, ${is} to be told: `
      + `${printable(names.join(', '))}${more}; start what is away, or if it never comes back:`,
    `${WAITING_INDENT}  ${printable(`${RESCUE_ORDER} ${given} --reason TEXT --from ${from}`)}`,
  ];
}

/** Since the start of the process: those of one order, or of one minute, together. */
function lossLines({ losses, lost }: StatusAnswer, nowMs: number, isTty: boolean): string[] {
  const groups = new Map<string, LossAnswer[]>();
  for (const one of lost) {
    const key = JSON.stringify([one.who, one.reason, Math.floor(one.at / MINUTE_SECONDS)]);
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const count = counted(losses, 'partition');
  const lines = [`  ${paint('LOST', 'red', isTty)}        ${count} began empty, because every copy was lost `
    + 'or given up'];
  for (const group of [...groups.values()].slice(-LOSS_GROUPS_MAX)) {
    const [{ at, who, reason } = NO_LOSS] = group;
    const names = group.slice(0, NAMES_SHOWN_MAX).map(({ partition }) => partition).join(', ');
    const hidden = group.length - NAMES_SHOWN_MAX;
    const more = hidden > 0 ? ` and ${formatCount(hidden)} more` : '';
    const by = who === '' ? 'nobody ordered it: all stores that had a copy came back without it'
      : `by order of ${who}: ${reason}`;
    const text = `${names}${more}: ${timeText(at)}, ${ago(at, nowMs)} ago, ${by}`;
    lines.push(`${WAITING_INDENT}${printable(text)}`);
  }
  return lines;
}

/** Of copies that were given up. */
function adoptedLine({ adopted, adopted_twice: twice }: StatusAnswer): string {
  const repeats = twice === 0 ? '' : `; ${formatCount(twice)} of them may be delivered twice`;
  return `  came back   ${counted(adopted, 'message')} of copies that had been given up${repeats}`;
}

/** While releases are mixed: with stores of before, gateways do less for one another (docs/UPGRADE.md). */
function olderText({ protocol }: StoreAnswer): string {
  return protocol === 0 || protocol === PROTOCOL_VERSION ? '' : `, protocol ${String(protocol)}`;
}

/** Of another gateway: it may have died since, and others can't take over yet. */
function lastHeldLine(
  { gateway, lived, partitions, names }: LastHeldAnswer, heard: number, nowMs: number,
): string {
  const more = partitions > names.length ? ` and ${formatCount(partitions - names.length)} more` : '';
  return `              as the register told ${ago(heard, nowMs)} ago, ${printable(gateway)} held `
    + `${counted(partitions, 'partition')}${lived ? '' : ', and had no session any more'}: `
    + `${printable(names.join(', '))}${more}`;
}

/** What goes on without the register, and what does not: an operator asks first whether mail is in danger. */
function registerLine(away: string, isTty: boolean): string {
  return `  register    ${paint('AWAY', 'red', isTty)}: ${printable(away)}; mail of partitions held here is `
    + `taken and `
    + 'delivered as long as all of its copies answer; until the register is back nobody takes a partition '
    + 'over, '
    + 'no copy is left out or added, and what starts waits for it';
}

/**
 * What is not served, and what it waits for; all of one reason together, those that ask for a person first.
 */
function waitingLines(
  { partitions_waiting: count, waiting }: StatusAnswer, address: string, nowMs: number, isTty: boolean,
): string[] {
  if (count === 0) return [];
  const from = address.replace(/^http:\/\//, '');
  const title = paint('WAITING', waiting.some(asksForPerson) ? 'red' : 'yellow', isTty);
  const lines = [`  ${title}     ${counted(count, 'partition')} ${count === 1 ? 'is' : 'are'} not served`];
  const groups = new Map<string, WaitingPartitionAnswer[]>();
  for (const one of [...waiting].sort((a, b) => Number(asksForPerson(b)) - Number(asksForPerson(a)))) {
    const key = `${one.waits_for} ${one.why}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  for (const group of groups.values()) lines.push(...groupLines(group, from, nowMs, isTty));
  const more = count - waiting.length;
  if (more > 0) lines.push(`${WAITING_INDENT}and ${formatCount(more)} more`);
  return lines;
}

function asksForPerson({ waits_for: waitsFor }: WaitingPartitionAnswer): boolean {
  return waitsFor === 'copies away';
}

/**
 * The order that a reason ends with stands below it, in a line that can be copied as it is, with the gateway
 * that it is for: asked of another one, it may do nothing for these partitions.
 */
function groupLines(
  group: readonly WaitingPartitionAnswer[], from: string, nowMs: number, isTty: boolean,
): string[] {
  const [first] = group;
  if (first === undefined) return [];
  const since = Math.min(...group.map((one) => one.since));
  const hidden = group.length - NAMES_SHOWN_MAX;
  const shown = group.slice(0, NAMES_SHOWN_MAX).map((one) => printable(one.partition)).join(', ');
  const names = `${shown}${hidden > 0 ? ` and ${formatCount(hidden)} more` : ''}`;
  const word = asksForPerson(first) ? paint('COPIES AWAY', 'red', isTty) : printable(first.waits_for);
  const at = first.why.indexOf(RESCUE_ORDER);
  const why = at === -1 ? first.why : first.why.slice(0, at).trimEnd();
  const lines = [`${WAITING_INDENT}${names}: ${word} for ${ago(since, nowMs)}; ${printable(why)}`];
  if (at !== -1) lines.push(`${WAITING_INDENT}  ${printable(`${first.why.slice(at)} --from ${from}`)}`);
  return lines;
}

/** A partition's name, which tells its owner, stands on its first row only, as in the paper. */
function managementTable(rows: readonly TableRowAnswer[], nowMs: number): string[] {
  let last = '';
  const cells = rows.map((row) => {
    const shown = row.partition === last ? '' : printable(row.partition);
    last = row.partition;
    return [
      shown,
      printable(row.store),
      row.network_a,
      row.network_s,
      row.progress === null ? row.sync : `${row.sync} ${String(Math.floor(row.progress * 100))}%`,
      row.member ? 'yes' : 'no',
      String(row.epoch),
      row.transactions === null ? '-' : String(row.transactions),
      row.lag_messages === 0 ? '-' : `${formatCount(row.lag_messages)} (${formatBytes(row.lag_bytes)})`,
      ago(row.since, nowMs),
      printable(row.cause).slice(0, CAUSE_CHARACTERS_MAX),
    ];
  });
  if (cells.length === 0) return ['no partitions yet'];
  const columns = [
    { title: 'Partition' }, { title: 'Store' }, { title: 'Network A' }, { title: 'Network S' },
    { title: 'Sync' }, { title: 'Member' }, { title: 'Epoch', right: true },
    { title: 'Transactions', right: true }, { title: LAG, right: true }, { title: 'Since', right: true },
    { title: 'Cause' },
  ];
  return tableText(columns, cells).split('\n');
}

function mirrorsText(status: StatusAnswer, nowMs: number, isTty: boolean): string {
  if (status.degraded_since === null) return paint('complete', 'green', isTty);
  const since = timeText(status.degraded_since);
  return `${paint('DEGRADED', 'yellow', isTty)} since ${since} (${ago(status.degraded_since, nowMs)}): `
    + `${printable(status.degraded_cause)}`;
}

function storeWarnings({ in_register: isNamed, insecure, log }: StoreStatusAnswer): string {
  const lost = log?.lost_lines ?? 0;
  return [
    ...(isNamed === false ? ['NOT IN THE REGISTER'] : []), ...(insecure ? ['INSECURE'] : []),
    ...(lost === 0 ? [] : [`${counted(lost, 'line')} of its log lost`]),
  ].join(', ');
}

function configurationText({ configuration }: StoreStatusAnswer): string {
  if (configuration === undefined) return '-';
  return `${printable(configuration.hash)} since ${timeText(configuration.since)}`;
}

function storesLines(stores: readonly StorePicture[], nowMs: number, isTty: boolean): string[] {
  const cells = stores.map(({ status, address }) => [
    printable(status.store_id),
    printable(status.host),
    address.replace(/^https?:\/\//, ''),
    printable(status.version),
    status.ready ? 'ready' : 'NOT READY',
    formatDuration(status.uptime_seconds * 1000),
    configurationText(status),
    formatCount(status.partitions),
    formatCount(status.messages),
    `${formatBytes(status.memory.used_bytes)} of ${formatBytes(status.memory.limit_bytes)}`,
    status.gateways.map((gateway) => `${printable(gateway.id)}${gateway.active ? '' : ' (away)'}`).join(', '),
    storeWarnings(status),
  ]);
  const columns = [
    { title: 'Store' }, { title: 'Host' }, { title: 'Admin' }, { title: 'Version' }, { title: 'State' },
    { title: 'Up' }, { title: 'Config' }, { title: 'Partitions', right: true },
    { title: 'Entries', right: true },
    { title: 'Memory', right: true }, { title: 'Gateways' }, { title: '' },
  ];
  return [
    ...tableText(columns, cells).split('\n'),
    ...stores.flatMap(({ status: { store_id: id, configuration } }) =>
      refusedFileLines(configuration, id, nowMs, isTty)),
  ];
}

/** Times come in whole seconds. */
function ago(seconds: number, nowMs: number): string {
  const forSeconds = Math.floor(nowMs / 1000) - seconds;
  return forSeconds < 1 ? 'less than 1s' : formatDuration(forSeconds * 1000);
}
