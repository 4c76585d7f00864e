/** Answers of strangers by HTTPS, src/platform/node/https-client.ts: what is read of them, and what is not. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import tls from 'node:tls';
import type { HttpsAnswer, HttpsQuestion } from '../../../../src/platform/https.js';
import { HttpsClient } from '../../../../src/platform/node/https-client.js';
import { makeCertificates } from '../../../process/tls-hop.js';
import { PolicyServer } from '../../gateway/outbound/sts/policy-server.js';

const HOST = 'mta-sts.sts.example';
const certificates = makeCertificates();
const certificate = certificates?.issue(HOST);
const needsTls = { timeout: 30_000, skip: certificates === undefined ? 'openssl is missing' : false };

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

async function asked(
  t: TestContext, answer: Answering, question: Partial<HttpsQuestion> = {}, options: tls.TlsOptions = {}, shown = certificate,
): Promise<HttpsAnswer> {
  assert.ok(certificates !== undefined && shown !== undefined);
  const server = new PolicyServer(options);
  server.said.set(HOST, { certificate: shown, answer });
  const client = new HttpsClient({ port: await server.listen(), ca: readFileSync(certificates.caFile, 'latin1'), tryMs: 100 });
  t.after(() => {
    client.close();
    server.close();
  });
  return new Promise((resolve) => {
    client.ask({ host: HOST, path: '/', addresses: ['127.0.0.1'], answerBytesMax: 65_536, withinMs: 10_000, ...question }, resolve);
  });
}

/** Of an octet each, in one write. */
function chunked(count: number): Answering {
  return ({ socket }, _response) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`);
  };
}

test('a text in a thousand chunks is read; one more is an attack, and ends it', needsTls, async (t) => {
  assert.deepEqual(await asked(t, chunked(1_000)), { kind: 'answer', status: 200, type: 'text/plain', text: 'x'.repeat(1_000) });
  const answer = await asked(t, chunked(1_001));
  assert.deepEqual(answer, { kind: 'failed', why: 'its answer comes in too many pieces', isUntrusted: false });
});

test('of an answer to a POST the status alone is read: one that never ends holds nothing', needsTls, async (t) => {
  const endless = (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.write('x'.repeat(100_000));
  };
  const body = { type: 'application/tlsrpt+gzip', bytes: Buffer.from('a report') };
  assert.deepEqual(await asked(t, endless, { body, answerBytesMax: 0 }), { kind: 'answer', status: 200, type: 'text/html', text: '' });
});

test('an encoded answer is none', needsTls, async (t) => {
  const gzipped = (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, { 'content-encoding': 'gzip' });
    response.end('x');
  };
  assert.deepEqual(await asked(t, gzipped), { kind: 'failed', why: 'its answer is encoded', isUntrusted: false });
});

test('an answer that ends with its connection is none: anybody on the way can end that', needsTls, async (t) => {
  const cut = ({ socket }: IncomingMessage): void => {
    socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nversion: STSv1\r\n');
  };
  assert.deepEqual(await asked(t, cut), { kind: 'failed', why: 'its answer does not say how long it is, and may be cut short', isUntrusted: false });
  for (const coding of ['identity', 'gzip', 'chunked, identity', 'x-chunked']) {
    const coded = ({ socket }: IncomingMessage): void => {
      socket.end(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: ${coding}\r\n\r\nversion: STSv1\r\n`);
    };
    assert.equal((await asked(t, coded)).kind, 'failed', coding);
  }
  const short = ({ socket }: IncomingMessage): void => { socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nversion: STSv1\r\n'); };
  assert.equal((await asked(t, short)).kind, 'failed');
});

test('four addresses are tried, and no more', needsTls, async (t) => {
  const answer = (_request: IncomingMessage, response: ServerResponse): void => { response.end('x'); };
  const dead = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
  assert.equal((await asked(t, answer, { addresses: [...dead, '127.0.0.1'] })).kind, 'answer');
  assert.equal((await asked(t, answer, { addresses: [...dead, '127.0.0.5', '127.0.0.1'] })).kind, 'failed');
});

