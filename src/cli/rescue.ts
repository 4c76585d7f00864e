/**
 * `twinpost rescue`: a process that takes no mail and delivers that of gateways of its group that stay dead;
 * and the one order that loses mail, `twinpost rescue --give-up STORE …`: partitions whose every copy is at
 * these stores, which do not come back, begin empty. Those that only wait for what these may know go on by
 * what the others know.
 *
 *   --give-up ─► what it may cost is told ─► "yes" typed at the terminal, or --yes given ─► ordered
 *             │                           └─ anything else: nothing is done, exit code 1
 *             └─ nothing waits for it: nothing is done, exit code 3
 *
 * Partitions that have ended, and wait only to tell these stores so, wait no more by the same order.
 *
 * The commands that status and log print have no --yes: they are for an operator, who is asked.
 */
import type { Argv, Options } from 'yargs';
import type { StatusAnswer, UntoldEndsAnswer, WaitingPartitionAnswer } from '../admin-api/gateway-answers.js';
import type { RescueAnswer, RescueOrder } from '../admin-api/orders.js';
import type { GatewayConfig } from '../config/types.js';
import { ACCESS_OPTIONS, GATEWAY_URL, addressHelp, adminAddress } from './admin-address.js';
import type { AccessArguments } from './admin-address.js';
import { AdminClient, NoAnswer } from './admin-client.js';
import { gatewayFile } from './config-file.js';
import type { CliContext, Terminal } from './context.js';
import { CliError, UsageError } from './context.js';
import { longExample } from './examples.js';
import { orderOf } from './operator.js';
import { runRole } from './run-role.js';
import { counted, printable } from './tables.js';

const TIMEOUT_MS = 10_000;
/** No partition waits for what was to be given up. */
const NOTHING_WAITS = 3;
const COPIES_AWAY = 'copies away';

const OPTIONS = {
  config: {
    alias: 'c', type: 'string', requiresArg: true,
    describe: 'configuration file with a section gateway, whose group it serves',
  },
  'state-dir': {
    type: 'string', requiresArg: true,
    describe: 'folder of what it knows of itself, instead of gateway.state_dir',
  },
  'give-up': {
    type: 'string', array: true, nargs: 1, requiresArg: true,
    describe: 'a store that does not come back; may be given again. Partitions whose every copy is at these '
      + 'stores '
      + 'begin empty; mail is lost or repeated: it asks before',
  },
  'give-up-memory': {
    type: 'boolean', describe: 'the same for what no store has, only a process that does not come back',
  },
  reason: { type: 'string', requiresArg: true, describe: 'with --give-up: why, for the log' },
  yes: { type: 'boolean', describe: 'with --give-up: do not ask; for scripts' },
  json: { type: 'boolean', describe: 'with --give-up: one JSON object a line: each partition that goes on' },
  gateway: {
    alias: 'from', type: 'string', requiresArg: true,
    describe: `with --give-up: ${addressHelp('the gateway whose partitions wait', GATEWAY_URL)}`,
  },
  ...ACCESS_OPTIONS,
} as const satisfies Record<string, Options>;

interface RescueArguments extends AccessArguments {
  readonly config: string | undefined;
  readonly 'state-dir': string | undefined;
  readonly 'give-up': readonly string[] | undefined;
  readonly 'give-up-memory': boolean | undefined;
  readonly reason: string | undefined;
  readonly yes: boolean | undefined;
  readonly json: boolean | undefined;
  readonly gateway: string | undefined;
}

export function rescueCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'rescue',
    'deliver the mail of gateways that stay dead; --give-up: go on without copies',
    (args) =>
      longExample(args
        .options(OPTIONS)
        .epilogue('Exit code of --give-up: 0 done, 3 nothing waits for it, 2 wrong usage, 1 anything else.')
        .example('$0 rescue --config rescue.yaml', 'stand by for the gateways of the group'),
        '$0 rescue --give-up store-a --give-up store-b --reason "fire in hall 2"',
        'go on without mail that only these two had; status prints the command that is needed'),
    async (args) => {
      if (args['give-up'] !== undefined || args['give-up-memory'] === true) done(await giveUp(args, context));
      else await standBy(args, context, done);
    },
  );
}

async function standBy(
  args: RescueArguments, context: CliContext, done: (code: number) => void,
): Promise<void> {
  if ([args.reason, args.yes, args.json].some((value) => value !== undefined)) {
    throw new UsageError('rescue: --reason, --yes and --json belong to --give-up');
  }
  const file = gatewayFile(args.config, args['state-dir'], context, 'rescue', asRescue);
  done(await runRole('rescue', () => context.roles.gateway(file), context));
}

