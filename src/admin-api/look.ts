/**
 * What operators look at: one message wherever it is, how old the mail of a destination is, and what a
 * selector means. cli asks, gateway/look answers.
 *
 *   GET  /api/v1/messages/ID          ShownMessageAnswer
 *   GET  /api/v1/messages/ID/export   its content, or its header (part=header), as a page of one entry
 *                                     (protocol/entry-page.ts); 404: no queue here has it
 *   POST /api/v1/ages                 AgesQuestion: AgesAnswer, when all queues were walked through
 *   POST /api/v1/find                 FindQuestion: FindAnswer, when enough was found, or all looked at
 */
import { z } from 'zod';
import { messageAnswer } from './gateway-answers.js';
import { list, name, text } from './pages.js';
import { PATTERN_CHARACTERS_MAX, selector } from './queue-orders.js';

/** A recipient who is still to be tried is in delivery, held or waiting, as the entry is. */
const recipientState = z.enum([
  'waiting', 'in delivery', 'held', 'delivered', 'ended', 'failed, report owed', 'delivered, report owed',
]);

/** A message in one queue: what a list shows of it, and all of its recipients, where it lies, and why. */
const shownEntry = messageAnswer.extend({
  recipients: list(z.object({ address: name, state: recipientState, last_reply: text.exactOptional() })),
  partition: name,
  epoch: z.int(),
  next_hop: name,
  order: z.enum(['fifo', 'strict']),
  /** Where it came from; '' of a report of ours. */
  client: name,
  helo: name,
  /** Of its header, where that is in memory and has one. */
  message_id: name.exactOptional(),
  /** Why it is still here: what it waits for, or what happens to it now. */
  why: text,
  /** Of its partition; `has`: it is known to hold this message. */
  copies: list(z.object({ store: name, sync: z.enum(['SYNC', 'RESYNC', 'NG']), has: z.boolean() })),
});
export type ShownEntry = Readonly<z.output<typeof shownEntry>>;

export const shownMessageAnswer = z.object({
  queue_id: name,
  /** One for each queue here that has it. */
  entries: list(shownEntry),
  /** Not all that this gateway is to serve is here yet: it may have the message all the same. */
  incomplete: z.boolean(),
});
export type ShownMessageAnswer = Readonly<z.output<typeof shownMessageAnswer>>;

/** What of a message is read. */
export const exportPart = z.enum(['all', 'header']);
export type ExportPart = z.output<typeof exportPart>;

/** By what messages are counted: a message with recipients in two domains counts for each of them. */
export const AGE_KEYS = ['domain', 'queue', 'sender-domain'] as const;
export type AgeKey = (typeof AGE_KEYS)[number];

/** Ends of the columns, as qshape has them; behind the last one stands all that is older. */
export const AGE_MINUTES = [5, 10, 20, 40, 80, 160, 320, 640, 1280] as const;
/** Keys that a gateway counts by themselves; what has another one is counted together. */
export const AGE_KEYS_MAX = 10_000;

const ageCounts = z.array(z.int().min(0)).length(AGE_MINUTES.length + 1).readonly();
export type AgeCounts = z.output<typeof ageCounts>;

export const agesQuestion = z.object({ by: z.enum(AGE_KEYS), selector });
export type AgesQuestion = Readonly<z.output<typeof agesQuestion>>;

export const agesAnswer = z.object({
  gateway: name,
  by: z.enum(AGE_KEYS),
  /** Messages, each once in a queue. */
  total: ageCounts,
  keys: z.array(z.object({ key: name, counts: ageCounts })).max(AGE_KEYS_MAX).readonly(),
  /** Of all other keys together. */
  others: ageCounts,
  /** Their envelopes are at the stores alone, or can't be read: they are counted here and nowhere else. */
  unread: ageCounts,
  /** 1: all of it. Less: there was no time for more. */
  looked_share: z.number().min(0).max(1),
  /** Not all that this gateway is to serve is here yet. */
  incomplete: z.boolean(),
});
export type AgesAnswer = Readonly<z.output<typeof agesAnswer>>;

/** Messages in one answer. */
export const FOUND_MAX = 1000;

/** Of a longer one the log has the beginning alone (gateway/inbound/content/message-id-field.ts). */
const MESSAGE_ID_CHARACTERS_MAX = 248;
/** Without its brackets. */
export const messageIdValue = z.string().min(1).max(MESSAGE_ID_CHARACTERS_MAX);

/** What no order is given by stands beside the selector. */
export const findQuestion = z.strictObject({
  selector,
  limit: z.int().min(1).max(FOUND_MAX),
  /** A pattern: address of one who is meant, or the name that was given, where an alias led on. */
  recipient: z.string().min(1).max(PATTERN_CHARACTERS_MAX).exactOptional(),
  /** Of the field of the header, for which the content is looked into. */
  message_id: messageIdValue.exactOptional(),
});
export type FindQuestion = Readonly<z.output<typeof findQuestion>>;

export const findAnswer = z.object({
  /** The first ones, in the order of the queues. */
  messages: z.array(messageAnswer).max(FOUND_MAX).readonly(),
  more: z.boolean(),
  /** What tells whether they are meant is at the stores alone, or can't be read. */
  unread: z.int(),
  looked_share: z.number().min(0).max(1),
  incomplete: z.boolean(),
});
export type FindAnswer = Readonly<z.output<typeof findAnswer>>;
