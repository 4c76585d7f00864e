/**
 * What a partition waits for, for status, log and metrics. One of these states asks for a person; its text
 * and its one order stand here and nowhere else.
 */
import type { RecordedMember } from '../../protocol/partition-record.js';

export const Waiting = {
  NOTHING: 0,
  /** A change of the record, or a look at it, gets no answer. */
  REGISTER: 1,
  /** Another process may still deliver by a lease. */
  LEASE: 2,
  /** Every copy that counts is on machines that do not answer. */
  COPIES_AWAY: 3,
  /** The register is older than what stores were told: their answers are waited for. */
  STORES: 4,
} as const;
export type WaitingValue = (typeof Waiting)[keyof typeof Waiting];
/** How the one order begins. */
export const RESCUE_ORDER = 'twinpost rescue';
export const WAITING_NAMES = ['nothing', 'register', 'lease', 'copies away', 'stores'] as const;

/**
 * The one text that asks for a person. It ends with the order, to which status adds the gateway to be asked.
 */
export function copiesAwayText(members: readonly RecordedMember[]): string {
  const stores = storesOf(members);
  if (stores.length === 0) {
    return 'no store has a copy that counts, and the process that held it in memory does not answer. It goes '
      + 'on by itself when that process is back. If it never will be, give its memory up: '
      + `${RESCUE_ORDER} --give-up-memory `
      + '--reason TEXT';
  }
  return `every copy that counts is on machines that do not answer (${stores.join(', ')}). `
    + 'It goes on by itself when '
    + 'one of them is back with what it had. If none ever will be, give these copies up: '
    + `${RESCUE_ORDER} ${stores.map((store) => `--give-up ${store}`).join(' ')} --reason TEXT`;
}

/** Each once, by name: what waits for the same stores is told together, in one order. */
export function storesOf(members: readonly RecordedMember[]): readonly string[] {
  return [...new Set(members.map((member) => member.storeId))].sort();
}
