/**
 * `twinpost queue suspend | resume | refuse | allow`: standing rules over queues, or whose mail is refused,
 * which every gateway obeys until they are taken back (gateway/orders/queue-rules.ts). How they get there is
 * rule-run.ts.
 */
import type { Argv } from 'yargs';
import { RULE_SECONDS_MAX, refusedBy, targetText, whyNoTarget } from '../admin-api/queue-rules.js';
import type { RuleTarget, RuleVerb } from '../admin-api/queue-rules.js';
import { Wildcards } from '../base/wildcards.js';
import type { CliContext } from './context.js';
import { UsageError } from './context.js';
import { longExample } from './examples.js';
import { NOT_ALL_KNOW, findGroup, reportMissing, withGroupOptions } from './group.js';
import { durationArgument } from './numbers.js';
import { orderOf } from './operator.js';
import { nearestQueue } from './queue-list.js';
import { REASON, text } from './options.js';
import { cancelRules, giveRule, idsOf, rulesOf, unawareLines } from './rule-run.js';
import type { GroupRule, RuleOutcome } from './rule-run.js';
import { SELECTORS, selectorOf } from './selectors.js';
import type { SelectorArguments } from './selectors.js';
import { counted, printable } from './tables.js';

interface RuleText {
  readonly verb: RuleVerb;
  readonly describe: string;
  readonly example: string;
  readonly for: string;
}

const GIVE: Readonly<Record<'suspend' | 'refuse', RuleText>> = {
  suspend: {
    verb: 'suspend',
    describe: 'start no deliveries from queues until they are resumed; new mail is taken',
    example: "example.com --duration 2h --reason 'their server is down'",
    for: 'their mail waits',
  },
  refuse: {
    verb: 'refuse',
    describe: 'take no new mail for queues or recipients, or of a client or sender, until it is allowed: 452 '
      + 'at RCPT, or MAIL. Not by --site: which hosts take mail is not known before it is sent',
    example: "example.com --reason 'their mailboxes move'",
    for: 'clients keep the mail',
  },
};

const TAKE_BACK: Readonly<Record<'resume' | 'allow', RuleText>> = {
  resume: {
    verb: 'suspend',
    describe: 'end the suspensions that say exactly this',
    example: "example.com --reason 'it is back'",
    for: 'in order, where they stopped',
  },
  allow: {
    verb: 'refuse',
    describe: 'take mail again: ends the refusals that say exactly this',
    example: "example.com --reason moved",
    for: 'at the next RCPT',
  },
};

const QUEUE = {
  type: 'string',
  describe: "name of a queue, as queue summary shows it; '*' stands for anything; NAME/CLASS: not of mail",
} as const;

/** In the place of a name; by domain its own queue, where it has one. */
const OF_SUSPEND = { route: SELECTORS.route, site: SELECTORS.site, domain: SELECTORS.domain } as const;
const OF_REFUSE = {
  route: SELECTORS.route, client: SELECTORS.client, sender: SELECTORS.sender, domain: SELECTORS.domain,
  rcpt: SELECTORS.rcpt,
} as const;

export const LOCAL = {
  type: 'boolean',
  describe: 'at once at each gateway that answers, though the register is away; registered when it is back',
} as const;

export const JSON_OPTION = { type: 'boolean', describe: 'one JSON object: what came of it' } as const;

const EXIT_CODES =
  'exit code: 0 every gateway that may deliver obeys, 3 not yet, 2 wrong usage, 1 anything else';
const PATTERN = /^[\x20-\x7e]{1,300}$/;

