/**
 * What was said of an entry in words, by next hops of its recipients and by an operator who holds it: soft
 * state. It makes reports and lists readable, and nothing depends on it: kept in a bounded pool
 * (base/text-pool.ts), told to the stores best effort (TEXTS), it may be cut, forgotten, or missing after a
 * takeover. The codes, and that an operator holds it, are in the note.
 *
 * A MessagePack array: since when it is held (0: no words of a hold follow), who holds it, why; a text, the
 * host that said it, alone in an array, if it has a name, then the recipients of whom it was said, then the
 * next text …; equal ones stand once. Releases before know no hosts, and pass them over.
 */
import { cutText } from '../../base/cut-text.js';
import { utf8Octets } from '../../base/utf8.js';
import type { Packer } from '../../platform/ports.js';
import { checkControl } from '../../protocol/bounds.js';
import { TEXT_BYTES_MAX } from '../../protocol/text-rows.js';

/**
 * Of one text, in UTF-8. The longest reply line has 512 (RFC 5321 4.5.3.1.5); what matters stands in front.
 */
const REPLY_BYTES_MAX = 200;
/** A longer name is not kept. */
const HOST_BYTES_MAX = 96;
/** Of a hold: together half of what an entry has. The log has all of it. */
const HOLD_WHO_BYTES_MAX = 64;
const HOLD_REASON_BYTES_MAX = 192;
/** Marks of the array, of the time of a hold, of a text and of a recipient in MessagePack, at most. */
const ARRAY_BYTES = 3;
const TIME_BYTES = 9;
const MARK_BYTES = 3;
const RECIPIENT_BYTES_MAX = 3;
const HOLD_ELEMENTS = 3;

/** By recipient. */
export type ReplyTexts = ReadonlyMap<number, ReplyText>;

export interface ReplyText {
  readonly text: string;
  /** Name of the next hop that said it; '' of one without a name, and of words of our own. */
  readonly host: string;
}

/** Whose hold it is and why. */
export interface HoldWords {
  /** As the note has it: words of another hold are none of this one. */
  readonly sinceWallMs: number;
  readonly who: string;
  readonly reason: string;
}

export const NOTHING_SAID: ReplyText = { text: '', host: '' };

export interface EntryTexts {
  readonly hold: HoldWords | undefined;
  readonly replies: ReplyTexts;
}

export const NO_TEXTS: EntryTexts = { hold: undefined, replies: new Map() };

/**
 * The texts as bytes, none when there is nothing to say; replies that do not fit TEXT_BYTES_MAX any more are
 * left out.
 */
export function encodeEntryTexts(packer: Packer, { hold, replies }: EntryTexts): Uint8Array {
  const who = cutText(hold?.who ?? '', HOLD_WHO_BYTES_MAX);
  const reason = cutText(hold?.reason ?? '', HOLD_REASON_BYTES_MAX);
  const known = new Map<string, { readonly said: ReplyText; readonly recipients: number[] }>();
  let bytes = ARRAY_BYTES + TIME_BYTES + 2 * MARK_BYTES + utf8Octets(who) + utf8Octets(reason);
  for (const [recipient, { text, host }] of replies) {
    if (text === '') continue;
    const cut = cutText(text, REPLY_BYTES_MAX);
    const said = { text: cut, host: utf8Octets(host) > HOST_BYTES_MAX ? '' : host };
    const key = `${said.host} ${cut}`;
    const equal = known.get(key);
    const hostBytes = said.host === '' ? 0 : 1 + MARK_BYTES + utf8Octets(said.host);
    const cost = RECIPIENT_BYTES_MAX + (equal === undefined ? MARK_BYTES + utf8Octets(cut) + hostBytes : 0);
    if (bytes + cost > TEXT_BYTES_MAX) continue;
    bytes += cost;
    if (equal === undefined) known.set(key, { said, recipients: [recipient] });
    else equal.recipients.push(recipient);
  }
  if (known.size === 0 && hold === undefined) return new Uint8Array(0);
  const flat: (string | number | readonly [string])[] = [hold?.sinceWallMs ?? 0, who, reason];
  for (const { said: { text, host }, recipients } of known.values()) {
    flat.push(text);
    if (host !== '') flat.push([host]);
    for (const recipient of recipients) flat.push(recipient);
  }
  return packer.pack(flat);
}

/** The bytes may be anybody's: what is no text of ours says nothing. */
export function decodeEntryTexts(packer: Packer, bytes: Uint8Array): EntryTexts {
  if (checkControl(bytes) !== '') return NO_TEXTS;
  const values = packer.unpack(bytes) as readonly unknown[];
  const [sinceWallMs, who, reason] = values;
  const isHold =
    typeof sinceWallMs === 'number' && sinceWallMs > 0
    && typeof who === 'string' && typeof reason === 'string';
  const replies = new Map<number, ReplyText>();
  let said = NOTHING_SAID;
  for (const value of values.slice(HOLD_ELEMENTS)) {
    if (typeof value === 'string') said = { text: value, host: '' };
    else if (Array.isArray(value)) said = { ...said, host: hostOf(value) };
    else if (typeof value === 'number') replies.set(value, said);
  }
  return { hold: isHold ? { sinceWallMs, who, reason } : undefined, replies };
}

function hostOf([host]: readonly unknown[]): string {
  return typeof host === 'string' ? host : '';
}
