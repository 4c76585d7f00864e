/**
 * The file in which a store that stops leaves what it still holds: a sequence of records, each with its
 * checksum and its place in the sequence, so that a file which was cut short, changed or put together
 * is known for what it is.
 *
 *   HEAD  ACCOUNT…  PROCESS…  FENCE…  ( COPY ENTRIES… )…  END
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
 *   1 HEAD     [FORMAT, version 3, storeId, wallMs, bootId hex, longestLeaseMs, bornNs]
 *   2 ACCOUNT  [gatewayId, incarnation, nonce bin]
 *   3 PROCESS  [process, fenceCount, [[count, partition, term]…]]   a process with very many has several
 *   4 FENCE    [partition, term, holder or [], record or []]   highest term accepted, whose; record told
 *   5 COPY     [partition, number, digestA, digestB, lastTerm, count]
 *   6 ENTRIES  entry rows of this copy (entry-rows.ts) as in REFILL             body ‖ head ‖ note of each
 *   7 END      [fences, copies, entries]
 *
 * longestLeaseMs is the longest lease that was granted under this boot id, by whatever process of the store:
 * the one that goes on with the file does not know when those end, and waits for all of them.
 *
 * bornNs is when this very file was made, as its file system says (decimal digits; '' where it does not):
 * another one for a copy of it.
 *
 * A shared body is brought whole by the first entry that has it. Integers are little-endian, arrays
 * MessagePack; terms, holders and records as on the wire (wire-record.ts). Not here: files
 * (kvs/daemon/spill-file.ts).
 */

import type { Crc32, Packer } from '../platform/ports.js';
import { isBytes, isIdentifier, isUint32, isWhole, unpackControl } from './fields.js';
import { InvalidMessage } from './invalid.js';
import type { MessageOf } from './layout.js';
import { layout, orNone, packed } from './layout.js';
import { NOTICES, NOTICES_MAX } from './messages/beat.js';
import { isPartition } from './partition-record.js';
import { HOLDER, TERM, TOLD } from './wire-record.js';

export const SPILL_HEAD = 1;
export const SPILL_ACCOUNT = 2;
export const SPILL_PROCESS = 3;
export const SPILL_FENCE = 4;
export const SPILL_COPY = 5;
export const SPILL_ENTRIES = 6;
export const SPILL_END = 7;

export const RECORD_HEADER_BYTES = 20;
/** As of a frame: an entry never came in a longer one. */
const PAYLOAD_BYTES_MAX = 64 * 1024 * 1024;
const CONTROL_BYTES_MAX = 8 * 1024 * 1024;
const FORMAT = 'twinpost spill';
const VERSION = 3;
/** Incarnation nonces are 8 bytes on the wire; none was seen before the first connection. */
const NONCE_BYTES_MAX = 64;
const BOOT_ID = /^[0-9a-f]{32}$/;
const BORN_NS = /^\d{0,20}$/;

export interface SpillHead {
  readonly storeId: string;
  readonly wallMs: number;
  readonly bootId: string;
  readonly longestLeaseMs: number;
  readonly bornNs: string;
}

/** Of a gateway. */
const account = layout({
  id: isIdentifier,
  incarnation: isWhole,
  // What is read into the same bytes next must not change it; slice() of a Buffer is no copy.
  nonce:
    packed<Uint8Array>((nonce) => nonce, (value) => (isNonce(value) ? Uint8Array.from(value) : undefined)),
});
export type SpilledAccount = MessageOf<typeof account>;
export const encodeAccount = account.encode;
export const decodeAccount = account.decode;

/** What a process was told of its fences, or is still to be told: up to NOTICES_MAX of them. */
const spilledProcess = layout({
  process: isIdentifier,
  fenceCount: isWhole,
  fences: NOTICES,
});
export type SpilledProcess = MessageOf<typeof spilledProcess>;
export const encodeProcess = spilledProcess.encode;
export const decodeProcess = spilledProcess.decode;

const fence = layout({
  partition: isPartition,
  term: TERM,
  holder: orNone(HOLDER),
  told: TOLD,
});
export type SpilledFence = MessageOf<typeof fence>;
export const encodeSpilledFence = fence.encode;
export const decodeSpilledFence = fence.decode;

