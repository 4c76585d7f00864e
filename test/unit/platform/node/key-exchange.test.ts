/** No TLS of a gateway or store reckons with primes that the other side has chosen, whichever side it is. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import tls from 'node:tls';
import type { ConnectionOptions, TlsOptions } from 'node:tls';

import { ClientTransport } from '../../../../src/platform/node/client-transport.js';
import { HttpsClient } from '../../../../src/platform/node/https-client.js';
import { readServerTls } from '../../../../src/platform/node/server-tls.js';
import { readTlsFiles } from '../../../../src/platform/node/tls-transport.js';
import { selfSigned } from '../../../dialog/self-signed.js';

const files = selfSigned('mx.test', 60, 'rsa');
const needsTls = { timeout: 30_000, skip: files === undefined ? 'openssl is missing' : false };
const PRIMES = {
  'DHE in TLS 1.2': { maxVersion: 'TLSv1.2', ciphers: 'DHE-RSA-AES128-GCM-SHA256', dhparam: 'auto' },
  'FFDHE in TLS 1.3': { minVersion: 'TLSv1.3', ecdhCurve: 'ffdhe2048' },
} as const;
const CURVE = { minVersion: 'TLSv1.3', ecdhCurve: 'P-521' } as const;

function pair(): { readonly cert: string; readonly key: string } {
  assert.ok(files !== undefined);
  return { cert: readFileSync(files.certFile, 'latin1'), key: readFileSync(files.keyFile, 'latin1') };
}

async function serverOf(t: TestContext, options: TlsOptions): Promise<number> {
  const server = tls.createServer({ ...pair(), ...options }, (socket) => {
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
  }).on('tlsClientError', () => undefined);
  t.after(() => { server.close(); });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** '' once there is TLS; else why not. */
type Dial = (t: TestContext, port: number) => Promise<string>;

const CLIENTS: Readonly<Record<string, Dial>> = {
  'a client of mail': (t, port) => new Promise((resolve) => {
    const transport = new ClientTransport({ readBufferBytes: 4096 });
    const none = { onData: () => undefined, onDrain: () => undefined, onOpen: () => undefined };
    const clear = transport.connect('127.0.0.1', port, { ...none, onClose: resolve, onOpen: () => {
      const terms = { serverName: 'mx.test', mustVerify: false, caFile: undefined };
      const secured = transport.secure(clear, terms, { ...none, onOpen: () => { resolve(''); }, onClose: resolve });
      t.after(() => { secured.destroy(); });
    } });
  }),
  'a client of policies': (t, port) => new Promise((resolve) => {
    const https = new HttpsClient({ port, ca: pair().cert, tryMs: 10_000 });
    t.after(() => { https.close(); });
    const question = { host: 'mx.test', path: '/', addresses: ['127.0.0.1'], answerBytesMax: 1024, withinMs: 10_000 };
    https.ask(question, (answer) => { resolve(answer.kind === 'failed' ? answer.why : ''); });
  }),
  'a link': (t, port) => dialed(t, { ...readTlsFiles(linkFiles()), port, host: '127.0.0.1', servername: 'mx.test' }),
};

function linkFiles(): { readonly caFile: string; readonly certFile: string; readonly keyFile: string } {
  assert.ok(files !== undefined);
  return { ...files, caFile: files.certFile };
}

function dialed(t: TestContext, options: ConnectionOptions): Promise<string> {
  return new Promise((resolve) => {
    const socket = tls.connect(options, () => { resolve(''); });
    socket.once('error', ({ message }) => { resolve(message); });
    t.after(() => { socket.destroy(); });
  });
}

const SERVERS: Readonly<Record<string, () => TlsOptions>> = {
  'a listener, or an admin port': () => {
    assert.ok(files !== undefined);
    return readServerTls(files);
  },
  'a store': () => readTlsFiles(linkFiles()),
};

for (const [name, dial] of Object.entries(CLIENTS)) {
  describe(name, () => {
    for (const [kind, options] of Object.entries(PRIMES)) {
      test(`takes no ${kind}`, needsTls, async (t) => {
        assert.match(await dial(t, await serverOf(t, options)), /handshake|no shared cipher|group/i);
      });
    }
    test('takes a curve', needsTls, async (t) => {
      assert.equal(await dial(t, await serverOf(t, CURVE)), '');
    });
  });
}

for (const [name, own] of Object.entries(SERVERS)) {
  describe(name, () => {
    for (const [kind, options] of Object.entries(PRIMES)) {
      test(`takes no ${kind}`, needsTls, async (t) => {
        // Primes for whoever would take some.
        const port = await serverOf(t, { ...own(), dhparam: 'auto' });
        assert.match(await dialed(t, { ...options, port, host: '127.0.0.1', rejectUnauthorized: false }), /handshake/i);
      });
    }
    test('takes a curve', needsTls, async (t) => {
      const port = await serverOf(t, own());
      assert.equal(await dialed(t, { ...CURVE, port, host: '127.0.0.1', rejectUnauthorized: false }), '');
    });
  });
}
