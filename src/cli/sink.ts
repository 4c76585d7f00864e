/** `twinpost sink`: takes all mail, counts it, can make trouble on purpose and judge what arrived. */
import type { Argv } from 'yargs';
import { addressText } from '../base/address-text.js';
import { formatBytes, formatCount } from '../base/units.js';
import type { FileKeys } from '../config/keys/schema.js';
import type { RunningSink, SinkOptions } from '../sink/options.js';
import { startSink } from '../sink/sink.js';
import type { VerifyReport } from '../sink/verify.js';
import { loadFor } from './config-file.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { addressArgument, countArgument, durationArgument, shareArgument } from './numbers.js';
import { number, text } from './options.js';
import { runRole } from './run-role.js';

function sinkOptions(args: Argv) {
  return args
    .option('config', { alias: 'c', ...text('configuration file with a section sink') })
    .option('listen', text('address (default 127.0.0.1:2526)'))
    .option('admin', text('address of GET /report, /counts, /inbox, /tally and /healthz (default none)'))
    .option('inbox', { type: 'boolean', describe: 'keep the last messages, for twinpost inbox' })
    .option('lmtp', { type: 'boolean', describe: 'speak LMTP' })
    .option('verify', {
      type: 'boolean', describe: 'judge what arrived: lost, duplicated, altered, out of order',
    })
    .option('send-log', text('log of `send --log`, to judge by'))
    .option('displacement', number('messages that may overtake one (0: strict order)'))
    .option('arrival-log', text('write one line a message to this file'))
    .option('maildir', text('keep mail in this folder'))
    .option('latency', text('wait before each reply to a final dot'))
    .option('defer-rate', number('share answered 451 after the final dot'))
    .option('reject-rate', number('share answered 550 after the final dot'))
    .option('cut-after-dot', number('share kept, then cut without a reply'))
    .option('seed', number('seed of the rates (default 1)'))
    .example('$0 sink --verify', 'Ctrl-C prints what arrived and what is wrong with it')
    .example('$0 sink --latency 50ms --defer-rate 0.1', 'a slow next hop that defers every tenth message');
}

type SinkArguments = Awaited<ReturnType<ReturnType<typeof sinkOptions>['parseAsync']>>;

export function sinkCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('sink', 'receive mail and count it', sinkOptions, async (args) => {
    const config =
      args.config === undefined ? undefined : loadFor('sink', args.config, undefined, context).sink;
    if (args.config !== undefined && config === undefined) {
      throw new CliError(`${args.config}:1: sink: expected this section, found nothing`);
    }
    const options = fromArguments(args, config);
    let verdict: VerifyReport | undefined;
    const code = await runRole('sink', async () => {
      const sink = await startSink(options);
      return {
        summary:
          `sink listens on ${addressText(options.host, sink.port)}${options.lmtp === true ? ' (LMTP)' : ''}`,
        stop: async () => {
          if (options.verify === true) verdict = await sink.report();
          await sink.close();
          printCounts(sink, context);
        },
      };
    }, context);
    if (verdict !== undefined) printVerdict(verdict, context);
    done(verdict === undefined || verdict.ok ? code : 1);
  });
}

function fromArguments(args: SinkArguments, config: FileKeys['sink']): SinkOptions {
  const listen = args.listen === undefined
    ? (config?.listen ?? { host: '127.0.0.1', port: 2526 }) : addressArgument('listen', args.listen);
  const admin = args.admin === undefined ? config?.admin : addressArgument('admin', args.admin);
  const maildir = args.maildir ?? config?.maildir;
  return {
    host: listen.host,
    port: listen.port,
    lmtp: args.lmtp ?? config?.lmtp ?? false,
    verify: args.verify
      ?? (args['send-log'] !== undefined || args['arrival-log'] !== undefined || config?.verify === true),
    latencyMs: args.latency === undefined ? 0 : durationArgument('latency', args.latency),
    deferRate: shareArgument('defer-rate', args['defer-rate'] ?? 0),
    rejectRate: shareArgument('reject-rate', args['reject-rate'] ?? 0),
    cutAfterDot: shareArgument('cut-after-dot', args['cut-after-dot'] ?? 0),
    seed: countArgument('seed', args.seed ?? 1, 0, 0xffffffff),
    displacementMax: countArgument('displacement', args.displacement ?? 0, 0, 1_000_000),
    ...(args['send-log'] === undefined ? {} : { sendLog: args['send-log'] }),
    ...(args['arrival-log'] === undefined ? {} : { arrivalLog: args['arrival-log'] }),
    ...(maildir === undefined ? {} : { maildir }),
    ...(args.inbox === true ? { inbox: true } : {}),
    ...(config?.tls === undefined ? {} : { tls: config.tls }),
    ...(admin === undefined ? {} : { admin }),
  };
}

function printCounts(sink: RunningSink, context: CliContext): void {
  const { counts } = sink;
  context.terminal.print(
    `sink: ${formatCount(counts.messages)} messages, ${formatBytes(counts.bytes)}, `
      + `${formatCount(counts.recipients)} recipients; deferred ${formatCount(counts.deferred)}, rejected `
      + `${formatCount(counts.rejected)}, cut ${formatCount(counts.cut)}, reports `
          + `${formatCount(counts.reports)}`,
  );
}

function printVerdict(verdict: VerifyReport, context: CliContext): void {
  context.terminal.print(JSON.stringify(verdict, null, 2));
  context.terminal.print(verdict.ok
    ? 'verify: nothing lost, altered, duplicated or out of order' : 'verify: FAILED, see above');
}
