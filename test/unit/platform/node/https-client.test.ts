/** Answers of strangers by HTTPS, src/platform/node/https-client.ts: what is read of them, and what is not. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { HttpsAnswer, HttpsQuestion } from '../../../../src/platform/https.js';
import { HttpsClient } from '../../../../src/platform/node/https-client.js';
import { makeCertificates } from '../../../process/tls-hop.js';
import { PolicyServer } from '../../gateway/outbound/sts/policy-server.js';

const HOST = 'mta-sts.sts.example';
const certificates = makeCertificates();
const certificate = certificates?.issue(HOST);
const needsTls = { timeout: 30_000, skip: certificates === undefined ? 'openssl is missing' : false };

async function asked(
  t: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void, question: Partial<HttpsQuestion> = {},
): Promise<HttpsAnswer> {
  assert.ok(certificates !== undefined && certificate !== undefined);
  const server = new PolicyServer();
  server.said.set(HOST, { certificate, answer });
  const client = new HttpsClient({ port: await server.listen(), ca: readFileSync(certificates.caFile, 'latin1') });
  t.after(() => {
    client.close();
    server.close();
  });
  return new Promise((resolve) => {
    client.ask({ host: HOST, path: '/', addresses: ['127.0.0.1'], answerBytesMax: 65_536, withinMs: 10_000, ...question }, resolve);
  });
}

/** Of an octet each, in one write. */
function chunked(count: number): (request: IncomingMessage, response: ServerResponse) => void {
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
