/**
 * The head of an entry: its envelope as the bytes that are mirrored. Stores never look inside.
 *
 * | offset | size | field                                                              |
 * |   0    |  1   | version, 2                                                         |
 * |   1    |  1   | 0                                                                  |
 * |   2    |  2   | envelope flags                                                     |
 * |   4    |  4   | expiry, Unix seconds, rounded up                                   |
 * |   8    |  8   | arrival, f64 Unix milliseconds                                     |
 * |  16    |  1   | priority, 0: none                                                  |
 * |  17    |  3   | 0                                                                  |
 * |  20    |  4   | flow key, 0: none                                                  |
 * |  24    |  1   | class of the queue (label.ts)                                      |
 * |  25    |  1   | length of the queue's name                                         |
 * |  26    |      | name of the queue                                                  |
 * |        |      | MessagePack array, flat:                                           |
 *   [reversePath, ret, envid, expiryWallMs, client, helo,
 *    address, notify, orcpt, …]                     three elements a recipient: parameters of RFC 3461;
 *                                                   notify has bits of our own too (types.ts)
 *
 * The fixed part is what a recovery needs of half a million entries; the rest is read when an entry is
 * delivered. The message id travels beside the head. What changes during the life of the entry is not
 * here but in its note (note.ts).
 */
import { joined } from '../../base/joined.js';
import type { Packer } from '../../platform/ports.js';
import { checkControl } from '../../protocol/bounds.js';
import { LABEL_FIXED_BYTES, readLabel, writeLabel } from './label.js';
import type { Envelope, Recipient } from '../mail-types.js';

export const HEAD_VERSION = 2;
export const PREFIX_BYTES = 24;
export const FIXED_ELEMENTS = 6;
export const ELEMENTS_PER_RECIPIENT = 3;

/** Tags of MessagePack. */
const ARRAY_OF_ONE = Uint8Array.of(0x91);
const ARRAY_16 = 0xdc;
const TEXT_8 = 0xd9;
const TEXT_16 = 0xda;

/** The head bytes of an envelope. */
export function encodeEnvelope(packer: Packer, envelope: Envelope): Uint8Array {
  const flat: (string | number)[] = [
    envelope.reversePath,
    envelope.ret,
    envelope.envid,
    envelope.expiryWallMs,
    envelope.client,
    envelope.helo,
  ];
  const recipients = envelope.recipients;
  for (let i = 0; i < recipients.length; i++) {
    const recipient = recipients[i] as Recipient;
    flat.push(recipient.address, recipient.notify, recipient.orcpt);
  }
  const packed = packer.pack(flat);
  const packedAt = PREFIX_BYTES + LABEL_FIXED_BYTES + envelope.queueName.length;
  const head = new Uint8Array(packedAt + packed.length);
  const view = new DataView(head.buffer);
  head[0] = HEAD_VERSION;
  writeLabel(head, PREFIX_BYTES, envelope);
  view.setUint16(2, envelope.flags, true);
  view.setUint32(4, Math.ceil(envelope.expiryWallMs / 1000), true);
  view.setFloat64(8, envelope.arrivalWallMs, true);
  head.set(packed, packedAt);
  return head;
}

/** The fixed part of a head. */
export interface HeadPrefix {
  readonly flags: number;
  readonly expirySeconds: number;
  readonly arrivalWallMs: number;
}

/** The fixed part; undefined for a version this release does not know. */
export function readHeadPrefix(head: Uint8Array): HeadPrefix | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.length);
  if (!isKnownHead(view, 0, head.length)) return undefined;
  return {
    flags: headFlags(view, 0),
    expirySeconds: headExpirySeconds(view, 0),
    arrivalWallMs: headArrivalWallMs(view, 0),
  };
}

/** The same for the half million heads of a recovery, by offset and without an object each. */
export function isKnownHead(view: DataView, offset: number, headBytes: number): boolean {
  return headBytes >= PREFIX_BYTES + LABEL_FIXED_BYTES && view.getUint8(offset) === HEAD_VERSION;
}

