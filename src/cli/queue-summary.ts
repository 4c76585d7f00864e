/** `twinpost queue summary`: one row a queue, the fullest first. */
import type { Argv } from 'yargs';
import { formatBytes, formatCount, formatDuration } from '../base/units.js';
import { clientFor, withGatewayOptions } from './admin-client.js';
import type { CliContext } from './context.js';
import { printable, tableText } from './tables.js';

export function queueSummaryCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'summary',
    'counts, bytes, oldest age and last error of each queue',
    (args) =>
      withGatewayOptions(args)
        .option('json', { type: 'boolean', describe: 'one JSON object a line' })
        .example('$0 queue summary --json', 'for scripts'),
    async (args) => {
      const queues = [...(await clientFor(args, context).queues())].sort((a, b) => b.messages - a.messages);
      const { terminal } = context;
      if (args.json === true) {
        for (const queue of queues) terminal.print(JSON.stringify(queue));
      } else if (queues.length === 0) {
        terminal.print('no queues yet');
      } else {
        const rows = queues.map((queue) => [
          printable(queue.queue_name),
          queue.queue_class,
          printable(queue.next_hop),
          formatCount(queue.messages),
          formatBytes(queue.bytes),
          formatCount(queue.active),
          formatCount(queue.deferred),
          queue.oldest_age_seconds === null ? '-' : formatDuration(queue.oldest_age_seconds * 1000),
          printable(queue.last_error),
        ]);
        terminal.print(tableText([{ title: 'Queue' }, { title: 'Class' }, { title: 'Next hop' }, { title: 'Messages', right: true }, { title: 'Bytes', right: true }, { title: 'Active', right: true }, { title: 'Deferred', right: true }, { title: 'Oldest', right: true }, { title: 'Last error' }], rows));
      }
      done(0);
    },
  );
}
