/**
 * The payload buffers of the blocks that a connection is sent, so that a recovery of a gigabyte does not make
 * a gigabyte of garbage: the collector marks the whole heap for each 64 MiB of it, and every page of a fresh
 * buffer is cleared first. Two thirds of what a store's processor did in a recovery.
 *
 *   fresh ─ block sent ─► LENT ─ PULL of the same copy from where that block ended ─► taken again
 *                          └─ last block of the copy, too many, too large, connection over ─► forgotten
 *
 * Bytes that were written must stay as they are until the peer has answered for them (platform/transport.ts).
 * Whoever asks for what follows a block has it in full. A peer that asks without waiting spoils its own copy
 * of its own copy, and no other, and finds that by the checksums.
 */

/**
 * Room of all buffers that are lent: two of the largest that a gateway asks for, or the handful of small ones
 * that it has under way.
 */
export const LENT_BYTES_MAX = 16 * 1024 * 1024;
/** Sizes are rounded up to this: payloads of blocks with as many messages differ by little. */
const STEP_BYTES = 64 * 1024;
const NOTHING: Uint8Array = new Uint8Array(0);

interface Lent {
  readonly handle: number;
  /** Where the block ended. */
  readonly position: number;
  readonly buffer: Uint8Array;
}

export class BlockBuffers {
  #lent: Lent[] = [];
  #lentBytes = 0;

  /** Of all buffers that wait to be taken again. */
  get lentBytes(): number {
    return this.#lentBytes;
  }

  /** The buffer of the block that ended here, when its peer asks on from there; else an empty one. */
  take(handle: number, afterPosition: number): Uint8Array {
    const index = this.#lent.findIndex((lent) => lent.handle === handle);
    const lent = this.#lent[index];
    if (lent === undefined) return NOTHING;
    this.#lent.splice(index, 1);
    this.#lentBytes -= lent.buffer.length;
    // From elsewhere: what that block holds may still be on its way.
    return lent.position === afterPosition ? lent.buffer : NOTHING;
  }

  /** The block that ended at this position was sent out of this buffer, and another is to follow. */
  lend(handle: number, position: number, buffer: Uint8Array): void {
    if (this.#lentBytes + buffer.length > LENT_BYTES_MAX) return;
    this.#lent.push({ handle, position, buffer });
    this.#lentBytes += buffer.length;
  }

  clear(): void {
    this.#lent = [];
    this.#lentBytes = 0;
  }
}

/** A buffer that takes so many bytes: the one given, if it does. */
export function roomFor(bytes: number, buffer: Uint8Array): Uint8Array {
  return buffer.length >= bytes ? buffer : new Uint8Array(Math.ceil(bytes / STEP_BYTES) * STEP_BYTES);
}
