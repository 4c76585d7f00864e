/**
 * Orders over all the messages that a selector names: what cli posts, gateway/orders does, and what it tells
 * of it. An order passes once over what is there when it is given.
 *
 *   POST /api/v1/orders              QueueOrder: begins to look; QueueOrderAnswer
 *   GET  /api/v1/orders              those of the last minutes, and those that are left: QueueOrdersAnswer
 *   GET  /api/v1/orders/ID           how far it is
 *   POST /api/v1/orders/ID/go        GoOrder: what was found is dealt with
 *   POST /api/v1/orders/ID/cancel    Order: nothing more is done
 *   POST /api/v1/orders/ID/leave     LeaveOrder: left in the register for the mail that nobody had who was
 *                                    asked; LeftOrderAnswer
 *   POST /api/v1/orders/ID/withdraw  Order: deleted there; LeftOrderIdAnswer
 *
 * 503 when the register does not answer.
 */
import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { BrokenRule, readShape } from '../base/json-shape.js';
import { parseMessageId } from '../base/text-id.js';
import type { Order } from './orders.js';
import { list, name, text } from './pages.js';

/**
 * What an order does with a message; the last three end it, or those of its recipients who are meant; rebind
 * leads it by another route. All but a flush may be left in the register: that is over when the mail comes.
 */
export const LEFT_VERBS = ['hold', 'delay', 'release', 'rebind', 'delete', 'bounce', 'expire'] as const;
export type LeftVerb = (typeof LEFT_VERBS)[number];
export const ORDER_VERBS = ['flush', ...LEFT_VERBS] as const;
export type OrderVerb = (typeof ORDER_VERBS)[number];

/** What can not be taken back by another order: it is counted and thought over first. */
export function isFinal(verb: OrderVerb): boolean {
  return verb === 'rebind' || verb === 'delete' || verb === 'bounce' || verb === 'expire';
}

/** A delay is a year at most. */
export const DELAY_SECONDS_MAX = 366 * 86_400;

/** The year 9999: a note has 48 bits for it. A record of the register that says more is passed over. */
const NOT_BEFORE_MS_MAX = 253_402_300_799_999;
export const notBefore = z.int().min(1).max(NOT_BEFORE_MS_MAX);

/** Why it is too far away, as microseconds are; '' when it is not. */
export function whyNotThen(notBeforeMs: number | undefined, nowWallMs: number): string {
  const isFar = notBeforeMs !== undefined && notBeforeMs > nowWallMs + DELAY_SECONDS_MAX * 1000;
  return isFar ? 'a delay is a year at most: not_before_ms is in milliseconds since 1970' : '';
}

const ROUTE_CHARACTERS_MAX = 255;

/** What single verbs need besides. */
export const orderTerms = z.object({
  /** Of a delay: not attempted before, in milliseconds since 1970. */
  not_before_ms: notBefore.exactOptional(),
  /** To rebind: name of the route that mail goes by. */
  route: z.string().min(1).max(ROUTE_CHARACTERS_MAX).exactOptional(),
  /** Of a hold beside a rule that says the same (admin-api/queue-rules.ts): it ends with the rule. */
  standing: z.literal(true).exactOptional(),
});
export type OrderTerms = Readonly<z.output<typeof orderTerms>>;

export function termsOf({ not_before_ms, route, standing }: OrderTerms): OrderTerms {
  return {
    ...(not_before_ms === undefined ? {} : { not_before_ms }), ...(route === undefined ? {} : { route }),
    ...(standing === undefined ? {} : { standing }),
  };
}

/** What is wrong with them, or missing; '' when nothing is. */
export function whyNoTerms(
  verb: OrderVerb, { not_before_ms: notBeforeMs, route, standing }: OrderTerms,
): string {
  if (standing === true && verb !== 'hold') return `standing is for a hold, not to ${verb}`;
  if ((verb === 'delay') !== (notBeforeMs !== undefined)) {
    return verb === 'delay' ? 'a delay needs not_before_ms' : `not_before_ms is for a delay, not to ${verb}`;
  }
  if ((verb === 'rebind') === (route !== undefined)) return '';
  return verb === 'rebind' ? 'say by which route' : `a route is to rebind, not to ${verb}`;
}

/** Of mail, in the order in which labels of queues number them (gateway/queue/label.ts). */
export const QUEUE_CLASSES = ['mail', 'bounce', 'billing', 'notification'] as const;

