/**
 * A night of an operator who does away with the mail of one sender out of much other mail, while clients go on: it is
 * quick, its progress is told, the memory is back, and clients hardly feel it. As in test/operator/stories.test.ts the
 * words and commands are those of docs/RUNBOOK.md. `npm run bench -- queues` measures the same at any size.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSend } from '../../src/load/run.js';
import type { SendReport } from '../../src/load/options.js';
import { HOST, pause, startCluster, until, type GatewayHandle } from '../process/cluster.js';
import { twinpost } from '../process/twinpost.js';
import { Story, sized } from './story.js';

/** At full size 100,000 of 1,000,000 go. */
const ALL = sized(10_000, 1_000_000);
const OF_SENDER = ALL / 10;
const SENDER = 'robot@client.example';
/** Each, so that it shows in the memory. */
const SENDER_BYTES = sized(40_000, 1_000);
/** Less than so much in sparse blocks is not worth a move (src/base/segments.ts). */
const SPARSE_BYTES = 5 * 1024 * 1024;
/** The heap of a process that has just begun grows by itself. */
const YOUNG_BYTES = sized(16 * 1024 * 1024, 0);
const BOUND_MS = 10_000;
/** More often it would be felt by itself. */
const LOOK_MS = 50;
const RATE = 100;
const LOAD_SECONDS = 5;

interface OrderSeen {
  readonly verb: string;
  readonly phase: string;
  readonly matched: number;
  readonly done: number;
}

interface Memory {
  readonly usedBytes: number;
  readonly residentBytes: number;
}

