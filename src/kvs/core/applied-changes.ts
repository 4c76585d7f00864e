/**
 * The last changes of the partitions of one gateway as they were applied, so that a copy which stands a
 * little behind gets the missing tail instead of everything (docs/PROTOCOL.md "TAILED").
 *
 *   chunks, oldest first      ┌───────┬───────┬──────┐ ┌───────┬───────┐ ┌─────┄
 *   (CHUNK_BYTES, or one      │record │record │record│ │record │record │ │record
 *    record's own size)       └───────┴───────┴──────┘ └───────┴───────┘ └─────┄
 *                                 ▲────── prev ───────────────┘  ▲ copy.ringChunk, copy.ringAt: its last one
 *
 *   record: offset size
 *           0      8    f64  prevChunk    number of the chunk of the record before of this copy, 0 = none
 *           8      4    u32  prevAt       its offset there
 *           12     4    u32  rowCount
 *           16     8    f64  firstNumber  of the first row
 *           24     4    u32  payloadBytes
 *           28     8    u32  digestA, digestB   in front of the first row
 *           36     4    0
 *           40          rows (change-rows.ts), payload, padding to 8
 *
 * Chunks are taken as needed, within the bound and while mail leaves room; else the oldest is used again or
 * given back, and what stood in it is no more. Nobody is told: a copy's records are found from its last one
 * backwards, and a chunk number below the oldest says that the rest is gone. The records of a copy are
 * contiguous: what can't be kept cuts its chain.
 *
 * A section with SKIPPED changes is not kept: they were skipped because of what this copy lacked at that
 * time, and another copy which skipped them would agree in number and digest but not in content.
 */

import {
  CHANGE_ROW_BYTES, changeBodyBytes, changeBodyInFrame, changeCrc, changeDigested, changeHeadBytes,
  changeHeadInFrame, changeRef,
} from '../../protocol/change-rows.js';
import { Digest } from '../../protocol/digest.js';
import type { MirroredPartition } from './mirrored-partition.js';

const HEADER_BYTES = 40;
const PREV_AT = 8;
const ROW_COUNT = 12;
const FIRST_NUMBER = 16;
const PAYLOAD_BYTES = 24;
const DIGEST_A = 28;
const DIGEST_B = 32;

/** Small enough that a ring of the least memory has several; few records want one of their own. */
const CHUNK_BYTES = 256 * 1024;
/** A ring is at least this many chunks, so that using the oldest again forgets only a part. */
const CHUNKS_MIN = 16;
/** Payload of one tail, half of a frame. More is quicker refilled in small steps, beside other traffic. */
const TAIL_BYTES_MAX = 32 * 1024 * 1024;
/** Rows of one tail: with 24 bytes each half of what a control part may have. */
const TAIL_ROWS_MAX = 170_000;

interface Chunk {
  readonly number: number;
  readonly bytes: Uint8Array;
  readonly view: DataView;
  filled: number;
}

/** What follows a number. */
export interface Tail {
  readonly rows: Uint8Array;
  readonly bodies: Uint8Array;
}

/** Where a ring's bytes are counted (admission.ts). */
export interface RingMemory {
  /** Is there room for so many more beside mail? */
  mayKeep(bytes: number): boolean;
  keep(bytes: number): void;
  letGo(bytes: number): void;
}

const NOTHING: Tail = { rows: new Uint8Array(0), bodies: new Uint8Array(0) };

export class AppliedChanges {
  readonly #bytesMax: number;
  readonly #chunkBytes: number;
  readonly #memory: RingMemory;
  readonly #chunks: Chunk[] = [];
  /** The one that is being filled. */
  #last: Chunk | undefined;
  readonly #digest = new Digest();
  #nextNumber = 1;
  #held = 0;

  /** `bytesMax` 0: keeps nothing. */
  constructor(options: { readonly bytesMax: number }, ports: { readonly memory: RingMemory }) {
    this.#bytesMax = options.bytesMax;
    this.#chunkBytes = Math.min(CHUNK_BYTES, Math.floor(options.bytesMax / CHUNKS_MIN) & ~7);
    this.#memory = ports.memory;
  }

  get heldBytes(): number {
    return this.#held;
  }

  /**
   * Keeps a section that was applied whole: rows at rowsAt of the view's buffer, payload from…to. (a, b) is
   * the digest in front of its first row. What does not fit, or has SKIPPED rows (`payloadFrom` below 0),
   * cuts the copy's chain.
   */
  append(
    copy: MirroredPartition, firstNumber: number, a: number, b: number, view: DataView, rowsAt: number,
    rowCount: number, payload: Uint8Array, payloadFrom: number, payloadTo: number,
  ): void {
    const rowBytes = rowCount * CHANGE_ROW_BYTES;
    const payloadBytes = payloadTo - payloadFrom;
    const bytes = (HEADER_BYTES + rowBytes + payloadBytes + 7) & ~7;
    const chunk = payloadFrom < 0 ? undefined : this.#room(bytes);
    if (chunk === undefined) {
      copy.ringChunk = 0;
      return;
    }
    const at = chunk.filled;
    const header = chunk.view;
    header.setFloat64(at, copy.ringChunk, true);
    header.setUint32(at + PREV_AT, copy.ringAt, true);
    header.setUint32(at + ROW_COUNT, rowCount, true);
    header.setFloat64(at + FIRST_NUMBER, firstNumber, true);
    header.setUint32(at + PAYLOAD_BYTES, payloadBytes, true);
    header.setUint32(at + DIGEST_A, a, true);
    header.setUint32(at + DIGEST_B, b, true);
    const rows = new Uint8Array(view.buffer, view.byteOffset + rowsAt, rowBytes);
    chunk.bytes.set(rows, at + HEADER_BYTES);
    if (payloadBytes > 0) {
      const kept = new Uint8Array(payload.buffer, payload.byteOffset + payloadFrom, payloadBytes);
      chunk.bytes.set(kept, at + HEADER_BYTES + rowBytes);
    }
    chunk.filled = at + bytes;
    copy.ringChunk = chunk.number;
    copy.ringAt = at;
  }

