/**
 * What TLS with strangers is given: in order, whole, and in turns where it costs much, whether it is a handshake or
 * anything else; who is silent keeps nobody waiting.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { connect as tlsConnect } from 'node:tls';
import { Worker } from 'node:worker_threads';

import { ClientTransport } from '../../../../src/platform/node/client-transport.js';
import { HttpsClient } from '../../../../src/platform/node/https-client.js';
import { STRANGERS } from '../../../../src/platform/node/read-turns.js';
import { StreamServer } from '../../../../src/platform/node/server-socket.js';
import { ServerTls } from '../../../../src/platform/node/server-tls.js';
import { TlsWire, WIRE_BUFFER_BYTES } from '../../../../src/platform/node/tls-wire.js';
import type { ConnectionHandlers, ServerConnection } from '../../../../src/platform/transport.js';
import { selfSigned } from '../../../dialog/self-signed.js';

const files = selfSigned();
const needsTls = { timeout: 60_000, skip: files === undefined ? 'openssl is missing' : false };
const MANY = 8;
/** The other side answers in a thread of its own, while ours is busy: then all could go on at once. */
const BUSY_MS = 40;
/** More than a turn has for those who are read from. */
const COSTLY_MS = 25;

const SERVER = `
  const { parentPort, workerData: { cert, key } } = require('node:worker_threads');
  const server = require('node:https').createServer({ cert, key }, (_request, response) => { response.end('yes'); });
  server.listen(0, '127.0.0.1', () => { parentPort.postMessage(server.address().port); });
`;
const CLIENTS = `
  const { workerData: { port, count } } = require('node:worker_threads');
  for (let i = 0; i < count; i++) {
    require('node:tls').connect({ host: '127.0.0.1', port, rejectUnauthorized: false }).on('error', () => undefined);
  }
`;

const nextTurn = (): Promise<void> => new Promise((resolve) => { setImmediate(resolve); });

