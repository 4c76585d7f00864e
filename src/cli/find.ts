/**
 * `twinpost find`: messages by sender, recipient, Message-ID, queue id or time, at all gateways, whether they
 * wait or have left: queues tell of those that wait, the log of each gateway of what became of the others.
 * Queues are asked first: what ends meanwhile the logs tell; then the queues about those that the logs leave
 * open, or end while a queue has them; then, from when those came on that are open, the logs of all: a
 * message may have come to its end at another gateway.
 *
 * Who reads "no messages" and exit code 1 is to believe it: whatever was not looked at makes it 3.
 */
import type { Argv } from 'yargs';
import type { z } from 'zod';
import { loggedQuestion } from '../admin-api/logged.js';
import type { LoggedAnswer, LoggedQuestion } from '../admin-api/logged.js';
import { FOUND_MAX, findQuestion } from '../admin-api/look.js';
import type { FindQuestion } from '../admin-api/look.js';
import { BrokenRule, readShape } from '../base/json-shape.js';
import { parseDuration } from '../base/units.js';
import { bareMessageId } from '../observability/log-filter.js';
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
/** So long routes let mail wait, where they do not say otherwise (`lifetime`). */
const LIFETIME_MS = 5 * DAY_MS;
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
  readonly queued: FindQuestion;
}

function askedFor(args: FindArguments): Asked {
  const { sender, rcpt, since, until } = args;
  const limit = countArgument('limit', args.limit, 1, FOUND_MAX);
  const ids = args.id?.map((id) => knownId('find', id));
  const messageId = args['message-id'] === undefined ? undefined : bareMessageId(args['message-id']);
  if ([sender, rcpt, ids, messageId, since, until].every((one) => one === undefined)) {
    throw new UsageError('find: say which messages: --sender, --rcpt, --message-id, --id, --since');
  }
  const nowMs = Date.now();
  const untilMs = until === undefined ? nowMs + AHEAD_MS : momentOf('until', until, nowMs);
  const sinceMs = since === undefined ? Math.min(untilMs, nowMs) - DAY_MS : momentOf('since', since, nowMs);
  if (sinceMs >= untilMs) throw new UsageError('find: --since is before --until');
  const ofSender = sender === undefined ? {} : { sender };
  const ofRecipient = rcpt === undefined ? {} : { recipient: rcpt };
  const ofIds = ids === undefined ? {} : { ids };
  const ofMessageId = messageId === undefined ? {} : { message_id: messageId };
  // Of what is named the patterns choose at the end: its acceptance names one recipient alone.
  const isNamed = ids !== undefined || messageId !== undefined;
  const question = checked(loggedQuestion, {
    ...(isNamed ? { ...ofIds, ...ofMessageId } : { ...ofSender, ...ofRecipient }),
    since_ms: sinceMs, until_ms: untilMs, limit,
  });
  const age = (ms: number): number => Math.max(0, Math.ceil((nowMs - ms) / 1000));
  const chosen = {
    ...ofSender, ...ofIds,
    ...(since === undefined ? {} : { newer_than_seconds: age(sinceMs) }),
    ...(until === undefined ? {} : { older_than_seconds: age(untilMs) }),
  };
  const selector = Object.keys(chosen).length === 0 ? { everything: true } : chosen;
  const queued = checked(findQuestion, { selector, ...ofRecipient, ...ofMessageId, limit });
  const meant = {
    sender: isNamed ? sender : undefined, recipient: rcpt,
    messageId: messageId === undefined ? '' : `<${messageId}>`,
  };
  return { meant, question, queued };
}

