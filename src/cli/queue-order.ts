/**
 * `twinpost queue flush | hold | delay | release | rebind | delete | bounce | expire`: which messages
 * are meant, and how.
 * What becomes of them: order-run.ts.
 */
import type { Argv, Options } from 'yargs';
import { DELAY_SECONDS_MAX, GRACE_SECONDS_MAX, isFinal } from '../admin-api/queue-orders.js';
import type { OrderTerms, OrderVerb, QueueOrder, Selector } from '../admin-api/queue-orders.js';
import { isStandingVerb, whyNoTarget } from '../admin-api/queue-rules.js';
import { formatCount } from '../base/units.js';
import type { CliContext } from './context.js';
import { UsageError } from './context.js';
import { longExample } from './examples.js';
import { findGroup, withGroupOptions } from './group.js';
import { countArgument, durationArgument, timeArgument } from './numbers.js';
import { orderOf } from './operator.js';
import { REASON, number, text } from './options.js';
import { EXPECT_FROM, GRACE_FROM, GRACE_MS, OrderRun } from './order-run.js';
import type { OrderRunOptions, StandingTime } from './order-run.js';
import { secondsOf } from './queue-rule.js';
import { SELECTORS, selectorOf } from './selectors.js';

interface VerbText {
  readonly describe: string;
  readonly past: string;
  readonly example: string;
  readonly for: string;
}

const VERBS: Readonly<Record<OrderVerb, VerbText>> = {
  flush: {
    describe: 'try messages now that wait for their next attempt, and next hops that were down',
    past: 'are tried',
    example: '--domain example.com --reason "their server is mended"',
    for: 'a thousand a second',
  },
  hold: {
    describe: 'keep messages back until they are released',
    past: 'held',
    example: '--client 192.0.2.7 --reason "a flood?"',
    for: 'until twinpost queue release',
  },
  delay: {
    describe: 'attempt messages not before a time; their lifetime begins then',
    past: 'delayed',
    example: '--domain example.com --for 2h --reason "their backup runs"',
    for: 'twinpost queue release ends it',
  },
  release: {
    describe: 'let messages go on that are held or delayed',
    past: 'released',
    example: '--client 192.0.2.7 --reason "no flood"',
    for: 'behind what is due',
  },
  rebind: {
    describe: 'lead messages by another route; they stay in their partition',
    past: 'rebound',
    example: '--queue out/example.com --route smarthost --reason "their network is gone"',
    for: 'behind what waits there',
  },
  delete: {
    describe: 'do away with messages; their senders are not told',
    past: 'deleted',
    example: '--client 192.0.2.7 --dry-run --reason flood',
    for: 'how many that would be',
  },
  bounce: {
    describe: 'return messages to their senders',
    past: 'returned',
    example: '--domain gone.example --reason "domain is gone"',
    for: 'senders get a report',
  },
  expire: {
    describe: 'end messages as if their time were up',
    past: 'expired',
    example: '--older-than 2d --queue slow.example --reason "too late"',
    for: 'senders get a report',
  },
};

const OPTIONS = {
  ...SELECTORS,
  reason: REASON,
  'dry-run': { type: 'boolean', describe: 'say how many are meant, and do nothing' },
  expect: number('how many you expect: nothing is done if a tenth more are meant; needed to end, or rebind, '
    + `more than ${formatCount(EXPECT_FROM)}`),
  json: { type: 'boolean', describe: 'one JSON object a line: each gateway' },
} as const;

/** Of what can not be taken back by another order. */
const OF_FINAL = {
  grace: text('so long it can be taken back by Ctrl-C; by default '
    + `${String(GRACE_MS / 1000)}s to end or rebind mail of more than ${formatCount(GRACE_FROM)} recipients`),
  now: { type: 'boolean', describe: 'without --grace' },
  partial: { type: 'boolean', describe: 'although a gateway does not answer' },
} as const;

/** Of single verbs. */
const OF_DELAY = {
  until: text('not before this time, as 2026-12-24T18:00, of this machine, or with Z or +01:00 behind it'),
  for: text('not before so long from now, as 2h'),
} as const;

/** Of verbs that may stand. */
const OF_STANDING = {
  duration: text('it stands for so long, as 2h: mail that comes meanwhile is met, too'),
} as const;
const OF_HOLD = {
  ...OF_STANDING,
  'until-cancelled': { type: 'boolean', describe: 'it stands until twinpost rules cancel' },
} as const;

const OF_REBIND = { route: text('name of the route that they go by') } as const;

function optionsOf(verb: OrderVerb): Readonly<Record<string, Options>> {
  if (verb === 'delay') return { ...OF_DELAY, ...OF_STANDING };
  if (verb === 'hold') return OF_HOLD;
  if (!isFinal(verb)) return {};
  if (verb === 'rebind') return { ...OF_REBIND, ...OF_FINAL };
  return isStandingVerb(verb) ? { ...OF_STANDING, ...OF_FINAL } : OF_FINAL;
}

