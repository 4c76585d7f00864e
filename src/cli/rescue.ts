/**
 * `twinpost rescue`: a process that takes no mail and delivers that of gateways of its group that stay dead;
 * and the one order that loses mail, `twinpost rescue --give-up STORE …`: partitions whose every copy is at
 * these stores, which do not come back, begin empty. Those that only wait for what these may know go on by
 * what the others know.
 *
 *   --give-up ─► every gateway says what waits for it
 *             ├─ nothing does: nothing is done, exit code 3
 *             └─ what it may cost is told ─► "yes" typed at the terminal, or --yes given ─► ordered, of each
 *                                         └─ anything else; or --yes, and a process that lives has mail
 *                                            of it in memory: nothing is done, exit code 1
 *
 * A partition may wait at several: at its owner, and at who rescues for it. Would one alone go on without the
 * stores, it may hand the partition to another that waits for them still, and take it over again: where every
 * store must answer.
 *
 * Partitions that have ended, and wait only to tell these stores so, wait no more by the same order.
 *
 * The commands that status and log print have no --yes: they are for an operator, who is asked.
 */
import type { Argv, Options } from 'yargs';
import type { StatusAnswer, UntoldEndsAnswer, WaitingPartitionAnswer } from '../admin-api/gateway-answers.js';
import type { RescueAnswer, RescueOrder } from '../admin-api/orders.js';
import type { GatewayConfig } from '../config/types.js';
import { RESCUE_ORDER } from '../recovery/ownership/waiting.js';
import { NoAnswer } from './admin-client.js';
import type { AdminClient } from './admin-client.js';
import { gatewayFile } from './config-file.js';
import type { CliContext, Terminal } from './context.js';
import { CliError, UsageError } from './context.js';
import { longExample } from './examples.js';
import { requireLogFile } from './folders.js';
import { GROUP_OPTIONS, findGroup, missingText, reportMissing } from './group.js';
import type { Group, GroupArguments } from './group.js';
import { orderOf } from './operator.js';
import { runRole } from './run-role.js';
import { counted, printable } from './tables.js';

/** No partition waits for what was to be given up. */
const NOTHING_WAITS = 3;
const COPIES_AWAY = 'copies away';
/** Refusals of who has nothing to do with the order: nothing waits for it there; a store is unknown there. */
const NOTHING_THERE = 409;
const UNKNOWN = 404;
const NOTHING_DONE: RescueAnswer = { partitions: [], ended: [] };
const CUT_OFF = 'Who is only cut off may have in memory what the stores lack, and wait for the same: look '
  + 'there first.';
const HELD = 'rescue: a living process has mail in memory, which --yes does not give up; nothing was done. '
  + 'Let it reach the register and the stores first, or, if that mail may be lost, stop it; or give the '
  + 'order at a terminal';
const ONLY = 'Only this gateway is asked (--only). Another one that waits for the same needs the order, too: '
  + 'until then a partition may go to and fro between them.';

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
  yes: {
    type: 'boolean',
    describe: 'with --give-up: do not ask; for scripts. Refused where a living process has mail of it in '
      + 'memory',
  },
  json: {
    type: 'boolean',
    describe: 'with --give-up: one JSON object a line: each partition that goes on, once for each gateway '
      + 'where it waited',
  },
  ...GROUP_OPTIONS,
} as const satisfies Record<string, Options>;

interface RescueArguments extends GroupArguments {
  readonly config: string | undefined;
  readonly 'state-dir': string | undefined;
  readonly 'give-up': readonly string[] | undefined;
  readonly 'give-up-memory': boolean | undefined;
  readonly reason: string | undefined;
  readonly yes: boolean | undefined;
  readonly json: boolean | undefined;
}

export function rescueCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'rescue',
    'deliver the mail of gateways that stay dead; --give-up: go on without copies',
    (args) =>
      longExample(args
        .options(OPTIONS)
        .epilogue('Exit code of --give-up: 0 done, 3 nothing waits for it, or a gateway that may '
          + 'deliver mail did not hear it, 2 wrong usage, 1 anything else.')
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
  requireLogFile(file.config, undefined);
  done(await runRole('rescue', () => context.roles.gateway(file), context));
}

