/**
 * What an alias leads to is not told by us to whoever writes to it: one message to a list would tell who is
 * on it, or where somebody has his mail sent on to (RFC 3464 4.2). A report of ours names the address that
 * was written to, once for all that it leads to, with the worst that became of any; neither them nor who
 * takes their mail. A next hop's own reports may: of success it is asked for none (commands/recipient.ts).
 *
 *   team@ours.example ─► anna@ours.example   delivered
 *                     ─► x@else.example      failed      ─► "team@ours.example: failed", and why
 *
 * The same for what we lead to another address by ourselves, as postmaster. Next hops quote addresses in what
 * they say: those, and their parts, are masked; of a text that was cut (queue/entry-texts.ts) the last word
 * goes, which may be the beginning of one. The log has it all (mail-record.ts).
 */
import { utf8Octets } from '../../base/utf8.js';
import { REPLY_BYTES_MAX } from '../queue/entry-texts.js';
import { ALIAS_CHANGED } from '../queue/types.js';
import type { Recipient } from '../queue/types.js';
import type { DsnAction, DsnRecipient } from './dsn.js';

const WORST_FIRST: readonly DsnAction[] = ['failed', 'delayed', 'relayed', 'expanded', 'delivered'];
const MASK = '(hidden)';
/** Of any other one it is not known how it would be quoted. */
const PLAIN = /^[\w.+~#*!^-]+@[\w.-]+$/;
/** What may be an address, or one of its parts; an "@" in a link stands between two. */
const WORDS = /%40|[\w.+~#*!^@-]+/g;
/** A text that is cut has as many octets, but for a character of which a part was left. */
const CUT_OCTETS = REPLY_BYTES_MAX - 3;

export function isHidden({ notify }: Recipient): boolean {
  return (notify & ALIAS_CHANGED) !== 0;
}

/** Of the recipients of a report what its reader may know. `all`: those of the message. */
export function withoutMembers(
  told: readonly DsnRecipient[], all: readonly Recipient[],
): readonly DsnRecipient[] {
  const members = all.filter(isHidden);
  if (members.length === 0) return told;
  const mask = maskOf(members);
  // By what was written to; Map keeps the place of the first.
  const groups = new Map<unknown, DsnRecipient>();
  for (const one of told) {
    const key = isHidden(one.recipient) ? one.recipient.orcpt : one;
    const before = groups.get(key);
    if (before === undefined || isWorse(one, before)) groups.set(key, one);
  }
  return [...groups.values()].map((one) => {
    const text = mask(one.text);
    return isHidden(one.recipient) ? { ...one, text, remoteMta: '' } : { ...one, text };
  });
}

function isWorse(one: DsnRecipient, other: DsnRecipient): boolean {
  return WORST_FIRST.indexOf(one.action) < WORST_FIRST.indexOf(other.action);
}

/** '' where nothing can be told safely: then the codes are. */
function maskOf(members: readonly Recipient[]): (text: string) => string {
  if (members.some(({ address }) => !PLAIN.test(address))) return () => '';
  const words = new Set<string>();
  const domains = new Set<string>();
  for (const { address, orcpt } of members) {
    const lower = address.toLowerCase();
    const at = lower.lastIndexOf('@');
    words.add(lower).add(lower.slice(0, at));
    // The domain that was written to is known.
    if (!orcpt.toLowerCase().endsWith(lower.slice(at))) domains.add(lower.slice(at + 1));
  }
  return (text) => {
    const whole = utf8Octets(text) < CUT_OCTETS ? text : text.replace(/\S*$/, '');
    return whole.replace(WORDS, (word) => (isOf(word.toLowerCase(), words, domains) ? MASK : word));
  };
}

/** Also with a full stop behind it, as a host of the domain, and with a domain that a next hop gave it. */
function isOf(word: string, words: ReadonlySet<string>, domains: ReadonlySet<string>): boolean {
  const bare = word.replace(/^[.*!^~-]+|[.*!^~-]+$/g, '');
  if (words.has(word) || words.has(bare) || words.has(bare.split('@', 1)[0] ?? '')) return true;
  for (let from = 0; from >= 0 && from < bare.length;) {
    if (domains.has(bare.slice(from))) return true;
    const next = bare.slice(from).search(/[.@]/);
    from = next < 0 ? -1 : from + next + 1;
  }
  return false;
}
