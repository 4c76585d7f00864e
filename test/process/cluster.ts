/**
 * A whole Twinpost of real processes for tests and benches: stores, gateway and sink started from the
 * command line entry, each with a generated configuration on free ports of loopback, logs in a folder.
 * Owns the processes: it ends them by their pid, also when the test process itself ends, and removes the
 * folder.
 *
 *     client --smtpPort--> gateway --paths--> store-a, store-b
 *                             \--route--> sink (or whatever `routes` name)
 *
 * There may be several gateways, each with its own port for clients; the fields of a cluster that speak of
 * one gateway speak of the first. Configuration files are in cluster-config.ts.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, createReadStream, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import type { QueuePageAnswer, StatusAnswer, TablePageAnswer, TableRowAnswer } from '../../src/admin-api/gateway-answers.js';
import type { StorePartitionPageAnswer } from '../../src/admin-api/store-answers.js';
import { REGISTER_VARIABLE } from '../../src/cli/config-file.js';
import { crc32 } from '../../src/platform/node/checksum.js';
import type { EventLog } from '../../src/platform/ports.js';
import { FileRegister } from '../../src/register/file/file-register.js';
import type { SinkCounts } from '../../src/sink/options.js';
import type { VerifyReport } from '../../src/sink/verify.js';
import { choosePorts, gatewayConfig, gatewayId, gatewayName, LOOPBACK, sinkConfig, storeConfig, storeHost, storeId, type ClusterOptions, type Ports, type Section } from './cluster-config.js';
import { ENTRY } from './entry.js';

export const HOST = LOOPBACK;
const READY_MS = 30_000;
/**
 * A gateway that others rescued takes mail again when its partitions are home: they wait until it has been up
 * for 10 s, 30 s more for a second copy where a store is away, and are tried again after a minute
 * (docs/GUARANTEES.md, "Who takes over").
 */
export const HOME_MS = 120_000;
const POLL_MS = 25;
/** A process gets so long to end by SIGTERM. */
const STOP_MS = 15_000;

type Environment = Readonly<Record<string, string>>;

/** One process; restarted under the same configuration by start(). */
export class Daemon {
  readonly name: string;
  readonly #arguments: readonly string[] | (() => readonly string[]);
  readonly #logFile: string;
  readonly #readyUrl: string;
  readonly #prefix: readonly string[];
  readonly #environment: Environment;
  #child: ChildProcess | undefined;

