/** What a sink that keeps an inbox answers: sink/inbox.ts and sink/tally.ts build it, cli reads it. */
import { z } from 'zod';
import { list, name, text } from './pages.js';

/** A message that arrived. */
const inboxMessage = z.object({
  /** In order of arrival, from 1. */
  n: z.int(),
  arrival_time: z.int(),
  message_size: z.int(),
  sender: name,
  recipients: list(z.object({ address: name })),
  /** As the header has it; '' without one. */
  subject: text,
});
export type InboxMessage = Readonly<z.output<typeof inboxMessage>>;

/** GET /inbox?after=N&limit=100 */
export const inboxAnswer = z.object({
  messages: list(inboxMessage),
  /** All that arrived, kept or not. */
  arrived: z.int(),
});
export type InboxAnswer = z.output<typeof inboxAnswer>;

/** GET /tally: of messages that `send` has marked. */
export const tallyAnswer = z.object({
  arrived: z.int(),
  /**
   * Not here, although a later one of the same run is: under way, lost, or never taken from `send`. Not what
   * is lost at the end of a run.
   */
  missing: z.int(),
  altered: z.int(),
  repeated: z.int(),
  /** Messages without marks. */
  unmarked: z.int(),
  /** False: there was more than is kept account of. */
  complete: z.boolean(),
});
export type TallyAnswer = Readonly<z.output<typeof tallyAnswer>>;