export function giveRuleVerb(
  cli: Argv, context: CliContext, done: (code: number) => void, word: keyof typeof GIVE,
): Argv {
  const { verb, describe, example, for: what } = GIVE[word];
  return cli.command(
    `${word} [name]`,
    describe,
    (args) => longExample(
      withTarget(withGroupOptions(args, EXIT_CODES), verb).option('reason', REASON)
        .option('duration', text('it ends by itself after so long, as 2h')).option('local', LOCAL)
        .option('json', JSON_OPTION),
      `$0 queue ${word} ${example}`, what,
    ),
    async (args) => {
      const order = orderOf(`queue ${word}`, args.reason);
      const target = targetIn(word, verb, args);
      const said = targetText(target);
      const seconds = secondsOf(args.duration);
      const end = seconds === undefined ? {} : { duration_seconds: seconds };
      const given = { verb, ...target, ...order, ...end, ...localOf(args.local) };
      const group = await findGroup(args, context);
      const { id, shared, outcome } = await giveRule(group, given);
      const of = outcome.rules.find((rule) => rule.id === id);
      if (args.json === true) {
        const { queues = 0, messages = 0, until = null } = of ?? {};
        const rest = shared === '' ? {} : { shared };
        const what = { order: word, queue: said, rule: id, queues, messages, until, ...rest };
        return done(toldJson(what, outcome, context));
      }
      const now = of === undefined ? '' : `: ${matchedText(of)}`;
      const state = verb === 'suspend' ? 'is suspended' : 'takes no new mail';
      const mail = mailText(verb, target);
      const line = mail === '' ? `${said} ${state}${now}` : `new ${mail} is refused; rule ${id}`;
      context.terminal.print(printable(line));
      const named = of?.queues === 0 && mail === '' && !said.includes('*') ? target.queue : undefined;
      const near = named === undefined ? undefined : await nearestQueue(group, named);
      if (near !== undefined) context.terminal.print(printable(`Did you mean ${near}?`));
      if (shared !== '') context.terminal.print(printable(`NOT ALL: ${shared}`));
      done(told(outcome, context));
    },
  );
}

export function takeBackVerb(
  cli: Argv, context: CliContext, done: (code: number) => void, word: keyof typeof TAKE_BACK,
): Argv {
  const { verb, describe, example, for: what } = TAKE_BACK[word];
  return cli.command(
    `${word} [name]`,
    describe,
    (args) => longExample(
      withTarget(withGroupOptions(args, EXIT_CODES), verb).option('reason', REASON)
        .option('local', LOCAL).option('json', JSON_OPTION),
      `$0 queue ${word} ${example}`, what,
    ),
    async (args) => {
      const order = orderOf(`queue ${word}`, args.reason);
      const target = targetIn(word, verb, args);
      const said = targetText(target);
      const group = await findGroup(args, context);
      const standing = (await rulesOf(group)).filter((rule) => rule.verb === verb);
      const meant = standing.filter((rule) => rule.queue.toLowerCase() === said.toLowerCase());
      if (meant.length === 0) {
        const others = standing.map((rule) => rule.queue).join(', ');
        const but = others === '' ? '' : `; there is one of ${others}`;
        // Whoever is silent may have one of its own, by --local.
        const missing = group.missing('gateway');
        const where = missing.length === 0 ? '' : ' at those who answer';
        context.terminal.error(printable(`twinpost: no rule to ${verb} '${said}' stands${where}${but}`));
        return done(reportMissing(missing, 1, args.json === true, context.terminal) || 1);
      }
      const given = { ...order, ...localOf(args.local) };
      const cancelled = meant.map(({ id }) => id);
      const outcome = await cancelRules(group, cancelled, given);
      const left = outcome.rules.filter((rule) => rule.verb === verb && mayMeet(rule.queue, said))
        .map((rule) => rule.queue);
      if (args.json === true) {
        const what = { order: word, queue: said, cancelled, still_standing: left };
        return done(toldJson(what, outcome, context));
      }
      const state = verb === 'suspend' ? 'goes on' : 'takes mail again';
      const mail = mailText(verb, target);
      const line = mail === '' ? `${said} ${state}` : `${mail} is taken again`;
      context.terminal.print(printable(line));
      if (left.length > 0) {
        context.terminal.print(printable(`rules that may still ${verb} some of that: ${left.join(', ')}`));
      }
      done(told(outcome, context));
    },
  );
}

/**
 * Two rules, as operators write them, may mean the same mail. That they do not is known of names alone: a
 * route, a host and a domain may each be that of any queue.
 */
