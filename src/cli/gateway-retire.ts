/**
 * `twinpost gateway retire ID`: takes a gateway out of its group for good. The order is written into the
 * register by one gateway; each one learns of it by its own watch.
 *
 *   ordered ─► all living gateways know, and nothing of ID is left ─► 0
 *           ├─ or only empty partitions, kept for copies that were given up: nobody waits for these
 *           ├─ time is up, somebody who lives does not know of it  ─► 3, named: it may still hand mail to ID
 *           ├─ only one that is cut off from the register does not ─► 3, named; at once
 *           └─ time is up, mail of ID is left; or nobody answers   ─► 1; it goes on by itself
 *   --undo  ─► all living gateways know                            ─► 0
 */
import type { Argv } from 'yargs';
import type { RetireAnswer } from '../admin-api/orders.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { longExample } from './examples.js';
import { NOT_ALL_KNOW, findGroup, missingText, withGroupOptions } from './group.js';
import type { Answered, Group } from './group.js';
import { durationArgument } from './numbers.js';
import { orderOf } from './operator.js';
import { REASON, textOr } from './options.js';
import { counted, printable } from './tables.js';

const POLL_MS = 500;

interface Retirement {
  /** Of the gateway, in the register. */
  readonly partitions: number;
  /** Of these, empty, and there only for copies that an operator gave up at these stores. */
  readonly kept: number;
  readonly keptFor: readonly string[];
  /** Of its mail, where somebody holds it. */
  readonly messages: number;
  /** Who lives and does not know of the order. */
  readonly unaware: readonly string[];
  /** Of these, who may still hear of it: who answers, and does not reach the register, does not. */
  readonly awaited: readonly string[];
}

const EXIT_CODES =
  'exit code: 0 done, 3 not every living gateway knows of it, 2 wrong usage, 1 anything else';

export function gatewayRetireCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'retire <id>',
    'take a gateway out of its group for good',
    (args) =>
      longExample(withGroupOptions(args, EXIT_CODES)
        .positional('id', {
          type: 'string', demandOption: true, describe: 'the gateway; of one with workers each worker',
        })
        .option('reason', REASON)
        .option('undo', { type: 'boolean', describe: 'it may start again' })
        .option('timeout', textOr('10min', 'wait no longer than this'))
        .option('json', { type: 'boolean', describe: 'one JSON object at the end' }),
        '$0 gateway retire gw-3 --reason "host given back"', 'its mail is delivered by the others'),
    async (args) => {
      const order = { ...orderOf('gateway retire', args.reason), undo: args.undo === true };
      const endMs = performance.now() + durationArgument('timeout', args.timeout);
      const group = await findGroup(args, context);
      await give(group, args.id, order);
      const said = args.json === true ? undefined : context;
      const last = await follow(group, args.id, { undo: order.undo, endMs, said });
      const code = codeOf(last, order.undo);
      if (args.json === true) {
        const { partitions, kept, keptFor, messages, unaware } = last;
        context.terminal.print(JSON.stringify({
          gateway: args.id, retired: !order.undo, partitions, kept, kept_for: keptFor, messages, unaware,
        }));
      } else {
        for (const line of retireLines(args.id, last, order.undo)) context.terminal.print(printable(line));
      }
      done(code);
    },
  );
}

/** One gateway that answers writes it; one that can't is followed by the next. */
async function give(
  group: Group, id: string, order: { reason: string; who: string; undo: boolean },
): Promise<void> {
  let why = '';
  // The one that goes is the last to be asked: it may be half dead.
  const gateways = [...group.answering('gateway')].sort((a, b) => Number(a.id === id) - Number(b.id === id));
  for (const { client } of gateways) {
    try {
      await client.retire(id, order);
      return;
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      why ||= error.message;
    }
  }
  const [first] = group.missing('gateway');
  if (why !== '') throw new CliError(why);
  throw new CliError(first === undefined
    ? 'there is no gateway in this group: nothing was done' : `nothing was done: ${missingText(first)}`);
}

