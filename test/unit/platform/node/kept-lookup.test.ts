/** Stores by name, looked up for links: one lookup for all attempts, and the last address where nobody tells one. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, mock, test } from 'node:test';
import type { TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { KeptLookups } from '../../../../src/platform/node/kept-lookup.js';
import { TlsTransport } from '../../../../src/platform/node/tls-transport.js';
import { NodeTransport } from '../../../../src/platform/node/transport.js';
import type { HostAddresses } from '../../../../src/platform/resolver.js';
import { makeCertificates } from '../../../process/tls-hop.js';

const certificates = makeCertificates();
const needsTls = { timeout: 30_000, skip: certificates === undefined ? 'openssl is missing' : false };
const NONE: HostAddresses = { addresses: [], why: 'it has no address', isFailed: false };
const SILENT: HostAddresses = { addresses: [], why: 'no answer on its address: EAI_AGAIN', isFailed: true };

function at(...addresses: readonly string[]): HostAddresses {
  return { addresses, why: '', isFailed: false };
}

class PlayedSystem {
  readonly asked: string[] = [];
  readonly lookups = new KeptLookups((host) => {
    this.asked.push(host);
    return new Promise((resolve) => { this.#answers.push(resolve); });
  });
  readonly #answers: ((found: HostAddresses) => void)[] = [];
  readonly told: string[] = [];

  want(host: string): void {
    this.lookups.lookup(host, { all: true }, (error, found) => {
      this.told.push(error?.message ?? (Array.isArray(found) ? found.map(({ address, family }) => `${address} ${String(family)}`).join() : found));
    });
  }

  async answer(found: HostAddresses): Promise<readonly string[]> {
    this.#answers.shift()?.(found);
    for (let turns = 0; turns < 2; turns++) await turn();
    return this.told.splice(0);
  }
}

function playTime(t: TestContext): void {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => { mock.timers.reset(); });
}

describe('stores by name', () => {
  test('are asked for once for all attempts that wait, and anew by the next', async () => {
    const system = new PlayedSystem();
    for (const host of ['a.test', 'a.test', 'b.test']) system.want(host);
    assert.deepEqual(await system.answer(at('192.0.2.1', '2001:db8::1')), ['192.0.2.1 4,2001:db8::1 6', '192.0.2.1 4,2001:db8::1 6']);
    system.want('a.test');
    assert.deepEqual([system.asked, system.told], [['a.test', 'b.test', 'a.test'], []]);
  });

  test('are connected to as they were found last, where the system takes long or can not tell', async (t) => {
    playTime(t);
    const system = new PlayedSystem();
    system.want('a.test');
    assert.deepEqual(await system.answer(SILENT), ['no answer on its address: EAI_AGAIN'], 'never found');
    system.want('a.test');
    await system.answer(at('192.0.2.1'));
    system.want('a.test');
    mock.timers.tick(249);
    assert.deepEqual(system.told.splice(0), [], 'it may answer soon');
    mock.timers.tick(1);
    assert.deepEqual(system.told.splice(0), ['192.0.2.1 4']);
    // The next attempt, while that lookup goes on.
    system.want('a.test');
    assert.deepEqual(await system.answer(SILENT), ['192.0.2.1 4']);
    system.want('a.test');
    assert.deepEqual(await system.answer(at('192.0.2.2')), ['192.0.2.2 4'], 'it has moved');
    system.want('a.test');
    assert.deepEqual(await system.answer(NONE), ['it has no address']);
    system.want('a.test');
    mock.timers.tick(250);
    assert.deepEqual([system.told, system.asked.length], [[], 6], 'the system said that there is none');
  });

  test('are asked for anew where a lookup does not come back, and that once: the other thread is for the rest', async (t) => {
    playTime(t);
    const system = new PlayedSystem();
    system.want('a.test');
    mock.timers.tick(59_999);
    system.want('a.test');
    assert.equal(system.asked.length, 1);
    mock.timers.tick(1);
    system.want('a.test');
    system.want('a.test');
    assert.equal(system.asked.length, 2);
    mock.timers.tick(60_000);
    system.want('a.test');
    assert.equal(system.asked.length, 2, 'nor is that stuck for good: it waits for a thread');
    // The first comes back: there is a thread again, and its answer is an old one.
    assert.deepEqual(await system.answer(at('192.0.2.1')), ['192.0.2.1 4', '192.0.2.1 4']);
    system.want('a.test');
    assert.equal(system.asked.length, 3);
    assert.equal((await system.answer(at('192.0.2.2'))).length, 3);
    assert.deepEqual(await system.answer(at('192.0.2.3')), ['192.0.2.3 4']);
    system.want('a.test');
    assert.deepEqual(await system.answer(SILENT), ['192.0.2.3 4']);
  });

  test('are found by a link that gives its attempts up sooner than the system answers', async (t) => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => { server.close(); });
    const { port } = server.address() as AddressInfo;
    let tell: (found: HostAddresses) => void = () => undefined;
    let asked = 0;
    const { lookup } = new KeptLookups(() => {
      asked++;
      return new Promise((resolve) => { tell = resolve; });
    });
    const transport = new NodeTransport({ lookup });
    const ignored = { onOpen: () => undefined, onData: () => undefined, onDrain: () => undefined, onClose: () => undefined };
    transport.connect('store.test', port, ignored).destroy();
    await turn();
    const opened = new Promise<void>((resolve, reject) => {
      const connection = transport.connect('store.test', port, {
        ...ignored, onOpen: () => { connection.destroy(); resolve(); }, onClose: (reason) => { reject(new Error(reason)); },
      });
    });
    await turn();
    assert.equal(asked, 1);
    tell(at('127.0.0.1'));
    await opened;
  });

  test('are looked up so by links with TLS, too', needsTls, async (t) => {
    assert.ok(certificates !== undefined);
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => { server.close(); });
    const { port } = server.address() as AddressInfo;
    const { certFile, keyFile } = certificates.issue('gateway-1');
    const files = { caFile: certificates.caFile, certFile, keyFile };
    const { lookup } = new KeptLookups(() => Promise.resolve(at('127.0.0.1')));
    const taken = once(server, 'connection') as Promise<[Socket]>;
    const closed = new Promise<string>((resolve) => {
      new TlsTransport({ files, peerName: 'store-a', lookup }).connect('store.test', port, {
        onOpen: () => undefined, onData: () => undefined, onDrain: () => undefined, onClose: resolve,
      });
    });
    const [socket] = await Promise.race([taken, closed.then((why) => assert.fail(why))]);
    socket.destroy();
    await closed;
  });
});
