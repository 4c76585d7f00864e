/**
 * A gateway takes over three times what its memory limit is, once as large bodies, once as envelopes of many recipients,
 * to a next hop that is slow; and is killed in the middle of it. Nothing is lost, order is kept, and the process stays
 * near its limit (G2, G3, G7).
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { crc32 } from 'node:zlib';

import { MarkTemplate } from '../../src/load/marks.js';
import { runSend } from '../../src/load/run.js';
import type { SendRecord } from '../../src/load/send-log.js';
import { TAKEN, verifyRun, type Arrival, type VerifyReport } from '../../src/sink/verify.js';
import { HOST, pause, startCluster, until, type Cluster, type Daemon } from './cluster.js';
import { muteServer } from './mute-server.js';

const MIB = 1024 * 1024;
const LIMIT_BYTES = 64 * MIB;
const BEYOND_BYTES = 3 * LIMIT_BYTES;
const LEASE_MS = 4_000;
const MIRROR = { lease: `${String(LEASE_MS)}ms`, failover_timeout: '200ms', heartbeat: '50ms' };
const CONCURRENCY = 10;
/**
 * Node and our code at rest; the limit; young heap with envelopes of many recipients read, sockets and allocator
 * (292 MiB were seen). Did it keep what it takes over, it were 192 MiB more than at rest without any of that.
 */
const PROCESS_BYTES = (95 + 64 + 176) * MIB;
const BOUND_MS = 150_000;
const DOMAIN = `${'d'.repeat(60)}.${'e'.repeat(60)}.example`;
const BODY_BYTES = 100_000;
const RECIPIENTS = 100;
/** As long as RFC 3461 4.2 allows. */
const ORCPT = `rfc822;${'o'.repeat(480)}`;
const ENVELOPE_BYTES = RECIPIENTS * 680;
const RUN = '5f3a9c01';

/** The smallest that there is; the largest message is less than a fifth of it. */
const SMALL = { memory: { limit: '64MiB', next_hop: 1 }, smtp: { message_size_limit: '10MiB' } };

async function clusterOf(t: { after(run: () => void | Promise<void>): void }): Promise<Cluster> {
  const mute = await muteServer(t);
  const cluster = await startCluster({
    gateways: 2, group: true, domains: [DOMAIN], arrivalLog: true, sinkArguments: ['--latency', '10ms'],
    mapSinkPort: (port, gateway) => (gateway === 0 ? mute : port), store: { lease: MIRROR.lease },
    gateway: { mirror: MIRROR, delivery: { concurrency: CONCURRENCY } },
    gatewayOf: (gateway) => (gateway === 0 ? { memory: { limit: '1GiB', next_hop: 1 }, smtp: { message_size_limit: '10MiB' } } : SMALL),
  });
  t.after(() => cluster.stop());
  return cluster;
}

/** The most that the process has had in memory, from the kernel. */
function peakBytes(daemon: Daemon): number {
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8'))?.[1];
  return Number(kib ?? assert.fail('it runs')) * 1024;
}

/** The first gateway dies for good, the second goes on, and dies once in the middle. */
async function takenOver(cluster: Cluster, count: number): Promise<void> {
  const [dead, taker] = cluster.gateways;
  assert.ok(dead !== undefined && taker !== undefined);
  const { queued_bytes: queuedBytes, queued_messages: queued } = await dead.status();
  assert.ok(queued === count && queuedBytes > BEYOND_BYTES, `${String(queued)} messages of ${String(queuedBytes)} bytes`);
  await dead.gateway.kill();
  await cluster.sinkHas(Math.floor(count / 3), BOUND_MS);
  assert.ok(peakBytes(taker.gateway) < PROCESS_BYTES, `${String(peakBytes(taker.gateway) / MIB)} MiB before it is killed`);
  await taker.gateway.kill();
  taker.gateway.start();
  await taker.gateway.ready();
  await cluster.sinkHas(count, BOUND_MS);
  let most = 0;
  await until('nothing is left', async () => {
    const status = await taker.status();
    most = Math.max(most, status.memory_used_bytes);
    return status.queued_messages === 0;
  }, BOUND_MS, taker.gateway);
  assert.ok(most <= LIMIT_BYTES, `${String(most)} bytes`);
  assert.ok(peakBytes(taker.gateway) < PROCESS_BYTES, `${String(peakBytes(taker.gateway) / MIB)} MiB`);
}

