/**
 * `twinpost rescue`: a process that takes no mail and delivers that of gateways of its group that stay dead; and
 * `twinpost rescue --force`, by which an operator has partitions taken without a store that does not come back.
 *
 *   --force ─► what it may cost is told ─► "yes" typed at the terminal, or --yes given ─► ordered ─► what came of it
 *                                      └─ anything else: nothing is done, exit code 1
 *
 * The commands that status and log print have no --yes: they are for an operator, who is asked.
 */
import type { Argv } from 'yargs';
import type { StatusAnswer } from '../admin-api/gateway-answers.js';
import type { RescueAnswer } from '../admin-api/orders.js';
import { GATEWAY_URL, TOKEN_HELP, addressHelp, adminAddress } from './admin-address.js';
import { AdminClient } from './admin-client.js';
import { loadFor } from './config-file.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { longExample } from './examples.js';
import { orderOf } from './operator.js';
import { runRole } from './run-role.js';
import { counted, printable } from './tables.js';

/** Many partitions are looked through, of which some begin to be claimed. */
const TIMEOUT_MS = 10_000;

interface RescueArguments {
  readonly config: string | undefined;
  readonly 'state-dir': string | undefined;
  readonly force: boolean | undefined;
  readonly partition: string | undefined;
  readonly owner: string | undefined;
  readonly missing: string | undefined;
  readonly reason: string | undefined;
  readonly yes: boolean | undefined;
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
        .option('force', { type: 'boolean', describe: 'have partitions taken without a store; mail may be lost or repeated: it asks before' })
        .option('partition', { type: 'string', requiresArg: true, describe: 'with --force: the partition of this name, of each owner; with --owner of that one only' })
        .option('owner', { type: 'string', requiresArg: true, describe: 'with --force: all partitions of this gateway; with --partition that one only' })
        .option('missing', { type: 'string', requiresArg: true, describe: 'with --force: the store that does not come back' })
        .option('reason', { type: 'string', requiresArg: true, describe: 'with --force: why, for the log' })
        .option('yes', { type: 'boolean', describe: 'with --force: do not ask; for scripts' })
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
  if ([args.partition, args.owner, args.missing, args.reason, args.yes].some((value) => value !== undefined)) throw new CliError('rescue: --partition, --owner, --missing, --reason and --yes belong to --force');
  const { gateway, file } = loadFor('gateway', args.config, args['state-dir'], context, 'rescue');
  if (gateway === undefined) throw new CliError(`${file}:1: gateway: expected this section, found nothing`);
  if (!gateway.group.some((id) => id !== gateway.id)) throw new CliError(`${file}: gateway.group: expected the gateways to rescue, found none besides ${gateway.id}`);
  if (!gateway.rescue) throw new CliError(`${file}: gateway.rescue: expected on, found off`);
  done(await runRole('rescue', () => context.roles.gateway({ ...gateway, workers: 1, smtp: { ...gateway.smtp, listen: [] } }), context));
}

async function force(args: RescueArguments, context: CliContext): Promise<number> {
  if (args.partition === undefined && args.owner === undefined) throw new CliError('rescue --force: say --partition NAME, --owner GATEWAY, or both');
  if (args.missing === undefined) throw new CliError('rescue --force: say which store is --missing');
  const order = orderOf('rescue --force', args.reason ?? '');
  const { terminal } = context;
  if (args.yes !== true && !terminal.canAsk) throw new CliError('rescue --force: mail may be lost or delivered twice, so it asks first: give it at a terminal, or with --yes');
  const { url, token } = adminAddress({ from: args.gateway, token: args.token }, context);
  const { partition, owner, missing } = args;
  const client = new AdminClient(url, token, TIMEOUT_MS);
  for (const line of warningLines(await client.status(), { partition, owner, missing })) terminal.error(line);
  if (args.yes !== true && (await terminal.ask('Type yes to go on: ')).trim() !== 'yes') throw new CliError('rescue --force: not confirmed, nothing was done');
  const answer = await client.rescue({ partition, owner, missing, ...order });
  for (const line of outcomeLines(answer, missing)) terminal.print(line);
  return answer.waiting.length + answer.elsewhere.length + answer.gone.length > 0 ? 1 : 0;
}

/** What it may cost, and which partitions it is about as far as status names them. */
function warningLines(status: StatusAnswer, wanted: { readonly partition: string | undefined; readonly owner: string | undefined; readonly missing: string }): string[] {
  const { partition, owner, missing } = wanted;
  const lines = [`WARNING: ${printable(status.gateway)} gives up what only ${missing} knows: mail may be lost, or delivered twice. It is logged who did this and why.`];
  const meant = status.held.filter((one) => one.waits_for.includes(missing) && (partition ?? one.partition) === one.partition && (owner ?? one.owner) === one.owner);
  const names = meant.map((one) => `${one.partition} of ${one.owner} (${one.state}${one.messages === null ? '' : `, ${counted(one.messages, 'message')}`})`);
  if (names.length > 0) lines.push(`It is about ${printable(names.join(', '))}.`);
  const unnamed = status.partitions_held - status.held.length;
  if (unnamed > 0) lines.push(`It may be about some of ${counted(unnamed, 'more held partition')} that status does not name.`);
  return lines;
}

/** What came of it, the partitions that need the same in one line. */
function outcomeLines({ partitions, later, waiting, elsewhere, gone }: RescueAnswer, missing: string): string[] {
  const lines: string[] = [];
  const partitionsOf = (names: readonly string[]): string => counted(names.length, 'partition');
  if (partitions.length > 0) lines.push(`${partitionsOf(partitions)} taken without ${missing}: ${partitions.join(', ')}`);
  if (later.length > 0) lines.push(`${partitionsOf(later)} to be taken as soon as a mirror is filled, unless one tells that another process has it: ${later.join(', ')}`);
  for (const [options, names] of grouped(waiting.map(({ partition, also_needed: stores }) => [stores.map((store) => `--missing ${store}`).join(', and with '), partition]))) lines.push(`${partitionsOf(names)} not taken yet: ${names.join(', ')}; also needed: the same with ${options}, or start what is silent`);
  if (elsewhere.length > 0) lines.push(`${partitionsOf(elsewhere)} not given up: no store has a copy any more, and another gateway may have the mail in memory: ${elsewhere.join(', ')}; twinpost status says which, and how to give it up`);
  for (const [stores, names] of grouped(gone.map(({ partition, export_from: from }) => [from.join(', '), partition]))) lines.push(`${partitionsOf(names)} given up, for no store that answers is in the set: ${names.join(', ')}${stores === '' ? '' : `; a copy that counts for nothing is at ${stores}: twinpost store export`}`);
  return lines;
}

function grouped(pairs: readonly (readonly [string, string])[]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const [key, name] of pairs) groups.set(key, [...(groups.get(key) ?? []), name]);
  return groups;
}
