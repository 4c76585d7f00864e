/**
 * `twinpost store drain`: every gateway of the group moves its partitions away from a store, which may stop
 * then. Copies that no other store takes leave all the same where min_replicas allows it. That is no success,
 * for fewer copies than configured are left: exit code 1, unless --force says that it is meant.
 */
import type { Argv } from 'yargs';
import type { DrainAnswer, DrainOrder } from '../admin-api/orders.js';
import { formatCount } from '../base/units.js';
import { NoAnswer } from './admin-client.js';
import type { AdminClient } from './admin-client.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { longExample } from './examples.js';
import { NOT_ALL_KNOW, findGroup, missingText, reportMissing, withGroupOptions } from './group.js';
import type { Answered, Group, Missing } from './group.js';
import { orderOf } from './operator.js';
import { REASON, textOr } from './options.js';
import { durationArgument } from './numbers.js';
import { counted, printable } from './tables.js';

const POLL_MS = 500;
const NOT_THERE = 404;
const AWAY = 'the register is away: nothing moves until it answers';

const EXIT_CODES = 'exit code: 0 done, 3 a gateway did not answer, 2 wrong usage, 1 anything else, such as '
  + 'CAN\'T LEAVE, or --timeout is over';

export function storeDrainCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'drain <store>',
    'move all partitions away from a store',
    (args) =>
      longExample(withGroupOptions(args, EXIT_CODES)
        .positional('store', { type: 'string', demandOption: true, describe: 'the store' })
        .option('undo', { type: 'boolean', describe: 'use it again' })
        .option('reason', REASON)
        .option('force', { type: 'boolean', describe: 'fewer copies than configured are success too' })
        .option('wait', { type: 'boolean', describe: 'until no partition is left there' })
        .option('timeout', textOr('1h', 'with --wait, wait no longer than this'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line: a gateway' }),
        '$0 store drain store-1 --wait --reason "disk to be changed"',
        'before store-1 is taken out for good'),
    async (args) => {
      const { terminal } = context;
      const json = args.json === true;
      const undo = args.undo === true;
      const order = orderOf('store drain', args.reason);
      const endMs = performance.now() + durationArgument('timeout', args.timeout);
      const group = await findGroup(args, context);
      const ask = async (given?: DrainOrder): Promise<readonly Answered<DrainAnswer>[]> =>
        (await group.ask('gateway', (client) => drainAt(client, args.store, given)))
          .flatMap(({ answer, ...one }) => (answer === undefined ? [] : [{ ...one, answer }]));
      const ordered = await ask({ undo, ...order });
      if (ordered.length === 0) throw new CliError(noAnswerText(args.store, group));
      const untilMs = args.wait === true ? endMs : 0;
      const tell = (line: string): void => { if (!json) terminal.print(line); };
      const { answers, isLate } = undo ? { answers: ordered, isLate: false }
        : await lookOn(ask, args.store, untilMs, tell);
      for (const { id, answer } of answers) {
        if (json) terminal.print(JSON.stringify({ gateway: id, ...answer }));
        else for (const line of drainLines(id, args.store, answer)) terminal.print(printable(line));
      }
      const missing = group.missing('gateway');
      reportMissing(missing, answers.length, json, terminal);
      const hasAnswered = answers.length > 0;
      if (hasAnswered && missing.length > 0) terminal.error(unheardText(args.store, undo, missing));
      const force = args.force === true;
      const isGivenUp = isLate && args.wait === true;
      if (isGivenUp) {
        terminal.error(`twinpost: not done in ${args.timeout}: it goes on, and the same command waits again`);
      }
      if (isGivenUp || !hasAnswered || answers.some(({ answer }) => hasFailed(answer, force))) done(1);
      else done(missing.length > 0 ? NOT_ALL_KNOW : 0);
    },
  );
}

/** Until nothing moves any more, or that time is over. */
async function lookOn(
  ask: () => Promise<readonly Answered<DrainAnswer>[]>, store: string, untilMs: number,
  tell: (line: string) => void,
): Promise<{ readonly answers: readonly Answered<DrainAnswer>[]; readonly isLate: boolean }> {
  let said = '';
  for (;;) {
    // The first look comes after the gateways have had time to see what can move.
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const answers = await ask();
    const left = sumOf(answers, ({ mirrors }) => mirrors);
    if (left === 0 || left === sumOf(answers, ({ stuck }) => stuck)) return { answers, isLate: false };
    if (performance.now() >= untilMs) return { answers, isLate: true };
    const still = `${counted(left, 'mirror')} still at ${store}`;
    const line = printable([still, ...awayLines(answers)].join('; '));
    if (line !== said) tell(line);
    said = line;
  }
}

