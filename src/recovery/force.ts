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

/** What the operator types to have one queue go on without a store. */
export function forceCommand(queue: string, missing: string): string {
  return `twinpost rescue --force --queue ${queue} --missing ${missing} --reason TEXT`;
}