function checked<T>(shape: z.ZodType<T>, asked: unknown): T {
  const read = readShape(shape, asked);
  if (read instanceof BrokenRule) throw new UsageError(`find: ${read.rule}`);
  return read;
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
  /** Who has more than was asked for. */
  readonly #more = new Set<string>();
  readonly #answered = new Set<string>();

  constructor(asked: Asked, isJson: boolean, group: Group, { terminal }: CliContext) {
    this.#asked = asked;
    this.#isJson = isJson;
    this.#group = group;
    this.#terminal = terminal;
    this.#mail = new FoundMail(asked.meant);
  }

  /** The exit code. */
  async run(): Promise<number> {
    const { question, queued } = this.#asked;
    const { limit } = question;
    await this.#askQueues(queued, false);
    await this.#askAndJudge(question);
    const { message_id: messageId, since_ms: sinceMs } = question;
    if (messageId !== undefined && this.#mail.isEmpty) {
      // Its end may be of that time, and has no Message-ID.
      await this.#askAndJudge({
        ...question, since_ms: Math.max(0, sinceMs - LIFETIME_MS), until_ms: sinceMs,
      });
    }
    const unsure = this.#bounded(this.#mail.unsureIds(limit));
    if (unsure.length > 0) {
      this.#mail.forgetQueued(unsure);
      await this.#askQueues({ selector: { ids: unsure }, limit: FOUND_MAX }, true);
    }
    const left = this.#bounded(this.#mail.openIds(limit));
    if (left.length > 0) await this.#askOnward(left);
    const unshown = this.#mail.unshownCount(limit);
    if (unshown > 0) {
      this.#lacks.add(`of ${counted(unshown, 'message')} nobody tells all recipients: one may be meant`);
    }
    return this.#show();
  }

  /** As many as one question names, the newest ones. */
  #bounded(ids: readonly string[]): readonly string[] {
    const more = ids.length - FOUND_MAX;
    if (more > 0) this.#lacks.add(`nobody was asked what became of ${counted(more, 'older message')}`);
    return ids.slice(0, FOUND_MAX);
  }

  async #askAndJudge(question: LoggedQuestion): Promise<void> {
    for (const { id, answer } of await this.#askLogs(question)) this.#judge(id, answer, question);
  }

  async #askLogs(question: LoggedQuestion): Promise<readonly Answered<LoggedAnswer>[]> {
    const answers = await this.#group.ask('gateway', (client) => client.logged(question));
    for (const { id, answer: { messages } } of answers) {
      this.#answered.add(id);
      this.#mail.addLogged(messages);
    }
    return answers;
  }

  async #askQueues(question: FindQuestion, isLater: boolean): Promise<void> {
    const answers = await this.#group.ask('gateway', (client) => client.find(question));
    for (const { id, answer } of answers) {
      this.#answered.add(id);
      this.#mail.addQueued(id, answer.messages, isLater);
      const why = whyInPart(answer);
      if (why !== '') this.#lacks.add(`${id} ${why}`);
      if (answer.more) this.#more.add(`${id} has more such mail that waits than it tells of`);
    }
  }

  /** What was read before is of the time that was asked for: a message may have come to its end later. */
  async #askOnward(ids: readonly string[]): Promise<void> {
    const untilMs = Date.now() + AHEAD_MS;
    const sinceMs = this.#mail.firstMs(ids, this.#asked.question.since_ms);
    const question: LoggedQuestion = {
      ids, since_ms: sinceMs, until_ms: untilMs, limit: FOUND_MAX, onward: true,
    };
    const logs = await this.#askLogs(question);
    if (this.#mail.openIds(this.#asked.question.limit).length === 0) return;
    for (const { id, answer } of logs) this.#judge(id, answer, question);
  }

  #judge(id: string, answer: LoggedAnswer, question: LoggedQuestion): void {
    const { since_ms: sinceMs, until_ms: untilMs, limit } = question;
    const { why, more, read_from_ms: fromMs, read_to_ms: toMs } = answer;
    const log = `the log of ${id}`;
    for (const lack of answer.lacks) this.#lacks.add(`${log} lacks lines: ${lack}`);
    if (why !== '') {
      this.#lacks.add(`${log} was not read: ${why}`);
    } else if (more) {
      this.#more.add(`${log} has more than ${counted(limit, 'such message')}`);
    } else {
      if (fromMs > sinceMs) this.#lacks.add(`${log} was read back to ${atText(fromMs)} only`);
      if (toMs < untilMs) {
        this.#lacks.add(`${log} was read to ${atText(toMs)} only for what became of mail`);
      }
      this.#judgeFiles(id, answer, sinceMs);
    }
  }

  #judgeFiles(
    id: string, { begins_ms: beginsMs, unread_files: unread }: LoggedAnswer, sinceMs: number,
  ): void {
    const log = `the log of ${id}`;
    if (unread > 0) {
      this.#lacks.add(`${id} has ${counted(unread, 'rotated log')} of that time that it does not read`);
    } else if (beginsMs === null) {
      this.#lacks.add(`${log} has no lines`);
    } else if (beginsMs > sinceMs) {
      this.#lacks.add(`${log} begins at ${atText(beginsMs)}`);
    }
  }

  #note(what: string): void {
    this.#terminal.error(printable(`twinpost: ${what}`));
  }

  #show(): number {
    const terminal = this.#terminal;
    const { limit } = this.#asked.question;
    const found = this.#mail.newest(limit);
    if (this.#isJson) for (const one of found) terminal.print(printable(JSON.stringify(one)));
    else if (found.length > 0) terminal.print(foundTable(found));
    else if (this.#answered.size > 0) terminal.print('no messages');
    for (const each of [...this.#more, ...this.#lacks]) this.#note(each);
    const missing = this.#group.missing('gateway');
    const code = reportMissing(missing, this.#answered.size, this.#isJson, terminal, true);
    if (code !== 0) return code;
    // Where fewer are shown than were asked for, one of the others may be meant.
    const isLacking = this.#lacks.size > 0 || (this.#more.size > 0 && found.length < limit);
    return isLacking ? NOT_ALL_KNOW : Number(found.length === 0);
  }
}

function atText(ms: number): string {
  return timeText(Math.floor(ms / 1000));
}
