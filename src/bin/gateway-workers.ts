/**
 * A gateway with `workers: N`: this process listens, hands each SMTP connection to a worker in turn
 * (node:cluster), and keeps the workers alive. Each worker is a whole gateway (config/workers.ts): this
 * process has no mail in it.
 *
 *               reports that it runs        dies / back-off that grows
 *   STARTING ──────────────────► RUNNING ───────────────────────────► WAITING ─► STARTING …
 *      │ dies before it ever ran              │ exit code 3: another process has its id
 *      └► the start fails                     └► all stop, exit code 3
 *
 * - The first worker starts alone, so that a port that is taken is said once.
 * - SIGTERM to one worker makes it stop in good order; it is started again. Its fellows are of its group:
 *   they deliver its mail if it stays away.
 * - With `register: file` this process keeps the file and serves it to the workers; a worker that starts
 *   while it is away waits for it.
 * - Its workers go by another configuration together (worker-reloads.ts): SIGHUP comes here.
 * - If this process is killed, its workers end (node:cluster); the mail is at the stores.
 */
import cluster from 'node:cluster';
import type { Worker } from 'node:cluster';
import { addressText } from '../base/address-text.js';
import { Restarts } from '../base/restarts.js';
import type { GatewayFile, RunningRole } from '../cli/context.js';
import { gatewayWarnings } from '../cli/config-warnings.js';
import { CliError } from '../cli/context.js';
import { KEYS_OF_GATEWAY, configurationHash } from '../config/changes.js';
import type { GatewayConfig } from '../config/types.js';
import { workerConfig, workerId } from '../config/workers.js';
import { crc32 } from '../platform/node/checksum.js';
import { defaultMemoryBytes } from '../platform/node/memory.js';
import { openRegister } from '../register/running/open-register.js';
import { gatewayOptions, startGatewayProcess } from './gateway-process.js';
import { FENCED_EXIT_CODE, tellTerminal } from './last-words.js';
import { Reloads } from './reloads.js';
import {
  NUMBER_VARIABLE, isReloadMessage, isReportMessage, isStartedMessage, rotateTickets,
} from './worker-messages.js';
import type { ReloadMessage, ReportMessage, TicketMessage } from './worker-messages.js';
import { AllWorkers } from './worker-reloads.js';
import type { ReloadedWorker } from './worker-reloads.js';
import { LineRelay } from './line-relay.js';
import { drainLog, nodePorts } from './node-ports.js';
import type { HangUps } from './signals.js';
import type { Renewal } from '../gateway/inbound/listener.js';
import type { NodePorts } from './node-ports.js';

/** On top of delivery.stop_timeout. */
const STOP_EXTRA_MS = 12_000;

const RUNS_OTHER = 'a worker was started by a file that is not in force: it runs another configuration '
  + 'than its fellows. Put the file right; then end this worker: it starts anew by it';
const REMEDY = 'Give one of the two gateways another id, or do not start it';
const FENCED =
  `another process has the id of a worker: this gateway stops with all its workers. ${REMEDY}`;

export async function startGatewayWorkers(
  file: GatewayFile, hangUps: HangUps | undefined,
): Promise<RunningRole> {
  const { config } = file;
  const memoryBytes = config.memory.limitBytes ?? defaultMemoryBytes(config.oneHost);
  if (cluster.isWorker) {
    const number = Number(process.env[NUMBER_VARIABLE]);
    const place = { isFirst: number === 1, others: config.workers - 1 };
    const role = await startGatewayProcess(workerFile(file, number, memoryBytes), hangUps, place);
    process.send?.({ started: configurationHash(file.keys) });
    return role;
  }
  // What the files of the configuration lack is said once, here.
  gatewayOptions(config);
  const ports = nodePorts(config.log, config.id);
  const upper = new UpperProcess(file, ports, hangUps);
  const opened = config.register.kind === 'file'
    ? await openRegister(config.register, { log: ports.log, crc32 })
    : undefined;
  upper.onStopped = () => opened?.close();
  rotateTickets((keys) => { for (const seat of upper.seats) seat.useTickets(keys.toString('base64')); });
  try {
    const [first, ...others] = upper.seats;
    await first?.start();
    await Promise.all(others.map((seat) => seat.start()));
  } catch (error) {
    await upper.stop();
    throw error;
  }
  const smtp = config.smtp.listen.map(({ host, port }) => addressText(host, port)).join(', ');
  const count = String(config.workers);
  return {
    summary: `gateway ${config.id}: ${count} workers take mail on ${smtp} once the stores answer`,
    stop: async () => {
      await upper.stop();
      await drainLog(ports);
    },
  };
}

