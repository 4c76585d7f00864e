/** Mail to a host that its route names, of which the system knows several addresses. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ClientTransport } from '../../../../src/platform/node/client-transport.js';
import { until } from '../../register/real-world.js';
import { MemoryQueue, MemorySource, dispatcherFor } from './memory-source.js';

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
    addresses: (_host, done) => { done(['127.0.0.1', '127.0.0.2'], ''); },
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
