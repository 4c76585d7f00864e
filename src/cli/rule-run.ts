/**
 * How a standing rule is given or cancelled for a group: one gateway that answers writes it into the
 * register, and every gateway is asked until it obeys.
 *
 *   written ─► every gateway that may deliver mail obeys         ─► 0
 *           └─ or not within BOUND_MS; or one of them is silent, or does not reach the register
 *                                                               ─► 3, named: it obeys when it hears of it
 *
 * May deliver: it has a session at the register, or answers, or a store has a link to it. Who is cut off
 * from the register alone goes on with its partitions for as long as its stores let it, and hears of no
 * rule. It is not given the rule as with --local: it would write it into the register when it is back, though
 * somebody had cancelled it meanwhile. One that has none of these does not count: it reads the rules before
 * it starts anything.
 *
 * With --local every gateway that answers obeys at once, though the register is away, and writes it there
 * when that is back: 3.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  CancelRule, NewQueueRule, QueueRuleAnswer, QueueRulesAnswer, RuleIdAnswer,
} from '../admin-api/queue-rules.js';
import type { AdminClient } from './admin-client.js';
import { NoAnswer } from './admin-client.js';
import { CliError } from './context.js';
import type { Answered, Group, Missing } from './group.js';
import { missingText } from './group.js';

const POLL_MS = 100;
const BOUND_MS = 10_000;
/** What another gateway may be able to do: this one was not reached, or does not reach the register. */
const ASK_ANOTHER: ReadonlySet<number> = new Set([0, 503]);
/** It has no such route; another one may. */
const NO_ROUTE = 404;

export interface RuleOutcome {
  /** As those who answer have it. */
  readonly rules: readonly GroupRule[];
  /** Gateways that may deliver mail and do not obey, as far as can be told. */
  readonly unaware: readonly Unaware[];
  /** With --local: why the register does not have it; '' when it does. */
  readonly local: string;
  /** Then: what each gateway says of it that says something else. */
  readonly others?: readonly LocalAnswer[];
}

export interface Unaware {
  readonly id: string;
  /** Of its admin HTTP; '' when nobody says it. */
  readonly address: string;
  /** Why it did not answer; '' when it did. */
  readonly why: string;
}

export interface LocalAnswer {
  readonly gateway: string;
  /** As that its disk is full, so that a restart forgets it. */
  readonly why: string;
}

/** A rule as a group has it. */
export interface GroupRule extends QueueRuleAnswer {
  /** Who obeys. */
  readonly gateways: readonly string[];
  /** Who answers, and does not. */
  readonly not_obeyed_by: readonly string[];
}

export interface GivenRule {
  readonly id: string;
  /** What it leaves out (RuleIdAnswer); '' for nothing. */
  readonly shared: string;
  readonly outcome: RuleOutcome;
}

export async function giveRule(group: Group, rule: NewQueueRule): Promise<GivenRule> {
  const { rule: id, local, shared = '' } = await byOne(group, (client) => client.addRule(rule), NO_ROUTE);
  // Each has it from the operator, under one name.
  const outcome = local === '' ? await follow(group, (rules) => rules.some((one) => one.id === id))
    : await byEach(group, local, (client) => client.addRule({ ...rule, id }));
  return { id, shared, outcome };
}

/** Why nobody who answers can give one; '' when somebody can. */
export async function whyNoRule(group: Group): Promise<string> {
  const whys = (await answersOf(group)).map(({ answer }) => answer.why_no_more ?? '');
  return whys.includes('') ? '' : whys[0] ?? '';
}

export function idsOf(unaware: readonly Unaware[]): readonly string[] {
  return unaware.map(({ id }) => id);
}

export function unawareLines(unaware: readonly Unaware[]): readonly string[] {
  if (unaware.length === 0) return [];
  return [
    `NOT OBEYED YET by ${idsOf(unaware).join(', ')}, which may deliver mail: see that they reach the `
      + 'register, and that this command reaches them',
    ...unaware.filter(({ why }) => why !== '').map(({ why }) => `  ${why}`),
  ];
}

export async function cancelRules(
  group: Group, ids: readonly string[], order: CancelRule,
): Promise<RuleOutcome> {
  for (const id of ids) {
    try {
      const { local } = await byOne(group, (client) => client.cancelRule(id, order));
      if (local !== '') return await cancelByEach(group, ids, order, local);
    } catch (error) {
      // Somebody else was faster, or its time was over.
      if (!(error instanceof NoAnswer) || error.code !== 404 || ids.length === 1) throw error;
    }
  }
  return follow(group, (rules) => !rules.some(({ id }) => ids.includes(id)));
}

/** What those who answer obey, each rule once, in the order in which they were given. */
export async function rulesOf(group: Group): Promise<readonly GroupRule[]> {
  return merged(await answersOf(group));
}

