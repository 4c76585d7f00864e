/**
 * WELCOME: the handshake is over; what the store grants on this connection.
 *
 *   element  wire  field               meaning
 *   0        u53   credit              bytes that may be sent as STORE
 *   1        u53   highestIncarnation  highest incarnation of this gateway seen, this one included
 *   2        u32   leaseMs             length of a lease
 *   3        u32   frameBytesMax       longest frame that the store takes; ≤ 64 MiB
 *   4        u32   windowBytes         bytes that may be unacknowledged, ≥ 1
 *   5        bool  active              this connection is the active one
 *
 * Requests may follow.
 */
import type { Packer } from '../../platform/ports.js';
import { isBetween, isBoolean, isUint32, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { FRAME_BYTES_MAX } from '../frame.js';

/** A store that takes less could not take one message with its envelope. */
const FRAME_BYTES_LEAST = 64 * 1024;

export interface Welcome {
  readonly credit: number;
  readonly highestIncarnation: number;
  readonly leaseMs: number;
  readonly frameBytesMax: number;
  readonly windowBytes: number;
  readonly active: boolean;
}

export function encodeWelcome(packer: Packer, message: Welcome): Uint8Array {
  return packer.pack([
    message.credit, message.highestIncarnation, message.leaseMs, message.frameBytesMax, message.windowBytes,
    message.active,
  ]);
}

export function decodeWelcome(packer: Packer, control: Uint8Array): Welcome | InvalidMessage {
  const values = unpackControl(packer, control, 6);
  if (values instanceof InvalidMessage) return values;
  const [credit, highestIncarnation, leaseMs, frameBytesMax, windowBytes, active] = values;
  if (!isWhole(credit)) return new InvalidMessage('credit');
  if (!isWhole(highestIncarnation)) return new InvalidMessage('highestIncarnation');
  if (!isUint32(leaseMs)) return new InvalidMessage('leaseMs');
  if (!isBetween(frameBytesMax, FRAME_BYTES_LEAST, FRAME_BYTES_MAX)) return new InvalidMessage('frameBytesMax');
  if (!isBetween(windowBytes, 1, 0xffff_ffff)) return new InvalidMessage('windowBytes');
  if (!isBoolean(active)) return new InvalidMessage('active');
  return { credit, highestIncarnation, leaseMs, frameBytesMax, windowBytes, active };
}
