/**
 * The command line: which verbs exist, and what happens to input that is not understood: one line on stderr,
 * exit code 2, no stack trace. What goes wrong later is 1. Each verb is a file of its own; all return the
 * exit code.
 */
import yargs from 'yargs';
import type { Argv } from 'yargs';
import { nearest } from '../base/nearest.js';
import { parseMessageId } from '../base/text-id.js';
import type { CliContext } from './context.js';
import { CliError, STDIN_FILE, UsageError } from './context.js';

/** A verb adds itself to yargs and reports its exit code through `done`. */
export type Verb = (cli: Argv, context: CliContext, done: (code: number) => void) => Argv;

/**
 * In the order of the help. Loaded when it is called: each second of a gateway's start counts, and "status"
 * reads no file.
 */
const VERBS: ReadonlyMap<string, () => Promise<Verb>> = new Map([
  ['up', async () => (await import('./up.js')).upCommand],
  ['gateway', async () => (await import('./gateway.js')).gatewayCommand],
  ['rescue', async () => (await import('./rescue.js')).rescueCommand],
  ['store', async () => (await import('./store.js')).storeCommand],
  ['sink', async () => (await import('./sink.js')).sinkCommand],
  ['inbox', async () => (await import('./inbox.js')).inboxCommand],
  ['send', async () => (await import('./send.js')).sendCommand],
  ['status', async () => (await import('./status.js')).statusCommand],
  ['host', async () => (await import('./host-drain.js')).hostCommand],
  ['rebalance', async () => (await import('./rebalance.js')).rebalanceCommand],
  ['queue', async () => (await import('./queue.js')).queueCommand],
  ['find', async () => (await import('./find.js')).findCommand],
  ['rules', async () => (await import('./rules.js')).rulesCommand],
  ['trace', async () => (await import('./trace.js')).traceCommand],
  ['explain', async () => (await import('./explain.js')).explainCommand],
  ['logs', async () => (await import('./logs.js')).logsCommand],
  ['config', async () => (await import('./config-check.js')).configCommand],
  ['table', async () => (await import('./table.js')).tableCommand],
  ['dkim', async () => (await import('./dkim.js')).dkimCommand],
  ['user', async () => (await import('./user.js')).userCommand],
  ['version', async () => (await import('./version.js')).versionCommand],
]);

export async function runCli(typed: readonly string[], context: CliContext): Promise<number> {
  // As people try it first; yargs' own would write past the terminal.
  const words = typed[0] === '--version' ? ['version', ...typed.slice(1)] : typed;
  // yargs loses a lone "-" among files.
  const args = words[0] === 'logs' ? words.map((word) => (word === '-' ? STDIN_FILE : word)) : words;
  let exitCode = 0;
  const cli = yargs([...args])
    .scriptName('twinpost')
    .usage('$0 VERB [options]\n\nA store-and-forward SMTP gateway that answers 250 when a message is in '
      + 'memory on three machines.')
    .example('$0 up', 'run two stores, a gateway and a sink on this machine')
    .example('$0 send --count 1000', 'send a thousand messages through it')
    .strict()
    .check(onceEach)
    .demandCommand(1, 'which verb? twinpost --help lists them')
    .version(false)
    .help()
    .wrap(Math.min(100, context.terminal.columns))
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail((message: string | undefined, error: Error | undefined) => {
      // yargs comes here for its own complaints and for whatever a verb throws.
      if (error !== undefined && error.name !== 'YError') throw error;
      const known = optionsOf(cli);
      const why = whyNoVerb(args, wordsOf(verbs, context));
      throw new UsageError(why || complaint(message ?? 'the arguments could not be understood', args, known));
    });
  const verbs = await verbsFor(args[0]);
  for (const verb of verbs) verb(cli, context, (code) => { exitCode = code; });
  try {
    await cli.parseAsync();
    return exitCode;
  } catch (error) {
    for (const line of errorLines(error)) context.terminal.error(line);
    return error instanceof CliError ? error.exitCode : 1;
  }
}

/** Of the verb that was come to; yargs tells them, and not its types. */
function optionsOf(cli: Argv): readonly string[] {
  const { key } = (cli as Argv & { getOptions(): { readonly key: object } }).getOptions();
  return Object.keys(key).filter((name) => name !== 'version');
}

/** The one that is named; all of them for the help, and for words that may be meant. */
function verbsFor(word: string | undefined): Promise<readonly Verb[]> {
  const named = VERBS.get(word ?? '');
  return Promise.all(named === undefined ? [...VERBS.values()].map((load) => load()) : [named()]);
}

const SHORT_LENGTH = 4;

/** Options that take several values, after one another or by being given again. All others are given once. */
const SEVERAL: ReadonlySet<string> =
  new Set(['_', 'domain', 'eml', 'file', 'give-up', 'giveUp', 'id', 'partition', 'queue']);

function onceEach(args: Readonly<Record<string, unknown>>): true {
  const twice = Object.entries(args).find(([key, value]) => Array.isArray(value) && !SEVERAL.has(key));
  if (twice !== undefined) throw new UsageError(`--${twice[0]} is given more than once`);
  return true;
}