/** Longest text of a selector: an address has 256 octets for each half. */
export const PATTERN_CHARACTERS_MAX = 520;
const pattern = z.string().min(1).max(PATTERN_CHARACTERS_MAX);
const SHOWN_CHARACTERS_MAX = 60;
/** Queue ids in one selector. */
export const SELECTED_IDS_MAX = 1000;
/** "421", "4.7.1", or the beginning of a status: "4", "4.7". */
const REPLY = /^(?:[245]\d\d|[245](?:\.\d{1,3}){0,2})$/;
const NO_REPLY = 'a code as 421, or a status as 4.7.1, or 4.7 for all below it';

/**
 * Which messages: all that is said must hold. "*" in a pattern stands for any run of characters. `domain`,
 * `recipient` and `reply` choose among the recipients who are still waited for.
 */
export const selector = z.strictObject({
  ids: z.array(name).min(1).max(SELECTED_IDS_MAX).readonly().exactOptional(),
  domain: pattern.exactOptional(),
  recipient: pattern.exactOptional(),
  reply: z.string().regex(REPLY, NO_REPLY).exactOptional(),
  /** '' or "<>": the null reverse-path. */
  sender: z.string().max(PATTERN_CHARACTERS_MAX).exactOptional(),
  /** An address, or a network with its length. */
  client: pattern.exactOptional(),
  /** Name of a queue: of the route, or for routes by MX the domain. */
  queue: pattern.exactOptional(),
  queue_class: z.enum(QUEUE_CLASSES, `one of ${QUEUE_CLASSES.join(', ')}`).exactOptional(),
  /** Name of a route of the configuration: all its queues. */
  route: pattern.exactOptional(),
  /** A host: all queues whose mail it takes. By MX those alone that were sent from since the start. */
  site: pattern.exactOptional(),
  older_than_seconds: z.int().min(0).exactOptional(),
  newer_than_seconds: z.int().min(0).exactOptional(),
  larger_than_bytes: z.int().min(0).exactOptional(),
  /** Every message: said alone. */
  everything: z.literal(true).exactOptional(),
});
export type Selector = Readonly<z.output<typeof selector>>;

/** What is wrong with a selector; '' when nothing is. */
export function whyNoSelector(given: Selector): string {
  const read = readShape(selector, given);
  if (read instanceof BrokenRule) return read.rule;
  const { ids, client, everything } = read;
  const keys = Object.keys(read).length;
  if (keys === 0) return 'say which messages';
  if (everything === true && keys > 1) return 'everything is said alone';
  const odd = ids?.find((id) => parseMessageId(id) === undefined);
  if (odd !== undefined) return `'${odd.slice(0, SHOWN_CHARACTERS_MAX)}' is no queue id`;
  return client === undefined ? '' : whyNoNetwork(client);
}

/** '' of an address, with its length or without. It is whole: ipaddr takes 10/8 for 0.0.0.10/8. */
export function whyNoNetwork(text: string): string {
  const [address = '', length, ...more] = text.split('/');
  const isAddress = ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address);
  if (isAddress && more.length === 0 && (length === undefined || ipaddr.isValidCIDR(text))) return '';
  return `'${text.slice(0, SHOWN_CHARACTERS_MAX)}' is no address or network, as 192.0.2.1 or 192.0.2.0/24`;
}

/** What is posted; reason and who are judged as those of every order (admin-api/orders.ts). */
export const queueOrder = z.object({
  verb: z.enum(ORDER_VERBS),
  selector,
  /** Only looked for: nothing is kept back, and nothing can be done. */
  dry_run: z.boolean().exactOptional(),
  /**
   * Its number, the same at all gateways: to give it again begins nothing. Without it each makes one up, and
   * the one that asks all the same for all.
   */
  id: name.exactOptional(),
  ...orderTerms.shape,
});
export interface QueueOrder extends Order, Readonly<z.output<typeof queueOrder>> {}

/** So long it is waited, while it can be cancelled, before anything ends. */
export const GRACE_SECONDS_MAX = 3600;

export const goOrder = z.object({ grace_seconds: z.int().min(0).max(GRACE_SECONDS_MAX) });
export type GoOrder = Readonly<z.output<typeof goOrder>>;

/** Partitions that gateways name as passed over: of 500 gateways; more do not fit into what is posted. */
const PASSED_MAX = 8_192;

/** What all who were asked pass over whole. The order is left for all other partitions. */
export const leaveOrder = z.object({ passed: z.array(name).max(PASSED_MAX).readonly() });
export type LeaveOrder = Readonly<z.output<typeof leaveOrder>>;