/** Each message once, but for those in flight at the kill; whole, to all its recipients; in order. */
function judge(cluster: Cluster, records: readonly SendRecord[]): void {
  const arrivals: Arrival[] = [];
  for (const line of readFileSync(cluster.arrivalLog, 'utf8').trimEnd().split('\n')) {
    const arrival = JSON.parse(line) as Arrival & { readonly to: readonly string[] };
    if (arrival.kind === TAKEN) assert.equal(new Set(arrival.to).size, RECIPIENTS, line);
    arrivals.push(arrival);
  }
  const log = { run: RUN, count: records.length, records };
  check(verifyRun(log, arrivals, { displacementMax: CONCURRENCY - 1 }), records.length);
}

function check(report: VerifyReport, count: number): void {
  const text = JSON.stringify(report);
  assert.equal(report.arrived, count, text);
  for (const fault of ['lost', 'altered', 'resurrected', 'outOfOrder', 'unknown'] as const) {
    assert.equal(report[fault].count, 0, `${fault}: ${text}`);
  }
  // In flight at the kill: those before their reply, and those answered in the turn whose deletions did not leave.
  assert.ok(report.duplicated.count <= 2 * CONCURRENCY, text);
}

/** Counts replies, of which none may be a refusal. */
class Client {
  readonly #socket: Socket;
  #rest = '';
  #left = 1;
  #done: (() => void) | undefined;
  #refused = '';

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1');
    socket.on('error', () => undefined);
    socket.on('data', (text: string) => {
      const lines = (this.#rest + text).split('\r\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) {
        if (!/^[23]/.test(line)) this.#refused = line;
        if (line[3] === ' ') this.#left -= 1;
      }
      if (this.#left === 0) this.#done?.();
    });
    socket.on('close', () => {
      this.#refused ||= 'the connection ended';
      this.#done?.();
    });
  }

  static async start(port: number): Promise<Client> {
    const client = new Client(connect({ host: HOST, port }));
    await client.#replies();
    await client.ask('EHLO many.example\r\n', 1);
    return client;
  }

  async ask(text: string, replies: number): Promise<void> {
    this.#left = replies;
    this.#socket.write(text, 'latin1');
    await this.#replies();
  }

  end(): void {
    this.#socket.end('QUIT\r\n');
  }

  async #replies(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#done = resolve;
      if (this.#left === 0) resolve();
    });
    assert.equal(this.#refused, '');
  }
}

/** As many messages as that, each to many, over a few connections; small bodies. What was sent when, by our clock. */
async function sendEnvelopes(port: number, count: number): Promise<readonly SendRecord[]> {
  const template = new MarkTemplate(RUN, DOMAIN);
  const rest = Buffer.from('Subject: many\r\n\r\nto many\r\n', 'latin1');
  const recipients = Array.from({ length: RECIPIENTS }, (_none, i) => `RCPT TO:<${String(i).padStart(60, 'r')}@${DOMAIN}> ORCPT=${ORCPT}\r\n`).join('');
  const records: SendRecord[] = [];
  let next = 0;
  const one = async (): Promise<void> => {
    const client = await Client.start(port);
    while (next < count) {
      next += 1;
      const id = next;
      const content = Buffer.alloc(template.bytes.length);
      const hash = template.stamp(content, 0, id, id, crc32(rest));
      await client.ask(`MAIL FROM:<>\r\n${recipients}DATA\r\n`, RECIPIENTS + 2);
      const dot = performance.now();
      await client.ask(`${content.toString('latin1')}${rest.toString('latin1')}.\r\n`, 1);
      records.push({ id, queue: DOMAIN, serial: id, dot, reply: performance.now(), code: 250, hash });
    }
    client.end();
  };
  await Promise.all(Array.from({ length: 4 }, one));
  return records;
}

describe('more than its memory holds', { timeout: 1200_000 }, () => {
  test('is taken over and delivered: large bodies', async (t) => {
    const cluster = await clusterOf(t);
    const count = Math.ceil(1.05 * BEYOND_BYTES / BODY_BYTES);
    const sendLog = join(cluster.folder, 'send.jsonl');
    const sent = await runSend({
      host: HOST, port: cluster.smtpPort, count, connections: 10, mix: [{ bytes: BODY_BYTES, weight: 1 }], domains: [DOMAIN], resend: true, log: sendLog,
    });
    assert.equal(sent.accepted, count, JSON.stringify(sent));
    await takenOver(cluster, count);
    check(await cluster.verify(sendLog, CONCURRENCY - 1), count);
  });

  test('is taken over and delivered: small messages with many recipients', async (t) => {
    const cluster = await clusterOf(t);
    const count = Math.ceil(1.05 * BEYOND_BYTES / ENVELOPE_BYTES);
    const records = await sendEnvelopes(cluster.smtpPort, count);
    await takenOver(cluster, count);
    await pause(100);
    await cluster.sink.stop();
    judge(cluster, records);
  });
});
