/**
 * Standing rules over queues, clients and new mail: what cli posts, gateway/orders obeys, and what it tells
 * of them. A rule stands in the register until it is cancelled, or its time is over; every gateway obeys it.
 *
 *   GET  /api/v1/rules               QueueRulesAnswer: those that the gateway that answers obeys
 *   POST /api/v1/rules               NewQueueRule: written into the register; RuleIdAnswer
 *   POST /api/v1/rules/ID/cancel     Order, CancelRule: deleted there; RuleIdAnswer
 *
 * 503 when the register does not answer; with `local` it is in force at the gateway that is asked all the
 * same.
 */
import { z } from 'zod';
import type { Order } from './orders.js';
import { list, name, text } from './pages.js';
import type { Selector } from './queue-orders.js';
import { notBefore, selector, whyNoSelector } from './queue-orders.js';

/** Orders that stand: what becomes of mail that comes meanwhile (gateway/orders/standing-orders.ts). */
const STANDING_VERBS = ['hold', 'delay', 'bounce', 'delete'] as const;
export type StandingVerb = (typeof STANDING_VERBS)[number];

/** suspend: nothing is started from the queue; refuse: no new mail is taken for it. */
export const RULE_VERBS = ['suspend', 'refuse', ...STANDING_VERBS] as const;
export type RuleVerb = (typeof RULE_VERBS)[number];

export function isStandingVerb(verb: string): verb is StandingVerb {
  return STANDING_VERBS.some((one) => one === verb);
}

/** Ten years: what is longer stands until it is cancelled. */
export const RULE_SECONDS_MAX = 10 * 365 * 86_400;
/** A name of 255 characters with a class behind it. */
const PATTERN = /^[\x20-\x7e]{1,300}$/;

/** What a rule is over: either of the two. */
export const ruleTarget = z.object({
  /** Name of queues, "*" for any run of characters; of class mail, or with "/CLASS" behind it of that. */
  queue: z.string().regex(PATTERN).exactOptional(),
  selector: selector.exactOptional(),
  /** Of a delay: what comes meanwhile is not attempted before, in milliseconds since 1970. */
  not_before_ms: notBefore.exactOptional(),
});
export type RuleTarget = Readonly<z.output<typeof ruleTarget>>;

/** New mail has no age, nothing was said of it, and nobody knows its ids. */
const OF_NEW_MAIL: readonly (keyof Selector)[] = [
  'domain', 'recipient', 'sender', 'client', 'queue', 'queue_class', 'route', 'site', 'larger_than_bytes',
  'everything',
];

/** All that one selector may say to each verb; a refusal is told at MAIL, or at RCPT. */
const TARGETS: Readonly<Record<RuleVerb, readonly (readonly (keyof Selector)[])[]>> = {
  suspend: [['route', 'site', 'domain']],
  refuse: [['route'], ['sender', 'client'], ['domain', 'recipient']],
  hold: [OF_NEW_MAIL], delay: [OF_NEW_MAIL], bounce: [OF_NEW_MAIL], delete: [OF_NEW_MAIL],
};

const OPTIONS: Readonly<Partial<Record<keyof Selector, string>>> = {
  recipient: 'rcpt', queue_class: 'class', larger_than_bytes: 'larger-than',
};

/** What is wrong with a target; '' when nothing is. */
export function whyNoTarget(verb: RuleVerb, target: RuleTarget): string {
  const { queue, selector: given, not_before_ms: notBeforeMs } = target;
  const isOfDelay = notBeforeMs !== undefined;
  if ((verb === 'delay') !== isOfDelay) return 'a delay, and nothing else, has not_before_ms';
  const isStanding = isStandingVerb(verb);
  if (isStanding && queue !== undefined) return `to ${verb} takes a selector`;
  if ((queue === undefined) === (given === undefined)) return 'say either which queue, or by what to choose';
  if (given === undefined) return '';
  const said = optionsOf(given).map(([key]) => key);
  if (TARGETS[verb].some((keys) => said.every((key) => keys.includes(key)))) return whyNoSelector(given);
  const may = TARGETS[verb].map((keys) => keys.map(optionOf).join(' and ')).join(', or ');
  return `to ${verb} takes ${isStanding ? `${may} when it stands` : `the name of a queue, or ${may}`}`;
}

