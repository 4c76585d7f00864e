/** Handshakes with strangers take turns: of many that could go on at once, one does in each turn of the loop; none keeps others waiting. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';

import { ClientTransport } from '../../../../src/platform/node/client-transport.js';
import { HandshakeTurns, setReading } from '../../../../src/platform/node/handshake-turns.js';
import { HttpsClient } from '../../../../src/platform/node/https-client.js';
import { ServerTls } from '../../../../src/platform/node/server-tls.js';
import type { ConnectionHandlers } from '../../../../src/platform/transport.js';
import { selfSigned } from '../../../dialog/self-signed.js';

const files = selfSigned();
const needsTls = { timeout: 60_000, skip: files === undefined ? 'openssl is missing' : false };
const MANY = 8;
/** The other side answers in a thread of its own, while ours is busy: then all could be read from. */
const BUSY_MS = 40;

const SERVER = `
  const { parentPort, workerData: { cert, key } } = require('node:worker_threads');
  const server = require('node:https').createServer({ cert, key }, (_request, response) => { response.end('yes'); });
  server.listen(0, '127.0.0.1', () => { parentPort.postMessage(server.address().port); });
`;
const CLIENTS = `
  const { workerData: { cert, key, port, count } } = require('node:worker_threads');
  for (let i = 0; i < count; i++) {
    require('node:tls').connect({ host: '127.0.0.1', port, cert, key, rejectUnauthorized: false }).on('error', () => undefined);
  }
`;

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

/** Until so many are told of: how many were in each turn at most. */
async function mostInATurn(counted: { count: number }): Promise<number> {
  let most = 0;
  for (let before = 0; counted.count < MANY;) {
    await new Promise((resolve) => { setImmediate(resolve); });
    most = Math.max(most, counted.count - before);
    before = counted.count;
    const untilMs = performance.now() + BUSY_MS;
    while (performance.now() < untilMs);
  }
  return most;
}

/** Connections in clear, changed to TLS in one go. */
async function secured(t: TestContext, port: number, turns?: HandshakeTurns): Promise<{ count: number }> {
  const counted = { count: 0 };
  const transport = new ClientTransport({ readBufferBytes: 4096, ...(turns === undefined ? {} : { turns }) });
  const none = { onData: () => undefined, onDrain: () => undefined, onClose: () => undefined };
  const opened = (connect: (handlers: ConnectionHandlers) => unknown): Promise<void> =>
    new Promise((resolve) => { connect({ ...none, onOpen: resolve }); });
  const clear: ReturnType<ClientTransport['connect']>[] = [];
  await Promise.all(Array.from({ length: MANY }, () => opened((handlers) => { clear.push(transport.connect('127.0.0.1', port, handlers)); })));
  const terms = { serverName: 'x.example', mustVerify: false, caFile: undefined };
  const all = clear.map((each) => transport.secure(each, terms, { ...none, onOpen: () => { counted.count++; } }));
  t.after(() => { for (const each of all) each.destroy(); });
  return counted;
}

describe('handshakes that could all go on in one turn', () => {
  test('with next hops: one does', needsTls, async (t) => {
    const port = await serverOf(t);
    assert.ok(await mostInATurn(await secured(t, port)) > 1, 'else this test shows nothing');
    assert.equal(await mostInATurn(await secured(t, port, new HandshakeTurns())), 1);
  });

  test('with clients that may show certificates: one does', needsTls, async (t) => {
    assert.ok(files !== undefined);
    const counted = { count: 0 };
    const listener = new ServerTls({ ...files, clientCaFile: files.certFile }, {
      onHandshake: () => { counted.count++; }, onRenewed: () => undefined, onProblem: () => undefined,
    });
    // The loop accepts one in each turn.
    const accepted: net.Socket[] = [];
    const server = net.createServer((socket) => {
      accepted.push(socket);
      socket.on('error', () => undefined);
      if (accepted.length === MANY) for (const each of accepted) listener.begin(each, () => undefined, () => undefined);
    });
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    const { port } = server.address() as AddressInfo;
    const worker = new Worker(CLIENTS, { eval: true, workerData: { ...pair(), port, count: MANY } });
    t.after(async () => {
      await worker.terminate();
      listener.close();
      for (const socket of accepted) socket.destroy();
      server.close();
    });
    assert.equal(await mostInATurn(counted), 1);
  });
});

test('one that ends hands its turn on, whole', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] });
  const sockets = Array.from({ length: 3 }, () => ({ _handle: { reading: true, readStart: () => 0, readStop: () => 0 } }));
  const [first, second] = sockets;
  assert.ok(first !== undefined && second !== undefined);
  const reading = (): boolean[] => sockets.map(({ _handle }) => _handle.reading);
  const turns = new HandshakeTurns();
  for (const socket of sockets) turns.begin(socket as unknown as net.Socket);
  await Promise.resolve();
  await new Promise<void>((resolve) => { process.nextTick(resolve); });
  t.mock.timers.tick(0);
  assert.deepEqual(reading(), [true, false, false]);
  t.mock.timers.tick(0.5);
  turns.end(first as unknown as net.Socket);
  t.mock.timers.tick(0);
  assert.deepEqual(reading(), [true, true, false], 'who is through is read from as any');
  // The time of the first one is over, not that of the second.
  t.mock.timers.tick(0.6);
  assert.deepEqual(reading(), [true, true, false]);
  t.mock.timers.tick(0.6);
  assert.deepEqual(reading(), [true, false, true]);
});

test('whoever is silent in the middle of one keeps nobody else waiting', needsTls, async (t) => {
  const port = await serverOf(t);
  const silent = net.createServer((socket) => { socket.on('error', () => undefined); });
  await new Promise<void>((resolve) => { silent.listen(0, '127.0.0.1', resolve); });
  t.after(() => { silent.close(); });
  const turns = new HandshakeTurns();
  await secured(t, (silent.address() as AddressInfo).port, turns);
  const https = new HttpsClient({ port, turns, ca: pair().cert });
  t.after(() => { https.close(); });
  const counted = await secured(t, port, turns);
  const kinds = await Promise.all(Array.from({ length: MANY }, () => new Promise<string>((resolve) => {
    const question = { host: 'mx.test', path: '/', addresses: ['127.0.0.1'], answerBytesMax: 1024, withinMs: 20_000 };
    https.ask(question, (answer) => { resolve(answer.kind === 'failed' ? answer.why : answer.text); });
  })));
  assert.deepEqual([...new Set(kinds)], ['yes']);
  while (counted.count < MANY) await new Promise((resolve) => { setImmediate(resolve); });
});

test('this Node has what stops and starts a socket being read', () => {
  const [open, handleless] = [new net.Socket(), {}];
  const server = net.createServer();
  return new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      open.connect((server.address() as AddressInfo).port, '127.0.0.1', () => {
        assert.deepEqual([setReading(open, true), setReading(open, false), setReading(handleless, false)], [true, true, false]);
        open.destroy();
        server.close();
        resolve();
      });
    });
  });
});
