/** What `twinpost status` shows to people. Pure: answers in, lines out. */
import type { HeldPartitionAnswer, StatusAnswer, StoreAnswer, TableRowAnswer } from '../admin-api/gateway-answers.js';
import type { StoreStatusAnswer } from '../admin-api/store-answers.js';
import { formatBytes, formatCount, formatDuration } from '../base/units.js';
import { forceCommands } from '../recovery/force.js';
import { PROTOCOL_VERSION } from '../protocol/versions.js';
import type { Missing } from './group.js';
import { missingText } from './group.js';
import { counted, paint, printable, tableText } from './tables.js';

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
}

const CAUSE_CHARACTERS_MAX = 48;
/** Held partitions stand below the word HELD. */
const HELD_INDENT = ' '.repeat(16);
/** Messages, deletions, notes, sets of mirrors; of a mirror that is filled, messages still to be sent. */
const LAG = 'Lag, changes';

/** How the commands begin and end that go on without a store, as a gateway gives them. */
const FORCE = 'twinpost rescue --force';
const FORCE_END = '--reason TEXT';
const NO_STORE = 'no store free';
/** States in which the gateway has the mail of a partition itself, and its mirrors have not. */
const IN_MEMORY: ReadonlySet<string> = new Set(['no survivor', 'members silent', NO_STORE]);

export function statusLines(picture: Picture, nowMs: number, isTty: boolean): string[] {
  const lines: string[] = [];
  for (const gateway of picture.gateways) lines.push(...gatewayLines(gateway, picture.all, nowMs, isTty), '');
  if (picture.stores.length > 0) lines.push(...storesLines(picture.stores), '');
  for (const missing of picture.missing) lines.push(`${paint('PARTIAL', 'yellow', isTty)}: ${missingText(missing)}`);
  return lines;
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
    `held=${String(status.partitions_held)}`,
  ].join(' ');
}

