/** `twinpost store status`: the queues that stores hold, as the stores themselves know them. */
import type { Argv } from 'yargs';
import type { StoreQueueAnswer } from '../admin-api/store-answers.js';
import { formatBytes, formatCount } from '../base/units.js';
import { allRows } from './admin-client.js';
import type { AdminClient } from './admin-client.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import { countArgument } from './numbers.js';
import { counted, printable, tableText } from './tables.js';

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1_000_000;

interface Held {
  readonly queues: readonly StoreQueueAnswer[];
  readonly total: number;
}

export function storeStatusCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'status [store]',
    'queues of the stores: owner, holder, role, epoch, number',
    (args) =>
      withGroupOptions(args)
        .positional('store', { type: 'string', describe: 'one store; all when left out' })
        .option('queue', { type: 'string', requiresArg: true, describe: 'queues of this name only' })
        .option('limit', { type: 'number', requiresArg: true, default: LIMIT_DEFAULT, describe: 'queues of each store to show at most' })
        .option('json', { type: 'boolean', describe: 'one JSON object a line' })
        .example('$0 store status store-1 --from store-1:9401 --only', 'one store alone'),
    async (args) => {
      countArgument('limit', args.limit, 1, LIMIT_MAX);
      const { terminal } = context;
      const json = args.json === true;
      const group = await findGroup(args, context);
      const wanted = args.store === undefined ? group : group.without((member) => member.kind === 'store' && member.id !== args.store);
      if (args.store !== undefined && wanted.members.every((member) => member.kind !== 'store') && wanted.missing('store').length === 0) throw new CliError(`there is no store '${args.store}' in this group; twinpost status lists them`);
      const answers = await wanted.ask('store', (client) => queuesOf(client, args.queue, args.limit));
      for (const { id, answer } of answers) {
        if (json) for (const queue of answer.queues) terminal.print(JSON.stringify({ store: id, ...queue }));
        else for (const line of storeLines(id, answer)) terminal.print(line);
      }
      done(reportMissing(wanted.missing('store'), answers.length, json, terminal));
    },
  );
}

async function queuesOf(client: AdminClient, name: string | undefined, limit: number): Promise<Held> {
  const total = name === undefined ? (await client.storeStatus()).queues : 0;
  const queues: StoreQueueAnswer[] = [];
  for await (const queue of allRows(client, (cursor) => client.storeQueues(cursor))) {
    if (name === undefined || queue.queue_name === name) queues.push(queue);
    if (queues.length === limit) break;
  }
  return { queues, total: Math.max(total, queues.length) };
}

function storeLines(id: string, { queues, total }: Held): string[] {
  if (queues.length === 0) return [`${printable(id)}: no queues`, ''];
  const cells = queues.map((queue) => [
    printable(queue.queue_class === 'mail' ? queue.queue_name : `${queue.queue_name} (${queue.queue_class})`),
    printable(queue.owner),
    queue.holder === queue.owner ? '' : printable(queue.holder),
    queue.role,
    String(queue.epoch),
    String(queue.number),
    formatCount(queue.messages),
    formatBytes(queue.bytes),
  ]);
  const columns = [{ title: 'Queue' }, { title: 'Owner' }, { title: 'Held by' }, { title: 'Role' }, { title: 'Epoch', right: true }, { title: 'Number', right: true }, { title: 'Messages', right: true }, { title: 'Bytes', right: true }];
  const more = total > queues.length ? [`-- ${formatCount(queues.length)} of ${counted(total, 'queue')}; --limit shows more`] : [];
  return [`${printable(id)}:`, ...tableText(columns, cells).split('\n'), ...more, ''];
}
