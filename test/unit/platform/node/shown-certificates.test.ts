/** Certificates that would hold the loop never come to TLS, whoever shows them, in whatever pieces; others do. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import tls from 'node:tls';
import type { ConnectionOptions, TlsOptions } from 'node:tls';

import { ServerTls } from '../../../../src/platform/node/server-tls.js';
import { ShownCertificates } from '../../../../src/platform/node/shown-certificates.js';
import { TlsWire, WIRE_BUFFER_BYTES, connectOver } from '../../../../src/platform/node/tls-wire.js';
import { selfSigned } from '../../../dialog/self-signed.js';
import { certificateOf, explicitCurve, pemOf, rsaKeyOf, spkiOf } from './odd-certificates.js';

const files = selfSigned();
const ofRsa = selfSigned('mx.test', 60, 'rsa');
const needsTls = { timeout: 60_000, skip: files === undefined ? 'openssl is missing' : false };
const ODD_KEY = /^it shows a certificate whose key is not read/;
const TOO_MANY = /^it shows more, or longer, certificates than are read/;

const ODD = pemOf(certificateOf(explicitCurve()));
const PLAIN = pemOf(certificateOf(spkiOf(rsaKeyOf(8192))));

/** Each way in which certificates come: by version, by cipher, after a second hello of the client. */
const WAYS: Readonly<Record<string, TlsOptions & ConnectionOptions>> = {
  'TLS 1.2': { maxVersion: 'TLSv1.2' },
  'TLS 1.2, ChaCha20': { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-CHACHA20-POLY1305' },
  'TLS 1.3, AES of 128 bits': { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' },
  'TLS 1.3, AES of 256 bits': { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_256_GCM_SHA384' },
  'TLS 1.3, ChaCha20': { minVersion: 'TLSv1.3', ciphers: 'TLS_CHACHA20_POLY1305_SHA256' },
  'TLS 1.3, two hellos': { minVersion: 'TLSv1.3', ecdhCurve: 'P-521' },
};

function pair(of = files): { readonly cert: string; readonly key: string } {
  assert.ok(of !== undefined);
  return { cert: readFileSync(of.certFile, 'latin1'), key: readFileSync(of.keyFile, 'latin1') };
}

async function listening(t: TestContext, server: net.Server): Promise<number> {
  t.after(() => { server.close(); });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Its chain ends with `more`. */
function serverWith(t: TestContext, more: string, options: TlsOptions): Promise<number> {
  const { cert, key } = pair();
  const server = tls.createServer({ ...options, key, cert: cert + more }, (socket) => {
    socket.on('error', () => undefined);
    socket.end('taken');
  });
  return listening(t, server.on('tlsClientError', () => undefined));
}

/** Hands on what the server sends in pieces of so many octets. */
function inPieces(t: TestContext, port: number, pieceBytes: number): Promise<number> {
  return listening(t, net.createServer((client) => {
    const server = net.connect(port, '127.0.0.1');
    client.setNoDelay(true).pipe(server);
    server.on('data', (bytes) => {
      for (let at = 0; at < bytes.length; at += pieceBytes) client.write(bytes.subarray(at, at + pieceBytes));
    });
    server.on('end', () => { client.end(); });
    for (const each of [client, server]) each.on('error', () => undefined);
  }));
}

/** What the server says in TLS, or why there is none. */
async function heard(port: number): Promise<string> {
  const wire = new TlsWire(net.connect(port, '127.0.0.1'), Buffer.alloc(WIRE_BUFFER_BYTES));
  const socket = connectOver(wire, { rejectUnauthorized: false, servername: 'mx.test' });
  const text = await new Promise<string>((resolve) => {
    socket.once('data', (bytes) => { resolve(bytes.toString('latin1')); });
    socket.once('error', ({ message }) => { resolve(message); });
  });
  socket.destroy();
  return text;
}

describe('a client, in front of TLS', () => {
  for (const [way, options] of Object.entries(WAYS)) {
    test(`refuses what a server shows beside its own: ${way}`, needsTls, async (t) => {
      assert.equal(await heard(await serverWith(t, PLAIN.repeat(9), options)), 'taken', 'keys that are read');
      assert.match(await heard(await serverWith(t, PLAIN.repeat(10), options)), TOO_MANY);
      assert.match(await heard(await serverWith(t, ODD, options)), ODD_KEY);
      assert.match(await heard(await serverWith(t, PLAIN.repeat(8) + ODD, options)), ODD_KEY, 'over several records');
    });
  }

  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`takes a session that goes on, without any certificate: ${maxVersion}`, needsTls, async (t) => {
      const port = await serverWith(t, '', { maxVersion });
      const begun = async (session: Buffer | undefined): Promise<Buffer> => {
        const wire = new TlsWire(net.connect(port, '127.0.0.1'), Buffer.alloc(WIRE_BUFFER_BYTES));
        const socket = connectOver(wire, { rejectUnauthorized: false, servername: 'mx.test', session });
        const next = new Promise<Buffer>((resolve) => { socket.once('session', resolve); });
        const [bytes] = await once(socket, 'data') as [Buffer];
        assert.deepEqual([bytes.toString('latin1'), socket.isSessionReused()], ['taken', session !== undefined]);
        const given = session ?? await next;
        socket.destroy();
        return given;
      };
      await begun(await begun(undefined));
    });
  }

  test('takes it in any pieces', needsTls, async (t) => {
    for (const options of [WAYS['TLS 1.2'], WAYS['TLS 1.3, AES of 256 bits']]) {
      assert.equal(await heard(await inPieces(t, await serverWith(t, PLAIN, options ?? {}), 1)), 'taken');
      assert.match(await heard(await inPieces(t, await serverWith(t, PLAIN.repeat(8) + ODD, options ?? {}), 7)), ODD_KEY);
    }
  });
});

describe('a server that asks for a certificate, in front of TLS', () => {
  for (const [way, options] of Object.entries(WAYS)) {
    test(`refuses what a client shows beside its own: ${way}`, needsTls, async (t) => {
      assert.ok(files !== undefined && ofRsa !== undefined);
      const results: string[] = [];
      const onResult = new Map<number, () => void>();
      let onData: (() => void) | undefined;
      const { ciphers = '', ...others } = options;
      // The listener's own ciphers: a certificate of RSA for those that are named so.
      const server = new ServerTls({ ...files, clientCaFile: ofRsa.certFile }, {
        onHandshake: (result) => { results.push(result); onResult.get(results.length)?.(); },
        onRenewed: () => undefined, onProblem: () => undefined,
      });
      t.after(() => { server.close(); });
      const port = await listening(t, net.createServer((socket) => {
        server.begin(new TlsWire(socket, Buffer.alloc(WIRE_BUFFER_BYTES)), (secured) => {
          secured.on('error', () => undefined).once('data', () => { onData?.(); });
        }, () => undefined);
      }));
      const shows = async (more: string): Promise<string> => {
        const { cert, key } = pair(ofRsa);
        const count = results.length + 1;
        const told = new Promise<void>((resolve) => { onResult.set(count, resolve); });
        const heardOf = new Promise<string>((resolve) => { onData = () => { resolve('ok'); }; });
        const socket = tls.connect({
          ...others, ...(ciphers === '' ? {} : { ciphers }), port, host: '127.0.0.1', key, cert: cert + more, rejectUnauthorized: false,
        });
        const closed = new Promise<string>((resolve) => { socket.on('error', () => undefined).once('close', () => { resolve('closed'); }); });
        socket.write('after it');
        await told;
        const result = results[count - 1] ?? '';
        const then = result === 'ok' ? await Promise.race([heardOf, closed]) : result;
        socket.destroy();
        return then;
      };
      assert.equal(await shows(PLAIN.repeat(9)), 'ok');
      assert.equal(await shows(ODD), 'certificate');
      assert.equal(await shows(PLAIN.repeat(10)), 'certificate');
    });
  }
});

describe('what is no handshake as it should be', () => {
  const record = (type: number, content: Uint8Array): Buffer => Buffer.concat([Buffer.from([type, 3, 3, content.length >> 8, content.length & 0xff]), content]);
  const taken = (shown: ShownCertificates, bytes: Uint8Array): { given: Buffer; why: string } => {
    const given: Uint8Array[] = [];
    const why = shown.take(bytes, (each) => { given.push(Buffer.from(each)); });
    return { given: Buffer.concat(given), why };
  };

  test('is refused where it could hide a certificate', () => {
    const hidden: readonly Uint8Array[] = [
      // A hello of SSL 2, which is measured in another way.
      Buffer.concat([Buffer.from('802e0100', 'hex'), Buffer.alloc(44)]),
      record(23, Buffer.alloc(40)), record(22, Buffer.from('19000001', 'hex')), record(22, Buffer.from('0b020000', 'hex')),
      // An entry that ends behind the list.
      record(22, Buffer.from('0b00000700000400000901', 'hex')),
    ];
    for (const bytes of hidden) {
      const { given, why } = taken(new ShownCertificates('client'), bytes);
      assert.notEqual(why, '', Buffer.from(bytes).toString('hex'));
      assert.equal(given.length, 0);
    }
  });

  test('goes to TLS where only that can tell what it is', () => {
    const alert = record(21, Buffer.from([2, 40]));
    // The last begins a record that is longer than any.
    for (const bytes of [alert, record(24, Buffer.alloc(3)), Buffer.from('220 mx.test ready\r\n'), Buffer.from('16030348010100', 'hex')]) {
      assert.deepEqual(taken(new ShownCertificates('server'), bytes), { given: bytes, why: '' });
    }
  });
});
