/** The hook that speaks rspamd's protocol, with servers that answer well, badly, late and not at all. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import net from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, test } from 'node:test';
import type { HookAnswer, JudgedEnvelope } from '../../../../../../src/gateway/inbound/hooks/message-hook.js';
import { FIELDS_MAX, fieldRule } from '../../../../../../src/gateway/inbound/hooks/prefix-fields.js';
import { rspamdVerdict } from '../../../../../../src/gateway/inbound/hooks/rspamd-answer.js';
import { RspamdHook } from '../../../../../../src/gateway/inbound/hooks/node/rspamd-hook.js';
import { judged } from '../judged.js';

const HOST = '127.0.0.1';
const OK = JSON.stringify({ action: 'no action', score: 0, required_score: 15, messages: {} });
const ACCEPT: HookAnswer = { action: 'accept', mark: [], fields: [] };

const CONTENT = [Buffer.from('Received: x\r\n'), Buffer.from('Subject: y\r\n\r\n'), Buffer.from('body\r\n')];

class Hook {
  readonly hook: RspamdHook;
  /** What its answers take, and how much they may. */
  reservedBytes = 0;
  reservedMost = 0;
  bytesMax = Infinity;
  readonly #memory = {
    reserve: (bytes: number) => {
      if (this.reservedBytes + bytes > this.bytesMax) return false;
      this.reservedBytes += bytes;
      this.reservedMost = Math.max(this.reservedMost, this.reservedBytes);
      return true;
    },
    release: (bytes: number) => { this.reservedBytes -= bytes; },
  };

  constructor(port: number, timeoutMs = 5000) {
    this.hook = new RspamdHook({ name: 'rspamd', url: `http://${HOST}:${String(port)}`, timeoutMs, password: 'pass word', hostName: 'mx.test' }, { memory: this.#memory });
  }

  ask(envelope: Partial<JudgedEnvelope> = {}, content: readonly Uint8Array[] = CONTENT): Promise<HookAnswer> {
    return new Promise((resolve) => { this.hook.ask(judged(envelope, content), resolve); });
  }
}

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

async function withServer(handler: Handler, body: (port: number, sockets: Set<Socket>) => Promise<void>): Promise<void> {
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => { handler(request, response, Buffer.concat(chunks).toString('latin1')); });
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(0, HOST);
  await once(server, 'listening');
  try {
    await body((server.address() as AddressInfo).port, sockets);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

describe('a message asked about by HTTP', { timeout: 30_000 }, () => {
  test('goes whole, with its envelope in fields, by one connection that is kept', async () => {
    const asked: { readonly headers: Readonly<Record<string, readonly string[] | undefined>>; readonly body: string; readonly url: string }[] = [];
    await withServer((request, response, body) => {
      asked.push({ headers: request.headersDistinct, body, url: `${request.method ?? ''} ${request.url ?? ''}` });
      response.end(OK);
    }, async (port, sockets) => {
      const { hook, ...kit } = new Hook(port);
      const ask = Hook.prototype.ask.bind({ hook, ...kit });
      assert.deepEqual(await ask(), ACCEPT);
      assert.deepEqual(await ask({ user: 'anna', tlsVersion: 'TLSv1.3', reversePath: '', recipients: ['b@example.net'], helo: 'x\u0007' }), ACCEPT);
      const recipients = ['B\u00fc%@Example.NET', '"a \u4f8b"@example.net', '\u4f8b@b\u00fccher.example', 'x%C3@[192.0.2.1]'];
      assert.deepEqual(await ask({ reversePath: 'Anna@\uff22\u00dcCHER.example', recipients }), ACCEPT);
      assert.equal(sockets.size, 1);
      hook.close();
    });
    assert.deepEqual(asked.map(({ body, url }) => `${url} ${body}`), Array.from({ length: 3 }, () => 'POST /checkv2 Received: x\r\nSubject: y\r\n\r\nbody\r\n'));
    const [first, second, third] = asked.map(({ headers }) => headers);
    const names = ['ip', 'helo', 'from', 'rcpt', 'queue-id', 'mta-name', 'password', 'user', 'tls-version'];
    assert.deepEqual(names.map((name) => first?.[name]?.join()), ['192.0.2.1', 'client.example', 'a@example.org', 'b@example.net,c@example.net', '00001', 'mx.test', 'pass word', undefined, undefined]);
    assert.deepEqual(names.map((name) => second?.[name]?.join()).toSpliced(0, 1), ['x?', '<>', 'b@example.net', '00001', 'mx.test', 'pass word', 'anna', 'TLSv1.3']);
    assert.deepEqual([third?.['from'], third?.['rcpt']], [['Anna@xn--bcher-kva.example'], [
      'B%C3%BC%@example.net', '"a %E4%BE%8B"@example.net', '%E4%BE%8B@xn--bcher-kva.example', 'x%C3@[192.0.2.1]',
    ]]);
  });

  test('has failed when the answer is none', async () => {
    const answers: readonly (readonly [answer: (response: ServerResponse) => void, why: RegExp])[] = [
      [(response) => response.writeHead(403).end('wrong password'), /^it answered 403$/],
      [(response) => response.end('<html>'), /^its answer is no JSON$/],
      [(response) => response.end('[]'), /^its answer is no JSON object$/],
      [(response) => response.end('{"action": "dance"}'), /not known: dance$/],
      [(response) => response.writeHead(200, { 'content-length': 100 }).write('{', () => response.destroy()), /^aborted$/],
      [(response) => response.destroy(), /^ECONNRESET$/],
      [(response) => response.socket?.end('nonsense\r\n\r\n'), /^HPE_/],
      [() => undefined, /^no answer in 300 ms$/],
    ];
    for (const [answer, why] of answers) {
      await withServer((_request, response) => { answer(response); }, async (port) => {
        const kit = new Hook(port, why.source.includes('no answer in') ? 300 : 20_000);
        const said = await kit.ask();
        assert.equal(said.action, 'failed');
        assert.equal('isTooMuch' in said, false);
        assert.match('why' in said ? said.why : '', why);
        kit.hook.close();
      });
    }
    const kit = new Hook(1);
    assert.deepEqual(await kit.ask(), { action: 'failed', why: 'ECONNREFUSED' });
  });

  test('is judged by an answer that is long, for senders make it so; one beyond all bounds is known as such, and both are counted', async () => {
    const long = (octets: number): string => JSON.stringify({ action: 'reject', symbols: { URLS: { options: ['u'.repeat(octets)] } } });
    await withServer((_request, response, body) => {
      response.on('error', () => undefined);
      response.end(long(body.startsWith('more') ? 17_000_000 : 3_000_000));
    }, async (port) => {
      const kit = new Hook(port, 20_000);
      assert.deepEqual(await kit.ask(), { action: 'refuse', text: '' });
      assert.ok(kit.reservedMost >= 3_000_000, String(kit.reservedMost));
      assert.equal(kit.reservedBytes, 0);
      assert.deepEqual(await kit.ask({}, [Buffer.from('more')]), { action: 'failed', why: 'its answer is too long', isTooMuch: true });
      kit.bytesMax = 2_000_000;
      assert.deepEqual(await kit.ask(), { action: 'busy' });
      assert.equal(kit.reservedBytes, 0);
      kit.hook.close();
    });
  });

  test('goes out again when the kept connection had been closed', async () => {
    let count = 0;
    // Reads a request and answers the first on each connection; the second is cut off as it comes.
    const server = net.createServer((socket) => {
      let isFirst = true;
      socket.on('error', () => undefined);
      socket.on('data', (bytes: Buffer) => {
        if (!isFirst) return socket.resetAndDestroy();
        if (!bytes.toString('latin1').includes('body\r\n')) return undefined;
        isFirst = false;
        count++;
        return socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${String(OK.length)}\r\n\r\n${OK}`);
      });
    });
    server.listen(0, HOST);
    await once(server, 'listening');
    const kit = new Hook((server.address() as AddressInfo).port);
    for (let i = 0; i < 4; i++) assert.deepEqual(await kit.ask(), ACCEPT);
    assert.equal(count, 4);
    kit.hook.close();
    server.close();
  });

  test('is let go when the answer came before it was read, and its place with it', async () => {
    const big = Buffer.alloc(8 * 1024 * 1024, 'x');
    let connections = 0;
    const sockets = new Set<Socket>();
    // Answers the head of a request, and reads no further when a body of this size follows.
    const server = net.createServer((socket) => {
      connections++;
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('data', (bytes: Buffer) => {
        const head = bytes.toString('latin1');
        if (!head.includes('POST ')) return;
        if (head.includes(`Content-Length: ${String(big.length)}\r\n`)) socket.pause();
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${String(OK.length)}\r\n\r\n${OK}`);
      });
    });
    server.listen(0, HOST);
    await once(server, 'listening');
    const kit = new Hook((server.address() as AddressInfo).port);
    for (let i = 0; i < 40; i++) assert.deepEqual(await kit.ask({}, [big]), ACCEPT);
    assert.equal(connections, 40);
    assert.deepEqual(await kit.ask(), ACCEPT);
    kit.hook.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  test('has failed when what the request would say is no header field', async () => {
    await withServer((_request, response) => { response.end(OK); }, async (port) => {
      const hook = new RspamdHook({ name: 'rspamd', url: `http://${HOST}:${String(port)}`, timeoutMs: 5000, password: 'two\nlines', hostName: 'mx.test' }, { memory: { reserve: () => true, release: () => undefined } });
      for (let i = 0; i < 40; i++) {
        const answer = await new Promise<HookAnswer>((resolve) => { hook.ask(judged({}, CONTENT), resolve); });
        assert.deepEqual(answer, { action: 'failed', why: 'ERR_INVALID_CHAR' });
      }
      hook.close();
    });
  });

  test('waits for a place when many are in flight, is told that there is none, and is let go when its client has gone', async () => {
    const held: ServerResponse[] = [];
    let isAllHere: (() => void) | undefined;
    await withServer((_request, response) => {
      held.push(response);
      if (held.length === 32) isAllHere?.();
    }, async (port) => {
      const kit = new Hook(port, 20_000);
      const inFlight = Array.from({ length: 32 }, () => kit.ask());
      await new Promise<void>((resolve) => { isAllHere = resolve; });
      const abandoned = { is: false };
      const gone = new Promise<HookAnswer>((resolve) => {
        kit.hook.ask(judged({}, CONTENT, () => abandoned.is), resolve);
      });
      const waits = Array.from({ length: 999 }, () => kit.ask());
      assert.deepEqual(await kit.ask(), { action: 'busy' });
      abandoned.is = true;
      held.shift()?.end(OK);
      assert.deepEqual(await inFlight[0], ACCEPT);
      assert.deepEqual(await gone, { action: 'abandoned' });
      kit.hook.close();
      const rest = await Promise.all([...inFlight.slice(1), ...waits]);
      assert.ok(rest.every(({ action }) => action === 'failed'), 'one place, one answer');
    });
  });
});

describe('the answer of rspamd', () => {
  test('is a verdict by its action, with its own text', () => {
    for (const [answer, verdict] of [
      [{ action: 'reject', messages: { smtp_message: 'Gtube pattern' } }, { action: 'refuse', text: 'Gtube pattern' }],
      [{ action: 'reject', messages: [] }, { action: 'refuse', text: '' }],
      [{ action: 'discard' }, { action: 'refuse', text: '' }],
      [{ action: 'quarantine' }, { action: 'accept', mark: [{ name: 'X-Spam', value: 'Yes' }], fields: [] }],
      [{ action: 'soft reject', messages: { smtp_message: 7 } }, { action: 'defer', text: '' }],
      [{ action: 'greylist' }, ACCEPT],
      [{ action: 'add header', score: 7, required_score: 15 }, { action: 'accept', mark: [{ name: 'X-Spam', value: 'Yes' }, { name: 'X-Spam-Score', value: '7.00 / 15.00' }], fields: [] }],
      [{ action: 'rewrite subject', subject: 'SPAM', score: 7, required_score: 15, milter: { add_headers: { 'x-spam': 'very', 'x-spam-score': '7.0' } } },
        { action: 'accept', mark: [{ name: 'X-Spam', value: 'Yes' }], fields: [{ name: 'x-spam-score', value: '7.0' }] }],
    ] as const) assert.deepEqual(rspamdVerdict(answer), verdict, JSON.stringify(answer));
  });

  test('brings fields of every form; texts of senders in them do no harm, and what is no field is left out', () => {
    const verdict = rspamdVerdict({
      action: 'no action', 'dkim-signature': ['v=1; a=rsa-sha256;\r\n\tb=abc', 'v=1; b=def'],
      milter: {
        remove_headers: { 'X-Spam': 0 },
        add_headers: {
          'X-Text': 'a', 'X-Object': { value: 'b', order: 1 }, 'X-List': ['c', { value: 'd' }, 5, null], 'X-Number': 1, 'X-None': null,
          'X-Odd': 'one\r\nBcc: x\r\n\r\nbody\n\t\n two\n\tthree \u00f6\0', 'Subject': 'other', 'bad name': 'x', 'X-Long': 'x'.repeat(2000), '__proto__x': 'y',
        },
      },
    });
    assert.deepEqual(verdict, { action: 'accept', mark: [], fields: [
      { name: 'X-Text', value: 'a' }, { name: 'X-Object', value: 'b' }, { name: 'X-List', value: 'c' }, { name: 'X-List', value: 'd' },
      { name: 'X-Odd', value: 'one Bcc: x  body \t\n two\n\tthree ??' },
      { name: 'DKIM-Signature', value: 'v=1; a=rsa-sha256;\n\tb=abc' }, { name: 'DKIM-Signature', value: 'v=1; b=def' },
    ] });
    const many = rspamdVerdict({ action: 'no action', milter: { add_headers: Object.fromEntries(Array.from({ length: 500 }, (_none, i) => [`X-${String(i)}`, 'v'])) } });
    assert.equal(many.action === 'accept' && many.fields.length <= FIELDS_MAX && many.fields.every((field) => fieldRule(field) === ''), true);
  });

  test('marks spam in front of all else, and leaves out only what is too long', () => {
    const long = Array.from({ length: 60 }, (_none, i) => `SYMBOL_${String(i)}(0.1)[${'x'.repeat(400)}]`).join('\r\n\t');
    for (const name of ['X-Spamd-Result', 'X-Spam', 'X-Spam-Score']) {
      const verdict = rspamdVerdict({
        action: 'add header', score: 14, required_score: 15, 'dkim-signature': 'v=1', milter: { add_headers: { 'X-A': 'a', [name]: long, 'X-B': 'b' } },
      });
      assert.deepEqual(verdict, {
        action: 'accept', mark: [{ name: 'X-Spam', value: 'Yes' }, { name: 'X-Spam-Score', value: '14.00 / 15.00' }],
        fields: [{ name: 'X-A', value: 'a' }, { name: 'X-B', value: 'b' }, { name: 'DKIM-Signature', value: 'v=1' }],
      }, name);
    }
  });
});