/** States of an order: gateway/orders/order-pass.ts. */
const ORDER_PHASES = ['looking', 'found', 'grace', 'acting', 'done', 'cancelled'] as const;
export type OrderPhase = (typeof ORDER_PHASES)[number];

/** As status has them; `left`: in the register, for mail that nobody had who was asked. */
export const PHASES_IN_FORCE = ['looking', 'found', 'grace', 'acting', 'left', 'kept'] as const;

/** A message as it was met. */
const metMessage = z.object({
  queue_id: name,
  queue_name: name,
  queue_class: name,
  sender: name,
  recipients: z.int(),
  /** Why it was not done; '' when it was, or is still to be. */
  why: text,
});
export type MetMessage = Readonly<z.output<typeof metMessage>>;

export const queueOrderAnswer = z.object({
  order: name,
  gateway: name,
  verb: z.enum(ORDER_VERBS),
  /** Releases before this one do not say it. */
  selector: selector.exactOptional(),
  ...orderTerms.shape,
  phase: z.enum(ORDER_PHASES),
  /** Of one that is cancelled: by the gateway itself, before it has begun, since nobody asked for it. */
  unfollowed: z.literal(true).exactOptional(),
  dry_run: z.boolean(),
  reason: text,
  who: text,
  given: z.int(),
  /** How much of what is there was looked at. */
  looked_share: z.number().min(0).max(1),
  matched: z.int(),
  /** Of those, recipients who are meant. */
  matched_recipients: z.int(),
  matched_bytes: z.int(),
  /** Of a flush: messages that are held or delayed, which it does not mean. */
  kept_back: z.int().exactOptional(),
  /** Messages it was done to. */
  done: z.int(),
  /**
   * Of an order that is done: were delivered, or ended, before it came to them. What is left of those that
   * matched: which ones these were is not kept (docs/decisions/0041).
   */
  gone_before: z.int(),
  /** Are being delivered, stored or reported: it is done when that has ended, if they are still there. */
  waiting: z.int(),
  /** What some of those wait for else: room, or a partition that is not all here; '' nothing. */
  waits_for: text,
  /** Could not be done: `refused` says of the first ones why. */
  not_done: z.int(),
  /** Of those: their partition went to another gateway first, and is none of `partitions`. */
  moved: z.int(),
  /** Their envelopes are at the stores alone, or can't be read: matched is "at least". */
  unread: z.int(),
  /** Partitions were not all here while it looked: the same. */
  incomplete: z.boolean(),
  grace_left_seconds: z.int(),
  /** Partitions of which it passes over all that is there. */
  partitions: list(name),
  /** The copies have all of it: a crash of the gateway undoes nothing. */
  kept: z.boolean(),
  /** Why a crash would let go on what is not done yet: the register does not have the order. Else ''. */
  unregistered: text,
  /** The first ones that are meant; and of those that could not be done. */
  met: list(metMessage),
  refused: list(metMessage),
  /**
   * Of the ids of the selector, those of which this gateway has no message that is meant; told to whoever
   * gave the order, when all was looked at.
   */
  ids_unmet: list(name).exactOptional(),
});
export type QueueOrderAnswer = Readonly<z.output<typeof queueOrderAnswer>>;

/** An order that is left in the register, as the gateway that answers sees it. */
export const leftOrderAnswer = z.object({
  order: name,
  verb: z.enum(LEFT_VERBS),
  selector,
  ...orderTerms.shape,
  reason: text,
  who: text,
  given: z.int(),
  /** From then on nobody obeys it. */
  until: z.int(),
  /**
   * Still to be passed over, none where it was over in the last minutes; and other gateways that hold some of
   * them, or did last.
   */
  partitions: list(name),
  holders: list(name),
  /** Messages that the gateway that answers did it to. */
  done: z.int(),
  /** Nothing is done yet: what it means is kept back until `until`, and goes on then if nobody acts. */
  in_grace: z.literal(true).exactOptional(),
});
export type LeftOrderAnswer = Readonly<z.output<typeof leftOrderAnswer>>;

export const leftOrderIdAnswer = z.object({ order: name });
export type LeftOrderIdAnswer = Readonly<z.output<typeof leftOrderIdAnswer>>;

export const queueOrdersAnswer = z.object({ orders: list(queueOrderAnswer), left: list(leftOrderAnswer) });
export type QueueOrdersAnswer = Readonly<z.output<typeof queueOrdersAnswer>>;
