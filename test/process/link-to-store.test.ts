import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import type { PathStatus, StoreLinkEvents } from '../../src/gateway/mirror/link/store-link.js';
import { StoreLink } from '../../src/gateway/mirror/link/store-link.js';
import { LINK_DEFAULTS } from '../../src/gateway/mirror/link/link-options.js';
import type { RunningStore } from '../../src/kvs/daemon/running-store.js';
import { startStore } from '../../src/kvs/daemon/store-daemon.js';
import { crc32 } from '../../src/platform/node/checksum.js';
import { SystemClock, startTicker } from '../../src/platform/node/clock.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import { SystemSecrets } from '../../src/platform/node/secrets.js';
import { NodeTransport } from '../../src/platform/node/transport.js';
import type { EventLog } from '../../src/platform/ports.js';
import * as types from '../../src/protocol/message-types.js';
import { encodeOpen } from '../../src/protocol/messages/open.js';
import { encodeList } from '../../src/protocol/messages/list.js';
import { FaultProxy } from './fault-proxy.js';

const packer = new MessagePacker();
const secrets = new SystemSecrets();
const clock = new SystemClock();
const transport = new NodeTransport();
const SECRET = secrets.randomBytes(32);

/** Keeps what went wrong, so that a failed test shows it. */
class ProblemLog implements EventLog {
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

function store(): Promise<RunningStore> {
  return startStore(
    {
      storeId: 'store-a',
      host: 'h1',
      paths: [{ name: 'A', host: '127.0.0.1', port: 0 }, { name: 'B', host: '127.0.0.1', port: 0 }],
      admin: undefined,
      gateways: [{ id: 'gateway-1', secret: SECRET }],
      memoryLimitBytes: 256 * 1024 * 1024,
    },
    { clock, crc32, packer, secrets, log: new ProblemLog(), listener: transport },
  );
}

/** A link on real sockets, driven as a gateway drives it. */
class Gateway {
  readonly link: StoreLink;
  readonly log = new ProblemLog();
  readonly told: string[] = [];
  readonly #ticker: { stop(): void };
  #waiting: { when: () => boolean; done: () => void }[] = [];

