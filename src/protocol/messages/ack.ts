/**
 * ACK: all requests up to a sequence number on this connection are applied or refused.
 *
 *   element  wire  field     meaning
 *   0        u53   sequence  all requests up to this one
 *   1        u53   credit    bytes that the store grants this gateway from here on
 *   2        u31   handle    a copy touched since the last ACK   ┐ up to 16,384 of them
 *   3        u53   number    transaction number it stands at     ┘
 *   4 …                      the next copy
 *
 * Hot: packed from and decoded into a flat array, read with the functions below.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, isWhole } from '../fields.js';
import { packWholes, readFlatArray } from '../flat-array.js';
import { InvalidMessage } from '../invalid.js';

const HEAD_ELEMENTS = 2;
/** Twice the sections of CHANGES: an ACK may cover several frames. A store with more to say sends several. */
export const ACK_COPIES_MAX = 16_384;

/** Flat: sequence, credit, handle, number, handle, number, … */
export type Ack = readonly number[];

export function encodeAck(_packer: Packer, ack: Ack): Uint8Array {
  return packWholes(ack);
}

export function decodeAck(_packer: Packer, control: Uint8Array): Ack | InvalidMessage {
  const values = readFlatArray(control);
  if (values instanceof InvalidMessage) return values;
  const count = values.length;
  if (count < HEAD_ELEMENTS || count % 2 !== 0) return new InvalidMessage('element count');
  if (count > HEAD_ELEMENTS + 2 * ACK_COPIES_MAX) return new InvalidMessage('copy count');
  if (!isWhole(values[0])) return new InvalidMessage('sequence');
  if (!isWhole(values[1])) return new InvalidMessage('credit');
  for (let i = HEAD_ELEMENTS; i < count; i += 2) {
    if (!isHandle(values[i])) return new InvalidMessage('handle');
    if (!isWhole(values[i + 1])) return new InvalidMessage('number');
  }
  return values as Ack;
}

export function ackSequence(ack: Ack): number {
  return ack[0] as number;
}

export function ackCredit(ack: Ack): number {
  return ack[1] as number;
}

export function ackCopyCount(ack: Ack): number {
  return (ack.length - HEAD_ELEMENTS) / 2;
}

export function ackHandle(ack: Ack, copy: number): number {
  return ack[HEAD_ELEMENTS + 2 * copy] as number;
}

export function ackNumber(ack: Ack, copy: number): number {
  return ack[HEAD_ELEMENTS + 2 * copy + 1] as number;
}
