/**
 * Why a mirror is not in sync, and since when, in words for who looks at the management table: the cause of its last
 * change of state. One that was made and has not been filled yet has had none; then what its store said of it counts.
 */
import type { Declined } from './declined.js';
import { Decline, wordOf } from './declined.js';
import type { Replica } from './replica.js';

export function causeOf(replica: Replica): string {
  if (replica.cause !== '') return replica.cause;
  // Of a queue that came back: why this member was left out.
  if (replica.awayCause !== '') return replica.awayCause;
  if (!replica.store.isUp) return 'new, and its store can not be reached';
  const word = wordOf(replica);
  return word === undefined ? 'new, and waits to be filled' : `new, and ${wordText(word)}`;
}

/** On the monotonic clock: since its last change of state, or since it was made. */
export function sinceMsOf(replica: Replica): number {
  return replica.cause === '' ? replica.awaySinceMs : replica.sinceMs;
}

function wordText({ why, text }: Declined): string {
  if (why === Decline.HELD) return 'another gateway holds the queue there';
  if (why === Decline.GRACE) return 'its store has just started, and waits for a lease of before';
  if (why === Decline.TAKEN) return 'another process has taken the queue there';
  if (why === Decline.FULL) return 'its store is full';
  return why === Decline.TABLE_FULL ? 'its store takes no more queues' : `refused: ${text}`;
}
