/**
 * What a peer offers in its reply to EHLO or LHLO (RFC 5321 4.1.1.1): a set of bits and the SIZE limit.
 * Keywords that we do not use (CHUNKING, ENHANCEDSTATUSCODES: codes
 * are read where they stand, …) are passed over. Pure.
 */

export const CAN_PIPELINE = 1; // RFC 2920
export const CAN_SIZE = 2; // RFC 1870
export const CAN_8BITMIME = 4; // RFC 6152
export const CAN_SMTPUTF8 = 8; // RFC 6531
export const CAN_DSN = 16; // RFC 3461
export const CAN_STARTTLS = 32; // RFC 3207
export const CAN_AUTH_PLAIN = 64; // RFC 4954, 4616
export const CAN_AUTH_LOGIN = 128; // RFC 4954; draft-murchison-sasl-login
export const CAN_AUTH = 256; // RFC 4954, by whatever mechanism
export const CAN_REQUIRETLS = 512; // RFC 8689
/** No keyword: it took our user and password, so each MAIL tells AUTH= (RFC 4954 5). */
export const HAS_AUTHENTICATED = 1024;

const KEYWORDS: Readonly<Record<string, number>> = {
  'PIPELINING': CAN_PIPELINE,
  'SIZE': CAN_SIZE,
  '8BITMIME': CAN_8BITMIME,
  'SMTPUTF8': CAN_SMTPUTF8,
  'DSN': CAN_DSN,
  'STARTTLS': CAN_STARTTLS,
  'AUTH': CAN_AUTH,
  'REQUIRETLS': CAN_REQUIRETLS,
};

export interface Capabilities {
  readonly bits: number;
  /** Largest message the peer takes; 0 = it names no limit. */
  readonly sizeBytesMax: number;
}

/** For a peer that knows only HELO. */
export const NO_CAPABILITIES: Capabilities = { bits: 0, sizeBytesMax: 0 };

/** Reads the reply lines without their codes; the first is the greeting, not a keyword. */
export function parseCapabilities(lines: readonly string[]): Capabilities {
  let bits = 0;
  let sizeBytesMax = 0;
  for (let i = 1; i < lines.length; i++) {
    const words = (lines[i] ?? '').trim().toUpperCase().split(' ');
    const keyword = words[0] ?? '';
    const bit = Object.hasOwn(KEYWORDS, keyword) ? (KEYWORDS[keyword] ?? 0) : 0;
    bits |= bit;
    if (bit === CAN_AUTH) {
      if (words.includes('PLAIN', 1)) bits |= CAN_AUTH_PLAIN;
      if (words.includes('LOGIN', 1)) bits |= CAN_AUTH_LOGIN;
    }
    if (bit !== CAN_SIZE) continue;
    // A limit that is no number says nothing; up to 20 digits are allowed, past 2^53 it is no limit to us.
    const limit = Number(words[1] ?? '0');
    sizeBytesMax = Number.isSafeInteger(limit) && limit > 0 ? limit : 0;
  }
  return { bits, sizeBytesMax };
}
