/**
 * What the runs with a real etcd share (rounds.ts, register-run.ts): two gateways in a group, three stores, a
 * sink, etcd, a client for each gateway that sends all the time, and the judge on the links.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { Prng } from '../../src/base/prng.js';
import type { SendReport } from '../../src/load/options.js';
import { runSend } from '../../src/load/run.js';
import { readSendLog } from '../../src/load/send-log.js';
import { TAKEN } from '../../src/sink/verify.js';
import { HOST, startCluster, until } from '../process/cluster.js';
import type { Cluster, Daemon, GatewayHandle } from '../process/cluster.js';
import { LinkJudge } from '../process/link-judge.js';
import { judgeFromOutside, judgeRun, readArrivals, type Verdict } from '../process/witnesses.js';
import { partitionName } from '../../src/protocol/partition-record.js';
import { BrokenRule } from '../../src/base/json-shape.js';
import { connectEtcdRegister } from '../../src/register/etcd/etcd-register.js';
import { PARTITIONS, parseKey } from '../../src/register/keys.js';
import type { Entry, Register } from '../../src/register/port.js';
import { decodePartition } from '../../src/register/records.js';
import { EtcdCluster } from '../thirdparty/etcd/etcd-cluster.js';
import { QUIET } from '../unit/register/real-world.js';

/** The default, of gateways and stores. */
export const LEASE_MS = 10_000;
export const CLUSTER_NAME = 'chaos';
export const GATEWAYS = 2;
export const STORES = 3;
const CONCURRENCY = 20;
const CONNECTIONS = 10;
const WHOLE_MS = 120_000;
const END_MS = 180_000;
/**
 * So many queues for each partition of a gateway, of the steady load, and as many for each filling. Each filling
 * has queues of its own: one that is never empty keeps a home found in a fault, a new one goes where least is.
 */
const QUEUES_EACH = 2;
const FILLS_MAX = 20;
const STEADY = 'q';
const FILLINGS = Array.from({ length: FILLS_MAX }, (_none, i) => `fill${String(i)}q`);
/** More than any run sends: the clients are ended by a signal. */
const COUNT_MAX = 10_000_000;

interface LoadOptions {
  readonly count: number;
  /** Messages a second at each gateway; undefined: as fast as they are answered. */
  readonly rate?: number | undefined;
  /** To which queues; default: those of the steady load. */
  readonly what?: string;
  readonly signal?: AbortSignal;
}

export interface FieldOptions {
  readonly seed: number;
  readonly partitions: number;
  readonly minReplicas: number;
  readonly etcdNodes: number;
  /** False: nothing between gateways and stores, for runs that measure. */
  readonly isJudged: boolean;
  readonly say: (what: string) => void;
}

export class EtcdField {
  readonly etcd: EtcdCluster;
  readonly cluster: Cluster;
  readonly judge: LinkJudge;
  readonly prng: Prng;
  /** What had ended though nobody ended it. */
  readonly endedAlone: string[] = [];
  readonly #options: FieldOptions;
  readonly #sendLogs: string[] = [];
  readonly #clients = new AbortController();
  #sending: readonly Promise<SendReport>[] = [];
  #fills = 0;

  readonly #register: Register | undefined;

  private constructor(options: FieldOptions, etcd: EtcdCluster, judge: LinkJudge, cluster: Cluster) {
    this.#register = options.isJudged ? watchRecords(etcd.endpoints, judge) : undefined;
    this.#options = options;
    this.etcd = etcd;
    this.judge = judge;
    this.cluster = cluster;
    this.prng = new Prng(options.seed);
  }

