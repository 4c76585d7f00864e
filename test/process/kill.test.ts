/**
 * The promise as a whole: 20,000 messages in several queues while SIGKILL hits the gateway three times and
 * each store once, mid-stream. Judged from outside by three witnesses:
 *
 *   the sender's log   what was promised, and when
 *   the sink           nothing lost, altered, or delivered that was refused; order kept (sink/verify.ts)
 *   the links          every 2xx came after the acknowledgements of the mirrors; every repeat was in flight
 *                      when the gateway was killed (link-judge.ts)
 *
 * Each kill waits until every queue is in sync at both stores: one dead process at a time is what is
 * promised; a store that is being refilled does not count as a mirror yet.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { readSendLog } from '../../src/load/send-log.js';
import { CUT, TAKEN } from '../../src/sink/verify.js';
import { HOST, startCluster, type Cluster, type Daemon } from './cluster.js';
import { LinkJudge, type Copy } from './link-judge.js';

const STRICT = 'strict.example';
const DOMAINS = ['a.example', 'b.example', 'c.example', 'd.example', STRICT];
const CONCURRENCY = 20;
const COUNT = 20_000;
const MIX = [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }];
/** The sink answers a final dot after this, so that there is mail in flight and queued at each kill. */
const LATENCY = '3ms';
/** Slow enough that all five kills fall into the stream, on slow machines too. */
const RATE = 1500;

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
const GATEWAY_KILLS = 3;

function storeOf(cluster: Cluster, index: number): Daemon {
  const store = cluster.stores[index];
  assert.ok(store !== undefined);
  return store;
}

/** Kills one process after another; how many messages were accepted comes from the sender. */
class Killer {
  readonly #cluster: Cluster;
  readonly #judge: LinkJudge;
  killed = 0;
  #working: Promise<void> = Promise.resolve();
  #isWorking = false;
  #error: unknown;

  constructor(cluster: Cluster, judge: LinkJudge) {
    this.#cluster = cluster;
    this.#judge = judge;
  }

  /** Starts the next kill if it is due and the last one is over. */
  onProgress(accepted: number): void {
    const next = KILLS[this.killed];
    if (next === undefined || this.#isWorking || accepted < next.at * COUNT) return;
    this.#isWorking = true;
    this.#working = this.#kill(next.victim(this.#cluster)).catch((error: unknown) => { this.#error ??= error; });
  }

  async done(): Promise<void> {
    await this.#working;
    if (this.#error !== undefined) throw this.#error;
    assert.equal(this.killed, KILLS.length, 'the stream was over before the last kill');
    await this.#cluster.inSync(DOMAINS.length);
  }

  async #kill(victim: Daemon): Promise<void> {
    await this.#cluster.inSync(DOMAINS.length);
    if (victim === this.#cluster.gateway) this.#judge.noteGatewayKill();
    await victim.kill();
    this.killed++;
    victim.start();
    await victim.ready();
    this.#isWorking = false;
  }
}

describe('mail survives the death of any one process at any instant', () => {
  test('20,000 messages, the gateway killed three times and each store once', { timeout: 360_000 }, async () => {
    await witnessed(async (cluster, judge) => {
      const killer = new Killer(cluster, judge);
      const log = join(cluster.folder, 'send.log');
      const sent = await runSend({
        host: HOST, port: cluster.smtpPort, count: COUNT, connections: 20, rate: RATE, mix: MIX, domains: DOMAINS, resend: true, nameEnvelopes: true, log,
        onProgress: ({ accepted }) => { killer.onProgress(accepted); },
      });
      await killer.done();
      assert.equal(sent.accepted, COUNT, JSON.stringify(sent));
      await cluster.drained(60_000);
      await judgeBySink(cluster, log);
      await judgeByLinks(cluster, judge, log);
    });
  });
});

async function witnessed(story: (cluster: Cluster, judge: LinkJudge) => Promise<void>): Promise<void> {
  const judge = await LinkJudge.start(2);
  try {
    const cluster = await startCluster({
      domains: DOMAINS, strictDomains: [STRICT], gateway: { delivery: { concurrency: CONCURRENCY } },
      mapStorePort: judge.mapStorePort, arrivalLog: true, sinkArguments: ['--latency', LATENCY],
    });
    try {
      await story(cluster, judge);
    } finally {
      await cluster.stop();
    }
  } finally {
    await judge.close();
  }
}

async function judgeBySink(cluster: Cluster, log: string): Promise<void> {
  const report = await cluster.verify(log, CONCURRENCY - 1);
  const text = JSON.stringify(report, undefined, 1);
  assert.deepEqual([report.accepted, report.arrived, report.complete], [COUNT, COUNT, true], text);
  for (const fault of ['lost', 'altered', 'resurrected', 'unknown', 'outOfOrder'] as const) assert.equal(report[fault].count, 0, text);
  const strictLog = join(cluster.folder, 'strict.log');
  const lines = readFileSync(log, 'utf8').split('\n');
  writeFileSync(strictLog, `${lines.filter((line, index) => index === 0 || line.includes(`"queue":"${STRICT}"`)).join('\n')}\n`);
  const strict = await cluster.verify(strictLog, 0);
  assert.equal(strict.accepted, COUNT / DOMAINS.length);
  assert.deepEqual(strict.outOfOrder, { count: 0, examples: [] });
}

async function judgeByLinks(cluster: Cluster, judge: LinkJudge, log: string): Promise<void> {
  assert.deepEqual(judge.problems, []);
  await judge.readLogs(cluster);
  const replies = judge.earlyReplies(readSendLog(log));
  assert.deepEqual(replies, { judged: COUNT, early: 0, examples: [] });
  const repeats = judge.duplicates(copiesIn(cluster.arrivalLog));
  assert.equal(repeats.unexplained, 0, JSON.stringify(repeats, undefined, 1));
  // The last queue has one in flight.
  const inFlightMost = GATEWAY_KILLS * ((DOMAINS.length - 1) * CONCURRENCY + 1);
  assert.ok(repeats.repeated <= inFlightMost, `${repeats.repeated} messages were repeated, ${inFlightMost} can have been in flight`);
}

function copiesIn(arrivalLog: string): Copy[] {
  const copies: Copy[] = [];
  for (const line of readFileSync(arrivalLog, 'utf8').split('\n')) {
    if (line === '') continue;
    const { run, id, us, kind } = JSON.parse(line) as Copy & { readonly kind: number };
    if (kind === TAKEN || kind === CUT) copies.push({ run, id, us });
  }
  return copies;
}
