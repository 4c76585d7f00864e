/**
 * CPU a message of our SMTP client beside nodemailer's SMTPConnection, on kept connections, against one and
 * the same minimal sink in another process. Both relay the same 1 KB message.
 *
 *   node dist/bench/micro/outbound-client.js [messages] [connections] [rounds]
 *
 * Prints a line for each client and round: messages/s and µs of CPU (user + system) of the client process
 * a message. Both clients use the PIPELINING that the sink offers (nodemailer 10.6.0 has it too), so the
 * difference is not one of round trips. Four rounds on a busy 2-core machine, Node 20.20, 10 connections:
 * ours 18.5 to 23.0 µs, nodemailer 33.2 to 40.6 µs. Messages/s swing with the load there and say little.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import SMTPConnection from 'nodemailer/lib/smtp-connection/index.js';
import { DEFAULT_TIMEOUTS } from '../../src/gateway/outbound/pure/session-states.js';
import { DISPATCHER_LIMITS, Dispatcher } from '../../src/gateway/outbound/dispatcher.js';
import { ClientTransport } from '../../src/platform/node/client-transport.js';
import { PasswordFiles } from '../../src/platform/node/password-files.js';
import { DnsClient } from '../../src/platform/node/dns/dns-client.js';
import type { Delivery, DeliveryQueue, DeliverySource, Envelope } from '../../src/gateway/mail-types.js';

const CONTENT = Buffer.from(`From: a@example.org\r\nTo: b@example.net\r\nSubject: bench\r\n\r\n${`${'x'.repeat(74)}\r\n`.repeat(13)}`);
const ENVELOPE: Envelope = {
  messageId: 1, reversePath: 'a@example.org', recipients: [{ address: 'b@example.net', notify: 0, orcpt: '' }],
  flags: 0, ret: 0, envid: '', arrivalWallMs: 0, expiryWallMs: 1e15, client: '', helo: '', queueClass: 'mail', queueName: 'q',
};
const PENDING = [0];
const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** Answers commands by their first letter and looks at a content's end only: as little work as possible. */
function runSink(): void {
  const server = net.createServer({ noDelay: true }, (socket) => {
    let inData = false;
    socket.on('error', () => undefined);
    socket.write('220 sink\r\n');
    socket.on('data', (bytes) => {
      if (inData) {
        if (bytes.indexOf('.\r\n', bytes.length - 3, 'latin1') < 0) return;
        inData = false;
        socket.write('250 2.0.0 taken\r\n');
        return;
      }
      let replies = '';
      for (const line of bytes.toString('latin1').split('\r\n')) {
        if (line.startsWith('EHLO')) replies += '250-sink\r\n250 PIPELINING\r\n';
        else if (line.startsWith('DATA')) { replies += '354 go\r\n'; inData = true; }
        else if (line.startsWith('QUIT')) socket.end('221 bye\r\n');
        else if (line !== '') replies += '250 ok\r\n';
      }
      socket.write(replies);
    });
  });
  server.listen(0, '127.0.0.1', () => { process.send?.((server.address() as AddressInfo).port); });
  process.once('disconnect', () => { process.exit(0); });
}

function runOurs(port: number, messages: number, connections: number): Promise<void> {
  return new Promise((resolve) => {
    let left = messages;
    let ended = 0;
    const queue: DeliveryQueue = {
      route: { queueName: 'q', queueClass: 'mail', label: 'mail/q', nextHop: { protocol: 'smtp', host: '127.0.0.1', port }, ordering: 'fifo', concurrency: connections, lengthMax: messages },
      get readyCount() { return left; },
      bytes: 0,
    };
    const source: DeliverySource = {
      take: () => (left-- > 0 ? { entry: left, queue, envelope: ENVELOPE, reversePath: ENVELOPE.reversePath, pending: PENDING, contentBytes: CONTENT.length } : undefined),
      copyContent: (_delivery: Delivery, target, at, from, bytes) => { target.set(CONTENT.subarray(from, from + bytes), at); },
      settle: (_delivery, result) => {
        if (result.results[0]?.status !== 1) throw new Error(result.results[0]?.text);
        if (++ended === messages) void dispatcher.stop(1000).then(resolve);
      },
    };
    const clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };
    const dispatcher = new Dispatcher(
      {
        ...DISPATCHER_LIMITS, deniedFirstMs: 300_000, deniedMaxMs: 3_600_000, heloName: 'bench', timeouts: DEFAULT_TIMEOUTS, contentBytesPerSecondMin: 500, connectionLifeMs: 300_000, idleMs: 5_000,
        messagesPerConnectionMax: messages, connectionsMax: 5_000,
        sources: [], mx: { ownNames: [], allowsPrivate: false, usesIpv6: false, usesMtaSts: false, connectionsMax: 1, connectionsPerAddressMax: 1 },
      },
      {
        source, transport: new ClientTransport({ readBufferBytes: 8 * 1024 }), resolver: new DnsClient({ resolvers: [], trustsAd: false }, clock), clock, random: Math.random, log: SILENT,
        passwords: new PasswordFiles({ log: SILENT, onRead: () => undefined }),
        policies: undefined, tlsWatch: undefined, mayDot: () => true, onTlsFallback: () => undefined, onDaneFailed: () => undefined, onSlow: () => undefined,
      },
    );
    dispatcher.start();
    dispatcher.onReady(queue);
  });
}

function runNodemailer(port: number, messages: number, connections: number): Promise<void> {
  let left = messages;
  const one = (): Promise<void> => new Promise((resolve, reject) => {
    const connection = new SMTPConnection({ host: '127.0.0.1', port, ignoreTLS: true });
    connection.on('error', reject);
    const next = (): void => {
      if (left-- <= 0) {
        connection.quit();
        resolve();
        return;
      }
      connection.send({ from: 'a@example.org', to: ['b@example.net'] }, CONTENT, (error) => {
        if (error === null) next();
        else reject(error);
      });
    };
    connection.connect(() => { next(); });
  });
  return Promise.all(Array.from({ length: connections }, one)).then(() => undefined);
}

async function measure(name: string, messages: number, run: () => Promise<void>): Promise<void> {
  const cpu = process.cpuUsage();
  const from = performance.now();
  await run();
  const seconds = (performance.now() - from) / 1000;
  const used = process.cpuUsage(cpu);
  console.log(`${name.padEnd(12)} ${Math.round(messages / seconds).toLocaleString('en').padStart(8)} messages/s  ${((used.user + used.system) / messages).toFixed(1).padStart(6)} µs CPU a message (user ${(used.user / messages).toFixed(1)})`);
}

async function main(): Promise<void> {
  const [messages, connections, rounds] = [process.argv[2] ?? 20_000, process.argv[3] ?? 10, process.argv[4] ?? 3].map(Number) as [number, number, number];
  const sink = fork(new URL(import.meta.url), ['sink']);
  const [port] = (await once(sink, 'message')) as [number];
  for (let round = 0; round < rounds; round++) {
    await measure('ours', messages, () => runOurs(port, messages, connections));
    await measure('nodemailer', messages, () => runNodemailer(port, messages, connections));
  }
  sink.disconnect();
}

if (process.argv[2] === 'sink') runSink();
else await main();
