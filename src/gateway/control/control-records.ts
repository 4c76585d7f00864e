/**
 * The control queue: small named records of a gateway, mirrored like mail, so that they survive what mail
 * survives. A record is an entry without a body in a queue of class "control"; to replace one is to store its
 * successor and to delete it in the same turn, which a mirror takes as one section or not at all.
 *
 *   set(name) ─► STORE of the new entry, DELETE of the old one ─► mirrors
 *   recovery  ─► entries by position: of two with one name the younger is the record
 *
 * Head of an entry: | 0 | 1 | version, 1 | 1 | … | MessagePack array [name str, value bin] |
 *
 * Bounded: a record, their number and so the whole. Until the queue is back, records that are set wait here; they
 * are younger than what comes back. An owner may have two such queues: one that came back late stands beside the one
 * founded meanwhile, and what the younger queue says holds.
 * Pure. What the names mean is in the files that use them (crash-record.ts, message-holds.ts, drained-stores.ts);
 * which queue it is, control-queues.ts.
 */
import { checkControl } from '../../protocol/bounds.js';
import type { Clock, Crc32, EventLog, Packer } from '../../platform/ports.js';
import type { Mirrors } from '../mirror/mirrors.js';
import { ENTRY_CREDIT_BYTES } from '../mirror/queue-mirror.js';
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { Entries } from '../queue/entries.js';
import { EntryState } from '../queue/entry-table.js';
import type { Route } from '../queue/types.js';

/** The one route of class control: no next hop, nothing of it is ever handed out. */
export const CONTROL_ROUTE: Route = Object.freeze({
  queueName: 'control', queueClass: 'control', nextHop: Object.freeze({ protocol: 'smtp', host: 'invalid', port: 25 }), ordering: 'fifo', concurrency: 1, lengthMax: 0,
});

export const NAME_CHARS_MAX = 255;
export const VALUE_BYTES_MAX = 64 * 1024;
/** Their values together have a bound of their own: 10,000 of the largest would be 640 MiB. */
export const RECORDS_MAX = 10_000;
export const RECORDS_BYTES_MAX = 16 * 1024 * 1024;

const HEAD_VERSION = 1;
/** Records are kept until they are replaced. */
const NEVER_SECONDS = 0xffffffff;
const NO_CHUNKS: readonly Uint8Array[] = [];

export interface ControlPorts {
  readonly clock: Clock;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly entries: Entries;
  readonly mirrors: Mirrors;
  /** Gateway whose records they are. */
  readonly ownerId: string;
  /** The queue of the records, made now if need be; undefined while it may still come back, or no store can be had. */
  queue(): QueueMirror | undefined;
  nextMessageId(): number;
}

interface KnownRecord {
  readonly value: Uint8Array;
  /** Row of its entry; 0 while it waits for the queue. */
  readonly row: number;
}

export class ControlRecords {
  private readonly ports: ControlPorts;
  private readonly records = new Map<string, KnownRecord>();
  /** Names whose record has to be written, or deleted, once the queue is there. */
  private readonly waiting = new Set<string>();
  private bytes = 0;
  private changes = 0;

  constructor(ports: ControlPorts) {
    this.ports = ports;
  }

  get(name: string): Uint8Array | undefined {
    return this.records.get(name)?.value;
  }

  /** The names that begin so, in the order in which they were set. */
  names(prefix: string): string[] {
    return [...this.records.keys()].filter((name) => name.startsWith(prefix));
  }

  get size(): number {
    return this.records.size;
  }

  /** Names and values together. */
  get usedBytes(): number {
    return this.bytes;
  }

  /** Another number after each change, so that others may keep what they have read. */
  get version(): number {
    return this.changes;
  }

  /** Records that wait for the queue or for room at a mirror. */
  get unwritten(): number {
    return this.waiting.size;
  }

  /** The mirrors have acknowledged the record as it is now. */
  isKept(name: string): boolean {
    const known = this.records.get(name);
    if (known === undefined || this.waiting.has(name)) return false;
    const { entries, mirrors } = this.ports;
    const mirror = mirrors.mirrorOf(entries.table.queueHandle(known.row));
    return mirror !== undefined && mirror.committedNumber >= entries.table.position.get(known.row);
  }

  /** Sets a record; false when a bound does not allow it. It is at the mirrors when the turn's changes are. */
  set(name: string, value: Uint8Array): boolean {
    if (name === '' || name.length > NAME_CHARS_MAX || value.length > VALUE_BYTES_MAX) return false;
    const before = this.records.get(name);
    const growth = value.length - (before?.value.length ?? 0) + (before === undefined ? name.length : 0);
    if ((before === undefined && this.records.size >= RECORDS_MAX) || this.bytes + growth > RECORDS_BYTES_MAX) return false;
    this.bytes += growth;
    this.changes += 1;
    this.records.set(name, { value: value.slice(), row: before?.row ?? 0 });
    this.waiting.add(name);
    this.write();
    return true;
  }