  static async start(options: FieldOptions): Promise<EtcdField> {
    const etcd = await EtcdCluster.start(options.etcdNodes);
    try {
      await etcd.isReady();
      const judge = await LinkJudge.start(options.isJudged ? STORES : 0, GATEWAYS, options.seed);
      try {
        const cluster = await startCluster({
          gateways: GATEWAYS, stores: STORES, group: true, arrivalLog: true,
          domains: [STEADY, ...FILLINGS].flatMap((what) => domainsOf(what, options)),
          register: { etcd: etcd.endpoints, cluster: CLUSTER_NAME },
          gateway: {
            delivery: { concurrency: CONCURRENCY }, memory: { next_hop: 1 },
            mirror: {
              partitions: options.partitions, min_replicas: options.minReplicas,
              // With one copy it takes no mail: it is ready when a store that stays away has been replaced.
              ...(options.minReplicas === 2 ? { replace_after: '5s' } : {}),
            },
          },
          ...(options.isJudged ? { mapStorePort: judge.mapStorePort } : {}),
        });
        return new EtcdField(options, etcd, judge, cluster);
      } catch (error) {
        await judge.close();
        throw error;
      }
    } catch (error) {
      await etcd.stop();
      throw error;
    }
  }

  /** A client for each gateway, until endClients(). No rate: as fast as they are answered. */
  startClients(ratePerGateway: number | undefined, run = 'load'): void {
    this.#sending = this.#sendAll(run, { count: COUNT_MAX, rate: ratePerGateway });
  }