async function follow(
  group: Group, id: string,
  { undo, endMs, said }: { undo: boolean; endMs: number; said: CliContext | undefined },
): Promise<Retirement> {
  let line = '';
  for (;;) {
    const progress = progressOf(await group.ask('gateway', (client) => client.retire(id)), undo);
    const isDone = progress.awaited.length === 0 && (undo || openOf(progress) === 0);
    if (isDone || performance.now() >= endMs) return progress;
    const { messages } = progress;
    const open = counted(openOf(progress), 'partition');
    const now = `${open} of ${printable(id)} left, with ${counted(messages, 'message')}`;
    if (!undo && now !== line) said?.terminal.print(now);
    line = now;
    await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
  }
}

/** Exported for its test. */
export function progressOf(answers: readonly Answered<RetireAnswer>[], undo: boolean): Retirement {
  if (answers.length === 0) {
    throw new CliError('nobody answers any more: how far it is can not be told; the order stands');
  }
  const aware =
    new Set(answers.filter(({ answer }) => answer.retired !== undo).map(({ answer }) => answer.told_by));
  const there = answers.filter((one) => !isCutOff(one));
  const cutOff = new Set(answers.filter(isCutOff).map(({ answer }) => answer.told_by));
  const seen = there.length > 0 ? there : answers;
  const living = new Set([...cutOff, ...seen.flatMap(({ answer }) => answer.living)]);
  const unaware = [...living].filter((one) => !aware.has(one)).sort();
  return {
    partitions: Math.max(...seen.map(({ answer }) => answer.partitions)),
    kept: seen.reduce((sum, { answer }) => sum + answer.kept, 0),
    keptFor: [...new Set(seen.flatMap(({ answer }) => answer.kept_for))].sort(),
    messages: answers.reduce((sum, { answer }) => sum + answer.messages, 0),
    unaware, awaited: unaware.filter((one) => !cutOff.has(one)),
  };
}

/** It sees the register as it was: who lives there, and what of partitions is left, may be long over. */
function isCutOff({ answer: { register_away: away = '' } }: Answered<RetireAnswer>): boolean {
  return away !== '';
}

/** Those that still have to end. One that changes hands may be counted as kept by both for a moment. */
function openOf({ partitions, kept }: Pick<Retirement, 'partitions' | 'kept'>): number {
  return Math.max(0, partitions - kept);
}

export function codeOf(retirement: Retirement, undo: boolean): number {
  if (retirement.unaware.length > 0) return NOT_ALL_KNOW;
  return undo || openOf(retirement) === 0 ? 0 : 1;
}

export function retireLines(
  id: string, retirement: Retirement, undo: boolean,
): readonly string[] {
  const { kept, keptFor, messages, unaware } = retirement;
  const open = openOf(retirement);
  const lines: string[] = [];
  if (undo) lines.push(`${id} is not retired: it may start again`);
  else if (open === 0 && kept > 0) {
    lines.push(`${id} is retired, and no mail of it is left; it does not start any more. `
      + `For copies that were given up at ${keptFor.join(', ')}, ${counted(kept, 'empty partition')} `
      + `${kept === 1 ? 'stays' : 'stay'} in the register: should such a copy come back, its mail is `
      + 'delivered; nobody waits for it');
  } else if (open === 0) {
    lines.push(`${id} is retired: nothing of it is left, and it does not start any more`);
  } else {
    const are = open === 1 ? 'is' : 'are';
    lines.push(`${id} is retired, and ${counted(open, 'partition')} of it ${are} left, with `
      + `${counted(messages, 'message')} that somebody delivers: it goes on by itself; ask again with the `
      + 'same command, and look at twinpost status');
  }
  if (unaware.length > 0) {
    lines.push(`NOT KNOWN YET to ${unaware.join(', ')}, which live${unaware.length === 1 ? 's' : ''}: `
      + 'see that they reach the register, and that this command reaches them');
  }
  return lines;
}