async function memoryOf({ adminPort, status }: GatewayHandle): Promise<Memory> {
  const metrics = await (await fetch(`http://${HOST}:${String(adminPort)}/metrics`)).text();
  const read = (name: string): number => Number(new RegExp(`^twinpost_${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
  // Less the empty blocks that are kept for the next burst.
  const residentBytes = read('resident_bytes') - read('memory_kept_bytes');
  return { usedBytes: (await status()).memory_used_bytes, residentBytes };
}

function load({ smtpPort }: GatewayHandle): Promise<SendReport> {
  return runSend({ host: HOST, port: smtpPort, count: RATE * LOAD_SECONDS, rate: RATE, connections: 5, domains: ['live.example'] });
}

test('an operator does away with the mail of one sender under load', { timeout: sized(300_000, 3_600_000) }, async (t) => {
  const cluster = await startCluster({
    gateways: 2, group: true, stores: 3, domains: ['shop.example', 'live.example'],
    // The ring keeps the last changes for mirrors, whatever became of the mail: it would hide what is given back.
    gateway: { memory: { limit: sized('512MiB', '4GiB') }, mirror: { ring: '1MiB' } }, store: { memory: { limit: sized('512MiB', '8GiB') } },
  });
  try {
    const { gateways } = cluster;
    const story = new Story('removal', cluster);
    // The document has the size of CI.
    story.call(String(OF_SENDER), '1000');
    const place = ['--from', `${HOST}:${String(cluster.adminPort)}`];
    const suspended = await twinpost(['queue', 'suspend', 'shop.example', '--reason', 'their server is slow', ...place]);
    assert.equal(suspended.code, 0, suspended.error);
    const fill = async (count: number, from: string, bytes: number): Promise<void> => {
      for (const { smtpPort } of gateways) await runSend({ host: HOST, port: smtpPort, count: count / gateways.length, connections: 20, from, domains: ['shop.example'], mix: [{ bytes, weight: 1 }] });
    };
    await fill(ALL - OF_SENDER, 'shop@client.example', 1_000);
    const alone = await Promise.all(gateways.map(load));
    const before = await Promise.all(gateways.map(memoryOf));
    await fill(OF_SENDER, SENDER, SENDER_BYTES);
    await until('all waits', async () => (await Promise.all(gateways.map((each) => each.status()))).reduce((sum, { queued_messages: count }) => sum + count, 0) === ALL, 30_000);

    const full = await Promise.all(gateways.map(memoryOf));
    const loads = gateways.map(load);
    const seen = gateways.map((): OrderSeen[] => []);
    const look = { isOver: false };
    const looking = Promise.all(gateways.map(async ({ adminPort }, index) => {
      while (!look.isOver) {
        const { orders } = await (await fetch(`http://${HOST}:${String(adminPort)}/api/v1/orders`)).json() as { readonly orders: readonly OrderSeen[] };
        seen[index]?.push(...orders.filter(({ verb }) => verb === 'delete'));
        await pause(LOOK_MS);
      }
    }));
    const logs = gateways.map(({ gateway }) => ({ gateway, bytes: gateway.logBytes }));
    story.tell('A program of a customer has gone wild, and its mail stands among all the other mail of a queue. `--expect` says how many it should be; the rest of the queue, and clients, go on:');
    const gone = await story.type(['queue', 'delete', '--sender', SENDER, '--expect', String(OF_SENDER), '--now', '--reason', 'a program went wild'], (line) => !line.startsWith('  '));
    look.isOver = true;
    await looking;
    const count = OF_SENDER.toLocaleString('en');
    assert.deepEqual([gone.code, gone.out.includes(`${count} of ${count} deleted`)], [0, true], gone.out + gone.error);
    for (const { gateway, bytes } of logs) {
      const times = gateway.logSince(bytes).split('\n').filter((line) => line.includes('"event":"order"')).map((line) => Date.parse((JSON.parse(line) as { readonly time: string }).time));
      const tookMs = Math.max(...times) - Math.min(...times);
      t.diagnostic(`${gateway.name}: ${String(tookMs)} ms by its log`);
      assert.ok(times.length === 2 && tookMs <= BOUND_MS, `${gateway.name} took ${String(tookMs)} ms`);
    }
    for (const orders of seen) {
      const told = orders.map(({ done }) => done);
      assert.ok(told.every((done, index) => done >= (told[index - 1] ?? 0)), 'progress goes one way');
      t.diagnostic(`${String(orders.length)} looks, ${String(new Set(told).size)} different counts, phases ${[...new Set(orders.map(({ phase }) => phase))].join(', ')}`);
      assert.ok(orders.length > 0 && orders.every(({ matched }) => matched <= OF_SENDER / gateways.length));
    }
    const beside = await Promise.all(loads);
    for (const [index, report] of beside.entries()) {
      const [p99, calm] = [report.responseMs.p99, alone[index]?.responseMs.p99 ?? NaN];
      t.diagnostic(`p99 of the 250: ${p99.toFixed(1)} ms beside, ${calm.toFixed(1)} ms without, ratio ${(p99 / calm).toFixed(2)}`);
      assert.deepEqual(report.replies, { 250: RATE * LOAD_SECONDS });
    }
    await until('what is live has left', async () => (await Promise.all(gateways.map((each) => each.status()))).reduce((sum, { queued_messages: left }) => sum + left, 0) === ALL - OF_SENDER, 30_000);
    for (const [index, each] of gateways.entries()) {
      const { usedBytes = NaN, residentBytes = NaN } = before[index] ?? {};
      const most = full[index]?.usedBytes ?? NaN;
      const isBack = async (): Promise<boolean> => (await memoryOf(each)).usedBytes - usedBytes <= SPARSE_BYTES + 0.05 * (most - usedBytes);
      await until('its memory is back', isBack, 30_000);
      const now = await memoryOf(each);
      t.diagnostic(`${each.id}: used ${String(usedBytes)} before, ${String(most)} with it, ${String(now.usedBytes)} after; resident ${String(residentBytes)} before, ${String(now.residentBytes)} after`);
      assert.ok(now.residentBytes <= 1.1 * residentBytes + YOUNG_BYTES, `resident ${String(now.residentBytes / residentBytes)} of what it was`);
    }
    story.end();
  } finally {
    await cluster.stop();
  }
});
