/** Mail to a host that its route names, of which the system knows several addresses. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { systemTurns } from '../../../../src/gateway/outbound/pure/address-turns.js';
import { ClientTransport } from '../../../../src/platform/node/client-transport.js';
import type { MailTransport } from '../../../../src/platform/transport.js';
import { until } from '../../register/real-world.js';
import { MemoryQueue, MemorySource, dispatcherFor } from './memory-source.js';

/** What the system says of each name. */
function found(addresses: readonly string[]): MailTransport['addresses'] {
  return (_host, done) => {
    done({ addresses, why: '', isFailed: false });
    return () => undefined;
  };
}

/** It takes no connection for so long: the kernel drops each SYN that its line has no room for. */
const BUSY_MS = 1_500;
const BUSY_SERVER = `
  const server = require('node:net').createServer((socket) => { socket.write('220 two.test\\r\\n'); });
  server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {
    require('node:fs').writeSync(1, String(server.address().port));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${String(BUSY_MS)});
  });`;

/** The port of a server that answers its SYN late; two connections fill its line. */
async function busyServer(t: TestContext): Promise<number> {
  const server = spawn(process.execPath, ['-e', BUSY_SERVER], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => { server.kill('SIGKILL'); });
  const [said] = await once(server.stdout, 'data') as [Buffer];
  const port = Number(said.toString());
  for (let i = 0; i < 2; i++) {
    const socket = net.connect(port, '127.0.0.1').on('error', () => undefined);
    t.after(() => { socket.destroy(); });
    await once(socket, 'connect');
  }
  return port;
}

test('a host by name that answers its SYN late is connected to, though another address of it follows', async (t) => {
  const port = await busyServer(t);
  const real = new ClientTransport({ readBufferBytes: 8 * 1024 });
  const source = new MemorySource();
  const dispatcher = dispatcherFor(source, {}, undefined, undefined, undefined, undefined, undefined, undefined, undefined, {
    connect: (host, to, handlers, from) => real.connect(host, to, handlers, from),
    secure: (clear, terms, handlers) => real.secure(clear, terms, handlers),
    addresses: found(['127.0.0.1', '127.0.0.2']),
  });
  t.after(() => dispatcher.stop(100));
  const queue = new MemoryQueue({ nextHop: { protocol: 'smtp', host: 'two.test', port } });
  source.put(queue, 1, 'Subject: x\r\n\r\nhello\r\n');
  dispatcher.onReady(queue);
  const connecting = (): string | undefined => dispatcher.nextHopOf(queue)?.connecting?.doing;
  await until(() => source.ended.length > 0 || !['', undefined].includes(connecting()), 'it is open, or failed', 20_000);
  assert.deepEqual(source.ended.map(({ result: { results } }) => results[0]?.text), []);
  assert.equal(dispatcher.nextHopOf(queue)?.connecting?.relay, `two.test[127.0.0.1]:${String(port)}`);
});

/** Takes one message a connection, and closes it. */
async function server(t: TestContext): Promise<number> {
  const listening = net.createServer((socket) => {
    t.after(() => { socket.destroy(); });
    socket.write('220 six.test\r\n');
    let isContent = false;
    createInterface({ input: socket }).on('line', (line) => {
      if (isContent && line === '.') socket.end('250 taken\r\n');
      else if (!isContent) socket.write(line === 'DATA' ? '354 go on\r\n' : '250 yes\r\n');
      isContent ||= line === 'DATA';
    }).on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  t.after(() => { listening.close(); });
  await once(listening, 'listening');
  return (listening.address() as net.AddressInfo).port;
}

test('a host by name is reached behind five dead addresses, and from then on there first', async (t) => {
  const port = await server(t);
  const real = new ClientTransport({ readBufferBytes: 8 * 1024 });
  const source = new MemorySource();
  const tried: string[] = [];
  const dispatcher = dispatcherFor(source, {}, undefined, undefined, undefined, undefined, undefined, undefined, undefined, {
    connect: (host, to, handlers, from) => {
      tried.push(host);
      return real.connect(host, to, handlers, from);
    },
    secure: (clear, terms, handlers) => real.secure(clear, terms, handlers),
    addresses: found(['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6', '127.0.0.1']),
  });
  t.after(() => dispatcher.stop(100));
  const queue = new MemoryQueue({ nextHop: { protocol: 'smtp', host: 'six.test', port } });
  for (const number of [1, 2]) {
    source.put(queue, number, 'Subject: x\r\n\r\nhello\r\n');
    dispatcher.onReady(queue);
    await until(() => source.ended.length === number, 'it is delivered, or was put off', 20_000);
    assert.equal(source.ended.at(-1)?.result.results[0]?.code, 250);
    assert.equal(tried.at(-1), '127.0.0.1');
    if (number === 1) tried.length = 0;
  }
  assert.deepEqual(tried, ['127.0.0.1']);
});

test('families take turns, as the system orders them', () => {
  assert.deepEqual(systemTurns(['::1', '::2', '::3', '192.0.2.1', '192.0.2.2'], ''), ['::1', '192.0.2.1', '::2', '192.0.2.2', '::3']);
  assert.deepEqual(systemTurns(['192.0.2.1', '::1', '192.0.2.2'], '192.0.2.2'), ['192.0.2.2', '192.0.2.1', '::1']);
  assert.deepEqual(systemTurns(['192.0.2.1'], '192.0.2.9'), ['192.0.2.1'], 'one that the name has no more');
});
