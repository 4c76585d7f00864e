/**
 * The file in which a store that stops leaves what it still holds: a sequence of records, each with its checksum and
 * its place in the sequence, so that a file which was cut short, changed or put together is known for what it is.
 *
 *   HEAD  ACCOUNT…  ( QUEUE ENTRIES… )…  END
 *
 *   record: offset size
 *           0      4    crc           of everything behind it, to the end of the payload
 *           4      4    type
 *           8      4    index         0, 1, 2 …
 *           12     4    controlBytes
 *           16     4    payloadBytes
 *           20          control, payload
 *
 *   type       control                                                          payload
 *   1 HEAD     [FORMAT, version 1, storeId, wallMs]
 *   2 ACCOUNT  [gatewayId, incarnation, nonce bin, version of the protocol that it spoke last]
 *   3 QUEUE    the elements of SpilledQueue in their order, and two that mean nothing any more
 *   4 ENTRIES  entry rows of this queue (protocol/entry-rows.ts) as in REFILL     body ‖ head ‖ note of each row
 *   5 END      [queues, entries]
 *
 * A shared body is brought whole by the first entry that has it. Integers are little-endian, arrays MessagePack.
 * Also the shape of a page of /api/v1/export: one ENTRIES record. Not here: files (kvs/daemon/spill-file.ts).
 */

import type { Crc32, Packer } from '../../../platform/ports.js';
import { CLAIMANTS_MAX, MEMBERS_MAX, isBetween, isBytes, isIdentifier, isIdentifiers, isUint32, isWhole, unpackControl } from '../../../protocol/fields.js';
import { InvalidMessage } from '../../../protocol/invalid.js';
import { ORDERING_FIFO, ORDERING_STRICT } from '../../../protocol/reasons.js';
import { PROTOCOL_VERSION } from '../../../protocol/versions.js';
import type { QueueAttributes } from '../mirrored-queue.js';

export const SPILL_HEAD = 1;
export const SPILL_ACCOUNT = 2;
export const SPILL_QUEUE = 3;
export const SPILL_ENTRIES = 4;
export const SPILL_END = 5;

export const RECORD_HEADER_BYTES = 20;
/** As of a frame: an entry never came in a longer one. */
const PAYLOAD_BYTES_MAX = 64 * 1024 * 1024;
const CONTROL_BYTES_MAX = 8 * 1024 * 1024;
const FORMAT = 'twinpost spill';
const VERSION = 1;
/** Version 1 tells here who held the queue before, and by which token; nobody gets it back by that. */
const NOBODY_BEFORE = ['', 0] as const;
/** In files of before the version was told. */
const ACCOUNT_ELEMENTS = 3;
/** Incarnation nonces are 8 bytes on the wire; none was seen before the first connection. */
const NONCE_BYTES_MAX = 64;

export interface SpillHead {
  readonly storeId: string;
  readonly wallMs: number;
}

export interface SpilledAccount {
  readonly id: string;
  readonly incarnation: number;
  readonly nonce: Uint8Array;
  /** Of the protocol: whether another gateway may take its queues over at all (protocol/versions.ts). */
  readonly version: number;
}

/** A queue as it stood when its store stopped. */
export interface SpilledQueue {
  readonly attributes: QueueAttributes;
  readonly epoch: number;
  readonly members: readonly string[];
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
  readonly count: number;
  readonly holder: string;
  readonly holderToken: number;
  readonly highestToken: number;
}

const NOTHING = new Uint8Array(0);

/** The chunks of one record, in order. */
export function encodeRecord(crc32: Crc32, type: number, index: number, control: Uint8Array, payload: Uint8Array = NOTHING): readonly Uint8Array[] {
  const header = new Uint8Array(RECORD_HEADER_BYTES);
  const view = new DataView(header.buffer);
  view.setUint32(4, type, true);
  view.setUint32(8, index, true);
  view.setUint32(12, control.length, true);
  view.setUint32(16, payload.length, true);
  view.setUint32(0, crc32(payload, crc32(control, crc32(header.subarray(4), 0))), true);
  return payload.length === 0 ? [header, control] : [header, control, payload];
}

export interface RecordHeader {
  readonly type: number;
  readonly controlBytes: number;
  readonly payloadBytes: number;
}

/** The header at the start of the bytes, or the broken rule. `remaining` is what the file has behind it. */
export function readRecordHeader(bytes: Uint8Array, index: number, remaining: number): RecordHeader | InvalidMessage {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const type = view.getUint32(4, true);
  const controlBytes = view.getUint32(12, true);
  const payloadBytes = view.getUint32(16, true);
  if (type < SPILL_HEAD || type > SPILL_END) return new InvalidMessage('record type');
  if (view.getUint32(8, true) !== index) return new InvalidMessage('record out of place');
  if (controlBytes > CONTROL_BYTES_MAX || payloadBytes > PAYLOAD_BYTES_MAX) return new InvalidMessage('record too long');
  if (controlBytes + payloadBytes > remaining) return new InvalidMessage('file cut short');
  return { type, controlBytes, payloadBytes };
}

