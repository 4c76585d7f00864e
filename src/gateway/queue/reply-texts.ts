/**
 * What next hops said of the recipients of an entry, in words: soft state. It makes reports and lists
 * readable, and nothing depends on it: kept in a bounded pool (base/text-pool.ts), told to the stores best
 * effort (TEXTS), it may be cut, forgotten, or missing after a takeover. The codes are in the note.
 *
 * A MessagePack array: a text, then the recipients of whom it was said, then the next text …; equal texts
 * stand once.
 */
import type { Packer } from '../../platform/ports.js';
import { checkControl } from '../../protocol/bounds.js';
import { TEXT_BYTES_MAX } from '../../protocol/text-rows.js';

/**
 * Of one text, in UTF-8. The longest reply line has 512 (RFC 5321 4.5.3.1.5); what matters stands in front.
 */
const ONE_TEXT_BYTES_MAX = 200;
/** Marks of the array, of a text and of a recipient in MessagePack, at most. */
const ARRAY_BYTES = 3;
const MARK_BYTES = 3;
const RECIPIENT_BYTES_MAX = 3;

export type ReplyTexts = ReadonlyMap<number, string>;

export const NO_TEXTS: ReplyTexts = new Map();

/** The texts as bytes; those that do not fit TEXT_BYTES_MAX any more are left out. */
export function packReplyTexts(packer: Packer, texts: ReplyTexts): Uint8Array {
  const recipientsOf = new Map<string, number[]>();
  let bytes = ARRAY_BYTES;
  for (const [recipient, text] of texts) {
    if (text === '') continue;
    const cut = cutText(text);
    const known = recipientsOf.get(cut);
    const cost = RECIPIENT_BYTES_MAX + (known === undefined ? MARK_BYTES + utf8Bytes(cut) : 0);
    if (bytes + cost > TEXT_BYTES_MAX) continue;
    bytes += cost;
    if (known === undefined) recipientsOf.set(cut, [recipient]);
    else known.push(recipient);
  }
  if (recipientsOf.size === 0) return new Uint8Array(0);
  const flat: (string | number)[] = [];
  for (const [text, recipients] of recipientsOf) {
    flat.push(text);
    for (const recipient of recipients) flat.push(recipient);
  }
  return packer.pack(flat);
}

/** By recipient. The bytes may be anybody's: what is no text of ours says nothing. */
export function readReplyTexts(packer: Packer, bytes: Uint8Array | undefined): Map<number, string> {
  const texts = new Map<number, string>();
  if (bytes === undefined || checkControl(bytes) !== '') return texts;
  let text = '';
  for (const value of packer.unpack(bytes) as readonly unknown[]) {
    if (typeof value === 'string') text = value;
    else if (typeof value === 'number') texts.set(value, text);
  }
  return texts;
}

function cutText(text: string): string {
  if (utf8Bytes(text) <= ONE_TEXT_BYTES_MAX) return text;
  let bytes = 0;
  let cut = '';
  for (const character of text) {
    bytes += utf8Bytes(character);
    if (bytes > ONE_TEXT_BYTES_MAX) break;
    cut += character;
  }
  return cut;
}

/** Each half of a surrogate pair counts for two of its four; one alone goes out as three. */
function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x80) bytes += code >= 0x800 ? 2 : 1;
  }
  return bytes;
}
