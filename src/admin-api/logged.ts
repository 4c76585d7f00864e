/**
 * What the log of a gateway tells of messages, those that have left among them. cli asks; a thread of the
 * gateway reads (gateway/look/node/log-search.ts).
 *
 *   POST /api/v1/logged   LoggedQuestion: LoggedAnswer, when all that was asked for is read, enough was
 *                         found, or the time for it is over
 */
import { z } from 'zod';
import { FOUND_MAX, messageIdValue } from './look.js';
import { list, name, text } from './pages.js';
import { PATTERN_CHARACTERS_MAX, SELECTED_IDS_MAX } from './queue-orders.js';

/** The year 9999. */
const WALL_MS_MAX = 253_402_300_799_999;

/** As base/text-id.ts writes it. */
const queueId = z.string().regex(/^[0-9A-HJKMNP-TV-Z]{11}$/, 'a queue id');

const pattern = z.string().min(1).max(PATTERN_CHARACTERS_MAX);
const wallMs = z.int().min(0).max(WALL_MS_MAX);

/**
 * Messages of which a line in that time says all that is asked for; patterns as a Selector has them. Lines
 * are read from the newest back, so that the newest messages are told when there are too many.
 */
export const loggedQuestion = z.strictObject({
  ids: z.array(queueId).min(1).max(SELECTED_IDS_MAX).readonly().exactOptional(),
  /** Of the field of the header; it stands in the line of the acceptance alone. */
  message_id: messageIdValue.exactOptional(),
  sender: pattern.exactOptional(),
  recipient: pattern.exactOptional(),
  since_ms: wallMs,
  until_ms: wallMs,
  limit: z.int().min(1).max(FOUND_MAX),
  /** With ids: from `since_ms` on, until each has come to its end. */
  onward: z.literal(true).exactOptional(),
});
export type LoggedQuestion = Readonly<z.output<typeof loggedQuestion>>;

/** The last that the log tells of a recipient. */
const LOGGED_STATES = ['received', 'deferred', 'delivered', 'bounced', 'expired', 'removed'] as const;
export type LoggedState = (typeof LOGGED_STATES)[number];

const loggedRecipient = z.object({
  address: name,
  /** What it was before an alias changed it; '' the same. */
  given: name,
  state: z.enum(LOGGED_STATES),
  at_ms: wallMs,
  gateway: name,
  relay: name,
  reply: text,
});
export type LoggedRecipient = Readonly<z.output<typeof loggedRecipient>>;

/** What is not known is '' or null: the line that says it was not read. */
const loggedMessage = z.object({
  queue_id: name,
  message_id: name,
  arrival_ms: wallMs.nullable(),
  sender: name,
  message_size: z.int().nullable(),
  recipient_count: z.int().nullable(),
  /** Those of whom a line was read. */
  recipients: list(loggedRecipient),
});
export type LoggedMessage = Readonly<z.output<typeof loggedMessage>>;

export const loggedAnswer = z.object({
  messages: z.array(loggedMessage).max(FOUND_MAX).readonly(),
  /** There are more, which are older. */
  more: z.boolean(),
  /** Nothing of it could be read: why; '' it could. */
  why: text,
  /** All of the log that lies there was read from then ... */
  read_from_ms: wallMs,
  /** ... to then. */
  read_to_ms: wallMs,
  /** Of the oldest line that lies there; null: there is none. */
  begins_ms: wallMs.nullable(),
  /** Of that time lines are missing that it should have: why. */
  lacks: list(text),
  /** Rotated files that may have lines of that time, and are compressed or can't be read. */
  unread_files: z.int(),
});
export type LoggedAnswer = Readonly<z.output<typeof loggedAnswer>>;
