/**
 * Reception as attackers see it, without sockets: sessions of one desk in virtual time, so that a test has a hundred
 * thousand of them, cut at every byte. What a turn of the loop would do comes with turn(), what time would do with pass().
 *
 * The classes of attacks are a file each beside this one; test/attacks/gateway.test.ts has each once more at a whole
 * gateway process. Of the classes that other sets hold: 120 messages of 4.9 MB at 512 MiB are in
 * test/process/memory.test.ts, 99,000 refusals in test/process/rate-limits.test.ts, the time that good users lose to fifty
 * who guess passwords is measured by bench/micro/auth-attack.ts, and any input at all is in test/fuzz.
 */
import type { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import type { InboundOptions, InboundPorts } from '../../src/gateway/inbound/options.js';
import type { Desk } from '../../src/gateway/inbound/session/desk.js';
import type { ServerSession } from '../../src/gateway/inbound/session/session.js';
import type { MemoryReception } from '../dialog/memory-reception.js';
import { WALL_MS, openSession, testDesk } from '../inbound/desk.js';
import { MemoryConnection } from '../scenario/memory-connection.js';

/** As the listener does it. */
const TICK_MS = 50;

export interface VirtualOptions extends Partial<InboundOptions> {
  readonly authenticator?: Authenticator | undefined;
  readonly mailLog?: InboundPorts['mailLog'];
  readonly rates?: InboundPorts['rates'];
}

export class VirtualDesk {
  readonly reception: MemoryReception;
  /** "stage reason" of each refusal. */
  readonly rejections: readonly string[];
  readonly desk: Desk;
  nowMs = 0;
  readonly #later: (() => void)[] = [];

  constructor({ authenticator, mailLog, rates, ...options }: VirtualOptions = {}) {
    const { desk, reception, rejections } = testDesk(options, {
      clock: { nowMs: () => this.nowMs, wallMs: () => WALL_MS },
      nextTurn: (run) => { this.#later.push(run); },
      authenticator,
      rates,
      ...(mailLog === undefined ? {} : { mailLog }),
    });
    this.desk = desk;
    this.reception = reception;
    this.rejections = rejections;
    reception.immediate = true;
  }

  connect(address = '127.0.0.1'): VirtualClient {
    return new VirtualClient(this, address, (run) => { this.#later.push(run); });
  }

  /** All that waits for the next turn of the loop, until nothing does. */
  turn(): void {
    while (this.#later.length > 0) for (const run of this.#later.splice(0)) run();
  }

  pass(ms: number): void {
    for (const untilMs = this.nowMs + ms; this.nowMs < untilMs;) {
      this.nowMs += TICK_MS;
      this.desk.tick();
      this.turn();
    }
  }
}

export class VirtualClient {
  readonly connection: MemoryConnection;
  readonly session: ServerSession;
  readonly #world: VirtualDesk;

  constructor(world: VirtualDesk, address: string, later: (run: () => void) => void) {
    this.#world = world;
    this.connection = new MemoryConnection(address, later);
    this.session = openSession(world.desk, this.connection);
  }

  /** One read. The buffer of a real socket is used again, and so nobody may lean on what it held. */
  send(bytes: string | Uint8Array): this {
    if (this.connection.isOver || bytes.length === 0) return this;
    const read = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : Buffer.from(bytes);
    this.session.onData(read);
    read.fill(0x58);
    this.#world.turn();
    return this;
  }

  /** Reads of these sizes, one after the other; the last size goes on. */
  sendCut(bytes: Uint8Array, sizes: readonly number[]): this {
    for (let at = 0, index = 0; at < bytes.length; index++) {
      const size = sizes[Math.min(index, sizes.length - 1)] ?? bytes.length;
      this.send(bytes.subarray(at, at + size));
      at += size;
    }
    return this;
  }

  /** What was said since the last look. */
  heard(): string {
    const { text } = this.connection;
    this.connection.text = '';
    return text;
  }

  /** Codes of whole replies since the last look. */
  codes(): string {
    return this.heard().split('\r\n').filter((line) => line[3] === ' ').map((line) => line.slice(0, 3)).join(' ');
  }

  /** Last line of the reply to one command. */
  say(line: string): string {
    this.heard();
    this.send(Buffer.from(`${line}\r\n`, 'utf8'));
    return this.heard().trimEnd().split('\r\n').at(-1) ?? '';
  }

  /** The handshake of STARTTLS, or of TLS before the greeting, is through. */
  secured(): this {
    this.connection.secured();
    this.#world.turn();
    return this;
  }

  /** The client goes without a word. */
  leave(): void {
    if (!this.connection.isOver) this.connection.destroy();
    this.#world.turn();
  }
}

/** Without the Received field put in front. */
export function bodyOf(content: Buffer): string {
  const text = content.toString('latin1');
  return text.slice(text.indexOf('\r\n', text.indexOf('+0000')) + 2);
}
