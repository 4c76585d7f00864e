/**
 * Submits stored messages one after another over one SMTP session: for `send --spool`, where each message has
 * its own envelope and every reply matters, and speed does not.
 *
 *   opening (session.ts) ─► ( MAIL RCPT… DATA content )… ─► QUIT
 *
 * RET, ENVID, NOTIFY and ORCPT (RFC 3461) go to a server that offers DSN, as the client once gave them; to
 * others the message goes without; not without SMTPUTF8, 8BITMIME or REQUIRETLS where it needs them. Content
 * is sent as it is but for dot-stuffing and line ends.
 * `src/load/client.ts` is the other client, which measures.
 */
import { CAN_8BITMIME, CAN_REQUIRETLS, CAN_SMTPUTF8 } from '../smtp/capabilities.js';
import {
  DATA, NEEDS_8BITMIME, NEEDS_REQUIRETLS, NEEDS_SMTPUTF8, RSET, putMail, putRcpt,
} from '../smtp/commands.js';
import { wireContent, withLineEnds } from '../smtp/content-lines.js';
import { TEXT_UNSENDABLE, kindOfText } from '../smtp/write-buffer.js';
import type { WriteBuffer } from '../smtp/write-buffer.js';
import { ClientSession } from './session.js';
import type { SessionOwner, Sessions } from './session.js';

export interface SpoolRecipient {
  readonly address: string;
  readonly notify: string | undefined;
  readonly orcpt: string | undefined;
}

export interface SpoolMessage {
  readonly sender: string;
  readonly recipients: readonly SpoolRecipient[];
  readonly ret: string | undefined;
  readonly envid: string | undefined;
  readonly is8bit: boolean;
  readonly isUtf8: boolean;
  /** RFC 8689: it goes within TLS alone, to a server that promises as much. */
  readonly requiresTls: boolean;
  readonly content: Uint8Array;
}

/** What became of a message. */
export interface SpoolResult {
  /** Recipients that the server is responsible for now, by index. */
  readonly taken: readonly number[];
  /** Why the others are not, one text; '' when all are. */
  readonly trouble: string;
  /** The connection is of no use any more. */
  readonly lost: boolean;
}

interface Reply {
  readonly code: number;
  readonly text: string;
}

/** How often it is looked for a server that is late. */
const LOOK_MS = 250;

/** The peer is gone, late, or no SMTP server. */
export class SpoolLost extends Error {
  /** It will be the same the next time. */
  readonly isHopeless: boolean;

  constructor(message: string, isHopeless = false) {
    super(message);
    this.isHopeless = isHopeless;
  }
}

export class SpoolClient implements SessionOwner {
  readonly #buffer: WriteBuffer;
  readonly #session: ClientSession;
  readonly #looks: NodeJS.Timeout;
  #error: string | undefined;
  #onEnd: () => void = () => undefined;
  /** Who waits: for the opening, or for a reply. */
  #waiter: { resolve(reply: Reply): void; reject(why: SpoolLost): void } | undefined;

  private constructor(sessions: Sessions) {
    this.#buffer = sessions.buffer;
    this.#session = new ClientSession(sessions, this);
    this.#looks = setInterval(() => { this.#session.tick(performance.now()); }, LOOK_MS);
  }

  /** Resolves when mail can be sent. Rejects with SpoolLost. */
  static async open(sessions: Sessions): Promise<SpoolClient> {
    const client = new SpoolClient(sessions);
    await client.#reply();
    return client;
  }

  async send(message: SpoolMessage): Promise<SpoolResult> {
    try {
      return await this.#transaction(message);
    } catch (error) {
      if (!(error instanceof SpoolLost)) throw error;
      return { taken: [], trouble: error.message, lost: true };
    }
  }

