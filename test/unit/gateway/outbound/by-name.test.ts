/** Mail to a host that its route names, of which the system knows several addresses. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { systemTurns } from '../../../../src/gateway/outbound/pure/address-turns.js';
import { DEFAULT_TIMEOUTS } from '../../../../src/gateway/outbound/pure/session-states.js';
import { ClientTransport } from '../../../../src/platform/node/client-transport.js';
import type { MailTransport } from '../../../../src/platform/transport.js';
import { until } from '../../register/real-world.js';
import { MemoryQueue, MemorySource, dispatcherFor } from './memory-source.js';

/** What the system says of each name. */
function found(addresses: readonly string[]): MailTransport['addresses'] {
  return (_host, done) => {
    done({ addresses, why: '', isFailed: false });
    return () => true;
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

/** How a server greets, and answers MAIL. */
interface Manner {
  greeting: string;
  mail: string;
}

const GOOD: Manner = { greeting: '220 six.test', mail: '250 yes' };

/** Takes one message a connection, and closes it. */
async function listen(t: TestContext, manner: Manner, host: string, port: number): Promise<net.Server> {
  const listening = net.createServer((socket) => {
    t.after(() => { socket.destroy(); });
    socket.on('error', () => undefined);
    const isLast = (reply: string): boolean => reply.startsWith('421');
    const say = (reply: string): void => { socket[isLast(reply) ? 'end' : 'write'](`${reply}\r\n`); };
    say(manner.greeting);
    let isContent = false;
    createInterface({ input: socket }).on('line', (line) => {
      if (isContent && line === '.') socket.end('250 taken\r\n');
      else if (!isContent) say(line === 'DATA' ? '354 go on' : line.startsWith('MAIL') ? manner.mail : '250 yes');
      isContent ||= line === 'DATA';
    }).on('error', () => undefined);
  }).listen(port, host);
  t.after(() => { listening.close(); });
  await once(listening, 'listening');
  return listening;
}

function portOf(listening: net.Server): number {
  return (listening.address() as net.AddressInfo).port;
}

async function server(t: TestContext, manner: Manner = GOOD, host = '127.0.0.1', port = 0): Promise<number> {
  return portOf(await listen(t, manner, host, port));
}

test('a host by name is reached behind five dead addresses, and from then on those are tried last', async (t) => {
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

interface NamedHost {
  /** Has one message delivered, or put off, and tells what it got and which addresses were tried for it. */
  readonly send: () => Promise<readonly [number | undefined, ...string[]]>;
}

/** Mail to a name with addresses that `addresses` says anew each time. */
function namedHost(t: TestContext, port: number, addresses: () => readonly string[]): NamedHost {
  const real = new ClientTransport({ readBufferBytes: 8 * 1024 });
  const source = new MemorySource();
  const tried: string[] = [];
  const dispatcher = dispatcherFor(source, { backoffFirstMs: 10, backoffMaxMs: 20 }, undefined, undefined, undefined, undefined, undefined, undefined, undefined, {
    connect: (host, to, handlers, from) => {
      tried.push(host);
      return real.connect(host, to, handlers, from);
    },
    secure: (clear, terms, handlers) => real.secure(clear, terms, handlers),
    addresses: (host, done) => found(addresses())(host, done),
  });
  t.after(() => dispatcher.stop(100));
  const queue = new MemoryQueue({ nextHop: { protocol: 'smtp', host: 'named.test', port } });
  let number = 0;
  return {
    send: async () => {
      source.put(queue, ++number, 'Subject: x\r\n\r\nhello\r\n');
      dispatcher.onReady(queue);
      await until(() => source.ended.length === number, 'it is delivered, or was put off', 20_000);
      return [source.ended.at(-1)?.result.results[0]?.code, ...tried.splice(0)];
    },
  };
}

for (const [what, bad] of [
  ['greets with 421', { greeting: '421 not here', mail: '250 yes' }], ['turns the first mail away', { greeting: '220 here', mail: '421 not now' }],
] as const) {
  test(`an address that took mail, and then ${what}, is tried behind one that is well`, async (t) => {
    const second: Manner = { ...GOOD };
    const port = await server(t, second, '127.0.0.3');
    const { send } = namedHost(t, port, () => ['127.0.0.2', '127.0.0.3']);
    assert.deepEqual(await send(), [250, '127.0.0.2', '127.0.0.3']);
    await server(t, GOOD, '127.0.0.2', port);
    Object.assign(second, bad);
    const tried: string[] = [];
    for (let times = 0, code: number | undefined = 0; code !== 250 && times < 5; times++) {
      let more: string[];
      [code, ...more] = await send();
      tried.push(...more);
    }
    // Each has failed once now: in the order of the system again.
    assert.deepEqual(tried, ['127.0.0.3', '127.0.0.2']);
    assert.deepEqual(await send(), [250, '127.0.0.2']);
  });
}

test('an address that answers again is tried where the system puts it', async (t) => {
  const second = await listen(t, GOOD, '127.0.0.3', 0);
  const port = portOf(second);
  let order = ['127.0.0.2', '127.0.0.3'];
  const { send } = namedHost(t, port, () => order);
  assert.deepEqual(await send(), [250, '127.0.0.2', '127.0.0.3']);
  second.close();
  await server(t, GOOD, '127.0.0.2', port);
  assert.deepEqual(await send(), [250, '127.0.0.3', '127.0.0.2']);
  order = order.toReversed();
  assert.deepEqual(await send(), [250, '127.0.0.2']);
});

test('connections follow the order that the system gives anew each time, all the same after all have failed', async (t) => {
  const all = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
  const manner: Manner = { ...GOOD };
  const port = await server(t, manner, '127.0.0.2');
  for (const host of all.slice(1)) await server(t, manner, host, port);
  let first = 0;
  const { send } = namedHost(t, port, () => [...all.slice(first), ...all.slice(0, first)]);
  const round = async (): Promise<unknown> => {
    const got: unknown[] = [];
    for (first = 0; first < all.length; first++) got.push(await send());
    return got;
  };
  const spread = all.map((host) => [250, host]);
  assert.deepEqual(await round(), spread);
  manner.greeting = '421 nobody here';
  first = 0;
  for (let times = 0; times < 6; times++) await send();
  manner.greeting = '220 here';
  for (let times = 0; times < 3 && (await send())[0] !== 250; times++);
  assert.deepEqual((await round() as unknown[]).length, spread.length);
  assert.deepEqual(await round(), spread);
});

test('families take turns, as the system orders them, and bad addresses come last', () => {
  assert.deepEqual(systemTurns(['::1', '::2', '::3', '192.0.2.1', '192.0.2.2'], []), ['::1', '192.0.2.1', '::2', '192.0.2.2', '::3']);
  assert.deepEqual(systemTurns(['192.0.2.1', '::1', '192.0.2.2'], ['192.0.2.1', '192.0.2.9']), ['::1', '192.0.2.2', '192.0.2.1']);
  assert.deepEqual(systemTurns(['192.0.2.1', '::1'], ['192.0.2.1', '::1']), ['192.0.2.1', '::1'], 'all are');
});

test('a host whose name is not even looked up in time is not called down', async (t) => {
  const real = new ClientTransport({ readBufferBytes: 8 * 1024 });
  const source = new MemorySource();
  const left: string[] = [];
  const wait = { forMs: 7_000, doing: 'waiting for the lookup of its name' };
  let asked = 0;
  const dispatcher = dispatcherFor(source, { timeouts: DEFAULT_TIMEOUTS.with(0, 300) }, undefined, undefined, undefined, undefined, undefined, undefined, undefined, {
    connect: () => assert.fail('nothing is connected'),
    secure: (clear, terms, handlers) => real.secure(clear, terms, handlers),
    waitOf: () => wait,
    addresses: (host) => {
      asked++;
      return () => {
        left.push(host);
        return false;
      };
    },
  });
  t.after(() => dispatcher.stop(100));
  const queue = new MemoryQueue({ nextHop: { protocol: 'smtp', host: 'well.test', port: 25 } });
  source.put(queue, 1, 'Subject: x\r\n\r\nhello\r\n');
  const shown = (): unknown => dispatcher.nextHopOf(queue)?.connecting;
  dispatcher.onReady(queue);
  await until(() => left.length === 1 && dispatcher.nextHopOf(queue)?.connections === 0, 'it is put off', 20_000);
  assert.deepEqual(shown(), { relay: 'well.test:25', ...wait });
  await until(() => asked === 2, 'it is looked for again', 20_000);
  assert.deepEqual(shown(), { relay: 'well.test:25', ...wait });
  assert.deepEqual([left, source.ended.length], [['well.test'], 0]);
  assert.deepEqual(dispatcher.nextHops().map(({ downSinceWallMs }) => downSinceWallMs), [undefined]);
});

test('a host whose name the system looks up for too long is told as that, and not as one that was silent', async (t) => {
  const real = new ClientTransport({ readBufferBytes: 8 * 1024 });
  const source = new MemorySource();
  const dispatcher = dispatcherFor(source, { timeouts: DEFAULT_TIMEOUTS.with(0, 600) }, undefined, undefined, undefined, undefined, undefined, undefined, undefined, {
    connect: () => assert.fail('nothing is connected'),
    secure: (clear, terms, handlers) => real.secure(clear, terms, handlers),
    addresses: () => () => true,
  });
  t.after(() => dispatcher.stop(100));
  const queue = new MemoryQueue({ nextHop: { protocol: 'smtp', host: 'silent.test', port: 25 } });
  source.put(queue, 1, 'Subject: x\r\n\r\nhello\r\n');
  dispatcher.onReady(queue);
  await until(() => source.ended.length === 1, 'it is put off', 20_000);
  const { enhanced, text } = source.ended[0]?.result.results[0] ?? {};
  assert.deepEqual([enhanced, text], ['4.4.3', 'no connection to silent.test:25: its name was not looked up within 1 s']);
  assert.deepEqual(dispatcher.nextHops().map(({ lastError, lastCode }) => [lastCode, lastError]), [[enhanced, text]]);
});

for (const [isFailed, why, code] of [[true, 'no answer on its address: EAI_AGAIN', '4.4.3'], [false, 'it has no address', '4.4.1']] as const) {
  test(`a host by name with "${why}" is told by the status that explain gives, ${code}`, async (t) => {
    const real = new ClientTransport({ readBufferBytes: 8 * 1024 });
    const source = new MemorySource();
    const dispatcher = dispatcherFor(source, {}, undefined, undefined, undefined, undefined, undefined, undefined, undefined, {
      connect: () => assert.fail('nothing is connected'),
      secure: (clear, terms, handlers) => real.secure(clear, terms, handlers),
      addresses: (_host, done) => {
        done({ addresses: [], why, isFailed });
        return () => true;
      },
    });
    t.after(() => dispatcher.stop(100));
    const queue = new MemoryQueue({ nextHop: { protocol: 'smtp', host: 'late.test', port: 25 } });
    source.put(queue, 1, 'Subject: x\r\n\r\nhello\r\n');
    dispatcher.onReady(queue);
    await until(() => source.ended.length === 1, 'it is put off', 20_000);
    const { enhanced, text } = source.ended[0]?.result.results[0] ?? {};
    assert.deepEqual([enhanced, text], [code, `no connection to late.test:25: ${why}`]);
  });
}

test('an address that was not reached for want of its source is tried where the system puts it', async (t) => {
  const port = await server(t, GOOD, '127.0.0.3');
  await server(t, GOOD, '127.0.0.2', port);
  const real = new ClientTransport({ readBufferBytes: 8 * 1024 });
  const source = new MemorySource();
  const tried: string[] = [];
  let isGone = true;
  const sources = [{ address: '127.0.0.9', name: 'nine.test' }];
  const dispatcher = dispatcherFor(source, { sources, backoffFirstMs: 10, backoffMaxMs: 20 }, undefined, undefined, undefined, undefined, undefined, undefined, undefined, {
    connect: (host, to, handlers, from) => {
      tried.push(host);
      return real.connect(host, to, handlers, isGone && host === '127.0.0.2' ? '192.0.2.77' : from);
    },
    secure: (clear, terms, handlers) => real.secure(clear, terms, handlers),
    addresses: found(['127.0.0.2', '127.0.0.3']),
  });
  t.after(() => dispatcher.stop(100));
  const queue = new MemoryQueue({ nextHop: { protocol: 'smtp', host: 'two.test', port } });
  for (const number of [1, 2]) {
    source.put(queue, number, 'Subject: x\r\n\r\nhello\r\n');
    dispatcher.onReady(queue);
    await until(() => source.ended.length === number, 'it is delivered, or was put off', 20_000);
    assert.equal(source.ended.at(-1)?.result.results[0]?.code, 250);
    isGone = false;
  }
  assert.deepEqual(tried, ['127.0.0.2', '127.0.0.3', '127.0.0.2']);
});