async function cancelByEach(
  group: Group, ids: readonly string[], order: CancelRule, why: string,
): Promise<RuleOutcome> {
  return byEach(group, why, async (client) => {
    let told: RuleIdAnswer = { rule: '', local: '' };
    for (const id of ids) told = await client.cancelRule(id, order);
    return told;
  });
}

/** The register is away: whoever answers does it, and writes it there later. */
async function byEach(
  group: Group, local: string, ask: (client: AdminClient) => Promise<RuleIdAnswer>,
): Promise<RuleOutcome> {
  const told = await group.ask('gateway', ask);
  const others = told.map(({ id, answer }) => ({ gateway: id, why: answer.local }))
    .filter(({ why }) => why !== '' && why !== local);
  const answers = await answersOf(group);
  return { rules: merged(answers), unaware: group.missing('gateway').map(unawareOf), local, others };
}

async function byOne<T>(
  group: Group, ask: (client: AdminClient) => Promise<T>, askOn?: number,
): Promise<T> {
  let first: NoAnswer | undefined;
  // One that stands still would do it, too, as soon as it goes on.
  for (const { client } of group.answering('gateway')) {
    try {
      return await ask(client);
    } catch (error) {
      const isOthers = error instanceof NoAnswer && (ASK_ANOTHER.has(error.code) || error.code === askOn);
      if (!isOthers) throw error;
      // Why one that has the route can not is told rather than that another lacks it.
      if (first === undefined || first.code === askOn) first = error;
    }
  }
  if (first !== undefined) throw first;
  const [missing] = group.missing('gateway');
  throw new CliError(missing === undefined
    ? 'there is no gateway in this group: nothing was done' : `nothing was done: ${missingText(missing)}`);
}

async function follow(
  group: Group, isObeyed: (rules: readonly QueueRuleAnswer[]) => boolean,
): Promise<RuleOutcome> {
  const endMs = performance.now() + BOUND_MS;
  for (;;) {
    const answers = await answersOf(group);
    const late = answers.filter(({ answer }) => !isObeyed(answer.rules));
    // Who does not reach the register does not hear of it within our time, either.
    if (late.every(isCutOff) || performance.now() >= endMs) {
      return { rules: merged(answers), unaware: unawareAmong(group, answers, late), local: '' };
    }
    await sleep(POLL_MS);
  }
}

function unawareAmong(
  group: Group, answers: readonly Answered<QueueRulesAnswer>[], late: readonly Answered<QueueRulesAnswer>[],
): readonly Unaware[] {
  const aware = new Set(answers.filter((one) => !late.includes(one)).map(({ answer }) => answer.told_by));
  const living = answers.flatMap((one) => [one.answer.told_by, ...(isCutOff(one) ? [] : one.answer.living)]);
  const missing = new Map(group.missing('gateway').map((one) => [one.id, unawareOf(one)]));
  return [...new Set([...living, ...group.unheard.map(({ id }) => id)])].filter((id) => !aware.has(id)).sort()
    .map((id) => missing.get(id) ?? { id, address: addressAt(late, id), why: '' });
}

/** It sees the register as it was: who has died since lives there. */
function isCutOff({ answer: { register_away: away = '' } }: Answered<QueueRulesAnswer>): boolean {
  return away !== '';
}

function unawareOf(one: Missing): Unaware {
  return { id: one.id, address: one.address, why: missingText(one) };
}

function addressAt(answers: readonly Answered<QueueRulesAnswer>[], id: string): string {
  const url = answers.find(({ answer }) => answer.told_by === id)?.client.url;
  return url === undefined ? '' : new URL(url).host;
}

async function answersOf(group: Group): Promise<readonly Answered<QueueRulesAnswer>[]> {
  const answers = await group.ask('gateway', (client) => client.rules());
  if (answers.length > 0) return answers;
  const [missing] = group.missing('gateway');
  throw new CliError(missing === undefined
    ? 'there is no gateway in this group' : `no gateway answers: ${missingText(missing)}`);
}

function merged(answers: readonly Answered<QueueRulesAnswer>[]): readonly GroupRule[] {
  const byId = new Map<string, GroupRule>();
  const all = answers.map(({ answer }) => answer.told_by);
  for (const { answer: { told_by: gateway, rules } } of answers) {
    for (const rule of rules) {
      const known = byId.get(rule.id);
      const gateways = [...(known?.gateways ?? []), gateway];
      byId.set(rule.id, {
        ...rule, local: rule.local || known?.local === true,
        queues: rule.queues + (known?.queues ?? 0), messages: rule.messages + (known?.messages ?? 0),
        gateways, not_obeyed_by: all.filter((id) => !gateways.includes(id)),
      });
    }
  }
  return [...byId.values()].sort((a, b) => a.since - b.since);
}
