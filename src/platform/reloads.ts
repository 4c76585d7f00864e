/** How a process is asked to read its configuration again (docs/RELOAD.md). */
import type { Order } from '../admin-api/orders.js';

/** The configuration is read again because an operator wants that. */
export interface ReloadControl {
  /** By this process, and all workers of its gateway. */
  reload(order: Order): Promise<ReloadOutcome>;
  /** What that would do, at this process; nothing is changed. */
  compare(): Promise<ReloadComparison>;
}

/** What came of reading the configuration again. */
export interface ReloadOutcome {
  /** '' when it is in force; else why not, and the old one is. */
  readonly why: string;
  /** Keys that have changed. */
  readonly changed: readonly string[];
}

export interface ReloadComparison extends ReloadOutcome {
  /** Messages that wait and would go another way. */
  readonly following: number;
}