function burn(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

function pair(): { readonly cert: string; readonly key: string } {
  assert.ok(files !== undefined);
  return { cert: readFileSync(files.certFile, 'latin1'), key: readFileSync(files.keyFile, 'latin1') };
}

async function serverOf(t: TestContext): Promise<number> {
  const worker = new Worker(SERVER, { eval: true, workerData: pair() });
  t.after(() => worker.terminate());
  const [port] = await once(worker, 'message') as [number];
  return port;
}

interface Counted {
  count: number;
}

/** Until so many are told of: how many were in each turn at most. */
async function mostInATurn(counted: Counted): Promise<number> {
  let most = 0;
  for (let before = 0; counted.count < MANY;) {
    await nextTurn();
    most = Math.max(most, counted.count - before);
    before = counted.count;
    burn(BUSY_MS);
  }
  return most;
}

/** Connections in clear, changed to TLS in one go; each handshake that ends takes `costMs` more. */
async function secured(t: TestContext, port: number, costMs: number): Promise<Counted> {
  const counted = { count: 0 };
  const transport = new ClientTransport({ readBufferBytes: 4096 });
  const none = { onData: () => undefined, onDrain: () => undefined, onClose: () => undefined };
  const opened = (connect: (handlers: ConnectionHandlers) => unknown): Promise<void> =>
    new Promise((resolve) => { connect({ ...none, onOpen: resolve }); });
  const clear: ReturnType<ClientTransport['connect']>[] = [];
  await Promise.all(Array.from({ length: MANY }, () => opened((handlers) => { clear.push(transport.connect('127.0.0.1', port, handlers)); })));
  const terms = { serverName: 'x.example', mustVerify: false, caFile: undefined };
  const onOpen = (): void => {
    counted.count++;
    burn(costMs);
  };
  const all = clear.map((each) => transport.secure(each, terms, { ...none, onOpen }));
  t.after(() => { for (const each of all) each.destroy(); });
  return counted;
}

function asked(t: TestContext, port: number): Promise<string[]> {
  const https = new HttpsClient({ port, ca: pair().cert });
  t.after(() => { https.close(); });
  return Promise.all(Array.from({ length: MANY }, () => new Promise<string>((resolve) => {
    const question = { host: 'mx.test', path: '/', addresses: ['127.0.0.1'], answerBytesMax: 1024, withinMs: 20_000 };
    https.ask(question, (answer) => { resolve(answer.kind === 'failed' ? answer.why : answer.text); });
  })));
}

describe('of handshakes that cost much', () => {
  test('with next hops one goes on in a turn; of cheap ones more', needsTls, async (t) => {
    const port = await serverOf(t);
    assert.ok(await mostInATurn(await secured(t, port, 0)) > 1, 'else this test shows nothing');
    assert.equal(await mostInATurn(await secured(t, port, COSTLY_MS)), 1);
  });

  test('with clients likewise, also where it had begun before', needsTls, async (t) => {
    assert.ok(files !== undefined);
    const nothing = (): void => undefined;
    const listener = new ServerTls({ ...files, clientCaFile: undefined }, { onHandshake: nothing, onRenewed: nothing, onProblem: nothing });
    const counted = { count: 0 };
    const waiting: (() => void)[] = [];
    const server = new StreamServer({ connectionsMax: 100, backlog: 100, tls: listener }, (connection) => {
      const onSecure = (): void => {
        counted.count++;
        burn(COSTLY_MS);
      };
      const onData = (bytes: Uint8Array): void => {
        const ahead = Uint8Array.from(bytes);
        waiting.push(() => { connection.secure(ahead); });
        if (waiting.length === MANY) for (const begin of waiting) begin();
      };
      return { onOpen: nothing, onDrain: nothing, onEnd: nothing, onClose: nothing, onData, onSecure };
    });
    const port = await server.listen('127.0.0.1', 0);
    const worker = new Worker(CLIENTS, { eval: true, workerData: { port, count: MANY } });
    t.after(async () => {
      await worker.terminate();
      listener.close();
      server.close();
    });
    assert.equal(await mostInATurn(counted), 1);
  });
});

test('who is paused in a handshake comes through it, and is read from when he is resumed', needsTls, async (t) => {
  assert.ok(files !== undefined);
  const nothing = (): void => undefined;
  const listener = new ServerTls({ ...files, clientCaFile: undefined }, { onHandshake: nothing, onRenewed: nothing, onProblem: nothing });
  let got = '';
  let isTls = false;
  const secure = new Promise<ServerConnection>((resolve) => {
    const server = new StreamServer({ connectionsMax: 100, backlog: 100, tls: listener }, (connection) => ({
      onOpen: nothing, onDrain: nothing, onEnd: nothing, onClose: nothing,
      onData: (bytes) => {
        if (isTls) got += Buffer.from(bytes).toString('latin1');
        else connection.secure(Uint8Array.from(bytes));
        isTls = true;
        connection.pause();
        if (got === '') connection.resume();
        connection.pause();
      },
      onSecure: () => { resolve(connection); },
    }));
    t.after(() => {
      server.close();
      listener.close();
    });
    void server.listen('127.0.0.1', 0).then((port) => {
      const client = tlsConnect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => { setTimeout(() => { client.write('hello'); }, 100); });
      t.after(() => { client.destroy(); });
    });
  });
  const connection = await secure;
  await new Promise((resolve) => { setTimeout(resolve, 300); });
  assert.equal(got, '');
  connection.resume();
  while (got.length < 'hello'.length) await nextTurn();
});

test('servers of policies and reports take turns, too', needsTls, async (t) => {
  const port = await serverOf(t);
  const { mock } = t.mock.method(STRANGERS, 'mayRead');
  assert.deepEqual([...new Set(await asked(t, port))], ['yes']);
  assert.equal(new Set(mock.calls.map(({ arguments: [connection] }) => connection)).size, MANY);
});

