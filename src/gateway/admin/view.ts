/**
 * The gateway as operators see it, in the answers of admin-api, which says what each field means: the admin
 * HTTP hands them out, the metrics and the command line read them. core-view.ts implements it; every call
 * reads what is there now, allocates its answer and is bounded (by `limit`). Nothing here is on the path of a
 * message.
 */
import type {
  MessagePageAnswer, QueuePageAnswer, StatusAnswer, TablePageAnswer, TableRowAnswer,
} from '../../admin-api/gateway-answers.js';
import type { ShownMessageAnswer } from '../../admin-api/look.js';
import type { MemberAnswer } from '../../admin-api/pages.js';

export interface GatewayView {
  status(): StatusAnswer;
  /** The management table, whole partitions behind `cursor`, at most `limit` of them. */
  mirrors(cursor: string, limit: number): TablePageAnswer;
  /** Rows of the partitions that need a look first. */
  troubled(most: number): readonly TableRowAnswer[];
  /** Behind `cursor`, at most `limit`. */
  queues(cursor: string, limit: number): QueuePageAnswer;
  /** All that belong together as far as this gateway's configuration says, itself first. */
  group(): readonly MemberAnswer[];
  /** In queue order from `cursor` ('' = the head), at most `limit`; undefined when there is no such queue. */
  messages(queue: string, queueClass: string, cursor: string, limit: number): MessagePageAnswer | undefined;
  /** Wherever it is here. */
  message(messageId: number): ShownMessageAnswer;
}
