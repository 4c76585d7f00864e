/**
 * Submits stored messages one after another over one SMTP connection: for `send --spool`, where each message has its own
 * envelope and every reply matters, and speed does not.
 *
 *   connect ─► greeting ─► EHLO ─► ( MAIL RCPT… DATA content )… ─► QUIT
 *
 * RET, ENVID, NOTIFY and ORCPT (RFC 3461) go to a server that offers DSN, as the client once gave them; to others the
 * message goes without. Content is sent as it is but for dot-stuffing (RFC 5321 4.5.2) and line ends. `src/load/client.ts`
 * is the other client, which measures.
 */
import { connect } from 'node:net';
import type { Socket } from 'node:net';

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

/** RFC 5321 4.5.3.1.5: a reply line has up to 512 bytes; a server that says more than this at once is none. */
const REPLY_BYTES_MAX = 64 * 1024;
const CR = 13;
const LF = 10;
const DOT = 46;

/** The peer is gone, late, or no SMTP server. */
export class SpoolLost extends Error {}

export class SpoolClient {
  readonly #socket: Socket;
  readonly #timeoutMs: number;
  #input = '';
  #error: string | undefined;
  #wake: (() => void) | undefined;
  #offers: readonly string[] = [];

  private constructor(host: string, port: number, timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#socket = connect({ host, port, noDelay: true });
    this.#socket.setEncoding('utf8');
    this.#socket.on('data', (text: string) => {
      this.#input += text;
      if (this.#input.length > REPLY_BYTES_MAX) this.#fail('its reply does not end');
      this.#wake?.();
    });
    this.#socket.on('error', (error: NodeJS.ErrnoException) => { this.#fail(error.code ?? error.message); });
    this.#socket.on('close', () => { this.#fail('it closed the connection'); });
    this.#socket.setTimeout(timeoutMs, () => { this.#fail(`nothing heard for ${String(timeoutMs / 1000)} s`); });
  }

  /** Connects and says EHLO. Rejects with SpoolLost. */
  static async open(host: string, port: number, timeoutMs: number): Promise<SpoolClient> {
    const client = new SpoolClient(host, port, timeoutMs);
    try {
      await client.#expect(220);
      const hello = await client.#command('EHLO localhost');
      if (hello.code !== 250) throw new SpoolLost(`EHLO: ${hello.text}`);
      client.#offers = hello.text.toUpperCase().split('\n').slice(1).map((line) => line.slice(4));
      return client;
    } catch (error) {
      client.destroy();
      throw error;
    }
  }

  async send(message: SpoolMessage): Promise<SpoolResult> {
    try {
      return await this.#transaction(message);
    } catch (error) {
      if (!(error instanceof SpoolLost)) throw error;
      return { taken: [], trouble: error.message, lost: true };
    }
  }

  async quit(): Promise<void> {
    try {
      await this.#command('QUIT');
    } catch (error) {
      if (!(error instanceof SpoolLost)) throw error;
    }
    this.destroy();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  async #transaction(message: SpoolMessage): Promise<SpoolResult> {
    if (message.isUtf8 && !this.#has('SMTPUTF8')) return { taken: [], trouble: 'it needs SMTPUTF8, which the server does not offer', lost: false };
    const mail = await this.#command(this.#mailLine(message));
    if (mail.code !== 250) return await this.#giveUp(`MAIL: ${mail.text}`, mail);
    const taken: number[] = [];
    const troubles: string[] = [];
    for (const [i, recipient] of message.recipients.entries()) {
      const reply = await this.#command(this.#rcptLine(recipient));
      if (reply.code >= 200 && reply.code < 300) taken.push(i);
      else troubles.push(`<${recipient.address}>: ${reply.text}`);
      if (reply.code === 421) return { taken: [], trouble: reply.text, lost: true };
    }
    if (taken.length === 0) return await this.#giveUp(troubles.join('; '), mail);
    const data = await this.#command('DATA');
    if (data.code !== 354) return await this.#giveUp(`DATA: ${data.text}`, data);
    this.#socket.write(wireContent(message.content));
    const final = await this.#reply();
    if (final.code < 200 || final.code > 299) return { taken: [], trouble: final.text, lost: final.code === 421 };
    return { taken, trouble: troubles.join('; '), lost: false };
  }

  async #giveUp(trouble: string, reply: Reply): Promise<SpoolResult> {
    if (reply.code === 421) return { taken: [], trouble, lost: true };
    await this.#command('RSET');
    return { taken: [], trouble, lost: false };
  }

  #mailLine(message: SpoolMessage): string {
    let line = `MAIL FROM:<${message.sender}>`;
    if (this.#has('SIZE')) line += ` SIZE=${String(message.content.length)}`;
    if (message.is8bit && this.#has('8BITMIME')) line += ' BODY=8BITMIME';
    if (message.isUtf8) line += ' SMTPUTF8';
    if (this.#has('DSN') && message.ret !== undefined) line += ` RET=${message.ret}`;
    if (this.#has('DSN') && message.envid !== undefined) line += ` ENVID=${message.envid}`;
    return line;
  }

  #rcptLine(recipient: SpoolRecipient): string {
    let line = `RCPT TO:<${recipient.address}>`;
    if (this.#has('DSN') && recipient.notify !== undefined) line += ` NOTIFY=${recipient.notify}`;
    if (this.#has('DSN') && recipient.orcpt !== undefined) line += ` ORCPT=${recipient.orcpt}`;
    return line;
  }

  #has(keyword: string): boolean {
    return this.#offers.some((offer) => offer === keyword || offer.startsWith(`${keyword} `));
  }

  async #command(line: string): Promise<Reply> {
    this.#socket.write(`${line}\r\n`);
    return await this.#reply();
  }

  async #expect(code: number): Promise<void> {
    const reply = await this.#reply();
    if (reply.code !== code) throw new SpoolLost(reply.text);
  }

  /** One reply of any number of lines: the last has a space behind its code. */
  async #reply(): Promise<Reply> {
    const deadlineMs = performance.now() + this.#timeoutMs;
    for (;;) {
      const end = /^(\d{3})(?: [^\n]*)?\r?\n/m.exec(this.#input);
      if (end !== null) {
        const until = end.index + end[0].length;
        const text = this.#input.slice(0, until).trimEnd().replaceAll('\r', '');
        this.#input = this.#input.slice(until);
        return { code: Number(end[1]), text };
      }
      if (this.#error !== undefined) throw new SpoolLost(this.#error);
      if (performance.now() > deadlineMs) this.#fail('its reply takes too long');
      await new Promise<void>((resolve) => { this.#wake = resolve; });
    }
  }

  #fail(error: string): void {
    this.#error ??= error;
    this.#socket.destroy();
    this.#wake?.();
  }
}

/** The content as it goes over the wire, with the final dot: lines end in CRLF, a dot in front of lines that start with one. */
export function wireContent(content: Uint8Array): Uint8Array {
  const wire = new Uint8Array(2 * content.length + 5);
  let at = 0;
  let before = LF;
  for (const byte of content) {
    if (before === LF && byte === DOT) wire[at++] = DOT;
    if (byte === LF && before !== CR) wire[at++] = CR;
    if (before === CR && byte !== LF) wire[at++] = LF;
    if (before === CR && byte === DOT) wire[at++] = DOT;
    wire[at++] = byte;
    before = byte;
  }
  if (before === CR) wire[at++] = LF;
  else if (before !== LF) {
    wire[at++] = CR;
    wire[at++] = LF;
  }
  wire[at++] = DOT;
  wire[at++] = CR;
  wire[at++] = LF;
  return wire.subarray(0, at);
}
