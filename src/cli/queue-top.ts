/**
 * `twinpost queue top`: the queues of all gateways that are busiest or hurt most, drawn anew each second. A
 * queue that several gateways have is one row. How fast it grows comes of two looks, so the first one has no
 * rates. What is wrong with a queue: its next hop (down), an operator (suspended), or what
 * gateway/queue/hurting-queues.ts finds. One whose next hop refuses all has no mail, and may be retired:
 * its row comes from the status, and stands below the others.
 *
 *   ask all ─► rows of each gateway ─► one a queue ─► beside the look before ─► sorted, cut
 */
import type { Argv } from 'yargs';
import type { QueueAnswer, StatusAnswer } from '../admin-api/gateway-answers.js';
import { formatBytes, formatCount, formatDuration } from '../base/units.js';
import { allRows } from './admin-client.js';
import type { CliContext } from './context.js';
import { findGroup, partialLine, reportMissing, withGroupOptions } from './group.js';
import type { GroupArguments, Missing } from './group.js';
import { showLive } from './live.js';
import type { Looked } from './live.js';
import { countArgument } from './numbers.js';
import { number, numberOr } from './options.js';
import { counted, printable, tableText, timeText } from './tables.js';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 1_000;
const TICKS_MAX = 1_000_000;
/** A gateway that hangs must not hold up the picture. */
const TIMEOUT_MS = 5_000;
const SORTS = ['messages', 'growth', 'deferred', 'oldest'] as const;
type Sort = typeof SORTS[number];
/** The worst that any gateway says of a queue. */
const PROBLEMS = ['down', 'suspended', 'refused', 'deferred', 'growing', 'slow', ''] as const;
type Problem = typeof PROBLEMS[number];

/** Of a queue at all gateways. */
export interface TopQueue {
  readonly queue_name: string;
  readonly queue_class: string;
  readonly messages: number;
  readonly bytes: number;
  readonly active: number;
  readonly deferred: number;
  readonly held: number;
  readonly oldest_age_seconds: number | null;
  /** Messages a second; null in the first look. */
  readonly growth: number | null;
  readonly problem: Problem;
  readonly last_error: string;
}

/** Counted since the start of a gateway. */
type Totals = Pick<StatusAnswer, 'received' | 'delivered' | 'deferred' | 'bounced' | 'queued_messages'>;

/** Of one gateway. */
export interface TopSample {
  readonly status: StatusAnswer;
  /** Those with mail. */
  readonly queues: readonly QueueAnswer[];
}

export interface TopPicture extends Looked {
  readonly wallMs: number;
  readonly atMs: number;
  readonly samples: readonly TopSample[];
  /** All, sorted. */
  readonly queues: readonly TopQueue[];
  readonly missing: readonly Missing[];
  /** A second; null in the first look, and of gateways that were not there before. */
  readonly rates: Readonly<Record<Exclude<keyof Totals, 'queued_messages'>, number | null>>;
}

export function queueTopCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'top',
    'the busiest queues and those that hurt, again and again until Ctrl-C',
    (args) =>
      withGroupOptions(args)
        .option('sort', { choices: SORTS, default: 'messages' as Sort, describe: 'what comes first' })
        .option('limit', numberOr(LIMIT_DEFAULT, 'queues to show at most'))
        .option('ticks', number('so many looks (default: until Ctrl-C)'))
        .option('json', { type: 'boolean', describe: 'one JSON object a look' })
        .example('$0 queue top --sort growth', 'which queues grow fastest'),
    async (args) => {
      countArgument('limit', args.limit, 1, LIMIT_MAX);
      if (args.ticks !== undefined) countArgument('ticks', args.ticks, 1, TICKS_MAX);
      const { terminal } = context;
      const json = args.json === true;
      let before: TopPicture | undefined;
      const last = await showLive({
        look: async () => {
          before = await look(args, context, args.sort, before);
          return before;
        },
        lines: (picture) => topLines(picture, args.limit, true),
        print: (picture) => {
          if (json) terminal.print(JSON.stringify(topJson(picture, args.limit)));
          else terminal.write(`${topLines(picture, args.limit, false).join('\n')}\n`);
        },
      }, { json, ticks: args.ticks }, context);
      if (args.ticks === undefined) done(0);
      else {
        const missing = json ? [] : last?.missing ?? [];
        done(reportMissing(missing, last?.samples.length ?? 0, json, terminal, true));
      }
    },
  );
}

