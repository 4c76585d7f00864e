/** `twinpost send`: submits many messages and tells how fast they were taken. */
import { readFileSync } from 'node:fs';
import type { Argv } from 'yargs';
import { formatCount, formatDuration } from '../base/units.js';
import { parseMix } from '../load/options.js';
import type { SendOptions, SendProgress, SendReport } from '../load/options.js';
import { runSend } from '../load/run.js';
import type { Target } from '../load/session.js';
import type { CliContext, Terminal } from './context.js';
import { CliError, UsageError } from './context.js';
import { addressArgument, countArgument, durationArgument } from './numbers.js';
import { number, numberOr, text, textOr } from './options.js';
import { ALIAS_CHOICES } from './export/spool-plan.js';
import { sendSpool } from './send-spool.js';

const BAR_CELLS = 30;

function sendOptions(args: Argv) {
  return args
    .option('to', textOr('127.0.0.1:2525', 'address of the gateway'))
    .option('count', { alias: 'n', type: 'number', requiresArg: true, default: 1000, describe: 'messages' })
    .option('connections', numberOr(10, 'at the same time'))
    .option('mix', text('sizes and weights: 1KB:70,10KB:30'))
    .option('eml', {
      type: 'string', array: true, requiresArg: true, describe: 'send the contents of these files in turn',
    })
    .option(
      'spool',
      text('submit the messages of this folder (store export, queue export), each with its own envelope'),
    )
    .option('aliases', {
      choices: ALIAS_CHOICES,
      describe: 'mail of --spool that an alias led on goes to the address that was written to, once, also to '
        + 'members of a list who have it; or to what the alias led to, which reports may then name',
    })
    .option('rate', number('messages a second at most'))
    .option('from', { type: 'string', describe: 'reverse-path; empty for the null reverse-path' })
    .option('domain', {
      type: 'string', array: true, requiresArg: true,
      describe: 'recipient domains, taken in turn; each is a queue if it has a route',
    })
    .option('messages-per-connection', number('then connect anew (default: never)'))
    .option('tls', {
      choices: ['none', 'starttls', 'implicit'] as const, default: 'none' as const,
      describe: 'TLS after STARTTLS, or from the first byte; the certificate is verified',
    })
    .option('ca', text('PEM file of who signs the certificate (default: whom Node trusts)'))
    .option('tls-name', text('name by which the server chooses its certificate, which must bear it (default: '
      + 'that of --to)'))
    .option('user', text('AUTH PLAIN as this user; needs TLS'))
    .option('password-file', text('its first line is the password'))
    .option('pipelining', { type: 'boolean', default: true, describe: 'use PIPELINING if offered' })
    .option('resend', { type: 'boolean', default: false, describe: 'send again what got a 4xx or no reply' })
    .option('patience', textOr('30s', 'give up when nothing was accepted for so long'))
    .option('log', text('write each try to this file, for sink --send-log'))
    .option('seed', number('chooses sizes from the mix'))
    .option('json', { type: 'boolean', default: false, describe: 'print the report as one JSON object' })
    .example('$0 send --count 10000 --connections 50 --mix 1KB:70,10KB:30', 'the mix of the paper')
    .example('$0 send --eml mail.eml --count 1', 'one message of your own');
}

type SendArguments = Awaited<ReturnType<ReturnType<typeof sendOptions>['parseAsync']>>;

export function sendCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('send', 'submit messages and measure', sendOptions, async (args) => {
    const { terminal } = context;
    if (args.spool !== undefined) {
      void context.untilStopped();
      const timeoutMs = durationArgument('patience', args.patience);
      const { spool: folder, aliases, json } = args;
      const spool = { folder, aliases, to: targetOf(args), timeoutMs, json };
      done(await orOneLine(sendSpool(spool, context)));
      return;
    }
    const options = fromArguments(args, context);
    void context.untilStopped();
    const report = await orOneLine(runSend(options)).finally(() => {
      if (terminal.errorIsTty && !args.json) terminal.error('');
    });
    if (args.json) terminal.print(JSON.stringify(report));
    else printReport(report, terminal);
    done(report.accepted === report.count ? 0 : 1);
  });
}

async function orOneLine<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(error instanceof Error ? error.message : 'send failed');
  }
}