const EXIT_CODES = 'exit code: 0 done, 1 none is meant or not all could be done, 2 wrong usage, 3 somebody '
  + 'has not heard of it';

export function orderVerb(
  cli: Argv, context: CliContext, done: (code: number) => void, verb: OrderVerb,
): Argv {
  const { describe, example, for: what } = VERBS[verb];
  return cli.command(
    verb,
    describe,
    (args) => {
      const built = withGroupOptions(args, EXIT_CODES).options(OPTIONS);
      built.options(optionsOf(verb));
      return longExample(built, `$0 queue ${verb} ${example}`, what);
    },
    async (args) => {
      const json = args.json === true;
      const isDry = args['dry-run'] === true;
      const who = orderOf(`queue ${verb}`, args.reason);
      // To rebind, it says where mail goes to, not where it waits.
      const { route, ...others } = args;
      const selector = selectorOf(`queue ${verb}`, verb === 'rebind' ? others : { ...others, route });
      if (selector === undefined) {
        throw new UsageError(
          `queue ${verb}: say which messages: --id, --domain, --client …, or --everything`,
        );
      }
      const nowMs = Date.now();
      const terms = termsIn(verb, args, nowMs);
      const stands = standingIn(verb, args, terms, nowMs);
      const standing = stands !== undefined && verb === 'hold' ? { standing: true as const } : {};
      const order: QueueOrder = {
        verb, selector: stands === undefined ? selector : standingSelector(verb, selector, terms),
        ...terms, ...standing, ...who, ...(isDry ? { dry_run: true } : {}),
      };
      const expect = args.expect === undefined
        ? undefined : countArgument('expect', args.expect, 0, Number.MAX_SAFE_INTEGER);
      const options = {
        expect, ...finalIn(args), json,
        past: VERBS[verb].past, stands,
      };
      done(await new OrderRun(order, options, await findGroup(args, context), context).run());
    },
  );
}

/** Of what single verbs have: texts, or undefined. */
function termsIn(verb: OrderVerb, args: Readonly<Record<string, unknown>>, nowMs: number): OrderTerms {
  const { until, for: howLong, route } = args;
  if (verb === 'rebind') {
    if (typeof route !== 'string') throw new UsageError('queue rebind: say --route NAME');
    return { route };
  }
  if (verb !== 'delay') return {};
  let notBeforeMs: number;
  if (typeof until === 'string' && howLong === undefined) notBeforeMs = timeArgument('until', until);
  else if (typeof howLong === 'string' && until === undefined) {
    notBeforeMs = nowMs + durationArgument('for', howLong);
  } else throw new UsageError('queue delay: say --until TIME or --for DURATION, one of them');
  if (notBeforeMs <= nowMs || notBeforeMs > nowMs + DELAY_SECONDS_MAX * 1000) {
    throw new UsageError('queue delay: the time is to come, and within a year');
  }
  return { not_before_ms: Math.ceil(notBeforeMs) };
}

/** Undefined: it passes once. */
function standingIn(
  verb: OrderVerb, args: Readonly<Record<string, unknown>>, { not_before_ms: notBeforeMs }: OrderTerms,
  nowMs: number,
): StandingTime | undefined {
  const { duration, 'until-cancelled': isForEver } = args;
  if (!isStandingVerb(verb)) return undefined;
  const isTimed = typeof duration === 'string';
  if (isTimed && isForEver === true) {
    throw new UsageError(`queue ${verb}: say --duration or --until-cancelled`);
  }
  if (!isTimed) return isForEver === true ? { seconds: undefined } : undefined;
  const seconds = secondsOf(duration);
  const secondsMax = notBeforeMs === undefined ? Infinity : Math.ceil((notBeforeMs - nowMs) / 1000);
  if (seconds !== undefined && seconds > secondsMax) {
    throw new UsageError('queue delay: --duration goes no further than --for or --until: nothing is delayed '
      + 'from then on');
  }
  return { seconds };
}

/** One that stands means class mail, unless a class is said. */
function standingSelector(verb: OrderVerb, selector: Selector, terms: OrderTerms): Selector {
  const { everything: _all, ...said } = selector;
  const meant: Selector = { queue_class: 'mail', ...said };
  const why = isStandingVerb(verb) ? whyNoTarget(verb, { selector: meant, ...terms }) : '';
  if (why !== '') throw new UsageError(`queue ${verb}: ${why}`);
  return meant;
}

function finalIn(
  { grace, now, partial }: Readonly<Record<string, unknown>>,
): Pick<OrderRunOptions, 'graceMs' | 'isPartialWanted'> {
  const isPartialWanted = partial === true;
  if (typeof grace !== 'string') return { graceMs: now === true ? 0 : undefined, isPartialWanted };
  if (now === true) throw new UsageError('--now and --grace do not go together');
  const graceMs = durationArgument('grace', grace);
  if (graceMs > GRACE_SECONDS_MAX * 1000) throw new UsageError('--grace is an hour at most');
  return { graceMs, isPartialWanted };
}
