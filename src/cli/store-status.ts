/** `twinpost store status`: the partitions that stores hold, as the stores themselves know them. */
import type { Argv } from 'yargs';
import type { ConfigurationAnswer } from '../admin-api/pages.js';
import type { StorePartitionAnswer } from '../admin-api/store-answers.js';
import { formatBytes, formatCount } from '../base/units.js';
import { allRows } from './admin-client.js';
import type { AdminClient } from './admin-client.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import { countArgument } from './numbers.js';
import { numberOr, text } from './options.js';
import { refusedFileLines } from './status-text.js';
import { counted, printable, tableText } from './tables.js';

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1_000_000;

interface Held {
  readonly partitions: readonly StorePartitionAnswer[];
  readonly total: number;
  readonly configuration: ConfigurationAnswer | undefined;
}

export function storeStatusCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'status [store]',
    'partitions of the stores: holder and epoch as they were told, term, number',
    (args) =>
      withGroupOptions(args)
        .positional('store', { type: 'string', describe: 'one store; all when left out' })
        .option('partition', text('this partition only, as gw-1/3'))
        .option('limit', numberOr(LIMIT_DEFAULT, 'partitions of each store to show at most'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line' })
        .example('$0 store status store-1 --from store-1:9401 --only', 'one store alone'),
    async (args) => {
      countArgument('limit', args.limit, 1, LIMIT_MAX);
      const { terminal } = context;
      const json = args.json === true;
      const group = await findGroup(args, context);
      const wanted = args.store === undefined ? group : group.without((member) =>
        member.kind === 'store' && member.id !== args.store);
      if (args.store !== undefined && wanted.members.every((member) => member.kind !== 'store')
        && wanted.missing('store').length === 0) {
        throw new CliError(`there is no store '${args.store}' in this group; twinpost status lists them`);
      }
      const answers = await wanted.ask('store', (client) => partitionsOf(client, args.partition, args.limit));
      for (const { id, answer } of answers) {
        if (json) for (const partition of answer.partitions) {
          terminal.print(JSON.stringify({ store: id, ...partition }));
        }
        else for (const line of storeLines(id, answer, terminal.isTty)) terminal.print(line);
      }
      done(reportMissing(wanted.missing('store'), answers.length, json, terminal));
    },
  );
}

async function partitionsOf(client: AdminClient, name: string | undefined, limit: number): Promise<Held> {
  const { partitions: all, configuration } = await client.storeStatus();
  const total = name === undefined ? all : 0;
  const partitions: StorePartitionAnswer[] = [];
  for await (const partition of allRows(client, (cursor) => client.storePartitions(cursor))) {
    if (name === undefined || partition.partition === name) partitions.push(partition);
    if (partitions.length === limit) break;
  }
  return { partitions, total: Math.max(total, partitions.length), configuration };
}

function storeLines(id: string, { partitions, total, configuration }: Held, isTty: boolean): string[] {
  const refused = refusedFileLines(configuration, '', Date.now(), isTty);
  if (partitions.length === 0) return [`${printable(id)}: no partitions`, ...refused, ''];
  const cells = partitions.map((partition) => [
    printable(partition.partition),
    partition.holder === null
      ? '-' : `${printable(partition.holder)} (${String(partition.holder_incarnation)})`,
    copyState(partition),
    String(partition.epoch),
    String(partition.term),
    String(partition.number),
    formatCount(partition.messages),
    formatBytes(partition.bytes),
  ]);
  const columns = [
    { title: 'Partition' }, { title: 'Held by' }, { title: 'Copy' }, { title: 'Epoch', right: true },
    { title: 'Term', right: true }, { title: 'Number', right: true }, { title: 'Messages', right: true },
    { title: 'Bytes', right: true },
  ];
  const more = total > partitions.length
    ? [`-- ${formatCount(partitions.length)} of ${counted(total, 'partition')}; --limit shows more`] : [];
  return [`${printable(id)}:`, ...tableText(columns, cells).split('\n'), ...more, ...refused, ''];
}

function copyState({ member, complete }: StorePartitionAnswer): string {
  if (!complete) return 'filling';
  return member ? 'member' : 'no member';
}
