/**
 * `twinpost queue find`: which messages a selector means, at all gateways, as queue list shows them. Mail
 * that has left is found by `twinpost find` (find.ts).
 */
import type { Argv } from 'yargs';
import { FOUND_MAX } from '../admin-api/look.js';
import type { FindAnswer } from '../admin-api/look.js';
import { formatCount } from '../base/units.js';
import type { CliContext } from './context.js';
import { UsageError } from './context.js';
import { longExample } from './examples.js';
import { NOT_ALL_KNOW, findGroup, reportMissing, withGroupOptions } from './group.js';
import { countArgument } from './numbers.js';
import { numberOr } from './options.js';
import { messageText } from './queue-list.js';
import { SELECTORS, selectorOf } from './selectors.js';
import { counted } from './tables.js';

const LIMIT_DEFAULT = 100;
const EXIT_CODES = 'the exit code is 0 when there are some, 1 when there are none, 3 when somebody could not '
  + 'look, or not at all of it';

export function queueFindCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'find',
    'messages by sender, recipient, client, age, last reply …',
    (args) => longExample(
      withGroupOptions(args, EXIT_CODES)
        .options(SELECTORS)
        .option('limit', numberOr(LIMIT_DEFAULT, 'messages to show of a gateway at most'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line, fields as queue list' }),
      "$0 queue find --sender '*@example.org' --newer-than 1h", 'what they have sent lately',
    ),
    async (args) => {
      const limit = countArgument('limit', args.limit, 1, FOUND_MAX);
      const selector = selectorOf('queue find', args);
      if (selector === undefined) {
        throw new UsageError('queue find: say which messages: --sender, --rcpt, --domain, --newer-than …');
      }
      const { terminal } = context;
      const json = args.json === true;
      const group = await findGroup(args, context);
      const answers = await group.ask('gateway', (client) => client.find({ selector, limit }));
      let found = 0;
      for (const { id, answer: { messages, more } } of answers) {
        found += messages.length;
        if (!json && answers.length > 1 && messages.length > 0) terminal.print(`${id}:`);
        for (const message of messages) {
          terminal.print(json ? JSON.stringify({ gateway: id, ...message }) : messageText(message, id));
        }
        const count = formatCount(messages.length);
        if (more) terminal.error(`twinpost: ${id} has more than ${count} such messages`);
      }
      const parts = answers.filter(({ answer }) => whyInPart(answer) !== '');
      for (const { id, answer } of parts) terminal.error(`twinpost: ${id} ${whyInPart(answer)}`);
      if (found === 0 && answers.length > 0 && !json) terminal.print('no messages');
      const missing = group.missing('gateway');
      const code = reportMissing(missing, answers.length, json, terminal, true);
      if (code === 0) done(parts.length > 0 ? NOT_ALL_KNOW : Number(found === 0));
      else done(code);
    },
  );
}

/** It did not look at all of its mail: why; '' when it did. */
export function whyInPart({ unread, looked_share: share, incomplete }: FindAnswer): string {
  if (share < 1) return `has looked at ${String(Math.round(share * 100))} % of its mail`;
  if (incomplete) return 'has not all of its mail back yet';
  return unread === 0
    ? '' : `could not look into ${counted(unread, 'message')}: at the stores alone, or not readable`;
}
