/**
 * The workers of a gateway go by another configuration together: all of them, or none.
 *
 *   worker ─ asked ─► upper process            an operator has asked this worker
 *   upper  ─ prepare ─► each worker that runs  it reads the file, and makes ready
 *   worker ─ prepared ─► upper                 and why not, if it can't
 *   upper  ─ use, or drop ─► each worker       when all are ready; else
 *   upper  ─ reloaded ─► the worker that asked
 *
 * One that is dead reads the file when it is started again; one that starts at this moment may have read
 * either, so it is waited for by whoever asks again.
 */
import type { Order } from '../admin-api/orders.js';
import type { GatewayFile } from '../cli/context.js';
import { CliError } from '../cli/context.js';
import { configurationHash } from '../config/changes.js';
import type { GatewayConfig } from '../config/types.js';
import type { ReloadOutcome } from '../platform/reloads.js';
import type { Renewal } from '../gateway/inbound/listener.js';
import type { ReadyReload, ReloadTarget, Reloads } from './reloads.js';
import type { PreparedMessage, ReloadMessage } from './worker-messages.js';

/** Checks of files, keys, modules and addresses take seconds at most. */
const PREPARE_MS = 60_000;
const CHANGED_MEANWHILE = 'the file was changed while it was read: ask again';

const RUNS_OTHER = '. It runs another configuration than its fellows: end it, it starts anew by the file';

/** A worker's part. */
export class WorkerReloads {
  readonly #reloads: Pick<Reloads<GatewayConfig>, 'prepare'>;
  readonly #target: Pick<ReloadTarget<GatewayConfig>, 'refused'>;
  readonly #tell: (message: ReloadMessage) => void;
  readonly #asked = new Map<number, (outcome: ReloadOutcome) => void>();
  #number = 0;
  #ready: ReadyReload | undefined;
  /** The last that was given up, maybe before it was ready. */
  #dropped = 0;

  constructor(
    reloads: Pick<Reloads<GatewayConfig>, 'prepare'>, target: Pick<ReloadTarget<GatewayConfig>, 'refused'>,
    tell: (message: ReloadMessage) => void,
  ) {
    this.#reloads = reloads;
    this.#target = target;
    this.#tell = tell;
  }

  reload(order: Order): Promise<ReloadOutcome> {
    const number = ++this.#number;
    return new Promise((resolve) => {
      this.#asked.set(number, resolve);
      this.#tell({ kind: 'asked', number, order });
    });
  }

  onMessage(message: ReloadMessage): void {
    if (message.kind === 'prepare') void this.#prepare(message.number);
    else if (message.kind === 'use') this.#take()?.use();
    else if (message.kind === 'drop') this.#drop(message.number);
    else if (message.kind === 'refused') this.#target.refused(message.why);
    else if (message.kind === 'reloaded') {
      this.#asked.get(message.number)?.(message.outcome);
      this.#asked.delete(message.number);
    }
  }

  #drop(number: number): void {
    this.#dropped = number;
    this.#take()?.drop();
  }

  #take(): ReadyReload | undefined {
    const ready = this.#ready;
    this.#ready = undefined;
    return ready;
  }

  async #prepare(number: number): Promise<void> {
    const ready = await this.#reloads.prepare();
    if (typeof ready === 'string') return this.#tell({ kind: 'prepared', number, why: ready, hash: '' });
    if (this.#dropped >= number) return ready.drop();
    this.#ready = ready;
    this.#tell({ kind: 'prepared', number, why: '', hash: ready.hash });
  }
}

/** A worker as the upper process sees it. */
export interface ReloadedWorker {
  readonly id: string;
  readonly state: 'runs' | 'starts' | 'is dead';
  /** It was started by a file that its fellows had refused. */
  runsOther: boolean;
  tell(message: ReloadMessage): void;
}

/** The upper process' part. */
export class AllWorkers implements ReloadTarget<GatewayConfig> {
  readonly #workers: readonly ReloadedWorker[];
  #number = 0;
  /** Of those that were asked, who has not answered. */
  readonly #silent = new Set<ReloadedWorker>();
  #hash = '';
  /** The first reason against it. */
  #why = '';
  #onAnswered: (() => void) | undefined;

  constructor(workers: readonly ReloadedWorker[]) {
    this.#workers = workers;
  }

  async prepare({ keys }: Pick<GatewayFile, 'keys'>): Promise<Renewal> {
    const starting = this.#workers.find(({ state }) => state === 'starts');
    if (starting !== undefined) throw new CliError(`worker ${starting.id} starts at this moment: ask again`);
    const asked = this.#workers.filter(({ state }) => state === 'runs');
    const why = await this.#askAll(asked, configurationHash(keys));
    const number = this.#number;
    const tellAll = (kind: 'use' | 'drop'): void => {
      for (const worker of asked) {
        worker.tell({ kind, number });
        if (kind === 'use') worker.runsOther = false;
      }
    };
    if (why === '') return { use: () => { tellAll('use'); }, drop: () => { tellAll('drop'); } };
    tellAll('drop');
    throw new CliError(why);
  }

  refused(why: string): void {
    for (const worker of this.#workers) worker.tell({ kind: 'refused', why });
  }

  onPrepared(worker: ReloadedWorker, { number, why, hash }: PreparedMessage): void {
    if (number !== this.#number) return;
    const remedy = worker.runsOther ? RUNS_OTHER : '';
    if (why !== '') this.#answered(worker, `worker ${worker.id}: ${why}${remedy}`);
    else this.#answered(worker, hash === this.#hash ? '' : CHANGED_MEANWHILE);
  }

  onDied(worker: ReloadedWorker): void {
    this.#answered(worker, `worker ${worker.id} ended while it read the file`);
  }

  #answered(worker: ReloadedWorker, why: string): void {
    if (!this.#silent.delete(worker)) return;
    if (this.#why === '') this.#why = why;
    if (this.#silent.size === 0) this.#onAnswered?.();
  }

  /** Of each, also where one has refused: then none has a port open any more that is not to be. */
  #askAll(asked: readonly ReloadedWorker[], hash: string): Promise<string> {
    const number = ++this.#number;
    this.#hash = hash;
    this.#why = '';
    return new Promise((resolve) => {
      const bound = setTimeout(() => {
        const names = [...this.#silent].map(({ id }) => id).join(', ');
        for (const worker of this.#silent) this.#answered(worker, `workers do not answer: ${names}`);
      }, PREPARE_MS);
      this.#onAnswered = () => {
        clearTimeout(bound);
        this.#onAnswered = undefined;
        resolve(this.#why);
      };
      for (const worker of asked) this.#silent.add(worker);
      for (const worker of asked) worker.tell({ kind: 'prepare', number });
      if (asked.length === 0) this.#onAnswered();
    });
  }
}
