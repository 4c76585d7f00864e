/**
 * The Received field put in front of a message (RFC 5321 4.4; protocol names: RFC 3848, RFC 6531):
 *
 *   Received: from HELO ([client address])
 *   <tab>by HOST with ESMTP id ID
 *   <tab>for <recipient>; Sat, 21 Nov 2026 02:46:08 +0000
 *
 *   <tab>tls TLS_AES_256_GCM_SHA384; Sat, …    in TLS, in front of the date (RFC 8314 4.3)
 *
 *   Received: from HELO (unknown)              whom a proxy does not tell
 *
 * `for` only when there is exactly one recipient: a list would tell each of the others (RFC 5321 7.6).
 * What the client said is bounded and reduced to harmless characters, so that it can't end the line, start a
 * comment or hide behind look-alikes.
 */

import { mailDate } from '../../../base/mail-date.js';
import { latin1Bytes } from '../../../base/utf8.js';
import { FIELD_DATE, FIELD_MESSAGE_ID } from './content-scan.js';
import type { Clock } from '../../../platform/ports.js';

const HELO_CHARACTERS_MAX = 255;
/** With the fixed words around it this keeps each line below 998 octets. */
const FOR_CHARACTERS_MAX = 320;
/** HELO, address, our name of at most 255, recipient, id, date and the words between them. */
const FIELD_OCTETS_MAX = 2048;

/** What nobody reads as an address: without brackets and colons, and with a letter in its last label. */
const NO_ADDRESS = /^[\w.-]*[a-z][\w-]*$/i;

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
      this.#text = mailDate(second * 1000);
    }
    return this.#text;
  }
}

/** The name the client gave itself, safe for a header and a log. */
export function sanitizeHelo(helo: string): string {
  const bounded = helo.slice(0, HELO_CHARACTERS_MAX).replace(/[^A-Za-z0-9.:_[\]-]/g, '?');
  return bounded === '' ? 'unknown' : bounded;
}

/** RFC 3848, RFC 6531 4.3: S within TLS, A after AUTH. */
export function protocolName(
  isExtended: boolean, isSecure: boolean, isAuthenticated: boolean, isUtf8: boolean,
): string {
  if (!isExtended) return 'SMTP';
  return (isUtf8 ? 'UTF8SMTP' : 'ESMTP') + (isSecure ? 'S' : '') + (isAuthenticated ? 'A' : '');
}

/**
 * The part that stays the same for all messages after one EHLO. `clientAddress` '': nobody tells it. RFC 5321
 * 4.4 wants it where it is known; filters judge by it whose mail it is, and would go by the address of the
 * proxy, or by one that the client gives for its name.
 */
export function traceStart(helo: string, clientAddress: string, hostName: string): Uint8Array {
  const isTold = clientAddress !== '';
  const literal = clientAddress.includes(':') ? `[IPv6:${clientAddress}]` : `[${clientAddress}]`;
  const from = isTold ? `${helo} (${literal})` : `${NO_ADDRESS.test(helo) ? helo : 'unknown'} (unknown)`;
  return latin1Bytes(`Received: from ${from}\r\n\tby ${hostName} with `);
}

/** Of all messages in one TLS session; `cipher` '': nobody tells it. */
export function tlsClause(cipher: string): string {
  return cipher === '' ? '' : `\r\n\ttls ${cipher}`;
}

/** Of a message that has none. */
export function madeMessageId(id: string, hostName: string): string {
  return '<' + id + '@' + hostName + '>';
}

/**
 * Writes the field into memory that the next one uses again: who takes the message copies it before that
 * (Submission.chunks). One for all sessions.
 */
export class TraceWriter {
  readonly #scratch = new Uint8Array(FIELD_OCTETS_MAX);
  #length = 0;
  #field = this.#scratch.subarray(0, 0);
  #date = '';
  #dateOctets: Uint8Array = this.#field;

  /**
   * The fields that a submitted message lacks (RFC 6409 8.1, 8.2), behind the last field() or addMissing().
   */
  addMissing(fields: number, id: string, hostName: string, date: string): Uint8Array {
    if ((fields & FIELD_DATE) === 0) this.#put('Date: ' + date + '\r\n');
    if ((fields & FIELD_MESSAGE_ID) === 0) {
      this.#put('Message-ID: ' + madeMessageId(id, hostName) + '\r\n');
    }
    return this.#written();
  }

  /**
   * `onlyRecipient` is '' unless the message has exactly one; only printable ASCII is shown. `clause`:
   * tlsClause().
   */
  field(
    start: Uint8Array, protocol: string, id: string, onlyRecipient: string, clause: string, date: string,
  ): Uint8Array {
    this.#scratch.set(start);
    this.#length = start.length;
    this.#put(protocol);
    this.#put(' id ');
    this.#put(id);
    const before = this.#length;
    const isFor = onlyRecipient !== '' && onlyRecipient.length <= FOR_CHARACTERS_MAX;
    if (isFor) this.#put('\r\n\tfor <');
    if (isFor && this.#putPlain(onlyRecipient)) this.#put('>');
    else this.#length = before;
    this.#put(clause);
    this.#put(this.#length === before ? ';\r\n\t' : '; ');
    this.#putDate(date);
    return this.#written();
  }

  /** Its octets are those of the field before, as long as its second lasts. */
  #putDate(date: string): void {
    if (date !== this.#date) {
      this.#date = date;
      this.#dateOctets = latin1Bytes(date + '\r\n');
    }
    const scratch = this.#scratch;
    const octets = this.#dateOctets;
    const from = this.#length;
    for (let i = 0; i < octets.length; i++) scratch[from + i] = octets[i] ?? 0;
    this.#length = from + octets.length;
  }

  /** The same view as for the field before, when that was as long. */
  #written(): Uint8Array {
    if (this.#field.length !== this.#length) this.#field = this.#scratch.subarray(0, this.#length);
    return this.#field;
  }

  #put(text: string): void {
    const scratch = this.#scratch;
    const from = this.#length;
    for (let i = 0; i < text.length; i++) scratch[from + i] = text.charCodeAt(i);
    this.#length = from + text.length;
  }

  /** False: it is not printable ASCII, and what is put of it is to be dropped. */
  #putPlain(text: string): boolean {
    const scratch = this.#scratch;
    const from = this.#length;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code < 0x20 || code > 0x7e) return false;
      scratch[from + i] = code;
    }
    this.#length = from + text.length;
    return true;
  }
}
