/**
 * `twinpost rescue`: a process that takes no mail and delivers that of gateways of its group that stay dead; and
 * `twinpost rescue --force`, by which an operator has queues taken without a store that does not come back.
 */
import type { Argv } from 'yargs';
import { GATEWAY_URL, TOKEN_HELP, addressHelp, adminAddress } from './admin-address.js';
import { AdminClient } from './admin-client.js';
import type { RescueAnswer } from './admin-client.js';
import { loadFor } from './config-file.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { longExample } from './examples.js';
import { orderOf } from './operator.js';
import { runRole } from './run-role.js';

/** Many queues are looked through, of which some begin to be claimed. */
const TIMEOUT_MS = 10_000;

interface RescueArguments {
  readonly config: string | undefined;
  readonly 'state-dir': string | undefined;
  readonly force: boolean | undefined;
  readonly queue: string | undefined;
  readonly owner: string | undefined;
  readonly missing: string | undefined;
  readonly reason: string | undefined;
  readonly gateway: string | undefined;
  readonly token: string | undefined;
}

export function rescueCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'rescue',
    'deliver the mail of gateways that stay dead; --force: go on without a store',
    (args) =>
      longExample(args
        .option('config', { alias: 'c', type: 'string', requiresArg: true, describe: 'configuration file with a section gateway, whose group it serves' })
        .option('state-dir', { type: 'string', requiresArg: true, describe: 'folder for the incarnation number, instead of gateway.state_dir' })
        .option('force', { type: 'boolean', describe: 'have queues taken without a store; mail may be lost or repeated' })
        .option('queue', { type: 'string', requiresArg: true, describe: 'with --force: the queue of this name, of each owner; with --owner of that one only' })
        .option('owner', { type: 'string', requiresArg: true, describe: 'with --force: all queues of this gateway; with --queue that one only' })
        .option('missing', { type: 'string', requiresArg: true, describe: 'with --force: the store that does not come back' })
        .option('reason', { type: 'string', requiresArg: true, describe: 'with --force: why, for the log' })
        .option('gateway', { alias: 'from', type: 'string', requiresArg: true, describe: `with --force: ${addressHelp('the gateway that takes them', GATEWAY_URL)}` })
        .option('token', { type: 'string', requiresArg: true, describe: TOKEN_HELP })
        .example('$0 rescue --config rescue.yaml', 'stand by for the gateways of the group'),
        '$0 rescue --force --owner gw-1 --missing store-b --reason "disk burnt"', 'take what store-a has, and give up what only store-b had'),
    async (args) => {
      if (args.force === true) done(await force(args, context));
      else await standBy(args, context, done);
    },
  );
}

async function standBy(args: RescueArguments, context: CliContext, done: (code: number) => void): Promise<void> {
  if ([args.queue, args.owner, args.missing, args.reason].some((value) => value !== undefined)) throw new CliError('rescue: --queue, --owner, --missing and --reason belong to --force');
  const { gateway, file } = loadFor('gateway', args.config, args['state-dir'], context, 'rescue');
  if (gateway === undefined) throw new CliError(`${file}:1: gateway: expected this section, found nothing`);
  if (!gateway.group.some((id) => id !== gateway.id)) throw new CliError(`${file}: gateway.group: expected the gateways to rescue, found none besides ${gateway.id}`);
  if (!gateway.rescue) throw new CliError(`${file}: gateway.rescue: expected on, found off`);
  done(await runRole('rescue', () => context.roles.gateway({ ...gateway, workers: 1, smtp: { ...gateway.smtp, listen: [] } }), context));
}

async function force(args: RescueArguments, context: CliContext): Promise<number> {
  if (args.queue === undefined && args.owner === undefined) throw new CliError('rescue --force: say --queue NAME, --owner GATEWAY, or both');
  if (args.missing === undefined) throw new CliError('rescue --force: say which store is --missing');
  const order = orderOf('rescue --force', args.reason ?? '');
  const { url, token } = adminAddress({ from: args.gateway, token: args.token }, context);
  const { missing } = args;
  const answer = await new AdminClient(url, token, TIMEOUT_MS).rescue({ queue: args.queue, owner: args.owner, missing, ...order });
  context.terminal.error(`WARNING: what only ${missing} knew is given up: mail may be lost, or delivered twice. It is logged who did this and why.`);
  for (const line of outcomeLines(answer, missing)) context.terminal.print(line);
  return answer.waiting.length + answer.elsewhere.length + answer.gone.length > 0 ? 1 : 0;
}

/** What came of it, the queues that need the same in one line. */
function outcomeLines({ queues, later, waiting, elsewhere, gone }: RescueAnswer, missing: string): string[] {
  const lines: string[] = [];
  const counted = (names: readonly string[]): string => `${String(names.length)} queue${names.length === 1 ? '' : 's'}`;
  if (queues.length > 0) lines.push(`${counted(queues)} taken without ${missing}: ${queues.join(', ')}`);
  if (later.length > 0) lines.push(`${counted(later)} to be taken as soon as a mirror is filled, unless one tells that another process has it: ${later.join(', ')}`);
  for (const [options, names] of grouped(waiting.map(({ queue, also_needed: stores }) => [stores.map((store) => `--missing ${store}`).join(', and with '), queue]))) lines.push(`${counted(names)} not taken yet: ${names.join(', ')}; also needed: the same with ${options}, or start what is silent`);
  if (elsewhere.length > 0) lines.push(`${counted(elsewhere)} not given up: no store has a copy any more, and another gateway may have the mail in memory: ${elsewhere.join(', ')}; twinpost status says which, and how to give it up`);
  for (const [stores, names] of grouped(gone.map(({ queue, export_from: from }) => [from.join(', '), queue]))) lines.push(`${counted(names)} given up, for no store that answers is in the set: ${names.join(', ')}${stores === '' ? '' : `; a copy that counts for nothing is at ${stores}: twinpost store export`}`);
  return lines;
}

function grouped(pairs: readonly (readonly [string, string])[]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const [key, name] of pairs) groups.set(key, [...(groups.get(key) ?? []), name]);
  return groups;
}
