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
 * - If this process is killed, its workers end (node:cluster); the mail is at the stores.
 */
import cluster from 'node:cluster';
import type { Worker } from 'node:cluster';
import { Restarts } from '../base/restarts.js';
import type { RunningRole } from '../cli/context.js';
import { CliError } from '../cli/context.js';
import type { GatewayConfig } from '../config/types.js';
import { workerConfig, workerId } from '../config/workers.js';
import { crc32 } from '../platform/node/checksum.js';
import { defaultMemoryBytes } from '../platform/node/memory.js';
import { openRegister } from '../register/running/open-register.js';
import { gatewayOptions, startGatewayProcess } from './gateway-process.js';
import { FENCED_EXIT_CODE, tellTerminal } from './last-words.js';
import { isReportMessage, rotateTickets } from './worker-messages.js';
import type { TicketMessage } from './worker-messages.js';
import { LineRelay } from './line-relay.js';
import { nodePorts } from './node-ports.js';
import { ignoreHangUp } from './signals.js';
import type { NodePorts } from './node-ports.js';

/** Tells a worker its number. */
const NUMBER_VARIABLE = 'TWINPOST_WORKER';
const STARTED = 'started';
/** On top of delivery.stop_timeout. */
const STOP_EXTRA_MS = 5_000;
const LOG_DRAIN_MS = 1_000;

const REMEDY = 'Give one of the two gateways another id, or do not start it';
const FENCED =
  `another process has the id of a worker: this gateway stops with all its workers. ${REMEDY}`;

export async function startGatewayWorkers(config: GatewayConfig): Promise<RunningRole> {
  const memoryBytes = config.memory.limitBytes ?? defaultMemoryBytes(config.oneHost);
  if (cluster.isWorker) {
    const number = Number(process.env[NUMBER_VARIABLE]);
    const role = await startGatewayProcess(workerConfig(config, number, memoryBytes));
    process.send?.(STARTED);
    return role;
  }
  // What the files of the configuration lack is said once, here.
  gatewayOptions(config);
  const ports = nodePorts(config.log, config.id);
  ignoreHangUp(ports.log);
  const stopBoundMs = config.delivery.stopTimeoutMs + STOP_EXTRA_MS;
  const seats: readonly Seat[] = Array.from({ length: config.workers }, (_none, index) => {
    const number = index + 1;
    const tellOthers = (message: object): void => {
      for (const seat of seats) if (seat !== seats[index]) seat.tell(message);
    };
    return new Seat({ number, id: workerId(config.id, number) }, {
      ports, onFenced: (id) => { endFenced(id); }, onReport: tellOthers,
    });
  });
  const opened = config.register.kind === 'file'
    ? await openRegister(config.register, { log: ports.log, crc32 })
    : undefined;
  const stopAll = async (): Promise<void> => {
    await Promise.all(seats.map((seat) => seat.stop(stopBoundMs)));
    await opened?.close();
  };
  const endFenced = (id: string): void => {
    ports.log.error('fenced', FENCED, { worker: id });
    tellTerminal(
      `twinpost: gateway ${config.id} ends with all its workers: `
      + `another process has the id of its worker ${id}. ${REMEDY}`,
    );
    const drain = (): Promise<void> => ports.destination.drain(LOG_DRAIN_MS);
    void stopAll().then(drain).then(() => { process.exit(FENCED_EXIT_CODE); });
  };
  rotateTickets((keys) => { for (const seat of seats) seat.useTickets(keys.toString('base64')); });
  try {
    const [first, ...others] = seats;
    await first?.start();
    await Promise.all(others.map((seat) => seat.start()));
  } catch (error) {
    await stopAll();
    throw error;
  }
  const smtp = config.smtp.listen.map(({ host, port }) => `${host}:${String(port)}`).join(', ');
  const count = String(config.workers);
  return {
    summary: `gateway ${config.id}: ${count} workers take mail on ${smtp} once the stores answer`,
    stop: async () => {
      await stopAll();
      await ports.destination.drain(LOG_DRAIN_MS);
    },
  };
}

interface SeatPorts {
  readonly ports: NodePorts;
  readonly onFenced: (id: string) => void;
  /** What it tells its fellows. */
  readonly onReport: (message: object) => void;
}

/** One worker's place: the process in it changes when it dies. */
class Seat {
  readonly #number: number;
  readonly #id: string;
  readonly #ports: NodePorts;
  readonly #onFenced: SeatPorts['onFenced'];
  readonly #onReport: SeatPorts['onReport'];
  #worker: Worker | undefined;
  #tickets: TicketMessage | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopping = false;
  readonly #restarts = new Restarts();
  #startedMs = 0;
  #onGone: (() => void) | undefined;

  constructor(place: { readonly number: number; readonly id: string }, ports: SeatPorts) {
    this.#number = place.number;
    this.#id = place.id;
    this.#ports = ports.ports;
    this.#onFenced = ports.onFenced;
    this.#onReport = ports.onReport;
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
        const text = `worker ${this.#id} could not start (${how}); its own line above says why`;
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
    const worker = cluster.fork({ [NUMBER_VARIABLE]: String(this.#number) });
    this.#worker = worker;
    this.#startedMs = performance.now();
    let hasStarted = false;
    relay(worker.process.stdout, (lines) => { this.#ports.destination.write(lines); });
    relay(worker.process.stderr, (lines) => { process.stderr.write(lines); });
    worker.on('message', (message: unknown) => {
      if (isReportMessage(message)) this.#onReport(message);
      if (message !== STARTED || hasStarted) return;
      hasStarted = true;
      // Not before: what comes while its modules are loaded is lost.
      if (this.#tickets !== undefined) this.tell(this.#tickets);
      onStarted();
    });
    worker.on('error', () => undefined); // 'exit' follows and says how
    worker.process.once('exit', (code, signal) => {
      const how = signal ?? `exit code ${String(code)}`;
      this.#worker = undefined;
      if (this.#stopping) this.#onGone?.();
      else if (code === FENCED_EXIT_CODE) this.#onFenced(this.#id);
      else if (hasStarted) this.#again(how);
      else onFailed(how);
    });
  }

  #again(how: string): void {
    const againMs = this.#restarts.onDeath(performance.now() - this.#startedMs, Math.random);
    this.#ports.log.error('worker', 'a worker has ended; it is started again. Its mail is at the stores', {
      worker: this.#id, how, deaths: this.#restarts.deaths, again_ms: againMs,
    });
    const onStarted = (): void => {
      const fields = { worker: this.#id, pid: this.#worker?.process.pid };
      this.#ports.log.info('worker', 'the worker runs again', fields);
    };
    this.#timer = setTimeout(() => { this.#fork(onStarted, (failed) => { this.#again(failed); }); }, againMs);
  }
}

function relay(stream: NodeJS.ReadableStream | null, write: (lines: string) => void): void {
  if (stream === null) return;
  const lines = new LineRelay(write);
  stream.on('data', (chunk: Buffer) => { lines.push(chunk); });
  stream.once('end', () => { lines.end(); });
}
