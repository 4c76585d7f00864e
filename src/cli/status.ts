/** `twinpost status`: readiness, degraded since when, stores, and the management table (the paper's Table I). */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argv } from 'yargs';
import { formatBytes, formatCount, formatDuration } from '../base/units.js';
import { clientFor, withGatewayOptions } from './admin-client.js';
import type { AdminClient, StatusAnswer, TableRowAnswer } from './admin-client.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { paint, printable, tableText } from './tables.js';

const WATCH_MS = 1_000;

export function statusCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'status',
    'show readiness, stores and the management table of a gateway',
    (args) =>
      withGatewayOptions(args)
        .option('watch', { alias: 'w', type: 'boolean', describe: 'again every second, until Ctrl-C' })
        .option('json', { type: 'boolean', describe: 'one JSON object a line: the gateway, then the table row by row' })
        .example('$0 status --watch', 'follow the gateway on this machine'),
    async (args) => {
      const client = clientFor(args, context);
      if (args.watch !== true) await show(client, args.json === true, context);
      else await watch(client, args.json === true, context);
      done(0);
    },
  );
}

async function watch(client: AdminClient, json: boolean, context: CliContext): Promise<void> {
  const { terminal, stopSignal } = context;
  void context.untilStopped();
  while (!stopSignal.aborted) {
    if (terminal.isTty && !json) terminal.write('\u001b[H\u001b[2J');
    try {
      await show(client, json, context);
    } catch (error) {
      // A gateway that restarts is just what one watches for.
      if (!(error instanceof CliError)) throw error;
      terminal.error(error.message);
    }
    await sleep(WATCH_MS, undefined, { signal: stopSignal }).catch(() => undefined);
  }
}

async function show(client: AdminClient, json: boolean, context: CliContext): Promise<void> {
  const [status, rows] = await Promise.all([client.status(), client.table()]);
  const { terminal } = context;
  if (json) {
    terminal.print(JSON.stringify(status));
    for (const row of rows) terminal.print(JSON.stringify(row));
    return;
  }
  terminal.write(statusText(status, rows, Date.now(), terminal.isTty));
}

export function statusText(status: StatusAnswer, rows: readonly TableRowAnswer[], nowMs: number, isTty: boolean): string {
  const lines = [
    `${paint(printable(status.gateway), 'bold', isTty)} on ${printable(status.host)}: pid ${String(status.pid)}, up ${formatDuration(status.uptime_seconds * 1000)}, incarnation ${String(status.incarnation)}`,
    `  mail        ${status.ready ? paint('READY', 'green', isTty) : `${paint('NOT READY', 'red', isTty)}: ${printable(status.not_ready_reason)}`}`,
    `  mirrors     ${mirrorsText(status, nowMs, isTty)}`,
    `  received    ${formatCount(status.received)}   delivered ${formatCount(status.delivered)}   deferred ${formatCount(status.deferred)}   bounced ${formatCount(status.bounced)}   expired ${formatCount(status.expired)}   rejected ${formatCount(status.rejected)}`,
    `  queued      ${formatCount(status.queued_messages)} messages, ${formatBytes(status.queued_bytes)} in ${formatCount(status.queues)} queues${status.queues_recovering === 0 ? '' : `, ${formatCount(status.queues_recovering)} still coming back from the stores`}; memory ${formatBytes(status.memory_used_bytes)} of ${formatBytes(status.memory_limit_bytes)}`,
  ];
  if (status.insecure) lines.push(`  ${paint('INSECURE', 'yellow', isTty)}    store links outside loopback run without TLS (insecure: true)`);
  const stores = status.stores.map((store) => [
    printable(store.store),
    printable(store.host),
    store.up ? 'up' : 'DOWN',
    store.paths.map((path) => `${path.path} ${path.state}`).join(', '),
    formatCount(store.queues_sync),
    formatCount(store.queues_resync),
    formatCount(store.queues_ng),
    `${formatCount(store.lag_messages)} (${formatBytes(store.lag_bytes)})`,
  ]);
  lines.push('', tableText([{ title: 'Store' }, { title: 'Host' }, { title: 'State' }, { title: 'Paths' }, { title: 'Sync', right: true }, { title: 'Resync', right: true }, { title: 'NG', right: true }, { title: 'Lag', right: true }], stores));
  lines.push('', managementTable(rows), '');
  return lines.join('\n');
}

/** A queue's name stands on its first row only, as in the paper. */
function managementTable(rows: readonly TableRowAnswer[]): string {
  let last = '';
  const cells = rows.map((row) => {
    const name = row.queue_class === 'mail' ? row.queue_name : `${row.queue_name} (${row.queue_class})`;
    const shown = name === last ? '' : printable(name);
    last = name;
    return [shown, printable(row.store), row.network_a, row.network_s, row.sync, String(row.epoch), row.transactions === null ? '-' : String(row.transactions)];
  });
  if (cells.length === 0) return 'no queues yet';
  return tableText([{ title: 'Queue' }, { title: 'Store' }, { title: 'Network A' }, { title: 'Network S' }, { title: 'Sync' }, { title: 'Epoch', right: true }, { title: 'Transactions', right: true }], cells);
}

function mirrorsText(status: StatusAnswer, nowMs: number, isTty: boolean): string {
  if (status.degraded_since === null) return paint('complete', 'green', isTty);
  const since = new Date(status.degraded_since * 1000).toISOString().replace('.000', '');
  return `${paint('DEGRADED', 'yellow', isTty)} since ${since} (${formatDuration(Math.max(0, nowMs - status.degraded_since * 1000))})`;
}
