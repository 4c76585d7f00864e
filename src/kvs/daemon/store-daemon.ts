/**
 * A store as a process part: listens on its network paths, runs one StoreConnection for each connection,
 * ticks the store, serves admin HTTP. Everything that decides is in kvs/core; this file owns sockets and
 * timers only.
 *
 *   paths (A, B) ─► StoreConnection ─► Store            every TICK_MS: silence, lapsed grants, work steps
 *   admin HTTP ──► /metrics /healthz /readyz /api/v1
 *
 *   start   the lock (state-lock.ts), what a spill file brings back, then the ports
 *   stop()  gateways are told and move their partitions away (core/stopping.ts), new connections get
 *           CLOSE (STOPPING)
 *           ─► all is acknowledged, CLOSE (STOPPING) on each, all sockets gone or STOP_GRACE_MS passed
 *           ─► what is still held goes to the spill file (spill-file.ts), then the lock is given back
 *
 * Signals and the exit code belong to src/bin. A store started anew has a new boot id and is empty; with a
 * file it goes on as the boot that wrote it.
 */

import type { StoreKeys } from '../../config/keys/schema.js';
import type { Clock, Crc32, EventLog, LogLosses, Packer, Secrets } from '../../platform/ports.js';
import type { ReloadControl } from '../../platform/reloads.js';
import type { Connection, ConnectionHandlers, Listener, Listening } from '../../platform/transport.js';
import type { Ticker } from '../../platform/node/clock.js';
import { startTicker } from '../../platform/node/clock.js';
import { FRAME_BYTES_MAX } from '../../protocol/frame.js';
import { BOOT_ID_BYTES } from '../../protocol/handshake.js';
import type { FileLock } from '../../platform/node/file-lock.js';
import type { SpillHead } from '../../protocol/spill-records.js';
import { StoreCounters } from '../core/counters.js';
import { STORE_DEFAULTS, Store } from '../core/store.js';
import { StoreConnection } from '../core/store-connection.js';
import { Stopping } from '../core/stopping.js';
import type { AdminOptions, RunningAdmin } from '../../platform/node/admin-server.js';
import type { InRegister, RenewedStore, RunningStore } from './running-store.js';
import { ConfigurationInForce } from '../../observability/configuration-in-force.js';
import { startAdminHttp } from './admin-http.js';
import type { RegisterChoice } from '../../register/running/open-register.js';
import type { StoreRecord } from '../../register/records.js';
import { addressText } from '../../base/address-text.js';
import { reachableAddress } from '../../platform/node/own-host.js';
import { StorePresence } from './store-presence.js';
import type { NamedGateway } from './store-presence.js';
import { loadSpillFile, spillFileName, unuseSpillFile, writeSpillFile } from './spill-file.js';
import type { LoadedSpill } from './spill-file.js';
import { requireOwnFolder } from './spill-origin.js';
import { takeStateLock } from './state-lock.js';

/** How often silence, grants and gaps in segments are looked at. */
const TICK_MS = 50;
/** What a stopping store waits for its sockets to close. */
const STOP_GRACE_MS = 2_000;
/** A proved connection that says nothing for this long is closed; heartbeats come every 250 ms. */
const SILENCE_MS = 30_000;
/** Bytes a gateway may have unacknowledged on one connection. */
const WINDOW_BYTES = 8 * 1024 * 1024;

export interface StoreDaemonPath {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** host:port by which gateways reach it, when it is not where it listens. */
  readonly advertised?: string | undefined;
}

/** As the file says it. */
type SaidInFile =
  'weight' | 'leaseMs' | 'windowBytes' | 'ringBytes' | 'insecure' | 'stateDir' | 'spill' | 'stopTimeoutMs';