async function look(
  args: GroupArguments, context: CliContext, sort: Sort, before: TopPicture | undefined,
): Promise<TopPicture> {
  const group = await findGroup(args, context, TIMEOUT_MS);
  const answers = await group.ask('gateway', async (client): Promise<TopSample> => {
    const queues: QueueAnswer[] = [];
    for await (const queue of allRows(client, (cursor) => client.queues(cursor))) {
      if (queue.messages > 0) queues.push(queue);
    }
    return { status: await client.status(), queues };
  });
  const samples = answers.map(({ answer }) => answer);
  const now = { wallMs: Date.now(), atMs: performance.now(), missing: group.missing('gateway') };
  return { ...topPicture(samples, now, sort, before), awaitedMs: group.awaitedMs };
}

/** Exported for its test. */
export function topPicture(
  samples: readonly TopSample[], now: Pick<TopPicture, 'wallMs' | 'atMs' | 'missing'>, sort: Sort,
  before: TopPicture | undefined,
): TopPicture {
  const seconds = before === undefined ? 0 : (now.atMs - before.atMs) / 1000;
  const known = new Map(before?.queues.map((queue) => [keyOf(queue), queue.messages]));
  const queues = [...merged(samples)].map(([key, queue]) => ({
    ...queue, growth: seconds <= 0 ? null : (queue.messages - (known.get(key) ?? 0)) / seconds,
  }));
  const rate = (of: (status: StatusAnswer) => number): number | null => {
    let [sum, isKnown] = [0, false];
    for (const { status } of samples) {
      const { incarnation, gateway } = status;
      const last = before?.samples.find(({ status: one }) =>
        one.gateway === gateway && one.incarnation === incarnation);
      if (last === undefined || seconds <= 0) continue;
      isKnown = true;
      sum += (of(status) - of(last.status)) / seconds;
    }
    return isKnown ? sum : null;
  };
  const rates = {
    received: rate(({ received }) => received), delivered: rate(({ delivered }) => delivered),
    deferred: rate(({ deferred }) => deferred), bounced: rate(({ bounced }) => bounced),
  };
  return { ...now, samples, queues: queues.sort((a, b) => weight(b, sort) - weight(a, sort)), rates };
}

function merged(samples: readonly TopSample[]): ReadonlyMap<string, Omit<TopQueue, 'growth'>> {
  const all = new Map<string, Omit<TopQueue, 'growth'>>();
  const add = (queue: Counted, problem: Problem): void => {
    const key = keyOf(queue);
    const same = all.get(key);
    all.set(key, {
      queue_name: queue.queue_name, queue_class: queue.queue_class,
      messages: queue.messages + (same?.messages ?? 0), bytes: queue.bytes + (same?.bytes ?? 0),
      active: queue.active + (same?.active ?? 0), deferred: queue.deferred + (same?.deferred ?? 0),
      held: queue.held + (same?.held ?? 0),
      oldest_age_seconds: Math.max(queue.oldest_age_seconds ?? 0, same?.oldest_age_seconds ?? 0),
      problem: worse(problem, same?.problem ?? ''),
      last_error: queue.last_error === '' ? same?.last_error ?? '' : queue.last_error,
    });
  };
  for (const { status, queues } of samples) {
    for (const queue of queues) add(queue, stopOf(queue));
    for (const hurt of status.hurting.queues) add({ ...hurt, ...NOTHING }, hurt.problem);
  }
  return all;
}

/** Of one gateway. */
type Counted = Omit<TopQueue, 'growth' | 'problem'>;

/** What a queue that hurts has is in its own row, if it has mail. */
const NOTHING = { messages: 0, bytes: 0, active: 0, deferred: 0, held: 0, oldest_age_seconds: null } as const;

