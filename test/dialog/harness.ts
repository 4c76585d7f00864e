/**
 * Receptions for tests, a MemoryReception behind each: a real server with real sockets, or the session alone, whose
 * clients' bytes come one by one.
 */

import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { startInbound } from '../../src/gateway/inbound/listener.js';
import type { ListenerOptions, RunningInbound } from '../../src/gateway/inbound/listener.js';
import type { InboundOptions, InboundPorts } from '../../src/gateway/inbound/options.js';
import type { Desk } from '../../src/gateway/inbound/session/desk.js';
import { ServerSession } from '../../src/gateway/inbound/session/session.js';
import type { MailTransaction } from '../../src/gateway/inbound/session/transaction.js';
import type { RefusalRecord } from '../inbound/desk.js';
import { NO_METRICS, TEST_OPTIONS, quiet, testDesk, testPorts } from '../inbound/desk.js';
import { MemoryConnection } from '../scenario/memory-connection.js';
import type { MemoryReception } from './memory-reception.js';

export interface Harness {
  readonly inbound: RunningInbound;
  readonly reception: MemoryReception;
  /** "stage reason" of each rejection, in order. */
  readonly rejections: string[];
  /** The same, as the mail log has them. */
  readonly refused: readonly RefusalRecord[];
  /** What was received, as the mail log has it. */
  readonly logged: readonly MailTransaction[];
  readonly receivedCount: () => number;
  /** How often a connection stood in line before it was read on. */
  readonly waitCount: () => number;
}

export async function startHarness(options: Partial<ListenerOptions> = {}, over: Partial<InboundPorts> = {}): Promise<Harness> {
  let received = 0;
  let waits = 0;
  const metrics = { ...NO_METRICS, received: () => void received++, connectionWaits: () => void waits++ };
  const logged: MailTransaction[] = [];
  const { reception, rejections, refused, ports: { mailLog, ...rest } } = testPorts({ metrics, ...over });
  const ports = { ...rest, mailLog: { ...mailLog, received: (message: MailTransaction) => { logged.push(message); } } };
  const inbound = startInbound({ ...TEST_OPTIONS, port: 0, tls: undefined, ...options }, ports);
  await inbound.openPort();
  return { inbound, reception, rejections, refused, logged, receivedCount: () => received, waitCount: () => waits };
}

/** What a dialog does with its client. */
export interface DialogClient {
  send(bytes: string | Uint8Array): void;
  /** The next reply line without its end; 'closed' when the server closed instead. */
  line(): Promise<string>;
  end(): void;
  destroy(): void;
}

/** Waits for lines of a text that grows. */
class LineWaiter {
  #text = '';
  #isClosed = false;
  #wake: (() => void) | undefined;

  add(text: string): void {
    this.#text += text;
    this.#wake?.();
  }

  close(): void {
    this.#isClosed = true;
    this.#wake?.();
  }

  async line(): Promise<string> {
    for (;;) {
      const end = this.#text.indexOf('\r\n');
      if (end >= 0) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return line;
      }
      if (this.#isClosed) return 'closed';
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** A client that reads reply lines. */
export class Client implements DialogClient {
  readonly socket: Socket;
  readonly #lines = new LineWaiter();

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.setNoDelay(true);
    this.socket.on('data', (bytes: Buffer) => { this.#lines.add(bytes.toString('latin1')); });
    this.socket.on('error', quiet);
    this.socket.on('close', () => { this.#lines.close(); });
  }

  send(bytes: string | Uint8Array): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  line(): Promise<string> {
    return this.#lines.line();
  }

  end(): void {
    this.socket.end();
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** The last line of a reply that may have several. */
  async reply(): Promise<string> {
    for (;;) {
      const line = await this.line();
      if (line[3] !== '-') return line;
    }
  }

  async command(line: string): Promise<string> {
    this.send(line + '\r\n');
    return this.reply();
  }
}

/** Greeted and at DATA: the next bytes are content. */
export async function clientAtData(port: number, rcpt = 'rcpt@example.net'): Promise<Client> {
  const client = new Client(port);
  await client.reply();
  await client.command('EHLO client.example');
  await client.command('MAIL FROM:<sender@example.org>');
  await client.command(`RCPT TO:<${rcpt}>`);
  await client.command('DATA');
  return client;
}

export interface MemoryHarness {
  readonly reception: MemoryReception;
  readonly rejections: string[];
  connect(): DialogClient;
  close(): void;
}

/** The session alone: no sockets, and every byte of a client is a read of its own. */
export function memoryHarness(options: Partial<InboundOptions> = {}, over: Partial<InboundPorts> = {}): MemoryHarness {
  const { desk, reception, rejections } = testDesk({ offersTls: false, ...options }, over);
  const ticker = setInterval(() => { desk.tick(); }, 50);
  return { reception, rejections, connect: () => new MemoryClient(desk), close: () => { clearInterval(ticker); } };
}

class MemoryClient implements DialogClient {
  readonly #connection = new MemoryConnection();
  readonly #session: ServerSession;
  readonly #lines = new LineWaiter();

  constructor(desk: Desk) {
    this.#connection.onText = () => {
      this.#lines.add(this.#connection.text);
      this.#connection.text = '';
      if (this.#connection.isOver) this.#lines.close();
    };
    this.#session = new ServerSession(desk, this.#connection);
    this.#connection.attach(this.#session);
    // What comes before is too early.
    setImmediate(() => { this.#session.onOpen(); });
  }

  send(bytes: string | Uint8Array): void {
    // One buffer for all reads, as behind a socket: nobody may lean on what it held.
    const read = new Uint8Array(1);
    for (const byte of typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes) {
      if (this.#connection.isOver) return;
      read[0] = byte;
      this.#session.onData(read);
    }
  }

  line(): Promise<string> {
    return this.#lines.line();
  }

  end(): void {
    if (!this.#connection.isOver) this.#session.onEnd();
  }

  destroy(): void {
    this.#connection.destroy();
  }
}
