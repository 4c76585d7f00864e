/**
 * The real Packer: msgpackr, held to plain MessagePack. Records and shared structures are off, because they
 * are msgpackr's own extension; maps would become Map, never an object with keys that a peer chose, should
 * bounds.ts ever let one through. Whole numbers from 2^32 on go out as float64 and come back as numbers.
 *
 * Packed bytes are a view of a buffer that msgpackr goes on filling behind them, so they stay valid but pin
 * 8 KiB. Unpacked byte strings are views of the bytes given, valid as long as those.
 */
import { Packr } from 'msgpackr';
import type { Packer } from '../ports.js';

/** msgpackr's own first size. */
const TARGET_BYTES = 8 * 1024;
/** Above this a grown target is dropped: each small result cut from it would pin all of it. */
const TARGET_KEEP_BYTES = 64 * 1024;

export class MessagePacker implements Packer {
  readonly #packr = new Packr({
    useRecords: false,
    mapsAsObjects: false,
    moreTypes: false,
    bundleStrings: false,
    int64AsType: 'number',
    copyBuffers: false,
  });

  pack(value: unknown): Uint8Array {
    const packed = this.#packr.pack(value);
    if (packed.buffer.byteLength > TARGET_KEEP_BYTES) {
      this.#packr.useBuffer(Buffer.allocUnsafeSlow(TARGET_BYTES));
    }
    return packed;
  }

  unpack(bytes: Uint8Array): unknown {
    return this.#packr.unpack(bytes);
  }
}
