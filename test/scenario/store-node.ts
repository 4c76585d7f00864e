/**
 * A store process of the scenario world: the real Store and StoreConnections on the scenario network. Killed,
 * it loses its memory; started again, it is empty under a new boot id. Told to leave, it moves its partitions away and
 * comes back once with what its spill file holds, as store-daemon.ts does it.
 */
import type { Prng } from '../../src/base/prng.js';
import { StoreCounters } from '../../src/kvs/core/counters.js';
import { SpillLoader } from '../../src/kvs/core/spill/loader.js';
import { SpillWriter } from '../../src/kvs/core/spill/writer.js';
import { Stopping } from '../../src/kvs/core/stopping.js';
import { StoreConnection } from '../../src/kvs/core/store-connection.js';
import { STORE_DEFAULTS, Store } from '../../src/kvs/core/store.js';
import { crc32 } from '../../src/platform/node/checksum.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import type { EventLog } from '../../src/platform/ports.js';
import { FRAME_BYTES_MAX } from '../../src/protocol/frame.js';
import { RECORD_HEADER_BYTES } from '../../src/protocol/spill-records.js';
import { SeededSecrets } from './ports.js';
import type { Network } from './network.js';
import type { Timeline } from './timeline.js';

const TICK_MS = 50;

export interface StoreNodeOptions {
  readonly id: string;
  readonly gateways: readonly { readonly id: string; readonly secret: Uint8Array }[];
  readonly memoryLimitBytes: number;
  readonly windowBytes: number;
  readonly leaseMs?: number;
}

export interface NodePorts {
  /** Time of this process. */
  readonly scheduler: Timeline;
  readonly network: Network;
  readonly log: EventLog;
  readonly wallBaseMs: number;
  /** Called after each turn. */
  readonly onTurn?: () => void;
}

/** The life of one process: what it asked for ends with it. */
class Life {
  alive = true;
  readonly connections = new Set<StoreConnection>();
  readonly turn = new Set<StoreConnection>();
  turnAsked = false;
  stopping: Stopping | undefined;
  onLeft: () => void = () => {};
  readonly store: Store;
  readonly counters = new StoreCounters();
  /** In hex, as links tell it. */
  readonly bootId: string;

  constructor(store: Store) {
    this.store = store;
    this.bootId = store.bootId;
  }
}

export class StoreNode {
  readonly id: string;
  private readonly options: StoreNodeOptions;
  private readonly ports: NodePorts;
  private readonly prng: Prng;
  private life: Life | undefined;
  /** Copies of a spill file that the running process came back with. */
  loadedCopies = 0;
  /** Records of the spill file on its disk, read once. */
  private file: Uint8Array[] = [];

  constructor(options: StoreNodeOptions, ports: NodePorts, prng: Prng) {
    this.id = options.id;
    this.options = options;
    this.ports = ports;
    this.prng = prng;
  }

  get isAlive(): boolean {
    return this.life !== undefined;
  }

  /** The store's memory; undefined while it is dead. */
  get store(): Store | undefined {
    return this.life?.store;
  }

  /** Boot id of the running process in hex; '' while it is dead. */
  get bootId(): string {
    return this.life?.bootId ?? '';
  }

  get counters(): StoreCounters | undefined {
    return this.life?.counters;
  }

  start(): void {
    const { scheduler, network } = this.ports;
    const secrets = new SeededSecrets(this.prng.fork());
    const packer = new MessagePacker();
    const store = this.load(packer) ?? this.newStore(Buffer.from(secrets.randomBytes(16)).toString('hex'), 0);
    const bootId = Buffer.from(store.bootId, 'hex');
    const life = new Life(store);
    this.life = life;
    const clock = { nowMs: () => scheduler.nowMs, wallMs: () => this.ports.wallBaseMs + scheduler.nowMs };
    network.listen(this.id, (connection) => {
      const machine = new StoreConnection(
        { bootId, frameBytesMax: FRAME_BYTES_MAX, windowBytes: this.options.windowBytes, silenceMs: 30_000 },
        { connection, clock, crc32, packer, secrets, log: this.ports.log }, store, life.counters,
      );
      life.connections.add(machine);
      return {
        onOpen: () => {
          machine.onOpen();
          if (life.stopping !== undefined) machine.stop();
        },
        onData: (bytes) => {
          machine.onData(bytes);
          life.turn.add(machine);
          this.askTurn(life);
        },
        onDrain: () => { machine.onDrain(); },
        onClose: (reason) => {
          machine.onClose(reason);
          life.connections.delete(machine);
        },
      };
    });
    this.tick(life);
  }

