/**
 * The stores that an operator has drained, as the gateway remembers them across restarts (records "drain/ID" of its
 * control queue), and what else an operator does with mirrors: the part of the admin HTTP that changes something there.
 *
 *   order ─► in force here at once, record set ─► record at the mirrors: kept; until then a crash may undo it
 *
 *   record: offset size
 *           0      1    1 drained, 0 used
 *           1      8    since when, milliseconds since 1970, a little-endian double; release 0.1.0 leaves it out
 */
import type { Clock, EventLog } from '../platform/ports.js';
import type { Order } from '../admin-api/orders.js';
import type { DrainState, StoreControl } from './admin/store-api.js';
import type { Mirrors } from './mirror/mirrors.js';
import type { QueueMirror } from './mirror/queue-mirror.js';
import type { ControlRecords } from './control/control-records.js';

const PREFIX = 'drain/';
/** A store that is used again keeps a record that says so, even if none was known: what comes back late must not drain it anew. */
const DRAINED = 1;
const USED = 0;
const SINCE_AT = 1;
const RECORD_BYTES = 9;

export interface DrainedPorts {
  readonly clock: Pick<Clock, 'wallMs'>;
  readonly log: EventLog;
  readonly mirrors: Mirrors;
  /** Those of this gateway. */
  readonly records: ControlRecords;
  queuesOf(name: string): readonly QueueMirror[];
  /** Calls back once the mirrors have acknowledged what the records say now, or at a bound. */
  whenKept(then: () => void): void;
}

export class DrainedStores implements StoreControl {
  private readonly ports: DrainedPorts;
  private version = -1;

  constructor(ports: DrainedPorts) {
    this.ports = ports;
  }

  /** Called now and then: records may have come back. */
  tick(): void {
    const { mirrors, records } = this.ports;
    if (records.version === this.version) return;
    this.version = records.version;
    for (const name of records.names(PREFIX)) {
      const storeId = name.slice(PREFIX.length);
      if (records.get(name)?.[0] === DRAINED) mirrors.moves.drain(storeId);
      else mirrors.moves.undrain(storeId);
    }
  }

  /** Since when a store is drained; undefined when that is not known. */
  sinceWallMs(storeId: string): number | undefined {
    const record = this.ports.records.get(PREFIX + storeId);
    if (record?.[0] !== DRAINED || record.length < RECORD_BYTES) return undefined;
    const sinceWallMs = new DataView(record.buffer, record.byteOffset, record.length).getFloat64(SINCE_AT, true);
    return Number.isFinite(sinceWallMs) ? sinceWallMs : undefined;
  }

  drainState(storeId: string): DrainState | undefined {
    const { mirrors } = this.ports;
    if (!mirrors.stores.some((store) => store.storeId === storeId)) return undefined;
    const { moves, placement } = mirrors;
    return { draining: placement.drained.has(storeId), mirrors: moves.mirrorsAt(storeId), stuck: moves.stuckAt(storeId), copiesMissing: moves.copiesMissing(), kept: this.isKept(storeId) };
  }

  drain(storeId: string, { reason, who }: Order): void {
    // Written first: the queue of the records may have to be founded, and with few stores it needs this one.
    this.save(storeId, DRAINED);
    if (this.ports.mirrors.moves.drain(storeId)) this.ports.log.warn('drain', 'an operator drains a store', { store: storeId, reason, who });
  }

  undrain(storeId: string, { reason, who }: Order): void {
    if (this.ports.mirrors.moves.undrain(storeId)) this.ports.log.warn('drain', 'an operator has a store used again', { store: storeId, reason, who });
    this.save(storeId, USED);
  }

  whenSettled(storeId: string, then: () => void): void {
    if (this.isKept(storeId)) then();
    else this.ports.whenKept(then);
  }

  resync(queue: string, storeId: string, { reason, who }: Order): number | undefined {
    let found = false;
    let filled = 0;
    for (const mirror of this.ports.queuesOf(queue)) {
      const replica = mirror.replicas.find((one) => one.store.storeId === storeId);
      if (replica === undefined) continue;
      found = true;
      if (this.ports.mirrors.refillAgain(mirror, replica)) filled += 1;
    }
    if (filled > 0) this.ports.log.warn('mirror', 'an operator has a mirror emptied and filled again', { queue, store: storeId, queues: filled, reason, who });
    return found ? filled : undefined;
  }

  /** A restart will know whether the store is drained. Used is what it takes a store for of which it knows nothing. */
  private isKept(storeId: string): boolean {
    const { records, mirrors } = this.ports;
    const name = PREFIX + storeId;
    const record = records.get(name);
    const isDrained = mirrors.placement.drained.has(storeId);
    if (record === undefined) return !isDrained;
    return (record[0] === DRAINED) === isDrained && records.isKept(name);
  }

  /** Unless the record says so already: an order that is given again, to see that it is kept, changes nothing. */
  private save(storeId: string, wanted: number): void {
    if (this.ports.records.get(PREFIX + storeId)?.[0] === wanted) return;
    const record = new Uint8Array(RECORD_BYTES);
    record[0] = wanted;
    new DataView(record.buffer).setFloat64(SINCE_AT, this.ports.clock.wallMs(), true);
    if (this.ports.records.set(PREFIX + storeId, record)) return;
    this.ports.log.error('drain', 'whether this store is drained can not be kept: there are too many records; a restart forgets it', { store: storeId, drained: wanted === DRAINED });
  }
}