  /** Forgets a record. */
  delete(name: string): void {
    const known = this.records.get(name);
    if (known === undefined) return;
    this.bytes -= known.value.length + name.length;
    this.changes += 1;
    this.records.delete(name);
    this.waiting.delete(name);
    if (known.row !== 0) this.end(known.row);
  }

  /** Called now and then: writes what could not be written yet. */
  tick(): void {
    if (this.waiting.size > 0) this.write();
  }

  /** An entry of a control queue came back; those of one queue come by ascending position. */
  onRecovered(row: number, sound: boolean): void {
    const { entries, log, ownerId } = this.ports;
    const read = sound ? this.decode(entries.head(row)) : undefined;
    if (read === undefined) {
      log.error('control', 'a record of the control queue can not be read: it is damaged, or another release wrote it; it is kept', { owner: ownerId, queue_id: entries.table.messageId(row) });
      return;
    }
    const { name, value } = read;
    const known = this.records.get(name);
    if (known !== undefined && known.row !== 0) {
      if (!this.isYounger(row, known.row)) {
        this.end(row);
        return;
      }
      this.end(known.row);
    }
    if (known !== undefined && this.waiting.has(name)) {
      // Set since: the one that came back goes when its successor is written.
      this.records.set(name, { value: known.value, row });
      return;
    }
    this.bytes += value.length - (known?.value.length ?? 0) + (known === undefined ? name.length : 0);
    this.changes += 1;
    this.records.set(name, { value, row });
  }

  /** The queue is served here no more: its records are not ours to tell, but for those that still wait to be written. */
  forget(mirror: QueueMirror): void {
    const { table } = this.ports.entries;
    this.changes += 1;
    for (const [name, { value, row }] of this.records) {
      if (row === 0 || table.queueHandle(row) !== mirror.handle) continue;
      if (this.waiting.has(name)) this.records.set(name, { value, row: 0 });
      else {
        this.records.delete(name);
        this.bytes -= value.length + name.length;
      }
    }
  }

  private write(): void {
    const mirror = this.ports.queue();
    if (mirror === undefined) return;
    for (const name of this.waiting) {
      const known = this.records.get(name);
      if (known === undefined) continue;
      const row = this.store(mirror, name, known.value);
      if (row === 0) return;
      if (known.row !== 0) this.end(known.row);
      this.records.set(name, { value: known.value, row });
      this.waiting.delete(name);
    }
  }

  /** The new entry's row; 0 when a mirror grants no credit for it now. */
  private store(mirror: QueueMirror, name: string, value: Uint8Array): number {
    const { entries, crc32, clock } = this.ports;
    const packed = this.ports.packer.pack([name, value]);
    const head = new Uint8Array(1 + packed.length);
    head[0] = HEAD_VERSION;
    head.set(packed, 1);
    if (mirror.inSyncCount === 0 || mirror.credit < head.length + ENTRY_CREDIT_BYTES) return 0;
    const messageId = this.ports.nextMessageId();
    const checksum = crc32(head, 0);
    const row = entries.create(mirror.queue, messageId, entries.contents.storeBytes(head, 0), 0, 0, checksum, Math.floor(clock.wallMs() / 1000), NEVER_SECONDS, 0);
    entries.table.transition(row, EntryState.RECORD);
    entries.table.position.set(row, mirror.store(messageId, 0, NO_CHUNKS, 0, head, checksum, 0));
    mirror.queue.append(row, entries.bytes(row));
    return row;
  }

  private end(row: number): void {
    const { entries, mirrors } = this.ports;
    const mirror = mirrors.mirrorOf(entries.table.queueHandle(row));
    // The queue has left: its entries are freed with it.
    if (mirror === undefined) return;
    const position = entries.table.position.get(row);
    const following = entries.remove(mirror.queue, row);
    mirrors.onUnlinked(mirror, row, following);
    mirror.delete(row, position, following);
  }

  /** Of two entries with one name: whether `row` says what holds. */
  private isYounger(row: number, than: number): boolean {
    if (than === 0) return true;
    const { entries, mirrors } = this.ports;
    const { table } = entries;
    const mine = mirrors.mirrorOf(table.queueHandle(row))?.queue.identity;
    const other = mirrors.mirrorOf(table.queueHandle(than))?.queue.identity;
    if (mine === undefined || other === undefined) return other === undefined;
    if (mine !== other) return mine.birth - other.birth > 0 || (mine.birth === other.birth && mine.serial > other.serial);
    return table.position.get(row) > table.position.get(than);
  }

  private decode(head: Uint8Array): { readonly name: string; readonly value: Uint8Array } | undefined {
    if (head[0] !== HEAD_VERSION) return undefined;
    const packed = head.subarray(1);
    if (checkControl(packed) !== '') return undefined;
    const [name, value] = this.ports.packer.unpack(packed) as unknown[];
    if (typeof name !== 'string' || !(value instanceof Uint8Array)) return undefined;
    return { name, value: value.slice() };
  }
}
