/**
 * Builds BLOCKs: entries of a queue as rows and payload, copied out of the segments, because a frame waits in the
 * socket's buffer while records move and are freed; into fresh bytes, or into a buffer that an earlier block has left
 * (block-buffers.ts).
 *
 *   PULL          entries with after < position ≤ until, at most so many and so many bytes, at least one
 *   PULL_BODIES   the entries at the positions asked, in that order; missing ones left out
 *
 * A pull goes on where the last one ended without a search (pull cursor of the queue). docs/PROTOCOL.md "Entry
 * rows". Bodies that are shared are sent whole with each entry, so that any block can be read by itself.
 */

import type { Segments } from '../../base/segments.js';
import type { TextPool } from '../../base/text-pool.js';
import { FLAG_SHARED } from '../../protocol/change-rows.js';
import { ENTRY_ROW_BYTES, FLAG_BODY_LATER, writeEntryRow } from '../../protocol/entry-rows.js';
import { TextRows } from '../../protocol/text-rows.js';
import { positionAt, positionCount } from '../../protocol/messages/pull-bodies.js';
import { roomFor } from './block-buffers.js';
import type { StoredEntries } from './stored-entries.js';
import type { MirroredQueue } from './mirrored-queue.js';
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

  constructor(parts: { readonly segments: Segments; readonly entries: StoredEntries; readonly shared: SharedBodies; readonly texts: TextPool }) {
    this.#segments = parts.segments;
    this.#entries = parts.entries;
    this.#shared = parts.shared;
    this.#texts = parts.texts;
  }

  /** `buffer` is used when the payload fits. */
  pull(queue: MirroredQueue, after: number, until: number, entriesMax: number, bytesMax: number, withBodies: boolean, buffer: Uint8Array = NOTHING): BuiltBlock {
    const block = this.#blockBehind(queue, after, until, entriesMax, bytesMax, withBodies, buffer);
    const last = this.#chosenCount === 0 ? 0 : this.#chosen[this.#chosenCount - 1] ?? 0;
    if (last !== 0) {
      queue.pullRow = last;
      queue.pullPosition = block.nextPosition;
    }
    return block;
  }

  /** As a pull with bodies, by somebody whom the pulls of gateways must not notice. */
  peek(queue: MirroredQueue, after: number, entriesMax: number, bytesMax: number): BuiltBlock {
    return this.#blockBehind(queue, after, Number.MAX_SAFE_INTEGER, entriesMax, bytesMax, true, NOTHING);
  }

  #blockBehind(queue: MirroredQueue, after: number, until: number, entriesMax: number, bytesMax: number, withBodies: boolean, buffer: Uint8Array): BuiltBlock {
    const entries = this.#entries;
    this.#clear();
    const most = Math.min(entriesMax, BLOCK_ENTRIES_MAX);
    const bytes = Math.min(bytesMax, BLOCK_BYTES_MAX);
    let row = this.#firstAfter(queue, after);
    let position = after;
    while (row !== 0 && this.#chosenCount < most) {
      const here = entries.positionOf(row);
      const size = this.#sizeOf(row, withBodies);
      if (here > until || (this.#chosenCount > 0 && this.#payloadBytes + size > bytes)) break;
      this.#choose(row, size);
      position = here;
      row = entries.nextOf(row);
    }
    const block = this.#build(withBodies, buffer);
    block.nextPosition = position;
    block.end = row === 0 || entries.positionOf(row) > until;
    return block;
  }

  /** The entries at these positions (packed as in PULL_BODIES), or undefined when they exceed one block's bytes. */
  bodies(queue: MirroredQueue, positions: Uint8Array): BuiltBlock | undefined {
    this.#clear();
    const count = positionCount(positions);
    for (let i = 0; i < count; i += 1) {
      const row = this.#entries.find(queue, positionAt(positions, i));
      if (row === 0) continue;
      const size = this.#sizeOf(row, true);
      if (this.#chosenCount > 0 && this.#payloadBytes + size > 2 * BLOCK_BYTES_MAX) return undefined;
      this.#choose(row, size);
    }
    const block = this.#build(true, NOTHING);
    block.end = true;
    return block;
  }

  /** First entry behind the position: the cursor's neighbour, the entry's own neighbour, or by walking from the front. */
  #firstAfter(queue: MirroredQueue, after: number): number {
    const entries = this.#entries;
    if (after <= 0) return queue.first;
    if (after === queue.pullPosition) return queue.pullRow === 0 ? queue.first : entries.nextOf(queue.pullRow);
    const at = entries.find(queue, after);
    if (at !== 0) return entries.nextOf(at);
    let row = queue.first;
    while (row !== 0 && entries.positionOf(row) <= after) row = entries.nextOf(row);
    return row;
  }

  #sizeOf(row: number, withBodies: boolean): number {
    const entries = this.#entries;
    return entries.headBytesOf(row) + entries.noteBytesOf(row) + (withBodies ? entries.bodyBytesOf(row) : 0);
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

  #build(withBodies: boolean, buffer: Uint8Array): BuiltBlock {
    const block = new BuiltBlock();
    block.rows = new Uint8Array(this.#chosenCount * ENTRY_ROW_BYTES);
    block.buffer = roomFor(this.#payloadBytes, buffer);
    block.bodies = block.buffer.subarray(0, this.#payloadBytes);
    const view = new DataView(block.rows.buffer);
    let at = 0;
    for (let i = 0; i < this.#chosenCount; i += 1) {
      at = this.#copyEntry(this.#chosen[i] ?? 0, withBodies, view, i * ENTRY_ROW_BYTES, block.buffer, at);
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

  #copyEntry(row: number, withBodies: boolean, view: DataView, rowAt: number, target: Uint8Array, start: number): number {
    const entries = this.#entries;
    const segments = this.#segments;
    const bodyBytes = entries.bodyBytesOf(row);
    const headBytes = entries.headBytesOf(row);
    const slot = entries.slotOf(row);
    const shared = entries.sharedOf(row);
    const noteBytes = entries.noteBytesOf(row);
    let at = start;
    if (shared !== 0) {
      if (withBodies && bodyBytes > 0) segments.copyTo(this.#shared.slotOf(shared), 0, bodyBytes, target, at);
      if (withBodies) at += bodyBytes;
      if (headBytes > 0) segments.copyTo(slot, 0, headBytes, target, at);
      at += headBytes;
    } else if (slot !== 0) {
      const from = withBodies ? 0 : bodyBytes;
      segments.copyTo(slot, from, bodyBytes + headBytes - from, target, at);
      at += bodyBytes + headBytes - from;
    }
    const noteCrc = noteBytes === 0 ? 0 : entries.copyNote(row, target, at);
    at += noteBytes;
    const flags = (shared === 0 ? 0 : FLAG_SHARED) | (withBodies ? 0 : FLAG_BODY_LATER);
    writeEntryRow(view, rowAt, flags, bodyBytes, headBytes, entries.crcOf(row), noteBytes, noteCrc, entries.idOf(row), entries.positionOf(row), entries.roomOf(row));
    return at;
  }
}