/** What the file means to one worker, now and when it is read again. */
function workerFile<File extends GatewayFile>(file: File, number: number, memoryBytes: number): File {
  const { again } = file;
  return {
    ...file,
    config: workerConfig(file.config, number, memoryBytes),
    again: () => workerFile(again(), number, memoryBytes),
  };
}

/** The seats, and what is decided for all of them. */
class UpperProcess {
  readonly seats: readonly Seat[];
  onStopped: () => Promise<void> | undefined = () => undefined;
  readonly #id: string;
  readonly #ports: NodePorts;
  readonly #workers: AllWorkers;
  readonly #reloads: Reloads<GatewayConfig>;
  #stopBoundMs: number;

  constructor(file: GatewayFile, ports: NodePorts, hangUps: HangUps | undefined) {
    const { config: { id, workers, delivery } } = file;
    this.#id = id;
    this.#ports = ports;
    this.#stopBoundMs = delivery.stopTimeoutMs + STOP_EXTRA_MS;
    this.seats = Array.from({ length: workers }, (_none, index) => this.#makeSeat(index + 1));
    this.#workers = new AllWorkers(this.seats);
    this.#reloads = new Reloads(file, {
      log: ports.log, keysOf: KEYS_OF_GATEWAY, warningsOf: gatewayWarnings,
      target: {
        prepare: (next) => this.#prepare(next),
        refused: (why) => { this.#workers.refused(why); },
      },
      onBroken: (error) => { throw error; },
    });
    hangUps?.reload(this.#reloads);
  }

  async stop(): Promise<void> {
    await Promise.all(this.seats.map((seat) => seat.stop(this.#stopBoundMs)));
    await this.onStopped();
  }

  #makeSeat(number: number): Seat {
    const onReport = (message: ReportMessage, from: Seat): void => {
      for (const seat of this.seats) if (seat !== from && isFor(seat, message)) seat.tell(message);
    };
    return new Seat({ number, id: workerId(this.#id, number) }, {
      node: this.#ports, onReport,
      onFenced: (id) => { this.#endFenced(id); },
      onReload: (message, from) => { this.#onReload(message, from); },
      onDied: (seat) => { this.#workers.onDied(seat); },
      isInForce: (hash) => hash === this.#reloads.hash,
    });
  }

  /** Of what it goes by itself: the log, and how long it waits at a stop. */
  async #prepare(file: GatewayFile): Promise<Renewal> {
    const { use, drop } = await this.#workers.prepare(file);
    return {
      drop,
      use: () => {
        use();
        const { delivery, log } = file.config;
        this.#stopBoundMs = delivery.stopTimeoutMs + STOP_EXTRA_MS;
        this.#ports.log.level = log.level;
      },
    };
  }

  #onReload(message: ReloadMessage, from: Seat): void {
    if (message.kind === 'prepared') this.#workers.onPrepared(from, message);
    if (message.kind !== 'asked') return;
    const { number, order } = message;
    void this.#reloads.reload(order).then((outcome) => { from.tell({ kind: 'reloaded', number, outcome }); });
  }

  #endFenced(id: string): void {
    this.#ports.log.error('fenced', FENCED, { worker: id });
    tellTerminal(
      `twinpost: gateway ${this.#id} ends with all its workers: `
      + `another process has the id of its worker ${id}. ${REMEDY}`,
    );
    const drain = (): Promise<void> => drainLog(this.#ports);
    void this.stop().then(drain).then(() => { process.exit(FENCED_EXIT_CODE); });
  }
}

interface SeatPorts {
  readonly node: NodePorts;
  readonly onFenced: (id: string) => void;
  /** What it tells its fellows. */
  readonly onReport: (message: ReportMessage, from: Seat) => void;
  readonly onReload: (message: ReloadMessage, from: Seat) => void;
  readonly onDied: (seat: Seat) => void;
  readonly isInForce: (hash: string) => boolean;
}

/** One worker's place: the process in it changes when it dies. */
class Seat implements ReloadedWorker {
  readonly id: string;
  runsOther = false;
  readonly number: number;
  readonly #ports: SeatPorts;
  #worker: Worker | undefined;
  /** The process that is in it now. */
  #hasStarted = false;
  #tickets: TicketMessage | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopping = false;
  readonly #restarts = new Restarts();
  #startedMs = 0;
  #onGone: (() => void) | undefined;

  constructor(place: { readonly number: number; readonly id: string }, ports: SeatPorts) {
    this.id = place.id;
    this.number = place.number;
    this.#ports = ports;
  }

  get state(): ReloadedWorker['state'] {
    if (this.#worker === undefined) return 'is dead';
    return this.#hasStarted ? 'runs' : 'starts';
  }

  /** Told to it now, and to whoever is in its place later. */
  useTickets(tickets: string): void {
    this.#tickets = { tickets };
    this.tell(this.#tickets);
  }

  tell(message: object): void {
    if (this.#worker?.isConnected() === true) this.#worker.send(message, () => undefined);
  }

  /** Resolves when it runs; rejects when it ends before it ever did. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#fork(resolve, (how) => {
        const text = `worker ${this.id} could not start (${how}); its own line above says why`;
        reject(new CliError(`gateway: ${text}`));
      });
    });
  }

  /** Resolves when it is gone: by itself after SIGTERM, or killed after the bound. */
  stop(boundMs: number): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#timer);
    const worker = this.#worker;
    if (worker === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(() => { worker.process.kill('SIGKILL'); }, boundMs);
      this.#onGone = () => {
        clearTimeout(timer);
        resolve();
      };
      worker.process.kill('SIGTERM');
    });
  }

  #fork(onStarted: () => void, onFailed: (how: string) => void): void {
    cluster.setupPrimary({ silent: true });
    const worker = cluster.fork({ [NUMBER_VARIABLE]: String(this.number) });
    this.#worker = worker;
    this.#startedMs = performance.now();
    this.#hasStarted = false;
    relay(worker.process.stdout, (lines) => { this.#ports.node.destination.write(lines); });
    relay(worker.process.stderr, (lines) => { process.stderr.write(lines); });
    worker.on('message', (message: unknown) => {
      if (isReportMessage(message)) this.#ports.onReport(message, this);
      if (isReloadMessage(message)) this.#ports.onReload(message, this);
      if (!isStartedMessage(message) || this.#hasStarted) return;
      this.#hasStarted = true;
      const { started: configuration } = message;
      this.runsOther = !this.#ports.isInForce(configuration);
      if (this.runsOther) {
        this.#ports.node.log.error('reload', RUNS_OTHER, { worker: this.id, configuration });
      }
      // Not before: what comes while its modules are loaded is lost.
      if (this.#tickets !== undefined) this.tell(this.#tickets);
      onStarted();
    });
    worker.on('error', () => undefined); // 'exit' follows and says how
    worker.process.once('exit', (code, signal) => {
      const how = signal ?? `exit code ${String(code)}`;
      this.#worker = undefined;
      this.#ports.onDied(this);
      if (this.#stopping) this.#onGone?.();
      else if (code === FENCED_EXIT_CODE) this.#ports.onFenced(this.id);
      else if (this.#hasStarted) this.#again(how);
      else onFailed(how);
    });
  }

  #again(how: string): void {
    const { log } = this.#ports.node;
    const againMs = this.#restarts.onDeath(performance.now() - this.#startedMs, Math.random);
    log.error('worker', 'a worker has ended; it is started again. Its mail is at the stores', {
      worker: this.id, how, deaths: this.#restarts.deaths, again_ms: againMs,
    });
    const onStarted = (): void => {
      const fields = { worker: this.id, pid: this.#worker?.process.pid };
      log.info('worker', 'the worker runs again', fields);
    };
    this.#timer = setTimeout(() => { this.#fork(onStarted, (failed) => { this.#again(failed); }); }, againMs);
  }
}

/** What was counted of TLS is for the first one, and its word that it has it for who sent it. */
function isFor(seat: Seat, { report }: ReportMessage): boolean {
  if (!('tls' in report)) return true;
  return 'handed' in report.tls ? seat.number === 1 : seat.id === report.tls.taken.from;
}

function relay(stream: NodeJS.ReadableStream | null, write: (lines: string) => void): void {
  if (stream === null) return;
  const lines = new LineRelay(write);
  stream.on('data', (chunk: Buffer) => { lines.push(chunk); });
  stream.once('end', () => { lines.end(); });
}
