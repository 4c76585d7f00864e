/**
 * `twinpost store drain`: every gateway of the group moves its partitions away from a store, which may stop
 * then.
 */
import type { Argv } from 'yargs';
import type { DrainAnswer } from '../admin-api/orders.js';
import { formatCount } from '../base/units.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { longExample } from './examples.js';
import { NOT_ALL_KNOW, findGroup, missingText, reportMissing, withGroupOptions } from './group.js';
import type { Answered, Missing } from './group.js';
import { orderOf } from './operator.js';
import { REASON } from './options.js';
import { counted, printable } from './tables.js';

const POLL_MS = 500;

export function storeDrainCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'drain <store>',
    'move all partitions away from a store',
    (args) =>
      longExample(withGroupOptions(args)
        .positional('store', { type: 'string', demandOption: true, describe: 'the store' })
        .option('undo', { type: 'boolean', describe: 'use it again' })
        .option('reason', REASON)
        .option('wait', { type: 'boolean', describe: 'until no partition is left there' })
        .epilogue('Exit code: 0 done, 3 a gateway did not answer, 2 wrong usage, 1 anything else.'),
        '$0 store drain store-1 --wait --reason "disk to be changed"',
        'before store-1 is taken out for good'),
    async (args) => {
      const { terminal } = context;
      const undo = args.undo === true;
      const order = orderOf('store drain', args.reason);
      const group = await findGroup(args, context);
      let answers = await group.ask('gateway', (client) => client.drain(args.store, { undo, ...order }));
      if (answers.length === 0) throw new CliError(noAnswerText(group.missing('gateway')));
      let said = -1;
      // The first look comes after the gateways have had time to see what can move.
      while (!undo) {
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        answers = await group.ask('gateway', (client) => client.drain(args.store));
        const left = sumOf(answers, ({ mirrors }) => mirrors);
        if (args.wait !== true || left === 0 || left === sumOf(answers, ({ stuck }) => stuck)) break;
        if (left !== said) terminal.print(`${counted(left, 'mirror')} still at ${printable(args.store)}`);
        said = left;
      }
      for (const { id, answer } of answers) {
        for (const line of drainLines(id, args.store, answer)) terminal.print(printable(line));
      }
      const missing = group.missing('gateway');
      const hasAnswered = reportMissing(missing, answers.length, false, terminal) === 0;
      if (hasAnswered && missing.length > 0) terminal.error(unheardText(args.store, undo, missing));
      if (!hasAnswered || answers.some(({ answer }) => hasFailed(answer))) done(1);
      else done(missing.length > 0 ? NOT_ALL_KNOW : 0);
    },
  );
}

function sumOf(answers: readonly Answered<DrainAnswer>[], read: (answer: DrainAnswer) => number): number {
  return answers.reduce((sum, { answer }) => sum + read(answer), 0);
}

function noAnswerText(missing: readonly Missing[]): string {
  const [first] = missing;
  return first === undefined
    ? 'there is no gateway in this group: nothing was moved' : `nothing was moved: ${missingText(first)}`;
}

function unheardText(store: string, undo: boolean, missing: readonly Missing[]): string {
  const who = missing.map(({ id }) => id).join(', ');
  const what = undo ? 'may still be moving away from' : 'may still have mirrors at';
  return printable(`twinpost: ${who} did not answer and ${what} ${store}: ask again before you rely on it`);
}

/** Of a store that is used again, mirrors may still be counted as stuck: nothing that anybody waits for. */
export function hasFailed({ draining, stuck, kept }: DrainAnswer): boolean {
  return (draining && stuck > 0) || !kept;
}

/** What a gateway can do, and what it can't. */
export function drainLines(
  gateway: string, store: string, { draining, mirrors, stuck, copies_missing: missing, kept }: DrainAnswer,
): string[] {
  const unkept = `${gateway}: the order is in force, but not on disk: a restart of the gateway forgets it; `
    + `see that its state_dir is set and can be written, and ask again`;
  if (!draining) return [!kept ? unkept : `${gateway}: ${store} is used`];
  const are = mirrors === 1 ? 'is' : 'are';
  const left = mirrors === 0 ? 'nothing is left' : `${counted(mirrors, 'mirror')} ${are} still`;
  const lines = [kept ? `${gateway}: ${left} at ${store}` : unkept];
  if (stuck > 0) {
    lines.push(`${gateway}: ${formatCount(stuck)} of them CAN'T LEAVE: no other store can take them, and `
      + 'without them fewer copies than min_replicas would be left; they go when another store is there, or '
      + '--undo ends this');
  } else if (missing > 0) {
    lines.push(`${gateway}: ${counted(missing, 'partition')} ${missing === 1 ? 'has' : 'have'} fewer copies `
      + `than configured${mirrors === 0 ? ': no other store can take them' : ''}`);
  }
  return lines;
}
