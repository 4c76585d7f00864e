/**
 * What becomes of an entry that is not left to its course: its time is up, or an operator holds, delays or
 * deletes it. It depends on the state (entry-table.ts) that the entry is in at that moment.
 *
 *   state      its time is up                           hold                      delete
 *   STORING    waits: nobody was told that it is here   refused: being stored     refused: being stored
 *   READY      fails, reported                          HELD                      ends
 *   IN_FLIGHT  at the end of the attempt what is not    refused: being delivered  refused: being delivered
 *              delivered fails, reported
 *   DEFERRED   fails, reported                          HELD                      ends
 *   REPORTING  when the report is made, what is still   refused: being reported   refused: being reported
 *              to be tried fails, reported in its turn
 *   HELD       waits while an operator holds it, or it  refused: held already     ends
 *              was met in crashes, or can not be read;
 *              else fails, reported
 *
 * To delay is refused as to hold is; what an operator holds may be delayed, what else is held not.
 *
 * "Fails" means the recipients that are still to be tried; each is reported, or ended where no report is
 * allowed (settlement.ts). The head of a strict queue frees it by its own end, hold or delete, never by that
 * of another entry (mail-queue.ts). What an operator is refused, the operator asks again: those states last
 * moments, but where nobody is left to be tried, or no route leads out of the queue, and nobody can say the
 * way of the report. A delivery that was cut goes on for longer: within half a minute, when the transactions
 * of that time have ended, it rests for a minute for an operator who was refused (refused-orders.ts).
 *
 * Not here: who finds that the time is up (expiry-sweep.ts), the orders (message-holds.ts).
 */
import { EntryState } from './entry-table.js';

/** The entry waits for nothing that is under way: it may be taken out of its queue. */
export function isResting(state: number): boolean {
  return state === EntryState.READY || state === EntryState.DEFERRED || state === EntryState.HELD;
}

/** Why an entry in this state can not be held or deleted now; '' when it can. */
export function whyNotNow(state: number): string {
  switch (state) {
    case EntryState.IN_FLIGHT: return 'it is being delivered at this moment';
    case EntryState.STORING: return 'it is being stored at this moment';
    case EntryState.REPORTING: return 'it is being reported at this moment';
    default: return '';
  }
}
