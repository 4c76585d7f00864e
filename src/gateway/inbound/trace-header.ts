/**
 * The Received field put in front of a message (RFC 5321 4.4; protocol names: RFC 3848, RFC 6531):
 *
 *   Received: from HELO ([client address])
 *   <tab>by HOST with ESMTP id ID
 *   <tab>for <recipient>; Sat, 21 Nov 2026 02:46:08 +0000
 *
 * `for` only when there is exactly one recipient: a list would tell each of the others (RFC 5321 7.6).
 * What the client said is bounded and reduced to harmless characters, so that it can't end the line, start a
 * comment or hide behind look-alikes.
 */

import type { Clock } from '../../platform/ports.js';

const HELO_CHARACTERS_MAX = 255;
/** With the fixed words around it this keeps each line below 998 octets. */
const FOR_CHARACTERS_MAX = 320;

/** The date of a message changes once a second: its text is made that often. */
export class TraceDate {
  readonly #clock: Clock;
  #second = -1;
  #text = '';

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** RFC 5322 3.3 date-time in UTC. */
  now(): string {
    const second = Math.floor(this.#clock.wallMs() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = new Date(second * 1000).toUTCString().replace('GMT', '+0000');
    }
    return this.#text;
  }
}

/** The name the client gave itself, safe for a header and a log. */
export function sanitizeHelo(helo: string): string {
  const bounded = helo.slice(0, HELO_CHARACTERS_MAX).replace(/[^A-Za-z0-9.:_[\]-]/g, '?');
  return bounded === '' ? 'unknown' : bounded;
}

export function protocolName(extended: boolean, secure: boolean, utf8: boolean): string {
  if (!extended) return 'SMTP';
  if (utf8) return secure ? 'UTF8SMTPS' : 'UTF8SMTP';
  return secure ? 'ESMTPS' : 'ESMTP';
}

/** The part that stays the same for all messages after one EHLO. */
export function traceStart(helo: string, clientAddress: string, hostName: string): string {
  const literal = clientAddress.includes(':') ? `[IPv6:${clientAddress}]` : `[${clientAddress}]`;
  return `Received: from ${helo} (${literal})\r\n\tby ${hostName} with `;
}

/** `onlyRecipient` is '' unless the message has exactly one; only printable ASCII is shown. */
export function traceHeader(start: string, protocol: string, id: string, onlyRecipient: string, date: string): Uint8Array {
  const shown = onlyRecipient !== '' && onlyRecipient.length <= FOR_CHARACTERS_MAX && isPlain(onlyRecipient);
  return Buffer.from(start + protocol + ' id ' + id + (shown ? '\r\n\tfor <' + onlyRecipient + '>; ' : ';\r\n\t') + date + '\r\n', 'latin1');
}

function isPlain(address: string): boolean {
  for (let at = 0; at < address.length; at++) {
    const code = address.charCodeAt(at);
    if (code < 0x20 || code > 0x7e) return false;
  }
  return true;
}
