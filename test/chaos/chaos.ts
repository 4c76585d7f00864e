/**
 * A whole Twinpost under load while faults strike by a seed, and the verdict at the end: nothing lost,
 * altered, or refused but delivered; order kept in each queue; every 2xx after its mirrors; each repeat
 * explained by a named window.
 *
 *   client 1 ─► gateway-1 ─┬─ proxies ─► store-a, store-b, store-c
 *   client 2 ─► gateway-2 ─┘                                         both ─► sink (the witness)
 *
 * A fault strikes every everyMs, whether or not the one before is over; those that lose memory wait until
 * the partitions are in sync again. The sink stands still at times but is never killed: its log is evidence.
 * Faults end with the time; then the clients finish, the queues drain, and the judges read (witnesses.ts).
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { startLoneSink } from '../../bench/processes.js';
import { Prng } from '../../src/base/prng.js';
import type { SendOptions, SendReport } from '../../src/load/options.js';
import { runSend } from '../../src/load/run.js';
import { HOST, pause, startCluster, until, type Cluster, type Daemon } from '../process/cluster.js';
import { LinkJudge } from '../process/link-judge.js';
import { judgeRun } from '../process/witnesses.js';
import { BULK_DOMAIN, strike, type Field } from './blows.js';
import type { ChaosEvent, ChaosOptions, ChaosReport } from './options.js';

const DOMAINS = ['a.example', 'b.example', 'c.example', 'd.example'];
const MIX = [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }];
const CONCURRENCY = 20;
const CONNECTIONS = 10;
const WARM_COUNT = 4000;
/** When the faults are over, so long for the clients to finish and for the queues to drain. */
const END_MS = 180_000;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const judge = await LinkJudge.start(options.stores, options.gateways, options.seed);
  try {
    const bulk = await startLoneSink();
    try {
      const cluster = await startCluster({
        gateways: options.gateways, stores: options.stores, domains: DOMAINS, group: options.rescue,
        gateway: {
          delivery: { concurrency: CONCURRENCY }, memory: { limit: '512MiB', next_hop: 1 },
          // Odd seeds: what waits for a silent store is refused, and withdrawn, before the store counts as lost (G9).
          mirror: { commit_timeout: options.seed % 2 === 0 ? '20s' : '3s' },
        },
        // Small enough to be filled in a moment.
        store: { memory: { limit: '192MiB' } },
        routes: [{ domain: BULK_DOMAIN, via: `smtp://${HOST}:${bulk.port}` }],
        mapStorePort: judge.mapStorePort, arrivalLog: true, sinkArguments: ['--latency', '2ms'],
      });
      try {
        return await new ChaosRun(options, cluster, judge, bulk.daemon).run();
      } finally {
        await cluster.stop();
      }
    } finally {
      bulk.daemon.thaw();
      await bulk.stop();
    }
  } finally {
    await judge.close();
  }
}

class ChaosRun {
  readonly #options: ChaosOptions;
  readonly #cluster: Cluster;
  readonly #judge: LinkJudge;
  readonly #prng: Prng;
  readonly #field: Field;
  readonly #timeline: ChaosEvent[] = [];
  readonly #faults: Record<string, number> = {};
  readonly #endedAlone: string[] = [];
  readonly #acceptedEachSecond: number[] = [];
  readonly #accepted: number[] = [];
  readonly #sendLogs: string[] = [];
  #startMs = performance.now();
  #over = false;

  constructor(options: ChaosOptions, cluster: Cluster, judge: LinkJudge, bulkSink: Daemon) {
    this.#options = options;
    this.#cluster = cluster;
    this.#judge = judge;
    this.#prng = new Prng(options.seed);
    this.#field = { cluster, judge, prng: this.#prng.fork(), bulkSink, rescue: options.rescue, busy: new Set(), say: (what) => { this.#say(what); } };
  }