export interface StoreDaemonOptions extends Partial<Pick<StoreKeys, SaidInFile>> {
  readonly storeId: string;
  /** Machine this store runs on: a gateway does not place a partition on its own host. */
  readonly host: string;
  readonly paths: readonly StoreDaemonPath[];
  readonly admin: AdminOptions | undefined;
  /** `admin`: host:port of its admin HTTP, for those who look at the whole group. */
  readonly gateways: readonly {
    readonly id: string; readonly secret: Uint8Array; readonly admin?: string | undefined;
  }[];
  /** Lets in any gateway that proves it; undefined: `gateways` only. */
  readonly groupSecret?: Uint8Array | undefined;
  /** Where it makes itself known to all gateways; undefined: they know it by their own files. */
  readonly register?: RegisterChoice | undefined;
  readonly memoryLimitBytes: number;
  readonly segmentBytes?: number;
  /**
   * How long a process of the store before that still has the files is waited for;
   * state-lock.ts has the usual one.
   */
  readonly lockWaitMs?: number;
  /** Started by `twinpost up`: all its stores share one folder. */
  readonly oneHost?: boolean;
  readonly version?: string;
  /** Short name of what its file says; left out where there is none. */
  readonly configurationHash?: string;
}

export interface StoreDaemonPorts {
  readonly clock: Clock;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly secrets: Secrets;
  readonly log: EventLog;
  readonly listener: Listener;
  /** Unix time in milliseconds, by use; none without TLS. */
  readonly certificateEnds?: ReadonlyMap<string, number>;
  readonly logLosses?: LogLosses;
  /** Undefined: there is no file to read. */
  readonly reloads?: ReloadControl;
  /** Another process of this store is in the register, and was before this one. Once. */
  onRefused?(why: string): void;
}

const NO_CERTIFICATES: ReadonlyMap<string, number> = new Map();

/** What a process of the store before has left, and the right to it. */
interface Inheritance {
  readonly file: string;
  readonly lock: FileLock;
}

/**
 * Rejects with a StoreStartError (or an error of listening) when the store can't start;
 * then nothing was changed.
 */
export async function startStore(
  options: StoreDaemonOptions, ports: StoreDaemonPorts,
): Promise<RunningStore> {
  const { stateDir, storeId } = options;
  if (stateDir === undefined) {
    return await listening(new StoreDaemon(options, ports, newStore(options, ports, undefined), undefined));
  }
  const file = spillFileName(stateDir, storeId);
  const lock = await takeStateLock(
    { storeId, file, ...(options.lockWaitMs === undefined ? {} : { waitMs: options.lockWaitMs }) }, ports.log,
  );
  let loaded: LoadedSpill | undefined;
  try {
    if (options.oneHost !== true) requireOwnFolder(file, storeId);
    loaded = await loadSpillFile(file, storeId, (head) => newStore(options, ports, head), ports);
    return await listening(
      new StoreDaemon(options, ports, loaded?.store ?? newStore(options, ports, undefined), { file, lock })
    );
  } catch (error) {
    if (loaded !== undefined) unuseSpillFile(loaded);
    lock.release();
    throw error;
  }
}

async function listening(daemon: StoreDaemon): Promise<RunningStore> {
  await daemon.listen();
  return daemon;
}

/** `head`: of the file that it goes on from. */
function newStore(options: StoreDaemonOptions, ports: StoreDaemonPorts, head: SpillHead | undefined): Store {
  const seed = ports.secrets.randomBytes(4);
  return new Store(
    {
      ...STORE_DEFAULTS,
      storeId: options.storeId,
      bootId: head?.bootId ?? Buffer.from(ports.secrets.randomBytes(BOOT_ID_BYTES)).toString('hex'),
      inheritedLeaseMs: head?.longestLeaseMs ?? 0,
      gateways: options.gateways,
      groupSecret: options.groupSecret,
      memoryLimitBytes: options.memoryLimitBytes,
      leaseMs: options.leaseMs ?? STORE_DEFAULTS.leaseMs,
      segmentBytes: options.segmentBytes ?? STORE_DEFAULTS.segmentBytes,
      ringBytes: options.ringBytes ?? STORE_DEFAULTS.ringBytes,
      startMs: ports.clock.nowMs(),
      indexSeed: new DataView(seed.buffer, seed.byteOffset, 4).getUint32(0),
    },
    { crc32: ports.crc32 },
  );
}

