/**
 * `twinpost queue show ID …`: all that is known of single messages, wherever in the group they are: envelope,
 * what became of each recipient, where it lies and in which copies, and why it is still here.
 */
import type { Argv } from 'yargs';
import type { ShownEntry } from '../admin-api/look.js';
import { formatBytes, formatDuration } from '../base/units.js';
import { formatMessageId, parseMessageId } from '../base/text-id.js';
import type { CliContext } from './context.js';
import { UsageError } from './context.js';
import { NOT_ALL_KNOW, findGroup, reportMissing, withGroupOptions } from './group.js';
import { printable, tableText, listTimeText } from './tables.js';

const IDS_MAX = 100;
const EXIT_CODES = 'exit code: 0 when it was found, 1 when not, 3 when somebody could not tell, so that '
  + 'there may be more';
const LABEL_COLUMNS = 11;

export function queueShowCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'show <id..>',
    'one message: envelope, recipients, attempts, copies, and why it is still here',
    (args) =>
      withGroupOptions(args, EXIT_CODES)
        .positional('id', {
          type: 'string', array: true, demandOption: true,
          describe: 'queue id, as queue list and the log show it',
        })
        .option('json', { type: 'boolean', describe: 'one JSON object a line: the message in one queue' })
        .example('$0 queue show 000H3ZK9Q4D', 'where it is and why'),
    async (args) => {
      const ids = [...new Set(args.id.map((id) => knownId('queue show', id)))];
      if (ids.length > IDS_MAX) throw new UsageError(`queue show: ${String(IDS_MAX)} ids at most`);
      const json = args.json === true;
      const { terminal } = context;
      const group = await findGroup(args, context);
      let [answered, lacking, isPartial] = [0, 0, false];
      for (const id of ids) {
        const answers = await group.ask('gateway', (client) => client.message(id));
        answered = answers.length;
        const entries = answers.flatMap(({ id: gateway, answer }) =>
          answer.entries.map((entry) => ({ gateway, ...entry })));
        for (const entry of entries) terminal.print(json ? JSON.stringify(entry) : entryText(entry));
        const unsure = answers.filter(({ answer }) => answer.incomplete).map(({ id: gateway }) => gateway);
        const notBack = unsure.length === 0 ? '' : `; ${unsure.join(', ')} has not all of its mail back yet`;
        isPartial ||= notBack !== '';
        if (entries.length === 0) {
          lacking += 1;
          terminal.error(`twinpost: ${notHere(id)}${notBack}`);
        } else if (notBack !== '') terminal.error(`twinpost: there may be more of message ${id}${notBack}`);
      }
      const missing = group.missing('gateway');
      reportMissing(missing, answered, json, terminal, true);
      // Of one that was found, too: another may hold it for other recipients.
      if (isPartial || missing.length > 0) done(NOT_ALL_KNOW);
      else done(lacking === 0 ? 0 : 1);
    },
  );
}

/** It may have left. */
export function notHere(id: string): string {
  return `no gateway that answers has message ${id} in a queue: twinpost find --id ${id} asks their logs`;
}

/** The id that somebody typed, as the log has it. */
export function knownId(verb: string, id: string): string {
  const messageId = parseMessageId(id);
  if (messageId === undefined) {
    throw new UsageError(`${verb}: '${id}' is no queue id; twinpost queue list shows them`);
  }
  return formatMessageId(messageId);
}

function entryText(entry: ShownEntry & { readonly gateway: string }): string {
  const { gateway, owner, queue_class: queueClass, partition, recipients, sender } = entry;
  const now = Date.now() / 1000;
  const attempts = String(entry.attempts) + (entry.next_attempt_time === null
    ? '' : `, the next ${listTimeText(entry.next_attempt_time)}, ${fromNow(entry.next_attempt_time, now)}`);
  const isRead = entry.expiry_time > 0;
  const lines: (readonly [label: string, text: string])[] = [
    ['state', `${entry.state}: ${entry.why}`],
    ['gateway', owner === gateway ? gateway : `${gateway}, in the place of ${owner}`],
    ['queue', `${entry.queue_name}${queueClass === 'mail' ? '' : ` (${queueClass})`}, ${entry.order}, `
      + `to ${entry.next_hop}`],
    ['partition', `${partition}, epoch ${String(entry.epoch)}`],
    ['copies', entry.copies.map(({ store, sync, has }) =>
      `${store} ${sync}${has ? '' : ', which lacks it'}`).join('; ') || 'none'],
    ['from', sender === '' ? '<>' : sender],
    ...(entry.client === '' ? [] : [['client', `${entry.client} (${entry.helo})`] as const]),
    ...(entry.message_id === undefined ? [] : [['message-id', entry.message_id] as const]),
    ['size', formatBytes(entry.message_size)],
    ['arrived', `${listTimeText(entry.arrival_time)}, ${fromNow(entry.arrival_time, now)}`],
    ...(isRead
      ? [['expires', `${listTimeText(entry.expiry_time)}, ${fromNow(entry.expiry_time, now)}`] as const]
      : [['envelope', 'still at the stores, or not to be read by this release'] as const]),
    ['attempts', attempts],
  ];
  const rows = recipients.map(({ address, state, last_reply: reply = '' }) =>
    [printable(address), state, printable(reply)]);
  const table = tableText([{ title: 'Recipient' }, { title: 'State' }, { title: 'Last reply' }], rows);
  return [
    entry.queue_id,
    ...lines.map(([label, text]) => `  ${label.padEnd(LABEL_COLUMNS)}${printable(text)}`),
    ...(rows.length === 0 ? [] : table.split('\n').map((line) => `  ${line}`)),
  ].join('\n');
}

function fromNow(seconds: number, now: number): string {
  const away = formatDuration(Math.abs(Math.round(seconds - now)) * 1000);
  return seconds > now ? `in ${away}` : `${away} ago`;
}
