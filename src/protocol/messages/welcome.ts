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
import { between, isBoolean, isUint32, isWhole } from '../fields.js';
import { FRAME_BYTES_MAX } from '../frame.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

/** A store that takes less could not take one message with its envelope. */
const FRAME_BYTES_LEAST = 64 * 1024;

const welcome = layout({
  credit: isWhole,
  highestIncarnation: isWhole,
  leaseMs: isUint32,
  frameBytesMax: between(FRAME_BYTES_LEAST, FRAME_BYTES_MAX),
  windowBytes: between(1, 0xffff_ffff),
  active: isBoolean,
});
export type Welcome = MessageOf<typeof welcome>;
export const encodeWelcome = welcome.encode;
export const decodeWelcome = welcome.decode;