function stopOf({ down, suspended }: QueueAnswer): Problem {
  if (down === true) return 'down';
  return suspended === true ? 'suspended' : '';
}

function worse(one: Problem, other: Problem): Problem {
  return PROBLEMS.indexOf(one) < PROBLEMS.indexOf(other) ? one : other;
}

function keyOf({ queue_name: name, queue_class: kind }: { queue_name: string; queue_class: string }): string {
  return `${kind} ${name}`;
}

function weight(queue: TopQueue, sort: Sort): number {
  switch (sort) {
    case 'messages': return queue.messages;
    case 'growth': return queue.growth ?? queue.messages;
    case 'deferred': return queue.deferred;
    case 'oldest': return queue.oldest_age_seconds ?? 0;
  }
}

function topJson({ wallMs, samples, queues, missing, rates }: TopPicture, limit: number): object {
  return {
    kind: 'top', at: Math.floor(wallMs / 1000), gateways: samples.length,
    queued_messages: queuedOf(samples), queues_with_mail: queues.filter(hasMail).length,
    received_per_second: rates.received, delivered_per_second: rates.delivered,
    deferred_per_second: rates.deferred, bounced_per_second: rates.bounced,
    queues: shownOf(queues, limit),
    partial: missing.map((one) => ({ member: one.id, error: one.why })),
  };
}

function hasMail({ messages }: TopQueue): boolean {
  return messages > 0;
}

/** However many have mail, those without it that hurt have a place. */
function shownOf(queues: readonly TopQueue[], limit: number): readonly TopQueue[] {
  const empty = queues.filter((queue) => !hasMail(queue)).slice(0, limit);
  return [...queues.filter(hasMail).slice(0, limit - empty.length), ...empty];
}

function queuedOf(samples: readonly TopSample[]): number {
  return samples.reduce((sum, { status }) => sum + status.queued_messages, 0);
}

/** Exported for its test. */
export function topLines(picture: TopPicture, limit: number, isTty: boolean): readonly string[] {
  const { wallMs, samples, queues, missing, rates } = picture;
  const perSecond = (rate: number | null): string => (rate === null ? '-' : `${rateText(rate)}/s`);
  const gateways = counted(samples.length, 'gateway');
  const withMail = counted(queues.filter(hasMail).length, 'queue');
  const lines = [
    `${timeText(Math.floor(wallMs / 1000))}  ${gateways}  queued ${formatCount(queuedOf(samples))} in `
      + `${withMail}  received ${perSecond(rates.received)}  delivered `
      + `${perSecond(rates.delivered)}  deferred ${perSecond(rates.deferred)}  bounced `
      + perSecond(rates.bounced),
    ...missing.map((one) => partialLine(one, isTty, true)),
    '',
  ];
  if (queues.length === 0) return [...lines, 'no queue has mail'];
  const shown = shownOf(queues, limit);
  lines.push(...tableText([
    { title: 'Queue' }, { title: 'Messages', right: true }, { title: 'Growth/s', right: true },
    { title: 'Bytes', right: true }, { title: 'Active', right: true }, { title: 'Deferred', right: true },
    { title: 'Held', right: true }, { title: 'Oldest', right: true }, { title: 'Problem' },
    { title: 'Last error' },
  ], shown.map((queue) => [
    printable(queue.queue_class === 'mail' ? queue.queue_name : `${queue.queue_name} (${queue.queue_class})`),
    formatCount(queue.messages), queue.growth === null ? '-' : rateText(queue.growth),
    formatBytes(queue.bytes), formatCount(queue.active), formatCount(queue.deferred), formatCount(queue.held),
    formatDuration((queue.oldest_age_seconds ?? 0) * 1000), queue.problem, printable(queue.last_error),
  ])).split('\n'));
  if (shown.length < queues.length) lines.push(`… ${counted(queues.length - shown.length, 'more queue')}`);
  return lines;
}

function rateText(rate: number): string {
  const whole = Math.round(rate);
  return whole < 0 ? `-${formatCount(-whole)}` : formatCount(whole);
}
