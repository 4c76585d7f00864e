/** `twinpost queue`: its verbs are files of their own. */
import type { Argv } from 'yargs';
import { ORDER_VERBS } from '../admin-api/queue-orders.js';
import type { CliContext } from './context.js';
import { queueAgesCommand } from './queue-ages.js';
import { queueCatCommand } from './queue-cat.js';
import { queueFindCommand } from './queue-find.js';
import { queueListCommand } from './queue-list.js';
import { orderVerb } from './queue-order.js';
import { queueOrdersCommand } from './queue-orders.js';
import { giveRuleVerb, takeBackVerb } from './queue-rule.js';
import { queueShowCommand } from './queue-show.js';
import { queueSummaryCommand } from './queue-summary.js';
import { queueTopCommand } from './queue-top.js';
import { queueExportCommand } from './store-export.js';

export function queueCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('queue', 'look into queues; flush, hold or end messages; suspend or refuse', (queue) => {
    queueListCommand(queue, context, done);
    queueSummaryCommand(queue, context, done);
    queueTopCommand(queue, context, done);
    queueAgesCommand(queue, context, done);
    queueFindCommand(queue, context, done);
    queueShowCommand(queue, context, done);
    queueCatCommand(queue, context, done);
    queueExportCommand(queue, context, done);
    for (const verb of ORDER_VERBS) orderVerb(queue, context, done, verb);
    queueOrdersCommand(queue, context, done);
    giveRuleVerb(queue, context, done, 'suspend');
    takeBackVerb(queue, context, done, 'resume');
    giveRuleVerb(queue, context, done, 'refuse');
    takeBackVerb(queue, context, done, 'allow');
    return queue
      .example('$0 queue summary', 'counts, bytes and oldest age of each queue')
      .example('$0 queue list example.com', 'messages of one queue, in order')
      .demandCommand(1, 'queue what? twinpost queue --help lists the verbs');
  });
}