/** Throws where there is nobody to rescue. */
function asRescue(gateway: GatewayConfig, file: string): GatewayConfig {
  if (!gateway.group.some((id) => id !== gateway.id)) {
    throw new CliError(
      `${file}: gateway.group: expected the gateways to rescue, found none besides ${gateway.id}`,
    );
  }
  if (!gateway.rescue) throw new CliError(`${file}: gateway.rescue: expected on, found off`);
  return { ...gateway, workers: 1, smtp: { ...gateway.smtp, listen: [] } };
}

async function giveUp(args: RescueArguments, context: CliContext): Promise<number> {
  const { terminal } = context;
  const stores = [...new Set(args['give-up'])];
  const order = orderFor(args, stores, terminal);
  const { url, access } = adminAddress({ ...args, from: args.gateway }, context);
  const client = new AdminClient(url, access, TIMEOUT_MS, '--gateway');
  const status = await client.status();
  const away = status.waiting.filter((one) => one.waits_for === COPIES_AWAY);
  const meant = away.filter((one) => isMeant(one, stores));
  const unnamed = status.waiting_for.copies_away - away.length;
  const others = otherLines(away, stores);
  const ends = status.ends_untold.filter((one) => one.stores.every((store) => stores.includes(store)));
  if (meant.length === 0 && unnamed <= 0 && ends.length === 0) {
    for (const line of others) terminal.error(line);
    const what = others.length === 0 ? nameOf(stores) : `${nameOf(stores)} alone`;
    terminal.error(
      `twinpost: rescue: no partition at ${printable(status.gateway)} waits for ${what}; nothing was done`,
    );
    return NOTHING_WAITS;
  }
  const isRisk = meant.length > 0 || unnamed > 0;
  const warnings = isRisk ? warningLines(status, stores, meant, unnamed) : [];
  for (const line of [...warnings, ...endLines(ends, stores), ...others]) terminal.error(line);
  if (args.yes !== true && (await terminal.ask('Type yes to go on: ')).trim() !== 'yes') {
    throw new CliError('rescue: not confirmed, nothing was done');
  }
  const answer = await answerTo(() => client.rescue(order), terminal);
  if (answer === undefined) return NOTHING_WAITS;
  const named = new Map(meant.map((one) => [one.partition, one.begins_empty]));
  const isJson = args.json === true;
  printAnswer(answer, { gateway: status.gateway, stores, meant: named, isJson }, terminal);
  return 0;
}

interface Ordered {
  readonly gateway: string;
  readonly stores: readonly string[];
  /** Of each partition that status named, whether it begins empty. */
  readonly meant: ReadonlyMap<string, boolean>;
  readonly isJson: boolean;
}

function printAnswer(
  { partitions, ended }: RescueAnswer, { gateway, stores, meant, isJson }: Ordered, terminal: Terminal,
): void {
  if (isJson) {
    for (const partition of partitions) {
      terminal.print(JSON.stringify({ gateway, partition, gave_up: stores }));
    }
    for (const partition of ended) {
      terminal.print(JSON.stringify({ gateway, partition, gave_up: stores, ended: true }));
    }
    return;
  }
  const gone = partitions.filter((partition) => meant.get(partition) === true);
  const others = partitions.filter((partition) => meant.get(partition) === false);
  const unnamed = partitions.filter((partition) => !meant.has(partition));
  if (gone.length > 0) {
    const begin = gone.length === 1 ? 'begins' : 'begin';
    terminal.print(`${counted(gone.length, 'partition')} ${begin} empty: ${listOf(gone)}`);
  }
  if (others.length > 0) terminal.print(goOnText(others, stores));
  if (unnamed.length > 0) {
    terminal.print(`${counted(unnamed.length, 'more partition')} had it, too; status says which of them `
      + `began empty: ${listOf(unnamed)}`);
  }
  if (ended.length > 0) {
    terminal.print(`${endedText(ended.length, stores)}: ${listOf(ended)}`);
  }
}

/** What is ended by the same order costs nothing. */
function endLines(ends: readonly UntoldEndsAnswer[], stores: readonly string[]): string[] {
  const count = ends.reduce((sum, { partitions }) => sum + partitions, 0);
  if (count === 0) return [];
  return [
    `${endedText(count, stores)}: no mail is lost by that. A store that comes back after all is told to drop `
      + 'its copies.',
  ];
}