/** Copies move by what the register takes. */
function awayLines(answers: readonly Answered<DrainAnswer>[]): string[] {
  const away = answers.filter(({ answer }) => isWaiting(answer)).map(({ id }) => id);
  return away.length === 0 ? [] : [`${AWAY} for ${away.join(', ')}`];
}

function isWaiting({ draining, mirrors, register_away: away = '' }: DrainAnswer): boolean {
  return draining && mirrors > 0 && away !== '';
}

function sumOf(answers: readonly Answered<DrainAnswer>[], read: (answer: DrainAnswer) => number): number {
  return answers.reduce((sum, { answer }) => sum + read(answer), 0);
}

/** Undefined: this gateway does not know the store, and has nothing there. */
export async function drainAt(
  client: AdminClient, store: string, order: DrainOrder | undefined,
): Promise<DrainAnswer | undefined> {
  try {
    return await client.drain(store, order);
  } catch (error) {
    if (error instanceof NoAnswer && error.code === NOT_THERE) return undefined;
    throw error;
  }
}

function noAnswerText(store: string, group: Group): string {
  const missing = group.missing('gateway').map(missingText);
  const told = group.answering('gateway').map(({ id }) => id).join(', ');
  if (told !== '') {
    const who = missing.length === 0 ? `this group knows no store '${store}'`
      : `no gateway that answers (${told}) knows a store '${store}'`;
    return [`nothing was moved: ${who}; twinpost status lists them`, ...missing].join('; ');
  }
  const [first] = missing;
  return first === undefined ? 'there is no gateway in this group: nothing was moved'
    : `nothing was moved: ${first}`;
}

function unheardText(store: string, undo: boolean, missing: readonly Missing[]): string {
  const who = missing.map(({ id }) => id).join(', ');
  const what = undo ? 'may still be moving away from' : 'may still have mirrors at';
  return printable(`twinpost: ${who} did not answer and ${what} ${store}: ask again before you rely on it`);
}

/** Of a store that is used again, mirrors may still be counted as stuck: nothing that anybody waits for. */
export function hasFailed(answer: DrainAnswer, force = false): boolean {
  return (answer.draining && answer.stuck > 0) || !answer.kept || (isShort(answer) && !force);
}

/** Nothing is left there, but not all of it has gone to another store. */
function isShort({ draining, mirrors, copies_missing: missing }: DrainAnswer): boolean {
  return draining && mirrors === 0 && missing > 0;
}

/** What a gateway can do, and what it can't. */
export function drainLines(gateway: string, store: string, answer: DrainAnswer): string[] {
  const { draining, mirrors, stuck, copies_missing: missing, kept } = answer;
  const unkept = `${gateway}: the order is in force, but not on disk: a restart of the gateway forgets it; `
    + `see that its state_dir is set and can be written, and ask again`;
  if (!draining) return [!kept ? unkept : `${gateway}: ${store} is used`];
  const are = mirrors === 1 ? 'is' : 'are';
  const left = mirrors === 0 ? 'nothing is left' : `${counted(mirrors, 'mirror')} ${are} still`;
  const lines = [kept ? `${gateway}: ${left} at ${store}` : unkept];
  if (isWaiting(answer)) lines.push(`${gateway}: ${AWAY}`);
  if (stuck > 0) {
    lines.push(`${gateway}: ${formatCount(stuck)} of them CAN'T LEAVE: no other store can take them, and `
      + 'without them fewer copies than min_replicas would be left; they go when another store is there, or '
      + '--undo ends this');
  } else if (missing > 0) {
    const have = missing === 1 ? 'has' : 'have';
    const what = `${counted(missing, 'partition')} ${have} fewer copies than configured`;
    lines.push(!isShort(answer) ? `${gateway}: ${what}` : `${gateway}: CAN'T LEAVE as it should: ${what}`
      + ', and no other store can take them; start another store, or use this one again (--undo); --force '
      + 'takes it for done');
  }
  return lines;
}