test('whoever is silent in the middle of one keeps nobody else waiting', needsTls, async (t) => {
  const port = await serverOf(t);
  const silent = net.createServer((socket) => { socket.on('error', () => undefined); });
  await new Promise<void>((resolve) => { silent.listen(0, '127.0.0.1', resolve); });
  t.after(() => { silent.close(); });
  await secured(t, (silent.address() as AddressInfo).port, 0);
  const counted = await secured(t, port, 0);
  assert.deepEqual([...new Set(await asked(t, port))], ['yes']);
  while (counted.count < MANY) await nextTurn();
});

/** What a wire over a real socket hands to TLS, and whether it has ended. */
class Taken {
  readonly wire: TlsWire;
  readonly hash = createHash('sha256');
  octets = 0;
  isEnded = false;
  isPaused = false;
  /** Pieces that came all the same. */
  unasked = 0;
  largest = 0;

  constructor(socket: net.Socket, buffer: Uint8Array, ahead: Uint8Array, onPiece: (taken: Taken) => void) {
    this.wire = new TlsWire(socket, buffer, ahead);
    // As Node's TLS does.
    this.wire.pause();
    this.wire.on('data', (piece: Uint8Array) => {
      this.hash.update(piece);
      this.octets += piece.length;
      this.largest = Math.max(this.largest, piece.length);
      if (this.isPaused) this.unasked++;
      onPiece(this);
    });
    this.wire.once('end', () => { this.isEnded = true; });
    this.wire.resume();
  }

  pause(): void {
    this.isPaused = true;
    this.wire.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.wire.resume();
  }
}

