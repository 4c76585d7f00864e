/**
 * What a session begins with: the greeting (RFC 5321 4.3.1) and the replies to EHLO and HELO (4.1.1.1), without
 * enhanced status codes (RFC 2034 section 3). Made once, but for the client's address in them: the library puts each
 * together from lists and patterns, and one client in many brings a single message.
 */

import type { InboundOptions } from './options.js';

/** A domain has 255 octets (RFC 5321 4.5.3.1.2), an address literal fewer. */
const NAME_CHARACTERS_MAX = 300;
const EXTENSIONS = ['PIPELINING', '8BITMIME', 'SMTPUTF8', 'ENHANCEDSTATUSCODES', 'DSN'];

export class HelloReplies {
  readonly greeting: string;
  readonly #hostName: string;
  readonly #inClear: string;
  readonly #secure: string;

  constructor(options: InboundOptions) {
    const size = `SIZE ${options.messageBytesMax}`;
    this.#hostName = options.hostName;
    this.greeting = `220 ${options.hostName} ESMTP`;
    this.#inClear = lines([...EXTENSIONS, ...(options.tls === undefined ? [] : ['STARTTLS']), size]);
    this.#secure = lines([...EXTENSIONS, size]);
  }

  /** All lines of it, without the end of the last. */
  ehlo(clientAddress: string, secure: boolean): string {
    return `250-${this.#hostName} greets [${clientAddress}]\r\n${secure ? this.#secure : this.#inClear}`;
  }

  helo(clientAddress: string): string {
    return `250 ${this.#hostName} greets [${clientAddress}]`;
  }
}

/** The one argument of EHLO or HELO, or the reply when it is none. */
export function helloName(text: string): { readonly name: string } | string {
  const name = text.slice(4).trim();
  if (name === '' || /\s/.test(name)) return `501 Syntax: ${text.slice(0, 4).toUpperCase()} hostname`;
  return name.length > NAME_CHARACTERS_MAX ? '501 Host name too long' : { name };
}

function lines(extensions: readonly string[]): string {
  return extensions.map((extension, index) => (index < extensions.length - 1 ? '250-' : '250 ') + extension).join('\r\n');
}
