/**
 * `twinpost store verify`: does each mirror hold what its gateway holds? Number, digest over all changes, and
 * count of messages are compared, out of what both sides tell of themselves; nothing is locked and nothing is
 * copied.
 *
 *   same      the same number, digest and count
 *   DIFFERS   the same number, and another digest or count: one of them is wrong
 *   MISSING   the gateway counts on this copy, and the store does not have it
 *   filling   a refill is under way; NG: isolated, and known to be behind
 *   moving    mail goes through it: gateway and store were never seen at the same number
 *
 * Under load the two are read at different moments, so what does not agree is read again, some times.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argv } from 'yargs';
import type { TableRowAnswer } from '../admin-api/gateway-answers.js';
import type { StorePartitionAnswer } from '../admin-api/store-answers.js';
import { formatCount } from '../base/units.js';
import { allRows } from './admin-client.js';
import type { CliContext } from './context.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import type { Group, Missing } from './group.js';
import { text } from './options.js';
import { paint, printable, tableText } from './tables.js';

const ROUNDS = 10;
const ROUND_MS = 50;

export type Verdict = 'same' | 'DIFFERS' | 'MISSING' | 'filling' | 'NG' | 'moving' | 'not asked';

export interface Compared {
  readonly gateway: string;
  readonly row: TableRowAnswer;
  readonly copy: StorePartitionAnswer | undefined;
  readonly verdict: Verdict;
}

export function storeVerifyCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'verify',
    'compare mirrors with their gateways by number, digest and count',
    (args) =>
      withGroupOptions(args)
        .option('partition', text('this partition only, as gw-1/3'))
        .option('all', { type: 'boolean', describe: 'show also those that are the same' })
        .option('json', { type: 'boolean', describe: 'one JSON object a line' })
        .example('$0 store verify', 'exit code 1 when a mirror differs from its gateway'),
    async (args) => {
      const { terminal } = context;
      const json = args.json === true;
      const group = await findGroup(args, context);
      const compared = await compareAll(group, args.partition);
      const shown = compared.filter((one) => args.all === true || one.verdict !== 'same');
      if (json) for (const one of shown) terminal.print(JSON.stringify(jsonOf(one)));
      else for (const line of verifyLines(compared, shown, terminal.isTty)) terminal.print(line);
      const missing: readonly Missing[] = group.missing('gateway', 'store');
      const code =
        reportMissing(missing, compared.length === 0 && missing.length > 0 ? 0 : 1, json, terminal);
      done(compared.some(({ verdict }) => isWrong(verdict)) ? 1 : code);
    },
  );
}

function isWrong(verdict: Verdict): boolean {
  return verdict === 'DIFFERS' || verdict === 'MISSING';
}

/** Rounds over all mirrors until each verdict stands. */
async function compareAll(group: Group, name: string | undefined): Promise<readonly Compared[]> {
  let compared = await compareOnce(group, name);
  for (let round = 1; round < ROUNDS && compared.some((one) => mayStillChange(one.verdict)); round++) {
    await sleep(ROUND_MS);
    const again = new Map((await compareOnce(group, name)).map((one) => [keyOfRow(one.row), one]));
    compared = compared.map((one) =>
      (mayStillChange(one.verdict) ? (again.get(keyOfRow(one.row)) ?? one) : one));
  }
  return compared;
}

/** A verdict of one reading may come from its two halves being of different moments. */
function mayStillChange(verdict: Verdict): boolean {
  return verdict === 'moving' || isWrong(verdict);
}

async function compareOnce(group: Group, name: string | undefined): Promise<Compared[]> {
  const [gateways, stores] = await Promise.all([
    group.ask('gateway', async (client) => {
      const rows: TableRowAnswer[] = [];
      for await (const row of allRows(client, (cursor) => client.mirrors(cursor))) {
        if (name === undefined || row.partition === name) rows.push(row);
      }
      return rows;
    }),
    group.ask('store', async (client) => {
      const copies = new Map<string, StorePartitionAnswer>();
      for await (const copy of allRows(client, (cursor) => client.storePartitions(cursor))) {
        if (name === undefined || copy.partition === name) copies.set(copy.partition, copy);
      }
      return copies;
    }),
  ]);
  const copiesOf = new Map(stores.map(({ id, answer }) => [id, answer]));
  return gateways.flatMap(({ id, answer }) => answer.map((row) => {
    const copies = copiesOf.get(row.store);
    const copy = copies?.get(row.partition);
    return { gateway: id, row, copy, verdict: copies === undefined ? 'not asked' : judgeMirror(row, copy) };
  }));
}

/** One reading of both sides. */
export function judgeMirror(row: TableRowAnswer, copy: StorePartitionAnswer | undefined): Verdict {
  if (row.sync === 'NG') return 'NG';
  if (copy === undefined) return 'MISSING';
  if (row.sync === 'RESYNC') return 'filling';
  if (row.digest === null || copy.number !== row.last_transaction) return 'moving';
  return copy.digest === row.digest && copy.messages === row.messages ? 'same' : 'DIFFERS';
}

function keyOfRow(row: TableRowAnswer): string {
  return `${row.partition} ${row.store}`;
}

function jsonOf({ gateway, row, copy, verdict }: Compared): object {
  return {
    gateway, partition: row.partition, store: row.store, verdict,
    gateway_number: row.last_transaction, gateway_digest: row.digest, gateway_messages: row.messages,
    store_number: copy?.number ?? null, store_digest: copy?.digest ?? null,
    store_messages: copy?.messages ?? null,
  };
}

export function verifyLines(
  compared: readonly Compared[], shown: readonly Compared[], isTty: boolean,
): string[] {
  const lines: string[] = [];
  if (shown.length > 0) {
    const cells = shown.map(({ gateway, row, copy, verdict }) => [
      printable(gateway), printable(row.partition), printable(row.store),
      String(row.last_transaction), row.digest ?? '-', formatCount(row.messages),
      copy === undefined ? '-' : String(copy.number), copy?.digest ?? '-',
      copy === undefined ? '-' : formatCount(copy.messages),
      verdict,
    ]);
    const columns = [
      { title: 'Gateway' }, { title: 'Partition' }, { title: 'Store' }, { title: 'Number', right: true },
      { title: 'Digest' }, { title: 'Messages', right: true }, { title: 'At store', right: true },
      { title: 'Digest' }, { title: 'Messages', right: true }, { title: 'Verdict' },
    ];
    lines.push(...tableText(columns, cells).split('\n'));
  }
  const wrong = compared.filter(({ verdict }) => isWrong(verdict)).length;
  const same = compared.filter(({ verdict }) => verdict === 'same').length;
  const sum = `${formatCount(same)} of ${formatCount(compared.length)} mirrors are the same as their gateway`;
  lines.push(wrong === 0 ? sum : `${sum}; ${paint(`${formatCount(wrong)} WRONG`, 'red', isTty)}`);
  return lines;
}
