/**
 * The stores that an operator has drained, as the gateway remembers them across restarts
 * (local/drained-file.ts), and what else an operator does with mirrors: the part of the admin HTTP that
 * changes something there.
 *
 *   order ─► in force here at once, file written ─► on the disk: kept; until then, and without a state_dir,
 *                                                   a restart forgets it
 */
import { errorText } from '../../base/error-text.js';
import type { Order } from '../../admin-api/orders.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { DrainState, StoreControl } from './store-api.js';
import type { DrainedSince } from '../local/drained-file.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { LeavingStores } from '../mirror/set/leaving-stores.js';
import type { Partition } from '../mirror/set/partition.js';

/** A disk that hangs longer lets no operator wait: the answer says that the order is not kept. */
export const DISK_WAIT_MS = 3000;

/** The file of this machine. */
export interface DrainedFile {
  /** As a process before has left it; throws when that can't be told. */
  read(): DrainedSince;
  /** Rejects when the disk does not take it. */
  write(drained: DrainedSince): Promise<void>;
}

export interface DrainedPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly mirrors: Mirrors;
  readonly leaving: LeavingStores;
  /** Undefined without a state_dir: then nothing is kept. */
  readonly file: DrainedFile | undefined;
  /** The partition of this name, or those that hold queues of it. */
  partitionsOf(name: string): readonly Partition[];
  readonly core: { readonly registerAway: string };
}

interface Wait {
  readonly storeId: string;
  readonly untilMs: number;
  readonly then: () => void;
}

const NOT_WRITTEN =
  'which stores are drained can not be written to state_dir: a restart forgets the last order';

export class DrainedStores implements StoreControl {
  readonly #ports: DrainedPorts;
  readonly #since: Map<string, number>;
  /** What the file says. */
  #kept: DrainedSince = new Map();
  #isWriting = false;
  #waits: readonly Wait[] = [];

  constructor(ports: DrainedPorts) {
    this.#ports = ports;
    this.#kept = this.#read();
    this.#since = new Map(this.#kept);
    for (const storeId of this.#since.keys()) ports.leaving.drain(storeId);
  }

  /** Called now and then. */
  tick(): void {
    this.#tellWaits();
  }

  /** Since when a store is drained; undefined when it is used. */
  sinceWallMs(storeId: string): number | undefined {
    return this.#since.get(storeId);
  }

  drainState(storeId: string): DrainState | undefined {
    const { mirrors, leaving } = this.#ports;
    if (mirrors.storeOf(storeId) === undefined) return undefined;
    const { placement } = mirrors;
    return {
      draining: placement.drained.has(storeId),
      mirrors: leaving.copiesAt(storeId), stuck: leaving.stuckAt(storeId),
      copiesMissing: leaving.copiesMissing(), kept: this.#isKept(storeId),
      registerAway: this.#ports.core.registerAway,
    };
  }

  drain(storeId: string, { reason, who }: Order): void {
    const { leaving, log, clock } = this.#ports;
    if (leaving.drain(storeId)) {
      this.#since.set(storeId, clock.wallMs());
      log.warn('drain', 'an operator drains a store', { store: storeId, reason, who });
    }
    this.#save();
  }

  undrain(storeId: string, { reason, who }: Order): void {
    const { leaving, log } = this.#ports;
    this.#since.delete(storeId);
    if (leaving.undrain(storeId)) {
      log.warn('drain', 'an operator has a store used again', { store: storeId, reason, who });
    }
    this.#save();
  }

  whenSettled(storeId: string, then: () => void): void {
    this.#waits = [...this.#waits, { storeId, untilMs: this.#ports.clock.nowMs() + DISK_WAIT_MS, then }];
    this.#tellWaits();
  }

  resync(queue: string, storeId: string, { reason, who }: Order): number | undefined {
    let found = false;
    let filled = 0;
    for (const partition of this.#ports.partitionsOf(queue)) {
      const row = partition.rows.find((one) => one.storeId === storeId && one.isRecorded);
      if (row === undefined) continue;
      found = true;
      if (this.#ports.mirrors.refillAgain(partition, row)) filled += 1;
    }
    if (filled > 0) {
      const fields = { queue, store: storeId, queues: filled, reason, who };
      this.#ports.log.warn('mirror', 'an operator has a mirror emptied and filled again', fields);
    }
    return found ? filled : undefined;
  }

  /** A restart will know whether the store is drained. */
  #isKept(storeId: string): boolean {
    return this.#kept.get(storeId) === this.#since.get(storeId);
  }

  #read(): DrainedSince {
    try {
      return this.#ports.file?.read() ?? new Map();
    } catch (error) {
      const text = 'which stores are drained can not be read from state_dir: all are used; drain them again';
      this.#ports.log.error('drain', text, { why: errorText(error) });
      return new Map();
    }
  }

  /** One write at a time; what was ordered meanwhile is written by the next. */
  #save(): void {
    const { file } = this.#ports;
    if (file === undefined || this.#isWriting || isSame(this.#kept, this.#since)) return;
    this.#isWriting = true;
    const wanted = new Map(this.#since);
    file.write(wanted).then(
      () => {
        this.#isWriting = false;
        this.#kept = wanted;
        this.#save();
        this.#tellWaits();
      },
      (error: unknown) => {
        this.#isWriting = false;
        this.#ports.log.error('drain', NOT_WRITTEN, { why: errorText(error) });
        this.#tellWaits();
      },
    );
  }

  /** Those whose order is kept, or for which nothing is under way. */
  #tellWaits(): void {
    if (this.#waits.length === 0) return;
    const nowMs = this.#ports.clock.nowMs();
    const open: Wait[] = [];
    const over: Wait[] = [];
    for (const wait of this.#waits) {
      const waits = this.#isWriting && !this.#isKept(wait.storeId) && nowMs < wait.untilMs;
      (waits ? open : over).push(wait);
    }
    this.#waits = open;
    for (const { then } of over) then();
  }
}

function isSame(a: DrainedSince, b: DrainedSince): boolean {
  return a.size === b.size && [...a].every(([storeId, sinceWallMs]) => b.get(storeId) === sinceWallMs);
}
