/**
 * The header section of a whole message as signers and verifiers need it: its fields one by one, and where
 * its body begins. Input are the pieces of a content, prefix first; lines end with CRLF (content-scan.ts).
 * Pure.
 *
 * A section that readers may take for different ones is none: with a line that is no field, nobody can say
 * where others see its end. Bounded in octets and in fields, so that none takes over some milliseconds.
 */
import type { Latin1Text } from '../../platform/ports.js';

/** Three times what Postfix takes for a header at most (header_size_limit). */
const SECTION_OCTETS_MAX = 320 * 1024;
/** Real mail has fewer than 1,000, and each costs as much as a hundred octets. */
const FIELDS_MAX = 2000;
const LINE_END = '\r\n';
const SECTION_END = '\r\n\r\n';

/** RFC 5322 3.6.8: printable ASCII without colon; blanks before the colon by 4.5. */
const FIELD = /^([!-9;-~]+)[ \t]*:/;

/** One character an octet. */
export interface SectionField {
  /** Lower case. */
  readonly name: string;
  /** Behind the colon, folded as it came, without the last line end. */
  readonly value: string;
  /** All of it as it came, name and colon too, without the last line end. */
  readonly whole: string;
}

export interface SectionText {
  /** Without its end; one character an octet. */
  readonly text: string;
  /** Where the body begins: index of the piece, and in it. Behind the last piece: there is none. */
  readonly bodyPiece: number;
  readonly bodyAt: number;
}

export interface HeaderSection extends Omit<SectionText, 'text'> {
  readonly fields: readonly SectionField[];
  readonly octets: number;
}

/** Undefined when it is too long, has too many fields, or is not plainly one. */
export function readHeaderSection(
  pieces: readonly Uint8Array[], latin1Text: Latin1Text,
): HeaderSection | undefined {
  const section = sectionText(pieces, latin1Text);
  if (section === undefined) return undefined;
  const fields = fieldsOf(section.text);
  if (fields === undefined) return undefined;
  const { text: { length: octets }, bodyPiece, bodyAt } = section;
  return { fields, octets, bodyPiece, bodyAt };
}

/** Undefined when it is too long. */
export function sectionText(pieces: readonly Uint8Array[], latin1Text: Latin1Text): SectionText | undefined {
  const octetsMax = SECTION_OCTETS_MAX + SECTION_END.length;
  let text = '';
  /** Of the pieces before: an end may lie across. What begins with an empty line has no header. */
  let tail = LINE_END;
  for (const [index, piece] of pieces.entries()) {
    const before = text.length;
    const part = latin1Text(piece, 0, Math.min(piece.length, octetsMax - before));
    text += part;
    // Searching the text itself would copy all of it for each piece.
    const seen = tail + part;
    const at = seen.indexOf(SECTION_END);
    const end = before - tail.length + at;
    if (at >= 0) {
      const bodyAt = end + SECTION_END.length - before;
      return { text: text.slice(0, Math.max(0, end)), bodyPiece: index, bodyAt };
    }
    if (text.length > SECTION_OCTETS_MAX) return undefined;
    tail = seen.slice(1 - SECTION_END.length);
  }
  // All of it is header.
  const whole = text.endsWith(LINE_END) ? text.slice(0, -LINE_END.length) : text;
  return { text: whole, bodyPiece: pieces.length, bodyAt: 0 };
}

/** Undefined where a line is none, or there are too many. */
function fieldsOf(text: string): readonly SectionField[] | undefined {
  const wholes = unfolded(text);
  if (wholes === undefined) return undefined;
  const fields: SectionField[] = [];
  for (const whole of wholes) {
    const [start = '', name] = FIELD.exec(whole) ?? [];
    if (name === undefined) return undefined;
    fields.push({ name: name.toLowerCase(), value: whole.slice(start.length), whole });
  }
  return fields;
}

/** Each field with the lines that it is folded into; undefined when there are too many. */
export function unfolded(text: string): readonly string[] | undefined {
  const fields = text.split(/\r\n(?![ \t])/, FIELDS_MAX + 1);
  return fields.length > FIELDS_MAX ? undefined : fields;
}
