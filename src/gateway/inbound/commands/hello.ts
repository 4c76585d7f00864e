/**
 * How a session begins: the greeting (RFC 5321 4.3.1) and EHLO and HELO (4.1.1.1), whose replies have no
 * enhanced status codes (RFC 2034 section 3). They are made once, but for the client's address in them: one
 * client in many brings a single message.
 */
import type { InboundOptions } from '../options.js';
import { sanitizeHelo, traceStart } from '../content/trace-header.js';
import type { Desk } from '../session/desk.js';
import type { InboundDialog } from '../session/dialog.js';
import { xclientOffer } from './xclient.js';
import { HELLO_SYNTAX, HELLO_TOO_LONG, answer } from '../session/replies.js';
import type { Effect } from '../session/replies.js';

/** A domain has 255 octets (RFC 5321 4.5.3.1.2), an address literal fewer. */
const NAME_CHARACTERS_MAX = 300;
const EXTENSIONS = ['PIPELINING', '8BITMIME', 'SMTPUTF8', 'ENHANCEDSTATUSCODES', 'DSN', 'CHUNKING'];

export class HelloReplies {
  readonly greeting: string;
  readonly #hostName: string;
  readonly #inClear: string;
  readonly #secure: string;

  constructor(options: InboundOptions) {
    // RFC 1870; RFC 9422.
    const limits = [`LIMITS RCPTMAX=${options.recipientsMax}`, `SIZE ${options.messageBytesMax}`];
    this.#hostName = options.hostName;
    this.greeting = `220 ${options.hostName} ESMTP`;
    const offersStartTls = options.offersTls && !options.isTlsFirst;
    this.#inClear = lines([...EXTENSIONS, ...(offersStartTls ? ['STARTTLS'] : []), ...limits]);
    // Within TLS alone (RFC 8689 2).
    const requireTls = options.offersRequireTls ? ['REQUIRETLS'] : [];
    this.#secure = lines([...EXTENSIONS, ...requireTls, ...limits]);
  }

  /** All lines of it, without the end of the last. `own`: extensions of this session alone. */
  ehlo(clientAddress: string, isSecure: boolean, own: readonly string[]): string {
    const first = own.map((extension) => `250-${extension}\r\n`).join('');
    const extensions = isSecure ? this.#secure : this.#inClear;
    return `250-${this.#hostName} greets [${clientAddress}]\r\n${first}${extensions}`;
  }

  helo(clientAddress: string): string {
    return `250 ${this.#hostName} greets [${clientAddress}]`;
  }
}

export function ehlo(dialog: InboundDialog, desk: Desk, text: string): Effect {
  return hello(dialog, desk, text, true);
}

export function helo(dialog: InboundDialog, desk: Desk, text: string): Effect {
  return hello(dialog, desk, text, false);
}

function hello(dialog: InboundDialog, desk: Desk, text: string, isExtended: boolean): Effect {
  const name = text.slice(4).trim();
  if (name === '' || /\s/.test(name)) return HELLO_SYNTAX;
  if (name.length > NAME_CHARACTERS_MAX) return HELLO_TOO_LONG;
  // Ends the transaction (RFC 5321 4.1.4).
  dialog.endTransaction();
  dialog.isExtended = isExtended;
  dialog.helo = sanitizeHelo(name.toLowerCase());
  const { remoteAddress, proxy, tlsVersion } = dialog;
  const client = proxy === '' ? remoteAddress : '';
  dialog.traceStart = traceStart(dialog.helo, client, desk.options.hostName);
  if (!isExtended) return answer(desk.hello.helo(remoteAddress));
  const isSecure = tlsVersion !== '';
  const own = isSecure && desk.mechanisms.length > 0 ? [`AUTH ${desk.mechanisms.join(' ')}`] : [];
  const offer = xclientOffer(dialog, desk);
  return answer(desk.hello.ehlo(remoteAddress, isSecure, offer === '' ? own : [...own, offer]));
}

function lines(extensions: readonly string[]): string {
  const last = extensions.length - 1;
  return extensions.map((extension, index) => (index < last ? '250-' : '250 ') + extension).join('\r\n');
}