/** Where the label begins. */
export function headLabelAt(offset: number): number {
  return offset + PREFIX_BYTES;
}

export function headFlags(view: DataView, offset: number): number {
  return view.getUint16(offset + 2, true);
}

export function headExpirySeconds(view: DataView, offset: number): number {
  return view.getUint32(offset + 4, true);
}

export function headArrivalWallMs(view: DataView, offset: number): number {
  return view.getFloat64(offset + 8, true);
}

/** Whether the values have the types that encodeEnvelope() writes, place by place. */
function isEnvelope(values: readonly unknown[]): boolean {
  const ofRecipients = values.length - FIXED_ELEMENTS;
  if (ofRecipients < 0 || ofRecipients % ELEMENTS_PER_RECIPIENT !== 0) return false;
  for (let i = 0; i < values.length; i++) {
    const isText = i < FIXED_ELEMENTS
      ? i === 0 || i === 2 || i === 4 || i === 5
      : (i - FIXED_ELEMENTS) % ELEMENTS_PER_RECIPIENT !== 1;
    if (typeof values[i] !== (isText ? 'string' : 'number')) return false;
  }
  return true;
}

/** Where what the label leaves of a known head begins. */
function packedAt(head: Uint8Array): number {
  return PREFIX_BYTES + LABEL_FIXED_BYTES + (head[PREFIX_BYTES + 1] ?? 0);
}

/**
 * The reverse-path alone, for who asks again and again: the recipients behind it may be thousands. Undefined
 * where decodeEnvelope() is.
 */
export function decodeReversePath(packer: Packer, head: Uint8Array): string | undefined {
  if (readHeadPrefix(head) === undefined) return undefined;
  const arrayAt = packedAt(head);
  const at = arrayAt + (head[arrayAt] === ARRAY_16 ? 3 : 1);
  const [tag = 0, high = 0, low = 0] = head.subarray(at, at + 3);
  const bytes = tag === TEXT_16 ? 3 + high * 256 + low : tag === TEXT_8 ? 2 + high : 1 + (tag & 0x1f);
  const alone = joined([ARRAY_OF_ONE, head.subarray(at, at + bytes)]);
  if (checkControl(alone) !== '') return undefined;
  const [reversePath] = packer.unpack(alone) as unknown[];
  return typeof reversePath === 'string' ? reversePath : undefined;
}

/**
 * The envelope in head bytes. Undefined when another release wrote a version that this one does not know, or
 * when the bytes are damaged: such an entry is held, and listing it must not end the process.
 */
export function decodeEnvelope(packer: Packer, messageId: number, head: Uint8Array): Envelope | undefined {
  const prefix = readHeadPrefix(head);
  if (prefix === undefined) return undefined;
  const view = new DataView(head.buffer, head.byteOffset, head.length);
  const label = readLabel(view, PREFIX_BYTES, head.length);
  if (label === undefined) return undefined;
  const packed = head.subarray(packedAt(head));
  if (checkControl(packed) !== '') return undefined;
  const values = packer.unpack(packed) as unknown[];
  if (!isEnvelope(values)) return undefined;
  const recipients: Recipient[] = [];
  for (let i = FIXED_ELEMENTS; i < values.length; i += ELEMENTS_PER_RECIPIENT) {
    recipients.push({
      address: values[i] as string, notify: values[i + 1] as number, orcpt: values[i + 2] as string,
    });
  }
  return {
    messageId,
    queueClass: label.queueClass,
    queueName: label.name,
    reversePath: values[0] as string,
    recipients,
    flags: prefix.flags,
    ret: values[1] as number,
    envid: values[2] as string,
    arrivalWallMs: prefix.arrivalWallMs,
    expiryWallMs: values[3] as number,
    client: values[4] as string,
    helo: values[5] as string,
  };
}