  async run(): Promise<ChaosReport> {
    const capacity = this.#options.rate === undefined ? await this.#capacity() : undefined;
    const rate = this.#options.rate ?? Math.round((capacity ?? 0) / 2);
    this.#say(`${rate} messages a second over ${this.#cluster.gateways.length} gateways${capacity === undefined ? '' : `, half of ${Math.round(capacity)}`}`);
    this.#startMs = performance.now();
    const clients = this.#startClients(Math.max(1, Math.round(rate / this.#cluster.gateways.length)), this.#options.seconds);
    const watch = this.#watch();
    await this.#strikeUntilOver();
    this.#over = true;
    await watch;
    const sent = await Promise.all(clients);
    this.#say('the clients are done');
    await this.#drain();
    const code = await this.#cluster.sink.stop(END_MS);
    assert.notEqual(code, -1, 'the sink had to be killed: its log may lack arrivals');
    const verdict = await judgeRun(this.#judge, this.#cluster, { arrivalLog: this.#cluster.arrivalLog, sendLogs: this.#sendLogs, concurrency: CONCURRENCY });
    const worst = (of: (report: SendReport) => number): number => Math.max(...sent.map(of));
    const unfinished = sent.filter((report) => report.accepted !== report.count);
    if (unfinished.length > 0) throw new Error(`clients gave up: ${JSON.stringify(unfinished, undefined, 1)}\n${this.#cluster.gateways.map((each) => each.gateway.logTail()).join('\n')}`);
    return {
      seed: this.#options.seed, seconds: this.#options.seconds, capacityPerSecond: capacity, ratePerSecond: rate,
      faults: this.#faults, takeovers: this.#takeovers(), replies: summed(sent), acceptedEachSecond: this.#acceptedEachSecond, endedAlone: this.#endedAlone, verdict, timeline: this.#timeline,
      responseMs: { p50: worst((each) => each.responseMs.p50), p99: worst((each) => each.responseMs.p99), max: worst((each) => each.responseMs.max) },
    };
  }

  /** What the gateways take together, without faults: on this machine, with the proxies and judges at work. */
  async #capacity(): Promise<number> {
    const sent = await Promise.all(this.#cluster.gateways.map((_gateway, index) => this.#send(index, 'warm', { count: WARM_COUNT })));
    await Promise.all(this.#cluster.gateways.map((gateway) => gateway.drained()));
    return sent.reduce((sum, report) => sum + report.acceptedPerSecond, 0);
  }

  #startClients(rate: number, seconds: number): Promise<SendReport>[] {
    return this.#cluster.gateways.map((_gateway, index) => this.#send(index, 'chaos', {
      count: rate * seconds, rate,
      onProgress: ({ accepted }) => { this.#accepted[index] = accepted; },
    }));
  }

  #send(index: number, what: string, more: Pick<SendOptions, 'count' | 'rate' | 'onProgress'>): Promise<SendReport> {
    const log = join(this.#cluster.folder, `${what}-${index}.log`);
    this.#sendLogs.push(log);
    return runSend({
      host: HOST, port: this.#cluster.gateways[index]?.smtpPort ?? 0, connections: CONNECTIONS, mix: MIX, domains: DOMAINS, resend: true,
      run: `${what}${index}`, seed: this.#options.seed + index, patienceMs: END_MS, log, nameEnvelopes: true, ...more,
    });
  }

  async #strikeUntilOver(): Promise<void> {
    const { kinds, everyMs, seconds } = this.#options;
    const running = new Set<Promise<void>>();
    const errors: unknown[] = [];
    for (let atMs = everyMs; atMs < seconds * 1000; atMs += everyMs) {
      await pause(Math.max(0, this.#startMs + atMs - performance.now()));
      const kind = this.#prng.pick(kinds);
      const blow = this.#blow(kind).catch((error: unknown) => { errors.push(error); }).finally(() => running.delete(blow));
      running.add(blow);
    }
    await pause(Math.max(0, this.#startMs + seconds * 1000 - performance.now()));
    await Promise.all(running);
    if (errors.length > 0) throw errors[0];
  }

  async #blow(kind: ChaosOptions['kinds'][number]): Promise<void> {
    const struck = await strike(kind, this.#field);
    if (struck) this.#faults[kind] = (this.#faults[kind] ?? 0) + 1;
    else this.#say(`${kind}: not now, another fault is not over`);
  }

  /** Once a second: counts, and starts what ended by itself, as a supervisor would. */
  async #watch(): Promise<void> {
    let before = 0;
    while (!this.#over) {
      await pause(1000);
      const sum = this.#accepted.reduce((total, accepted) => total + accepted, 0);
      this.#acceptedEachSecond.push(sum - before);
      before = sum;
      this.#superviseAll();
    }
  }

  #superviseAll(): void {
    const all = [...this.#cluster.gateways.map((each) => each.gateway), ...this.#cluster.stores];
    for (const daemon of all) {
      if (daemon.isRunning || this.#field.busy.has(daemon)) continue;
      this.#say(`${daemon.name} has ended by itself and is started again`);
      // One that was replaced while it stood still must end; anything else is a crash.
      if (!/fenced/i.test(daemon.logTail())) this.#endedAlone.push(`${daemon.name}\n${daemon.logTail()}`);
      daemon.start();
    }
  }

  /** Partitions that a gateway took over from another, and the messages in them, by their logs. */
  #takeovers(): ChaosReport['takeovers'] {
    const messages: number[] = [];
    for (const { id, gateway } of this.#cluster.gateways) {
      for (const line of gateway.log().split('\n')) {
        if (!line.includes('"msg":"a partition is back"')) continue;
        const told = JSON.parse(line) as { readonly owner?: string; readonly messages?: number };
        if (told.owner !== id) messages.push(told.messages ?? 0);
      }
    }
    return { partitions: messages.length, messages: messages.reduce((sum, count) => sum + count, 0) };
  }

  async #drain(): Promise<void> {
    const { gateways } = this.#cluster;
    for (const gateway of gateways) {
      await until(`${gateway.id} is there`, () => {
        this.#superviseAll();
        return gateway.status().then(() => true);
      }, END_MS, gateway.gateway);
      await gateway.drained(END_MS);
      await gateway.inSync(1, END_MS);
    }
    this.#say('everything is delivered and in sync');
  }

  #say(what: string): void {
    const event = { second: Math.round((performance.now() - this.#startMs) / 100) / 10, what };
    this.#timeline.push(event);
    this.#options.onEvent?.(event);
  }
}

function summed(reports: readonly SendReport[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const { replies } of reports) for (const [code, count] of Object.entries(replies)) sum[code] = (sum[code] ?? 0) + count;
  return sum;
}
