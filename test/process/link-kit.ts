/**
 * A store and the link of a gateway in this process, on real sockets: for tests of what goes on between them,
 * with proxies or certificates in between.
 */
import type { PathStatus, StoreLinkEvents } from '../../src/gateway/mirror/link/store-link.js';
import { StoreLink } from '../../src/gateway/mirror/link/store-link.js';
import { LINK_DEFAULTS } from '../default-options.js';
import type { RunningStore } from '../../src/kvs/daemon/running-store.js';
import { startStore } from '../../src/kvs/daemon/store-daemon.js';
import { crc32 } from '../../src/platform/node/checksum.js';
import { SystemClock, startTicker } from '../../src/platform/node/clock.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import { SystemSecrets } from '../../src/platform/node/secrets.js';
import { NodeTransport } from '../../src/platform/node/transport.js';
import type { EventLog } from '../../src/platform/ports.js';
import type { Listener, Transport } from '../../src/platform/transport.js';
import * as types from '../../src/protocol/message-types.js';
import { encodeFence, FENCE_FOUND } from '../../src/protocol/messages/fence.js';

export const packer = new MessagePacker();
export const secrets = new SystemSecrets();
export const clock = new SystemClock();
const transport = new NodeTransport();
const SECRET = secrets.randomBytes(32);

/** Keeps what went wrong, so that a failed test shows it. */
export class ProblemLog implements EventLog {
  readonly problems: string[] = [];
  debug(): void {}
  info(): void {}
  warn(event: string, text: string, fields?: object): void {
    this.problems.push(`${event} ${text} ${JSON.stringify(fields)}`);
  }
  error(event: string, text: string, fields?: object): void {
    this.warn(event, text, fields);
  }
}

export function store(listener: Listener = transport, log: EventLog = new ProblemLog()): Promise<RunningStore> {
  return startStore(
    {
      storeId: 'store-a',
      host: 'h1',
      paths: [{ name: 'A', host: '127.0.0.1', port: 0 }, { name: 'B', host: '127.0.0.1', port: 0 }],
      admin: undefined,
      gateways: [{ id: 'gateway-1', secret: SECRET }],
      memoryLimitBytes: 256 * 1024 * 1024,
    },
    { clock, crc32, packer, secrets, log, listener },
  );
}

/** A link on real sockets, driven as a gateway drives it. */
export class Gateway {
  readonly link: StoreLink;
  readonly log = new ProblemLog();
  readonly told: string[] = [];
  readonly #ticker: { stop(): void };
  #waiting: { when: () => boolean; done: () => void }[] = [];

  constructor(portA: number, portB: number, incarnation = Date.now(), secret = SECRET, over: Transport = transport) {
    const events: StoreLinkEvents = {
      onUp: () => { this.told.push('up'); },
      onSwitched: () => { this.told.push('switched'); },
      onStopping: () => { this.told.push('stopping'); },
      onDown: () => { this.told.push('down'); },
      onFenceNotices: (_link, _boot, notices) => { for (const { partition } of notices) this.told.push(`fenced in ${partition}`); },
      onAcknowledged: (_link, handle, number) => { this.told.push(`partition ${String(handle)} at ${String(number)}`); },
      onAckedThrough: (_link, sequence) => { this.told.push(`through ${String(sequence)}`); },
      onRefusal: (_link, refusal) => { this.told.push(`refusal ${String(refusal.reason)} ${refusal.text}`); },
      onReply: (_link, { type }) => { this.told.push(types.messageTypeName(type)); },
      onWritable: () => { this.told.push('writable'); },
      onFenced: () => { this.told.push('fenced'); },
    };
    this.link = new StoreLink(
      {
        storeId: 'store-a',
        gatewayId: 'gateway-1',
        incarnation,
        incarnationNonce: secrets.randomBytes(8),
        pathA: { host: '127.0.0.1', port: portA },
        pathB: { host: '127.0.0.1', port: portB },
        ...LINK_DEFAULTS,
        heartbeatMs: 40,
        failoverTimeoutMs: 400,
      },
      { clock, frameWallMs: () => Math.floor(clock.wallMs()), transport: over, sharedSecrets: () => [secret], crc32, packer, secrets, random: Math.random, log: this.log },
      events,
    );
    this.link.start();
    this.#ticker = startTicker(clock, 10, (nowMs) => {
      this.link.tick(nowMs);
      const due = this.#waiting.filter((waiter) => waiter.when());
      this.#waiting = this.#waiting.filter((waiter) => !due.includes(waiter));
      for (const waiter of due) waiter.done();
    });
  }

  until(when: () => boolean): Promise<void> {
    return new Promise((done) => { this.#waiting.push({ when, done }); });
  }

  stop(): void {
    this.link.close();
    this.#ticker.stop();
  }
}

export function shown(states: PathStatus[]): string {
  return states.map((path) => `${path.path} ${path.state}`).join(', ');
}

export const bothUp = (gateway: Gateway) => (): boolean => shown(gateway.link.pathStates()) === 'A RUN, B READY';

/** Founds a partition, and binds handle 1 to it. */
export function found(): Uint8Array {
  return encodeFence(packer, {
    handle: 1, partition: 'gateway-1/0', term: { number: 1, nonce: 1 }, how: FENCE_FOUND, provenDead: 0, number: 0, digestA: 0, digestB: 0,
  });
}
