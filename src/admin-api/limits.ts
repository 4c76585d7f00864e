/**
 * What limits mail of one queue at a gateway now: gateway/look/binding-limits.ts builds it, `explain` reads
 * it.
 */
import { z } from 'zod';
import { list, name, text } from './pages.js';

const CHARACTERS_MAX = 1_024;

const limitAnswer = z.object({
  /** "memory", "reception", "rule", "next hop", "order", "retries", "concurrency", "connections", "lease". */
  limit: name,
  /** Mail waits, or is refused, for it now. */
  binds: z.boolean(),
  /** How much of it is used, or why it binds. */
  text,
});
export type LimitAnswer = Readonly<z.output<typeof limitAnswer>>;

/** `to`: an address or a domain whose mail is asked for alone; '' all mail of the queue. */
export const limitsQuestion = z.object({
  queue: z.string('queue is the name of one queue').min(1).max(CHARACTERS_MAX),
  to: z.string().max(CHARACTERS_MAX).default(''),
});
export type LimitsQuestion = Readonly<z.output<typeof limitsQuestion>>;

/** GET /api/v1/limits?queue=NAME&to=ADDRESS */
export const limitsAnswer = z.object({
  queue: name,
  /** Of that queue, here. */
  messages: z.int(),
  /** Those that bind first. */
  limits: list(limitAnswer),
});
export type LimitsAnswer = Readonly<z.output<typeof limitsAnswer>>;
