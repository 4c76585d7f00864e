/**
 * `twinpost queue hold`, `queue release` and `queue delete`: single messages, wherever in the group they are.
 */
import type { Argv } from 'yargs';
import type { HoldAnswer, MessageVerb } from '../admin-api/orders.js';
import { parseMessageId } from '../base/text-id.js';
import type { CliContext } from './context.js';
import { UsageError } from './context.js';
import { longExample } from './examples.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import { orderOf } from './operator.js';
import { neededText } from './options.js';
import { printable } from './tables.js';

export function queueHoldCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return holdVerb(cli, context, done, 'hold', 'keep messages back until they are released', 'held');
}

export function queueReleaseCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return holdVerb(cli, context, done, 'release', 'let messages go on that are held', 'released');
}

export function queueDeleteCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return holdVerb(
    cli, context, done, 'delete', 'do away with messages; their senders are not told', 'deleted',
  );
}

function holdVerb(
  cli: Argv, context: CliContext, done: (code: number) => void, verb: MessageVerb, describe: string,
  past: string,
): Argv {
  return cli.command(
    verb,
    describe,
    (args) =>
      longExample(withGroupOptions(args)
        .option('id', {
          type: 'string', array: true, nargs: 1, requiresArg: true, demandOption: true,
          describe: 'queue id of a message; may be given again',
        })
        .option('reason', neededText('why, for the log and for who lists the queue'))
        .option('json', {
          type: 'boolean', describe: 'one JSON object a line: each queue that has the message',
        }),
        `$0 queue ${verb} --id 0123456789A --reason "under inspection"`, 'is logged with who and why'),
    async (args) => {
      const { terminal } = context;
      const json = args.json === true;
      const order = orderOf(`queue ${verb}`, args.reason);
      for (const id of args.id) if (parseMessageId(id) === undefined) {
        throw new UsageError(`queue ${verb}: '${id}' is no queue id; twinpost queue list shows them`);
      }
      const group = await findGroup(args, context);
      let failed = false;
      let answered = 0;
      for (const id of args.id) {
        const answers = await group.ask('gateway', (client) => client.holdMessage(id, verb, order));
        answered = answers.length;
        const rows = answers.flatMap(({ id: gateway, answer }) =>
          answer.queues.map((queue) => ({ gateway, queue_id: answer.queue_id, ...queue })));
        for (const row of rows) {
          if (json) terminal.print(JSON.stringify(row));
          else {
            const ofClass = row.queue_class === 'mail' ? '' : ` (${row.queue_class})`;
            const where = `${printable(row.queue_name)}${ofClass} of ${printable(row.gateway)}`;
            terminal.print(`${row.queue_id} in ${where}: ${came(row, past)}`);
          }
        }
        if (rows.length === 0) terminal.error(`twinpost: no gateway that answers has message ${id}`);
        failed ||= rows.length === 0 || rows.some((row) => !row.done || !row.kept);
      }
      const code = reportMissing(group.missing('gateway'), answered, json, terminal);
      done(code === 0 && failed ? 1 : code);
    },
  );
}

function came({ done, why, kept }: HoldAnswer['queues'][number], past: string): string {
  if (!done) return `not ${past}: ${printable(why)}`;
  return kept
    ? past : `${past}, but its mirrors have not acknowledged that yet: a crash of the gateway may undo it`;
}
