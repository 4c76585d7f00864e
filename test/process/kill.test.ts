/**
 * The promise as a whole: 20,000 messages in several queues while SIGKILL hits the gateway three times and
 * each store once, mid-stream. Judged by what the sender was told and what the sink got (sink/verify.ts):
 * nothing lost, nothing altered, nothing delivered that was refused, order kept, and no more copies than
 * deliveries can have been in flight at a kill (G1 to G4, G9).
 *
 * Each kill waits until every queue is in sync at both stores: one dead process at a time is what is
 * promised; a store that is being refilled does not count as a mirror yet.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { startCluster, type Cluster, type Daemon } from './cluster.js';

const DOMAINS = ['a.example', 'b.example', 'c.example', 'd.example', 'e.example'];
const COUNT = 20_000;
/** Slow enough that all five kills fall into the stream, on slow machines too. */
const RATE = 2500;
const GATEWAY_KILLS = 3;

interface Kill {
  /** When this share of all messages was accepted. */
  readonly at: number;
  victim(cluster: Cluster): Daemon;
}

const KILLS: readonly Kill[] = [
  { at: 0.1, victim: (cluster) => cluster.gateway },
  { at: 0.25, victim: (cluster) => storeOf(cluster, 0) },
  { at: 0.4, victim: (cluster) => cluster.gateway },
  { at: 0.55, victim: (cluster) => storeOf(cluster, 1) },
  { at: 0.7, victim: (cluster) => cluster.gateway },
];

function storeOf(cluster: Cluster, index: number): Daemon {
  const store = cluster.stores[index];
  assert.ok(store !== undefined);
  return store;
}

/** Kills one process after another; how many messages were accepted comes from the sender. */
class Killer {
  readonly #cluster: Cluster;
  #accepted = 0;
  killed = 0;
  #working: Promise<void> = Promise.resolve();
  #isWorking = false;
  #error: unknown;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Starts the next kill if it is due and the last one is over. */
  onProgress(accepted: number): void {
    this.#accepted = accepted;
    const next = KILLS[this.killed];
    if (next === undefined || this.#isWorking || this.#accepted < next.at * COUNT) return;
    this.#isWorking = true;
    this.#working = this.#kill(next.victim(this.#cluster)).catch((error: unknown) => {
      this.#error = error;
    });
  }

  async done(): Promise<void> {
    await this.#working;
    if (this.#error !== undefined) throw this.#error;
    await this.#cluster.inSync(DOMAINS.length);
  }

  async #kill(victim: Daemon): Promise<void> {
    await this.#cluster.inSync(DOMAINS.length);
    await victim.kill();
    this.killed++;
    victim.start();
    await victim.ready();
    this.#isWorking = false;
  }
}

async function survive(order: 'fifo' | 'strict', concurrency: number): Promise<void> {
  const cluster = await startCluster({ domains: DOMAINS, gateway: { delivery: { order, concurrency } } });
  try {
    const killer = new Killer(cluster);
    const log = join(cluster.folder, 'send.log');
    const mix = [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }];
    const sent = await runSend({
      host: '127.0.0.1', port: cluster.smtpPort, count: COUNT, connections: 20, rate: RATE, mix, domains: DOMAINS, resend: true, log,
      onProgress: ({ accepted }) => killer.onProgress(accepted),
    });
    await killer.done();
    assert.equal(killer.killed, KILLS.length, 'the stream was over before the last kill');
    assert.equal(sent.accepted, COUNT, JSON.stringify(sent));
    await cluster.sinkHas(COUNT, 60_000);
    await drained(cluster, log, concurrency);
    const report = await cluster.verify(log, concurrency - 1);
    const text = JSON.stringify(report, undefined, 1);
    assert.equal(report.accepted, COUNT, text);
    assert.equal(report.arrived, COUNT, text);
    assert.equal(report.lost.count, 0, text);
    assert.equal(report.altered.count, 0, text);
    assert.equal(report.resurrected.count, 0, text);
    assert.equal(report.unknown.count, 0, text);
    assert.equal(report.outOfOrder.count, 0, text);
    // Only the death of the gateway repeats deliveries; a store's does not.
    assert.ok(report.duplicated.count <= GATEWAY_KILLS * DOMAINS.length * concurrency, text);
  } finally {
    await cluster.stop();
  }
}

/** Repeats may make the sink's count reach COUNT before the last message is there. */
async function drained(cluster: Cluster, log: string, concurrency: number): Promise<void> {
  for (let look = 0; look < 40; look++) {
    if ((await cluster.verify(log, concurrency - 1)).lost.count === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

describe('mail survives the death of any one process at any instant', () => {
  test('fifo: nothing lost, order kept within the concurrency', () => survive('fifo', 20));
  test('strict: nothing lost, order kept exactly', () => survive('strict', 1));
});
