/** The CAs of a route, in a file that an operator replaces while mail is delivered. */
import assert from 'node:assert/strict';
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
function secured(transport: ClientTransport, port: number, caFile: string): Promise<string> {
  return new Promise((resolve) => {
    const quiet = { onData: () => undefined, onDrain: () => undefined };
    const inTls = (clear: Connection): void => {
      const handlers: ConnectionHandlers = { ...quiet, onOpen: () => { resolve('verified'); connection.destroy(); }, onClose: (why) => { resolve(why); } };
      const connection: Connection = transport.secure(clear, { serverName: 'mx.test', mustVerify: true, caFile }, handlers);
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
