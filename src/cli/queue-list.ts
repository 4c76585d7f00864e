/**
 * `twinpost queue list [QUEUE]`: messages of all gateways in queue order, as mailq shows them, or with the
 * fields of postqueue -j.
 */
import type { Argv } from 'yargs';
import type { MessageAnswer, QueueAnswer } from '../admin-api/gateway-answers.js';
import { PAGE_ROWS_MAX } from '../admin-api/pages.js';
import { nearest } from '../base/nearest.js';
import { formatCount } from '../base/units.js';
import { allRows } from './admin-client.js';
import type { AdminClient } from './admin-client.js';
import type { CliContext, Terminal } from './context.js';
import { CliError } from './context.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import type { Group } from './group.js';
import { countArgument } from './numbers.js';
import { numberOr, text } from './options.js';
import { counted, printable, listTimeText } from './tables.js';

const LIMIT_DEFAULT = 1000;
/** Among more of them a near miss takes seconds to find, and means little. */
const NEAR_NAMES_MAX = 10_000;
const DOMAIN = /^[\w-]+(?:\.[\w-]+)+$/;
/** Flags as in mailq. */
const FLAGS: Readonly<Record<string, string>> = { active: '*', held: '!', ending: '#' };

export function queueListCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'list [queue]',
    'messages in queue order; * active, ! held, # being ended',
    (args) =>
      withGroupOptions(args)
        .positional('queue', { type: 'string', describe: 'one queue; all when left out' })
        .option('class', text('mail, bounce, billing or notification'))
        .option('limit', numberOr(LIMIT_DEFAULT, 'messages to show at most'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line, fields as postqueue -j' })
        .example('$0 queue list example.com --json', 'for scripts'),
    async (args) => {
      countArgument('limit', args.limit, 1, Number.MAX_SAFE_INTEGER);
      const { terminal } = context;
      const json = args.json === true;
      const group = await findGroup(args, context);
      const wanted = (queue: QueueAnswer): boolean =>
        (args.queue === undefined || queue.queue_name === args.queue)
        && (args.class === undefined || queue.queue_class === args.class);
      const names = new QueueNames();
      const answers = await group.ask('gateway', (client) => queuesOf(client, (queue) => {
        names.add(queue.queue_name);
        return wanted(queue);
      }));
      if (args.queue !== undefined && group.missing('gateway').length === 0
        && answers.every(({ answer }) => answer.length === 0)) {
        const near = names.nearest(args.queue);
        const meant = near === undefined ? '' : `. Did you mean ${printable(near)}?`;
        const byDomain = DOMAIN.test(args.queue)
          ? `; mail by domain shows twinpost queue find --domain ${args.queue}` : '';
        const then = meant + byDomain || '; twinpost queue summary lists them';
        throw new CliError(`there is no queue '${args.queue}'${then}`);
      }
      let left = args.limit;
      for (const { id, client, answer } of answers) {
        if (!json && answers.length > 1 && left > 0) terminal.print(`${id}:`);
        try {
          for (const queue of onePerName(answer)) {
            if (left > 0) left -= await listQueue({ id, client }, queue, left, json, terminal);
          }
        } catch (error) {
          group.lose({ id, kind: 'gateway', client }, error);
        }
      }
      const total =
        answers.reduce((sum, { answer }) => answer.reduce((more, queue) => more + queue.messages, sum), 0);
      if (!json && answers.length > 0) {
        terminal.print(total === 0
          ? 'no messages' : `-- ${formatCount(args.limit - left)} of ${counted(total, 'message')}`);
      }
      done(reportMissing(group.missing('gateway'), answers.length, json, terminal, true));
    },
  );
}

/** Of a group, to find the one that was meant by a name that none has. */
class QueueNames {
  readonly #names = new Set<string>();

  add(name: string): void {
    if (this.#names.size <= NEAR_NAMES_MAX) this.#names.add(name);
  }

  /** Undefined among so many that it would take seconds. */
  nearest(name: string): string | undefined {
    const isNear = this.#names.size <= NEAR_NAMES_MAX && !this.#names.has(name);
    return isNear ? nearest(name, [...this.#names]) : undefined;
  }
}

/** Of queues that somebody has who answers. */
export async function nearestQueue(group: Group, name: string): Promise<string | undefined> {
  const names = new QueueNames();
  await group.ask('gateway', (client) => queuesOf(client, (queue) => {
    names.add(queue.queue_name);
    return false;
  }));
  return names.nearest(name);
}

async function queuesOf(
  client: AdminClient, wanted: (queue: QueueAnswer) => boolean,
): Promise<readonly QueueAnswer[]> {
  const queues: QueueAnswer[] = [];
  for await (const queue of allRows(client, (cursor) => client.queues(cursor))) {
    if (wanted(queue)) queues.push(queue);
  }
  return queues;
}

/** A queue that came back late stands beside its younger one; both are listed under their one name. */
function onePerName(queues: readonly QueueAnswer[]): readonly QueueAnswer[] {
  return [...new Map(queues.map((queue) => [
    JSON.stringify([queue.queue_name, queue.queue_class]), queue,
  ])).values()];
}

/** Returns how many were shown. */
async function listQueue(
  gateway: { readonly id: string; readonly client: AdminClient }, queue: QueueAnswer, most: number,
  json: boolean, terminal: Terminal,
): Promise<number> {
  let shown = 0;
  let cursor = '';
  for (;;) {
    const page = await gateway.client.messages(
      queue.queue_name, queue.queue_class, cursor, Math.min(PAGE_ROWS_MAX, most - shown),
    );
    for (const message of page.rows) {
      terminal.print(json
        ? JSON.stringify({ gateway: gateway.id, ...message }) : messageText(message, gateway.id));
    }
    shown += page.rows.length;
    if (page.next_cursor === null || shown >= most) return shown;
    cursor = page.next_cursor;
  }
}

/** Whose queue it is stands with a message that is served in the place of another gateway. */
export function messageText(message: MessageAnswer, gateway: string): string {
  const sender = message.sender === '' ? 'MAILER-DAEMON' : printable(message.sender);
  const lines = [`${(message.queue_id + (FLAGS[message.state] ?? '')).padEnd(13)} `
    + `${String(message.message_size).padStart(9)} ${listTimeText(message.arrival_time)}  ${sender}`];
  if (message.owner !== gateway) lines.push(`${' '.repeat(13)} (of ${printable(message.owner)})`);
  if (message.held_reason !== undefined) {
    lines.push(`${' '.repeat(13)} (held: ${printable(message.held_reason)})`);
  }
  if (message.delayed_until !== undefined) {
    const why = printable(message.delayed_reason ?? '');
    lines.push(`${' '.repeat(13)} (delayed until ${listTimeText(message.delayed_until)}: ${why})`);
  }
  for (const recipient of message.recipients) {
    const isOver = recipient.state === 'ending';
    const why = [isOver ? 'failed, report owed' : '', recipient.delay_reason ?? '']
      .filter((one) => one !== '');
    if (why.length > 0) lines.push(`${' '.repeat(13)} (${printable(why.join(': '))})`);
    lines.push(`${' '.repeat(45)}${printable(recipient.address)}`);
  }
  return lines.join('\n');
}
