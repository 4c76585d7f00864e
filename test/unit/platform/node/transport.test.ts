import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import net from 'node:net';
import { once } from 'node:events';
import { FULL_READS_MAX, NodeTransport } from '../../../../src/platform/node/transport.js';
import type { Connection, ConnectionHandlers, Listening } from '../../../../src/platform/transport.js';

/** Records what a connection tells, and lets a test wait for it. */
class Recorder implements ConnectionHandlers {
  opens = 0;
  drains = 0;
  bytes = 0;
  chunks: Uint8Array[] = [];
  /** First and last byte of what came. */
  ends: (number | undefined)[] = [];
  closes: string[] = [];
  #waiters: { when: () => boolean; done: () => void }[] = [];

  onOpen(): void {
    this.opens++;
    this.#look();
  }

  onData(bytes: Uint8Array): void {
    this.bytes += bytes.length;
    this.ends = [this.ends[0] ?? bytes[0], bytes.at(-1)];
    this.chunks.push(bytes);
    this.#look();
  }

  onDrain(): void {
    this.drains++;
    this.#look();
  }

  onClose(reason: string): void {
    this.closes.push(reason);
    this.#look();
  }

  until(when: () => boolean): Promise<void> {
    if (when()) return Promise.resolve();
    return new Promise((done) => { this.#waiters.push({ when, done }); });
  }

  closed(): Promise<void> {
    return this.until(() => this.closes.length > 0);
  }

  #look(): void {
    const due = this.#waiters.filter((waiter) => waiter.when());
    this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
    for (const waiter of due) waiter.done();
  }
}

interface Pair {
  readonly client: Connection;
  readonly clientSide: Recorder;
  readonly server: Connection;
  readonly serverSide: Recorder;
  readonly listening: Listening;
}

async function pair(transport = new NodeTransport()): Promise<Pair> {
  const serverSide = new Recorder();
  let server: Connection | undefined;
  const listening = await transport.listen('127.0.0.1', 0, (connection) => {
    server = connection;
    return serverSide;
  });
  const clientSide = new Recorder();
  const client = transport.connect('127.0.0.1', listening.port, clientSide);
  await clientSide.until(() => clientSide.opens === 1);
  await serverSide.until(() => serverSide.opens === 1);
  assert.ok(server !== undefined);
  return { client, clientSide, server, serverSide, listening };
}

/** Lets what is under way in this process happen: several turns, each with a poll. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((done) => { setImmediate(done); });
}

async function eventually(when: () => boolean): Promise<void> {
  while (!when()) await turns(1);
}

interface WithWrites {
  writev(...args: unknown[]): number;
}

describe('node transport', () => {
  test('sends all chunks of one write call with one system call', async () => {
    const { client, clientSide, server, serverSide, listening } = await pair();
    // Counts the calls that reach libuv: the handle of the socket is the last thing JavaScript sees.
    const prototype: unknown = await streamPrototype();
    const handle = prototype as WithWrites;
    const original = handle.writev;
    let calls = 0;
    handle.writev = function counted(this: unknown, ...args: unknown[]): number {
      calls++;
      return original.apply(this, args);
    };
    try {
      client.write([new Uint8Array([1, 2]), new Uint8Array(0), new Uint8Array([3]), new Uint8Array([4, 5, 6])]);
      assert.deepEqual([calls, client.bufferedBytes], [1, 0], 'all of it has left the process when write() returns');
      await serverSide.until(() => serverSide.bytes === 6);
    } finally {
      handle.writev = original;
    }
    assert.equal(calls, 1);
    assert.equal(serverSide.chunks.length, 1);
    assert.deepEqual([...(serverSide.chunks[0] ?? [])], [1, 2, 3, 4, 5, 6]);
    client.end();
    server.end();
    await clientSide.closed();
    await serverSide.closed();
    listening.close();
  });

  test('a refused connection is told by one onClose and no onOpen', async () => {
    const transport = new NodeTransport();
    const listening = await transport.listen('127.0.0.1', 0, () => new Recorder());
    const port = listening.port;
    listening.close();
    await turns(2);
    const side = new Recorder();
    const connection = transport.connect('127.0.0.1', port, side);
    assert.deepEqual(side.closes, [], 'not from inside connect()');
    await side.closed();
    connection.destroy();
    connection.end();
    await turns(5);
    assert.equal(side.opens, 0);
    assert.deepEqual(side.closes, ['ECONNREFUSED']);
  });

  test('a reset by the peer is told once, with its name', async () => {
    const accepted: net.Socket[] = [];
    const raw = net.createServer((socket) => {
      accepted.push(socket);
      socket.on('error', () => undefined);
    });
    raw.listen(0, '127.0.0.1');
    await once(raw, 'listening');
    const address = raw.address();
    assert.ok(address !== null && typeof address === 'object');
    const side = new Recorder();
    const connection = new NodeTransport().connect('127.0.0.1', address.port, side);
    await side.until(() => side.opens === 1);
    if (accepted.length === 0) await once(raw, 'connection');
    accepted[0]?.resetAndDestroy();
    await side.closed();
    connection.write([new Uint8Array([1])]);
    await turns(5);
    assert.deepEqual(side.closes, ['ECONNRESET']);
    raw.close();
  });

  test('when the peer sends no more, what was buffered still goes out before the close', async () => {
    const transport = new NodeTransport();
    const side = new Recorder();
    let server: Connection | undefined;
    const listening = await transport.listen('127.0.0.1', 0, (connection) => {
      server = connection;
      return side;
    });
    const client = net.connect({ port: listening.port, host: '127.0.0.1', allowHalfOpen: true });
    await side.until(() => side.opens === 1);
    const body = new Uint8Array(4 * 1024 * 1024).fill(7);
    server?.write([body]);
    client.end();
    let received = 0;
    client.on('data', (bytes: Buffer) => { received += bytes.length; });
    await side.closed();
    if (!client.readableEnded) await once(client, 'end');
    assert.equal(received, body.length);
    assert.deepEqual(side.closes, ['closed by the peer']);
    client.destroy();
    listening.close();
  });

  test('a half-closed peer that reads nothing is cut after the grace', async () => {
    const transport = new NodeTransport({ endGraceMs: 30 });
    const side = new Recorder();
    let server: Connection | undefined;
    const listening = await transport.listen('127.0.0.1', 0, (connection) => {
      server = connection;
      return side;
    });
    const client = net.connect({ port: listening.port, host: '127.0.0.1', allowHalfOpen: true });
    client.on('error', () => undefined);
    client.pause();
    await side.until(() => side.opens === 1);
    server?.write([new Uint8Array(16 * 1024 * 1024)]);
    client.end();
    await side.closed();
    assert.deepEqual(side.closes, ['closed by the peer']);
    client.destroy();
    listening.close();
  });

  test('what was written may change once nothing of it waits, and not before', async () => {
    const { client, server, serverSide, listening } = await pair();
    const waits = (): boolean => client.bufferedBytes > 0;
    server.pause();
    const small = new Uint8Array(1000).fill(1);
    client.write([small]);
    assert.equal(waits(), false);
    small.fill(2);
    const large = new Uint8Array(32 * 1024 * 1024).fill(3);
    client.write([large]);
    client.write([small]);
    assert.ok(waits(), 'the last one waits behind what the peer does not read');
    server.resume();
    await serverSide.until(() => serverSide.bytes === large.length + 2 * small.length);
    assert.deepEqual(serverSide.ends, [1, 2]);
    client.destroy();
    await serverSide.closed();
    listening.close();
  });

  test('a large write is buffered, counted, and told to have left by onDrain', async () => {
    const { client, clientSide, server, serverSide, listening } = await pair();
    server.pause();
    const chunks = Array.from({ length: 64 }, () => new Uint8Array(512 * 1024).fill(9));
    client.write(chunks);
    assert.ok(client.bufferedBytes > 8 * 1024 * 1024, 'a paused peer leaves most of it here');
    assert.equal(clientSide.drains, 0);
    server.resume();
    await clientSide.until(() => clientSide.drains > 0);
    await serverSide.until(() => serverSide.bytes === 64 * 512 * 1024);
    assert.equal(client.bufferedBytes, 0);
    client.destroy();
    await serverSide.closed();
    listening.close();
  });

  test('a connection whose peer takes nothing is cut at the bound', async () => {
    const { client, clientSide, server, serverSide, listening } = await pair(
      new NodeTransport({ bufferedBytesMax: 8 * 1024 * 1024 }),
    );
    server.pause();
    const chunk = [new Uint8Array(1024 * 1024)];
    for (let i = 0; i < 64; i++) client.write(chunk);
    await clientSide.closed();
    assert.deepEqual(clientSide.closes, ['too many bytes wait to be written']);
    assert.equal(client.bufferedBytes <= 9 * 1024 * 1024, true);
    server.destroy();
    await serverSide.closed();
    listening.close();
  });

  test('pause holds data back and resume brings it', async () => {
    const { client, clientSide, server, serverSide, listening } = await pair();
    server.pause();
    client.write([new Uint8Array([1])]);
    await turns(10);
    assert.equal(serverSide.bytes, 0);
    server.resume();
    await serverSide.until(() => serverSide.bytes === 1);
    client.destroy();
    await clientSide.closed();
    listening.close();
  });

  test('a peer that sends without end leaves each turn to others after a few full reads', async () => {
    const readBufferBytes = 16 * 1024;
    const total = 8 * 1024 * 1024;
    const { client, clientSide, server, serverSide, listening } = await pair(new NodeTransport({ readBufferBytes }));
    let most = 0;
    let before = 0;
    server.write([new Uint8Array(total)]);
    while (clientSide.bytes < total) {
      await turns(1);
      most = Math.max(most, clientSide.bytes - before);
      before = clientSide.bytes;
      clientSide.chunks.length = 0;
    }
    assert.ok(most <= FULL_READS_MAX * readBufferBytes, `${String(most)} bytes in one turn`);
    client.destroy();
    await serverSide.closed();
    listening.close();
  });

  test('what is paused while it rests stays paused', async () => {
    const readBufferBytes = 16 * 1024;
    const { client, clientSide, server, serverSide, listening } = await pair(new NodeTransport({ readBufferBytes }));
    server.write([new Uint8Array(1024 * 1024)]);
    await clientSide.until(() => clientSide.bytes >= FULL_READS_MAX * readBufferBytes);
    client.pause();
    const { bytes } = clientSide;
    await turns(20);
    assert.equal(clientSide.bytes, bytes);
    client.resume();
    await clientSide.until(() => clientSide.bytes === 1024 * 1024);
    client.destroy();
    await serverSide.closed();
    listening.close();
  });

  test('after end() nothing is heard but the close, and what was written arrives', async () => {
    const { client, clientSide, server, serverSide, listening } = await pair();
    client.write([new Uint8Array([1, 2, 3])]);
    client.end();
    server.write([new Uint8Array([4])]);
    await clientSide.closed();
    await serverSide.closed();
    assert.equal(serverSide.bytes, 3);
    assert.equal(clientSide.bytes, 0);
    assert.deepEqual(clientSide.closes, ['ended here']);
    assert.deepEqual(serverSide.closes, ['closed by the peer']);
    listening.close();
  });

  test('destroy() before the connection is there ends in one onClose and no onOpen', async () => {
    const transport = new NodeTransport();
    const listening = await transport.listen('127.0.0.1', 0, () => new Recorder());
    const side = new Recorder();
    transport.connect('127.0.0.1', listening.port, side).destroy();
    assert.equal(side.closes.length, 0, 'not from inside destroy()');
    await side.closed();
    await turns(5);
    assert.equal(side.opens, 0);
    assert.deepEqual(side.closes, ['destroyed here']);
    listening.close();
  });

  test('accepted connections are read into one buffer, which no read allocates', async () => {
    const transport = new NodeTransport();
    const sides: Recorder[] = [];
    const listening = await transport.listen('127.0.0.1', 0, () => {
      const side = new Recorder();
      sides.push(side);
      return side;
    });
    const clients = [transport.connect('127.0.0.1', listening.port, new Recorder()), transport.connect('127.0.0.1', listening.port, new Recorder())];
    for (let round = 1; round <= 2; round++) {
      for (const client of clients) client.write([new Uint8Array([round])]);
      await eventually(() => sides.length === 2 && sides.every((side) => side.bytes === round));
    }
    const buffers = new Set(sides.flatMap((side) => side.chunks.map((chunk) => chunk.buffer)));
    assert.equal(buffers.size, 1);
    for (const client of clients) client.destroy();
    for (const side of sides) await side.closed();
    listening.close();
  });

  test('connections above the bound are closed, and those that went make room', async () => {
    const transport = new NodeTransport({ connectionsMax: 1 });
    const sides: Recorder[] = [];
    const listening = await transport.listen('127.0.0.1', 0, () => {
      const side = new Recorder();
      sides.push(side);
      return side;
    });
    const first = transport.connect('127.0.0.1', listening.port, new Recorder());
    await eventually(() => sides.length === 1);
    const refused = new Recorder();
    transport.connect('127.0.0.1', listening.port, refused);
    await refused.closed();
    assert.equal(sides.length, 1);
    first.destroy();
    await sides[0]?.closed();
    const third = transport.connect('127.0.0.1', listening.port, new Recorder());
    await eventually(() => sides.length === 2);
    third.destroy();
    await sides[1]?.closed();
    listening.close();
  });

  test('a busy port rejects with the code of the system', async () => {
    const transport = new NodeTransport();
    const listening = await transport.listen('127.0.0.1', 0, () => new Recorder());
    await assert.rejects(transport.listen('127.0.0.1', listening.port, () => new Recorder()), { code: 'EADDRINUSE' });
    listening.close();
  });
});

/** The prototype that all TCP handles share. */
async function streamPrototype(): Promise<unknown> {
  const server = net.createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const socket = net.connect(address.port, '127.0.0.1');
  await once(socket, 'connect');
  const handle: unknown = Reflect.get(socket, '_handle');
  let prototype: unknown = handle;
  while (typeof prototype === 'object' && prototype !== null && !Object.hasOwn(prototype, 'writev')) {
    prototype = Object.getPrototypeOf(prototype);
  }
  assert.ok(prototype !== null, 'TCP handles have writev');
  socket.destroy();
  server.close();
  return prototype;
}