/** Throws where there is nobody to rescue. */
function asRescue(gateway: GatewayConfig, file: string): GatewayConfig {
  if (gateway.group?.every((id) => id === gateway.id) === true) {
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
  const group = await findGroup(args, context);
  const asked = (await group.ask('gateway', (client) => client.status()))
    .map(({ answer }) => meantAt(answer, stores));
  if (asked.length === 0) throw new CliError(nobodyText(group));
  const others = together(asked, ({ away }) => otherLines(away, stores));
  const risky = asked.filter(({ partitions, unnamed }) => partitions.length + unnamed > 0);
  if (risky.length === 0 && asked.every(({ ends }) => ends.length === 0)) {
    for (const line of others) terminal.error(line);
    const what = others.length === 0 ? nameOf(stores) : `${nameOf(stores)} alone`;
    const where = listOf(asked.map(({ gateway }) => gateway));
    terminal.error(`twinpost: rescue: no partition at ${where} waits for ${what}; nothing was done`);
    for (const line of unaskedLines(group)) terminal.error(line);
    return NOTHING_WAITS;
  }
  const holders = holderLines(asked);
  const warnings = [
    ...(risky.length > 0 ? [costText(risky, stores)] : []),
    ...together(asked, (one) => warningLines(one, stores)),
    ...together(asked, ({ ends }) => endLines(ends, stores)),
    ...others,
    ...holders,
    ...answeringLines(group, asked),
    ...(args.only === true && risky.length > 0 ? [ONLY] : []),
    ...unaskedLines(group),
  ];
  for (const line of warnings) terminal.error(line);
  if (args.yes === true && holders.length > 0) throw new CliError(HELD);
  if (args.yes !== true && (await terminal.ask('Type yes to go on: ')).trim() !== 'yes') {
    throw new CliError('rescue: not confirmed, nothing was done');
  }
  return give(group, order, asked, args.json === true, terminal);
}

/** What a gateway says of the order before it is given. */
interface Meant {
  readonly gateway: string;
  readonly partitions: readonly WaitingPartitionAnswer[];
  /** Partitions that wait for some copies, and are not named in status: it may be about them. */
  readonly unnamed: number;
  /** All that wait for copies, and an order is for, as far as status names them. */
  readonly away: readonly WaitingPartitionAnswer[];
  /** What it has in memory, and waits for something else. */
  readonly held: readonly WaitingPartitionAnswer[];
  readonly ends: readonly UntoldEndsAnswer[];
}

function meantAt(
  { gateway, waiting, waiting_for: counts, ends_untold: ends }: StatusAnswer, stores: readonly string[],
): Meant {
  const all = waiting.filter((one) => one.waits_for === COPIES_AWAY);
  // What a living process has waits for that one, and for no order.
  const away = all.filter((one) => one.why.includes(RESCUE_ORDER));
  return {
    gateway, away, partitions: away.filter((one) => isMeant(one, stores)),
    held: waiting.filter((one) => one.waits_for !== COPIES_AWAY && (one.messages ?? 0) > 0),
    unnamed: Math.max(0, counts.copies_away - all.length),
    ends: ends.filter((one) => one.stores.every((store) => stores.includes(store))),
  };
}

/** Lines of each gateway, those of the same words once; whose they are is said where there are several. */
function together<T extends { readonly gateway: string }>(
  asked: readonly T[], linesOf: (one: T) => readonly string[],
): readonly string[] {
  const byLine = new Map<string, string[]>();
  for (const one of asked) {
    for (const line of linesOf(one)) byLine.set(line, [...(byLine.get(line) ?? []), one.gateway]);
  }
  return [...byLine].map(([line, gateways]) => (asked.length === 1 ? line : `${listOf(gateways)}: ${line}`));
}

/** Who lives, and is cut off from the register or the stores, may have alone what begins empty elsewhere. */
function holderLines(asked: readonly Meant[]): string[] {
  const meant = new Set(asked.flatMap(({ partitions }) => partitions.map(({ partition }) => partition)));
  const mayMeanMore = asked.some(({ unnamed }) => unnamed > 0);
  return asked.flatMap(({ gateway, held }) => {
    const ours = held.filter(({ partition }) => mayMeanMore || meant.has(partition));
    if (ours.length === 0) return [];
    const messages = ours.reduce((sum, one) => sum + (one.messages ?? 0), 0);
    const what = listOf([...new Set(ours.map((one) => one.waits_for))]);
    return [`${printable(gateway)} LIVES, waits for ${what}, and has ${counted(messages, 'message')} in `
      + `memory, which this order may LOSE: ${listOf(ours.map(({ partition }) => partition))}. Let it reach `
      + 'the register and the stores instead: it goes on by itself.'];
  });
}

/** A store that we reach is not dead. */
function answeringLines(group: Group, asked: readonly Meant[]): string[] {
  const awaited = new Set(asked.flatMap(({ partitions }) => partitions.flatMap(({ copies }) => copies)));
  const silent = new Set(group.missing('store').map(({ id }) => id));
  return group.members.filter(({ kind, id }) => kind === 'store' && awaited.has(id) && !silent.has(id))
    .map(({ id }) => `${printable(id)} ANSWERS at its admin address: who waits for it does not reach it. `
      + 'Mend that instead: what it has is delivered then.');
}

/** Who has no session at the register may only be cut off from it. */
function unaskedLines(group: Group): readonly string[] {
  const unasked = group.missing('gateway').map((one) => `NOT ASKED: ${missingText(one)}`);
  return unasked.length === 0 ? [] : [...unasked, CUT_OFF];
}

function nobodyText(group: Group): string {
  const [first] = group.missing('gateway');
  return first === undefined
    ? 'there is no gateway in this group: nothing was done' : `nothing was done: ${missingText(first)}`;
}

/** All that answered are asked, whatever they said: what waits may have changed since. */
async function give(
  group: Group, order: RescueOrder, asked: readonly Meant[], isJson: boolean, terminal: Terminal,
): Promise<number> {
  const told = await group.ask('gateway', (client) => answerTo(client, order));
  const refusals = told.flatMap(({ answer }) => (answer instanceof NoAnswer ? [answer] : []));
  const [first] = refusals;
  if (first !== undefined && refusals.length === told.length) {
    // One of these may be where it waits. Who is away was named before.
    const unheard = group.unheard.filter(({ how }) => how !== 'away');
    reportMissing(unheard, told.length, isJson, terminal);
    const refusal = refusals.find(({ code }) => code === NOTHING_THERE);
    if (refusal === undefined) throw first;
    terminal.error(`twinpost: ${refusal.message}`);
    return NOTHING_WAITS;
  }
  const results = told.map(({ id, answer }) => {
    const meant = asked.find(({ gateway }) => gateway === id)?.partitions ?? [];
    return {
      gateway: id, answer: answer instanceof NoAnswer ? NOTHING_DONE : answer,
      meant: new Map(meant.map((one) => [one.partition, one.begins_empty])),
    };
  });
  const lines = isJson ? results.flatMap((one) => jsonLines(one, order.give_up))
    : together(results, (one) => resultLines(one, order.give_up));
  for (const line of lines) terminal.print(line);
  return reportMissing(group.unheard, told.length, isJson, terminal);
}

/** In place of an answer: nothing waits for it there, or these stores are unknown there. */
async function answerTo(client: AdminClient, order: RescueOrder): Promise<RescueAnswer | NoAnswer> {
  try {
    return await client.rescue(order);
  } catch (error) {
    if (error instanceof NoAnswer && (error.code === NOTHING_THERE || error.code === UNKNOWN)) return error;
    throw error;
  }
}

interface Result {
  readonly gateway: string;
  readonly answer: RescueAnswer;
  /** Of each partition that status named, whether it begins empty. */
  readonly meant: ReadonlyMap<string, boolean>;
}

function jsonLines({ gateway, answer: { partitions, ended } }: Result, gaveUp: readonly string[]): string[] {
  return [
    ...partitions.map((partition) => JSON.stringify({ gateway, partition, gave_up: gaveUp })),
    ...ended.map((partition) => JSON.stringify({ gateway, partition, gave_up: gaveUp, ended: true })),
  ];
}

function resultLines({ answer: { partitions, ended }, meant }: Result, stores: readonly string[]): string[] {
  const gone = partitions.filter((partition) => meant.get(partition) === true);
  const others = partitions.filter((partition) => meant.get(partition) === false);
  const unnamed = partitions.filter((partition) => !meant.has(partition));
  const lines: string[] = [];
  if (gone.length > 0) {
    // Not before stores take them: no store does that has a copy of a process that lives.
    lines.push(`${counted(gone.length, 'partition')} will begin empty: ${listOf(gone)}`);
  }
  if (others.length > 0) lines.push(goOnText(others, stores));
  if (unnamed.length > 0) {
    lines.push(`${counted(unnamed.length, 'more partition')} had it, too; status says which of them `
      + `begin empty: ${listOf(unnamed)}`);
  }
  if (ended.length > 0) lines.push(`${endedText(ended.length, stores)}: ${listOf(ended)}`);
  return lines;
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

/** Whether the order is about this partition: as a gateway judges it. */
function isMeant({ copies }: WaitingPartitionAnswer, stores: readonly string[]): boolean {
  if (stores.length === 0) return copies.length === 0;
  return copies.length > 0 && copies.every((store) => stores.includes(store));
}

function costText(risky: readonly Meant[], stores: readonly string[]): string {
  const give = risky.length === 1 ? 'gives' : 'give';
  return `WARNING: ${listOf(risky.map(({ gateway }) => gateway))} ${give} up ${nameOf(stores)}: mail that is `
    + 'nowhere else is LOST, and mail may be delivered twice. It is logged who did this and why.';
}

/** Which partitions it is about as far as status names them. */
function warningLines({ partitions, unnamed }: Meant, stores: readonly string[]): string[] {
  const names = partitions.filter((one) => one.begins_empty).map((one) => one.partition);
  const others = partitions.filter((one) => !one.begins_empty).map((one) => one.partition);
  const lines: string[] = [];
  if (names.length > 0) {
    const have = names.length === 1 ? 'has' : 'have';
    lines.push(
      `${counted(names.length, 'partition')} ${have} no other copy and will begin EMPTY: ${listOf(names)}`,
    );
  }
  if (others.length > 0) lines.push(goOnText(others, stores));
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
