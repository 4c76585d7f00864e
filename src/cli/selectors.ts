/** The options by which a command line says which messages are meant (admin-api/queue-orders.ts). */
import { QUEUE_CLASSES, whyNoSelector } from '../admin-api/queue-orders.js';
import type { Selector } from '../admin-api/queue-orders.js';
import { parseBytes } from '../base/units.js';
import { UsageError } from './context.js';
import { durationArgument } from './numbers.js';
import { text } from './options.js';

export const SELECTORS = {
  domain: text("domain of recipients; '*' stands for anything, here and below"),
  rcpt: text('address of recipients'),
  sender: text("reverse-path; '<>' for the null one"),
  client: text('address or network that the mail came from'),
  queue: text('name of the queue, as queue summary shows it'),
  route: text('name of the route in the configuration: all its queues'),
  site: text('host that takes the mail: all queues that go to it, or to others of one MX set with it'),
  class: text(`one of ${QUEUE_CLASSES.join(', ')}`),
  reply: text('what was said last of a recipient: 421, or 4.7.1, or 4.7 for all below it'),
  'older-than': text('age, as 2h'),
  'newer-than': text('likewise'),
  'larger-than': text('size, as 5MB'),
  everything: { type: 'boolean', describe: 'every message there is' },
  id: {
    type: 'string', array: true, nargs: 1, requiresArg: true,
    describe: 'queue id of a message; may be given again',
  },
} as const;

export interface SelectorArguments {
  readonly domain?: string | undefined;
  readonly rcpt?: string | undefined;
  readonly sender?: string | undefined;
  readonly client?: string | undefined;
  readonly queue?: string | undefined;
  readonly route?: string | undefined;
  readonly site?: string | undefined;
  readonly class?: string | undefined;
  readonly reply?: string | undefined;
  readonly 'older-than'?: string | undefined;
  readonly 'newer-than'?: string | undefined;
  readonly 'larger-than'?: string | undefined;
  readonly everything?: boolean | undefined;
  readonly id?: readonly string[] | undefined;
}

/** `verb` names the command in a complaint. Undefined: nothing of that is said. */
export function selectorOf(verb: string, args: SelectorArguments): Selector | undefined {
  const bytes = args['larger-than'] === undefined ? undefined : parseBytes(args['larger-than']);
  if (bytes?.ok === false) throw new UsageError(`--larger-than: ${bytes.why}`);
  const { 'older-than': older, 'newer-than': newer } = args;
  const selector: Selector = {
    ...(args.id === undefined ? {} : { ids: args.id }),
    ...(args.domain === undefined ? {} : { domain: args.domain }),
    ...(args.rcpt === undefined ? {} : { recipient: args.rcpt }),
    ...(args.sender === undefined ? {} : { sender: args.sender }),
    ...(args.client === undefined ? {} : { client: args.client }),
    ...(args.queue === undefined ? {} : { queue: args.queue }),
    ...(args.route === undefined ? {} : { route: args.route }),
    ...(args.site === undefined ? {} : { site: args.site }),
    ...(args.class === undefined ? {} : { queue_class: classOf(verb, args.class) }),
    ...(args.reply === undefined ? {} : { reply: args.reply }),
    ...(older === undefined ? {} : { older_than_seconds: secondsOf('older-than', older) }),
    ...(newer === undefined ? {} : { newer_than_seconds: secondsOf('newer-than', newer) }),
    ...(bytes === undefined ? {} : { larger_than_bytes: bytes.value }),
    ...(args.everything === true ? { everything: true as const } : {}),
  };
  if (Object.keys(selector).length === 0) return undefined;
  const why = whyNoSelector(selector);
  if (why !== '') throw new UsageError(`${verb}: ${why}`);
  return selector;
}

function classOf(verb: string, said: string): (typeof QUEUE_CLASSES)[number] {
  const known = QUEUE_CLASSES.find((one) => one === said);
  if (known === undefined) throw new UsageError(`${verb}: --class is one of ${QUEUE_CLASSES.join(', ')}`);
  return known;
}

function secondsOf(option: string, value: string): number {
  return Math.ceil(durationArgument(option, value) / 1000);
}