/** By what a refusal chooses mail, whatever its queue; undefined: it is none, or over queues. */
export function refusedBy(
  { verb, selector = {} }: RuleTarget & { readonly verb: RuleVerb },
): 'sender' | 'recipient' | undefined {
  if (verb !== 'refuse') return undefined;
  const { sender, client, domain, recipient } = selector;
  if (sender !== undefined || client !== undefined) return 'sender';
  return domain !== undefined || recipient !== undefined ? 'recipient' : undefined;
}

/** As operators write it, and all that they see of it. */
export function targetText({ queue, selector: given = {} }: RuleTarget): string {
  if (queue !== undefined) return queue;
  if (given.everything === true) return optionOf('everything');
  return optionsOf(given).map(([key, value]) => `${optionOf(key)} ${String(value) || '<>'}`).join(' ');
}

function optionOf(key: keyof Selector): string {
  return `--${OPTIONS[key] ?? key}`;
}

function optionsOf(given: Selector): (readonly [key: keyof Selector, value: unknown])[] {
  return Object.entries(given) as (readonly [keyof Selector, unknown])[];
}

/** What is posted; reason and who are judged as those of every order (admin-api/orders.ts). */
export const newQueueRule = z.object({
  verb: z.enum(RULE_VERBS),
  ...ruleTarget.shape,
  /** Of an order that stands: what has come since then is meant, too; seconds since 1970. */
  since: z.int().min(0).exactOptional(),
  duration_seconds: z.int().min(1).max(RULE_SECONDS_MAX).exactOptional(),
  /** In force here at once, and written into the register when it answers. */
  local: z.literal(true).exactOptional(),
  /** With `local`: as another gateway has named it. */
  id: name.exactOptional(),
});
export interface NewQueueRule extends Order, Readonly<z.output<typeof newQueueRule>> {}

/** What is posted besides to take a rule back. */
export const cancelRule = z.object({ local: z.literal(true).exactOptional() });
export interface CancelRule extends Order, Readonly<z.output<typeof cancelRule>> {}

export const queueRuleAnswer = z.object({
  id: name,
  verb: z.enum(RULE_VERBS),
  /** What it is over, as operators write it: the name of queues, or options. */
  queue: text,
  who: text,
  reason: text,
  since: z.int(),
  /** Null: until it is cancelled. */
  until: z.int().nullable(),
  /** The gateway that answers has it from an operator, and does not know the register to have it. */
  local: z.boolean(),
  /**
   * Those that it names now, at the gateway that answers, and the messages in them; of an order over new mail
   * no queues, and the messages that this gateway caught since it started.
   */
  queues: z.int(),
  messages: z.int(),
});
export type QueueRuleAnswer = Readonly<z.output<typeof queueRuleAnswer>>;

export const queueRulesAnswer = z.object({
  /** The gateway that answers. */
  told_by: name,
  /** Gateways with a session: who has to obey. */
  living: list(name),
  /**
   * Why the register does not answer: `living` may name who is dead by now; '' when it does. Releases before
   * this one do not say it.
   */
  register_away: text.exactOptional(),
  /** Why no further one can be given here; '' when one can. Releases before this one do not say it. */
  why_no_more: text.exactOptional(),
  rules: list(queueRuleAnswer),
});
export type QueueRulesAnswer = Readonly<z.output<typeof queueRulesAnswer>>;

export const ruleIdAnswer = z.object({
  rule: name,
  /** Why it is in force at the gateway alone that was asked; '' when the register has it. */
  local: text,
  /** Of a suspension by domain: which queues it does not stop have mail to it, and what to use for them. */
  shared: text.exactOptional(),
});
export type RuleIdAnswer = Readonly<z.output<typeof ruleIdAnswer>>;
