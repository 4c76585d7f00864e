/**
 * `twinpost find`: messages by sender, recipient, Message-ID, queue id or time, at all gateways, whether they
 * wait or have left: queues tell of those that wait, the log of each gateway of what became of the others.
 * Both are asked at once; then the queues about those that the logs leave open; then, from when these came
 * on, the logs of all: a message may have come to its end at another gateway.
 */
import type { Argv } from 'yargs';
import { loggedQuestion } from '../admin-api/logged.js';
import type { LoggedAnswer, LoggedQuestion } from '../admin-api/logged.js';
import { FOUND_MAX } from '../admin-api/look.js';
import type { Selector } from '../admin-api/queue-orders.js';
import { BrokenRule, readShape } from '../base/json-shape.js';
import { parseDuration } from '../base/units.js';
import type { CliContext } from './context.js';
import { UsageError } from './context.js';
import { longExample } from './examples.js';
import { FoundMail, foundTable } from './found-mail.js';
import type { Meant } from './found-mail.js';
import { NOT_ALL_KNOW, findGroup, reportMissing, withGroupOptions } from './group.js';
import type { Answered, Group } from './group.js';
import { countArgument, timeArgument } from './numbers.js';
import { numberOr, text } from './options.js';
import { whyInPart } from './queue-find.js';
import { knownId } from './queue-show.js';
import { counted, printable, timeText } from './tables.js';

const LIMIT_DEFAULT = 100;
const DAY_MS = 86_400_000;
/** Clocks of gateways may be ahead of ours: what is not bounded ends later. */
const AHEAD_MS = 3_600_000;
const EXIT_CODES = 'exit code: 0 when there are some, 1 when there are none, 3 when somebody could not look, '
  + 'or not at all of it';

function findOptions(args: Argv) {
  return withGroupOptions(args, EXIT_CODES)
    .option('sender', text("reverse-path; '<>' for the null one, '*' stands for anything, here and below"))
    .option('rcpt', text('address of a recipient'))
    .option('message-id', text('Message-ID of its header'))
    .option('id', {
      type: 'string', array: true, nargs: 1, requiresArg: true,
      describe: 'queue id, as the 250 says it; may be given again',
    })
    .option('since', text('it came, was tried or ended since: 2h (ago), or a time'))
    .option('until', text('likewise'))
    .conflicts('id', 'message-id')
    .option('limit', numberOr(LIMIT_DEFAULT, 'messages to show at most, the newest ones'))
    .option('json', { type: 'boolean', describe: 'one JSON object a line' });
}

type FindArguments = Awaited<ReturnType<ReturnType<typeof findOptions>['parseAsync']>>;

export function findCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'find',
    'find messages that wait, or have left, at all gateways',
    (args) => longExample(
      findOptions(args)
        .example("$0 find --rcpt anna@example.com", 'what came for her since yesterday')
        .example("$0 find --sender '*@shop.example' --since 2h", 'what they have sent lately'),
      "$0 find --message-id '<1234@mail.example>' --since 2026-01-31T10:00", 'what became of it',
    ),
    async (args) => {
      const asked = askedFor(args);
      done(await new FindRun(asked, args.json === true, await findGroup(args, context), context).run());
    },
  );
}

interface Asked {
  /** What chooses of all that gateways tell. */
  readonly meant: Meant;
  readonly question: LoggedQuestion;
  /** Undefined: the queues are asked by id, when the logs have told which. */
  readonly selector: Selector | undefined;
}

function askedFor(args: FindArguments): Asked {
  const { sender, rcpt, since, until } = args;
  const limit = countArgument('limit', args.limit, 1, FOUND_MAX);
  const ids = args.id?.map((id) => knownId('find', id));
  const messageId = args['message-id'];
  if ([sender, rcpt, ids, messageId, since, until].every((one) => one === undefined)) {
    throw new UsageError('find: say which messages: --sender, --rcpt, --message-id, --id, --since');
  }
  const nowMs = Date.now();
  const untilMs = until === undefined ? nowMs + AHEAD_MS : momentOf('until', until, nowMs);
  const sinceMs = since === undefined ? Math.min(untilMs, nowMs) - DAY_MS : momentOf('since', since, nowMs);
  if (sinceMs >= untilMs) throw new UsageError('find: --since is before --until');
  const patterns = {
    ...(sender === undefined ? {} : { sender }), ...(rcpt === undefined ? {} : { recipient: rcpt }),
  };
  const named = {
    ...(ids === undefined ? {} : { ids }), ...(messageId === undefined ? {} : { message_id: messageId }),
  };
  // Of what is named the patterns choose at the end: its acceptance names one recipient alone.
  const isNamed = Object.keys(named).length > 0;
  const age = (ms: number): number => Math.max(0, Math.ceil((nowMs - ms) / 1000));
  const selector = {
    ...patterns, ...(ids === undefined ? {} : { ids }),
    ...(since === undefined ? {} : { newer_than_seconds: age(sinceMs) }),
    ...(until === undefined ? {} : { older_than_seconds: age(untilMs) }),
  };
  const question = readShape(loggedQuestion, {
    ...(isNamed ? named : patterns), since_ms: sinceMs, until_ms: untilMs, limit,
  });
  if (question instanceof BrokenRule) throw new UsageError(`find: ${question.rule}`);
  const meant = { sender: isNamed ? sender : undefined, recipient: rcpt };
  return { meant, question, selector: messageId === undefined ? selector : undefined };
}

