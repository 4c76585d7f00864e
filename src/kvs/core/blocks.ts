/**
 * Builds BLOCKs: entries of a copy as rows and payload, copied out of the segments, because a frame waits in
 * the socket's buffer while records move and are freed; into fresh bytes, or into a buffer that an earlier
 * block has left (block-buffers.ts).
 *
 *   PULL   entries with after < position ≤ until, at most so many and so many bytes, at least one; with
 *          bodies, or heads and notes alone
 *   FETCH  the entries at these positions, whole, as many as fit and one at least
 *
 * A pull goes on where the last one ended without a search (pull cursor of the copy). docs/PROTOCOL.md "Entry
 * rows". Bodies that are shared are sent whole with each entry, so that any block can be read by itself.
 */

import type { Segments } from '../../base/segments.js';
import type { TextPool } from '../../base/text-pool.js';
import { FLAG_BODY_ABSENT, FLAG_SHARED } from '../../protocol/change-rows.js';
import { ENTRY_ROW_BYTES, writeEntryRow } from '../../protocol/entry-rows.js';
import { positionAt, positionCount } from '../../protocol/messages/fetch.js';
import { TextRows } from '../../protocol/text-rows.js';
import { roomFor } from './block-buffers.js';
import type { StoredEntries } from './stored-entries.js';
import type { MirroredPartition } from './mirrored-partition.js';
import type { SharedBodies } from './shared-bodies.js';

/** Rows of one block: 40 bytes each must fit a control part of 8 MiB with room to spare. */
const BLOCK_ENTRIES_MAX = 100_000;
/** Payload of one block: far below a frame's 64 MiB, and what one answer may put into a socket's buffer. */
const BLOCK_BYTES_MAX = 16 * 1024 * 1024;

/** Texts of one block: a control part holds 8 MiB. */
const TEXT_BYTES_PER_BLOCK = 1024 * 1024;

const NOTHING: Uint8Array = new Uint8Array(0);

export class BuiltBlock {
  rows: Uint8Array = new Uint8Array(0);
  /** A view of the start of `buffer`. */
  bodies: Uint8Array = NOTHING;
  buffer: Uint8Array = NOTHING;
  texts: Uint8Array = NOTHING;
  /** Of the last row; of FETCH: the last position that is answered. */
  nextPosition = 0;
  end = false;
}

export class Blocks {
  readonly #segments: Segments;
  readonly #entries: StoredEntries;
  readonly #shared: SharedBodies;
  readonly #texts: TextPool;
  /** Rows chosen for the block being built. */
  #chosen = new Uint32Array(1024);
  #chosenCount = 0;
  #payloadBytes = 0;
  #withBodies = true;

  constructor(parts: {
    readonly segments: Segments; readonly entries: StoredEntries; readonly shared: SharedBodies;
    readonly texts: TextPool;
  }) {
    this.#segments = parts.segments;
    this.#entries = parts.entries;
    this.#shared = parts.shared;
    this.#texts = parts.texts;
  }

  /** `buffer` is used when the payload fits. */
  pull(
    copy: MirroredPartition, after: number, until: number, entriesMax: number, bytesMax: number,
    buffer: Uint8Array = NOTHING, withBodies = true,
  ): BuiltBlock {
    this.#withBodies = withBodies;
    const block = this.#blockBehind(copy, after, until, entriesMax, bytesMax, buffer);
    const last = this.#chosenCount === 0 ? 0 : this.#chosen[this.#chosenCount - 1] ?? 0;
    if (last !== 0) {
      copy.pullRow = last;
      copy.pullPosition = block.nextPosition;
    }
    return block;
  }