/** By group the verbs below it, by '' those of the command itself; yargs has them, and not in its types. */
type Words = ReadonlyMap<string, readonly string[]>;

interface Commands {
  getCommands(): readonly string[];
  getCommandHandlers(): Readonly<Record<string, { readonly builder: unknown }>>;
}

function commandsOf(cli: Argv): Commands {
  const { getInternalMethods: inside } = cli as Argv & {
    getInternalMethods(): { getCommandInstance(): Commands };
  };
  return inside.call(cli).getCommandInstance();
}

function wordsOf(verbs: readonly Verb[], context: CliContext): Words {
  const all = yargs([]);
  for (const verb of verbs) verb(all, context, () => undefined);
  const words = new Map<string, readonly string[]>([['', [...VERBS.keys()]]]);
  for (const [name, { builder }] of Object.entries(commandsOf(all).getCommandHandlers())) {
    const group = yargs([]);
    if (typeof builder === 'function') builder(group);
    words.set(name, commandsOf(group).getCommands());
  }
  return words;
}

/** What people of other mail servers type first. */
const OTHER_SERVERS: ReadonlyMap<string, string> = new Map([
  ['mailq', 'queue list'], ['postqueue', 'queue list or queue flush'], ['qshape', 'queue ages'],
  ['postcat', 'queue cat'], ['postsuper', 'queue hold, release or delete'], ['exiqgrep', 'queue find'],
]);

/** There is none, and which one may be meant: in that group, or without one in any. '' when there is. */
function whyNoVerb([word = '', second = '']: readonly string[], words: Words): string {
  if (word === '' || word.startsWith('-')) return '';
  const below = words.get(word) ?? [];
  if (!VERBS.has(word)) {
    const known = OTHER_SERVERS.get(word);
    if (known !== undefined) return `there is no verb '${word}'; here it is twinpost ${known}`;
    const meant = meantVerbs(word, [...words].flatMap(([group, names]) =>
      names.map((name) => [name, group === '' ? name : `${group} ${name}`] as const)));
    return `there is no verb '${word}'${meant || '; twinpost --help lists them'}`;
  }
  if (below.length === 0 || second === '' || second.startsWith('-') || below.includes(second)) return '';
  const meant = meantVerbs(second, below.map((name) => [name, name] as const));
  return `there is no verb '${word} ${second}'${meant || `; twinpost ${word} --help lists them`}`;
}

/** A short word with two other letters is another word. `verbs`: each behind its last word. */
function meantVerbs(word: string, verbs: readonly (readonly [last: string, whole: string])[]): string {
  const near = nearest(word, verbs.map(([last]) => last), word.length <= SHORT_LENGTH ? 1 : 2);
  const meant = verbs.filter(([last]) => last === near).map(([, whole]) => whole);
  const [alone] = meant.filter((whole) => whole === near);
  return meant.length === 0 ? '' : `. Did you mean ${alone ?? meant.join(' or ')}?`;
}

/** yargs' words, with what they leave out. `known`: options of the verb. */
function complaint(message: string, args: readonly string[], known: readonly string[]): string {
  const text = oneLine(message);
  const typed = args.slice(0, args.findIndex((word) => word.startsWith('-')) >>> 0);
  const help = `${['twinpost', ...typed, '--help'].join(' ')} shows what there is`;
  if (text.startsWith('Not enough non-option arguments')) return `${typed.join(' ')} of what? ${help}`;
  const [, missing] = /^Missing required arguments?: (.*)$/.exec(text) ?? [];
  if (missing !== undefined) {
    const needed = missing.split(', ');
    const typos = args.filter((word) => word.startsWith('--')).map((word) => word.slice(2).replace(/=.*/, ''))
      .filter((name) => !known.includes(name));
    for (const typo of typos) {
      const option = nearest(typo, needed);
      if (option !== undefined) return `Unknown argument: ${typo}. Did you mean --${option}? ${help}`;
    }
    return `${needed.map((name) => `--${name}`).join(' and ')} is missing; ${help}`;
  }
  const [, valueless] = /^Not enough arguments following: (.*)$/.exec(text) ?? [];
  if (valueless !== undefined) return `--${valueless} wants a value; ${help}`;
  if (!text.startsWith('Unknown argument')) return text;
  const [, odd = ''] = /^Unknown arguments?: ([^,]*)/.exec(text) ?? [];
  if (known.includes('id') && parseMessageId(odd) !== undefined) return `${text}: say --id ${odd}`;
  const isOption = odd !== '' && args.some((word) => word.startsWith(`--${odd}`));
  const option = isOption ? nearest(odd, known) : undefined;
  return option === undefined ? `${text}; ${help}` : `${text}. Did you mean --${option}? ${help}`;
}

function errorLines(error: unknown): readonly string[] {
  if (error instanceof CliError) {
    return error.message.split('\n').map((line, i) =>
      (i === 0 && !/:\d+: \S+: expected /.test(line) ? `twinpost: ${line}` : line));
  }
  return [`twinpost: ${error instanceof Error ? oneLine(error.message) : 'failed for a reason unknown'}`];
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, '; ');
}