/** A copy as it stood when its store stopped. */
const copy = layout({
  partition: isPartition,
  number: isWhole,
  digestA: isUint32,
  digestB: isUint32,
  lastTerm: TERM,
  count: isWhole,
});
export type SpilledCopy = MessageOf<typeof copy>;
export const encodeCopy = copy.encode;

export function decodeCopy(packer: Packer, control: Uint8Array): SpilledCopy | InvalidMessage {
  const message = copy.decode(packer, control);
  const isBeyond = !(message instanceof InvalidMessage) && message.count > message.number;
  return isBeyond ? new InvalidMessage('count') : message;
}

const NOTHING = new Uint8Array(0);

/** The chunks of one record, in order. */
export function encodeRecord(
  crc32: Crc32, type: number, index: number, control: Uint8Array, payload: Uint8Array = NOTHING,
): readonly Uint8Array[] {
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
export function readRecordHeader(
  bytes: Uint8Array, index: number, remaining: number,
): RecordHeader | InvalidMessage {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const type = view.getUint32(4, true);
  const controlBytes = view.getUint32(12, true);
  const payloadBytes = view.getUint32(16, true);
  if (type < SPILL_HEAD || type > SPILL_END) return new InvalidMessage('record type');
  if (view.getUint32(8, true) !== index) return new InvalidMessage('record out of place');
  if (controlBytes > CONTROL_BYTES_MAX || payloadBytes > PAYLOAD_BYTES_MAX) {
    return new InvalidMessage('record too long');
  }
  if (controlBytes + payloadBytes > remaining) return new InvalidMessage('file cut short');
  return { type, controlBytes, payloadBytes };
}

/** Is the whole record, header included, as it was written? */
export function isRecordSound(crc32: Crc32, record: Uint8Array): boolean {
  const view = new DataView(record.buffer, record.byteOffset, record.length);
  return crc32(record.subarray(4), 0) === view.getUint32(0, true);
}

export function encodeHead(
  packer: Packer, { storeId, wallMs, bootId, longestLeaseMs, bornNs }: SpillHead,
): Uint8Array {
  return packer.pack([FORMAT, VERSION, storeId, wallMs, bootId, longestLeaseMs, bornNs]);
}

export function decodeHead(packer: Packer, control: Uint8Array): SpillHead | InvalidMessage {
  const values = unpackControl(packer, control, 2, true);
  if (values instanceof InvalidMessage) return values;
  const [format, version, storeId, wallMs, bootId, longestLeaseMs, bornNs] = values;
  if (format !== FORMAT) return new InvalidMessage('format');
  // First: what follows is of another layout then.
  if (version !== VERSION) return new InvalidMessage('it is of another release: version');
  if (values.length !== 7) return new InvalidMessage('element count');
  if (!isIdentifier(storeId)) return new InvalidMessage('storeId');
  if (!isWhole(wallMs)) return new InvalidMessage('wallMs');
  if (typeof bootId !== 'string' || !BOOT_ID.test(bootId)) return new InvalidMessage('bootId');
  if (!isUint32(longestLeaseMs)) return new InvalidMessage('longestLeaseMs');
  if (typeof bornNs !== 'string' || !BORN_NS.test(bornNs)) return new InvalidMessage('bornNs');
  return { storeId, wallMs, bootId, longestLeaseMs, bornNs };
}

/** A process with more notices than one record takes has several. */
export function * processRecords({ process, fenceCount, fences }: SpilledProcess): Generator<SpilledProcess> {
  for (let at = 0; at === 0 || at < fences.length; at += NOTICES_MAX) {
    yield { process, fenceCount, fences: fences.slice(at, at + NOTICES_MAX) };
  }
}

export function encodeEnd(packer: Packer, fences: number, copies: number, entries: number): Uint8Array {
  return packer.pack([fences, copies, entries]);
}

/** '' when the totals agree, else the broken rule. */
export function checkEnd(
  packer: Packer, control: Uint8Array, fences: number, copies: number, entries: number,
): string {
  const values = unpackControl(packer, control, 3);
  if (values instanceof InvalidMessage) return values.rule;
  return values[0] === fences && values[1] === copies && values[2] === entries ? '' : 'totals';
}

function isNonce(value: unknown): value is Uint8Array {
  return isBytes(value) && value.length <= NONCE_BYTES_MAX;
}
