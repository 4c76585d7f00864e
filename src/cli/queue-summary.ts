/** `twinpost queue summary`: one row a queue of all gateways, the fullest first. */
import type { Argv } from 'yargs';
import type { QueueAnswer } from '../admin-api/gateway-answers.js';
import { formatBytes, formatCount, formatDuration } from '../base/units.js';
import { allRows } from './admin-client.js';
import type { AdminClient } from './admin-client.js';
import type { CliContext } from './context.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import { countArgument } from './numbers.js';
import { numberOr } from './options.js';
import { counted, printable, tableText } from './tables.js';

const LIMIT_DEFAULT = 1000;
const LIMIT_MAX = 1_000_000;

export function queueSummaryCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'summary',
    'counts, bytes, oldest age and last error of each queue',
    (args) =>
      withGroupOptions(args)
        .option('limit', numberOr(LIMIT_DEFAULT, 'queues to show at most'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line' })
        .example('$0 queue summary --json', 'for scripts'),
    async (args) => {
      countArgument('limit', args.limit, 1, LIMIT_MAX);
      const group = await findGroup(args, context);
      const answers = await group.ask('gateway', queuesOf);
      const queues = answers.flatMap(({ id, answer }) => answer.map((queue) => ({ gateway: id, ...queue })))
        .sort((a, b) => b.messages - a.messages);
      const { terminal } = context;
      const shown = queues.slice(0, args.limit);
      if (args.json === true) for (const queue of shown) terminal.print(JSON.stringify(queue));
      else if (answers.length > 0) terminal.print(summaryText(shown, answers.length > 1));
      if (args.json !== true && shown.length < queues.length) {
        terminal.print(
          `-- ${formatCount(shown.length)} of ${counted(queues.length, 'queue')}; --limit shows more`,
        );
      }
      done(reportMissing(group.missing('gateway'), answers.length, args.json === true, terminal, true));
    },
  );
}

async function queuesOf(client: AdminClient): Promise<readonly QueueAnswer[]> {
  const queues: QueueAnswer[] = [];
  for await (const queue of allRows(client, (cursor) => client.queues(cursor))) queues.push(queue);
  return queues;
}

/** With the version of TLS that its last connection had: "smtp://mx.example.net:25 TLSv1.3". */
function nextHopText({ next_hop, tls }: QueueAnswer): string {
  return tls === '' || tls === 'none' ? next_hop : `${next_hop} ${tls.split(' ', 1)[0] ?? ''}`;
}

/** Before what was said last, why nothing is said any more. */
function lastText({ suspended, last_error: error }: QueueAnswer): string {
  if (suspended !== true) return error;
  return `SUSPENDED by an operator${error === '' ? '' : `; ${error}`}`;
}

/** Its partition tells whose a queue is. */
function summaryText(
  queues: readonly (QueueAnswer & { readonly gateway: string })[], several: boolean,
): string {
  if (queues.length === 0) return 'no queues yet';
  const rows = queues.map((queue) => [
    ...(several ? [printable(queue.gateway)] : []),
    printable(queue.queue_name),
    queue.queue_class,
    printable(queue.partition),
    printable(nextHopText(queue)),
    formatCount(queue.messages),
    formatBytes(queue.bytes),
    formatCount(queue.active),
    formatCount(queue.deferred),
    formatCount(queue.held),
    queue.oldest_age_seconds === null ? '-' : formatDuration(queue.oldest_age_seconds * 1000),
    printable(lastText(queue)),
  ]);
  const columns = [
    { title: 'Queue' }, { title: 'Class' }, { title: 'Partition' }, { title: 'Next hop' },
    { title: 'Messages', right: true }, { title: 'Bytes', right: true }, { title: 'Active', right: true },
    { title: 'Deferred', right: true }, { title: 'Held', right: true }, { title: 'Oldest', right: true },
    { title: 'Last error' },
  ];
  return tableText(several ? [{ title: 'Gateway' }, ...columns] : columns, rows);
}
