/** `twinpost queue`: its verbs are files of their own. */
import type { Argv } from 'yargs';
import type { CliContext } from './context.js';
import { queueDeleteCommand, queueHoldCommand, queueReleaseCommand } from './queue-hold.js';
import { queueListCommand } from './queue-list.js';
import { queueSummaryCommand } from './queue-summary.js';
import { queueExportCommand } from './store-export.js';

export function queueCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('queue', 'look into the queues of a gateway; hold or delete messages', (queue) => {
    queueListCommand(queue, context, done);
    queueSummaryCommand(queue, context, done);
    queueExportCommand(queue, context, done);
    queueHoldCommand(queue, context, done);
    queueReleaseCommand(queue, context, done);
    queueDeleteCommand(queue, context, done);
    return queue
      .example('$0 queue summary', 'counts, bytes and oldest age of each queue')
      .example('$0 queue list example.com', 'messages of one queue, in order')
      .demandCommand(1, 'queue what? twinpost queue --help lists the verbs');
  });
}