function targetOf(args: SendArguments): Target {
  const { tls, ca, user } = args;
  const { 'password-file': passwordFile, 'tls-name': tlsName } = args;
  if ((user === undefined) !== (passwordFile === undefined)) {
    throw new UsageError('--user and --password-file go together');
  }
  const needy = Object.entries({ ca, user, 'tls-name': tlsName }).find(([, value]) => value !== undefined);
  if (tls === 'none' && needy !== undefined) {
    throw new UsageError(`--${needy[0]} needs --tls starttls or --tls implicit`);
  }
  if (tlsName !== undefined && !/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i.test(tlsName)) {
    throw new UsageError(`--tls-name: '${tlsName}' is no host name`);
  }
  return {
    ...addressArgument('to', args.to),
    tls,
    ...(ca === undefined ? {} : { caFile: ca }),
    ...(tlsName === undefined ? {} : { tlsName }),
    ...(user === undefined || passwordFile === undefined
      ? {} : { credentials: { user, password: readPassword(passwordFile) } }),
  };
}

function fromArguments(args: SendArguments, context: CliContext): SendOptions {
  const mix = args.mix === undefined ? undefined : parseMix(args.mix);
  if (typeof mix === 'string') throw new UsageError(`--${mix}`);
  if (args.rate !== undefined && !(args.rate > 0)) {
    throw new UsageError(`--rate is a number above 0, found ${String(args.rate)}`);
  }
  return {
    ...targetOf(args),
    count: countArgument('count', args.count, 1, 1_000_000_000),
    connections: countArgument('connections', args.connections, 1, 10_000),
    pipelining: args.pipelining,
    resend: args.resend,
    patienceMs: durationArgument('patience', args.patience),
    signal: context.stopSignal,
    ...(mix === undefined ? {} : { mix }),
    ...(args.eml === undefined ? {} : { eml: args.eml.map((file) => readFile('eml', file)) }),
    ...(args.rate === undefined ? {} : { rate: args.rate }),
    ...(args.from === undefined ? {} : { from: args.from }),
    ...(args.domain === undefined ? {} : { domains: args.domain }),
    ...(args['messages-per-connection'] === undefined ? {} : {
      messagesPerConnection: countArgument(
        'messages-per-connection', args['messages-per-connection'], 1, 1_000_000_000,
      ),
    }),
    ...(args.log === undefined ? {} : { log: args.log }),
    ...(args.seed === undefined ? {} : { seed: countArgument('seed', args.seed, 0, 0xffffffff) }),
    ...(context.terminal.errorIsTty && !args.json
      ? { onProgress: (progress: SendProgress) => { context.terminal.error(progressText(progress)); } } : {}),
  };
}

function readFile(option: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new CliError(
      `--${option}: '${file}' can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`,
    );
  }
}

function readPassword(file: string): string {
  return readFile('password-file', file).toString('utf8').replace(/\r?\n.*$/s, '');
}

/** Ends where it began: the bar is rewritten in place. */
function progressText(progress: SendProgress): string {
  const done = (progress.accepted + progress.failed) / Math.max(1, progress.count);
  const filled = Math.min(BAR_CELLS, Math.floor(done * BAR_CELLS));
  const rate = progress.elapsedMs > 0 ? (progress.accepted * 1000) / progress.elapsedMs : 0;
  const failed = progress.failed === 0 ? '' : `, ${formatCount(progress.failed)} failed`;
  return `\r[${'#'.repeat(filled)}${'.'.repeat(BAR_CELLS - filled)}] ${formatCount(progress.accepted)} of `
    + `${formatCount(progress.count)}, ${formatCount(rate)}/s${failed}\u001b[K\r`;
}

function printReport(report: SendReport, terminal: Terminal): void {
  const ms = (value: number): string => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`;
  terminal.print(`accepted   ${formatCount(report.accepted)} of ${formatCount(report.count)} in `
    + `${formatDuration(report.elapsedMs)}: ${formatCount(report.acceptedPerSecond)}/s`);
  terminal.print(`response   mean ${ms(report.responseMs.mean)}   p50 ${ms(report.responseMs.p50)}   p99 `
    + `${ms(report.responseMs.p99)}   max ${ms(report.responseMs.max)}`);
  if (report.accepted < report.count || report.resent > 0) {
    terminal.print(
      `not taken  refused ${formatCount(report.refused)}, no reply ${formatCount(report.unanswered)}, not `
        + `finished ${formatCount(report.unfinished)}; sent again ${formatCount(report.resent)}`,
    );
  }
  for (const [reply, text] of Object.entries(report.samples)) {
    terminal.print(`  ${reply} ×${formatCount(report.replies[reply] ?? 0)}: ${text}`);
  }
  for (const [why, count] of Object.entries(report.connectionErrors)) {
    terminal.print(`  connection ×${formatCount(count)}: ${why}`);
  }
}