  private newStore(bootId: string, inheritedLeaseMs: number): Store {
    const { options } = this;
    return new Store(
      { ...STORE_DEFAULTS, bootId, inheritedLeaseMs, leaseMs: options.leaseMs ?? STORE_DEFAULTS.leaseMs, storeId: this.id, gateways: options.gateways, memoryLimitBytes: options.memoryLimitBytes, startMs: this.ports.scheduler.nowMs, segmentBytes: 64 * 1024, indexSeed: this.prng.below(0x7fffffff) },
      { crc32 },
    );
  }

  /** `lingers`: what it wrote still arrives. */
  kill(lingers = false): void {
    if (this.life === undefined) return;
    this.life.alive = false;
    this.life = undefined;
    this.ports.network.dropProcess(this.id, lingers);
  }

  /**
   * SIGTERM with its time to move queues away. `onLeft` is called when the process is about to end; what it still
   * holds is in its file then, if it writes one.
   */
  leave(timeoutMs: number, writesFile: boolean, onLeft: () => void): void {
    const { life } = this;
    if (life === undefined || life.stopping !== undefined) return;
    life.stopping = new Stopping({ nowMs: this.ports.scheduler.nowMs, timeoutMs }, life.store);
    life.stopping.begin(life.connections);
    life.onLeft = () => {
      for (const connection of [...life.connections]) connection.stop();
      if (writesFile && SpillWriter.holds(life.store)) {
        const records = new SpillWriter({ crc32, packer: new MessagePacker() }, life.store).records(0, '');
        // Chunks are used again for the next record.
        for (const chunks of records) this.file.push(Buffer.concat(chunks));
      }
      onLeft();
    };
    if (life.stopping.isOver(this.ports.scheduler.nowMs)) life.onLeft();
  }

  /** What is on its disk while it is down: for a backup, and put back from one. */
  get disk(): readonly Uint8Array[] {
    return this.file;
  }

  putBack(disk: readonly Uint8Array[]): void {
    this.file = [...disk];
  }

  /** The store of its spill file, if it has left one: the same boot goes on, once. */
  private load(packer: MessagePacker): Store | undefined {
    const records = this.file;
    this.file = [];
    this.loadedCopies = 0;
    if (records.length === 0) return undefined;
    const loader = new SpillLoader({ storeId: this.id }, { packer, newStore: ({ bootId, longestLeaseMs }) => this.newStore(bootId, longestLeaseMs) });
    for (const record of records) {
      const view = new DataView(record.buffer, record.byteOffset, record.length);
      const payloadAt = RECORD_HEADER_BYTES + view.getUint32(12, true);
      const rule = loader.take(view.getUint32(4, true), record.subarray(RECORD_HEADER_BYTES, payloadAt), record.subarray(payloadAt));
      if (rule !== '') throw new Error(`a spill file of ours is not taken: ${rule}`);
    }
    this.loadedCopies = loader.copies;
    return loader.loaded;
  }

  private askTurn(life: Life): void {
    if (life.turnAsked) return;
    life.turnAsked = true;
    this.ports.scheduler.soon(() => {
      life.turnAsked = false;
      if (!life.alive) return;
      for (const machine of life.turn) machine.endTurn();
      life.turn.clear();
      this.ports.onTurn?.();
      if (life.store.hasWork) life.store.work();
    });
  }

  private tick(life: Life): void {
    if (!life.alive) return;
    for (const connection of life.connections) connection.tick(this.ports.scheduler.nowMs);
    life.store.tick(this.ports.scheduler.nowMs);
    if (life.stopping?.isOver(this.ports.scheduler.nowMs) === true) {
      life.onLeft();
      return;
    }
    if (life.store.hasWork) life.store.work();
    this.ports.scheduler.after(TICK_MS, () => { this.tick(life); });
  }
}
