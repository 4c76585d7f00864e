/**
 * `twinpost logs FILE …`: mail logs of several gateways as one, for people or for programs; all of it, or
 * what became of one message, from its acceptance to its end, whichever gateways it went through. Files of
 * any size: what is read goes on at once, no faster than whoever reads takes it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argv } from 'yargs';
import { errorText } from '../base/error-text.js';
import type { CliContext } from './context.js';
import { STDIN_FILE, UsageError } from './context.js';
import { longExample } from './examples.js';
import { lineText } from './logs/line-text.js';
import { LogFilter, fieldsOf } from '../observability/log-filter.js';
import { toAscii } from '../platform/node/idna.js';
import { AddressPattern } from '../smtp/address-pattern.js';
import { LogMerge } from './logs/log-merge.js';
import { DRY, ENDED, logSource } from './logs/log-source.js';
import type { LogSource } from './logs/log-source.js';
import { text } from './options.js';
import { knownId } from './queue-show.js';
import { counted, printable } from './tables.js';

/** Each keeps a descriptor and what was read at once. */
const FILES_MAX = 256;
const FOLLOW_MS = 250;
const EPILOGUE = 'Lines of several files are put in order of their times. With --follow a file is shown from '
  + 'its end on, with a choice from its start; one that is renamed or cut is followed by name. Exit code: 0, '
  + '1 when nothing is meant, or a file can not be read to its end.';

function logsOptions(args: Argv) {
  return args
    .positional('file', {
      type: 'string', array: true, demandOption: true,
      describe: 'log files, of one or several gateways, .gz too; - is stdin',
    })
    .option('id', {
      type: 'string', array: true, nargs: 1, requiresArg: true,
      describe: 'follow the message of this queue id, and reports about it; may be given again',
    })
    .option('message-id', text('follow messages with this Message-ID'))
    .option('from', text("reverse-path; '<>' for the null one, '*' stands for anything"))
    .option('to', text('recipient; a line of acceptance names the first one alone'))
    .option('reply', text("what a next hop said, '*5.7.1*'; also why a queue waits"))
    .option('source', text('our address that mail left from'))
    .option('follow', { type: 'boolean', alias: 'f', describe: 'go on with what is written' })
    .option('json', { type: 'boolean', describe: 'the lines as they are' })
    .epilogue(EPILOGUE);
}

type LogsArguments = Awaited<ReturnType<ReturnType<typeof logsOptions>['parseAsync']>>;

export function logsCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'logs <file..>',
    'read mail logs; follow one message over all gateways',
    (args) => longExample(
      logsOptions(args)
        .example('$0 logs gw-1.log gw-2.log', 'both as one')
        .example("$0 logs --to '*@example.com' -f mail.log", 'as it goes there'),
      '$0 logs --id 000H3ZK9Q4D gw-1.log.1.gz gw-1.log gw-2.log', 'what became of a message',
    ),
    async (args) => { done(await new LogsRun(args, context).run()); },
  );
}

class LogsRun {
  readonly #context: CliContext;
  readonly #filter: LogFilter;
  readonly #sources: readonly LogSource[];
  readonly #isFollowing: boolean;
  readonly #isJson: boolean;
  #shown = 0;
  #isFaulty = false;

  constructor(args: LogsArguments, context: CliContext) {
    const files = [...new Set(args.file)];
    if (files.length > FILES_MAX) throw new UsageError(`logs: ${String(FILES_MAX)} files at most`);
    const isFollowing = args.follow === true;
    const still = files.find((file) => file.endsWith('.gz') || file === STDIN_FILE);
    if (isFollowing && still !== undefined) throw new UsageError(`logs: ${still} can't be followed`);
    this.#filter = new LogFilter({
      ids: (args.id ?? []).map((id) => knownId('logs', id)), messageId: args['message-id'],
      from: args.from, to: args.to === undefined ? undefined : new AddressPattern(args.to, toAscii),
      reply: args.reply, source: args.source,
    });
    const follow = isFollowing ? { fromStart: this.#filter.isChoosing } : undefined;
    this.#sources = files.map((file) => logSource(file, follow));
    this.#context = context;
    this.#isFollowing = isFollowing;
    this.#isJson = args.json === true;
  }

  /** The exit code. */
  async run(): Promise<number> {
    const { terminal, stopSignal } = this.#context;
    if (this.#isFollowing) void this.#context.untilStopped();
    const merge = new LogMerge(this.#sources, (source, error) => { this.#tellFault(source, error); });
    while (!stopSignal.aborted) {
      const lines = await merge.next();
      if (lines === ENDED) break;
      if (lines === DRY) {
        await sleep(FOLLOW_MS, undefined, { signal: stopSignal }).catch(() => undefined);
        continue;
      }
      const text = lines.map((line) => this.#textOf(line)).join('');
      if (text === '') continue;
      terminal.write(text);
      await terminal.drained();
    }
    for (const { name, passed } of this.#sources) if (passed > 0) {
      terminal.error(`twinpost: ${name}: ${counted(passed, 'line')} too long for a log, left out`);
    }
    await Promise.all(this.#sources.map((source) => source.close()));
    if (this.#isFaulty) return 1;
    if (this.#shown > 0 || this.#isFollowing || !this.#filter.isChoosing) return 0;
    terminal.error('twinpost: no line is about that');
    return 1;
  }

  /** With its line end; '' when it is not meant. */
  #textOf(line: string): string {
    const { terminal: { isTty } } = this.#context;
    if (!this.#filter.isChoosing) {
      const fields = fieldsOf(line);
      if (fields !== undefined && !this.#isJson) return `${lineText(fields, isTty)}\n`;
      return fields === undefined && this.#isJson ? '' : `${printable(line)}\n`;
    }
    const fields = this.#filter.meant(line);
    if (fields === undefined) return '';
    this.#shown += 1;
    return `${this.#isJson ? printable(line) : lineText(fields, isTty)}\n`;
  }

  #tellFault({ name }: LogSource, error: unknown): void {
    this.#isFaulty = true;
    const why = (error as NodeJS.ErrnoException).code ?? errorText(error);
    const how = why === 'ENOENT' ? '' : ' to its end';
    this.#context.terminal.error(`twinpost: ${name} can't be read${how}: ${why}`);
  }
}
