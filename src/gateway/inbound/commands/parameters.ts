/**
 * ESMTP parameters of MAIL and RCPT: SIZE (RFC 1870), BODY (RFC 6152), SMTPUTF8 (RFC 6531), REQUIRETLS
 * (RFC 8689) and the DSN set RET, ENVID, NOTIFY, ORCPT (RFC 3461 section 4). Values are validated and kept
 * as received: ENVID and ORCPT stay xtext, because they are passed on as xtext and must come out unchanged.
 *
 * xtext that decodes to anything but printable ASCII is refused: it would end up in the header of a DSN.
 * What is not listed is answered with 555 (RFC 5321 4.1.1.11), a parameter given twice with 501.
 *
 * Owns nothing; a Refusal is the result when something is wrong, undefined when all is well.
 */

import { upperKeyword } from '../../../base/fold-case.js';
import {
  NOTIFY_DELAY,
  NOTIFY_FAILURE,
  NOTIFY_NEVER,
  NOTIFY_SUCCESS,
  RET_FULL,
  RET_HEADERS,
} from '../../mail-types.js';
import { PARAMETER_UNKNOWN, badParameter } from '../session/replies.js';
import type { Refusal } from '../session/replies.js';

/** RFC 3461 4.4 and 4.2: at most this many characters. */
const ENVID_CHARACTERS_MAX = 100;
export const ORCPT_CHARACTERS_MAX = 500;
/** RFC 1870: 1*20DIGIT. */
const SIZE_DIGITS_MAX = 20;

const AUTH_SYNTAX = badParameter('AUTH needs an address in xtext, or <>');
const TWICE = badParameter('Parameter given twice');
const SIZE_SYNTAX = badParameter('SIZE needs a number');
const ENVID_SYNTAX = badParameter('ENVID needs up to 100 characters of xtext');
const ORCPT_SYNTAX = badParameter('ORCPT needs type;xtext of up to 500 characters');

export class MailParameters {
  readonly #takesAuth: boolean;
  readonly #takesRequireTls: boolean;
  /** It must have TLS all the way (RFC 8689). */
  requiresTls = false;
  /** SMTPUTF8 (RFC 6531 3.4). */
  isUtf8 = false;
  ret = 0;
  envid = '';
  /** Declared size, 0 when not given. */
  sizeBytes = 0;

  /** `takesAuth`: AUTH is offered, and with it this parameter (RFC 4954 5). */
  constructor(takesAuth: boolean, takesRequireTls: boolean) {
    this.#takesAuth = takesAuth;
    this.#takesRequireTls = takesRequireTls;
  }

  /** Reads what follows the path from `at`. */
  parse(line: string, at: number): Refusal | undefined {
    return eachParameter(line, at, this);
  }

  /** Bits of the parameters seen, see eachParameter. */
  take(key: string, value: string | undefined): Refusal | number {
    switch (key) {
      case 'SIZE':
        if (value === undefined || value.length > SIZE_DIGITS_MAX || !isDigits(value)) return SIZE_SYNTAX;
        this.sizeBytes = Number(value);
        return 1;
      case 'BODY':
        return this.#takeBody(upperKeyword(value ?? ''));
      case 'SMTPUTF8':
        if (value !== undefined) return badParameter('SMTPUTF8 takes no value');
        this.isUtf8 = true;
        return 4;
      case 'REQUIRETLS':
        if (!this.#takesRequireTls) return PARAMETER_UNKNOWN;
        if (value !== undefined) return badParameter('REQUIRETLS takes no value');
        this.requiresTls = true;
        return 64;
      case 'RET':
        return this.#takeRet(upperKeyword(value ?? ''));
      case 'ENVID':
        if (value === undefined || value.length > ENVID_CHARACTERS_MAX) return ENVID_SYNTAX;
        if (!isXtext(value)) return ENVID_SYNTAX;
        this.envid = value;
        return 16;
      case 'AUTH':
        // Who submitted it first, as the client says, which is not believed: a next hop that we authenticate
        // to is told AUTH=<> of all mail (RFC 4954 5).
        if (!this.#takesAuth) return PARAMETER_UNKNOWN;
        return value !== undefined && (value === '<>' || isXtext(value)) ? 32 : AUTH_SYNTAX;
      default:
        return PARAMETER_UNKNOWN;
    }
  }

  #takeBody(value: string): Refusal | number {
    if (value !== '7BIT' && value !== '8BITMIME') return badParameter('BODY must be 7BIT or 8BITMIME');
    // The octets themselves will tell.
    return 2;
  }

  #takeRet(value: string): Refusal | number {
    if (value !== 'FULL' && value !== 'HDRS') return badParameter('RET must be FULL or HDRS');
    this.ret = value === 'FULL' ? RET_FULL : RET_HEADERS;
    return 8;
  }
}

