/**
 * The head of an entry: its envelope as the bytes that are mirrored. Stores never look inside.
 *
 * | offset | size | field                                                              |
 * |   0    |  1   | version, 1                                                         |
 * |   1    |  1   | 0                                                                  |
 * |   2    |  2   | envelope flags                                                     |
 * |   4    |  4   | expiry, Unix seconds, rounded up                                   |
 * |   8    |  8   | arrival, f64 Unix milliseconds                                     |
 * |  16    |      | MessagePack array, flat:                                           |
 *   [reversePath, ret, envid, expiryWallMs, client, helo,
 *    origin messageId (0 = none), birth, serial, change, kind,
 *    address, notify, orcpt, …]                     three elements a recipient (RFC 3461 parameters)
 *
 * The fixed part is what a recovery needs of half a million entries; the rest is read when an entry is
 * delivered. The message id travels beside the head. What changes during the life of the entry is not
 * here but in its note (note.ts).
 */
import type { Packer } from '../../platform/ports.js';
import { checkControl } from '../../protocol/bounds.js';
import type { Envelope, Origin, Recipient } from './types.js';

export const HEAD_VERSION = 1;
export const PREFIX_BYTES = 16;
export const FIXED_ELEMENTS = 11;
export const ELEMENTS_PER_RECIPIENT = 3;

/** The head bytes of an envelope. */
export function encodeEnvelope(packer: Packer, envelope: Envelope): Uint8Array {
  const origin = envelope.origin;
  const flat: (string | number)[] = [
    envelope.reversePath,
    envelope.ret,
    envelope.envid,
    envelope.expiryWallMs,
    envelope.client,
    envelope.helo,
    origin === undefined ? 0 : origin.messageId,
    origin === undefined ? 0 : origin.queueBirth,
    origin === undefined ? 0 : origin.queueSerial,
    origin === undefined ? 0 : origin.change,
    origin === undefined ? 0 : origin.kind,
  ];
  const recipients = envelope.recipients;
  for (let i = 0; i < recipients.length; i++) {
    const recipient = recipients[i] as Recipient;
    flat.push(recipient.address, recipient.notify, recipient.orcpt);
  }
  const packed = packer.pack(flat);
  const head = new Uint8Array(PREFIX_BYTES + packed.length);
  const view = new DataView(head.buffer);
  head[0] = HEAD_VERSION;
  view.setUint16(2, envelope.flags, true);
  view.setUint32(4, Math.ceil(envelope.expiryWallMs / 1000), true);
  view.setFloat64(8, envelope.arrivalWallMs, true);
  head.set(packed, PREFIX_BYTES);
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
  return { flags: headFlags(view, 0), expirySeconds: headExpirySeconds(view, 0), arrivalWallMs: headArrivalWallMs(view, 0) };
}

/** The same for the half million heads of a recovery, by offset and without an object each. */
export function isKnownHead(view: DataView, offset: number, headBytes: number): boolean {
  return headBytes >= PREFIX_BYTES && view.getUint8(offset) === HEAD_VERSION;
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

/** The same, of bytes that need no view; 0 for a version this release does not know. */
export function headFlagsAt(bytes: Uint8Array, offset: number, headBytes: number): number {
  return headBytes >= PREFIX_BYTES && bytes[offset] === HEAD_VERSION ? (bytes[offset + 2] ?? 0) | ((bytes[offset + 3] ?? 0) << 8) : 0;
}

/** Whether the values have the types that encodeEnvelope() writes, place by place. */
function isEnvelope(values: readonly unknown[]): boolean {
  if (values.length < FIXED_ELEMENTS || (values.length - FIXED_ELEMENTS) % ELEMENTS_PER_RECIPIENT !== 0) return false;
  for (let i = 0; i < values.length; i++) {
    const isText = i < FIXED_ELEMENTS ? i === 0 || i === 2 || i === 4 || i === 5 : (i - FIXED_ELEMENTS) % ELEMENTS_PER_RECIPIENT !== 1;
    if (typeof values[i] !== (isText ? 'string' : 'number')) return false;
  }
  return true;
}

/**
 * The envelope in head bytes. Undefined when another release wrote a version that this one does not know, or
 * when the bytes are damaged: such an entry is held, and listing it must not end the process.
 */
export function decodeEnvelope(packer: Packer, messageId: number, head: Uint8Array): Envelope | undefined {
  const prefix = readHeadPrefix(head);
  if (prefix === undefined) return undefined;
  const packed = head.subarray(PREFIX_BYTES);
  if (checkControl(packed) !== '') return undefined;
  const values = packer.unpack(packed) as unknown[];
  if (!isEnvelope(values)) return undefined;
  const recipients: Recipient[] = [];
  for (let i = FIXED_ELEMENTS; i < values.length; i += ELEMENTS_PER_RECIPIENT) {
    recipients.push({ address: values[i] as string, notify: values[i + 1] as number, orcpt: values[i + 2] as string });
  }
  return {
    messageId,
    reversePath: values[0] as string,
    recipients,
    flags: prefix.flags,
    ret: values[1] as number,
    envid: values[2] as string,
    arrivalWallMs: prefix.arrivalWallMs,
    expiryWallMs: values[3] as number,
    client: values[4] as string,
    helo: values[5] as string,
    origin: decodeOrigin(values),
  };
}

function decodeOrigin(values: readonly unknown[]): Origin | undefined {
  const [messageId, queueBirth, queueSerial, change, kind] = values.slice(6, FIXED_ELEMENTS) as [number, number, number, number, number];
  return messageId === 0 ? undefined : { messageId, queueBirth, queueSerial, change, kind };
}
