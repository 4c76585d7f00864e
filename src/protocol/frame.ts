/**
 * The frame: fixed header, control part, bodies (docs/PROTOCOL.md, "Frame"). Writes headers; the other
 * direction is frame-reader.ts. Bodies are never touched here: they go to the socket from where they are,
 * behind the buffer that encodeFrame returns, in the same write.
 *
 *   offset size field
 *   0      4    crc           CRC-32 of bytes 4 to 24 + controlBytes
 *   4      4    frameBytes    whole frame, header included
 *   8      1    type          message-types.ts
 *   9      1    version       of this layout: 1
 *   10     2    flags         0
 *   12     4    controlBytes  24 + controlBytes ≤ frameBytes
 *   16     8    sequence      u53 as an unsigned 64-bit integer
 *   24          control, then bodies
 */
import { invariant } from '../base/invariant.js';
import type { Crc32 } from '../platform/ports.js';

/**
 * Of the layout above; what messages mean has a version of its own (versions.ts), settled by messages that
 * need this one.
 */
export const FRAME_VERSION = 1;
export const HEADER_BYTES = 24;
/**
 * Larger than any message with its envelope that a configuration may allow, and small beside any memory
 * limit.
 */
export const FRAME_BYTES_MAX = 64 * 1024 * 1024;
/** 349,525 change rows: far above what one turn of an event loop produces. */
export const CONTROL_BYTES_MAX = 8 * 1024 * 1024;
/**
 * Enough for HELLO with three identifiers of 255 bytes; bounds what a peer can make us keep before its proof.
 */
export const HANDSHAKE_FRAME_BYTES_MAX = 4096;

const SLAB_BYTES = 64 * 1024;
/** Larger frames get a buffer of their own: the allocation is small beside the copy. */
const SLAB_FRAME_BYTES_MAX = 8 * 1024;
const WORD = 0x1_0000_0000;

/** Computes the checksum of a frame whose header and control part stand at the start of `frame`. */
function sealFrame(frame: Uint8Array, controlBytes: number, crc32: Crc32): void {
  putUint32(frame, 0, crc32(frame.subarray(4, HEADER_BYTES + controlBytes), 0));
}

/**
 * Header and control part in one new buffer, sealed. `bodyBytes` bytes of bodies must follow it on the wire.
 */
export function encodeFrame(
  type: number, sequence: number, control: Uint8Array, crc32: Crc32, bodyBytes = 0,
): Uint8Array {
  const frame = new Uint8Array(HEADER_BYTES + control.length);
  putHeader(frame, type, sequence, control.length, frame.length + bodyBytes);
  frame.set(control, HEADER_BYTES);
  sealFrame(frame, control.length, crc32);
  return frame;
}

/**
 * encodeFrame for a connection's hot side: cuts the buffers of small frames out of slabs, because a new
 * Uint8Array a frame costs more than all else in it. A frame that waits pins its slab, at most 64 KiB.
 *
 * While nothing waits the same slab is used for good. A new one each time lives for a second or two, which is
 * long enough to get old: the collector looks for such buffers when 64 MiB of them lie about, so that
 * resident memory would rise by some MB a minute, for a quarter of an hour at a time.
 */
export class FrameEncoder {
  readonly #crc32: Crc32;
  #slab = new Uint8Array(0);
  #used = 0;

  constructor(ports: { readonly crc32: Crc32 }) {
    this.#crc32 = ports.crc32;
  }

  /** As encodeFrame; the result stays as it is until reuse(). */
  encode(type: number, sequence: number, control: Uint8Array, bodyBytes: number): Uint8Array {
    const bytes = HEADER_BYTES + control.length;
    if (bytes > SLAB_FRAME_BYTES_MAX) return encodeFrame(type, sequence, control, this.#crc32, bodyBytes);
    if (this.#used + bytes > this.#slab.length) {
      this.#slab = new Uint8Array(SLAB_BYTES);
      this.#used = 0;
    }
    const frame = this.#slab.subarray(this.#used, this.#used + bytes);
    this.#used += bytes;
    putHeader(frame, type, sequence, control.length, bytes + bodyBytes);
    frame.set(control, HEADER_BYTES);
    sealFrame(frame, control.length, this.#crc32);
    return frame;
  }

  /** Nobody reads any more what was encoded. */
  reuse(): void {
    this.#used = 0;
  }
}

function putHeader(
  into: Uint8Array, type: number, sequence: number, controlBytes: number, frameBytes: number,
): void {
  invariant(
    controlBytes <= CONTROL_BYTES_MAX && frameBytes <= FRAME_BYTES_MAX, 'a frame stays within its limits',
  );
  invariant(HEADER_BYTES + controlBytes <= frameBytes, 'a frame holds its control part');
  invariant(sequence >= 0 && sequence <= Number.MAX_SAFE_INTEGER, 'a sequence number is below 2^53');
  putUint32(into, 4, frameBytes);
  into[8] = type;
  into[9] = FRAME_VERSION;
  into[10] = 0;
  into[11] = 0;
  putUint32(into, 12, controlBytes);
  putUint32(into, 16, sequence % WORD);
  putUint32(into, 20, Math.floor(sequence / WORD));
}

function putUint32(into: Uint8Array, at: number, value: number): void {
  into[at] = value;
  into[at + 1] = value >>> 8;
  into[at + 2] = value >>> 16;
  into[at + 3] = value >>> 24;
}