  fetch(copy: MirroredPartition, positions: Uint8Array): BuiltBlock {
    const entries = this.#entries;
    this.#withBodies = true;
    this.#clear();
    let until = 0;
    for (let i = 0; i < positionCount(positions); i += 1) {
      const position = positionAt(positions, i);
      const row = entries.find(copy, position);
      if (row !== 0) {
        const size = this.#sizeOf(row);
        if (this.#chosenCount > 0 && this.#payloadBytes + size > BLOCK_BYTES_MAX) break;
        this.#choose(row, size);
      }
      until = position;
    }
    const block = this.#build(NOTHING);
    block.nextPosition = until;
    return block;
  }

  /** As a pull, by somebody whom the pulls of gateways must not notice. */
  peek(copy: MirroredPartition, after: number, entriesMax: number, bytesMax: number): BuiltBlock {
    this.#withBodies = true;
    return this.#blockBehind(copy, after, Number.MAX_SAFE_INTEGER, entriesMax, bytesMax, NOTHING);
  }

  #blockBehind(
    copy: MirroredPartition, after: number, until: number, entriesMax: number, bytesMax: number,
    buffer: Uint8Array,
  ): BuiltBlock {
    const entries = this.#entries;
    this.#clear();
    const most = Math.min(entriesMax, BLOCK_ENTRIES_MAX);
    const bytes = Math.min(bytesMax, BLOCK_BYTES_MAX);
    let row = this.#firstAfter(copy, after);
    let position = after;
    while (row !== 0 && this.#chosenCount < most) {
      const here = entries.positionOf(row);
      const size = this.#sizeOf(row);
      if (here > until || (this.#chosenCount > 0 && this.#payloadBytes + size > bytes)) break;
      this.#choose(row, size);
      position = here;
      row = entries.nextOf(row);
    }
    const block = this.#build(buffer);
    block.nextPosition = position;
    block.end = row === 0 || entries.positionOf(row) > until;
    return block;
  }

  /**
   * First entry behind the position: the cursor's neighbour, the entry's own neighbour, or by walking from
   * the front.
   */
  #firstAfter(copy: MirroredPartition, after: number): number {
    const entries = this.#entries;
    if (after <= 0) return copy.first;
    if (after === copy.pullPosition) return copy.pullRow === 0 ? copy.first : entries.nextOf(copy.pullRow);
    const at = entries.find(copy, after);
    if (at !== 0) return entries.nextOf(at);
    let row = copy.first;
    while (row !== 0 && entries.positionOf(row) <= after) row = entries.nextOf(row);
    return row;
  }

  #sizeOf(row: number): number {
    const entries = this.#entries;
    const bodyBytes = this.#withBodies ? entries.bodyBytesOf(row) : 0;
    return bodyBytes + entries.headBytesOf(row) + entries.noteBytesOf(row);
  }

  #clear(): void {
    this.#chosenCount = 0;
    this.#payloadBytes = 0;
  }

  #choose(row: number, size: number): void {
    if (this.#chosenCount === this.#chosen.length) {
      const grown = new Uint32Array(this.#chosen.length * 2);
      grown.set(this.#chosen);
      this.#chosen = grown;
    }
    this.#chosen[this.#chosenCount] = row;
    this.#chosenCount += 1;
    this.#payloadBytes += size;
  }

  #build(buffer: Uint8Array): BuiltBlock {
    const block = new BuiltBlock();
    block.rows = new Uint8Array(this.#chosenCount * ENTRY_ROW_BYTES);
    block.buffer = roomFor(this.#payloadBytes, buffer);
    block.bodies = block.buffer.subarray(0, this.#payloadBytes);
    const view = new DataView(block.rows.buffer);
    let at = 0;
    for (let i = 0; i < this.#chosenCount; i += 1) {
      at = this.#copyEntry(this.#chosen[i] ?? 0, view, i * ENTRY_ROW_BYTES, block.buffer, at);
    }
    if (this.#texts.count > 0) block.texts = this.#textsOfChosen();
    return block;
  }

  #textsOfChosen(): Uint8Array {
    const rows = new TextRows();
    for (let i = 0; i < this.#chosenCount && rows.length < TEXT_BYTES_PER_BLOCK; i += 1) {
      const row = this.#chosen[i] ?? 0;
      const text = this.#texts.of(row);
      if (text !== undefined) rows.add(this.#entries.positionOf(row), text);
    }
    return rows.take();
  }

  #copyEntry(row: number, view: DataView, rowAt: number, target: Uint8Array, start: number): number {
    const entries = this.#entries;
    const segments = this.#segments;
    const bodyBytes = entries.bodyBytesOf(row);
    const headBytes = entries.headBytesOf(row);
    const slot = entries.slotOf(row);
    const shared = entries.sharedOf(row);
    const noteBytes = entries.noteBytesOf(row);
    let at = start;
    if (!this.#withBodies) {
      if (headBytes > 0) segments.copyTo(slot, shared === 0 ? bodyBytes : 0, headBytes, target, at);
      at += headBytes;
    } else if (shared !== 0) {
      if (bodyBytes > 0) segments.copyTo(this.#shared.slotOf(shared), 0, bodyBytes, target, at);
      at += bodyBytes;
      if (headBytes > 0) segments.copyTo(slot, 0, headBytes, target, at);
      at += headBytes;
    } else if (slot !== 0) {
      segments.copyTo(slot, 0, bodyBytes + headBytes, target, at);
      at += bodyBytes + headBytes;
    }
    const noteCrc = noteBytes === 0 ? 0 : entries.copyNote(row, target, at);
    at += noteBytes;
    const flags = (shared === 0 ? 0 : FLAG_SHARED) | (this.#withBodies ? 0 : FLAG_BODY_ABSENT);
    writeEntryRow(
      view, rowAt, flags, bodyBytes, headBytes, entries.crcOf(row),
      noteBytes, noteCrc, entries.idOf(row), entries.positionOf(row), entries.roomOf(row),
    );
    return at;
  }
}
