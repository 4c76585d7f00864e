/** `send` against a real sink on loopback: what one reports is what the other got. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { SMTPServer } from 'smtp-server';
import type { SMTPServerOptions } from 'smtp-server';

import { parseMix, type SendProgress } from '../../../src/load/options.js';
import { runSend } from '../../../src/load/run.js';
import { readSendLog } from '../../../src/load/send-log.js';
import type { RunningSink, SinkOptions } from '../../../src/sink/options.js';
import { startSink } from '../../../src/sink/sink.js';
import { selfSigned } from '../../dialog/self-signed.js';

const HOST = '127.0.0.1';
const files = selfSigned();
const DOMAINS = ['a.example', 'b.example', 'c.example'];

function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-send-'));
  return body(folder).finally(() => rmSync(folder, { recursive: true, force: true }));
}

function sinkOptions(options: Partial<SinkOptions> = {}): SinkOptions {
  return { host: HOST, port: 0, verify: true, ...options };
}

describe('send and sink', () => {
  test('deliver every message once, unaltered and in order', () =>
    inFolder(async (folder) => {
      const sink = await startSink(sinkOptions());
      const log = join(folder, 'send.log');
      const mix = [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }];
      const sent = await runSend({ host: HOST, port: sink.port, count: 1000, connections: 5, mix, domains: DOMAINS, log });
      assert.equal(sent.accepted, 1000);
      assert.equal(sent.acceptedBytes, sink.counts.bytes);
      assert.ok(sent.acceptedBytes > 3_200_000 && sent.acceptedBytes < 4_200_000);
      assert.equal(sent.connectionsOpened, 5);
      assert.ok(sent.responseMs.p50 > 0 && sent.responseMs.p99 >= sent.responseMs.p50);
      assert.equal(readSendLog(log).records.length, 1000);
      const report = await sink.report(log);
      assert.equal(report.ok, true);
      assert.equal(report.accepted, 1000);
      await sink.close();
    }));

  test('works without PIPELINING and with few messages a connection', async () => {
    const sink = await startSink(sinkOptions());
    const sent = await runSend({
      host: HOST, port: sink.port, count: 50, connections: 2, pipelining: false, messagesPerConnection: 10, domains: DOMAINS,
    });
    assert.equal(sent.accepted, 50);
    assert.ok(sink.counts.connections >= 5);
    assert.equal((await sink.report()).lost.count, 0);
    await sink.close();
  });

  test('deliver every message over STARTTLS to a sink that has a certificate', { skip: files === undefined ? 'openssl is missing' : false }, async () => {
    assert.ok(files !== undefined);
    const sink = await startSink(sinkOptions({ tls: files }));
    const sent = await runSend({
      host: HOST, port: sink.port, count: 200, connections: 4, domains: DOMAINS, tls: 'starttls', caFile: files.certFile,
    });
    assert.equal(sent.accepted, 200);
    assert.deepEqual([sink.counts.messages, sink.counts.connections], [200, 4]);
    assert.equal((await sink.report()).ok, true);
    await sink.close();
    while (sink.counts.connectionsOpen > 0) await new Promise(setImmediate);
  });

  test('a client that comes back by TLS resumes its session if it is told to, else not', { skip: files === undefined ? 'openssl is missing' : false }, async () => {
    assert.ok(files !== undefined);
    const [key, cert] = [readFileSync(files.keyFile), readFileSync(files.certFile)];
    for (const resumesTls of [false, true]) {
      const resumed: boolean[] = [];
      const onSecure: SMTPServerOptions['onSecure'] = (socket, _session, done) => {
        resumed.push(socket instanceof TLSSocket && socket.isSessionReused());
        done();
      };
      const server = new SMTPServer({ secure: true, key, cert, authOptional: true, disableReverseLookup: true, onSecure });
      server.listen(0, HOST);
      await once(server.server, 'listening');
      const { port } = server.server.address() as AddressInfo;
      const to = { host: HOST, port, tls: 'implicit', caFile: files.certFile, resumesTls } as const;
      const sent = await runSend({ ...to, count: 3, connections: 1, messagesPerConnection: 1, domains: DOMAINS });
      await new Promise<void>((resolve) => { server.close(resolve); });
      assert.equal(sent.accepted, 3);
      assert.deepEqual(resumed, [false, resumesTls, resumesTls]);
    }
  });

  test('send again what was deferred or cut, and the sink explains the copies', () =>
    inFolder(async (folder) => {
      const log = join(folder, 'send.log');
      const sink = await startSink(sinkOptions({ deferRate: 0.1, cutAfterDot: 0.05, seed: 7, displacementMax: 1000 }));
      const sent = await runSend({ host: HOST, port: sink.port, count: 300, connections: 3, resend: true, domains: DOMAINS, log });
      assert.equal(sent.accepted, 300);
      assert.equal(sent.replies['451'], sink.counts.deferred);
      assert.ok(sink.counts.deferred > 10 && sink.counts.cut > 5);
      const report = await sink.report(log);
      assert.equal(report.ok, true);
      assert.equal(report.explainedDuplicates, sink.counts.cut);
      await sink.close();
    }));

  test('name envelopes, so that an attempt without content is known', () =>
    inFolder(async (folder) => {
      const arrivalLog = join(folder, 'arrivals.log');
      const sink = await startSink(sinkOptions({ messageBytesMax: 600, arrivalLog }));
      const sent = await runSend({ host: HOST, port: sink.port, count: 3, run: 'r1', nameEnvelopes: true, domains: DOMAINS });
      assert.deepEqual([sent.refused, sink.counts.unfinished, sink.counts.messages], [3, 3, 0]);
      await sink.close();
      const lines = readFileSync(arrivalLog, 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as { kind: number; run: string; id: number; begun: number });
      assert.deepEqual(lines.map(({ kind, run, begun }) => [kind, run, begun]), [1, 2, 3].map((begun) => [6, 'r1', begun]));
      assert.deepEqual(lines.map((line) => line.id).sort(), [1, 2, 3]);
    }));

  test('report refusals without sending again', async () => {
    const sink = await startSink(sinkOptions({ rejectRate: 1 }));
    const sent = await runSend({ host: HOST, port: sink.port, count: 10, resend: true });
    assert.equal(sent.refused, 10);
    assert.equal(sent.samples['550'], '550 5.7.1 Refused on purpose');
    await sink.close();
  });

  test('go on when the server comes back', async () => {
    const first = await startSink(sinkOptions());
    const port = first.port;
    let reopened: Promise<Awaited<ReturnType<typeof startSink>>> | undefined;
    const sent = await runSend({
      host: HOST, port, count: 2000, connections: 4, rate: 4000, resend: true,
      onProgress: (progress) => {
        if (progress.accepted > 0) reopened ??= first.close().then(() => startSink(sinkOptions({ port })));
      },
    });
    assert.equal(sent.accepted, 2000);
    assert.ok(sent.connectionsOpened > 4);
    await (await reopened)?.close();
  });

  test('tell how fast they were answered since they last told', async () => {
    const sink = await startSink(sinkOptions());
    const told: SendProgress[] = [];
    const sent = await runSend({ host: HOST, port: sink.port, count: 4, connections: 1, rate: 2, onProgress: (progress) => void told.push(progress) });
    assert.equal(sent.accepted, 4);
    // It tells more often than a message goes.
    assert.ok(told.some(({ responseMs }) => responseMs === undefined) && told.some(({ responseMs }) => responseMs !== undefined));
    let before = 0;
    for (const { accepted, responseMs } of told) {
      assert.equal(responseMs === undefined, accepted === before);
      if (responseMs !== undefined) assert.ok(responseMs.p50 > 0 && responseMs.p50 <= responseMs.p99 && responseMs.p99 <= sent.responseMs.max);
      before = accepted;
    }
    await sink.close();
  });

  test('take turns over all connections when asked to', async () => {
    const sink = await startSink(sinkOptions());
    const sent = await runSend({ host: HOST, port: sink.port, count: 50, connections: 5, openFirst: true, rate: 500, inTurn: true, messagesPerConnection: 10 });
    assert.equal(sent.accepted, 50);
    assert.equal(sent.connectionsOpened, 5, 'none of them had to send more than its share');
    await sink.close();
  });

  test('give up when nobody answers', async () => {
    const sink = await startSink(sinkOptions());
    const port = sink.port;
    await sink.close();
    const sent = await runSend({ host: HOST, port, count: 5, patienceMs: 200 });
    assert.equal(sent.unfinished, 5);
    assert.ok((sent.connectionErrors['ECONNREFUSED'] ?? 0) > 0);
  });

  test('the HTTP of a sink on this machine is deaf to other names for it', async (t) => {
    const sinks: RunningSink[] = [];
    t.after(() => Promise.all(sinks.map((sink) => sink.close())));
    for (const host of [HOST, '0.0.0.0']) sinks.push(await startSink(sinkOptions({ inbox: true, admin: { host, port: 0 } })));
    await runSend({ host: HOST, port: sinks[0]?.port ?? 0, count: 1 });
    const codes: unknown[] = [];
    for (const { adminPort: port } of sinks) {
      for (const host of ['evil.example', `localhost:${String(port)}`]) {
        for (const path of ['/inbox?limit=5', '/inbox/1', '/healthz']) {
          const [response] = (await once(get({ host: HOST, port, path, headers: { host }, agent: false }), 'response')) as [IncomingMessage];
          response.resume();
          codes.push(response.statusCode);
        }
      }
    }
    assert.deepEqual(codes, [403, 403, 403, 200, 200, 200, 200, 404, 200, 200, 404, 200]);
  });

  test('keep .eml content byte for byte in a Maildir, line ends made CRLF', () =>
    inFolder(async (folder) => {
      const sink = await startSink(sinkOptions({ maildir: folder }));
      const eml = Buffer.from('Subject: dots\n\n.\n..two\r\n\u00ff end', 'latin1');
      await runSend({ host: HOST, port: sink.port, count: 1, eml: [eml] });
      const [name] = readdirSync(join(folder, 'new'));
      const kept = readFileSync(join(folder, 'new', name ?? ''), 'latin1');
      assert.ok(kept.startsWith('X-Twinpost-Hash: '));
      assert.ok(kept.endsWith('\r\nSubject: dots\r\n\r\n.\r\n..two\r\n\u00ff end\r\n'));
      assert.equal((await sink.report()).altered.count, 0);
      await sink.close();
    }));
});

describe('parseMix', () => {
  test('reads sizes and weights', () => {
    assert.deepEqual(parseMix('1KB:70,10KiB:30'), [{ bytes: 1000, weight: 70 }, { bytes: 10_240, weight: 30 }]);
    assert.deepEqual(parseMix('0.4KB'), [{ bytes: 400, weight: 1 }]);
  });

  test('says what is wrong', () => {
    assert.match(String(parseMix('1KB:70,huge')), /'huge' is not SIZE:WEIGHT/);
    assert.match(String(parseMix('1KB:0')), /no weight above 0/);
  });
});
