/**
 * Cuts the byte stream of a connection into frames (docs/PROTOCOL.md, "Frame") and checks each header and
 * its checksum. Owns the bytes of a frame that has arrived in part.
 *
 *   push(chunk)
 *     nothing kept:  frames that lie whole in the chunk ──► sink, as views of the chunk, no copy
 *                    the rest of the chunk ──► kept
 *     part kept:     only what the frame still lacks is taken from the chunk ──► kept; complete ──► sink,
 *                    as views of the kept buffer; then as above
 *
 * The kept buffer doubles with what has arrived and is never sized by a length that a peer claimed, so
 * 24 bytes which announce 64 MiB cost nothing; doubling keeps many small chunks linear. After a large
 * frame it is given back. A header is judged as soon as its 24 bytes are there and the checksum as soon as
 * the control part is, long before the bodies: a corrupted length is found at once rather than waited for.
 *
 * Where memory is bounded (FrameRoom), bodies of a frame that find no room are passed over as they come, and
 * the frame is delivered without them when its end is there: who sent it is told so, and nothing was held.
 * A control part that finds no room ends the stream.
 *
 * Sequence numbers and message types are the link's to judge; bodies are checked by whoever stores them. Of
 * one type of message the checksum of all bodies is worked out while a frame comes in part: each chunk is at
 * hand then, in the processor's cache and perhaps in a buffer that is cheap to sum
 * (platform/node/checksum.ts); the kept frame is neither.
 */
import type { Crc32 } from '../platform/ports.js';
import { CONTROL_BYTES_MAX, FRAME_VERSION, HEADER_BYTES } from './frame.js';

export interface FrameSink {
  /**
   * `control` and `bodies` are views, valid only during the call. `bodyBytes`: of the frame; with none of
   * them in `bodies`, they were passed over.
   */
  onFrame(type: number, sequence: number, control: Uint8Array, bodies: Uint8Array, bodyBytes: number): void;
  /** The stream can't be followed any more; nothing is delivered after this. */
  onInvalid(rule: string): void;
}

/** The memory in which a frame that comes in part is kept. */
export interface FrameRoom {
  /**
   * So many bytes in all instead of those held now, `bodyBytes` of them of bodies. Held from then
   * on if the answer is true.
   */
  mayHold(bytes: number, bodyBytes: number): boolean;
  /** The frame is over: may its buffer stay for the next one? Given back if the answer is false. */
  mayKeep(): boolean;
}

/** No memory is left for a control part. */
export const RULE_NO_ROOM = 'no memory for a request';

/**
 * Kept for the next frame: a turn of a busy link and a block of a recovery fit, so that neither allocates
 * anew. Larger buffers go back when they are empty.
 */
const KEEP_BYTES = 2 * 1024 * 1024;
/** Where growing starts. */
const FIRST_BYTES = 4 * 1024;
/**
 * Bodies in chunks below this, on average, are not summed as they come: all at once is cheaper then. The
 * first and the last may be shorter.
 */
const SUMMED_CHUNK_BYTES = 16 * 1024;
/** High word of a sequence below 2^53. */
const SEQUENCE_HIGH_MAX = 0x1f_ffff;
const WORD = 0x1_0000_0000;
const NOTHING = new Uint8Array(0);

export class FrameReader {
  #frameBytesMax: number;
  readonly #crc32: Crc32;
  readonly #room: FrameRoom | undefined;
  /** Bytes 0..#filled are the start of one frame that is not complete; never more than one frame. */
  #kept: Uint8Array = NOTHING;
  #filled = 0;
  /** Whole length of the frame in #kept, 0 until its header is judged. */
  #frameBytes = 0;
  /** The checksum of the frame in #kept has been found right. */
  #sealed = false;
  /** Bytes of bodies passed over; -1 while they are held. */
  #passed = -1;
  readonly #summedType: number;
  /** Checksum of the bodies that have come, in so many chunks; -1 when it is not worked out. */
  #sum = -1;
  #chunks = 0;
  #broken = false;
  #stopped = false;

  /** `summedType`: the type of message whose bodies are summed as they come. */
  constructor(
    options: { readonly frameBytesMax: number; readonly summedType?: number },
    ports: { readonly crc32: Crc32; readonly room?: FrameRoom },
  ) {
    this.#frameBytesMax = options.frameBytesMax;
    this.#summedType = options.summedType ?? -1;
    this.#crc32 = ports.crc32;
    this.#room = ports.room;
  }

  /** A peer that has not proved itself gets HANDSHAKE_FRAME_BYTES_MAX; raised by the link after its proof. */
  set frameBytesMax(bytes: number) {
    this.#frameBytesMax = bytes;
  }

