/** `twinpost queue list [QUEUE]`: messages in queue order, as mailq shows them, or with the fields of postqueue -j. */
import type { Argv } from 'yargs';
import { formatCount } from '../base/units.js';
import { clientFor, withGatewayOptions } from './admin-client.js';
import type { AdminClient, MessageAnswer, QueueAnswer } from './admin-client.js';
import type { CliContext, Terminal } from './context.js';
import { CliError } from './context.js';
import { printable } from './tables.js';

const PAGE = 1000;
const LIMIT_DEFAULT = 1000;
/** Flags as in mailq. */
const FLAGS: Readonly<Record<string, string>> = { active: '*', held: '!', ending: '#' };

export function queueListCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'list [queue]',
    'messages in queue order; * active, ! held, # being ended',
    (args) =>
      withGatewayOptions(args)
        .positional('queue', { type: 'string', describe: 'one queue; all when left out' })
        .option('class', { type: 'string', requiresArg: true, describe: 'mail, bounce, billing or notification' })
        .option('limit', { type: 'number', requiresArg: true, default: LIMIT_DEFAULT, describe: 'messages to show at most' })
        .option('json', { type: 'boolean', describe: 'one JSON object a line, fields as postqueue -j' })
        .example('$0 queue list example.com --json', 'for scripts'),
    async (args) => {
      if (!Number.isInteger(args.limit) || args.limit < 1) throw new CliError('--limit is a whole number from 1');
      const client = clientFor(args, context);
      const queues = (await client.queues()).filter((queue) => (args.queue === undefined || queue.queue_name === args.queue) && (args.class === undefined || queue.queue_class === args.class));
      if (args.queue !== undefined && queues.length === 0) throw new CliError(`there is no queue '${args.queue}'; twinpost queue summary lists them`);
      let left = args.limit;
      for (const queue of onePerName(queues)) {
        if (left > 0) left -= await listQueue(client, queue.queue_name, queue.queue_class, left, args.json === true, context.terminal);
      }
      const total = queues.reduce((sum, queue) => sum + queue.messages, 0);
      const shown = args.limit - left;
      if (args.json !== true) context.terminal.print(total === 0 ? 'no messages' : `-- ${formatCount(shown)} of ${formatCount(total)} messages`);
      done(0);
    },
  );
}

/** A queue that came back late stands beside its younger one; both are listed under their one name. */
function onePerName(queues: readonly QueueAnswer[]): readonly QueueAnswer[] {
  return [...new Map(queues.map((queue) => [JSON.stringify([queue.queue_name, queue.queue_class]), queue])).values()];
}

/** Returns how many were shown. */
async function listQueue(client: AdminClient, queue: string, queueClass: string, most: number, json: boolean, terminal: Terminal): Promise<number> {
  let shown = 0;
  let cursor = '';
  for (;;) {
    const page = await client.messages(queue, queueClass, cursor, Math.min(PAGE, most - shown));
    for (const message of page.messages) terminal.print(json ? JSON.stringify(message) : messageText(message));
    shown += page.messages.length;
    if (page.next_cursor === null || shown >= most) return shown;
    cursor = page.next_cursor;
  }
}

function messageText(message: MessageAnswer): string {
  const arrival = new Date(message.arrival_time * 1000).toISOString().slice(0, 19).replace('T', ' ');
  const sender = message.sender === '' ? 'MAILER-DAEMON' : printable(message.sender);
  const lines = [`${(message.queue_id + (FLAGS[message.state] ?? '')).padEnd(13)} ${String(message.message_size).padStart(9)} ${arrival}  ${sender}`];
  for (const recipient of message.recipients) {
    if (recipient.delay_reason !== undefined) lines.push(`${' '.repeat(13)} (${printable(recipient.delay_reason)})`);
    lines.push(`${' '.repeat(45)}${printable(recipient.address)}`);
  }
  return lines.join('\n');
}
