/**
 * Memory has an end, and nothing accepted is lost at it (G7): a dead next hop, and more mail than a limit of
 * 64 MiB holds, first at the gateway, then at the stores. New mail gets 452 4.3.1, processes stay near their
 * size, what was accepted is delivered when the next hop is up, and then new mail is taken again.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import type { SendReport } from '../../src/load/options.js';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster, type Daemon } from './cluster.js';
import type { ClusterOptions } from './cluster-config.js';

const MIB = 1024 * 1024;
const LIMIT = '64MiB';
/** The limit of a gateway is at least five of its largest messages. */
const SIZES = { message_size_limit: '10MiB' };
const MESSAGE_BYTES = 100_000;
/** 100 MB: more than fits, however the limit is divided. */
const COUNT = 1000;
/** Node and our code are 95 MiB at rest; the limit; what a burst leaves in young heap, sockets and allocator. */
const PROCESS_BYTES = (95 + 64 + 96) * MIB;
/** Mail that is refused leaves nothing behind, but what its chunks cost until they are collected. */
const REFUSING_BYTES = 48 * MIB;

async function withCluster(options: ClusterOptions, story: (cluster: Cluster) => Promise<void>): Promise<void> {
  const cluster = await startCluster({ ...options, domains: ['a.example', 'b.example'] });
  try {
    await story(cluster);
  } finally {
    await cluster.stop();
  }
}

function send(cluster: Cluster, log: string, bytes: number, count: number): Promise<SendReport> {
  return runSend({
    host: HOST, port: cluster.smtpPort, count, connections: 20, mix: [{ bytes, weight: 1 }], domains: ['a.example', 'b.example'],
    run: log, log: join(cluster.folder, `${log}.log`),
  });
}

/** The most that the process has had in memory, from the kernel. */
function peakBytes(daemon: Daemon): number {
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8'))?.[1];
  assert.ok(kib !== undefined);
  return Number(kib) * 1024;
}

/** Fills until nothing more is taken, tries again and again, kills one that is full, and lets it all out. */
async function fillAndEmpty(cluster: Cluster, limited: readonly Daemon[]): Promise<void> {
  await cluster.sink.stop();
  const filled = await send(cluster, 'fill', MESSAGE_BYTES, COUNT);
  onlyRefusedForMemory(filled);
  assert.ok(filled.accepted > 200 && filled.refused > 200, JSON.stringify(filled));
  const filledPeaks = limited.map(peakBytes);
  for (const run of ['again', 'and-again']) onlyRefusedForMemory(await send(cluster, run, MESSAGE_BYTES, COUNT));
  const full = await cluster.status();
  assert.ok(full.memory_used_bytes <= full.memory_limit_bytes, JSON.stringify(full));
  for (const store of full.stores) assert.deepEqual([store.up, store.partitions_ng], [true, 0], JSON.stringify(full));
  limited.forEach((daemon, index) => {
    const filledPeak = filledPeaks[index] ?? 0;
    const peak = peakBytes(daemon);
    const text = `${daemon.name} had ${filledPeak} bytes when it was full, and ${peak} after it refused more`;
    assert.ok(peak < PROCESS_BYTES && peak < filledPeak + REFUSING_BYTES, text);
  });
  const first = limited[0];
  assert.ok(first !== undefined);
  await first.kill();
  first.start();
  await first.ready();
  await cluster.inSync(2);
  await until('all is there again', async () => (await cluster.status()).queued_messages === full.queued_messages, 10_000, cluster.gateway);
  cluster.sink.start();
  await cluster.sink.ready();
  await cluster.drained();
  for (const run of ['fill', 'again', 'and-again']) {
    const report = await cluster.verify(join(cluster.folder, `${run}.log`), 19);
    assert.ok(report.ok && report.copies === report.accepted, JSON.stringify(report, undefined, 1));
  }
  await until('new mail is taken again', async () => (await send(cluster, 'after', 1000, 20)).accepted === 20);
  assert.ok(limited.every((daemon) => daemon.isRunning));
}

function onlyRefusedForMemory(sent: SendReport): void {
  assert.deepEqual(Object.keys(sent.replies).filter((reply) => reply !== '250' && reply !== '452'), [], JSON.stringify(sent));
  for (const text of Object.values(sent.samples)) assert.match(text, /^452 4\.3\.1 /);
  assert.equal(sent.accepted + sent.refused, COUNT, JSON.stringify(sent));
}

describe('at a limit of memory', { timeout: 480_000 }, () => {
  test('a gateway answers 452 and delivers what it has', () => withCluster(
    { gateway: { memory: { limit: LIMIT, next_hop: 1 }, smtp: SIZES } },
    (cluster) => fillAndEmpty(cluster, [cluster.gateway]),
  ));

  test('one next hop that is down does not take the room of the others', () => withCluster(
    { gateway: { memory: { limit: LIMIT, next_hop: 0.25 }, smtp: SIZES } },
    async (cluster) => {
      await cluster.sink.stop();
      const filled = await runSend({ host: HOST, port: cluster.smtpPort, count: 400, mix: [{ bytes: MESSAGE_BYTES, weight: 1 }], domains: ['a.example'] });
      assert.ok(filled.accepted > 100 && filled.refused > 100, JSON.stringify(filled));
      const other = await runSend({ host: HOST, port: cluster.smtpPort, count: 50, mix: [{ bytes: MESSAGE_BYTES, weight: 1 }], domains: ['b.example'] });
      assert.equal(other.accepted, 50, JSON.stringify(other));
    },
  ));

  test('many large messages at once stay within it, the process and all; each is delivered by trying again', () => withCluster(
    { gateway: { memory: { limit: '512MiB' }, smtp: { connections_per_client: 200 } } },
    async (cluster) => {
      const count = 240;
      const sent = await runSend({ host: HOST, port: cluster.smtpPort, count, connections: 120, mix: [{ bytes: 4_900_000, weight: 1 }], domains: ['a.example', 'b.example'], resend: true });
      assert.equal(sent.accepted, count, JSON.stringify(sent));
      await cluster.sinkHas(count, 30_000);
      const peak = peakBytes(cluster.gateway);
      assert.ok(peak <= 512 * MIB, `${String(Math.round(peak / MIB))} MiB`);
    },
  ));

  test('stores grant no more credit: 452 again, and no mirror is given up', () => withCluster(
    { store: { memory: { limit: LIMIT } } },
    (cluster) => fillAndEmpty(cluster, cluster.stores),
  ));
});