/** Is the whole record, header included, as it was written? */
export function isRecordSound(crc32: Crc32, record: Uint8Array): boolean {
  const view = new DataView(record.buffer, record.byteOffset, record.length);
  return crc32(record.subarray(4), 0) === view.getUint32(0, true);
}

export function encodeHead(packer: Packer, head: SpillHead): Uint8Array {
  return packer.pack([FORMAT, VERSION, head.storeId, head.wallMs]).slice();
}

export function decodeHead(packer: Packer, control: Uint8Array): SpillHead | InvalidMessage {
  const values = unpackControl(packer, control, 4);
  if (values instanceof InvalidMessage) return values;
  const [format, version, storeId, wallMs] = values;
  if (format !== FORMAT) return new InvalidMessage('format');
  if (version !== VERSION) return new InvalidMessage('version');
  if (!isIdentifier(storeId)) return new InvalidMessage('storeId');
  return isWhole(wallMs) ? { storeId, wallMs } : new InvalidMessage('wallMs');
}

export function encodeAccount(packer: Packer, account: SpilledAccount): Uint8Array {
  return packer.pack([account.id, account.incarnation, account.nonce, account.version]).slice();
}

export function decodeAccount(packer: Packer, control: Uint8Array): SpilledAccount | InvalidMessage {
  const values = unpackControl(packer, control, ACCOUNT_ELEMENTS, true);
  if (values instanceof InvalidMessage) return values;
  const [id, incarnation, nonce, version = PROTOCOL_VERSION] = values;
  if (!isIdentifier(id)) return new InvalidMessage('gatewayId');
  if (!isWhole(incarnation)) return new InvalidMessage('incarnation');
  if (!isBytes(nonce) || nonce.length > NONCE_BYTES_MAX) return new InvalidMessage('nonce');
  return isWhole(version) ? { id, incarnation, nonce: nonce.slice(), version } : new InvalidMessage('protocol');
}

export function encodeQueue(packer: Packer, queue: SpilledQueue): Uint8Array {
  const { ownerId, birth, serial, name, queueClass, ordering, lengthMax, bytesMax, claimants } = queue.attributes;
  return packer.pack([
    ownerId, birth, serial, name, queueClass, ordering, lengthMax, bytesMax, claimants, queue.epoch, queue.members,
    queue.number, queue.digestA, queue.digestB, queue.count,
    queue.holder, queue.holderToken, queue.highestToken, ...NOBODY_BEFORE,
  ]).slice();
}

export function decodeQueue(packer: Packer, control: Uint8Array): SpilledQueue | InvalidMessage {
  const values = unpackControl(packer, control, 20);
  if (values instanceof InvalidMessage) return values;
  const attributes = decodeAttributes(values);
  if (attributes instanceof InvalidMessage) return attributes;
  const [epoch, members, number, digestA, digestB, count, holder, holderToken, highestToken] = values.slice(9);
  if (!isWhole(epoch)) return new InvalidMessage('epoch');
  if (!isIdentifiers(members, MEMBERS_MAX)) return new InvalidMessage('members');
  if (!isWhole(number)) return new InvalidMessage('number');
  if (!isUint32(digestA) || !isUint32(digestB)) return new InvalidMessage('digest');
  if (!isWhole(count)) return new InvalidMessage('count');
  if (!isIdentifier(holder)) return new InvalidMessage('holder');
  if (!isWhole(holderToken) || !isWhole(highestToken)) return new InvalidMessage('token');
  return { attributes, epoch, members, number, digestA, digestB, count, holder, holderToken, highestToken };
}

function decodeAttributes(values: readonly unknown[]): QueueAttributes | InvalidMessage {
  const [ownerId, birth, serial, name, queueClass, ordering, lengthMax, bytesMax, claimants] = values;
  if (!isIdentifier(ownerId)) return new InvalidMessage('ownerId');
  if (!isWhole(birth) || !isUint32(serial)) return new InvalidMessage('identity');
  if (!isIdentifier(name) || !isIdentifier(queueClass)) return new InvalidMessage('name');
  if (!isBetween(ordering, ORDERING_FIFO, ORDERING_STRICT)) return new InvalidMessage('ordering');
  if (!isWhole(lengthMax) || !isWhole(bytesMax)) return new InvalidMessage('limits');
  if (!isIdentifiers(claimants, CLAIMANTS_MAX)) return new InvalidMessage('claimants');
  return { ownerId, birth, serial, name, queueClass, ordering, lengthMax, bytesMax, claimants };
}

export function encodeEnd(packer: Packer, queues: number, entries: number): Uint8Array {
  return packer.pack([queues, entries]).slice();
}

/** '' when the totals agree, else the broken rule. */
export function checkEnd(packer: Packer, control: Uint8Array, queues: number, entries: number): string {
  const values = unpackControl(packer, control, 2);
  if (values instanceof InvalidMessage) return values.rule;
  return values[0] === queues && values[1] === entries ? '' : 'totals';
}
