/**
 * `twinpost queue ages`: how long mail has been here, by destination, as qshape shows it: one row a domain,
 * queue or sender's domain, one column an age. Each gateway counts its own (gateway/look/queue-ages.ts); here
 * they are added up.
 */
import type { Argv } from 'yargs';
import { AGE_KEYS, AGE_MINUTES } from '../admin-api/look.js';
import type { AgeCounts, AgeKey, AgesAnswer } from '../admin-api/look.js';
import type { CliContext } from './context.js';
import { longExample } from './examples.js';
import { NOT_ALL_KNOW, findGroup, reportMissing, withGroupOptions } from './group.js';
import { countArgument } from './numbers.js';
import { numberOr } from './options.js';
import { SELECTORS, selectorOf } from './selectors.js';
import { counted, printable, tableText } from './tables.js';
import { formatCount } from '../base/units.js';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 1_000_000;
const TITLES = [...AGE_MINUTES.map(String), `${String(AGE_MINUTES.at(-1))}+`];
const COLUMNS_HELP = 'Columns are minutes since a message arrived: less than 5, less than 10 …; T is all of '
  + 'them. A message to two domains stands in the row of each, and once in TOTAL.';
const EXIT_CODES = 'the exit code is 0, 3 when somebody could not count, or not all';

interface Sums {
  total: AgeCounts;
  others: AgeCounts;
  unread: AgeCounts;
  readonly keys: Map<string, AgeCounts>;
}

export function queueAgesCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'ages',
    'how long mail has been here, by destination, as qshape shows it',
    (args) => longExample(
      withGroupOptions(args, EXIT_CODES)
        .options(SELECTORS)
        .option('by', { choices: AGE_KEYS, default: 'domain' as AgeKey, describe: 'what a row is' })
        .option('limit', numberOr(LIMIT_DEFAULT, 'rows to show at most, those with most messages'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line: a row' })
        .epilogue(COLUMNS_HELP)
        .example('$0 queue ages', 'by domain of recipients'),
      '$0 queue ages --by sender-domain --reply 4.7.1', 'whose mail they do not like',
    ),
    async (args) => {
      countArgument('limit', args.limit, 1, LIMIT_MAX);
      const selector = selectorOf('queue ages', args) ?? { everything: true };
      const { terminal } = context;
      const { by, limit } = args;
      const json = args.json === true;
      const group = await findGroup(args, context);
      const answers = await group.ask('gateway', (client) => client.ages({ by, selector }));
      const sums = added(answers.map(({ answer }) => answer));
      if (json) for (const row of rowsOf(sums, limit)) terminal.print(JSON.stringify({ by, ...row }));
      else if (answers.length > 0) terminal.print(agesText(sums, limit));
      if (!json && sums.keys.size > limit) {
        terminal.print(`-- ${formatCount(limit)} of ${counted(sums.keys.size, 'row')}; --limit shows more`);
      }
      const parts = answers.filter(({ answer }) => answer.incomplete || answer.looked_share < 1);
      for (const { id, answer } of parts) {
        const share = String(Math.round(answer.looked_share * 100));
        terminal.error(`twinpost: ${id} has counted ${share} % of its mail`
          + (answer.incomplete ? ', and has not all of it back yet' : ''));
      }
      const missing = group.missing('gateway');
      const code = reportMissing(missing, answers.length, json, terminal, true);
      done(code === 0 && parts.length > 0 ? NOT_ALL_KNOW : code);
    },
  );
}

function added(answers: readonly AgesAnswer[]): Sums {
  const none: AgeCounts = TITLES.map(() => 0);
  const sums: Sums = { total: none, others: none, unread: none, keys: new Map() };
  for (const { total, others, unread, keys } of answers) {
    sums.total = sumOf(sums.total, total);
    sums.others = sumOf(sums.others, others);
    sums.unread = sumOf(sums.unread, unread);
    for (const { key, counts } of keys) sums.keys.set(key, sumOf(sums.keys.get(key) ?? none, counts));
  }
  return sums;
}

function sumOf(a: AgeCounts, b: AgeCounts): AgeCounts {
  return a.map((count, column) => count + (b[column] ?? 0));
}

interface AgesRow {
  /** What it is a row of; of the others the kind says it. */
  readonly key: string;
  readonly kind: 'total' | 'key' | 'others' | 'unread';
  readonly messages: number;
  readonly counts: AgeCounts;
}

/** TOTAL first, then the largest; what can't be told apart last. */
function rowsOf({ total, others, unread, keys }: Sums, limit: number): readonly AgesRow[] {
  const row = (kind: AgesRow['kind'], key: string, counts: AgeCounts): AgesRow =>
    ({ key, kind, messages: counts.reduce((sum, count) => sum + count, 0), counts });
  const byKey = Array.from(keys, ([key, counts]) => row('key', key, counts))
    .sort((a, b) => b.messages - a.messages || (a.key < b.key ? -1 : 1));
  const rest = [row('others', '(others)', others), row('unread', '(envelope at the stores)', unread)];
  return [
    row('total', 'TOTAL', total), ...byKey.slice(0, limit), ...rest.filter(({ messages }) => messages > 0),
  ];
}

function agesText(sums: Sums, limit: number): string {
  const columns = [{ title: '' }, ...['T', ...TITLES].map((title) => ({ title, right: true }))];
  return tableText(columns, rowsOf(sums, limit).map(({ key, messages, counts }) =>
    [printable(key), String(messages), ...counts.map(String)]));
}