  /** For a sink, during onFrame: the checksum of its bodies, or -1 when it was not worked out on the way. */
  get bodySum(): number {
    return this.#sum;
  }

  /** Bytes of an incomplete frame that are held here. */
  get bufferedBytes(): number {
    return this.#filled;
  }

  /** Memory held, for G7: at most twice the bytes buffered, or a small fixed amount. */
  get heldBytes(): number {
    return this.#kept.length;
  }

  /** Delivers nothing more, also of the chunk in work: the link was closed or fenced from inside a sink. */
  stop(): void {
    this.#stopped = true;
    this.#release();
  }

  push(bytes: Uint8Array, sink: FrameSink): void {
    let at = 0;
    while (this.#filled > 0 && at < bytes.length && !this.#halted()) at = this.#fill(bytes, at, sink);
    at = this.#deliverWhole(bytes, at, sink);
    while (this.#filled > 0 && at < bytes.length && !this.#halted()) at = this.#fill(bytes, at, sink);
  }

  /**
   * Frames that lie whole in the chunk. The one behind them is begun to be kept: its header, or its control
   * part. Returns where the rest begins.
   */
  #deliverWhole(bytes: Uint8Array, from: number, sink: FrameSink): number {
    let at = from;
    while (at < bytes.length && !this.#halted()) {
      const left = bytes.length - at;
      if (left < HEADER_BYTES) return this.#begin(bytes, at, left, sink);
      const frameBytes = this.#judgeHeader(bytes, at, sink);
      if (frameBytes === 0) return at;
      const sealedBytes = HEADER_BYTES + readUint32(bytes, at + 12);
      if (left < sealedBytes) {
        this.#frameBytes = frameBytes;
        return this.#begin(bytes, at, left, sink);
      }
      if (!this.#judgeChecksum(bytes, at, sealedBytes, sink)) return at;
      if (left < frameBytes) {
        this.#frameBytes = frameBytes;
        const end = this.#begin(bytes, at, sealedBytes, sink);
        if (!this.#broken) this.#seal();
        return end;
      }
      this.#sum = -1;
      deliver(bytes, at, sealedBytes, frameBytes, frameBytes, sink);
      at += frameBytes;
    }
    return at;
  }

  #halted(): boolean {
    return this.#broken || this.#stopped;
  }

  /**
   * Moves what the kept frame lacks from the chunk, judges, delivers when complete. Returns the new offset.
   */
  #fill(bytes: Uint8Array, from: number, sink: FrameSink): number {
    if (this.#sealed) return this.#fillBodies(bytes, from, sink);
    const wanted = this.#frameBytes === 0 ? HEADER_BYTES : HEADER_BYTES + readUint32(this.#kept, 12);
    const taken = Math.min(wanted - this.#filled, bytes.length - from);
    if (!this.#append(bytes, from, taken)) {
      this.#refuse(RULE_NO_ROOM, sink);
      return from;
    }
    const at = from + taken;
    if (this.#filled < wanted) return at;
    if (this.#frameBytes === 0) {
      this.#frameBytes = this.#judgeHeader(this.#kept, 0, sink);
      if (this.#frameBytes === 0 || readUint32(this.#kept, 12) > 0) return at;
    }
    if (!this.#judgeChecksum(this.#kept, 0, this.#filled, sink)) return at;
    this.#seal();
    if (this.#filled === this.#frameBytes) this.#complete(sink);
    return at;
  }

  /** The control part in #kept is right: bodies follow. */
  #seal(): void {
    this.#sealed = true;
    this.#sum = this.#kept[8] === this.#summedType ? 0 : -1;
    this.#chunks = 0;
  }

  #fillBodies(bytes: Uint8Array, from: number, sink: FrameSink): number {
    const taken = Math.min(this.#frameBytes - this.#filled - Math.max(0, this.#passed), bytes.length - from);
    if (this.#passed < 0 && !this.#append(bytes, from, taken)) {
      const sealedBytes = HEADER_BYTES + readUint32(this.#kept, 12);
      this.#passed = this.#filled - sealedBytes;
      this.#sum = -1;
      this.#filled = sealedBytes;
      this.#kept = this.#kept.slice(0, sealedBytes);
      // Less than before is always to be had.
      this.#room?.mayHold(sealedBytes, 0);
    }
    if (this.#passed >= 0) this.#passed += taken;
    else if (this.#sum >= 0) this.#addToSum(bytes, from, taken);
    if (this.#filled + Math.max(0, this.#passed) === this.#frameBytes) this.#complete(sink);
    return from + taken;
  }

  #addToSum(bytes: Uint8Array, from: number, count: number): void {
    this.#chunks += 1;
    const isCheap = (this.#chunks - 2) * SUMMED_CHUNK_BYTES <= this.#filled;
    this.#sum = isCheap ? this.#crc32(bytes.subarray(from, from + count), this.#sum) : -1;
  }

  /** Counted as held until the sink has taken it. */
  #complete(sink: FrameSink): void {
    const frame = this.#kept;
    const frameBytes = this.#frameBytes;
    const heldBytes = this.#filled;
    // Emptied before the sink runs, so that a sink which throws or stops us leaves a consistent reader.
    this.#filled = 0;
    this.#frameBytes = 0;
    this.#sealed = false;
    this.#passed = -1;
    deliver(frame, 0, HEADER_BYTES + readUint32(frame, 12), heldBytes, frameBytes, sink);
    if (frame.length > KEEP_BYTES || this.#room?.mayKeep() === false) this.#kept = NOTHING;
  }

  /** The length of the frame at `at` when its header keeps the rules, else 0 after telling the sink. */
  #judgeHeader(bytes: Uint8Array, at: number, sink: FrameSink): number {
    const frameBytes = readUint32(bytes, at + 4);
    const controlBytes = readUint32(bytes, at + 12);
    if (bytes[at + 9] !== FRAME_VERSION) return this.#refuse('frame version', sink);
    if (bytes[at + 10] !== 0 || bytes[at + 11] !== 0) return this.#refuse('frame flags', sink);
    if (frameBytes < HEADER_BYTES) return this.#refuse('frame shorter than its header', sink);
    if (frameBytes > this.#frameBytesMax) return this.#refuse('frame too long', sink);
    if (controlBytes > CONTROL_BYTES_MAX) return this.#refuse('control too long', sink);
    if (HEADER_BYTES + controlBytes > frameBytes) return this.#refuse('control longer than its frame', sink);
    if (readUint32(bytes, at + 20) > SEQUENCE_HIGH_MAX) return this.#refuse('sequence not below 2^53', sink);
    return frameBytes;
  }

  #judgeChecksum(bytes: Uint8Array, at: number, sealedBytes: number, sink: FrameSink): boolean {
    const crc = this.#crc32(bytes.subarray(at + 4, at + sealedBytes), 0);
    if (crc === readUint32(bytes, at)) return true;
    this.#refuse('frame checksum', sink);
    return false;
  }

  #refuse(rule: string, sink: FrameSink): 0 {
    this.#broken = true;
    this.#release();
    sink.onInvalid(rule);
    return 0;
  }

  #release(): void {
    this.#kept = NOTHING;
    this.#filled = 0;
  }

  /** Keeps the first bytes of a frame, up to its bodies. */
  #begin(bytes: Uint8Array, at: number, count: number, sink: FrameSink): number {
    if (!this.#append(bytes, at, count)) this.#refuse(RULE_NO_ROOM, sink);
    return at + count;
  }

  /** False when there is no room: nothing has changed then. */
  #append(bytes: Uint8Array, from: number, count: number): boolean {
    const needed = this.#filled + count;
    if (needed > this.#kept.length) {
      const wished = Math.max(needed, Math.min(2 * needed, this.#growthLimit(needed)), FIRST_BYTES);
      const size = this.#mayHold(wished) ? wished : needed;
      if (size < wished && !this.#mayHold(needed)) return false;
      const grown = new Uint8Array(size);
      grown.set(this.#kept.subarray(0, this.#filled));
      this.#kept = grown;
    }
    this.#kept.set(
      from === 0 && count === bytes.length ? bytes : bytes.subarray(from, from + count), this.#filled,
    );
    this.#filled = needed;
    return true;
  }

  #mayHold(bytes: number): boolean {
    return this.#room === undefined
      || this.#room.mayHold(bytes, this.#sealed ? bytes - HEADER_BYTES - readUint32(this.#kept, 12) : 0);
  }

  /** Doubling stops at the end of the frame. */
  #growthLimit(needed: number): number {
    return this.#frameBytes === 0 ? 2 * needed : this.#frameBytes;
  }
}

/** `heldBytes`: what is there of the frame, all of it or its control part. */
function deliver(
  bytes: Uint8Array, at: number, sealedBytes: number, heldBytes: number, frameBytes: number, sink: FrameSink,
): void {
  const controlEnd = at + sealedBytes;
  const end = at + heldBytes;
  sink.onFrame(
    bytes[at + 8] ?? 0,
    readUint32(bytes, at + 16) + readUint32(bytes, at + 20) * WORD,
    bytes.subarray(at + HEADER_BYTES, controlEnd),
    controlEnd === end ? NOTHING : bytes.subarray(controlEnd, end),
    frameBytes - sealedBytes,
  );
}

function readUint32(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16)
    | ((bytes[at + 3] ?? 0) << 24)) >>> 0;
}
