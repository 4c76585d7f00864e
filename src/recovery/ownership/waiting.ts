/**
 * What a partition waits for, for status, log and metrics. One of these states asks for a person; its text
 * and its
 * one order stand here and nowhere else.
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
export const WAITING_NAMES = ['nothing', 'register', 'lease', 'copies away', 'stores'] as const;

/** The one text that asks for a person. */
export function copiesAwayText(partition: string, members: readonly RecordedMember[]): string {
  const stores = [...new Set(members.map((member) => member.storeId))];
  const which = stores.length === 0 ? 'the memory of the process that held it' : stores.join(', ');
  const order = stores.length === 0 ? 'twinpost rescue --give-up'
    : `twinpost rescue --give-up ${stores.join(' --give-up ')}`;
  return `partition ${partition}: every copy that counts is on machines that do not answer (${which}). `
    + `It goes on by itself when one of them is back. If none will ever be, give these copies up: ${order}`;
}
