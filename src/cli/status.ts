/**
 * `twinpost status`: all gateways and stores of the group, what is wrong and since when, and the management
 * table (the paper's Table I), the partitions that need a look first. What it looks like is status-text.ts.
 *
 *   terminal           the whole picture; with --watch redrawn in place each second
 *   pipe with --watch  a line a gateway each second
 *   --json             an object a line, told apart by "kind"
 */
import type { Argv } from 'yargs';
import type { TableRowAnswer } from '../admin-api/gateway-answers.js';
import { allRows } from './admin-client.js';
import type { AdminClient } from './admin-client.js';
import type { CliContext } from './context.js';
import { NOT_ALL_KNOW, findGroup, reportMissing, withGroupOptions } from './group.js';
import type { Group, GroupArguments, Missing } from './group.js';
import { showLive } from './live.js';
import { countArgument } from './numbers.js';
import { numberOr } from './options.js';
import { statusLines, watchLine } from './status-text.js';
import type { GatewayPicture, Picture, StorePicture } from './status-text.js';
import { worstOf } from './status-worst.js';

const LAG_HELP = 'Lag counts changes that a mirror has not acknowledged: messages, deletions, notes. While '
  + 'it is filled: messages still to be sent.';
/** A process that hangs must not hold up a picture that is drawn each second. */
const WATCH_TIMEOUT_MS = 2_000;
const TOP_DEFAULT = 20;
const TOP_MAX = 1000;

interface StatusArguments extends GroupArguments {
  readonly all: boolean | undefined;
  readonly top: number;
  readonly json: boolean | undefined;
}

const EXIT_CODES = 'exit code: 0 no error, 1 an error in the first line, 3 somebody did not answer, 2 wrong '
  + 'usage';

export function statusCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'status',
    'show gateways, stores and the management table',
    (args) =>
      withGroupOptions(args, EXIT_CODES)
        .option('watch', { alias: 'w', type: 'boolean', describe: 'again every second, until Ctrl-C' })
        .option('top', numberOr(
          TOP_DEFAULT, 'partitions of each gateway in the table, those that need a look first',
        ))
        .option('all', { type: 'boolean', describe: 'every partition in the table' })
        .option('json', {
          type: 'boolean', describe: 'one JSON object a line: gateways, stores, then the table row by row',
        })
        .epilogue(LAG_HELP)
        .example('$0 status --watch', 'follow the group of the gateway on this machine')
        .example('$0 status --from store-1:9401', 'begin at a store'),
    async (args) => {
      countArgument('top', args.top, 1, TOP_MAX);
      if (args.watch === true) {
        await watch(args, context);
        done(0);
        return;
      }
      const picture = await look(args, context);
      if (args.json === true) printJson(picture, context);
      else context.terminal.write(`${statusLines(picture, Date.now(), context.terminal.isTty).join('\n')}\n`);
      const answered = picture.gateways.length + picture.stores.length;
      // People have read it in the text.
      const isJson = args.json === true;
      const code = reportMissing(isJson ? picture.missing : [], answered, isJson, context.terminal);
      if (code === 0 && picture.missing.length > 0) done(NOT_ALL_KNOW);
      else done(code === 0 && worstOf(picture, Date.now()).level === 'error' ? 1 : code);
    },
  );
}

async function watch(args: StatusArguments, context: CliContext): Promise<void> {
  const { terminal } = context;
  await showLive({
    look: () => look(args, context, WATCH_TIMEOUT_MS),
    lines: (picture) => statusLines(picture, Date.now(), true),
    print: (picture) => {
      if (args.json === true) {
        printJson(picture, context);
        reportMissing(picture.missing, 1, true, terminal);
      } else for (const gateway of picture.gateways) terminal.print(watchLine(gateway, Date.now()));
    },
  }, { json: args.json === true }, context);
}

async function look(args: StatusArguments, context: CliContext, timeoutMs?: number): Promise<Picture> {
  const group = await findGroup(args, context, timeoutMs);
  const [gateways, stores] = await Promise.all([
    group.ask('gateway', async (client): Promise<GatewayPicture> => {
      const [status, rows] = await Promise.all([client.status(), tableOf(client, args)]);
      return { status, rows, address: client.url };
    }),
    group.ask('store', async (client): Promise<StorePicture> =>
      ({ status: await client.storeStatus(), address: client.url })),
  ]);
  return {
    gateways: gateways.map(({ answer }) => answer), stores: stores.map(({ answer }) => answer),
    missing: missingOf(group), all: args.all === true,
    awaitedMs: group.awaitedMs,
  };
}

/** A store whose admin address is not configured is seen through its gateways: nothing is missing. */
function missingOf(group: Group): readonly Missing[] {
  return [...group.missing('gateway'), ...group.missing('store').filter((store) => store.address !== '')];
}

async function tableOf(client: AdminClient, args: StatusArguments): Promise<readonly TableRowAnswer[]> {
  if (args.all !== true) return client.troubled(args.top);
  const rows: TableRowAnswer[] = [];
  for await (const row of allRows(client, (cursor) => client.mirrors(cursor))) rows.push(row);
  return rows;
}

function printJson(picture: Picture, { terminal }: CliContext): void {
  terminal.print(JSON.stringify({ kind: 'worst', ...worstOf(picture, Date.now()) }));
  for (const { status } of picture.gateways) terminal.print(JSON.stringify({ kind: 'gateway', ...status }));
  for (const { status } of picture.stores) terminal.print(JSON.stringify({ kind: 'store', ...status }));
  for (const { status, rows } of picture.gateways) for (const row of rows) {
    terminal.print(JSON.stringify({ kind: 'mirror', gateway: status.gateway, ...row }));
  }
}