  /** What followed number `number` with this digest; undefined when that is known no more or too long. */
  tail(copy: MirroredPartition, number: number, a: number, b: number): Tail | undefined {
    if (number === copy.number) return a === copy.digestA && b === copy.digestB ? NOTHING : undefined;
    const rowCount = copy.number - number;
    if (rowCount < 0 || rowCount > TAIL_ROWS_MAX) return undefined;
    let chunk = this.#chunk(copy.ringChunk);
    let at = copy.ringAt;
    let payloadBytes = 0;
    while (chunk !== undefined && payloadBytes <= TAIL_BYTES_MAX) {
      const first = chunk.view.getFloat64(at + FIRST_NUMBER, true);
      if (first <= number + 1) {
        const cut = this.#cut(chunk.view, at, number + 1 - first, a, b);
        payloadBytes += chunk.view.getUint32(at + PAYLOAD_BYTES, true) - cut;
        if (cut < 0 || payloadBytes > TAIL_BYTES_MAX) return undefined;
        return this.#copy(copy, rowCount, payloadBytes);
      }
      payloadBytes += chunk.view.getUint32(at + PAYLOAD_BYTES, true);
      const prev = chunk.view.getFloat64(at, true);
      at = chunk.view.getUint32(at + PREV_AT, true);
      chunk = this.#chunk(prev);
    }
    return undefined;
  }

  /** Bytes of payload of the first `rows` rows of a record; -1 when the digest behind them is another. */
  #cut(view: DataView, at: number, rows: number, a: number, b: number): number {
    const digest = this.#digest;
    digest.reset(view.getUint32(at + DIGEST_A, true), view.getUint32(at + DIGEST_B, true));
    let bytes = 0;
    for (let i = 0; i < rows; i += 1) {
      const row = at + HEADER_BYTES + i * CHANGE_ROW_BYTES;
      digest.add(
        changeDigested(view, row), changeBodyBytes(view, row), changeHeadBytes(view, row),
        changeCrc(view, row), changeRef(view, row),
      );
      bytes += changeBodyInFrame(view, row) + changeHeadInFrame(view, row);
    }
    return digest.equals(a, b) ? bytes : -1;
  }

  /** Fills from the back, record by record; of the first one only what lies behind the number. */
  #copy(copy: MirroredPartition, rowCount: number, payloadBytes: number): Tail {
    const rows = new Uint8Array(rowCount * CHANGE_ROW_BYTES);
    const bodies = new Uint8Array(payloadBytes);
    let rowsEnd = rows.length;
    let bodiesEnd = bodies.length;
    let chunk = this.#chunk(copy.ringChunk);
    let at = copy.ringAt;
    while (chunk !== undefined && rowsEnd > 0) {
      const { view } = chunk;
      const rowBytes = view.getUint32(at + ROW_COUNT, true) * CHANGE_ROW_BYTES;
      const from = at + HEADER_BYTES;
      const end = from + rowBytes + view.getUint32(at + PAYLOAD_BYTES, true);
      const takenRows = Math.min(rowsEnd, rowBytes);
      const takenBytes = Math.min(bodiesEnd, end - from - rowBytes);
      rows.set(chunk.bytes.subarray(from + rowBytes - takenRows, from + rowBytes), rowsEnd - takenRows);
      bodies.set(chunk.bytes.subarray(end - takenBytes, end), bodiesEnd - takenBytes);
      rowsEnd -= takenRows;
      bodiesEnd -= takenBytes;
      const prev = view.getFloat64(at, true);
      at = view.getUint32(at + PREV_AT, true);
      chunk = this.#chunk(prev);
    }
    return { rows, bodies };
  }

  #chunk(number: number): Chunk | undefined {
    const oldest = this.#chunks[0];
    return oldest === undefined || number < oldest.number ? undefined : this.#chunks[number - oldest.number];
  }

  /** The chunk whose end takes so many bytes, or undefined when they are not to be kept. */
  #room(bytes: number): Chunk | undefined {
    const last = this.#last;
    if (last !== undefined && last.filled + bytes <= last.bytes.length) return last;
    const size = Math.max(bytes, this.#chunkBytes);
    if (size > this.#bytesMax) return undefined;
    let spare: Uint8Array | undefined;
    while (this.#held + size > this.#bytesMax || !this.#memory.mayKeep(size)) {
      const oldest = this.#chunks.shift();
      if (oldest === undefined) {
        this.#last = undefined;
        return undefined;
      }
      this.#held -= oldest.bytes.length;
      this.#memory.letGo(oldest.bytes.length);
      if (oldest.bytes.length === size) spare = oldest.bytes;
    }
    return this.#add(spare ?? new Uint8Array(size));
  }

  #add(bytes: Uint8Array): Chunk {
    const chunk = { number: this.#nextNumber, bytes, view: new DataView(bytes.buffer), filled: 0 };
    this.#nextNumber += 1;
    this.#chunks.push(chunk);
    this.#last = chunk;
    this.#held += bytes.length;
    this.#memory.keep(bytes.length);
    return chunk;
  }
}
