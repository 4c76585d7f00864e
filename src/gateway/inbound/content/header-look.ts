/**
 * Looks into the top header of a complete content, for the few messages that need it: those that came with
 * SMTPUTF8, and those that passed several hosts. Every other message is submitted without.
 *
 * Input are the pieces of content-buffer.ts without the trace header; lines end with CRLF (content-scan.ts).
 */
import { latin1Text } from '../../../base/utf8.js';

/** So much of a header is looked at. */
const LOOK_OCTETS_MAX = 64 * 1024;
const CR = 0x0d;
const RECEIVED = 'received:';

/** The top header, one character an octet, CRLF between its lines; cut at the bound. */
export function topHeader(pieces: readonly Uint8Array[]): string {
  let text = '';
  for (const piece of pieces) {
    // An end that lies across two pieces is found too.
    const from = Math.max(0, text.length - 3);
    text += latin1Text(piece, 0, Math.min(piece.length, LOOK_OCTETS_MAX - text.length));
    if (text.charCodeAt(0) === CR) return '';
    const end = text.indexOf('\r\n\r\n', from);
    if (end >= 0) return text.slice(0, end + 2);
    if (text.length >= LOOK_OCTETS_MAX) return text;
  }
  return text;
}

/** Whether the header needs SMTPUTF8 (RFC 6531 3.1); one beyond the bound may. */
export function isInternational(header: string): boolean {
  return header.length >= LOOK_OCTETS_MAX || /[^\0-\x7f]/.test(header);
}

/** Whether the sender asks that TLS is not insisted on (RFC 8689 3); one field that says so is needed. */
export function isTlsUnasked(header: string): boolean {
  const said = header.split(/\r\n(?![ \t])/).filter((field) => /^tls-required:/i.test(field));
  return said.length === 1 && /^tls-required:\s*no\s*$/i.test(said[0] ?? '');
}

/** Received fields that say "by" this host (RFC 5321 4.4, 6.3). `host` in lower case. */
export function receivedBy(header: string, host: string): number {
  let count = 0;
  for (const field of header.toLowerCase().split(/\r\n(?![ \t])/)) {
    if (!field.startsWith(RECEIVED)) continue;
    const words = field.slice(RECEIVED.length).split(/[\s;]+/);
    if (words.some((word, at) => word === 'by' && words[at + 1] === host)) count += 1;
  }
  return count;
}
