/**
 * Text of bytes by Node's own code: a quarter of the time of any that knows no Buffer. What toString() calls
 * is called directly, for it takes all bytes, not only those of a Buffer; where a Node lacks it, toString()
 * is.
 */
import type { Latin1Text } from '../ports.js';

interface WithSlice {
  readonly latin1Slice?: (this: Uint8Array, from: number, to: number) => string;
}

const { latin1Slice } = Buffer.prototype as WithSlice;

export const latin1Text: Latin1Text = latin1Slice === undefined
  ? (bytes, from, to) => Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1')
  : (bytes, from, to) => latin1Slice.call(bytes, from, to);
