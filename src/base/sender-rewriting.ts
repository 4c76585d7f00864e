/**
 * The sender rewriting scheme (SRS, Shevek 2004, libsrs2.com/srs/srs.pdf): the reverse-path of a message that
 * an alias sends on to another organisation is an address at a domain of ours, which leads reports back. Else
 * the next hop finds us unauthorized to send for the sender's domain (SPF, RFC 7208), and refuses it.
 *
 *   alice@example.org                             SRS0=hash=day=example.org=alice@ours
 *   SRS0=theirs=day=example.org=alice@first       SRS1=hash=first==theirs=day=example.org=alice@ours
 *
 * The hash says that it was made here: nobody else can have reports relayed. The day ends it. An address that
 * was rewritten twice leads back to who rewrote it first, who knows the way on, and the day. A local part may
 * come out longer than the 64 octets of RFC 5321 4.5.3.1.1: no server is known to mind. Pure.
 */
import { dayText, daysSince, shortHash } from './signed-text.js';
import type { Hmac } from './signed-text.js';
import { utf8Octets } from './utf8.js';

/** Some next hops still try after a week, and their reports take their time. */
const DAYS_VALID = 21;
const HASH_CHARACTERS = 8;
/** RFC 5321 4.5.3.1.3, without the brackets. */
const ADDRESS_OCTETS_MAX = 254;

/** Any of the separators that the scheme allows behind its tag; who made an address knows which. */
const SRS0 = /^srs0([=+-].+)$/i;
const SRS1 = /^srs1[=+-](.+)$/i;

export class SenderRewriting {
  /** Lower-case A-labels. */
  readonly domain: string;
  readonly #keys: readonly Uint8Array[];
  readonly #hmac: Hmac;
  readonly #wallMs: () => number;

  /** `keys`: the first signs, every one of them is known. At least one. */
  constructor(domain: string, keys: readonly Uint8Array[], hmac: Hmac, wallMs: () => number) {
    this.domain = domain;
    this.#keys = keys;
    this.#hmac = hmac;
    this.#wallMs = wallMs;
  }

  /** The address that stands for this one; the same when it can't be written so. */
  rewritten(address: string): string {
    const at = address.lastIndexOf('@');
    const [local, domain] = [address.slice(0, at), address.slice(at + 1)];
    const [key] = this.#keys;
    // Within quotes it would be another local part.
    if (at <= 0 || local.startsWith('"') || domain.startsWith('[') || key === undefined) return address;
    const first = SRS0.exec(local)?.[1];
    const again = SRS1.exec(local)?.[1];
    let result: string;
    if (first !== undefined) result = this.#signed('SRS1', key, `${domain}=${first}`);
    else if (again !== undefined) result = this.#signed('SRS1', key, again.slice(again.indexOf('=') + 1));
    else result = this.#signed('SRS0', key, `${this.#today}=${domain}=${local}`);
    return utf8Octets(result) <= ADDRESS_OCTETS_MAX ? result : address;
  }

  /** Whether the local part of an address at our domain is of this kind. */
  isRewritten(local: string): boolean {
    return SRS0.test(local) || SRS1.test(local);
  }

  /** Whom it stands for; undefined when it was not made here, or its time is over. */
  original(local: string): string | undefined {
    const again = SRS1.exec(local)?.[1];
    const signed = again ?? SRS0.exec(local)?.[1]?.slice(1) ?? '';
    if (signed.charAt(HASH_CHARACTERS) !== '=') return undefined;
    const [hash, text] = [signed.slice(0, HASH_CHARACTERS).toLowerCase(), signed.slice(HASH_CHARACTERS + 1)];
    if (!this.#keys.some((key) => this.#hash(key, text) === hash)) return undefined;
    if (again !== undefined) {
      const domainEnd = text.indexOf('=');
      const first = `SRS0${text.slice(domainEnd + 1)}`;
      return domainEnd > 0 && SRS0.test(first) ? `${first}@${text.slice(0, domainEnd)}` : undefined;
    }
    const domainEnd = text.indexOf('=', 3);
    if (domainEnd < 0 || !this.#isRecent(text.slice(0, 2))) return undefined;
    return `${text.slice(domainEnd + 1)}@${text.slice(3, domainEnd)}`;
  }

  #signed(tag: string, key: Uint8Array, text: string): string {
    return `${tag}=${this.#hash(key, text)}=${text}@${this.domain}`;
  }

  #hash(key: Uint8Array, text: string): string {
    return shortHash(this.#hmac, key, text, HASH_CHARACTERS);
  }

  get #today(): string {
    return dayText(this.#wallMs());
  }

  #isRecent(day: string): boolean {
    return (daysSince(day, this.#wallMs()) ?? Infinity) <= DAYS_VALID;
  }
}
