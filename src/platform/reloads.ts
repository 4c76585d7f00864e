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
  /** What `config check` would warn of, bounded: a line each. */
  readonly warnings: readonly string[];
}

export interface ReloadComparison extends ReloadOutcome, ReloadEffects {}

/** What a file that is taken would do to mail and links. */
export interface ReloadEffects {
  /** Messages that wait and would go another way. */
  readonly following: number;
  /** Whether stores go by a secret of that file at this moment. */
  readonly secrets: readonly SecretOfStore[];
}

export interface SecretOfStore {
  readonly store: string;
  /** Which of them, counted from 1; 0: none. */
  readonly secret: number;
  readonly of: number;
  /** Why nobody knows; '' when it is known. */
  readonly why: string;
}

export const NO_EFFECTS: ReloadEffects = { following: 0, secrets: [] };
