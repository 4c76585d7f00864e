/** `twinpost rules list | cancel`: the standing rules and orders of operators, as all gateways obey them. */
import type { Argv } from 'yargs';
import { isStandingVerb } from '../admin-api/queue-rules.js';
import { formatCount } from '../base/units.js';
import type { CliContext } from './context.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import { orderOf } from './operator.js';
import { REASON } from './options.js';
import { JSON_OPTION, LOCAL, localOf, told, toldJson } from './queue-rule.js';
import type { GroupRule } from './rule-run.js';
import { cancelRules, rulesOf } from './rule-run.js';
import { printable, tableText, timeText } from './tables.js';

export function rulesCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('rules', 'rules and orders that stand: list, cancel', (rules) => {
    listCommand(rules, context, done);
    cancelCommand(rules, context, done);
    return rules.demandCommand(1, 'rules what? twinpost rules --help lists the verbs');
  });
}

function listCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'list',
    'what is suspended, refused, held, delayed, returned or deleted, since when, by whom and why',
    (args) =>
      withGroupOptions(args)
        .option('json', { type: 'boolean', describe: 'one JSON object a line: a rule' })
        .example('$0 rules list', 'what stands'),
    async (args) => {
      const { terminal } = context;
      const json = args.json === true;
      const group = await findGroup(args, context);
      const rules = await rulesOf(group);
      if (json) for (const rule of rules) terminal.print(JSON.stringify(rule));
      else terminal.print(rules.length === 0 ? 'no rules' : listText(rules));
      done(reportMissing(group.missing('gateway'), 1, json, terminal));
    },
  );
}

function cancelCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'cancel <id>',
    'end a rule, by its id',
    (args) =>
      withGroupOptions(args)
        .positional('id', { type: 'string', demandOption: true, describe: 'as rules list shows it' })
        .option('reason', REASON)
        .option('local', LOCAL)
        .option('json', JSON_OPTION)
        .example('$0 rules cancel gw-1-12-1 --reason mended', 'its queues go on'),
    async (args) => {
      const order = orderOf('rules cancel', args.reason);
      const given = { ...order, ...localOf(args.local) };
      const group = await findGroup(args, context);
      // With --local it is kept as taken back all the same: who does not answer may have it.
      const isKnown = args.local !== true || (await rulesOf(group)).some(({ id }) => id === args.id);
      const outcome = await cancelRules(group, [args.id], given);
      const codeOf = (code: number): number => (code === 0 && !isKnown ? 1 : code);
      if (args.json === true) {
        const cancelled = isKnown ? [args.id] : [];
        return done(codeOf(toldJson({ order: 'cancel', cancelled }, outcome, context)));
      }
      context.terminal.print(isKnown ? printable(`${args.id} is cancelled`)
        : 'no rule of this id is known; kept as taken back for a day');
      done(codeOf(told(outcome, context)));
    },
  );
}

/** Who did not answer is named below the table. */
function obeyedText({ gateways, not_obeyed_by: others }: GroupRule): string {
  return others.length === 0 ? gateways.join(', ') : `${gateways.join(', ')}; NOT by ${others.join(', ')}`;
}

/** Exported for its test. */
export function listText(rules: readonly GroupRule[]): string {
  const rows = rules.map((rule) => [
    printable(rule.id), rule.local ? `${rule.verb} (local)` : rule.verb, printable(rule.queue),
    timeText(rule.since),
    rule.until === null ? 'until cancelled' : timeText(rule.until),
    // An order over new mail names none, and its messages are those that it was done to.
    isStandingVerb(rule.verb) ? '' : formatCount(rule.queues),
    formatCount(rule.messages), printable(obeyedText(rule)), printable(`${rule.who}: ${rule.reason}`),
  ]);
  return tableText([
    { title: 'Rule' }, { title: 'Verb' }, { title: 'Over' }, { title: 'Since' }, { title: 'Until' },
    { title: 'Queues', right: true }, { title: 'Messages', right: true }, { title: 'Obeyed by' },
    { title: 'Who and why' },
  ], rows);
}
