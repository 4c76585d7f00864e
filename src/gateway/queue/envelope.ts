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
import { invariant } from '../../base/invariant.js';
import type { Packer } from '../../platform/ports.js';
import type { Envelope, Origin, Recipient } from './types.js';

const HEAD_VERSION = 1;
const PREFIX_BYTES = 16;
const FIXED_ELEMENTS = 11;
const ELEMENTS_PER_RECIPIENT = 3;

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

/** What a recovery reads of a head without unpacking it; undefined for a version this release does not know. */
export interface HeadPrefix {
  readonly flags: number;
  readonly expirySeconds: number;
  readonly arrivalWallMs: number;
}

/** The fixed part of a head. */
export function readHeadPrefix(head: Uint8Array): HeadPrefix | undefined {
  if (head.length < PREFIX_BYTES || head[0] !== HEAD_VERSION) return undefined;
  const view = new DataView(head.buffer, head.byteOffset, PREFIX_BYTES);
  return { flags: view.getUint16(2, true), expirySeconds: view.getUint32(4, true), arrivalWallMs: view.getFloat64(8, true) };
}

function text(value: unknown): string {
  invariant(typeof value === 'string', 'an envelope that we encoded holds a string here');
  return value;
}

function whole(value: unknown): number {
  invariant(typeof value === 'number', 'an envelope that we encoded holds a number here');
  return value;
}

/**
 * The envelope in head bytes of our own making: checksums have shown that they are what a gateway
 * encoded. Undefined when another release wrote a version that this one does not know: such an entry is held.
 */
export function decodeEnvelope(packer: Packer, messageId: number, head: Uint8Array): Envelope | undefined {
  const prefix = readHeadPrefix(head);
  if (prefix === undefined) return undefined;
  const flat = packer.unpack(head.subarray(PREFIX_BYTES));
  invariant(Array.isArray(flat), 'a head that we encoded holds an array');
  const values = flat as unknown[];
  const recipients: Recipient[] = [];
  for (let i = FIXED_ELEMENTS; i + ELEMENTS_PER_RECIPIENT <= values.length; i += ELEMENTS_PER_RECIPIENT) {
    recipients.push({ address: text(values[i]), notify: whole(values[i + 1]), orcpt: text(values[i + 2]) });
  }
  return {
    messageId,
    reversePath: text(values[0]),
    recipients,
    flags: prefix.flags,
    ret: whole(values[1]),
    envid: text(values[2]),
    arrivalWallMs: prefix.arrivalWallMs,
    expiryWallMs: whole(values[3]),
    client: text(values[4]),
    helo: text(values[5]),
    origin: decodeOrigin(values),
  };
}

function decodeOrigin(values: readonly unknown[]): Origin | undefined {
  const messageId = whole(values[6]);
  if (messageId === 0) return undefined;
  return {
    messageId,
    queueBirth: whole(values[7]),
    queueSerial: whole(values[8]),
    change: whole(values[9]),
    kind: whole(values[10]),
  };
}