  /** A client for each gateway, for so long. No rate: as fast as they are answered. */
  async loadFor(run: string, ms: number, ratePerGateway?: number): Promise<readonly SendReport[]> {
    const time = new AbortController();
    const timer = setTimeout(() => { time.abort(); }, ms);
    const load = { count: COUNT_MAX, rate: ratePerGateway, signal: time.signal };
    const reports = await Promise.all(this.#sendAll(run, load));
    clearTimeout(timer);
    return reports;
  }

  /** Until so much waits in each partition of each gateway. The next hop must stand still. */
  async fill(undelivered: number): Promise<void> {
    for (let fills = 0; fills < FILLS_MAX; fills++) {
      const [least] = (await this.#waiting()).sort((a, b) => a - b);
      if (least !== undefined && least >= undelivered) return;
      const what = FILLINGS[this.#fills % FILLS_MAX] ?? STEADY;
      this.#fills += 1;
      const count = Math.ceil(undelivered * this.#options.partitions / 2);
      await Promise.all(this.#sendAll(`fill${String(this.#fills)}x`, { count, what }));
    }
    throw new Error(`the partitions could not be filled: ${(await this.#waiting()).join(', ')}`);
  }

  /** Each gateway holds its own partitions, each with two copies in step. */
  async isWhole(): Promise<void> {
    for (const { id, table, gateway } of this.cluster.gateways) {
      await until(`${id} holds its partitions, with two copies each`, async () => {
        const rows = await table();
        const isOwn = rows.every(({ owner, sync }) => owner === id && sync === 'SYNC');
        return isOwn && rows.length === 2 * this.#options.partitions;
      }, WHOLE_MS, gateway);
    }
  }

  /** Resolves when those that live hold all partitions, and have delivered all but the last moment's mail. */
  hasCaughtUp(living: readonly GatewayHandle[], queuedMax: number, boundMs: number): Promise<void> {
    return until('all partitions are held and what waited is delivered', async () => {
      const answers = await Promise.all(living.map(({ status }) => status()));
      const held = answers.reduce((sum, { partitions }) => sum + partitions, 0);
      const isBehind = answers.some(({ partitions_recovering: coming, queued_messages: queued }) => {
        return coming > 0 || queued > queuedMax;
      });
      return held === GATEWAYS * this.#options.partitions && !isBehind;
    }, boundMs, living[0]?.gateway);
  }

  /** What ended by itself is started again, as a supervisor would; `away` is meant to be. */
  supervise(away: ReadonlySet<Daemon>): void {
    for (const daemon of [...this.cluster.gateways.map(({ gateway }) => gateway), ...this.cluster.stores]) {
      if (daemon.isRunning || away.has(daemon)) continue;
      this.#options.say(`${daemon.name} has ended by itself and is started again`);
      this.endedAlone.push(`${daemon.name}\n${daemon.logTail()}`);
      daemon.start();
    }
  }

  async endClients(): Promise<readonly SendReport[]> {
    this.#clients.abort();
    return Promise.all(this.#sending);
  }

  /** Ends the clients, waits until nothing is queued, and judges. */
  async verdict(
    eventsUs: readonly number[],
  ): Promise<{ readonly verdict: Verdict; readonly latestMs: number }> {
    await this.endClients();
    this.cluster.sink.thaw();
    for (const gateway of this.cluster.gateways) await gateway.drained(END_MS);
    assert.notEqual(await this.cluster.sink.stop(END_MS), -1, 'the sink had to be killed: its log may lack arrivals');
    const { arrivalLog } = this.cluster;
    const judged = { arrivalLog, sendLogs: this.#sendLogs, concurrency: CONCURRENCY };
    const verdict = this.#options.isJudged ? await judgeRun(this.judge, this.cluster, judged) : judgeFromOutside(judged);
    return { verdict, latestMs: latestMs(this.#sendLogs, arrivalLog, eventsUs) };
  }

  async close(): Promise<void> {
    this.#clients.abort();
    await Promise.all(this.#sending);
    this.cluster.sink.thaw();
    await this.cluster.stop();
    await this.judge.close();
    this.#register?.close();
    await this.etcd.stop();
  }

  /** A client for each gateway. */
  #sendAll(run: string, load: LoadOptions): Promise<SendReport>[] {
    const { count, rate, what = STEADY, signal = this.#clients.signal } = load;
    const domains = domainsOf(what, this.#options);
    return this.cluster.gateways.map(({ smtpPort }, index) => {
      const name = `${run}${String(index)}`;
      const log = join(this.cluster.folder, `${name}.log`);
      this.#sendLogs.push(log);
      return runSend({
        host: HOST, port: smtpPort, count, connections: CONNECTIONS, mix: [{ bytes: 1000, weight: 1 }],
        domains, resend: true, run: name, seed: this.#options.seed, patienceMs: END_MS, log,
        nameEnvelopes: true, signal, ...(rate === undefined ? {} : { rate }),
      });
    });
  }

  /** Messages in each partition, of all gateways. */
  async #waiting(): Promise<number[]> {
    const counts: number[] = [];
    for (const { id, table } of this.cluster.gateways) {
      const own = (await table()).filter(({ owner }) => owner === id);
      counts.push(...new Map(own.map(({ partition, messages }) => [partition, messages])).values());
    }
    return counts;
  }
}

function domainsOf(what: string, { partitions }: FieldOptions): readonly string[] {
  return Array.from({ length: QUEUES_EACH * partitions }, (_none, i) => `${what}${String(i + 1)}.example`);
}

/**
 * How late the latest message came: from its 250, or from the last event before it came (a fault, a restart),
 * whichever is later. Infinity if one never came.
 */
function latestMs(sendLogs: readonly string[], arrivalLog: string, eventsUs: readonly number[]): number {
  const firstUs = new Map<string, number>();
  for (const { run, id, us, kind } of readArrivals(arrivalLog)) {
    const key = `${run} ${String(id)}`;
    if (kind === TAKEN && !firstUs.has(key)) firstUs.set(key, us);
  }
  let latestUs = 0;
  for (const file of sendLogs) {
    const { run, records } = readSendLog(file);
    for (const { id, reply, code } of records) {
      if (code < 200 || code > 299) continue;
      const cameUs = firstUs.get(`${run} ${String(id)}`) ?? Infinity;
      let fromUs = reply;
      for (const us of eventsUs) if (us < cameUs && us > fromUs) fromUs = us;
      latestUs = Math.max(latestUs, cameUs - fromUs);
    }
  }
  return latestUs / 1000;
}

/** Tells the judge of each record as soon as etcd has it. */
function watchRecords(endpoints: readonly string[], judge: LinkJudge): Register {
  const register = connectEtcdRegister({ endpoints, cluster: CLUSTER_NAME }, QUIET);
  const onChange = ({ key, value }: Entry): void => {
    const meaning = parseKey(key);
    const record = meaning?.kind === 'partition' ? decodePartition(value) : undefined;
    if (meaning?.kind !== 'partition' || record === undefined || record instanceof BrokenRule) return;
    judge.noteRecord(partitionName(meaning.gatewayId, meaning.partition), record);
  };
  register.watch([PARTITIONS], {
    onSnapshot: (entries) => { entries.forEach(onChange); },
    onChange, onDeleted: () => undefined, onAway: () => undefined,
  });
  return register;
}