export class RecipientParameters {
  notify = 0;
  orcpt = '';

  parse(line: string, at: number): Refusal | undefined {
    return eachParameter(line, at, this);
  }

  take(key: string, value: string | undefined): Refusal | number {
    switch (key) {
      case 'NOTIFY': {
        const bits = notifyBits(value ?? '');
        if (bits === 0) return badParameter('NOTIFY must be NEVER, or a list of SUCCESS, FAILURE, DELAY');
        this.notify = bits;
        return 1;
      }
      case 'ORCPT':
        if (value === undefined || value.length > ORCPT_CHARACTERS_MAX) return ORCPT_SYNTAX;
        if (!isOriginalRecipient(value)) return ORCPT_SYNTAX;
        this.orcpt = value;
        return 2;
      default:
        return PARAMETER_UNKNOWN;
    }
  }
}

interface Taker {
  /** The bit of the parameter, or what is wrong with it. */
  take(key: string, value: string | undefined): Refusal | number;
}

/** Splits `keyword[=value]` at spaces; trailing spaces are tolerated (RFC 5321 4.1.1). */
function eachParameter(line: string, from: number, taker: Taker): Refusal | undefined {
  let seen = 0;
  let at = from;
  while (at < line.length) {
    if (line.charCodeAt(at) !== 0x20) return badParameter('A space must stand before each parameter');
    at++;
    if (at >= line.length || line.charCodeAt(at) === 0x20) continue;
    const space = line.indexOf(' ', at);
    const end = space < 0 ? line.length : space;
    const equals = line.indexOf('=', at);
    const keyEnd = equals >= 0 && equals < end ? equals : end;
    const value = keyEnd < end ? line.slice(keyEnd + 1, end) : undefined;
    const result = taker.take(upperKeyword(line.slice(at, keyEnd)), value);
    if (typeof result !== 'number') return result;
    if ((seen & result) !== 0) return TWICE;
    seen |= result;
    at = end;
  }
  return undefined;
}

const NOTIFY_WORDS: ReadonlyMap<string, number> = new Map([
  ['NEVER', NOTIFY_NEVER], ['SUCCESS', NOTIFY_SUCCESS], ['FAILURE', NOTIFY_FAILURE], ['DELAY', NOTIFY_DELAY],
]);

/** 0 when the list is none. */
function notifyBits(value: string): number {
  let bits = 0;
  for (const word of upperKeyword(value).split(',')) {
    const bit = NOTIFY_WORDS.get(word) ?? 0;
    if (bit === 0 || (bits & bit) !== 0) return 0;
    bits |= bit;
  }
  // RFC 3461 4.1: NEVER stands alone.
  return (bits & NOTIFY_NEVER) !== 0 && bits !== NOTIFY_NEVER ? 0 : bits;
}

/** addr-type ";" xtext; RFC 6533 lets type utf-8 have non-ASCII characters and \x{...} as they are. */
function isOriginalRecipient(value: string): boolean {
  const semicolon = value.indexOf(';');
  if (semicolon < 1 || semicolon === value.length - 1) return false;
  for (let at = 0; at < semicolon; at++) {
    if (!isKeywordCharacter(value.charCodeAt(at))) return false;
  }
  const text = value.slice(semicolon + 1);
  return value.slice(0, semicolon).toLowerCase() === 'utf-8' ? isUtf8Xtext(text) : isXtext(text);
}

/** RFC 3461 4: printable ASCII but "+" and "=", or "+" and two upper-case hex digits of a printable one. */
function isXtext(value: string): boolean {
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (code < 0x21 || code > 0x7e || code === 0x3d) return false;
    if (code !== 0x2b) continue;
    const decoded = hexDigit(value.charCodeAt(at + 1)) * 16 + hexDigit(value.charCodeAt(at + 2));
    if (!(decoded >= 0x20 && decoded <= 0x7e)) return false;
    at += 2;
  }
  return value.length > 0;
}

/** ASCII text as xtext. */
export function xtext(text: string): string {
  return text.replace(/[^!-*,-<>-~]/g, (one) =>
    `+${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
}

function isUtf8Xtext(value: string): boolean {
  let ascii = '';
  for (const character of value) {
    const code = character.codePointAt(0) ?? 0;
    if (code >= 0x7f && code < 0xa0) return false;
    if (code < 0x7f) ascii += character;
  }
  return ascii === '' || isXtext(ascii);
}

/** NaN when it is none (lower case is none: RFC 3461 4 hexchar). */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  return code >= 0x41 && code <= 0x46 ? code - 0x37 : NaN;
}

function isKeywordCharacter(code: number): boolean {
  const isLetter = (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);
  return isLetter || (code >= 0x30 && code <= 0x39) || code === 0x2d;
}

function isDigits(value: string): boolean {
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return false;
  }
  return value.length > 0;
}
