/**
 * Receptions for tests, a MemoryReception behind each: a real server with real sockets, or the session alone, whose
 * clients' bytes come one by one.
 */

import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { SenderRewriting } from '../../src/base/sender-rewriting.js';
import type { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import { startInbound } from '../../src/gateway/inbound/listener.js';
import type { RunningInbound } from '../../src/gateway/inbound/listener.js';
import type { MessageHooks } from '../../src/gateway/inbound/hooks/message-hook.js';
import type { RateLimits } from '../../src/gateway/inbound/limits/rate-limits.js';
import type { RecipientTable } from '../../src/gateway/inbound/recipients/listing.js';
import { INBOUND_DEFAULTS } from '../../src/gateway/inbound/options.js';
import type { BlocklistPort, InboundOptions } from '../../src/gateway/inbound/options.js';
import { Desk } from '../../src/gateway/inbound/session/desk.js';
import { ServerSession } from '../../src/gateway/inbound/session/session.js';
import { isAscii } from 'node:buffer';
import { toAscii } from '../../src/platform/node/idna.js';
import { MemoryConnection } from '../scenario/memory-connection.js';
import type { ListenerOptions } from '../../src/gateway/inbound/listener.js';
import { DomainRouter, MemoryReception } from './memory-reception.js';

export interface Harness {
  readonly inbound: RunningInbound;
  readonly reception: MemoryReception;
  /** "stage reason" of each rejection, in order. */
  readonly rejections: string[];
  readonly receivedCount: () => number;
  /** How often a connection stood in line before it was read on. */
  readonly waitCount: () => number;
}

const quiet = (): void => undefined;
/** Saturday, 21 November 2026. */
export const WALL_MS = 1_795_229_168_000;
const NO_METRICS = {
  connectionOpened: quiet, connectionClosed: quiet, connectionWaits: quiet, received: quiet, rejected: quiet, authEnded: quiet, handshakeEnded: quiet, certificateStale: quiet,
};
const NO_LOG = { debug: quiet, info: quiet, warn: quiet, error: quiet };

export async function startHarness(options: Partial<ListenerOptions> = {}, authenticator?: Authenticator, recipients?: RecipientTable, rates?: RateLimits, blocklists?: BlocklistPort, rewriting?: SenderRewriting, hooks?: MessageHooks): Promise<Harness> {
  const reception = new MemoryReception();
  const rejections: string[] = [];
  let received = 0;
  let waits = 0;
  const inbound = startInbound(
    { ...INBOUND_DEFAULTS, hostName: 'mx.test', port: 0, tls: undefined, greetingDelayMs: 0, ...options },
    {
      reception,
      router: new DomainRouter(),
      clock: { nowMs: () => performance.now(), wallMs: () => WALL_MS },
      authenticator,
      recipients,
      rewriting,
      rates,
      blocklists,
      hooks,
      log: NO_LOG,
      mailLog: { wantsMessageId: true, received: () => void received++, rejected: ({ stage, reason }) => void rejections.push(`${stage} ${reason}`) },
      metrics: { ...NO_METRICS, connectionWaits: () => void waits++ },
    },
  );
  await inbound.openPort();
  return { inbound, reception, rejections, receivedCount: () => received, waitCount: () => waits };
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
export function memoryHarness(options: Partial<InboundOptions> = {}, authenticator?: Authenticator, recipients?: RecipientTable, rates?: RateLimits, rewriting?: SenderRewriting, hooks?: MessageHooks): MemoryHarness {
  const reception = new MemoryReception();
  const rejections: string[] = [];
  const desk = new Desk({ ...INBOUND_DEFAULTS, hostName: 'mx.test', offersTls: false, greetingDelayMs: 0, ...options }, {
    reception,
    router: new DomainRouter(),
    clock: { nowMs: () => performance.now(), wallMs: () => WALL_MS },
    toAscii,
    isAscii,
    recipients,
    rewriting,
    rates,
    blocklists: undefined,
    hooks,
    nextTurn: (run) => { setImmediate(run); },
    authenticator,
    log: NO_LOG,
    mailLog: { wantsMessageId: true, received: quiet, rejected: ({ stage, reason }) => void rejections.push(`${stage} ${reason}`) },
    metrics: NO_METRICS,
  });
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
