/** One SMTP conversation by hand, a line at a time, in clear or in TLS: for tests that stop in the middle of one. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import { HOST } from './cluster.js';

const REPLY_MS = 20_000;

export class SmtpTalk {
  readonly #socket: Socket;
  #received = '';
  #ended = false;
  #look: (() => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#received += text;
      this.#look?.();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#ended = true;
      this.#look?.();
    });
  }

  /** Connected, greeted, and EHLO said. */
  static async start(port: number): Promise<SmtpTalk> {
    const socket = connect({ host: HOST, port });
    await once(socket, 'connect');
    return SmtpTalk.over(socket);
  }

  /** As start(), over a connection that was begun. */
  static async over(socket: Socket): Promise<SmtpTalk> {
    const talk = new SmtpTalk(socket);
    await talk.reply();
    await talk.say('EHLO talk.example');
    return talk;
  }

  get isOver(): boolean {
    return this.#ended;
  }

  /** Sends lines without waiting for a reply. */
  send(text: string): void {
    this.#socket.write(text, 'latin1');
  }

  /** One command and its reply. */
  say(line: string): Promise<string> {
    this.send(`${line}\r\n`);
    return this.reply();
  }

  /** The next whole reply, all its lines; '' when the connection ended first. */
  reply(): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => { reject(new Error(`no reply within ${REPLY_MS} ms, but: ${this.#received}`)); }, REPLY_MS);
      this.#look = () => {
        const whole = /^(?:\d{3}-[^\n]*\n)*\d{3} [^\n]*\n/.exec(this.#received);
        if (whole === null && !this.#ended) return;
        clearTimeout(timer);
        this.#look = undefined;
        this.#received = this.#received.slice(whole?.[0].length ?? 0);
        resolve(whole?.[0] ?? '');
      };
      this.#look();
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** All that is answered to these lines, each sent when the one before it was answered, as far as the server goes. */
export async function sayAll(socket: Socket, lines: readonly string[]): Promise<string> {
  const talk = new SmtpTalk(socket);
  let heard = await talk.reply();
  for (const line of lines) heard += await talk.say(line);
  talk.close();
  return heard;
}