class StoreDaemon implements RunningStore {
  readonly store: Store;
  readonly counters = new StoreCounters();
  readonly bootId: Uint8Array;
  readonly connections = new Set<StoreConnection>();
  #options: StoreDaemonOptions;
  readonly #ports: StoreDaemonPorts;
  readonly #inheritance: Inheritance | undefined;
  readonly #inForce: ConfigurationInForce | undefined;
  readonly #listening: Listening[] = [];
  #admin: RunningAdmin | undefined;
  #presence: StorePresence | undefined;
  #ticker: Ticker | undefined;
  /** Connections that were read in this turn of the loop. */
  readonly #turn: StoreConnection[] = [];
  #turnQueued = false;
  #isServing = false;
  #stopping: Stopping | undefined;
  #onStoppingOver: (() => void) | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(
    options: StoreDaemonOptions, ports: StoreDaemonPorts, store: Store, inheritance: Inheritance | undefined,
  ) {
    this.#options = options;
    this.#ports = ports;
    this.#inheritance = inheritance;
    this.bootId = Buffer.from(store.bootId, 'hex');
    this.store = store;
    const { configurationHash: hash } = options;
    this.#inForce = hash === undefined ? undefined : new ConfigurationInForce(hash, ports.clock);
  }

  get configuration(): RunningStore['configuration'] {
    return this.#inForce?.answer();
  }

  get certificateEnds(): ReadonlyMap<string, number> {
    return this.#ports.certificateEnds ?? NO_CERTIFICATES;
  }

  get logLosses(): LogLosses | undefined {
    return this.#ports.logLosses;
  }

  get ports(): readonly number[] {
    return this.#listening.map((listening) => listening.port);
  }

  get isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  get presence(): InRegister | undefined {
    return this.#presence;
  }

  get adminPort(): number {
    return this.#admin?.port ?? 0;
  }

  async listen(): Promise<void> {
    try {
      for (const path of this.#options.paths) {
        const accept = (connection: Connection): ConnectionHandlers => this.#accept(connection);
        this.#listening.push(await this.#ports.listener.listen(path.host, path.port, accept));
      }
      const { admin } = this.#options;
      if (admin !== undefined) this.#admin = await startAdminHttp(
        {
          ...admin, label: this.#options.host, version: this.#options.version ?? '',
          insecure: this.#options.insecure === true, gateways: () => this.#gateways(),
        },
        this,
        this.#ports,
      );
    } catch (error) {
      await this.#close();
      throw error;
    }
    await this.#beKnown();
    this.#isServing = true;
    this.#ticker = startTicker(this.#ports.clock, TICK_MS, (nowMs) => { this.#tick(nowMs); });
    this.#ports.log.info('store', 'store started', {
      store: this.store.storeId, host: this.#options.host, ports: this.ports, admin: this.adminPort,
      memory_limit: this.#options.memoryLimitBytes, gateways: this.#options.gateways.length,
    });
  }

  async #beKnown(): Promise<void> {
    const { register } = this.#options;
    if (register === undefined) return;
    try {
      this.#presence = await StorePresence.begin(this.store.storeId, register, {
        ...this.#ports,
        record: () => this.#record(),
        onRefused: (why) => { this.#ports.onRefused?.(why); },
      });
    } catch (error) {
      await this.#close();
      throw error;
    }
  }

  /** What the register says of this store. */
  #record(): StoreRecord {
    const { admission, bootId } = this.store;
    const { host, weight, paths, admin } = this.#options;
    return {
      bootId, host, weight: weight ?? 1,
      addresses: paths.map(({ advertised, host: at, port }, i) =>
        advertised ?? addressText(at, this.ports[i] ?? port)),
      memoryFreeBytes: Math.max(0, admission.acceptBytes - admission.usedBytes),
      draining: this.isStopping,
      admin: admin === undefined ? '' : reachableAddress(admin.listen.host, this.adminPort) ?? '',
    };
  }

  /** Those of the configuration, and those of the register that are let in; each once. */
  #gateways(): readonly NamedGateway[] {
    const { gateways, groupSecret } = this.#options;
    const named = new Map((this.#presence?.gateways() ?? []).map((one) => [one.id, one]));
    const known = gateways.map(({ id, admin }) => ({ id, admin: admin ?? named.get(id)?.admin }));
    const others = [...named.values()].filter(({ id }) => gateways.every((one) => one.id !== id));
    return groupSecret === undefined ? known : [...known, ...others];
  }

  renew(options: RenewedStore): void {
    this.#options = { ...this.#options, ...options };
    this.store.letIn(options);
    const { configurationHash: hash } = options;
    if (hash !== undefined) this.#inForce?.renewed(hash);
  }

  refused(why: string): void {
    this.#inForce?.refused(why);
  }

  async stop(): Promise<void> {
    if (this.#stopping !== undefined) return;
    const { clock, log } = this.#ports;
    const { storeId, partitions, entries } = this.store;
    this.#stopping = new Stopping(
      { nowMs: clock.nowMs(), timeoutMs: this.#options.stopTimeoutMs ?? 0 }, this.store,
    );
    this.#stopping.begin(this.connections);
    log.info(
      'store', 'store stops', { store: storeId, partitions: partitions.count, messages: entries.count },
    );
    this.#presence?.tick(clock.nowMs());
    if (!this.#stopping.isOver(clock.nowMs())) await this.#movedAway();
    await this.#close();
    try {
      if (this.#options.spill === true && this.#inheritance !== undefined) {
        await this.#spill(this.#inheritance);
      }
    } finally {
      this.#inheritance?.lock.release();
    }
    log.info('store', 'store stopped', { store: storeId });
  }

  async #spill({ file, lock }: Inheritance): Promise<void> {
    try {
      // Frozen for long in a container, it may have been taken for dead.
      if (!lock.isOurs) throw new Error('another process has taken the files of this store');
      await writeSpillFile(file, this.store, this.#ports);
    } catch (error) {
      this.#ports.log.error(
        'spill', 'spill file could not be written: what stood only here is gone',
        { file, error: String(error), messages: this.store.entries.count },
      );
      throw new Error(
        `store ${this.store.storeId}: ${file} could not be written (${String(error)})`, { cause: error },
      );
    }
  }

  #movedAway(): Promise<void> {
    return new Promise((resolve) => { this.#onStoppingOver = resolve; });
  }

  async #close(): Promise<void> {
    this.#ticker?.stop();
    for (const listening of this.#listening) listening.close();
    for (const connection of this.connections) connection.stop();
    await this.#presence?.close();
    await this.#admin?.close();
    if (this.connections.size > 0) await this.#allGone();
  }

  #allGone(): Promise<void> {
    return new Promise((resolve) => {
      const grace = setTimeout(resolve, STOP_GRACE_MS);
      this.#onEmpty = () => {
        clearTimeout(grace);
        resolve();
      };
    });
  }

  #accept(connection: Connection): ConnectionHandlers {
    const { clock, crc32, packer, secrets, log } = this.#ports;
    const machine = new StoreConnection(
      {
        bootId: this.bootId, frameBytesMax: FRAME_BYTES_MAX,
        windowBytes: this.#options.windowBytes ?? WINDOW_BYTES, silenceMs: SILENCE_MS,
      },
      { connection, clock, crc32, packer, secrets, log },
      this.store,
      this.counters,
    );
    this.connections.add(machine);
    return {
      onOpen: () => {
        machine.onOpen();
        // Before all ports are bound the start may still fail, and then a spill file
        // must be as good as before.
        if (!this.#isServing || this.#stopping !== undefined) machine.stop();
      },
      onData: (bytes) => {
        machine.onData(bytes);
        if (this.#turn.at(-1) !== machine) this.#turn.push(machine);
        this.#queueTurn();
      },
      onDrain: () => { machine.onDrain(); },
      onClose: (reason) => {
        machine.onClose(reason);
        this.connections.delete(machine);
        if (this.connections.size === 0) this.#onEmpty?.();
      },
    };
  }

  /**
   * A socket is read several times in one turn while its kernel buffer is full; answers go out after the
   * last. One step of work follows, so that requests are read between steps.
   */
  #queueTurn(): void {
    if (this.#turnQueued) return;
    this.#turnQueued = true;
    setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#turnQueued = false;
    for (const machine of this.#turn) machine.endTurn();
    this.#turn.length = 0;
    if (this.store.hasWork && this.store.work()) this.#queueTurn();
  };

  #tick(nowMs: number): void {
    for (const connection of this.connections) connection.tick(nowMs);
    this.store.tick(nowMs);
    this.#presence?.tick(nowMs);
    if (this.#stopping?.isOver(nowMs) === true) this.#onStoppingOver?.();
    if (this.store.hasWork) this.#queueTurn();
  }
}