function mayMeet(one: string, other: string): boolean {
  if (one.startsWith('--') || other.startsWith('--')) return true;
  const names = [one, other].map((name) => name.toLowerCase().replace(/\/mail$/, ''));
  const [a = '', b = ''] = names;
  if (!names.every((name) => name.includes('*'))) {
    return new Wildcards([a]).matches(b) || new Wildcards([b]).matches(a);
  }
  const [start = '', from = ''] = names.map((name) => name.slice(0, name.indexOf('*')));
  const [end = '', to = ''] = names.map((name) => name.slice(name.lastIndexOf('*') + 1));
  return (start.startsWith(from) || from.startsWith(start)) && (end.endsWith(to) || to.endsWith(end));
}

/** A queue may come later: a name that none has yet is as good as another. */
function matchedText({ id, queues, messages }: GroupRule): string {
  const now = queues === 0
    ? 'NOTHING MATCHES now (twinpost queue summary lists queues), it is for queues that come'
    : `${counted(queues, 'queue')} with ${counted(messages, 'message')} now`;
  return `${now}; rule ${id}`;
}

/** The exit code. */
export function told({ unaware, local, others = [] }: RuleOutcome, { terminal }: CliContext): number {
  if (local !== '') {
    const text = 'in force at the gateways that answer; each writes it into the register when it can';
    terminal.print(printable(`LOCAL: ${text}: ${local}`));
    for (const { gateway, why } of others) terminal.print(printable(`LOCAL at ${gateway}: ${why}`));
    if (unaware.length > 0) terminal.print(printable(`NOT HEARD by ${idsOf(unaware).join(', ')}`));
    return NOT_ALL_KNOW;
  }
  for (const line of unawareLines(unaware)) terminal.print(printable(line));
  for (const { id, address, why } of unaware) {
    if (address === '') continue;
    const then = why === '' ? '' : 'once it answers: ';
    const how = `the same command with --local --only --from ${address}`;
    terminal.print(printable(`  ${then}${id} obeys at once by ${how}`));
  }
  return unaware.length > 0 ? NOT_ALL_KNOW : 0;
}

/** The same as one object. */
export function toldJson(
  what: object, { unaware, local, others = [] }: RuleOutcome, { terminal }: CliContext,
): number {
  const isPartial = unaware.length > 0 || local !== '';
  const open = isPartial ? { partial: true, not_obeyed_by: idsOf(unaware), local, local_at: others } : {};
  terminal.print(JSON.stringify({ ...what, ...open }));
  return isPartial ? NOT_ALL_KNOW : 0;
}

export function localOf(local: boolean | undefined): { readonly local?: true } {
  return local === true ? { local } : {};
}

/** Whose mail is refused, or for whom; '' where it is over queues. */
function mailText(verb: RuleVerb, target: RuleTarget): string {
  const by = refusedBy({ verb, ...target });
  return by === undefined ? '' : `mail ${by === 'sender' ? 'of' : 'for'} ${targetText(target)}`;
}

function withTarget<T>(args: Argv<T>, verb: RuleVerb): Argv<T & TargetArguments> {
  const named = args.positional('name', QUEUE);
  const built: unknown = verb === 'suspend' ? named.options(OF_SUSPEND) : named.options(OF_REFUSE);
  return built as Argv<T & TargetArguments>;
}

interface TargetArguments extends Partial<SelectorArguments> {
  readonly name: string | undefined;
}

function targetIn(
  word: string, verb: RuleVerb, { name, route, site, client, sender, domain, rcpt }: TargetArguments,
): RuleTarget {
  const selector = selectorOf(`queue ${word}`, { route, site, client, sender, domain, rcpt });
  const queue = name?.trim();
  if (queue !== undefined && !PATTERN.test(queue)) {
    throw new UsageError(`queue ${word}: the name of a queue is printable ASCII`);
  }
  const target = {
    ...(queue === undefined ? {} : { queue }), ...(selector === undefined ? {} : { selector }),
  };
  const why = whyNoTarget(verb, target);
  if (why !== '') throw new UsageError(`queue ${word}: ${why}`);
  return target;
}

export function secondsOf(duration: string | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const seconds = Math.ceil(durationArgument('duration', duration) / 1000);
  if (seconds < 1 || seconds > RULE_SECONDS_MAX) {
    throw new UsageError('--duration is from a second to ten years; without it the rule stands until you end '
      + 'it');
  }
  return seconds;
}