  constructor(portA: number, portB: number, incarnation = Date.now(), secret = SECRET) {
    const events: StoreLinkEvents = {
      onUp: () => { this.told.push('up'); },
      onSwitched: () => { this.told.push('switched'); },
      onStopping: () => { this.told.push('stopping'); },
      onDown: () => { this.told.push('down'); },
      onAcknowledged: (_link, handle, number) => { this.told.push(`queue ${String(handle)} at ${String(number)}`); },
      onAckedThrough: (_link, sequence) => { this.told.push(`through ${String(sequence)}`); },
      onRefusal: (_link, refusal) => { this.told.push(`refusal ${String(refusal.reason)} ${refusal.text}`); },
      onReply: (_link, type) => { this.told.push(types.messageTypeName(type)); },
      onWritable: () => { this.told.push('writable'); },
      onFenced: () => { this.told.push('fenced'); },
    };
    this.link = new StoreLink(
      {
        storeId: 'store-a',
        gatewayId: 'gateway-1',
        incarnation,
        incarnationNonce: secrets.randomBytes(8),
        secret,
        pathA: { host: '127.0.0.1', port: portA },
        pathB: { host: '127.0.0.1', port: portB },
        ...LINK_DEFAULTS,
        heartbeatMs: 40,
        failoverTimeoutMs: 400,
      },
      { clock, transport, crc32, packer, secrets, random: Math.random, log: this.log },
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

function shown(states: PathStatus[]): string {
  return states.map((path) => `${path.path} ${path.state}`).join(', ');
}

const bothUp = (gateway: Gateway) => (): boolean => shown(gateway.link.pathStates()) === 'A RUN, B READY';

function open(): Uint8Array {
  return encodeOpen(packer, {
    handle: 1, birth: 1, serial: 1, name: 'example.com', queueClass: 'mail', ordering: 0, lengthMax: 0, bytesMax: 0,
    ownerId: 'gateway-1', claimants: [], epoch: 1, members: ['store-a'],
  });
}

describe('link and store over sockets', { timeout: 30_000 }, () => {
  test('both paths come up, requests are acknowledged and answered, heartbeats are seen from outside', async () => {
    const running = await store();
    const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: running.ports[0] ?? 0 });
    const gateway = new Gateway(proxy.port, running.ports[1] ?? 0);
    await gateway.until(bothUp(gateway));
    assert.ok(gateway.link.credit > 0);
    assert.equal(gateway.link.bootId, Buffer.from(running.bootId).toString('hex'));
    const opened = gateway.link.request(types.OPEN, open(), [], 0);
    gateway.link.request(types.LIST, encodeList(packer, { gatewayId: '', cursor: 0 }), [], 0);
    gateway.link.flush();
    await gateway.until(() => gateway.told.includes('LISTED') && gateway.link.unackedBytes === 0);
    assert.ok(gateway.told.includes('queue 1 at 0'));
    assert.ok(gateway.told.some((event) => event.startsWith('through') && Number(event.slice(8)) >= opened));
    await gateway.until(() => proxy.records.filter((frame) => frame.name === 'BEAT').length >= 3);
    assert.deepEqual(proxy.records.slice(0, 4).map((frame) => `${frame.direction} ${frame.name}`), ['up HELLO', 'down CHALLENGE', 'up PROOF', 'down WELCOME']);
    assert.deepEqual([proxy.malformed, gateway.log.problems], [[], []]);
    gateway.stop();
    await running.stop();
    await proxy.close();
  });

  test('a network that swallows everything is noticed, and the link comes back when it heals', async () => {
    const running = await store();
    const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: running.ports[0] ?? 0 });
    const gateway = new Gateway(proxy.port, running.ports[1] ?? 0);
    await gateway.until(bothUp(gateway));
    proxy.stall('down');
    await gateway.until(() => gateway.told.includes('down'));
    assert.equal(shown(gateway.link.pathStates()), 'A NG, B READY');
    proxy.resume();
    await gateway.until(bothUp(gateway));
    assert.deepEqual(gateway.told, ['up', 'down', 'up']);
    proxy.cut();
    await gateway.until(() => gateway.told.length === 5 && bothUp(gateway)());
    gateway.stop();
    await running.stop();
    await proxy.close();
  });

  test('a newer process of the same gateway fences the older one for good', async () => {
    const running = await store();
    const [portA, portB] = running.ports;
    const older = new Gateway(portA ?? 0, portB ?? 0, 10);
    await older.until(bothUp(older));
    const newer = new Gateway(portA ?? 0, portB ?? 0, 11);
    await newer.until(bothUp(newer));
    await older.until(() => older.told.includes('fenced'));
    assert.deepEqual(older.told, ['up', 'down', 'fenced']);
    newer.stop();
    older.stop();
    await running.stop();
  });

  test('with another secret neither side takes the other', async () => {
    const running = await store();
    const [portA, portB] = running.ports;
    const gateway = new Gateway(portA ?? 0, portB ?? 0, 10, secrets.randomBytes(32));
    await gateway.until(() => gateway.log.problems.length >= 2);
    assert.ok(gateway.log.problems.every((problem) => problem.includes('secret')), gateway.log.problems.join('\n'));
    assert.deepEqual(gateway.told, []);
    gateway.stop();
    await running.stop();
  });

  test('a store that was restarted shows a new boot id', async () => {
    const first = await store();
    const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: first.ports[0] ?? 0 });
    const gateway = new Gateway(proxy.port, first.ports[1] ?? 0);
    await gateway.until(bothUp(gateway));
    const before = gateway.link.bootId;
    const second = await store();
    proxy.retarget(second.ports[0] ?? 0);
    await first.stop();
    await gateway.until(() => gateway.link.isUp && gateway.link.bootId !== before);
    assert.equal(gateway.link.bootId, Buffer.from(second.bootId).toString('hex'));
    gateway.stop();
    await second.stop();
    await proxy.close();
  });
});