  /** Resolves when the connection is closed. */
  quit(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#error !== undefined) return resolve();
      this.#onEnd = resolve;
      this.#session.quit();
    });
  }

  destroy(): void {
    this.#session.destroy();
  }

  get isWaiting(): boolean { return this.#waiter !== undefined; }

  onReady(): void {
    this.#tell(250);
  }

  onReply(code: number): void {
    if (this.#waiter === undefined) this.#session.destroy(this.#session.reader.text());
    else this.#tell(code);
  }

  onClosed(error: string, isHopeless: boolean): void {
    clearInterval(this.#looks);
    this.#error = error;
    this.#waiter?.reject(new SpoolLost(error, isHopeless));
    this.#waiter = undefined;
    this.#onEnd();
  }

  async #transaction(message: SpoolMessage): Promise<SpoolResult> {
    const trouble = this.#whyNot(message);
    if (trouble !== '') return { taken: [], trouble, lost: false };
    const peer = this.#session.capabilities;
    const lines = withLineEnds(message.content);
    const needs = (message.is8bit ? NEEDS_8BITMIME : 0) | (message.isUtf8 ? NEEDS_SMTPUTF8 : 0)
      | (message.requiresTls ? NEEDS_REQUIRETLS : 0);
    const { sender, ret = '', envid = '' } = message;
    const mail = await this.#ask((into) => { putMail(into, peer, sender, lines.length, needs, ret, envid); });
    if (mail.code !== 250) return await this.#giveUp(`MAIL: ${mail.text}`, mail);
    const taken: number[] = [];
    const troubles: string[] = [];
    for (const [i, recipient] of message.recipients.entries()) {
      const { address, notify = '', orcpt = '' } = recipient;
      const reply = await this.#ask((into) => { putRcpt(into, peer, address, notify, orcpt); });
      if (reply.code >= 200 && reply.code < 300) taken.push(i);
      else troubles.push(`<${recipient.address}>: ${reply.text}`);
      if (reply.code === 421) return { taken: [], trouble: reply.text, lost: true };
    }
    if (taken.length === 0) return await this.#giveUp(troubles.join('; '), mail);
    const data = await this.#command(DATA);
    if (data.code !== 354) return await this.#giveUp(`DATA: ${data.text}`, data);
    this.#session.connection.write([wireContent(lines)]);
    const final = await this.#reply();
    if (final.code < 200 || final.code > 299) {
      return { taken: [], trouble: final.text, lost: final.code === 421 };
    }
    return { taken, trouble: troubles.join('; '), lost: false };
  }

  /** Why this server can't be given it, whatever it would say; '' if it can. */
  #whyNot({ sender, recipients, is8bit, isUtf8, requiresTls }: SpoolMessage): string {
    const { capabilities: { bits }, isSecure } = this.#session;
    const addresses = [sender, ...recipients.map(({ address }) => address)];
    if (addresses.some((address) => kindOfText(address) === TEXT_UNSENDABLE)) {
      return 'an address holds characters that can not be sent';
    }
    if (isUtf8 && (bits & CAN_SMTPUTF8) === 0) return 'it needs SMTPUTF8, which the server does not offer';
    // Content is never changed on its way, nor sent raw to who does not take it (RFC 6152 3).
    if (is8bit && (bits & CAN_8BITMIME) === 0) return 'it has 8-bit content, which the server does not take';
    if (!requiresTls) return '';
    // What is offered in clear may have been put in by anybody (RFC 8689 4.2.1).
    if (!isSecure) return 'its sender requires TLS (REQUIRETLS): send it with --tls starttls or implicit';
    return (bits & CAN_REQUIRETLS) === 0
      ? 'its sender requires TLS all the way (REQUIRETLS), which the server does not offer' : '';
  }

  async #giveUp(trouble: string, reply: Reply): Promise<SpoolResult> {
    if (reply.code === 421) return { taken: [], trouble, lost: true };
    await this.#command(RSET);
    return { taken: [], trouble, lost: false };
  }

  async #ask(put: (into: WriteBuffer) => void): Promise<Reply> {
    this.#buffer.start(this.#session.connection);
    put(this.#buffer);
    this.#buffer.flush();
    return await this.#reply();
  }

  async #command(line: string): Promise<Reply> {
    this.#session.send(line);
    return await this.#reply();
  }

  #reply(): Promise<Reply> {
    if (this.#error !== undefined) return Promise.reject(new SpoolLost(this.#error));
    return new Promise((resolve, reject) => { this.#waiter = { resolve, reject }; });
  }

  #tell(code: number): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    waiter?.resolve({ code, text: this.#session.reader.text() });
  }
}