function endedText(count: number, stores: readonly string[]): string {
  const [have, wait] = count === 1 ? ['has', 'waits'] : ['have', 'wait'];
  return `${counted(count, 'partition')} that ${have} ended ${wait} for ${listOf(stores)} no more`;
}

/** Throws when the arguments do not go together, or nobody could be asked. */
function orderFor(args: RescueArguments, stores: readonly string[], terminal: Terminal): RescueOrder {
  const memory = args['give-up-memory'] === true;
  if (memory && stores.length > 0) {
    throw new UsageError('rescue: --give-up and --give-up-memory are two orders: give one after the other');
  }
  const order = orderOf('rescue', args.reason ?? '');
  if (args.yes !== true && !terminal.canAsk) {
    const how = 'give it at a terminal, or with --yes';
    throw new UsageError(`rescue: mail may be lost or delivered twice, so it asks first: ${how}`);
  }
  return { give_up: stores, ...(memory ? { memory } : {}), ...order };
}

/** Undefined when nothing waits for it. */
async function answerTo(
  order: () => Promise<RescueAnswer>, terminal: Terminal,
): Promise<RescueAnswer | undefined> {
  try {
    return await order();
  } catch (error) {
    if (!(error instanceof NoAnswer) || error.code !== 409) throw error;
    terminal.error(`twinpost: ${error.message}`);
    return undefined;
  }
}

/** Whether the order is about this partition: as a gateway judges it. */
function isMeant({ copies }: WaitingPartitionAnswer, stores: readonly string[]): boolean {
  if (stores.length === 0) return copies.length === 0;
  return copies.length > 0 && copies.every((store) => stores.includes(store));
}

/** What it costs, and which partitions it is about as far as status names them. */
function warningLines(
  { gateway }: StatusAnswer, stores: readonly string[], meant: readonly WaitingPartitionAnswer[],
  unnamed: number,
): string[] {
  const names = meant.filter((one) => one.begins_empty).map((one) => one.partition);
  const others = meant.filter((one) => !one.begins_empty).map((one) => one.partition);
  const lines = [
    `WARNING: ${printable(gateway)} gives up ${nameOf(stores)}: mail that is nowhere else is LOST, and mail `
      + `may be `
      + 'delivered twice. It is logged who did this and why.',
  ];
  if (names.length > 0) {
    const have = names.length === 1 ? 'has' : 'have';
    lines.push(
      `${counted(names.length, 'partition')} ${have} no other copy and will begin EMPTY: ${listOf(names)}`,
    );
  }
  if (others.length > 0) lines.push(goOnText(others, stores));
  const ofOthers = meant.filter((one) => !one.begins_empty && one.owner !== gateway);
  const owners = [...new Set(ofOthers.map(({ owner }) => owner))];
  if (owners.length > 0) {
    const live = owners.length === 1 ? 'lives, it' : 'live, they';
    lines.push(`If ${listOf(owners)} ${live} may wait for the same: status there asks for an order of its `
      + 'own.');
  }
  if (unnamed > 0) {
    lines.push(`It may be about some of ${counted(unnamed, 'more partition')} that status does not name.`);
  }
  return lines;
}

/** Partitions that one of these stores has, and another as well: any copy is enough for them. */
function otherLines(away: readonly WaitingPartitionAnswer[], stores: readonly string[]): string[] {
  const groups = new Map<string, string[]>();
  for (const { partition, copies } of away) {
    const rest = copies.filter((store) => !stores.includes(store));
    if (rest.length === 0 || rest.length === copies.length) continue;
    const key = listOf(rest);
    groups.set(key, [...(groups.get(key) ?? []), partition]);
  }
  return [...groups].map(([rest, names]) => {
    const [have, go] = names.length === 1 ? ['has', 'is'] : ['have', 'are'];
    return `${counted(names.length, 'partition')} ${have} another copy at ${rest}, and ${go} left as before: `
      + `${listOf(names)}; start that, or name it too if it never comes back`;
  });
}

function goOnText(names: readonly string[], stores: readonly string[]): string {
  const [wait, go] = names.length === 1 ? ['waits', 'goes'] : ['wait', 'go'];
  return `${counted(names.length, 'partition')} ${wait} for ${listOf(stores)} no more, and ${go} on with the `
    + `mail that the other stores have: ${listOf(names)}`;
}

function listOf(names: readonly string[]): string {
  return names.map(printable).join(', ');
}

function nameOf(stores: readonly string[]): string {
  if (stores.length === 0) return 'what only a process had in memory';
  return `the copies at ${listOf(stores)}`;
}
