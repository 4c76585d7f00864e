/**
 * What an alias leads to is not told by us to whoever writes to it: one message to a list would tell who is
 * on it, or where somebody has his mail sent on to (RFC 3464 4.2). A report of ours names the address that
 * was written to, once for all behind it that this report is about, with the worst that it has of any;
 * neither them nor who takes their mail. A next hop's own reports may: of success it is asked for none
 * (commands/recipient.ts).
 *
 *   team@ours.example ─► anna@ours.example   delivered
 *                     ─► x@else.example      failed      ─► "team@ours.example: failed", and the codes of why
 *
 * The same for what we lead to another address by ourselves, as postmaster. Words of a next hop are told of
 * nobody behind an alias: it may quote or hint at any address, in any way. Its codes are; the log has it all
 * (mail-record.ts).
 */
import { ALIAS_CHANGED } from '../mail-types.js';
import type { Recipient } from '../mail-types.js';
import type { DsnAction, DsnRecipient } from './dsn.js';

const WORST_FIRST: readonly DsnAction[] = ['failed', 'delayed', 'relayed', 'expanded', 'delivered'];

export function isHidden({ notify }: Recipient): boolean {
  return (notify & ALIAS_CHANGED) !== 0;
}

/** Of the recipients of a report what its reader may know. */
export function withoutMembers(told: readonly DsnRecipient[]): readonly DsnRecipient[] {
  // By what was written to; Map keeps the place of the first.
  const groups = new Map<unknown, DsnRecipient>();
  for (const one of told) {
    const hides = isHidden(one.recipient);
    const key = hides ? one.recipient.orcpt : one;
    const before = groups.get(key);
    if (before !== undefined && !isWorse(one, before)) continue;
    groups.set(key, hides ? { ...one, text: '', remoteMta: '' } : one);
  }
  return [...groups.values()];
}

function isWorse(one: DsnRecipient, other: DsnRecipient): boolean {
  return WORST_FIRST.indexOf(one.action) < WORST_FIRST.indexOf(other.action);
}
