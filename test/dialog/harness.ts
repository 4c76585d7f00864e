/** A running reception for tests: real server, real sockets, a MemoryReception behind it. */

import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { startInbound } from '../../src/gateway/inbound/inbound.js';
import type { RunningInbound } from '../../src/gateway/inbound/inbound.js';
import { INBOUND_DEFAULTS } from '../../src/gateway/inbound/options.js';
import type { InboundOptions } from '../../src/gateway/inbound/options.js';
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

export async function startHarness(options: Partial<InboundOptions> = {}): Promise<Harness> {
  const reception = new MemoryReception();
  const rejections: string[] = [];
  let received = 0;
  let waits = 0;
  const inbound = startInbound(
    { ...INBOUND_DEFAULTS, hostName: 'mx.test', port: 0, greetingDelayMs: 0, ...options },
    {
      reception,
      router: new DomainRouter(),
      clock: { nowMs: () => performance.now(), wallMs: () => 1_795_229_168_000 },
      log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
      mailLog: { wantsMessageId: true, received: () => void received++, rejected: (stage, reason) => void rejections.push(`${stage} ${reason}`) },
      metrics: { connectionOpened: quiet, connectionClosed: quiet, connectionWaits: () => void waits++, received: quiet, rejected: quiet },
    },
  );
  await inbound.openPort();
  return { inbound, reception, rejections, receivedCount: () => received, waitCount: () => waits };
}

/** A client that reads reply lines. */
export class Client {
  readonly socket: Socket;
  #text = '';
  #closed = false;
  #wake: (() => void) | undefined;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.setNoDelay(true);
    this.socket.on('data', (bytes: Buffer) => {
      this.#text += bytes.toString('latin1');
      this.#wake?.();
    });
    this.socket.on('error', quiet);
    this.socket.on('close', () => {
      this.#closed = true;
      this.#wake?.();
    });
  }

  send(bytes: string | Uint8Array): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** The next reply line without its end; 'closed' when the server closed instead. */
  async line(): Promise<string> {
    for (;;) {
      const end = this.#text.indexOf('\r\n');
      if (end >= 0) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return line;
      }
      if (this.#closed) return 'closed';
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
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
