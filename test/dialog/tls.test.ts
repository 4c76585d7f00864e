/**
 * TLS where it begins before the greeting, behind a PROXY header, with certificates of clients, and with certificates
 * that change under way.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { Duplex } from 'node:stream';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { connect } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { readServerTls } from '../../src/platform/node/server-tls.js';
import { SmtpTalk } from '../process/smtp-talk.js';
import { startHarness } from './harness.js';
import { selfSigned } from './self-signed.js';

const tls = selfSigned();
const needsTls = { timeout: 10_000, skip: tls === undefined ? 'openssl is missing' : false };

/** A client within TLS. */
class SecureClient {
  readonly socket: TLSSocket;
  readonly #talk: SmtpTalk;

  constructor(options: ConnectionOptions) {
    this.socket = connect({ host: '127.0.0.1', rejectUnauthorized: false, ...options });
    this.#talk = new SmtpTalk(this.socket);
  }

  /** The last line of the next reply. */
  async reply(): Promise<string> {
    return (await this.#talk.reply()).trimEnd().split('\r\n').at(-1) || 'closed';
  }

  command(line: string): Promise<string> {
    this.#talk.send(`${line}\r\n`);
    return this.reply();
  }
}

describe('TLS before the greeting', () => {
  test('is the whole session: greeting within, STARTTLS neither offered nor known', needsTls, async () => {
    const { inbound, reception } = await startHarness({ tls, isTlsFirst: true });
    const client = new SecureClient({ port: inbound.port });
    assert.match(await client.reply(), /^220 /);
    client.socket.write('EHLO client.example\r\n');
    assert.match(await client.reply(), /^250 SIZE /);
    assert.match(await client.command('STARTTLS'), /^503 /);
    for (const [line, code] of [['MAIL FROM:<a@example.org>', '250'], ['RCPT TO:<b@example.net>', '250'], ['DATA', '354'], ['x\r\n.', '250'], ['QUIT', '221']] as const) {
      assert.equal((await client.command(line)).slice(0, 3), code, line);
    }
    assert.ok(reception.kept[0]?.content.toString('latin1').includes('with ESMTPS id ') === true);
    assert.equal(reception.kept[0].submission.client, '127.0.0.1');
    await inbound.close(1000);
  });

  test('is told by its cipher suite in the trace of each message, behind whom it is for', needsTls, async () => {
    const { inbound, reception } = await startHarness({ tls, isTlsFirst: true });
    for (const [version, suite] of [['TLSv1.3', 'TLS_AES_128_GCM_SHA256'], ['TLSv1.2', 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256']] as const) {
      const ciphers = 'TLS_AES_128_GCM_SHA256:ECDHE-ECDSA-AES128-GCM-SHA256';
      const client = new SecureClient({ port: inbound.port, minVersion: version, maxVersion: version, ciphers });
      assert.match(await client.reply(), /^220 /);
      const recipients = ['RCPT TO:<b@example.net>', 'RCPT TO:<c@example.net>'];
      for (const line of ['EHLO client.example', ...[1, 2].flatMap((count) => ['MAIL FROM:<a@example.org>', ...recipients.slice(0, count), 'DATA', 'x\r\n.'])]) {
        assert.match(await client.command(line), /^[23]5/, line);
      }
      client.socket.destroy();
      const [alone, both] = reception.kept.splice(0).map(({ content }) => content.toString('latin1'));
      assert.match(alone ?? '', new RegExp(` id \\w+\r\n\tfor <b@example\\.net>\r\n\ttls ${suite}; \\w{3}, \\d\\d .*\r\nx\r\n$`));
      assert.match(both ?? '', new RegExp(` id \\w+\r\n\ttls ${suite}; \\w{3}, \\d\\d .*\r\nx\r\n$`));
    }
    await inbound.close(1000);
  });

  test('lets mail ask for TLS all the way, and RCPT hears of the queue of such mail', needsTls, async () => {
    const { inbound, reception } = await startHarness({ tls, isTlsFirst: true, offersRequireTls: true });
    reception.admissions.set('full.example!tls', 'queue-full');
    const client = new SecureClient({ port: inbound.port });
    assert.match(await client.reply(), /^220 /);
    assert.match(await client.command('EHLO client.example'), /^250 /);
    for (const [line, said] of [
      ['MAIL FROM:<a@example.org>', '250 2.1.0'], ['RCPT TO:<b@full.example>', '250 2.1.5'], ['RSET', '250 2.0.0'],
      ['MAIL FROM:<a@example.org> REQUIRETLS', '250 2.1.0'], ['RCPT TO:<b@full.example>', '452 4.2.2'],
      ['RCPT TO:<b@example.net>', '250 2.1.5'], ['RCPT TO:<c@example.net>', '250 2.1.5'], ['DATA', '354 End '], ['TLS-Required: No\r\n\r\nx\r\n.', '250 2.0.0'],
    ] as const) assert.equal((await client.command(line)).slice(0, said.length), said, line);
    assert.deepEqual(reception.kept[0]?.submission.groups.map(({ route, recipients }) => [route.queueName, recipients.length]), [['example.net!tls', 2]]);
    client.socket.destroy();
    await inbound.close(1000);
  });

  test('comes behind the PROXY header, also when both come in one write', needsTls, async () => {
    const { inbound } = await startHarness({ tls, isTlsFirst: true, proxyNetworks: ['127.0.0.0/8'], relayNetworks: ['192.0.2.0/24'] });
    const inOne = net.connect(inbound.port, '127.0.0.1');
    const client = new SecureClient({ socket: behind('PROXY TCP4 192.0.2.7 127.0.0.1 4660 465\r\n', inOne) });
    assert.match(await client.reply(), /^220 /);
    assert.match(await client.command('HELO client.example'), /greets \[192\.0\.2\.7\]/);
    client.socket.destroy();

    const apart = net.connect(inbound.port, '127.0.0.1');
    apart.write('PROXY TCP4 198.51.100.9 127.0.0.1 4660 465\r\n');
    const other = new SecureClient({ socket: apart });
    assert.match(await other.reply(), /^220 /);
    assert.match(await other.command('HELO client.example'), /greets \[198\.51\.100\.9\]/);
    other.socket.destroy();
    await inbound.close(1000);
  });

  test('is the client\'s own, also when a balancer has one port of its own for two connections', needsTls, async () => {
    const { inbound } = await startHarness({ tls, isTlsFirst: true, host: '0.0.0.0', proxyNetworks: ['127.0.0.0/8'], relayNetworks: ['192.0.2.0/24'] });
    const free = net.createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const { port: localPort } = free.address() as net.AddressInfo;
    await promisify(free.close.bind(free))();
    const named = [['127.0.0.1', '192.0.2.7'], ['127.0.0.2', '198.51.100.9']] as const;
    const sockets = named.map(([host]) => net.connect({ host, port: inbound.port, localAddress: '127.0.0.1', localPort }));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    const clients = sockets.map((socket, i) => {
      socket.write(`PROXY TCP4 ${named[i]?.[1] ?? ''} 127.0.0.1 4660 465\r\n`);
      return new SecureClient({ socket });
    });
    for (const [i, client] of clients.entries()) {
      assert.match(await client.reply(), /^220 /);
      assert.ok((await client.command('HELO client.example')).includes(`greets [${named[i]?.[1] ?? ''}]`));
      client.socket.destroy();
    }
    await inbound.close(1000);
  });

  test('spoken to in clear ends the connection without a word', needsTls, async () => {
    const { inbound, refused } = await startHarness({ tls, isTlsFirst: true });
    const socket = net.connect(inbound.port, '127.0.0.1');
    let heard = '';
    socket.on('data', (bytes) => { heard += bytes.toString('latin1'); });
    socket.on('error', () => undefined);
    socket.write('EHLO client.example\r\nMAIL FROM:<a@example.org>\r\n');
    await new Promise((resolve) => socket.once('close', resolve));
    assert.ok(!heard.includes('220') && !heard.includes('250'), heard);
    while (inbound.connections > 0) await new Promise(setImmediate);
    assert.deepEqual(refused.map(({ reason, client }) => [reason, client]), [['tls', '127.0.0.1']]);
    assert.match(refused[0]?.why ?? '', /^TLS: .*\(ERR_SSL_/);
    await inbound.close(1000);
  });

  test('that never begins is cut off', needsTls, async () => {
    const { inbound, refused } = await startHarness({ tls, isTlsFirst: true, handshakeMs: 100, deadlineTickMs: 50 });
    const socket = net.connect(inbound.port, '127.0.0.1');
    socket.on('error', () => undefined);
    await new Promise((resolve) => { socket.once('close', resolve).resume(); });
    const gone = net.connect(inbound.port, '127.0.0.1');
    gone.end();
    await new Promise((resolve) => { gone.once('close', resolve).resume(); });
    while (inbound.connections > 0) await new Promise(setImmediate);
    assert.deepEqual(refused, [], 'who only looks whether somebody listens is in no log');
    // A ClientHello that never ends.
    const slow = net.connect(inbound.port, '127.0.0.1').on('error', () => undefined);
    slow.write(Buffer.from([0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc]));
    await new Promise((resolve) => { slow.once('close', resolve).resume(); });
    while (inbound.connections > 0) await new Promise(setImmediate);
    assert.deepEqual(refused.map(({ reason, why }) => [reason, why]), [['tls', 'it took too long']]);
    const left = net.connect(inbound.port, '127.0.0.1').on('error', () => undefined);
    left.end(Buffer.from([0x16, 3, 1]));
    await new Promise((resolve) => { left.once('close', resolve).resume(); });
    while (inbound.connections > 0) await new Promise(setImmediate);
    assert.deepEqual(refused.map(({ reason, why }) => [reason, why]).slice(1), [['tls', 'closed by the peer']]);
    await inbound.close(1000);
  });

  test('of a version older than 1.2 is refused', needsTls, async () => {
    const { inbound, refused } = await startHarness({ tls, isTlsFirst: true });
    const client = new SecureClient({ port: inbound.port, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
    assert.equal(await client.reply(), 'closed');
    while (inbound.connections > 0) await new Promise(setImmediate);
    assert.match(refused[0]?.why ?? '', /^TLS: .*\(ERR_SSL_UNSUPPORTED_PROTOCOL\)$/);
    await inbound.close(1000);
  });
});

describe('a certificate of the client', () => {
  const [ours, other] = [selfSigned('mta.example'), selfSigned('mta.example')];
  test('makes a relay of who shows one of the names, not of who shows another\'s or none', needsTls, async () => {
    assert.ok(tls !== undefined && ours !== undefined && other !== undefined);
    const { inbound } = await startHarness({
      tls: { ...tls, clientCaFile: ours.certFile }, isTlsFirst: true, relayNetworks: [], relayCertificates: ['mta.example'],
    });
    const pem = (file: string): Buffer => readFileSync(file);
    const shown = [
      [{ cert: pem(ours.certFile), key: pem(ours.keyFile) }, /^250 /],
      [{ cert: pem(other.certFile), key: pem(other.keyFile) }, /^550 5\.7\.1 /],
      [{}, /^550 5\.7\.1 /],
    ] as const;
    for (const [certificate, answer] of shown) {
      let session: Buffer | undefined;
      for (let round = 0; round < 2; round++) {
        const client = new SecureClient({ port: inbound.port, ...certificate, ...(session === undefined ? {} : { session }) });
        client.socket.on('session', (given: Buffer) => { session = given; });
        await client.reply();
        await client.command('EHLO mta.example');
        await client.command('MAIL FROM:<a@example.org>');
        assert.match(await client.command('RCPT TO:<b@example.net>'), answer);
        assert.equal(client.socket.isSessionReused(), false);
        client.socket.destroy();
      }
    }
    await inbound.close(1000);
  });
});

describe('what a client has shown', () => {
  const [ours, other, expired] = [selfSigned('mta.example'), selfSigned('mta.example'), selfSigned('else.example')];
  test('is in the log: by what it relays, or why it may not', needsTls, async () => {
    assert.ok(tls !== undefined && ours !== undefined && other !== undefined && expired !== undefined);
    const caFile = `${ours.certFile}-and-else`;
    writeFileSync(caFile, readFileSync(ours.certFile, 'latin1') + readFileSync(expired.certFile, 'latin1'));
    const { inbound, refused, logged } = await startHarness({
      tls: { ...tls, clientCaFile: caFile }, isTlsFirst: true, relayNetworks: [], relayCertificates: ['mta.example'],
    });
    for (const shown of [ours, other, expired, undefined]) {
      const certificate = shown === undefined ? {} : { cert: readFileSync(shown.certFile), key: readFileSync(shown.keyFile) };
      const client = new SecureClient({ port: inbound.port, ...certificate });
      await client.reply();
      for (const line of ['EHLO mta.example', 'MAIL FROM:<a@example.org>', 'RCPT TO:<b@example.net>', 'DATA', 'x\r\n.', 'RSET', 'NOOP']) {
        if (line !== 'x\r\n.' || shown === ours) await client.command(line);
      }
      client.socket.destroy();
    }
    assert.deepEqual(logged.map(({ certificate }) => certificate), ['mta.example']);
    assert.deepEqual(refused.filter(({ reason }) => reason === 'relay-denied').map(({ certificate, why }) => [certificate, why]), [
      ['mta.example', 'its certificate does not count: DEPTH_ZERO_SELF_SIGNED_CERT'],
      ['else.example', 'its certificate is not in relay_certificates'], ['', ''],
    ]);
    await inbound.close(1000);
  });
});

describe('certificate files', () => {
  test('are read anew when they change; a bad pair never replaces a good one', { ...needsTls, timeout: 20_000 }, async () => {
    const [first, second] = [selfSigned('one.test'), selfSigned('two.test')];
    assert.ok(first !== undefined && second !== undefined);
    const { inbound } = await startHarness({ tls: first, isTlsFirst: true });
    const shownName = async (): Promise<string> => {
      const client = new SecureClient({ port: inbound.port });
      await client.reply();
      const name = client.socket.getPeerCertificate().subject.CN;
      client.socket.destroy();
      return String(name);
    };
    // The files are looked at once a second.
    const becomes = async (name: string): Promise<void> => {
      while ((await shownName()) !== name) await new Promise((resolve) => setTimeout(resolve, 100));
    };
    assert.equal(await shownName(), 'one.test');
    copyFileSync(second.certFile, first.certFile);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    assert.equal(await shownName(), 'one.test', 'the key of the old certificate does not fit the new one');
    copyFileSync(second.keyFile, first.keyFile);
    await becomes('two.test');
    await inbound.close(1000);
  });

  test('that can\'t be used are named', needsTls, () => {
    const [first, second] = [selfSigned(), selfSigned()];
    assert.ok(first !== undefined && second !== undefined);
    assert.throws(() => readServerTls({ ...first, keyFile: second.keyFile }), /cert' and '.*key' are no certificate with its key in PEM/);
    assert.throws(() => readServerTls({ ...first, keyFile: '/nowhere' }), /'\/nowhere' can't be read: ENOENT/);
    writeFileSync(second.certFile, 'none');
    assert.throws(() => readServerTls({ ...second, clientCaFile: undefined }), /cert' is no certificate in PEM: ./);
    assert.throws(() => readServerTls({ ...first, clientCaFile: second.certFile }), /cert' is no certificate in PEM: ./);
    writeFileSync(second.keyFile, '');
    assert.throws(() => readServerTls({ ...first, keyFile: second.keyFile }), /key' is no key in PEM: it is empty/);
  });
});

/** What is written first goes out behind the header, in the same write. */
function behind(header: string, socket: net.Socket): Duplex {
  let before = Buffer.from(header, 'latin1');
  const stream = new Duplex({
    read: () => { socket.resume(); },
    write: (chunk: Buffer, _encoding, done) => {
      socket.write(Buffer.concat([before, chunk]), () => { done(); });
      before = Buffer.alloc(0);
    },
    destroy: (_error, done) => {
      socket.destroy();
      done(null);
    },
  });
  socket.on('data', (bytes: Buffer) => { if (!stream.push(bytes)) socket.pause(); });
  socket.on('end', () => { stream.push(null); });
  socket.on('error', () => undefined);
  return stream;
}

describe('a session of TLS', () => {
  /** Whether a second connection, to another server, goes on with the session of the first. */
  async function isResumed(first: number, second: number, session?: Buffer): Promise<{ readonly isReused: boolean; readonly session: Buffer }> {
    const one = new SecureClient({ port: first, maxVersion: 'TLSv1.2', ...(session === undefined ? {} : { session }) });
    await one.reply();
    const begun = session ?? one.socket.getSession();
    assert.ok(begun !== undefined);
    await one.command('QUIT');
    const two = new SecureClient({ port: second, maxVersion: 'TLSv1.2', session: begun });
    await two.reply();
    const isReused = two.socket.isSessionReused();
    await two.command('QUIT');
    return { isReused, session: begun };
  }

  test('is resumed by whoever has the same keys for it, until they change; a renewed certificate keeps them', needsTls, async () => {
    assert.ok(tls !== undefined);
    const certFile = `${tls.certFile}.renewed`;
    copyFileSync(tls.certFile, certFile);
    const [one, two] = [await startHarness({ tls, isTlsFirst: true }), await startHarness({ tls: { ...tls, certFile }, isTlsFirst: true })];
    const [first, second] = [one.inbound.port, two.inbound.port];
    assert.equal((await isResumed(first, second)).isReused, false, 'keys of its own');
    const keys = Buffer.alloc(48, 7);
    for (const { inbound } of [one, two]) inbound.setTicketKeys(keys);
    const { isReused, session } = await isResumed(first, second);
    assert.equal(isReused, true);
    // The files are looked at once a second.
    writeFileSync(certFile, `${readFileSync(certFile, 'utf8')}\n`);
    await new Promise((resolve) => { setTimeout(resolve, 1100); });
    assert.equal((await isResumed(first, second, session)).isReused, true);
    two.inbound.setTicketKeys(Buffer.alloc(48, 8));
    assert.equal((await isResumed(first, second, session)).isReused, false);
    await Promise.all([one.inbound.close(1000), two.inbound.close(1000)]);
  });
});
