/**
 * A whole Twinpost of real processes for tests and benches: stores, gateway and sink started from the
 * command line entry, each with a generated configuration on free ports of loopback, logs in a folder.
 * Owns the processes: it ends them by their pid, also when the test process itself ends, and removes the
 * folder.
 *
 *     client --smtpPort--> gateway --paths--> store-a, store-b
 *                             \--route--> sink (or whatever `routes` name)
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { SinkCounts } from '../../src/sink/options.js';
import type { VerifyReport } from '../../src/sink/verify.js';
import { freePorts } from './free-ports.js';

const ENTRY = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'src', 'bin', 'twinpost.js');
export const HOST = '127.0.0.1';
const SECRET = 'a secret that only this test knows, 32 bytes or more';
const READY_MS = 30_000;
const POLL_MS = 25;
/** A process gets so long to end by SIGTERM. */
const STOP_MS = 15_000;

/** A part of a configuration file, as plain data: JSON is YAML. */
export interface Section {
  readonly [key: string]: unknown;
}

export interface ClusterOptions {
  /** How many stores; default 2. */
  readonly stores?: number;
  /** False: no sink, then `routes` are needed. */
  readonly sink?: boolean;
  /** More arguments for `twinpost sink`, such as --defer-rate. */
  readonly sinkArguments?: readonly string[];
  /** The sink writes a line a message to Cluster.arrivalLog; complete after verify(). */
  readonly arrivalLog?: boolean;
  /** Keys of the sink's section, besides its addresses. */
  readonly sinkSection?: Section;
  /** Domains that get a queue of their own to the sink; all others share one. */
  readonly domains?: readonly string[];
  /** Those of `domains` whose queue is `order: strict`. */
  readonly strictDomains?: readonly string[];
  /** Routes before these, and before the last one, which sends everything to the sink. */
  readonly routes?: readonly Section[];
  /** Keys laid over the gateway's section; objects are merged. */
  readonly gateway?: Section;
  /** Keys laid over each store's section. */
  readonly store?: Section;
  /** Arguments for node itself, such as --cpu-prof. */
  readonly nodeArguments?: readonly string[];
  /** Gives the port by which the gateway reaches a store's path, to put a proxy in between. */
  readonly mapStorePort?: (port: number, store: number, path: string) => number;
}

/** One process; restarted under the same configuration by start(). */
export class Daemon {
  readonly name: string;
  readonly #arguments: readonly string[];
  readonly #logFile: string;
  readonly #readyUrl: string;
  #child: ChildProcess | undefined;

