/**
 * `twinpost inbox`: what the sink of `up` received, the last messages of it; `inbox N` is the content of one.
 * A terminal would obey what is in a message, so there it is shown escaped.
 */
import type { Argv } from 'yargs';
import type { InboxMessage } from '../admin-api/sink-answers.js';
import { formatBytes, formatCount } from '../base/units.js';
import { ACCESS_OPTIONS, addressHelp, adminAddress } from './admin-address.js';
import { AdminClient } from './admin-client.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { countArgument } from './numbers.js';
import { numberOr, text } from './options.js';
import { escapedContent } from './queue-cat.js';
import { listTimeText, printable, tableText } from './tables.js';

/** Of the built-in file of `up`. */
const SINK_URL = 'http://127.0.0.1:9400';
const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 1_000;
const RECIPIENTS_SHOWN_MAX = 3;

export function inboxCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'inbox [message]',
    'what the sink of `up` received; with a number, the content of that message',
    (args) =>
      args
        .positional('message', { type: 'number', describe: 'its number, as the list shows it' })
        .options(ACCESS_OPTIONS)
        .option('from', text(addressHelp('the sink', SINK_URL).replace(', or TWINPOST_ADMIN', '')))
        .option('limit', numberOr(LIMIT_DEFAULT, 'messages to show at most, the last ones'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line' })
        .example('$0 inbox', 'what arrived last')
        .example('$0 inbox 42 | less', 'header and body')
        .epilogue('Exit code: 0 there are some, 1 there are none, or nobody answers, 2 wrong usage.'),
    async ({ message, from, limit, json, ...args }) => {
      countArgument('limit', limit, 1, LIMIT_MAX);
      const { terminal, environment } = context;
      const own = { ...context, environment: { ...environment, TWINPOST_ADMIN: undefined } };
      const { url, access } = adminAddress({ ...args, from }, own, SINK_URL);
      const sink = new AdminClient(url, access, undefined, undefined, 'sink');
      if (message !== undefined) {
        countArgument('message', message, 1, Number.MAX_SAFE_INTEGER);
        const content = await sink.inboxContent(message);
        if (content === undefined) {
          throw new CliError(`the sink has no message ${String(message)}, or no more`);
        }
        terminal.write(terminal.isScreen ? escapedContent(content) : content);
        return done(0);
      }
      const { messages, arrived } = await sink.inbox(limit);
      if (json === true) for (const one of messages) terminal.print(JSON.stringify(one));
      else terminal.print(messages.length === 0 ? 'nothing has arrived' : inboxText(messages, arrived));
      done(messages.length === 0 ? 1 : 0);
    },
  );
}

function inboxText(messages: readonly InboxMessage[], arrived: number): string {
  const rows = messages.map((one) => [
    String(one.n), listTimeText(one.arrival_time), formatBytes(one.message_size),
    one.sender === '' ? 'MAILER-DAEMON' : printable(one.sender), printable(recipientsText(one)),
    printable(one.subject),
  ]);
  const table = tableText([
    { title: 'Message', right: true }, { title: 'Arrived' }, { title: 'Size', right: true },
    { title: 'From' }, { title: 'To' }, { title: 'Subject' },
  ], rows);
  return `${table}\n-- ${formatCount(messages.length)} of ${formatCount(arrived)}`;
}

function recipientsText({ recipients }: InboxMessage): string {
  const more = recipients.length - RECIPIENTS_SHOWN_MAX;
  const shown = recipients.slice(0, RECIPIENTS_SHOWN_MAX).map(({ address }) => address).join(', ');
  return more > 0 ? `${shown} and ${String(more)} more` : shown;
}
