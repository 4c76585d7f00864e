/** What TLS of a listener tells of its handshakes and of its files: each handshake once, each change once. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import tls from 'node:tls';

import { ServerTls, readServerTls } from '../../../../src/platform/node/server-tls.js';
import { TlsWire, WIRE_BUFFER_BYTES } from '../../../../src/platform/node/tls-wire.js';
import type { HandshakeResult } from '../../../../src/platform/transport.js';
import { selfSigned } from '../../../dialog/self-signed.js';

const files = selfSigned();
const needsTls = { timeout: 30_000, skip: files === undefined ? 'openssl is missing' : false };

/** A listener with TLS from the first byte. */
class TlsKit {
  /** Of handshakes, then of files. */
  readonly results: HandshakeResult[] = [];
  readonly told: string[] = [];
  readonly accepted: TlsWire[] = [];
  readonly tls: ServerTls;
  readonly #server = net.createServer((socket) => {
    const wire = new TlsWire(socket, Buffer.alloc(WIRE_BUFFER_BYTES));
    this.accepted.push(wire);
    this.tls.begin(wire, () => undefined, () => undefined);
  });

  constructor(of = files) {
    assert.ok(of !== undefined);
    this.tls = new ServerTls(of, {
      onHandshake: (result) => { this.results.push(result); },
      onRenewed: ({ subject, expires }) => { this.told.push(`${subject} ${expires.slice(0, 2)}`); },
      onProblem: (why) => { this.told.push(why); },
    });
  }

  async run(story: (port: number) => Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => { this.#server.listen(0, '127.0.0.1', resolve); });
    try {
      await story((this.#server.address() as AddressInfo).port);
    } finally {
      this.tls.close();
      for (const socket of this.accepted) socket.destroy();
      this.#server.close();
    }
  }

  async hears(count: number): Promise<void> {
    while (this.results.length < count) await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function secured(port: number, options: tls.ConnectionOptions): void {
  const socket = tls.connect({ port, host: '127.0.0.1', ...options });
  socket.on('error', () => undefined);
}

function said(port: number, text: string): net.Socket {
  const socket = net.connect(port, '127.0.0.1', () => { socket.write(text); });
  socket.on('error', () => undefined);
  return socket;
}

test('each handshake ends in one word, whoever ends it', needsTls, async () => {
  const kit = new TlsKit();
  await kit.run(async (port) => {
    const attempts: readonly (readonly [HandshakeResult, () => void])[] = [
      ['ok', () => { secured(port, { rejectUnauthorized: false }); }],
      ['certificate', () => { execFile('openssl', ['s_client', '-connect', `127.0.0.1:${String(port)}`, '-verify_return_error'], () => undefined); }],
      ['version', () => { secured(port, { rejectUnauthorized: false, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' }); }],
      ['cipher', () => { secured(port, { rejectUnauthorized: false, maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }); }],
      ['not-tls', () => { said(port, 'EHLO client.example\r\n'); }],
      ['not-tls', () => { said(port, 'GET / HTTP/1.1\r\n\r\n'); }],
      ['closed', () => { const socket = said(port, ''); socket.once('connect', () => { socket.end(); }); }],
      ['timeout', () => { const socket = said(port, ''); socket.once('connect', () => { setTimeout(() => { const last = kit.accepted.at(-1); if (last !== undefined) { kit.tls.giveUp(last); last.destroy(); } }, 50); }); }],
    ];
    for (const [index, [result, attempt]] of attempts.entries()) {
      attempt();
      await kit.hears(index + 1);
      assert.equal(kit.results[index], result, `attempt ${String(index)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(kit.results.length, attempts.length, 'none is told twice');
  });
});

test('files are looked at with no client there; that they are in force, or can\'t be, is told once', needsTls, async () => {
  const [own, other] = [selfSigned('one.test'), selfSigned('two.test')];
  assert.ok(own !== undefined && other !== undefined);
  const kit = new TlsKit(own);
  await kit.run(async () => {
    const tells = async (count: number): Promise<void> => {
      while (kit.told.length < count) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    writeFileSync(own.certFile, 'none');
    await tells(1);
    assert.match(kit.told[0] ?? '', /cert' is no certificate in PEM: /);
    copyFileSync(other.keyFile, own.keyFile);
    await tells(2);
    copyFileSync(other.certFile, own.certFile);
    await tells(3);
    assert.equal(kit.told[2], 'CN=two.test 20');
    await new Promise((resolve) => setTimeout(resolve, 2200));
    assert.equal(kit.told.length, 3);
  });
});

test('a key of less than 112 bits is refused, also by a Node whose own level would take it', needsTls, () => {
  const weak = selfSigned('mx.test', 60, 'weak');
  assert.ok(weak !== undefined);
  assert.throws(() => readServerTls(weak), /key is too short/);
});

test('a key of another type than its certificate never replaces a good pair', needsTls, async () => {
  const [own, rsa] = [selfSigned('one.test'), selfSigned('two.test', 60, 'rsa')];
  assert.ok(own !== undefined && rsa !== undefined);
  const kit = new TlsKit(own);
  await kit.run(async (port) => {
    copyFileSync(rsa.certFile, own.certFile);
    while (kit.told.length < 1) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.match(kit.told[0] ?? '', /the key belongs to another certificate$/);
    secured(port, { rejectUnauthorized: false });
    await kit.hears(1);
    assert.deepEqual(kit.results, ['ok'], 'by the pair that was there before');
  });
});