function gatewayLines({ status, rows, address }: GatewayPicture, all: boolean, nowMs: number, isTty: boolean): string[] {
  const lines = [
    `${paint(printable(status.gateway), 'bold', isTty)} on ${printable(status.host)}: twinpost ${printable(status.version)}, pid ${String(status.pid)}, up ${formatDuration(status.uptime_seconds * 1000)}, incarnation ${String(status.incarnation)}`,
    `  mail        ${status.ready ? paint('READY', 'green', isTty) : `${paint('NOT READY', 'red', isTty)}: ${printable(status.not_ready_reason)}`}`,
    `  mirrors     ${mirrorsText(status, nowMs, isTty)}`,
    `  received    ${formatCount(status.received)}   delivered ${formatCount(status.delivered)}   deferred ${formatCount(status.deferred)}   bounced ${formatCount(status.bounced)}   expired ${formatCount(status.expired)}   rejected ${formatCount(status.rejected)}`,
    `  queued      ${formatCount(status.queued_messages)} messages, ${formatBytes(status.queued_bytes)} in ${counted(status.queues, 'queue')} of ${counted(status.partitions, 'partition')}${status.partitions_recovering === 0 ? '' : `, ${counted(status.partitions_recovering, 'partition')} still coming back from the stores`}; memory ${formatBytes(status.memory_used_bytes)} of ${formatBytes(status.memory_limit_bytes)}`,
  ];
  if (status.routes_refused.length > 0) lines.push(refusedLine(status, nowMs, isTty));
  if (status.partitions_rescued > 0) lines.push(`  rescued     ${counted(status.partitions_rescued, 'partition')} of other gateways delivered here`);
  lines.push(...heldLines(status, address, nowMs, isTty));
  if (status.insecure) lines.push(`  ${paint('INSECURE', 'yellow', isTty)}    store links outside loopback run without TLS (insecure: true)`);
  const stores = status.stores.map((store) => [
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
  lines.push('', ...tableText([{ title: 'Store' }, { title: 'Host' }, { title: 'State' }, { title: 'Paths' }, { title: 'Lease', right: true }, { title: 'Failovers', right: true }, { title: 'Sync', right: true }, { title: 'Resync', right: true }, { title: 'NG', right: true }, { title: LAG, right: true }], stores).split('\n'));
  lines.push('', ...managementTable(rows, status.gateway, nowMs));
  const shown = new Set(rows.map((row) => `${row.owner} ${String(row.birth)} ${String(row.serial)}`)).size;
  if (!all && shown < status.partitions) lines.push(`-- ${formatCount(shown)} of ${counted(status.partitions, 'partition')}, those that need a look first; --all shows every one`);
  return lines;
}

function drainedText({ drained, drained_since: since }: StoreAnswer, nowMs: number): string {
  if (!drained) return '';
  return since === null ? ', drained' : `, drained ${ago(since, nowMs)} ago`;
}

/** Every one of them: what is refused is not to be looked for elsewhere. */
function refusedLine({ routes, routes_refused: refused }: StatusAnswer, nowMs: number, isTty: boolean): string {
  const names = refused.map(({ route, reason, since }) => `${route} (${reason} for ${ago(since, nowMs)})`).join(', ');
  return `  ${paint('REFUSED', 'red', isTty)}     new mail of ${formatCount(refused.length)} of ${counted(routes, 'route')}: ${printable(names)}`;
}

/** While releases are mixed: with stores of before, gateways do less for one another (docs/UPGRADE.md). */
function olderText({ protocol }: StoreAnswer): string {
  return protocol === 0 || protocol === PROTOCOL_VERSION ? '' : `, protocol ${String(protocol)}`;
}

/** What waits, for whom, and what an operator can do; a line a partition, and one for its command. */
function heldLines({ gateway, partitions_held: count, held, stores }: StatusAnswer, address: string, nowMs: number, isTty: boolean): string[] {
  if (count === 0) return [];
  const up = new Set(stores.filter((store) => store.up).map(({ store }) => store));
  const isMissing = (store: string): boolean => store !== '' && !up.has(store);
  const missing = [...new Set(held.flatMap((one) => one.waits_for.filter(isMissing)))].sort();
  // Of one that no store has told of, nothing is there to go on with; one that no store takes goes on without as it is.
  const forceable = held.filter((one) => one.state !== 'unknown' && one.state !== NO_STORE && one.waits_for.some(isMissing));
  const todo = missing.length === 0 ? '' : `; start ${missing.join(', ')}${goOnText(forceable, isMissing)}`;
  const from = address.replace(/^http:\/\//, '');
  const lines = withCommands(`mail of ${counted(count, 'partition')} waits${todo}`, from, `  ${paint('HELD', 'red', isTty)}        `);
  const namesakes = new Set(held.map((one) => one.partition).filter((name, i, all) => all.indexOf(name) !== i));
  for (const one of held) lines.push(...withCommands(heldText(one, gateway, namesakes, nowMs), from, HELD_INDENT));
  const more = count - held.length;
  if (more > 0) lines.push(`${HELD_INDENT}and ${formatCount(more)} more`);
  return lines;
}

/**
 * The commands that a text ends with stand below it, in a line that can be copied as it is: asked of another gateway, they
 * do nothing for these queues, or something else. One line, too, if they are several: the first asks, and would
 * read the next line as its answer.
 */
function withCommands(text: string, from: string, indent: string): string[] {
  const at = text.indexOf(FORCE);
  if (at === -1) return [indent + printable(text)];
  const commands = text.slice(at).replaceAll(FORCE_END, () => `${FORCE_END} --from ${from}`);
  return [indent + printable(text.slice(0, at).trimEnd()), `${HELD_INDENT}  ${printable(commands)}`];
}

/** The command for the first of those that can go on without a store. */
function goOnText(forceable: readonly HeldPartitionAnswer[], isMissing: (store: string) => boolean): string {
  const [first] = forceable;
  if (first === undefined) return '';
  const commands = forceCommands({ name: first.partition, ownerId: first.owner }, first.waits_for.filter(isMissing));
  return `, or go on without${forceable.length > 1 ? ', each partition by a command as' : ''}: ${commands}`;
}

function heldText(held: HeldPartitionAnswer, gateway: string, namesakes: ReadonlySet<string>, nowMs: number): string {
  const { partition: name, owner, id, state, messages, waits_for: stores, why, since } = held;
  const inMemory = IN_MEMORY.has(state);
  const identity = `${name}${inMemory || namesakes.has(name) ? ` (${id})` : ''}${owner === gateway ? '' : ` of ${owner}`}`;
  const place = inMemory ? ' in memory' : state === 'stranded' ? '' : ' at the stores';
  const amount = messages === null ? '' : `, ${counted(messages, 'message')}${place}`;
  // A reason with a command in it names its stores, and ends with it; this one names all stores, too.
  const whose = why.includes('--missing') || state === NO_STORE ? [] : stores.filter((store) => store !== '');
  return `${identity}: ${state}${since === null ? '' : ` for ${ago(since, nowMs)}`}${amount}; ${why}${whose.length === 0 ? '' : `: ${whose.join(', ')}`}`;
}

/** A partition's name stands on its first row only, as in the paper; with its owner if another gateway delivers it, for names are alike in a group. */
function managementTable(rows: readonly TableRowAnswer[], gateway: string, nowMs: number): string[] {
  let last = '';
  const cells = rows.map((row) => {
    const identity = `${row.owner} ${String(row.birth)} ${String(row.serial)}`;
    const name = `${row.partition}${row.owner === gateway ? '' : ` of ${row.owner}`}`;
    const shown = identity === last ? '' : printable(name);
    last = identity;
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
  const columns = [{ title: 'Partition' }, { title: 'Store' }, { title: 'Network A' }, { title: 'Network S' }, { title: 'Sync' }, { title: 'Member' }, { title: 'Epoch', right: true }, { title: 'Transactions', right: true }, { title: LAG, right: true }, { title: 'Since', right: true }, { title: 'Cause' }];
  return tableText(columns, cells).split('\n');
}

function mirrorsText(status: StatusAnswer, nowMs: number, isTty: boolean): string {
  if (status.degraded_since === null) return paint('complete', 'green', isTty);
  const since = new Date(status.degraded_since * 1000).toISOString().replace('.000', '');
  return `${paint('DEGRADED', 'yellow', isTty)} since ${since} (${ago(status.degraded_since, nowMs)}): ${printable(status.degraded_cause)}`;
}

function storesLines(stores: readonly StorePicture[]): string[] {
  const cells = stores.map(({ status, address }) => [
    printable(status.store_id),
    printable(status.host),
    address.replace(/^https?:\/\//, ''),
    printable(status.version),
    status.ready ? 'ready' : 'NOT READY',
    formatDuration(status.uptime_seconds * 1000),
    formatCount(status.partitions),
    formatCount(status.messages),
    `${formatBytes(status.memory.used_bytes)} of ${formatBytes(status.memory.limit_bytes)}`,
    status.gateways.map((gateway) => `${printable(gateway.id)}${gateway.active ? '' : ' (away)'}`).join(', '),
    status.insecure ? 'INSECURE' : '',
  ]);
  const columns = [{ title: 'Store' }, { title: 'Host' }, { title: 'Admin' }, { title: 'Version' }, { title: 'State' }, { title: 'Up' }, { title: 'Partitions', right: true }, { title: 'Entries', right: true }, { title: 'Memory', right: true }, { title: 'Gateways' }, { title: '' }];
  return tableText(columns, cells).split('\n');
}

/** Times come in whole seconds. */
function ago(seconds: number, nowMs: number): string {
  return formatDuration(Math.max(0, Math.floor(nowMs / 1000) - seconds) * 1000);
}