  constructor(name: string, args: readonly string[], logFile: string, readyUrl: string) {
    this.name = name;
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

  /** Starts the process; does not wait until it is ready. */
  start(): void {
    const log = openSync(this.#logFile, 'a');
    this.#child = spawn(process.execPath, this.#arguments, { stdio: ['ignore', log, log] });
    closeSync(log);
  }

  /** Resolves when the process says so; rejects with the end of its log when it ends or takes too long. */
  async ready(): Promise<void> {
    const until = performance.now() + READY_MS;
    while (performance.now() < until) {
      if (!this.isRunning) throw new Error(`${this.name} ended while it started\n${this.logTail()}`);
      if ((await statusOf(this.#readyUrl)) === 200) return;
      await pause(POLL_MS);
    }
    throw new Error(`${this.name} was not ready after ${READY_MS} ms\n${this.logTail()}`);
  }

  /** SIGKILL: the process gets no chance to do anything. Resolves when it is gone. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** SIGTERM, and SIGKILL past the bound. Resolves with the exit code, -1 if it had to be killed. */
  async stop(): Promise<number> {
    const timer = setTimeout(() => this.killNow(), STOP_MS);
    await this.#end('SIGTERM');
    clearTimeout(timer);
    return this.#child?.exitCode ?? -1;
  }

  killNow(): void {
    if (this.isRunning) this.#child?.kill('SIGKILL');
  }

  log(): string {
    return readFileSync(this.#logFile, 'utf8');
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

export interface Cluster {
  readonly folder: string;
  readonly smtpPort: number;
  readonly adminPort: number;
  readonly sinkPort: number;
  readonly gateway: Daemon;
  readonly stores: readonly Daemon[];
  /** Where the sink keeps mail if sinkSection says `maildir: true`. */
  readonly maildir: string;
  readonly arrivalLog: string;
  readonly sink: Daemon;
  /** Resolves when every queue that the gateway knows is in sync at two stores; at least `queues` of them. */
  inSync(queues: number, boundMs?: number): Promise<void>;
  /** What the gateway says of itself: GET /api/v1/status. Rejects while it is down. */
  status(): Promise<GatewayStatus>;
  /** Resolves when nothing is queued any more, reports and what is still coming back from the stores included. */
  drained(boundMs?: number): Promise<void>;
  sinkCounts(): Promise<SinkCounts>;
  /** Resolves when the sink has taken `messages`; rejects past the bound with the gateway's log. */
  sinkHas(messages: number, boundMs?: number): Promise<SinkCounts>;
  /** Judges by a send log what the sink got. */
  verify(sendLog: string, displacementMax?: number): Promise<VerifyReport>;
  stop(): Promise<void>;
}

/** Of the gateway's status, what is used here. */
export interface GatewayStatus {
  readonly queues_recovering: number;
  readonly queued_messages: number;
  readonly memory_used_bytes: number;
  readonly memory_limit_bytes: number;
  readonly stores: readonly { readonly store: string; readonly up: boolean; readonly queues_sync: number; readonly queues_ng: number; readonly credit_bytes: number }[];
}

interface Ports {
  readonly smtp: number;
  readonly admin: number;
  readonly sink: number;
  readonly sinkAdmin: number;
  /** Path A, path B, admin of each store. */
  readonly stores: readonly (readonly [a: number, b: number, admin: number])[];
}

/** Starts everything and waits until the gateway takes mail. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-cluster-'));
  const ports = await choosePorts(options.stores ?? 2);
  const daemon = (name: string, verb: string, config: Section, adminPort: number, more: readonly string[] = []): Daemon => {
    const file = join(folder, `${name}.yaml`);
    writeFileSync(file, JSON.stringify(config, undefined, 2));
    const args = [...(options.nodeArguments ?? []), ENTRY, verb, '--config', file, ...more];
    return new Daemon(name, args, join(folder, `${name}.log`), `http://${HOST}:${adminPort}/readyz`);
  };
  const maildir = join(folder, 'maildir');
  mkdirSync(maildir);
  const stores = ports.stores.map((own, index) => daemon(storeId(index), 'store', storeConfig(options, own, index), own[2]));
  const arrivalLog = join(folder, 'arrivals.log');
  const sinkArguments = [...(options.sinkArguments ?? []), ...(options.arrivalLog === true ? ['--arrival-log', arrivalLog] : [])];
  const sink = daemon('sink', 'sink', sinkConfig(options, ports, maildir), ports.sinkAdmin, sinkArguments);
  const gateway = daemon('gateway', 'gateway', gatewayConfig(options, ports, folder), ports.admin);
  const all = [...stores, ...(options.sink === false ? [] : [sink]), gateway];
  const killAll = (): void => {
    for (const each of all) each.killNow();
  };
  process.once('exit', killAll);
  // Without a handler a SIGTERM from the runner would end this process and leave those running.
  process.once('SIGTERM', exitOnSignal);
  const stop = async (): Promise<void> => {
    for (const each of [...all].reverse()) await each.stop();
    process.removeListener('exit', killAll);
    process.removeListener('SIGTERM', exitOnSignal);
    rmSync(folder, { recursive: true, force: true });
  };
  const before = all.slice(0, -1);
  for (const each of before) each.start();
  try {
    for (const each of before) await each.ready();
    gateway.start();
    await gateway.ready();
  } catch (error) {
    await stop();
    throw error;
  }
  return { folder, smtpPort: ports.smtp, adminPort: ports.admin, sinkPort: ports.sink, gateway, stores, sink, maildir, arrivalLog, stop, ...gatewayQuestions(ports.admin, gateway), ...sinkQuestions(ports, gateway) };
}

/** One row of the management table, as far as it is used here. */
interface TableRow {
  readonly queue_name: string;
  readonly sync: string;
}

function gatewayQuestions(adminPort: number, gateway: Daemon): Pick<Cluster, 'inSync' | 'status' | 'drained'> {
  const status = async (): Promise<GatewayStatus> => (await (await fetch(`http://${HOST}:${adminPort}/api/v1/status`)).json()) as GatewayStatus;
  return {
    status,
    inSync: (queues, boundMs = READY_MS) => inSync(adminPort, gateway, queues, boundMs),
    drained: (boundMs = READY_MS) => until('nothing is queued', async () => isDrained(await status()), boundMs, gateway),
  };
}

function isDrained(status: GatewayStatus): boolean {
  return status.queued_messages === 0 && status.queues_recovering === 0;
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
    if (synced === rows.length && new Set(rows.map((row) => row.queue_name)).size >= queues && synced >= 2 * queues) return;
    if (performance.now() > until) throw new Error(`not in sync: ${JSON.stringify(rows)}\n${gateway.logTail()}`);
    await pause(POLL_MS);
  }
}

async function tableOf(adminPort: number): Promise<readonly TableRow[]> {
  try {
    return ((await (await fetch(`http://${HOST}:${adminPort}/api/v1/table`)).json()) as { rows: TableRow[] }).rows;
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

function storeId(index: number): string {
  return `store-${String.fromCharCode(97 + index)}`;
}

function storeConfig(options: ClusterOptions, [a, b, admin]: readonly [number, number, number], index: number): Section {
  const own: Section = {
    id: storeId(index),
    host: `host-${storeId(index)}`,
    paths: [{ name: 'A', address: `${HOST}:${a}` }, { name: 'B', address: `${HOST}:${b}` }],
    gateways: [{ id: 'gateway-1', secret: SECRET }],
    admin: { listen: `${HOST}:${admin}` },
    memory: { limit: '512MiB' },
  };
  return { store: merged(own, options.store ?? {}) };
}

function sinkConfig(options: ClusterOptions, ports: Ports, maildir: string): Section {
  const section: Section = { listen: `${HOST}:${ports.sink}`, admin: `${HOST}:${ports.sinkAdmin}`, verify: true, ...options.sinkSection };
  return { sink: section['maildir'] === true ? { ...section, maildir } : section };
}

function gatewayConfig(options: ClusterOptions, ports: Ports, folder: string): Section {
  const map = options.mapStorePort ?? ((port) => port);
  const stores = ports.stores.map(([a, b], index) => ({
    id: storeId(index),
    host: `host-${storeId(index)}`,
    paths: [{ name: 'A', address: `${HOST}:${map(a, index, 'A')}` }, { name: 'B', address: `${HOST}:${map(b, index, 'B')}` }],
  }));
  const via = `smtp://${HOST}:${ports.sink}`;
  const toSink = options.sink === false ? [] : [...(options.domains ?? []), '*'].map((domain) => (options.strictDomains?.includes(domain) === true ? { domain, via, order: 'strict' } : { domain, via }));
  const own: Section = {
    id: 'gateway-1',
    host: 'host-gateway',
    smtp: { listen: [`${HOST}:${ports.smtp}`], connections_per_client: 1000 },
    routes: [...(options.routes ?? []), ...toSink],
    delivery: { retry: { first: '100ms', max: '1s' } },
    memory: { limit: '512MiB' },
    admin: { listen: `${HOST}:${ports.admin}` },
    secret: SECRET,
    stores,
    state_dir: folder,
  };
  return { gateway: merged(own, options.gateway ?? {}) };
}

/** `over` laid over `under`: sections are merged, everything else replaced. */
function merged(under: Section, over: Section): Section {
  const result: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const below = result[key];
    result[key] = isSection(below) && isSection(value) ? merged(below, value) : value;
  }
  return result;
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

async function choosePorts(stores: number): Promise<Ports> {
  const ports = await freePorts(4 + 3 * stores);
  const at = (index: number): number => ports[index] ?? 0;
  return {
    smtp: at(0), admin: at(1), sink: at(2), sinkAdmin: at(3),
    stores: Array.from({ length: stores }, (_none, index) => [at(4 + 3 * index), at(5 + 3 * index), at(6 + 3 * index)] as const),
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
