/** Whom a connection in TLS takes for its server: the CAs of a route, in a file that an operator replaces while mail is delivered; weak keys; a second handshake. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import tls from 'node:tls';

import { ClientTransport } from '../../../../src/platform/node/client-transport.js';
import type { Connection, ConnectionHandlers } from '../../../../src/platform/transport.js';
import { selfSigned } from '../../../dialog/self-signed.js';

const [own, others] = [selfSigned(), selfSigned()];
const needsTls = { timeout: 30_000, skip: own === undefined || others === undefined ? 'openssl is missing' : false };

/** What comes of one connection in TLS whose server has to be known by the file: 'verified', or why it closed. */
function secured(transport: ClientTransport, port: number, caFile: string, mustVerify = true): Promise<string> {
  return new Promise((resolve) => {
    const quiet = { onData: () => undefined, onDrain: () => undefined };
    const inTls = (clear: Connection): void => {
      const handlers: ConnectionHandlers = { ...quiet, onOpen: () => { resolve('verified'); connection.destroy(); }, onClose: (why) => { resolve(why); } };
      const connection: Connection = transport.secure(clear, { serverName: 'mx.test', mustVerify, caFile }, handlers);
    };
    const clear: Connection = transport.connect('127.0.0.1', port, { ...quiet, onOpen: () => { inTls(clear); }, onClose: (why) => { resolve(why); } });
  });
}

test('a file of CAs that is half written leaves the old CAs in force, and is told of once', needsTls, async () => {
  assert.ok(own !== undefined && others !== undefined);
  const server = tls.createServer({ key: readFileSync(own.keyFile), cert: readFileSync(own.certFile) }, (socket) => { socket.on('error', () => undefined); });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  try {
    const { port } = server.address() as AddressInfo;
    const caFile = `${own.certFile}.ca`;
    const told: unknown[] = [];
    const transport = new ClientTransport({ readBufferBytes: 16_384, onCaFile: (...all) => { told.push(all); } });
    const came = (): Promise<string> => secured(transport, port, caFile);
    copyFileSync(own.certFile, caFile);
    assert.equal(await came(), 'verified');
    writeFileSync(caFile, readFileSync(own.certFile, 'utf8').slice(0, 20));
    assert.deepEqual([await came(), await came()], ['verified', 'verified']);
    assert.deepEqual(told.splice(0), [[caFile, `'${caFile}' is no certificate in PEM: there is no -----BEGIN … line of one in it`, true]]);
    copyFileSync(others.certFile, caFile);
    assert.match(await came(), /^TLS: the certificate is not taken|self-signed|SELF_SIGNED/);
    copyFileSync(own.certFile, caFile);
    assert.equal(await came(), 'verified');
    assert.deepEqual(told, [[caFile, '', false], [caFile, '', false]]);
  } finally {
    server.close();
  }
});

