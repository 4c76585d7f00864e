/**
 * Header fields that a hook wants in front of a message: checked, and made into octets. They are a prefix,
 * as the Received field is: nothing that the client sent is changed, moved or taken away.
 *
 * A field may not end its line and begin another one, nor the header; may not be one that a message has once
 * (RFC 5322 3.6) or that says what its body is (RFC 2045 3): there would be two of it, and readers differ in
 * which one counts. ASCII only: what the next hop must offer depends on the client's octets alone. Pure.
 */
import { latin1Bytes } from '../../../base/utf8.js';

export interface HeaderField {
  readonly name: string;
  /** Without outer blanks; folded lines begin with a blank or a tab. */
  readonly value: string;
}

/** What all hooks together may put in front of one message. */
export const FIELDS_MAX = 64;
export const FIELDS_OCTETS_MAX = 32 * 1024;

const NAME_OCTETS_MAX = 76;
/** RFC 5322 2.1.1, without the line end. */
const LINE_OCTETS_MAX = 998;
/** Fewer characters than RFC 5322 2.2 allows; so a line never begins with a dot either. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;
const ONCE: ReadonlySet<string> = new Set([
  'date', 'from', 'sender', 'reply-to', 'to', 'cc', 'bcc', 'message-id', 'in-reply-to', 'references',
  'subject', 'mime-version',
]);

/** Why a field can't be put in front; '' when it can. */
export function fieldRule({ name, value }: HeaderField): string {
  if (name.length > NAME_OCTETS_MAX || !NAME.test(name)) return 'a name that is none';
  const lower = name.toLowerCase();
  if (ONCE.has(lower) || lower.startsWith('content-')) return `${name}, which the message itself has`;
  const [first = '', ...folded] = linesOf(value);
  if (folded.some((line) => !/^[ \t]/.test(line))) return `${name} with a line end in its value`;
  if (folded.some((line) => line.trim() === '')) return `${name} with an empty line in its value`;
  if (/[^\t\r\n -~]/.test(value)) return `${name} with a character that is not printable ASCII`;
  const longest = Math.max(name.length + 2 + first.length, ...folded.map((line) => line.length));
  if (longest <= LINE_OCTETS_MAX) return '';
  return `${name} with a line of more than ${String(LINE_OCTETS_MAX)} octets`;
}

export interface FieldRoom {
  readonly count: number;
  readonly octets: number;
}

/** Those without fault that there is room for, in their order. What is left out takes no room. */
export function fieldsThatFit(fields: readonly HeaderField[], room: FieldRoom): readonly HeaderField[] {
  const fitting: HeaderField[] = [];
  let octets = 0;
  for (const field of fields) {
    if (fitting.length >= room.count) break;
    const more = octets + field.name.length + field.value.length;
    if (more > room.octets || fieldRule(field) !== '') continue;
    octets = more;
    fitting.push(field);
  }
  return fitting;
}

/** Of fields without fault (fieldRule). */
export function fieldOctets(fields: readonly HeaderField[]): Uint8Array {
  let text = '';
  for (const { name, value } of fields) text += `${name}: ${linesOf(value).join('\r\n')}\r\n`;
  return latin1Bytes(text);
}

/** A lone CR ends no line: it is no character of a field. */
function linesOf(value: string): readonly string[] {
  return value.split(/\r?\n|\r/);
}
