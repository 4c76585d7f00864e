/**
 * `twinpost rebalance`: every gateway of the group spreads the copies of its partitions evenly
 * over its stores, now. By itself a gateway does so slowly, when a store has much less than
 * its part (mirror.rebalance_rate).
 *
 *   --dry-run ─► what would move ─► 0
 *   ordered   ─► nothing is left to move ─► 0
 *             └─ time is up, or a gateway can't begin ─► 1; it goes on by itself
 */
import type { Argv } from 'yargs';
import type { RebalanceAnswer } from '../admin-api/orders.js';
import { formatBytes, formatCount } from '../base/units.js';
import type { CliContext, Terminal } from './context.js';
import { CliError } from './context.js';
import { longExample } from './examples.js';
import { EXIT_CODES, findGroup, missingText, reportMissing, withGroupOptions } from './group.js';
import type { Answered } from './group.js';
import { durationArgument } from './numbers.js';
import { orderOf } from './operator.js';
import { textOr } from './options.js';
import { counted, printable } from './tables.js';

const POLL_MS = 500;

export function rebalanceCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'rebalance',
    'spread copies evenly over the stores, now',
    (args) =>
      longExample(withGroupOptions(args, `a gateway that no store has a link to is left out; ${EXIT_CODES}`)
        .option('dry-run', { type: 'boolean', describe: 'say what would move, and move nothing' })
        .option('reason', textOr('rebalance', 'why, for the log'))
        .option('timeout', textOr('1h', 'wait no longer than this'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line: each copy to be moved' }),
        '$0 rebalance --dry-run', 'what a store that was added would get'),
    async (args) => {
      const { terminal } = context;
      const order = orderOf('rebalance', args.reason);
      const endMs = performance.now() + durationArgument('timeout', args.timeout);
      const group = await findGroup(args, context);
      const isDry = args['dry-run'] === true;
      let answers = await group.ask('gateway', (client) => client.rebalance(isDry ? undefined : order));
      const [first] = group.missing('gateway');
      if (answers.length === 0) {
        throw new CliError(first === undefined ? 'there is no gateway in this group' : missingText(first));
      }
      for (const { answer } of answers) show(answer, args.json === true, terminal);
      let said = '';
      while (!isDry && !answers.every(({ answer }) => isEven(answer)) && performance.now() < endMs) {
        await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
        answers = await group.ask('gateway', (client) => client.rebalance());
        const line = progressLine(answers);
        if (args.json !== true && line !== said) terminal.print(printable(line));
        said = line;
      }
      // To whom no store has a link has no copies: those of its partitions are spread by who holds them.
      const code = reportMissing(group.unheard, answers.length, args.json === true, terminal);
      done(isDry || answers.every(({ answer }) => isEven(answer)) ? code : 1);
    },
  );
}

function isEven({ moving, planned }: RebalanceAnswer): boolean {
  return moving.length + planned.length === 0;
}

function show({ gateway, moving, planned, why }: RebalanceAnswer, json: boolean, terminal: Terminal): void {
  for (const { partition, from, to, messages, bytes } of [...moving, ...planned]) {
    if (json) terminal.print(JSON.stringify({ gateway, partition, from, to, messages, bytes }));
    else {
      terminal.print(
        printable(`${partition}: ${from} -> ${to} (${counted(messages, 'message')}, ${formatBytes(bytes)})`),
      );
    }
  }
  if (json) return;
  if (moving.length + planned.length === 0) {
    terminal.print(printable(`${gateway}: its copies are spread evenly`));
  } else if (why !== '') terminal.print(printable(`${gateway}: WAITS: ${why}`));
}

/** Exported for its test. */
export function progressLine(answers: readonly Answered<RebalanceAnswer>[]): string {
  const moving = answers.reduce((sum, { answer }) => sum + answer.moving.length, 0);
  const planned = answers.reduce((sum, { answer }) => sum + answer.planned.length, 0);
  const waits = answers.find(({ answer }) => answer.why !== '' && answer.planned.length > 0)?.answer;
  const waiting = waits === undefined ? '' : `; ${waits.gateway} waits: ${waits.why}`;
  return `${counted(moving, 'copy', 'copies')} on the way, ${formatCount(planned)} to go${waiting}`;
}
