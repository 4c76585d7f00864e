/**
 * The addresses of a From field (RFC 5322 3.6.2, and what 4.4 allows), for the question whose signature a
 * message gets. Where a reader might see another address than this one, there is none: it is left unsigned.
 * Nothing is decoded, no name is looked at. Pure.
 */

/** Longer ones are made to cost. */
const VALUE_CHARACTERS_MAX = 64 * 1024;
const ADDRESS_CHARACTERS_MAX = 512;
/** Each is looked up among those that its user may send from. */
const ADDRESSES_MAX = 100;
const BLANKS = /[ \t\r\n]+/g;

/** "local@domain" each, as written; undefined when it is not plain which they are. At least one. */
export function fromAddresses(value: string): readonly string[] | undefined {
  if (value.length > VALUE_CHARACTERS_MAX) return undefined;
  const reader = new FromReader(value);
  return reader.read() && reader.addresses.length > 0 ? reader.addresses : undefined;
}

class FromReader {
  readonly addresses: string[] = [];
  readonly #value: string;
  #at = 0;
  /** Of the mailbox at hand: what stands outside "<" and ">", and what within. */
  #plain = '';
  #angle: string | undefined;

  constructor(value: string) {
    this.#value = value;
  }

  /** False: it is no list of mailboxes. */
  read(): boolean {
    while (this.#at < this.#value.length) {
      const character = this.#value[this.#at++] ?? '';
      if (character === '(') {
        if (!this.#passComment()) return false;
        // Where a comment stands, a blank might.
        this.#plain += ' ';
      } else if (character === '"') {
        const quoted = this.#quoted();
        if (quoted === undefined || this.#angle !== undefined) return false;
        this.#plain += quoted;
      } else if (character === '<') {
        if (!this.#readAngle()) return false;
      } else if (character === ',' || character === ';') {
        if (!this.#endMailbox()) return false;
      } else if (character === ':') {
        // A group's name ends (RFC 6854).
        if (this.#angle !== undefined || this.#plain.includes('@')) return false;
        this.#plain = '';
      } else if (character === '>' || character === ')' || character === '\\') {
        return false;
      } else {
        this.#plain += character;
      }
    }
    return this.#endMailbox();
  }

  /** Comments nest. */
  #passComment(): boolean {
    for (let depth = 1; this.#at < this.#value.length;) {
      const character = this.#value[this.#at++];
      if (character === '\\') this.#at++;
      else if (character === '(') depth++;
      else if (character === ')' && --depth === 0) return true;
    }
    return false;
  }

  /** With its quotes; undefined when it does not end. */
  #quoted(): string | undefined {
    const from = this.#at - 1;
    while (this.#at < this.#value.length) {
      const character = this.#value[this.#at++];
      if (character === '\\') this.#at++;
      else if (character === '"') return this.#value.slice(from, this.#at);
    }
    return undefined;
  }

  #readAngle(): boolean {
    if (this.#angle !== undefined) return false;
    let text = '';
    while (this.#at < this.#value.length) {
      const character = this.#value[this.#at++] ?? '';
      if (character === '>') {
        this.#angle = text;
        this.#plain = '';
        return true;
      }
      if (character === '"') {
        const quoted = this.#quoted();
        if (quoted === undefined) return false;
        text += quoted;
      } else if (/[<(),;:\\]/.test(character)) {
        // Among them routes, which nobody writes any more (RFC 5322 4.4).
        return false;
      } else {
        text += character;
      }
    }
    return false;
  }

  #endMailbox(): boolean {
    const rest = this.#plain.replace(BLANKS, ' ').trim();
    const text = this.#angle ?? rest;
    // Behind ">" nothing stands.
    if (this.#angle !== undefined && rest !== '') return false;
    this.#plain = '';
    this.#angle = undefined;
    // An empty place in a list, or the end of a group.
    if (text === '' && rest === '') return true;
    const address = text.replace(BLANKS, ' ').trim();
    const at = address.lastIndexOf('@');
    const isAddress = at > 0 && at < address.length - 1 && address.length <= ADDRESS_CHARACTERS_MAX;
    const [local, domain] = [address.slice(0, at), address.slice(at + 1)];
    const isQuoted = /^"(?:[^"\\]|\\.)*"$/.test(local);
    if (!isAddress || /[ @"]/.test(domain) || (!isQuoted && /[ @"]/.test(local))) return false;
    this.addresses.push(address);
    return this.addresses.length <= ADDRESSES_MAX;
  }
}
