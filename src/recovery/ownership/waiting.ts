/**
 * What a partition waits for, for status, log and metrics. One of these states asks for a person; its text
 * and its one order stand here and nowhere else.
 */
import type { HolderId, RecordedMember } from '../../protocol/partition-record.js';

export const Waiting = {
  NOTHING: 0,
  /** A change of the record, or a look at it, gets no answer. */
  REGISTER: 1,
  /** Another process, which is to be taken over from, may still deliver by a lease, or begin. */
  LEASE: 2,
  /**
   * Every copy that counts is at stores that do not answer here, or there is none but in a silent process; or
   * stores that must answer have not, for long; or, for long, none takes it, for a process lives that has it.
   */
  COPIES_AWAY: 3,
  /**
   * The register is older than what stores were told, or every copy is gone: all stores must answer. Or no
   * store has a copy of what is held, or takes one: any will do.
   */
  STORES: 4,
} as const;
export type WaitingValue = (typeof Waiting)[keyof typeof Waiting];
/** How the one order begins. */
export const RESCUE_ORDER = 'twinpost rescue';
export const WAITING_NAMES = ['nothing', 'register', 'lease', 'copies away', 'stores'] as const;

/** What a person is asked for. */
export const AwayCause = {
  /** Every copy that counts, or is the last one. */
  COPIES: 0,
  /** No store has a copy: only a process may. */
  MEMORY: 1,
  /** Every copy that counts is gone. Stores that were not heard may have another, or know better. */
  ALL_GONE: 2,
  /** The register knows less than it should: stores that were not heard may know more. */
  REGISTER_BEHIND: 3,
  /** A process that lives has copies, and neither the register nor this process hears it. No order helps. */
  HELD: 4,
} as const;
export type AwayCauseValue = (typeof AwayCause)[keyof typeof AwayCause];

/** `stores`: whose answer is waited for; of HELD, where the copies are. */
export interface Away {
  readonly cause: AwayCauseValue;
  readonly stores: readonly string[];
}

/**
 * The one text that asks for a person. It ends with the order, if there is one, to which status adds the
 * gateway to be asked.
 */
export function awayText(away: Away, { gatewayId, incarnation }: HolderId): string {
  const { cause, stores } = away;
  if (cause === AwayCause.HELD) return unbegunText(stores, { gatewayId, incarnation });
  if (cause === AwayCause.MEMORY) {
    return `no store has a copy that counts any more; ${gatewayId} (incarnation ${String(incarnation)}) may `
      + 'still have it in memory, and does not answer. If that process lives, let it reach the register and '
      + `the stores: it goes on by itself. If it is dead, start ${gatewayId} on its machine: it begins it `
      + `empty. Or give its memory up: ${RESCUE_ORDER} --give-up-memory --reason TEXT`;
  }
  const order = `${RESCUE_ORDER} ${stores.map((store) => `--give-up ${store}`).join(' ')} --reason TEXT`;
  if (cause === AwayCause.COPIES) {
    return `every copy that counts is at stores that do not answer this gateway (${stores.join(', ')}). It `
      + 'goes on by itself when one of them answers with what it had. If none ever will, give these copies '
      + `up: ${order}`;
  }
  return `${unheardText(away)}. It goes on by itself when all have answered. If one never will, give up what `
    + `it may have: ${order}`;
}

/** Every store is asked. */
export function unheardText({ cause, stores }: Away): string {
  const what = cause === AwayCause.ALL_GONE
    ? 'every copy that the register knows of is gone, for its store has restarted: every store must say '
      + 'whether it has another, or was told of a newer record'
    : 'the register has no record of it, or an older one than a store was told of: every store must say what '
      + 'it knows';
  return `${what}${stores.length === 0 ? '' : `; silent: ${stores.join(', ')}`}`;
}

/** It goes on by itself when any store takes it. */
export function unstoredText(copies: readonly string[]): string {
  const silent = copies.length === 0 ? '' : `; silent: ${copies.join(', ')}`;
  return 'it is held in the memory of this process alone, which must not be restarted: no store with a copy '
    + `of it answers, and none that may take one${silent}`;
}

/** `refusing`: a process that lives, and that the register may not hear, has a copy at these stores. */
export function unbegunText(refusing: readonly string[], { gatewayId, incarnation }: HolderId): string {
  if (refusing.length === 0) return 'it begins anew, and no store takes it yet';
  const last = incarnation === 0 ? ''
    : ` The register names ${gatewayId} (incarnation ${String(incarnation)}).`;
  return `it was to begin anew, and does not: a process that lives has a copy at ${refusing.join(', ')}. `
    + 'That process must not be restarted: let it reach the register and the stores, and it goes on by '
    + `itself.${last}`;
}

/** By the holder's name, not only its partition's: neighbours hold what they rescue. */
export function leaseText({ gatewayId }: HolderId): string {
  return `${gatewayId} held it last, and may still deliver from it by a lease, until that has run out: then `
    + 'it is taken over';
}

/** Once it is this process's own, in the register. */
export const WAITING_OUT_TEXT = 'this process has taken it, and waits until leases that earlier holders may '
  + 'have are over';

/** Of a process that the register names, and that no copy has heard of. */
export function untakenText({ gatewayId }: HolderId): string {
  return `the register names ${gatewayId}, which has not begun to hold it at any copy: it may be cut off `
    + 'from the register. If it does not begin, another takes over';
}

/** Each once, by name: what waits for the same stores is told together, in one order. */
export function storesOf(members: readonly RecordedMember[]): readonly string[] {
  return [...new Set(members.map((member) => member.storeId))].sort();
}