test('an address that takes the question and is silent is left for the next one in its time', needsTls, async (t) => {
  assert.ok(certificates !== undefined && certificate !== undefined);
  const server = new PolicyServer();
  server.said.set(HOST, { certificate, answer: (_request, response) => { response.end('yes'); } });
  const port = await server.listen();
  const silent = net.createServer((socket) => { socket.resume(); });
  await new Promise<void>((resolve) => { silent.listen(port, '127.0.0.2', resolve); });
  const client = new HttpsClient({ port, ca: readFileSync(certificates.caFile, 'latin1'), tryMs: 300 });
  t.after(() => {
    client.close();
    server.close();
    silent.close();
  });
  const ask = (addresses: readonly string[], withinMs: number): Promise<HttpsAnswer> => new Promise((resolve) => {
    client.ask({ host: HOST, path: '/', addresses, answerBytesMax: 65_536, withinMs }, resolve);
  });
  const beganMs = performance.now();
  assert.equal((await ask(['127.0.0.2', '127.0.0.2', '127.0.0.1'], 20_000) as { text: string }).text, 'yes');
  assert.ok(performance.now() - beganMs >= 600);
  // The last one has all the time that there is.
  assert.deepEqual(await ask(['127.0.0.2'], 1_000), { kind: 'failed', why: 'no answer within 1 s', isUntrusted: false });
});

test('an answer that has begun has all the time that there is; one that breaks off is the end, whatever addresses are left', needsTls, async (t) => {
  const addresses = ['127.0.0.1', '127.0.0.1'];
  // Longer than an address may be silent.
  const slow: Answering = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.write('so ');
    setTimeout(() => { response.end('slow'); }, 150);
  };
  assert.deepEqual(await asked(t, slow, { addresses }), { kind: 'answer', status: 200, type: 'text/plain', text: 'so slow' });
  const broken: Answering = ({ socket }) => { socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n'); };
  const { why } = await asked(t, broken, { addresses }) as { why: string };
  assert.match(why, /HPE_INVALID_CHUNK_SIZE/);
});

test('a client that is closed holds nothing: neither the time of the question nor that of an address', needsTls, async (t) => {
  const silent = net.createServer((socket) => { socket.on('error', () => undefined); });
  t.after(() => { silent.close(); });
  const port = await new Promise<number>((resolve) => {
    silent.listen(0, '127.0.0.1', () => { resolve((silent.address() as net.AddressInfo).port); });
  });
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const client = new HttpsClient({ port });
  client.ask({ host: HOST, path: '/', addresses: ['127.0.0.1', '127.0.0.1'], answerBytesMax: 1, withinMs: 10_000 }, () => { assert.fail('nobody is told'); });
  await new Promise((resolve) => { silent.once('connection', resolve); });
  const held = timers();
  client.close();
  assert.equal(held - timers(), 2);
});

test('of a certificate for very many names no more is told than a line holds', needsTls, async (t) => {
  assert.ok(certificates !== undefined);
  const names = Array.from({ length: 100 }, (_, i) => `DNS:${String(i)}.other.example`).join();
  const answer = await asked(t, () => { assert.fail('it was asked'); }, {}, {}, certificates.issueFor('other.example', names));
  assert.ok(answer.kind === 'failed' && answer.isUntrusted);
  assert.deepEqual([Buffer.byteLength(answer.why), answer.why.at(-1), answer.why.slice(0, 30)], [200, '…', '127.0.0.1: Hostname/IP does no']);
});

test('TLS is 1.2 or newer, also where Node is told to take older ones', needsTls, async (t) => {
  const usual = tls.DEFAULT_MIN_VERSION;
  tls.DEFAULT_MIN_VERSION = 'TLSv1';
  t.after(() => { tls.DEFAULT_MIN_VERSION = usual; });
  const { why } = await asked(t, () => { assert.fail('it was asked'); }, {}, { maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }) as { why: string };
  assert.match(why, /alert protocol version/);
});

test('a server can not show another chain later, by a second handshake', needsTls, async (t) => {
  const again: Answering = ({ socket }, response) => {
    socket.once('error', (error: NodeJS.ErrnoException) => { refused.push(error.code ?? ''); });
    (socket as tls.TLSSocket).renegotiate({ rejectUnauthorized: false }, () => { response.end('a second handshake'); });
  };
  const refused: string[] = [];
  const { kind } = await asked(t, again, {}, { maxVersion: 'TLSv1.2' });
  assert.deepEqual([kind, refused], ['failed', ['ERR_SSL_NO_RENEGOTIATION']]);
});