  /**
   * `args`: as a function, asked at each start. `prefix`: a program that becomes node by exec, with its arguments.
   * `environment`: beside our own.
   */
  constructor(
    name: string, args: readonly string[] | (() => readonly string[]), logFile: string, readyUrl: string,
    prefix: readonly string[] = [], environment: Environment = {},
  ) {
    this.name = name;
    this.#prefix = prefix;
    this.#environment = environment;
    this.#arguments = args;
    this.#logFile = logFile;
    this.#readyUrl = readyUrl;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Undefined while it runs, or when a signal ended it. */
  get exitCode(): number | undefined {
    return this.#child?.exitCode ?? undefined;
  }

  /** Starts the process; does not wait until it is ready. */
  start(): void {
    const log = openSync(this.#logFile, 'a');
    const own = typeof this.#arguments === 'function' ? this.#arguments() : this.#arguments;
    const [program = process.execPath, ...args] = [...this.#prefix, process.execPath, ...own];
    this.#child = spawn(program, args, { stdio: ['ignore', log, log], env: { ...process.env, ...this.#environment } });
    closeSync(log);
  }

  /** Resolves when the process says so; rejects with the end of its log when it ends or takes too long. */
  async ready(boundMs = READY_MS): Promise<void> {
    const until = performance.now() + boundMs;
    while (performance.now() < until) {
      if (!this.isRunning) throw new Error(`${this.name} ended while it started\n${this.logTail()}`);
      if ((await statusOf(this.#readyUrl)) === 200) return;
      await pause(POLL_MS);
    }
    throw new Error(`${this.name} was not ready after ${boundMs} ms\n${this.logTail()}`);
  }

  /** SIGKILL: the process gets no chance to do anything. Resolves when it is gone. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** SIGTERM, and SIGKILL past the bound. Resolves with the exit code, -1 if it had to be killed. */
  async stop(boundMs = STOP_MS): Promise<number> {
    const timer = setTimeout(() => this.killNow(), boundMs);
    this.thaw();
    await this.#end('SIGTERM');
    clearTimeout(timer);
    return this.#child?.exitCode ?? -1;
  }

  killNow(): void {
    if (this.isRunning) this.#child?.kill('SIGKILL');
  }

  /** To the process that listens. */
  signal(name: NodeJS.Signals): void {
    if (this.isRunning) this.#child?.kill(name);
  }

  /** SIGSTOP: it stands still, its connections stay open. */
  freeze(): void {
    if (this.isRunning) this.#child?.kill('SIGSTOP');
  }

  thaw(): void {
    if (this.isRunning) this.#child?.kill('SIGCONT');
  }

  log(): string {
    return readFileSync(this.#logFile, 'utf8');
  }

  /** One after the other: a log of hours is longer than the longest string. */
  logLines(): AsyncIterable<string> {
    return createInterface({ input: createReadStream(this.#logFile) });
  }

  /** Bytes of the log so far: where logSince() begins. */
  get logBytes(): number {
    return statSync(this.#logFile, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** What was written behind so many bytes, without a reading of the rest, which may be long. */
  logSince(bytes: number): string {
    const fd = openSync(this.#logFile, 'r');
    const buffer = Buffer.alloc(Math.max(0, this.logBytes - bytes));
    const read = readSync(fd, buffer, 0, buffer.length, bytes);
    closeSync(fd);
    return buffer.toString('utf8', 0, read);
  }

  /** The last lines that are not about single messages. */
  logTail(): string {
    const lines = this.log().split('\n').filter((line) => !/"event":"(received|delivered|rejected)"/.test(line));
    return lines.slice(-30).join('\n');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || !this.isRunning) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill(signal);
    await gone;
  }
}

/** One of the gateways and what it can be asked. */
export interface GatewayHandle {
  readonly id: string;
  readonly gateway: Daemon;
  readonly smtpPort: number;
  readonly adminPort: number;
  /** Resolves when every partition that the gateway holds is in sync at two stores; at least `partitions` of them. */
  inSync(partitions: number, boundMs?: number): Promise<void>;
  /** What the gateway says of itself: GET /api/v1/status. Rejects while it is down. */
  status(): Promise<StatusAnswer>;
  /** Its management table; empty while it is down. */
  table(): Promise<readonly TableRowAnswer[]>;
  /** The partition that a queue lives in, as this gateway says; '' when it has no such queue. */
  homeOf(queue: string): Promise<string>;
  /** Resolves when nothing is queued any more, reports and what is still coming back from the stores included. */
  drained(boundMs?: number): Promise<void>;
}

export interface Cluster extends GatewayHandle {
  readonly folder: string;
  /** How its gateways find their register, for another one that joins them; empty for one that is alone. */
  readonly environment: Environment;
  readonly sinkPort: number;
  /** All of them; the cluster itself answers for the first. */
  readonly gateways: readonly GatewayHandle[];
  readonly stores: readonly Daemon[];
  /** How many partitions a store holds, as itself says: GET /api/v1/partitions there. Rejects while it is down. */
  partitionsAt(store: number): Promise<number>;
  /** The numbers at which partitions of these names stand there. */
  numbersAt(store: number, names: readonly string[]): Promise<readonly number[]>;
  /** Where the sink keeps mail if sinkSection says `maildir: true`. */
  readonly maildir: string;
  readonly arrivalLog: string;
  readonly sink: Daemon;
  sinkCounts(): Promise<SinkCounts>;
  /** Resolves when the sink has taken `messages`; rejects past the bound with the gateway's log. */
  sinkHas(messages: number, boundMs?: number): Promise<SinkCounts>;
  /** Judges by a send log what the sink got. */
  verify(sendLog: string, displacementMax?: number): Promise<VerifyReport>;
  stop(): Promise<void>;
}

/** Starts everything and waits until the gateways take mail. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-cluster-'));
  const ports = await choosePorts(options);
  const register = await keepRegister(options, join(folder, 'register'));
  const { environment } = register;
  const daemon = (name: string, verb: string, config: Section, admin: string, more: readonly string[] = []): Daemon => {
    const file = join(folder, `${name}.yaml`);
    const args = (): readonly string[] => {
      const { entry, section } = options.release?.(name, config) ?? { entry: ENTRY, section: config };
      // A test may have changed it since.
      if (options.release !== undefined || !existsSync(file)) writeFileSync(file, JSON.stringify(section, undefined, 2));
      return [...(options.nodeArguments ?? []), entry, verb, '--config', file, ...more];
    };
    return new Daemon(name, args, join(folder, `${name}.log`), `http://${admin}/readyz`, options.commandPrefix?.(name), environment);
  };
  const maildir = join(folder, 'maildir');
  mkdirSync(maildir);
  const stores = ports.stores.map((own, index) => daemon(storeId(index), 'store', storeConfig(options, ports, index), `${storeHost(options, index, 'A')}:${own[2]}`));
  const arrivalLog = join(folder, 'arrivals.log');
  const sinkArguments = [...(options.sinkArguments ?? []), ...(options.arrivalLog === true ? ['--arrival-log', arrivalLog] : [])];
  const sink = daemon('sink', 'sink', sinkConfig(options, ports, maildir), `${HOST}:${ports.sinkAdmin}`, sinkArguments);
  const gateways = ports.gateways.map((own, index) => {
    const state = ports.gateways.length === 1 ? folder : join(folder, gatewayId(index));
    mkdirSync(state, { recursive: true });
    const gateway = daemon(gatewayName(index), 'gateway', gatewayConfig(options, ports, state, index), `${HOST}:${own.admin}`);
    return { id: gatewayId(index), gateway, smtpPort: own.smtp, adminPort: own.admin, ...gatewayQuestions(own.admin, gateway) };
  });
  const [first] = gateways;
  if (first === undefined) throw new Error('a cluster has a gateway');
  const before = [...stores, ...(options.sink === false ? [] : [sink])];
  const stop = await startAll([before, gateways.map((each) => each.gateway)], folder, register.close);
  return { ...first, ...storeQuestions(options, ports), folder, environment, sinkPort: ports.sink, gateways, stores, sink, maildir, arrivalLog, stop, ...sinkQuestions(ports, first.gateway) };
}

/** Gateways that know one another need one register: this process keeps its file, as `twinpost up` does. */
async function keepRegister(options: ClusterOptions, stateDir: string): Promise<{ environment: Environment; close: () => Promise<void> }> {
  const isGroup = options.group === true || (options.gateways ?? 1) > 1 || options.gateway?.['group'] !== undefined;
  if (!isGroup || options.register !== undefined) return { environment: {}, close: () => Promise.resolve() };
  const log: EventLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const file = await FileRegister.open({ stateDir, isServed: true }, { crc32, log });
  return { environment: { [REGISTER_VARIABLE]: stateDir }, close: () => file.close() };
}

function storeQuestions(options: ClusterOptions, ports: Ports): Pick<Cluster, 'partitionsAt' | 'numbersAt'> {
  const held = async (store: number): Promise<readonly { readonly partition: string; readonly number: number }[]> => {
    const answer = await fetch(`http://${storeHost(options, store, 'A')}:${ports.stores[store]?.[2] ?? 0}/api/v1/partitions`);
    return ((await answer.json()) as StorePartitionPageAnswer).rows;
  };
  return {
    partitionsAt: async (store) => (await held(store)).length,
    numbersAt: async (store, names) => {
      const partitions = await held(store);
      return names.map((name) => partitions.find(({ partition }) => partition === name)?.number ?? 0);
    },
  };
}

/** Starts wave after wave, each ready before the next. Resolves with what ends them all and removes the folder. */
async function startAll(waves: readonly (readonly Daemon[])[], folder: string, closeRegister: () => Promise<void>): Promise<() => Promise<void>> {
  const all = waves.flat();
  const killAll = (): void => {
    for (const each of all) each.killNow();
  };
  process.once('exit', killAll);
  // Without a handler a SIGTERM from the runner would end this process and leave those running.
  process.once('SIGTERM', exitOnSignal);
  const stop = async (): Promise<void> => {
    for (const each of [...all].reverse()) await each.stop();
    await closeRegister();
    process.removeListener('exit', killAll);
    process.removeListener('SIGTERM', exitOnSignal);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const wave of waves) {
      for (const each of wave) each.start();
      for (const each of wave) await each.ready();
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

function gatewayQuestions(adminPort: number, gateway: Daemon): Pick<GatewayHandle, 'inSync' | 'status' | 'table' | 'homeOf' | 'drained'> {
  const status = async (): Promise<StatusAnswer> => (await (await fetch(`http://${HOST}:${adminPort}/api/v1/status`)).json()) as StatusAnswer;
  return {
    status,
    table: () => tableOf(adminPort),
    homeOf: async (queue) => {
      const page = (await (await fetch(`http://${HOST}:${adminPort}/api/v1/queues`)).json()) as QueuePageAnswer;
      return page.rows.find((row) => row.queue_name === queue)?.partition ?? '';
    },
    inSync: (queues, boundMs = READY_MS) => inSync(adminPort, gateway, queues, boundMs),
    drained: (boundMs = READY_MS) => until('nothing is queued', async () => isDrained(await status()), boundMs, gateway),
  };
}

function isDrained(status: StatusAnswer): boolean {
  return status.queued_messages === 0 && status.partitions_recovering === 0;
}

/** Asks again and again; past the bound rejects with the end of the process's log. A question that fails is asked again. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, boundMs = READY_MS, daemon?: Daemon): Promise<void> {
  const endMs = performance.now() + boundMs;
  for (;;) {
    try {
      if (await holds()) return;
    } catch {
      // A process is down for the moment.
    }
    if (performance.now() > endMs) throw new Error(`not after ${boundMs} ms: ${what}\n${daemon?.logTail() ?? ''}`);
    await pause(POLL_MS);
  }
}

async function inSync(adminPort: number, gateway: Daemon, queues: number, boundMs: number): Promise<void> {
  const until = performance.now() + boundMs;
  for (;;) {
    const rows = await tableOf(adminPort);
    const synced = rows.filter((row) => row.sync === 'SYNC').length;
    if (synced === rows.length && new Set(rows.map((row) => row.partition)).size >= queues && synced >= 2 * queues) return;
    if (performance.now() > until) throw new Error(`not in sync: ${JSON.stringify(rows)}\n${gateway.logTail()}`);
    await pause(POLL_MS);
  }
}

async function tableOf(adminPort: number): Promise<readonly TableRowAnswer[]> {
  try {
    return ((await (await fetch(`http://${HOST}:${adminPort}/api/v1/table`)).json()) as TablePageAnswer).rows;
  } catch {
    // The gateway is down for the moment.
    return [];
  }
}

function exitOnSignal(): void {
  process.exit(143);
}

function sinkQuestions(ports: Ports, gateway: Daemon): Pick<Cluster, 'sinkCounts' | 'sinkHas' | 'verify'> {
  const address = `http://${HOST}:${ports.sinkAdmin}`;
  const sinkCounts = async (): Promise<SinkCounts> => (await (await fetch(`${address}/counts`)).json()) as SinkCounts;
  return {
    sinkCounts,
    sinkHas: async (messages, boundMs = READY_MS) => {
      const until = performance.now() + boundMs;
      for (;;) {
        const counts = await sinkCounts();
        if (counts.messages >= messages) return counts;
        if (performance.now() > until) throw new Error(`the sink has ${counts.messages} of ${messages} messages\n${gateway.logTail()}`);
        await pause(POLL_MS);
      }
    },
    verify: async (sendLog, displacementMax = 0) => {
      const url = `${address}/report?displacement=${displacementMax}`;
      return (await (await fetch(url, { method: 'POST', body: readFileSync(sendLog) })).json()) as VerifyReport;
    },
  };
}

async function statusOf(url: string): Promise<number> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1000) });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