/** In milliseconds since 1970; a duration is so long ago. */
function momentOf(option: string, value: string, nowMs: number): number {
  const ago = parseDuration(value);
  return ago.ok ? nowMs - ago.value : timeArgument(option, value);
}

class FindRun {
  readonly #asked: Asked;
  readonly #isJson: boolean;
  readonly #group: Group;
  readonly #terminal: CliContext['terminal'];
  readonly #mail: FoundMail;
  /** What was not looked at. */
  readonly #lacks = new Set<string>();
  #answered = 0;

  constructor(asked: Asked, isJson: boolean, group: Group, { terminal }: CliContext) {
    this.#asked = asked;
    this.#isJson = isJson;
    this.#group = group;
    this.#terminal = terminal;
    this.#mail = new FoundMail(asked.meant);
  }

  /** The exit code. */
  async run(): Promise<number> {
    const { question, selector } = this.#asked;
    const isAtOnce = selector === undefined ? [] : [this.#askQueues(selector, question.limit)];
    const [logs] = await Promise.all([this.#askLogs(question), ...isAtOnce]);
    for (const { id, answer } of logs) this.#judge(id, answer);
    const asked = this.#mail.openIds.filter((id) => !this.#mail.waits(id)).slice(0, FOUND_MAX);
    if (asked.length > 0) await this.#askQueues({ ids: asked }, FOUND_MAX);
    const left = this.#mail.openIds.slice(0, FOUND_MAX);
    if (left.length > 0) await this.#askOnward(left);
    return this.#show();
  }

  async #askLogs(question: LoggedQuestion): Promise<readonly Answered<LoggedAnswer>[]> {
    const answers = await this.#group.ask('gateway', (client) => client.logged(question));
    this.#answered = answers.length;
    for (const { answer: { messages } } of answers) this.#mail.addLogged(messages);
    return answers;
  }

  async #askQueues(selector: Selector, limit: number): Promise<void> {
    const answers = await this.#group.ask('gateway', (client) => client.find({ selector, limit }));
    for (const { id, answer } of answers) {
      this.#mail.addQueued(id, answer.messages);
      const why = whyInPart(answer);
      if (why !== '') this.#lacks.add(`${id} ${why}`);
      if (answer.more) this.#note(`${id} has more than ${counted(limit, 'such message')} that wait`);
    }
  }

  /** What was read before is of the time that was asked for: a message may have come to its end later. */
  async #askOnward(ids: readonly string[]): Promise<void> {
    const untilMs = Date.now() + AHEAD_MS;
    const sinceMs = this.#mail.firstMs(ids, this.#asked.question.since_ms);
    const logs = await this.#askLogs({
      ids, since_ms: sinceMs, until_ms: untilMs, limit: FOUND_MAX, onward: true,
    });
    if (this.#mail.openIds.length === 0) return;
    for (const { id, answer: { why, read_to_ms: toMs } } of logs) {
      if (why !== '' || toMs >= untilMs) continue;
      this.#lacks.add(`${id} had no time to read its log past ${atText(toMs)}`);
    }
  }

  #judge(id: string, answer: LoggedAnswer): void {
    const { question: { since_ms: sinceMs, limit } } = this.#asked;
    const { why, more, read_from_ms: fromMs, begins_ms: beginsMs, unread_files: unread } = answer;
    if (why !== '') this.#lacks.add(`the log of ${id} was not read: ${why}`);
    else if (more) this.#note(`the log of ${id} has more than ${counted(limit, 'such message')}`);
    else if (fromMs > sinceMs) {
      this.#lacks.add(`${id} had no time to read its log further back than ${atText(fromMs)}`);
    }
    if (unread > 0) {
      this.#lacks.add(`${id} has ${counted(unread, 'rotated log')} of that time that it does not read`);
    } else if (beginsMs !== null && beginsMs > sinceMs) {
      this.#note(`the log of ${id} begins at ${atText(beginsMs)}`);
    }
  }

  #note(what: string): void {
    this.#terminal.error(printable(`twinpost: ${what}`));
  }

  #show(): number {
    const terminal = this.#terminal;
    const found = this.#mail.newest(this.#asked.question.limit);
    if (this.#isJson) for (const one of found) terminal.print(printable(JSON.stringify(one)));
    else if (found.length > 0) terminal.print(foundTable(found));
    else if (this.#answered > 0) terminal.print('no messages');
    for (const lack of this.#lacks) this.#note(lack);
    const code = reportMissing(this.#group.missing('gateway'), this.#answered, this.#isJson, terminal, true);
    if (code !== 0) return code;
    return this.#lacks.size > 0 ? NOT_ALL_KNOW : Number(found.length === 0);
  }
}

function atText(ms: number): string {
  return timeText(Math.floor(ms / 1000));
}