test('octets come in their order and all of them, in pieces that take turns, whoever pauses when; then the end', { timeout: 60_000 }, async (t) => {
  const [OCTETS, COSTLY] = [600_000, 60];
  const sent = Buffer.from(Array.from({ length: OCTETS }, (_none, i) => (i * i) >> 3 & 0xff));
  const buffer = Buffer.alloc(WIRE_BUFFER_BYTES);
  const taken: Taken[] = [];
  let inTurn = 0;
  let most = 0;
  let pieces = 0;
  const onPiece = (of: Taken): void => {
    // Others are read into the buffer of all, too.
    process.nextTick(() => { buffer.fill(0xff); });
    pieces++;
    if (pieces > COSTLY) return;
    if (inTurn++ === 0) setImmediate(() => { inTurn = 0; });
    most = Math.max(most, inTurn);
    burn(12);
    if (pieces % 3 !== 0) return;
    of.pause();
    if (pieces % 2 === 0) of.resume();
    else setTimeout(() => { of.resume(); }, 5);
  };
  const server = net.createServer((socket) => {
    taken.push(new Taken(socket, buffer, Buffer.from(sent.subarray(0, 5000)), onPiece));
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => {
    for (const { wire } of taken) wire.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  for (let i = 0; i < 3; i++) net.connect(port, '127.0.0.1').end(sent.subarray(5000));
  while (taken.length < 3 || pieces < COSTLY) {
    await nextTurn();
    assert.ok(most <= 5, `${String(most)} pieces in a turn that is over when two have come, and two that had waited`);
  }
  while (!taken.every(({ isEnded }) => isEnded)) await nextTurn();
  const whole = createHash('sha256').update(sent).digest('hex');
  assert.deepEqual(taken.map(({ hash, octets, unasked }) => [octets, unasked, hash.digest('hex')]), taken.map(() => [OCTETS, 0, whole]));
  assert.deepEqual(taken.map(({ largest }) => largest), taken.map(() => 4096), 'so much OpenSSL takes without asking anybody');
});

test('who does not take what TLS answers is not read from until he does', { timeout: 60_000 }, async (t) => {
  // More than two kernels keep for a connection.
  const OCTETS = 40_000_000;
  const buffer = Buffer.alloc(WIRE_BUFFER_BYTES);
  const taken: Taken[] = [];
  const server = net.createServer((socket) => {
    taken.push(new Taken(socket, buffer, Buffer.alloc(0), ({ wire }) => { wire.write(Buffer.alloc(4096)); }));
  });
  const port = await new Promise<number>((resolve) => { server.listen(0, '127.0.0.1', () => { resolve((server.address() as AddressInfo).port); }); });
  const client = net.connect(port, '127.0.0.1');
  t.after(() => {
    for (const { wire } of taken) wire.destroy();
    client.destroy();
    server.close();
  });
  client.pause();
  client.write(Buffer.alloc(OCTETS));
  const untaken = (): number => taken[0]?.wire.socket.writableLength ?? 0;
  const stands = async (): Promise<boolean> => {
    const before = taken[0]?.octets;
    for (let i = 0; i < 200; i++) await nextTurn();
    return before !== undefined && before > 0 && before === taken[0]?.octets;
  };
  while (!await stands());
  assert.ok(untaken() > 0 && untaken() <= 300_000, `${String(untaken())} octets wait`);
  client.resume();
  while ((taken[0]?.octets ?? 0) < OCTETS) await nextTurn();
});

test('a reset of the socket ends what lies on it, and says so', { timeout: 30_000 }, async (t) => {
  let client: net.Socket | undefined;
  const ended = new Promise<string>((resolve) => {
    const server = net.createServer((socket) => {
      const wire = new TlsWire(socket, Buffer.alloc(WIRE_BUFFER_BYTES));
      wire.once('error', (error: NodeJS.ErrnoException) => { resolve(error.code ?? ''); });
      wire.once('data', () => { client?.resetAndDestroy(); });
      wire.resume();
    });
    t.after(() => { server.close(); });
    server.listen(0, '127.0.0.1', () => {
      client = net.connect((server.address() as AddressInfo).port, '127.0.0.1', () => { client?.write('x'); });
    });
  });
  assert.equal(await ended, 'ECONNRESET');
});

/** A wire over a socket that a server accepted, and who is on the other side. */
async function connected(t: TestContext): Promise<{ wire: TlsWire; client: net.Socket }> {
  const accepted = new Promise<TlsWire>((resolve) => {
    const server = net.createServer((socket) => { resolve(new TlsWire(socket, Buffer.alloc(WIRE_BUFFER_BYTES))); });
    t.after(() => { server.close(); });
    server.listen(0, '127.0.0.1', () => { client.connect((server.address() as AddressInfo).port, '127.0.0.1'); });
  });
  const client = new net.Socket({ allowHalfOpen: true });
  const wire = await accepted;
  t.after(() => {
    wire.destroy();
    client.destroy();
  });
  wire.resume();
  return { wire, client };
}

describe('the ends of a wire', { timeout: 30_000 }, () => {
  test('who has ended his side still gets what is written, and then our end', async (t) => {
    const OCTETS = 20_000_000;
    const { wire, client } = await connected(t);
    client.end();
    await once(wire, 'end');
    // Where only a whole socket stays open, Node has ended it by then.
    await nextTurn();
    wire.write(Buffer.alloc(OCTETS));
    wire.end();
    assert.ok(wire.socket.writableLength > 0, 'else this test shows nothing');
    let got = 0;
    client.on('data', (bytes) => { got += bytes.length; });
    await once(client, 'end');
    assert.equal(got, OCTETS);
  });

  test('a socket that is closed without a word closes it', async (t) => {
    const { wire } = await connected(t);
    wire.socket.destroy();
    await once(wire, 'close');
    assert.equal(wire.destroyed, true);
  });

  test('what is written between cork and uncork goes at once', async (t) => {
    const { wire } = await connected(t);
    wire.cork();
    for (let i = 0; i < 3; i++) wire.write(Buffer.alloc(10));
    assert.equal(wire.socket.writableLength, 30);
    wire.uncork();
    assert.equal(wire.socket.writableLength, 0);
  });
});