async function withServer(options: tls.TlsOptions, onSocket: (socket: tls.TLSSocket) => void, use: (port: number) => Promise<void>): Promise<void> {
  const sockets: tls.TLSSocket[] = [];
  const server = tls.createServer(options, (socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  try {
    await use((server.address() as AddressInfo).port);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

test('a server with a key that is soon broken is not known by it, though whoever is trusted has signed it', needsTls, async () => {
  assert.ok(own !== undefined);
  const [certFile, keyFile] = [`${own.certFile}.weak`, `${own.keyFile}.weak`];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:1024', '-nodes', '-days', '30', '-subj', '/CN=mx.test', '-addext', 'subjectAltName=DNS:mx.test', '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' });
  const options = { key: readFileSync(keyFile), cert: readFileSync(certFile), ciphers: 'DEFAULT@SECLEVEL=0' };
  await withServer(options, () => undefined, async (port) => {
    const transport = new ClientTransport({ readBufferBytes: 16_384 });
    assert.notEqual(await secured(transport, port, certFile), 'verified');
    assert.equal(await secured(transport, port, certFile, false), 'verified', 'it opens where nobody is to be known');
  });
});

test('a server can not show another chain later, by a second handshake', needsTls, async () => {
  assert.ok(own !== undefined);
  let came: (why: string) => void = () => undefined;
  const again = new Promise<string>((resolve) => { came = resolve; });
  const onSocket = (socket: tls.TLSSocket): void => {
    socket.once('error', (error: NodeJS.ErrnoException) => { came(error.code ?? ''); });
    socket.once('data', () => { socket.renegotiate({ rejectUnauthorized: false }, () => { came('a second handshake'); }); });
  };
  const options: tls.TlsOptions = { key: readFileSync(own.keyFile), cert: readFileSync(own.certFile), maxVersion: 'TLSv1.2' };
  await withServer(options, onSocket, async (port) => {
    const transport = new ClientTransport({ readBufferBytes: 16_384 });
    const quiet = { onData: () => undefined, onDrain: () => undefined, onClose: () => undefined };
    const clear: Connection = transport.connect('127.0.0.1', port, { ...quiet, onOpen: () => {
      const connection: Connection = transport.secure(clear, { serverName: 'mx.test', mustVerify: false, caFile: undefined }, { ...quiet, onOpen: () => { connection.write([Buffer.from('x')]); } });
    } });
    assert.equal(await again, 'ERR_SSL_NO_RENEGOTIATION');
  });
});

for (const resumes of [false, true]) {
  test(`a session is ${resumes ? 'resumed by a transport that is told to' : 'never resumed'}`, needsTls, async () => {
    assert.ok(own !== undefined);
    const [reused, { certFile }] = [[] as boolean[], own];
    const options = { key: readFileSync(own.keyFile), cert: readFileSync(certFile) };
    await withServer(options, (socket) => { reused.push(socket.isSessionReused()); socket.write('x'); }, async (port) => {
      const transport = new ClientTransport({ readBufferBytes: 16_384, resumes });
      // What a server sends comes behind its ticket.
      for (let times = 0; times < 2; times++) await heard(transport, port, certFile);
    });
    assert.deepEqual(reused, [false, resumes]);
  });
}

/** Resolves when the server has said something in TLS. */
function heard(transport: ClientTransport, port: number, caFile: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const handlers = { onOpen: () => undefined, onDrain: () => undefined, onClose: (why: string) => { reject(new Error(why)); } };
    const clear: Connection = transport.connect('127.0.0.1', port, { ...handlers, onData: () => undefined, onOpen: () => {
      const connection: Connection = transport.secure(clear, { serverName: 'mx.test', mustVerify: true, caFile }, { ...handlers, onData: () => { resolve(); connection.destroy(); } });
    } });
  });
}

test('a server whose data costs much is read for a part of a turn, and to its end', needsTls, async (t) => {
  assert.ok(own !== undefined);
  // What comes before makes the window of the connection large: then much waits in the kernel.
  const [BEFORE, COSTLY, OCTETS] = [8_000_000, 60 * 16_384, 16_000_000];
  const server = tls.createServer({ key: readFileSync(own.keyFile), cert: readFileSync(own.certFile) }, (socket) => {
    socket.on('error', () => undefined);
    socket.write(Buffer.alloc(OCTETS));
  });
  t.after(() => { server.close(); });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const transport = new ClientTransport({ readBufferBytes: 16_384 });
  let [got, inTurn, most] = [0, 0, 0];
  const quiet = { onOpen: () => undefined, onDrain: () => undefined, onClose: () => undefined };
  const onData = (bytes: Uint8Array): void => {
    got += bytes.length;
    if (got < BEFORE || got > BEFORE + COSTLY) return;
    if (inTurn++ === 0) setImmediate(() => { inTurn = 0; });
    most = Math.max(most, inTurn);
    const endMs = performance.now() + 12;
    while (performance.now() < endMs);
  };
  const secure = (clear: Connection): Connection =>
    transport.secure(clear, { serverName: 'mx.test', mustVerify: false, caFile: undefined }, { ...quiet, onData });
  const connection = await new Promise<Connection>((resolve) => {
    const clear: Connection = transport.connect('127.0.0.1', (server.address() as AddressInfo).port, { ...quiet, onData, onOpen: () => { resolve(secure(clear)); } });
  });
  while (got < OCTETS) await new Promise((resolve) => { setImmediate(resolve); });
  // Of what was read from the socket all comes: 64 KiB at a time.
  assert.ok(most <= 10, `${String(most)} records in a turn`);
  connection.destroy();
});
