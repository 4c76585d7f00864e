/** What an operator says who has queues taken over without a store that does not come back (`twinpost rescue --force`). */
export interface ForceRequest {
  /** Name of a queue, or all queues of `owner`. */
  readonly queue?: string | undefined;
  readonly owner?: string | undefined;
  /** The store to go on without. */
  readonly missing: string;
  /** For the log. */
  readonly reason: string;
  readonly who: string;
}
