/**
 * Writes the head of an entry (envelope.ts) without a list of its values and without a buffer of its own:
 * what MessagePack makes of texts of ASCII and of numbers is a byte or a few in front of each. What is long,
 * or not ASCII, goes by the packer.
 *
 * Owns the memory that heads are written into, one behind the other. A head stays as it is, but keeps all of
 * it from the collector: who needs one for longer than the message is being stored copies it.
 */
import type { Packer } from '../../platform/ports.js';
import {
  encodeEnvelope, FIXED_ELEMENTS, HEAD_VERSION, ELEMENTS_PER_RECIPIENT, PREFIX_BYTES,
} from './envelope.js';
import { LABEL_FIXED_BYTES, writeLabel } from './label.js';
import type { Envelope } from '../mail-types.js';

const ROOM_BYTES = 16 * 1024;
/** Longer heads are not worth it: the room is for many. */
const HEAD_BYTES_MAX = 2048;
const ASCII_MAX = 0x7f;
/** A float64 and its mark. */
const NUMBER_BYTES_MAX = 9;
const TEXT_MARK_BYTES_MAX = 3;
/** ret and expiry are numbers, reverse-path, envid, client and helo texts; the array itself takes three. */
const FIXED_BYTES_MAX = PREFIX_BYTES + LABEL_FIXED_BYTES + 3 + 2 * NUMBER_BYTES_MAX + 4 * TEXT_MARK_BYTES_MAX;
const RECIPIENT_BYTES_MAX = NUMBER_BYTES_MAX + 2 * TEXT_MARK_BYTES_MAX;

export class HeadWriter {
  readonly #packer: Packer;
  #room = new Uint8Array(ROOM_BYTES);
  #view = new DataView(this.#room.buffer);
  #used = 0;
  #at = 0;
  /** Of all characters of the texts. */
  #bits = 0;

  constructor(packer: Packer) {
    this.#packer = packer;
  }

  /** The same bytes as encodeEnvelope()'s. */
  write(envelope: Envelope): Uint8Array {
    const bytesMax = bytesAtMost(envelope);
    if (bytesMax > HEAD_BYTES_MAX) return encodeEnvelope(this.#packer, envelope);
    if (this.#used + bytesMax > ROOM_BYTES) {
      this.#room = new Uint8Array(ROOM_BYTES);
      this.#view = new DataView(this.#room.buffer);
      this.#used = 0;
    }
    this.#at = writeLabel(this.#room, this.#used + PREFIX_BYTES, envelope);
    this.#bits = 0;
    this.#values(envelope);
    if (this.#bits > ASCII_MAX) return encodeEnvelope(this.#packer, envelope);
    this.#prefix(envelope);
    const from = this.#used;
    this.#used = this.#at;
    return this.#room.subarray(from, this.#used);
  }

  #prefix(envelope: Envelope): void {
    const view = this.#view;
    const used = this.#used;
    view.setUint16(used, HEAD_VERSION, true);
    view.setUint16(used + 2, envelope.flags, true);
    view.setUint32(used + 4, Math.ceil(envelope.expiryWallMs / 1000), true);
    view.setFloat64(used + 8, envelope.arrivalWallMs, true);
    view.setFloat64(used + 16, 0, true);
  }

  #values(envelope: Envelope): void {
    const { recipients } = envelope;
    this.#array(FIXED_ELEMENTS + recipients.length * ELEMENTS_PER_RECIPIENT);
    this.#text(envelope.reversePath);
    this.#number(envelope.ret);
    this.#text(envelope.envid);
    this.#number(envelope.expiryWallMs);
    this.#text(envelope.client);
    this.#text(envelope.helo);
    for (const recipient of recipients) {
      this.#text(recipient.address);
      this.#number(recipient.notify);
      this.#text(recipient.orcpt);
    }
  }

  #array(length: number): void {
    if (length < 0x10) {
      this.#room[this.#at++] = 0x90 | length;
      return;
    }
    this.#room[this.#at++] = 0xdc;
    this.#view.setUint16(this.#at, length);
    this.#at += 2;
  }

  #text(text: string): void {
    const room = this.#room;
    const { length } = text;
    let at = this.#at;
    if (length < 0x20) room[at++] = 0xa0 | length;
    else if (length < 0x100) {
      room[at++] = 0xd9;
      room[at++] = length;
    } else {
      room[at++] = 0xda;
      room[at++] = length >>> 8;
      room[at++] = length;
    }
    let bits = this.#bits;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      bits |= code;
      room[at++] = code;
    }
    this.#at = at;
    this.#bits = bits;
  }

  /** Whole numbers below 2^32 as what they need, others as float64. */
  #number(value: number): void {
    const view = this.#view;
    if (value !== value >>> 0) {
      view.setUint8(this.#at, 0xcb);
      view.setFloat64(this.#at + 1, value);
      this.#at += NUMBER_BYTES_MAX;
    } else if (value < 0x80) view.setUint8(this.#at++, value);
    else if (value < 0x100) {
      view.setUint16(this.#at, 0xcc00 | value);
      this.#at += 2;
    } else if (value < 0x10000) {
      view.setUint8(this.#at, 0xcd);
      view.setUint16(this.#at + 1, value);
      this.#at += 3;
    } else {
      view.setUint8(this.#at, 0xce);
      view.setUint32(this.#at + 1, value);
      this.#at += 5;
    }
  }
}

/** If it is ASCII. */
function bytesAtMost(envelope: Envelope): number {
  let bytes = FIXED_BYTES_MAX + envelope.queueName.length + envelope.reversePath.length
    + envelope.envid.length + envelope.client.length + envelope.helo.length;
  for (const recipient of envelope.recipients) {
    bytes += RECIPIENT_BYTES_MAX + recipient.address.length + recipient.orcpt.length;
    if (bytes > HEAD_BYTES_MAX) break;
  }
  return bytes;
}
