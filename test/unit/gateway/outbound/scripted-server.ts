/** A small SMTP server on loopback whose answers a test decides; it keeps what it accepted, in order. */
import net from 'node:net';
import type { AddressInfo } from 'node:net';

export interface Accepted { readonly connection: number; readonly from: string; readonly to: readonly string[]; readonly content: string }

export class ScriptedServer {
  readonly accepted: Accepted[] = [];
  readonly verbs: string[] = [];
  /** Envelopes that came in one piece with the dot in front of them. */
  behindDots = 0;
  /** The connection that the last of them came by. */
  lastBehindDot = 0;
  readonly sockets: net.Socket[] = [];
  connections = 0;
  open = 0;
  openMost = 0;
  offers: readonly string[] = ['PIPELINING', '8BITMIME', 'SIZE 50000000', 'DSN'];
  /** The answer to a verb; 'cut' destroys the socket, 'taken, cut' keeps the content first, '' says nothing. */
  answer: (verb: string, connection: number, line: string) => string | undefined = () => undefined;
  #server: net.Server | undefined;

  async listen(host = '127.0.0.1', port = 0): Promise<number> {
    const server = net.createServer((socket) => { this.#serve(socket); });
    this.#server = server;
    await new Promise<void>((resolve) => { server.listen(port, host, resolve); });
    return (server.address() as AddressInfo).port;
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.#server?.close();
  }

  #serve(socket: net.Socket): void {
    const connection = ++this.connections;
    this.openMost = Math.max(this.openMost, ++this.open);
    this.sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => { this.open--; });
    let held = '';
    let from = '';
    let to: string[] = [];
    let inData = false;
    const say = (verb: string, line: string, usual: string): boolean => {
      const answer = this.answer(verb, connection, line) ?? usual;
      if (answer.endsWith('cut')) socket.destroy();
      else if (answer !== '') socket.write(`${answer}\r\n`);
      return answer === usual || answer === 'taken, cut';
    };
    say('GREETING', '', '220 scripted');
    socket.on('data', (bytes: Buffer) => {
      held += bytes.toString('latin1');
      if (bytes.includes('\r\n.\r\nMAIL')) {
        this.behindDots++;
        this.lastBehindDot = connection;
      }
      for (;;) {
        if (inData) {
          const end = held.startsWith('.\r\n') ? 0 : held.indexOf('\r\n.\r\n') + 2;
          if (!held.startsWith('.\r\n') && end === 1) return;
          const content = held.slice(0, end).replace(/^\./gm, '');
          held = held.slice(end + 3);
          inData = false;
          if (say('DOT', '', '250 2.0.0 taken')) this.accepted.push({ connection, from, to, content });
          continue;
        }
        const end = held.indexOf('\r\n');
        if (end < 0) return;
        const line = held.slice(0, end);
        held = held.slice(end + 2);
        const verb = line.slice(0, 4).toUpperCase();
        this.verbs.push(verb);
        if (verb === 'MAIL') { from = line.slice(11, line.indexOf('>')); to = []; }
        if (verb === 'EHLO') say(verb, line, ['scripted', ...this.offers].map((offer, i) => `250${i < this.offers.length ? '-' : ' '}${offer}`).join('\r\n'));
        else if (verb === 'DATA') inData = say(verb, line, '354 go');
        else if (verb === 'RCPT') { if (say(verb, line, '250 ok')) to.push(line.slice(9, line.indexOf('>'))); }
        else if (verb === 'QUIT') { say(verb, line, '221 bye'); socket.end(); }
        else say(verb, line, '250 ok');
      }
    });
  }
}
